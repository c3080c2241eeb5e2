/* tests/e2e/no_uring.c - run a program where io_uring is refused, as containers do.
 *
 *	no_uring EPERM|ENOSYS UID command...
 *
 * A seccomp filter answers io_uring's three calls with that error (EPERM: container engines; ENOSYS: old kernels and
 * some platforms), and nothing else. UID: become this user first; 0: stay who we are.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <grp.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

static int seal(int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_register, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof filter / sizeof filter[0], filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: no_uring EPERM|ENOSYS UID command...\n");
		return 2;
	}
	uid_t uid = (uid_t)atoi(argv[2]);

	if (uid && (setgroups(0, NULL) || setgid(uid) || setuid(uid))) {
		perror("no_uring: become another user");
		return 77;
	}
	if (seal(strcmp(argv[1], "ENOSYS") == 0 ? ENOSYS : EPERM)) {
		perror("no_uring: seccomp");
		return 77;
	}
	execv(argv[3], argv + 3);
	perror(argv[3]);
	return 1;
}
