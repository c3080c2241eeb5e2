# make            build out/plain/noh        make run     build, then serve on port 7411; data in out/run-data
# make demo       a million actors, live     R='--resp-port 6379' make run      more options for it
# make test       everything CI runs         make T=mailbox test    only tests whose path has "mailbox"
# make stress     minutes of it              make fuzz    fuzz the parsers (minutes)
# make bench      numbers; idle machine      make bench-peers       beside CAF, Erlang, Go, Tokio, Redis ...
# make lib        libnoh.a .so noh.pc        make install PREFIX=/usr/local
# make tests      build them all, run none   make deb     noh and noh-dev for Debian, in out/plain
# make sim        the simulator: noh sim     noh sim --seed 42 --loud      one seed, step by step
# SAN=thread|address   a sanitizer build     V=1 shows commands     CC=clang works as well
# SLOW=1 make unit     where the time goes   make T="wheel kv" unit tests of either name
CC      ?= gcc
COMMIT  := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
VERSION := $(shell sed -n 's/.*NOH_VERSION "\(.*\)"/\1/p' include/noh.h)
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
DOCDIR  ?= $(PREFIX)/share/doc/noh
UNITDIR ?= $(PREFIX)/lib/systemd/system
# Where noh looks by itself is /etc/noh/noh.conf: a package's. Elsewhere the service alone is told of its file.
CONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
OUT     := out/$(if $(SAN),$(SAN),plain)$(if $(filter-out gcc cc,$(CC)),-$(notdir $(CC)))
sanflag  = $(if $(filter address,$(SAN)),address$(comma)undefined,$(SAN))
comma   := ,
# Two words packed into one store cost more than two stores.
OPT     := $(if $(SAN),-O1 -fsanitize=$(sanflag) -fno-omit-frame-pointer -DNOH_SANITIZED,-O2 -fno-tree-slp-vectorize)
WARN    := -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror
CFLAGS  += -std=c11 -D_GNU_SOURCE -I. -Iinclude $(if $(filter thread,$(SAN)),-I$(OUT)/shim -DCK_USE_CC_BUILTINS=1) \
           $(OPT) -g$(if $(SAN),1) -fPIC -fvisibility=hidden -pthread $(WARN)
LIBS    := -lck -llmdb -luring -lxxhash -lcrypto $(if $(SAN),,-ljemalloc) -lm -pthread
PARTS   := core mailbox sched persist net box actors
SRC     := $(wildcard $(PARTS:%=%/*.c))
CLI     := $(wildcard tools/*.c bench/*.c)
TESTS   := $(sort $(wildcard tests/*/*_test.c))
STRESS  := $(sort $(wildcard tests/*/*_stress.c))
# Power cuts are simulated where LMDB is to be had as an archive: its calls that change files are wrapped.
SIM     := $(filter-out %_test.c %_stress.c,$(wildcard tests/sim/*.c))
WRAP    := open close write pwrite writev pwritev fsync fdatasync ftruncate fallocate posix_fallocate mkdir rename unlink
ifeq ($(findstring /,$(shell $(CC) -print-file-name=liblmdb.a)),)
TESTS   := $(filter-out tests/sim/%,$(TESTS))
STRESS  := $(filter-out tests/sim/%,$(STRESS))
endif
# Tests of one thread: ThreadSanitizer has nothing to look at there.
ifeq ($(SAN),thread)
TESTS   := $(filter-out tests/sim/% tests/tools/% tests/net/command% $(addprefix tests/,$(addsuffix _test.c,core/address \
           core/buddy core/clock core/glob core/histogram core/json core/ring_hash core/thread actors/json net/http_read net/out net/resp_read persist/record \
           sched/directory sched/kv \
           sched/runq sched/wheel mailbox/mailbox bench/hist bench/load_keys bench/load_reply \
           persist/datadir persist/fold persist/recover actors/inventory actors/inventory_model actors/reconcile \
           actors/reconcile_fail actors/reconcile_json actors/reconcile_model actors/reconcile_stop)),$(TESTS))
endif
obj      = $(patsubst %.c,$(OUT)/%.o,$(1))
pick     = $(if $(T),$(foreach t,$(1),$(if $(strip $(foreach w,$(T),$(findstring $(w),$(t)))),$(t))),$(1))
say      = $(if $(V),,@printf '  %-5s %s\n' $(1) $(2);)
.SECONDARY:
.PHONY: FORCE all lib run demo sim test tests unit stress fuzz bench bench-peers install deb deps clean

all: $(OUT)/noh
deps:
	@tools/deps.sh build
run: deps
	@$(MAKE) --no-print-directory -s -j$$(nproc 2>/dev/null || echo 2) all
	@exec $(OUT)/noh serve --data out/run-data $(R)
demo: deps
	@$(MAKE) --no-print-directory -s all
	@$(OUT)/noh demo
test:
	@tests/run.sh
stress:
	@tests/run.sh stress
fuzz: deps
	@tests/fuzz/run.sh
bench: all
	@$(OUT)/noh bench $(B)
bench-peers:
	@bench/peers/run.sh
unit: $(patsubst %.c,$(OUT)/%,$(call pick,$(TESTS)))
	@tests/unit.sh $(filter-out %.o,$^)
# What a commit must not break: every test and tool still builds. Seconds after a small change.
tests: all $(patsubst %.c,$(OUT)/%,$(TESTS) $(STRESS)) $(OUT)/noh-sim
stress-unit: $(patsubst %.c,$(OUT)/%,$(call pick,$(STRESS)))
	@tests/unit.sh $^

ifeq ($(SAN),thread)
$(call obj,$(SRC) $(CLI) $(TESTS) $(STRESS) $(SIM)): | $(OUT)/shim/ck_pr.h
$(OUT)/shim/ck_pr.h: tests/tsan/ck_shim.sh
	$(call say,SHIM,$@) tests/tsan/ck_shim.sh $(OUT)/shim
endif
$(OUT)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(CFLAGS) -MMD -MP -c $< -o $@
# Which commit it was built from, for noh_build_info: made anew when that changes.
$(OUT)/commit: FORCE
	@mkdir -p $(@D); echo '$(COMMIT)' | cmp -s - $@ || echo '$(COMMIT)' > $@
$(OUT)/box/metrics_box.o: CFLAGS += -DNOH_COMMIT='"$(COMMIT)"'
$(OUT)/box/metrics_box.o: $(OUT)/commit
$(OUT)/noh: $(call obj,$(SRC) $(CLI))
	$(call say,LINK,$@) $(CC) $(CFLAGS) $^ -o $@ $(LIBS)
# Hundreds of test programs are linked: by the linker that takes half the time, where it is to be had.
QUICK   := $(if $(shell command -v ld.gold),-fuse-ld=gold)
$(OUT)/tests/%: $(OUT)/tests/%.o $(call obj,$(SRC)) $(call obj,$(wildcard tests/lib/*.c))
	$(call say,LINK,$@) $(CC) $(CFLAGS) $(QUICK) $^ -o $@ $(LIBS)
$(patsubst %.c,$(OUT)/%,$(filter tests/bench/%,$(TESTS))): %: %.o \
		$(call obj,$(SRC) $(wildcard tests/lib/*.c bench/*.c) tools/cli.c tests/bench/tiny_server.c)
	$(call say,LINK,$@) $(CC) $(CFLAGS) $(QUICK) $^ -o $@ $(LIBS)
# Tests of the command line's own parts.
TOOLKIT := $(filter-out tools/main.c,$(CLI))
$(patsubst %.c,$(OUT)/%,$(filter tests/tools/%,$(TESTS))): %: %.o $(call obj,$(SRC) $(TOOLKIT) $(wildcard tests/lib/*.c))
	$(call say,LINK,$@) $(CC) $(CFLAGS) $(QUICK) $^ -o $@ $(LIBS)
$(patsubst %.c,$(OUT)/%,$(filter tests/sim/%,$(TESTS) $(STRESS))): %: %.o $(call obj,$(SRC) $(wildcard tests/lib/*.c) $(SIM))
	$(call say,LINK,$@) $(CC) $(CFLAGS) $(QUICK) $^ -o $@ $(WRAP:%=-Wl,--wrap=%) $(LIBS:-llmdb=-l:liblmdb.a)
# The commands alone, behind a fake connection (tests/net/fake_net.c).
FAKED   := $(filter tests/net/command%,$(wildcard tests/net/*.c))
FAKING  := $(wildcard core/*.c net/command*.c) $(addprefix net/,codec.c roster.c out.c resp_read.c session.c status.c) tests/net/fake_net.c
$(patsubst %.c,$(OUT)/%,$(FAKED)): %: %.o $(call obj,$(FAKING) $(wildcard tests/lib/*.c))
	$(call say,LINK,$@) $(CC) $(CFLAGS) $(QUICK) $^ -o $@ $(LIBS)
# The simulator: a build of its own, with the planted bugs that it must find (core/plant.h).
SIMBOX  := $(wildcard tests/sim/box/*.c) $(filter tests/sim/disk_% tests/sim/lmdb_%,$(SIM))
SIMWRAP := $(WRAP) getrandom crashes_open crashes_close gather_sleep db_load tail_close store_disk_set_tail durable_prepare durable_commit db_rows db_mark_stored overlay_window step_end mailbox_push mailbox_push_run \
           directory_insert newborn_enter
simobj   = $(patsubst %.c,$(OUT)/sim/%.o,$(1))
$(OUT)/sim/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(CFLAGS) -DNOH_PLANTS -MMD -MP -c $< -o $@
$(OUT)/noh-sim: $(call simobj,$(SRC) $(SIMBOX))
	$(call say,LINK,$@) $(CC) $(CFLAGS) $^ -o $@ $(SIMWRAP:%=-Wl,--wrap=%) $(LIBS:-llmdb=-l:liblmdb.a)
sim: $(OUT)/noh-sim
# The disk under tests/crash/blk.sh: it alone needs libfuse3.
$(OUT)/tests/crash/blk: tests/crash/blk.c
	@mkdir -p $(@D)
	$(call say,LINK,$@) $(CC) $(CFLAGS) $$(pkg-config --cflags fuse3) $< -o $@ $$(pkg-config --libs fuse3)

lib: $(OUT)/libnoh.a $(OUT)/libnoh.so.$(VERSION) $(OUT)/noh.pc
$(OUT)/libnoh.o: $(call obj,$(SRC))
	$(call say,LD,$@) ld -r $^ -o $@ && objcopy --localize-hidden $@
$(OUT)/libnoh.a: $(OUT)/libnoh.o
	$(call say,AR,$@) rm -f $@ && ar rcs $@ $<
$(OUT)/libnoh.so.$(VERSION): $(OUT)/libnoh.o
	$(call say,LINK,$@) $(CC) $(CFLAGS) -shared -Wl,-soname,libnoh.so.0 $< -o $@ $(LIBS) && ln -sf $(@F) $(OUT)/libnoh.so
$(OUT)/noh.pc: include/noh.h Makefile
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'Name: noh' 'Description: actor runtime' 'Version: $(VERSION)' \
	 'Cflags: -I$${prefix}/include' 'Libs: -L$${libdir} -lnoh' 'Libs.private: $(LIBS)' > $@
install: all lib
	install -D -m755 $(OUT)/noh $(DESTDIR)$(PREFIX)/bin/noh
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,man/man1 bash-completion/completions zsh/site-functions fish/vendor_completions.d)
	$(OUT)/noh help --man > $(DESTDIR)$(PREFIX)/share/man/man1/noh.1
	$(OUT)/noh completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/noh
	$(OUT)/noh completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_noh
	$(OUT)/noh completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/noh.fish
	install -D -m644 include/noh.h $(DESTDIR)$(PREFIX)/include/noh.h
	install -D -m644 include/noh_actors.h $(DESTDIR)$(PREFIX)/include/noh_actors.h
	install -D -m644 include/noh_json.h $(DESTDIR)$(PREFIX)/include/noh_json.h
	install -D -m644 include/noh_reconcile.h $(DESTDIR)$(PREFIX)/include/noh_reconcile.h
	install -D -m644 $(OUT)/libnoh.a $(DESTDIR)$(LIBDIR)/libnoh.a
	install -D -m755 $(OUT)/libnoh.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libnoh.so.$(VERSION)
	ln -sf libnoh.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libnoh.so.0
	ln -sf libnoh.so.0 $(DESTDIR)$(LIBDIR)/libnoh.so
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(UNITDIR)
	sed 's,^prefix=.*,prefix=$(PREFIX),; s,^libdir=.*,libdir=$(LIBDIR),' $(OUT)/noh.pc > $(DESTDIR)$(LIBDIR)/pkgconfig/noh.pc
	sed '1d; s,@bindir@,$(PREFIX)/bin,; s,@sysconfdir@,$(CONFDIR),; s,@docdir@,$(DOCDIR),' packaging/noh.service \
	 > $(DESTDIR)$(UNITDIR)/noh.service
	install -D -m644 docs/operations.md $(DESTDIR)$(DOCDIR)/operations.md
	install -D -m644 packaging/noh.socket $(DESTDIR)$(DOCDIR)/noh.socket
	install -D -m644 packaging/grafana/noh.json $(DESTDIR)$(DOCDIR)/grafana/noh.json
	install -D -m644 packaging/prometheus/noh.rules.yml $(DESTDIR)$(DOCDIR)/prometheus/noh.rules.yml
	[ -e $(DESTDIR)$(CONFDIR)/noh/noh.conf ] || install -D -m644 packaging/noh.conf $(DESTDIR)$(CONFDIR)/noh/noh.conf
deb: all lib
	@packaging/deb.sh $(OUT)
clean:
	rm -rf out
-include $(patsubst %.o,%.d,$(call obj,$(SRC) $(CLI) $(TESTS) $(STRESS) $(SIM) $(FAKED) $(FAKING) tests/box/metrics_doc.c) $(call simobj,$(SRC) $(SIMBOX)))
