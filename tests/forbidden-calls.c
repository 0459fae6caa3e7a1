/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into rtrs-server: an attacker in the process.  When the server says that it is ready, a
 * thread begins that reads names of system calls from the FIFO $FORBIDDEN_CALLS, makes each call,
 * and writes "NAME ERRNO" to the FIFO $FORBIDDEN_RESULTS; ERRNO is 0 if the call succeeded.  Each
 * call does no harm where it is allowed. */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NO_PROCESS 0x7ffffffe

int sd_notify(int unset_environment, const char *state);

static long forbid_execve(void)
{
	return syscall(SYS_execve, "/nonexistent/program", NULL, NULL);
}

static long forbid_clone(void)
{
	long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (!pid)
		_exit(0);
	return pid;
}

static long forbid_ptrace(void)
{
	return syscall(SYS_ptrace, PTRACE_ATTACH, NO_PROCESS, NULL, NULL);
}

static long forbid_process_vm_readv(void)
{
	return syscall(SYS_process_vm_readv, NO_PROCESS, NULL, 0UL, NULL, 0UL, 0UL);
}

static long forbid_packet(void)
{
	return syscall(SYS_socket, AF_PACKET, SOCK_RAW, 0);
}

static long forbid_alg(void)
{
	return syscall(SYS_socket, AF_ALG, SOCK_SEQPACKET, 0);
}

static long forbid_ring(void)
{
	return syscall(SYS_io_uring_setup, 1, NULL);
}

static long forbid_kill(void)
{
	return syscall(SYS_kill, NO_PROCESS, SIGTERM);
}

static long forbid_tgkill(void)
{
	return syscall(SYS_tgkill, NO_PROCESS, NO_PROCESS, SIGTERM);
}

static long forbid_mmap(void)
{
	return syscall(SYS_mmap, NULL, 4096UL, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
}

static long forbid_mprotect(void)
{
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return syscall(SYS_mprotect, page, 4096UL, PROT_READ | PROT_EXEC);
}

static long forbid_prctl(void)
{
	return syscall(SYS_prctl, PR_SET_PDEATHSIG, 0UL, 0UL, 0UL, 0UL);
}

static long forbid_prlimit64(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_CORE, &limit);
	return syscall(SYS_prlimit64, 0, RLIMIT_CORE, &limit, NULL);
}

static long forbid_setuid(void)
{
	return syscall(SYS_setuid, getuid());
}

static long forbid_unshare(void)
{
	return syscall(SYS_unshare, 0);
}

static long forbid_mount(void)
{
	return syscall(SYS_mount, NULL, NULL, NULL, 0UL, NULL);
}

static long forbid_bpf(void)
{
	return syscall(SYS_bpf, -1, NULL, 0);
}

static long forbid_keyctl(void)
{
	return syscall(SYS_keyctl, -1, 0UL, 0UL, 0UL, 0UL);
}

static long forbid_chroot(void)
{
	return syscall(SYS_chroot, "/");
}

/* As a thread of librados, which blocks all signals. */
static long forbid_blocked(void)
{
	sigset_t all, before;
	long rc;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = forbid_unshare();
	err = errno;
	sigprocmask(SIG_BLOCK, &all, NULL);
	if (rc < 0)
		rc = forbid_unshare();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = err;
	return rc;
}

/* getpid() by the table of 32 bits, which ends the process. */
static long forbid_int80(void)
{
#ifdef __x86_64__
	long rc = 20;

	__asm__ volatile("int $0x80" : "+a"(rc) : : "memory", "r8", "r9", "r10", "r11");
	return rc;
#else
	return kill(getpid(), SIGSYS);
#endif
}

/* Not denied: the attacker's own way to see that its calls are made. */
static long allow_getppid(void)
{
	return syscall(SYS_getppid);
}

static const struct {
	const char *name;
	long (*call)(void);
} calls[] = {
	{ "execve", forbid_execve },
	{ "clone", forbid_clone },
	{ "ptrace", forbid_ptrace },
	{ "process_vm_readv", forbid_process_vm_readv },
	{ "socket", forbid_packet },
	{ "socket-alg", forbid_alg },
	{ "io_uring_setup", forbid_ring },
	{ "kill", forbid_kill },
	{ "tgkill", forbid_tgkill },
	{ "mmap", forbid_mmap },
	{ "mprotect", forbid_mprotect },
	{ "prctl", forbid_prctl },
	{ "prlimit64", forbid_prlimit64 },
	{ "setuid", forbid_setuid },
	{ "unshare", forbid_unshare },
	{ "mount", forbid_mount },
	{ "bpf", forbid_bpf },
	{ "keyctl", forbid_keyctl },
	{ "chroot", forbid_chroot },
	{ "blocked", forbid_blocked },
	{ "int80", forbid_int80 },
	{ "getppid", allow_getppid },
};

static void make_call(const char *name, int results)
{
	int err = -1;

	for (unsigned i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		if (!strcmp(name, calls[i].name))
			err = calls[i].call() < 0 ? errno : 0;
	}
	dprintf(results, "%s %d\n", name, err);
}

/* Not stdio: from glibc 2.41 on, exit() waits for a thread that reads by stdio. */
static bool read_line(int fd, char *line, size_t len)
{
	size_t n = 0;

	while (n < len && read(fd, &line[n], 1) == 1) {
		if (line[n] == '\n') {
			line[n] = '\0';
			return true;
		}
		n++;
	}
	return false;
}

static void *attack(void *arg)
{
	int names = open(getenv("FORBIDDEN_CALLS"), O_RDWR | O_CLOEXEC);
	int results = open(getenv("FORBIDDEN_RESULTS"), O_RDWR | O_CLOEXEC);
	char line[64];

	while (read_line(names, line, sizeof(line)))
		make_call(line, results);
	return arg;
}

int sd_notify(int unset_environment, const char *state)
{
	int (*next)(int, const char *) =
		(int (*)(int, const char *))dlsym(RTLD_NEXT, "sd_notify");
	static pthread_t thread;

	if (!thread && !strncmp(state, "READY=1", 7) &&
	    !pthread_create(&thread, NULL, attack, NULL))
		pthread_setname_np(thread, "attacker");
	return next(unset_environment, state);
}
