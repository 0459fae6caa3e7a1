/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of system calls that a running server makes: its own, and those of glibc, librbd and the
 * RDMA libraries.  A call that is missing here fails with EPERM, and the log names it.  Not here on
 * purpose: execve, fork, ptrace, io_uring_setup (a new ring would be without the restrictions of
 * reactor.c), mounts, namespaces, keys, modules, bpf, changes of user.  Owns nothing. */
#include <config.h>

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "filter-calls.h"
#include "util.h"

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
	/* Whether a process lives. */
	{ "kill", 1, ~0u, 0 },
	/* Reading a limit, not setting one. */
	{ "prlimit64", 2, ~(scmp_datum_t)0, 0 },
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

int filter_calls_add(scmp_filter_ctx ctx, const char **failed)
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
