/* tools/crash.c - the handler. */
#include "tools/crash.h"

#include "tools/cli.h"

#include <execinfo.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static _Atomic(noh_box *) watched;
static _Atomic(const char *) meaning;
static bool installed;

#ifndef NOH_SANITIZED                    /* sanitizers bring handlers of their own */
static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };

static void on_crash(int sig)
{
	const char *text = atomic_load(&meaning);

	if (text) {
		(void)!write(STDERR_FILENO, text, strlen(text));
		_exit(CLI_FAILED);
	}
	noh_crash_report(atomic_load(&watched), STDERR_FILENO);
	raise(sig);                          /* SA_RESETHAND: this time for good */
}

static void install(void)
{
	struct sigaction act;
	void *stack[1];

	memset(&act, 0, sizeof act);
	act.sa_handler = on_crash;
	act.sa_flags = (int)SA_RESETHAND | SA_NODEFER;
	(void)backtrace(stack, 1);           /* its first call loads a library: not in the handler */
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		sigaction(signals[i], &act, NULL);
}
#else
static void install(void)
{
}
#endif

static void install_once(void)
{
	if (!installed)
		install();
	installed = true;
}

void crash_watch(noh_box *box)
{
	atomic_store(&watched, box);
	install_once();
}

void crash_means(const char *text)
{
	atomic_store(&meaning, text);
	install_once();
}
