/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter of system calls: the calls that a running server makes, and how others are denied.
 *
 * A denied call raises SIGSYS in its thread (SECCOMP_RET_TRAP); the handler counts the call and has
 * it return -EPERM.  SECCOMP_RET_ERRNO alone would leave no line in the log, and killing would make
 * a call that a new library makes the end of all IO.  The call is denied before the handler runs,
 * so whoever gets hold of the handler wins nothing.
 *
 * With --seccomp=log the kernel asks a thread of its own about each call (SECCOMP_RET_USER_NOTIF),
 * which has the call counted and lets it through.  This thread makes allowed calls only, takes no
 * lock, and ends with the process. */
#include <config.h>

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "confine.h"
#include "log.h"
#include "process.h"
#include "util.h"

#ifndef SECCOMP_FILTER_FLAG_TSYNC_ESRCH
#define SECCOMP_FILTER_FLAG_TSYNC_ESRCH (1UL << 4)
#endif
/* si_code of a SIGSYS by a filter. */
#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1
#endif

/* Where a handler puts the result of the call; other machines get EPERM and no line in the log. */
#if defined(__x86_64__)
#define CALL_RESULT(uc) ((uc)->uc_mcontext.gregs[REG_RAX])
#elif defined(__aarch64__)
#define CALL_RESULT(uc) ((uc)->uc_mcontext.regs[0])
#elif defined(__riscv)
#define CALL_RESULT(uc) ((uc)->uc_mcontext.__gregs[REG_A0])
#endif

/* ---- the list ---- */

/* The calls of the server, and those of glibc, librbd and the RDMA libraries.  Not here on purpose:
 * execve, fork, ptrace, io_uring_setup (a new ring would be without the restrictions of
 * reactor-ring.c), mounts, namespaces, keys, modules, bpf, changes of user. */
static const char *const calls[] = {
	/* the ring */
	"io_uring_enter", "io_uring_register",
	/* threads and time */
	"clock_getres", "clock_gettime", "clock_nanosleep", "exit", "exit_group",
	"futex", "getcpu", "gettid", "gettimeofday", "membarrier", "nanosleep",
	"restart_syscall", "rseq",
	"rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait",
	"sched_getaffinity", "sched_getparam", "sched_getscheduler", "sched_setaffinity",
	"sched_yield", "set_robust_list", "sigaltstack", "sigreturn", "time",
	"timer_create", "timer_delete", "timer_settime", "timerfd_create", "timerfd_settime",
	/* memory; see also limited[] */
	"brk", "madvise", "mincore", "mlock", "mlock2", "mremap", "munlock", "munmap",
	"get_mempolicy", "mbind",
	/* files: exports, state, metrics, configuration, libraries */
	"access", "chdir", "chmod", "close", "close_range", "copy_file_range", "dup", "dup2",
	"dup3", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchmod", "fchmodat", "fcntl",
	"fdatasync", "fgetxattr", "flock", "fstat", "fstat64", "fstatfs", "fsync", "ftruncate",
	"getcwd", "getdents", "getdents64", "inotify_add_watch", "inotify_init1",
	"inotify_rm_watch", "ioctl", "link", "linkat", "lseek", "lstat", "memfd_create", "mkdir",
	"mkdirat", "newfstatat", "open", "openat", "openat2", "pipe", "pipe2", "pread64",
	"preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read", "readahead", "readlink",
	"readlinkat", "readv", "rename", "renameat", "renameat2", "rmdir", "stat", "statfs",
	"statx", "sync_file_range", "syncfs", "umask", "unlink", "unlinkat", "utimensat", "write",
	"writev",
	/* sockets and readiness */
	"accept", "accept4", "bind", "connect", "epoll_create", "epoll_create1", "epoll_ctl",
	"epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd2", "getpeername", "getsockname",
	"getsockopt", "listen", "poll", "ppoll", "pselect6", "recvfrom", "recvmmsg", "recvmsg",
	"select", "sendfile", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
	"signalfd4", "socketpair",
	/* what the process is */
	"capget", "getegid", "geteuid", "getgid", "getgroups", "getpgrp", "getpid", "getppid",
	"getpriority", "getrandom", "getresgid", "getresuid", "getrlimit", "getrusage", "getuid",
	"sysinfo", "times", "uname",
};

/* Calls of newer C libraries and kernels, which an older libseccomp has no name for. */
static const char *const newer[] = {
	"fchmodat2", "futex_requeue", "futex_wait", "futex_waitv", "futex_wake", "map_shadow_stack",
	"mseal", "riscv_flush_icache", "riscv_hwprobe",
	/* The kernel has a program make these where a probe is set (bpftrace). */
	"uprobe", "uretprobe",
};

/* A call that is allowed while @mask of argument @arg is @value. */
struct limited {
	const char *call;
	unsigned arg;
	scmp_datum_t mask, value;
};

static const struct limited limited[] = {
	/* Threads, and no processes. */
	{ "clone", 0, CLONE_THREAD, CLONE_THREAD },
	/* No page is both writable and executable. */
	{ "mmap", 2, PROT_EXEC, 0 },
	{ "mmap", 2, PROT_WRITE, 0 },
	{ "mmap2", 2, PROT_EXEC, 0 },
	{ "mmap2", 2, PROT_WRITE, 0 },
	{ "mprotect", 2, PROT_EXEC, 0 },
	{ "pkey_mprotect", 2, PROT_EXEC, 0 },
	{ "kill", 1, ~0u, 0 },			/* whether a process lives */
	{ "prlimit64", 2, ~(scmp_datum_t)0, 0 },	/* reading a limit, not setting one */
	{ "prctl", 0, ~0u, PR_SET_NAME },
	{ "prctl", 0, ~0u, PR_GET_NAME },
	{ "prctl", 0, ~0u, PR_CAPBSET_READ },
	{ "prctl", 0, ~0u, PR_GET_DUMPABLE },
	{ "prctl", 0, ~0u, PR_SET_VMA },
	{ "socket", 0, ~0u, AF_UNIX },
	{ "socket", 0, ~0u, AF_INET },
	{ "socket", 0, ~0u, AF_INET6 },
	/* RDMA asks for devices, getaddrinfo() for addresses. */
	{ "socket", 0, ~0u, AF_NETLINK },
};

static int add_limited(scmp_filter_ctx ctx, const struct limited *l)
{
	int nr = seccomp_syscall_resolve_name(l->call);

	if (nr == __NR_SCMP_ERROR)
		return -EINVAL;
	return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 1,
				SCMP_CMP(l->arg, SCMP_CMP_MASKED_EQ, l->mask, l->value));
}

/* Signals to threads of this process alone. */
static int add_own_signals(scmp_filter_ctx ctx)
{
	const scmp_datum_t self = (scmp_datum_t)getpid();
	int rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
				  SCMP_CMP32(0, SCMP_CMP_EQ, (uint32_t)self, 0));

	if (rc)
		return rc;
	return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(rt_tgsigqueueinfo), 1,
				SCMP_CMP32(0, SCMP_CMP_EQ, (uint32_t)self, 0));
}

/* Allow the calls of the lists in @ctx, which denies all others.  0, or -errno with the name of the
 * call in @failed. */
static int add_calls(scmp_filter_ctx ctx, const char **failed)
{
	int rc = 0;

	for (size_t i = 0; i < ARRAY_SIZE(calls) && !rc; i++) {
		int nr = seccomp_syscall_resolve_name(*failed = calls[i]);

		rc = nr == __NR_SCMP_ERROR ? -EINVAL :
					     seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(newer) && !rc; i++) {
		int nr = seccomp_syscall_resolve_name(*failed = newer[i]);

		rc = nr == __NR_SCMP_ERROR ? 0 : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(limited) && !rc; i++) {
		*failed = limited[i].call;
		rc = add_limited(ctx, &limited[i]);
	}
	if (rc)
		return rc;
	/* A filter cannot read the flags of clone3: glibc takes clone then. */
	*failed = "clone3";
	rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (rc)
		return rc;
	*failed = "tgkill";
	return add_own_signals(ctx);
}

/* ---- the denied call ---- */

static void (*note_denied)(int nr, pid_t tid);

void filter_call_name(int nr, char *name, size_t len)
{
	char *known = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);

	if (known)
		snprintf(name, len, "%s", known);
	else
		snprintf(name, len, "%d", nr);
	free(known);
}

/* ---- --seccomp=on: the handler ---- */

#ifdef CALL_RESULT
static void on_sigsys(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	if (info->si_code != SYS_SECCOMP) {
		/* A signal like any other: the default ends the process. */
		signal(SIGSYS, SIG_DFL);
		raise(SIGSYS);
		return;
	}
	note_denied(info->si_syscall, (pid_t)syscall(SYS_gettid));
	CALL_RESULT(uc) = -EPERM;
}

static uint32_t prepare_denial(void)
{
	struct sigaction sa = { .sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO | SA_RESTART };

	sigfillset(&sa.sa_mask);
	sigdelset(&sa.sa_mask, SIGSYS);
	return sigaction(SIGSYS, &sa, NULL) < 0 ? SCMP_ACT_ERRNO(EPERM) : SCMP_ACT_TRAP;
}
#else
static uint32_t prepare_denial(void)
{
	return SCMP_ACT_ERRNO(EPERM);
}
#endif

/* ---- --seccomp=log: the thread ---- */

static int listener = -1;

static void *let_calls_through(void *arg)
{
	struct seccomp_notif *asked = arg;

	for (;;) {
		struct seccomp_notif_resp answer = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
		int rc;

		/* The kernel takes no other content: EINVAL. */
		memset(asked, 0, sizeof(*asked));
		rc = seccomp_notify_receive(listener, asked);
		if (rc == -ECANCELED && errno != ENOENT && errno != EINTR)
			break;
		if (rc)
			continue;
		note_denied(asked->data.nr, (pid_t)asked->pid);
		answer.id = asked->id;
		seccomp_notify_respond(listener, &answer);
	}
	/* Without a listener calls fail with ENOSYS, where they would wait for ever. */
	close(listener);
	return NULL;
}

/* ---- loading ---- */

/* The program of @ctx.  libseccomp 2.5 writes it to a descriptor only; a pipe has room. */
static int filter_program(scmp_filter_ctx ctx, struct sock_filter *insns, size_t size,
			  struct sock_fprog *prog)
{
	int fds[2], rc;
	ssize_t n;

	if (pipe(fds) < 0)
		return -errno;
	rc = seccomp_export_bpf(ctx, fds[1]);
	close(fds[1]);
	n = rc ? 0 : read(fds[0], insns, size);
	close(fds[0]);
	if (rc)
		return rc;
	if (n <= 0 || (size_t)n == size || n % (ssize_t)sizeof(*insns))
		return -EIO;
	*prog = (struct sock_fprog){ .len = (unsigned short)((size_t)n / sizeof(*insns)),
				     .filter = insns };
	return 0;
}

/* For all threads at once.  0, the descriptor of the listener, or -errno. */
static int install(const struct sock_fprog *prog, bool let_through)
{
	unsigned long flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
	long rc;

	if (let_through)
		flags |= SECCOMP_FILTER_FLAG_NEW_LISTENER;
	rc = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, prog);
	return rc < 0 ? -errno : (int)rc;
}

static int install_for_log(const struct sock_fprog *prog)
{
	struct seccomp_notif_resp *answer = NULL;
	struct seccomp_notif *asked = NULL;
	pthread_t thread;
	int rc = seccomp_notify_alloc(&asked, &answer);

	if (rc)
		return rc;
	seccomp_notify_free(NULL, answer);
	rc = install(prog, true);
	if (rc < 0) {
		seccomp_notify_free(asked, NULL);
		return rc;
	}
	listener = rc;
	rc = pthread_create(&thread, NULL, let_calls_through, asked);
	if (rc)
		return -rc;
	pthread_setname_np(thread, "seccomp log");
	return -pthread_detach(thread);
}

static void log_refusal(int rc, bool let_through)
{
	const char *how = let_through ? "log" : "on";

	if (rc == -EPERM || rc == -EACCES || rc == -ENOSYS)
		log_err(NULL, "--seccomp=%s: this host does not let a process filter its system "
			"calls (%s): allow the system call seccomp (systemd: "
			"SystemCallFilter=seccomp) or start with --seccomp=off", how,
			fds_strerror(rc));
	else if (rc == -EBUSY)
		log_err(NULL, "--seccomp=%s: another program watches the system calls of this one: "
			"start with --seccomp=off or on", how);
	else
		log_err(NULL, "--seccomp=%s: cannot load the filter of system calls: %s", how,
			threads_strerror(rc));
}

int filter_load(bool let_through, void (*note)(int nr, pid_t tid))
{
	static struct sock_filter insns[4096];
	scmp_filter_ctx ctx = seccomp_init(let_through ? SCMP_ACT_NOTIFY : prepare_denial());
	struct sock_fprog prog;
	const char *failed = "";
	int rc;

	note_denied = note;
	if (!ctx) {
		log_err(NULL, "--seccomp: out of memory");
		return -ENOMEM;
	}
	/* A call of another machine, such as one of 32 bits, is no library's. */
	seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	rc = add_calls(ctx, &failed);
	if (rc) {
		log_err(NULL, "--seccomp: libseccomp does not take the system call %s: %s", failed,
			fds_strerror(rc));
		goto out;
	}
	rc = filter_program(ctx, insns, sizeof(insns), &prog);
	if (!rc)
		rc = let_through ? install_for_log(&prog) : install(&prog, false);
	if (rc)
		log_refusal(rc, let_through);
out:
	seccomp_release(ctx);
	return rc;
}

/* ---- no thread blocks SIGSYS ---- */

/* In front of two functions of the C library, for the program and its libraries: the kernel ends a
 * process that has SIGSYS blocked, and librados blocks all signals in its threads.  Any thread. */
typedef int mask_fn(int how, const sigset_t *set, sigset_t *old);

static int change_mask(const char *name, int how, const sigset_t *set, sigset_t *old)
{
	mask_fn *next = (mask_fn *)dlsym(RTLD_NEXT, name);
	sigset_t others;

	if (set && how != SIG_UNBLOCK) {
		others = *set;
		sigdelset(&others, SIGSYS);
		set = &others;
	}
	return next(how, set, old);
}

int pthread_sigmask(int how, const sigset_t *newmask, sigset_t *oldmask)
{
	return change_mask("pthread_sigmask", how, newmask, oldmask);
}

int sigprocmask(int how, const sigset_t *set, sigset_t *oset)
{
	return change_mask("sigprocmask", how, set, oset);
}
