/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the filter of system calls, and with --seccomp=log the thread that lets calls through.
 *
 * A denied call raises SIGSYS in its thread (SECCOMP_RET_TRAP); the handler counts the call and has
 * it return -EPERM.  SECCOMP_RET_ERRNO alone would leave no line in the log, and killing would make
 * a call that a new library makes the end of all IO.  The call is denied before the handler runs,
 * so whoever gets hold of the handler wins nothing.
 *
 * With --seccomp=log the kernel asks a thread of its own about each call (SECCOMP_RET_USER_NOTIF),
 * which counts the call and lets it through.  This thread makes allowed calls only, takes no lock,
 * and ends with the process. */
#include <config.h>

#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <linux/filter.h>

#include "denied.h"
#include "filter-calls.h"
#include "filter.h"
#include "log.h"

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
	denied_note(info->si_syscall, (pid_t)syscall(SYS_gettid));
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
		denied_note(asked->data.nr, (pid_t)asked->pid);
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
			strerror(-rc));
	else if (rc == -EBUSY)
		log_err(NULL, "--seccomp=%s: another program watches the system calls of this one: "
			"start with --seccomp=off or on", how);
	else
		log_err(NULL, "--seccomp=%s: cannot load the filter of system calls: %s", how,
			strerror(-rc));
}

int filter_load(bool let_through)
{
	static struct sock_filter insns[4096];
	scmp_filter_ctx ctx = seccomp_init(let_through ? SCMP_ACT_NOTIFY : prepare_denial());
	struct sock_fprog prog;
	const char *failed = "";
	int rc;

	if (!ctx) {
		log_err(NULL, "--seccomp: out of memory");
		return -ENOMEM;
	}
	/* A call of another machine, such as one of 32 bits, is no library's. */
	seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	rc = filter_calls_add(ctx, &failed);
	if (rc) {
		log_err(NULL, "--seccomp: libseccomp does not take the system call %s: %s", failed,
			strerror(-rc));
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
