# tests/e2e/service.py NOH CASE - a service manager of a few lines: it starts the server, listens on the notify socket,
# and looks at one case. Exit 0: as it should be; else the last line says what was not.
import json, os, signal, socket, subprocess, sys, time

noh, case = sys.argv[1], sys.argv[2]
SOON = 20


class Manager:
    """A server with a notify socket; words: what it said there, oldest first."""

    def __init__(self, *options, env=None, abstract=False):
        self.name = "noh-service-test-%d" % os.getpid()
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        if abstract:
            self.sock.bind("\0" + self.name)
            address = "@" + self.name
        else:
            address = os.path.abspath("notify")
            if os.path.exists("notify"):
                os.unlink("notify")
            self.sock.bind("notify")
        self.words = []
        self.log = open("log", "wb")
        self.p = subprocess.Popen([noh, "serve", "--data", "data", "--resp-port", "0", "--http-port", "0", "--unix", "s",
                                   "--workers", "2", *options],
                                  env=dict(os.environ, NOTIFY_SOCKET=address, **(env or {})),
                                  stdout=self.log, stderr=self.log)

    def hears(self, word, seconds=SOON):
        """Until it says so; what came before is kept in words."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.sock.settimeout(max(0.01, end - time.monotonic()))
            try:
                said = self.sock.recv(400).decode()
            except socket.timeout:
                break
            self.words.append(said)
            if said == word or said.split("\n")[0] == word:
                return said
        return None

    def logged(self, text):
        end = time.monotonic() + SOON
        while time.monotonic() < end:
            if text in open("log").read():
                return True
            time.sleep(0.02)
        return False

    def __del__(self):
        if self.p.poll() is None:
            self.p.kill()
            self.p.wait()

    def stop(self):
        self.p.send_signal(signal.SIGTERM)
        return self.p.wait(SOON)


def connect():
    c = socket.socket(socket.AF_UNIX)
    c.settimeout(SOON)
    c.connect("s")
    return c


def ask(c, *words):
    c.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in map(str.encode, words)))
    return c.recv(65536).decode()


def expect(good, what):
    if not good:
        print(open("log").read() if os.path.exists("log") else "")
        sys.exit(what)


def write(path, text):
    with open(path + ".new", "w") as f:
        f.write(text)
    os.rename(path + ".new", path)


def case_notify():
    write("c.conf", "[net]\nmax_args = 100\n")
    m = Manager("--config", "c.conf")
    expect(m.hears("READY=1"), "READY=1")
    expect(ask(connect(), "PING") == "+PONG\r\n", "it serves when it is ready")
    expect(m.words == ["READY=1"], "nothing before READY=1, and no WATCHDOG=1 to who does not ask: %s" % m.words)
    write("c.conf", "[net]\nmax_args = 101\n")
    m.p.send_signal(signal.SIGHUP)
    said = m.hears("RELOADING=1")
    expect(said and "MONOTONIC_USEC=" in said, "RELOADING=1")
    expect(m.hears("READY=1"), "READY=1 after a reload")
    expect("101" in ask(connect(), "CONFIG", "GET", "noh-max-args"), "then it goes by it")
    write("c.conf", "[net]\nmax_args = many\n")
    m.p.send_signal(signal.SIGHUP)
    expect(m.hears("RELOADING=1") and m.hears("READY=1"), "READY=1 after one that failed")
    expect("101" in ask(connect(), "CONFIG", "GET", "noh-max-args"), "a file with errors changes nothing")
    m.p.send_signal(signal.SIGTERM)
    expect(m.hears("STOPPING=1"), "STOPPING=1")
    expect(m.p.wait(SOON) == 0, "exit 0")


def case_abstract():
    m = Manager(abstract=True)
    expect(m.hears("READY=1"), "READY=1 on an abstract socket")
    expect(m.stop() == 0, "exit 0")


def case_watchdog():
    m = Manager("--io", "epoll", env={"WATCHDOG_USEC": "2000000", "HANG": os.path.abspath("hang"),
                                      "LD_PRELOAD": os.path.abspath("hang.so"),
                                      "ASAN_OPTIONS": "verify_asan_link_order=0"})
    expect(m.hears("READY=1"), "READY=1")
    for _ in range(4):
        expect(m.hears("WATCHDOG=1", 3), "WATCHDOG=1 in time, from a server that idles")
    open("hang", "w").close()
    expect(m.logged("has not gone round for"), "a worker that hangs is reported")
    while m.hears("WATCHDOG=1", 0.01):
        pass
    expect(not m.hears("WATCHDOG=1", 3), "the watchdog is not fed while a worker hangs")
    os.unlink("hang")
    expect(m.hears("WATCHDOG=1"), "it is fed again when the worker goes round")
    expect(m.logged("all workers go round again"), "and that is told")
    m.p.send_signal(signal.SIGTERM)
    said = m.hears("STOPPING=1")
    expect(said and "WATCHDOG_USEC=32000000" in said, "a stop may take its deadline: %s" % said)
    expect(m.p.wait(SOON) == 0, "exit 0")


def case_watchdog_of_another():
    m = Manager(env={"WATCHDOG_USEC": "400000", "WATCHDOG_PID": "1"})
    expect(m.hears("READY=1"), "READY=1")
    expect(not m.hears("WATCHDOG=1", 1), "a watchdog meant for another process is not fed")
    expect(m.stop() == 0, "exit 0")


def case_claim():
    m = Manager("--claim-refresh", "1s", "--claim-ttl", "3s", "--node-id", 'a "node"')
    expect(m.hears("READY=1"), "READY=1")
    end = time.monotonic() + SOON
    seen = set()
    while time.monotonic() < end and len(seen) < 2:
        try:
            claim = json.load(open("data/claim"))
            seen.add(claim["refreshedAt"])
        except FileNotFoundError:
            pass
        time.sleep(0.05)
    expect(len(seen) == 2, "the claim is renewed: %s" % seen)
    expect(claim["storeName"] == "actor-claims" and claim["lockOwner"] == 'a "node"' and
           claim["expiryInSeconds"] == 3 and claim["pid"] == m.p.pid and claim["resourceId"].startswith("noh:"),
           "what it says: %s" % claim)
    expect(m.stop() == 0, "exit 0")
    expect(not os.path.exists("data/claim"), "it goes with the server")


def add_user(name, role):
    out = subprocess.run([noh, "user", "add", name, "--role", role, "--data", "data"], capture_output=True, text=True)
    return [l.split()[1] for l in out.stdout.splitlines() if l.startswith("  token")][0]


def case_revoked():
    token = {n: add_user(n, "admin") for n in ("ann", "bob")}
    m = Manager()
    expect(m.hears("READY=1"), "READY=1")
    ann, bob, ear = connect(), connect(), connect()
    expect(ask(ann, "AUTH", "ann", token["ann"]) == "+OK\r\n", "ann")
    expect(ask(bob, "AUTH", "bob", token["bob"]) == "+OK\r\n", "bob")
    expect(ask(ear, "AUTH", "bob", token["bob"]) == "+OK\r\n" and ask(ear, "SUBSCRIBE", "x").startswith("*3"), "bob listens")
    subprocess.run([noh, "user", "revoke", "bob", "--data", "data"], check=True, stdout=subprocess.DEVNULL)
    expect(subprocess.run([noh, "config", "reload", "--data", "data"], stdout=subprocess.DEVNULL).returncode == 0, "reload")
    expect(bob.recv(100) == b"" and ear.recv(100) == b"", "bob's connections end")
    expect(ask(ann, "PING") == "+PONG\r\n", "ann's stay")
    expect(m.stop() == 0, "exit 0")


def case_deaf():
    m = Manager("--stop-deadline", "60s")
    expect(m.hears("READY=1"), "READY=1")
    c = connect()
    c.settimeout(1)
    try:
        for _ in range(4000):
            c.sendall(b"*2\r\n$4\r\nECHO\r\n$10000\r\n" + b"x" * 10000 + b"\r\n")
    except socket.timeout:
        pass
    began = time.monotonic()
    expect(m.stop() == 0, "exit 0")
    expect(time.monotonic() - began < 15, "a client that takes nothing is not waited for")


def reload(*options):
    out = subprocess.run([noh, "config", "reload", "--data", "data", *options], capture_output=True, text=True)
    return out.returncode, out.stdout + out.stderr


def case_reload():
    code, said = reload()
    expect(code == 75 and "there is no server at data/http.sock" in said, "no server: %s" % said)
    write("c.conf", "[net]\nmax_args = 100\n")
    m = Manager("--config", "c.conf")
    expect(m.hears("READY=1"), "READY=1")
    code, said = reload()
    expect(code == 0 and said == "read again: nothing has changed\n", "nothing: %s" % said)
    write("c.conf", "[net]\nmax_args = 200\nio = epoll\n[box]\nmemory = 1GiB\n[actors]\nidle_timeout = 5s\n[http]\nidle_timeout = 9s\n")
    code, said = reload("--json")
    answer = json.loads(said)
    expect(code == 0 and answer["reloaded"] is True, "JSON: %s" % said)
    expect({"setting": "net.max_args", "old": "100", "new": "200", "where": "c.conf:2"} in answer["changed"], "changed")
    expect({c["setting"] for c in answer["changed"]} ==
           {"net.max_args", "box.memory", "actors.idle_timeout", "http.idle_timeout"}, "all that changed: %s" % said)
    expect([c["setting"] for c in answer["restart"]] == ["net.io"], "what waits for a restart")
    expect("200" in ask(connect(), "CONFIG", "GET", "noh-max-args"), "the workers go by it")
    code, said = reload()
    expect(code == 0 and 'restart  net.io: "auto" -> "epoll"  (c.conf:3)' in said, "it is told again: %s" % said)
    write("c.conf", "[net]\nmax_args = 300\nio = epol\n[bx]\n")
    code, said = reload()
    expect(code == 2 and "error    c.conf:3:" in said and "did you mean epoll" in said and "[box]" in said and
           said.endswith("nothing was changed\n"), "all errors: %s" % said)
    code, said = reload("--json")
    answer = json.loads(said)
    expect(code == 2 and answer["code"] == "bad_settings" and len(answer["errors"]) == 2, "JSON: %s" % said)
    expect("200" in ask(connect(), "CONFIG", "GET", "noh-max-args"), "nothing of it shows")
    write("c.conf", "[net]\nmax_args = 300\n[users]\nfile = broken\n")
    write("broken", "not a user\n")
    code, said = reload()
    expect(code == 2 and "broken:1:" in said, "users are read before anything changes: %s" % said)
    expect("200" in ask(connect(), "CONFIG", "GET", "noh-max-args"), "nothing of it shows")
    write("c.conf", "")
    many = [subprocess.Popen([noh, "config", "reload", "--data", "data"], stdout=subprocess.PIPE) for _ in range(12)]
    expect(all(p.wait(SOON) == 0 for p in many), "many at once, and a service manager that does not read")
    expect(m.stop() == 0, "exit 0")


def case_reload_in_a_stop():
    """Requests for a reload that race with the end: each is answered, or finds nobody; none holds the stop up."""
    m = Manager("--stop-deadline", "60s")
    expect(m.hears("READY=1"), "READY=1")
    many = [subprocess.Popen([noh, "config", "reload", "--data", "data"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for _ in range(8)]
    began = time.monotonic()
    expect(m.stop() == 0 and time.monotonic() - began < 15, "the stop does not wait for them")
    expect(all(p.wait(SOON) in (0, 1, 75) for p in many), "all of them end")


class Sockets:
    """Two that listen, and stay while servers come and go; names: what the manager calls them."""

    def __init__(self, *names, address="127.0.0.1"):
        self.names = names
        self.list = []
        for _ in names:
            s = socket.socket()
            s.bind((address, 0))
            s.listen(64)
            self.list.append(s)

    def port(self, i):
        return self.list[i].getsockname()[1]

    def start(self, *options):
        fds = [s.fileno() for s in self.list]

        def give():
            high = [os.dup2(fd, 50 + i) for i, fd in enumerate(fds)]
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i)
                os.close(fd)
            os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds)), LISTEN_FDNAMES=":".join(self.names))

        return subprocess.Popen([noh, "serve", "--data", "data", "--workers", "2", "--unix", "s", *options], close_fds=False, preexec_fn=give,
                                stdout=open("log", "ab"), stderr=subprocess.STDOUT)

    def dial(self, i):
        return socket.create_connection(("127.0.0.1", self.port(i)), SOON)


def case_sockets():
    """argv: the backend. Clients that come while there is no server wait for the next one; none is refused."""
    given = Sockets("resp", "http")
    options = ("--io", sys.argv[3], "--resp-port", "0", "--http-port", "0")
    early = given.dial(0)
    p = given.start(*options)
    expect(ask(early, "INCR", "k") == ":1\r\n", "who came before the server is served by it")
    late = [given.dial(0) for _ in range(20)]
    expect(all(ask(c, "PING") == "+PONG\r\n" for c in late), "others as well")
    web = given.dial(1)
    web.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    expect(web.recv(4096).startswith(b"HTTP/1.1 200 "), "HTTP on the other one")
    port = str(given.port(0))
    expect(port in ask(early, "CONFIG", "GET", "port") and "tcp_port:" + port in ask(early, "INFO", "server"), "it knows its port")
    expect("127.0.0.1:%s (the service manager's)" % port in open("log").read(), "and says whose it is")
    p.send_signal(signal.SIGTERM)
    expect(p.wait(SOON) == 0, "exit 0")
    waiting = [given.dial(0) for _ in range(5)]
    for c in waiting:
        c.sendall(b"INCR k\r\n")
    p = given.start(*options)
    expect(sorted(c.recv(100) for c in waiting) == [b":%d\r\n" % i for i in range(2, 7)], "who came between two servers")
    p.send_signal(signal.SIGTERM)
    expect(p.wait(SOON) == 0, "exit 0")


def case_sockets_refused():
    def says(given, *options):
        open("log", "w").close()
        p = given.start("--resp-port", "0", "--http-port", "0", *options)
        expect(p.wait(SOON) == 2, "exit 2: %s" % p.returncode)
        return open("log").read()

    expect("are both for RESP: name them" in says(Sockets("x.socket", "x.socket")), "two for one protocol")
    expect("may be reached from elsewhere, and there are no users" in says(Sockets("resp", address="0.0.0.0")), "open to all")
    expect("LISTEN_FDS=3" in says(Sockets("resp", "http", "more")), "too many")
    given = Sockets("resp")
    given.list[0] = socket.socket()
    given.list[0].bind(("127.0.0.1", 0))
    expect('"resp" (descriptor 3) is no TCP socket that listens' in says(given), "one that does not listen")
    given.list[0] = socket.socket(socket.AF_UNIX)
    given.list[0].bind("local")
    given.list[0].listen(1)
    expect("Unix sockets noh makes itself" in says(given), "one that is no TCP socket")
    by_port = Sockets("noh.socket", "noh.socket")
    p = by_port.start("--http-port", str(by_port.port(0)))
    expect(ask(by_port.dial(1), "PING") == "+PONG\r\n", "by its port the first is for HTTP, so the second is not")
    p.send_signal(signal.SIGTERM)
    expect(p.wait(SOON) == 0, "exit 0")


def case_container():
    """argv: packaging/Containerfile. No engine is needed: its words are known, and what it sets makes a server that is healthy."""
    known = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "ENV", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
    text = "".join(l for l in open(sys.argv[3]) if not l.startswith("#")).replace("\\\n", "")
    lines = [l.split(None, 1) for l in text.splitlines() if l.strip()]
    expect(all(w[0] in known and len(w) == 2 for w in lines), "no such word: %s" % lines)
    last = {w[0]: w[1] for w in lines}
    expect(last["USER"] not in ("root", "0") and last["VOLUME"] == "/data" and last["EXPOSE"] == "6379 5012", "who, where: %s" % last)
    tree = os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[3])))
    for word in [w[1].split()[1] for w in lines if w[0] == "COPY" and w[1].startswith("--from=build /src/LICENSE")]:
        expect(os.path.exists(os.path.join(tree, os.path.basename(word))), "it copies %s" % word)
    ports = [str(Sockets("x").port(0)) for _ in range(2)]
    env = dict(os.environ, **dict(w[1].split("=", 1) for w in lines if w[0] == "ENV"))
    expect((env["NOH_NET_RESP_PORT"], env["NOH_HTTP_PORT"]) == ("6379", "5012"), "the ports of the image")
    env.update(NOH_DATA_DIR=os.path.abspath("data"), NOH_NET_RESP_PORT=ports[0], NOH_HTTP_PORT=ports[1], NOH_NET_BIND="127.0.0.1")
    words = json.loads(last["ENTRYPOINT"]) + json.loads(last["CMD"])
    p = subprocess.Popen([noh, *words[1:]], env=env, stdout=open("log", "wb"), stderr=subprocess.STDOUT)
    check = [noh, *json.loads(last["HEALTHCHECK"].split("CMD ", 1)[1])[1:]]
    end = time.monotonic() + SOON
    while subprocess.run(check, env=env, capture_output=True).returncode != 0 and time.monotonic() < end:
        time.sleep(0.05)
    expect(subprocess.run(check, env=env, capture_output=True).returncode == 0, "its health check says that it is healthy")
    p.send_signal(signal.SIGTERM)
    expect(p.wait(SOON) == 0, "exit 0")
    expect(subprocess.run(check, env=env, capture_output=True).returncode != 0, "and that a server that has ended is not")


def case_sealed():
    """argv: no_uring, EPERM or ENOSYS."""
    seal, error = sys.argv[3], sys.argv[4]
    uid = 65534 if os.getuid() == 0 else 0
    os.makedirs("data", exist_ok=True)
    if uid:
        os.chmod(".", 0o711)
        os.chown("data", uid, uid)
        os.chmod("data", 0o700)
    words = [seal, error, str(uid), noh, "serve", "--data", "data", "--resp-port", "0", "--http-port", "0"]
    p = subprocess.Popen([*words, "--unix", "data/s"], stdout=open("log", "wb"), stderr=subprocess.STDOUT)
    end = time.monotonic() + SOON
    while "ready in" not in open("log").read() and p.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    if p.poll() == 77:
        sys.exit(77)
    log = open("log").read()
    expect("  io          epoll" in log, "it goes by epoll")
    expect("io_uring" in log, "and says why")
    c = socket.socket(socket.AF_UNIX)
    c.settimeout(SOON)
    c.connect("data/s")
    expect(ask(c, "INCR", "k") == ":1\r\n" and ask(c, "INCRBY", "k", "41") == ":42\r\n", "it works, and is on disk")
    expect("io_backend:epoll" in ask(c, "INFO"), "INFO says so")
    p.send_signal(signal.SIGTERM)
    expect(p.wait(SOON) == 0, "exit 0")
    out = subprocess.run([*words, "--io", "uring", "--unix", "data/s"], capture_output=True, text=True, timeout=SOON)
    expect(out.returncode == 1 and "io_uring cannot be used" in out.stderr, "asked for, it is refused: %s" % out.stderr)


globals()["case_" + case]()
