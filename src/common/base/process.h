/* SPDX-License-Identifier: BSD-3-Clause */
/* A process, from its start to its end: standard descriptors, the descriptors that are kept free,
 * the way into the background, memory for keys, time slices, the exit status, and the time limit of
 * the end.
 *
 * The happy path: main() calls std_fds_open() first and end_init() after its last fork.
 * end_begin() starts the time limit.  The program closes what it has, calls end_over(), and leaves
 * by end_with(std_out_end(...)).
 *
 * Possible failures: the end takes longer than END_MS; stdout cannot be written; no descriptor is
 * left for a client. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "log.h"

/* ---- the end ----
 *
 * A program that ends waits for requests, peers and threads.  After END_MS a thread of its own logs
 * which of these are missing, and ends the process. */

#define END_WAITS_MS 45000		/* for requests: one that waits longer fails */
#define END_MS 60000			/* for all */

/* Start the thread.  @last, if not NULL, is called on it before the process ends by force.  Once,
 * after the last fork.  0 or -errno. */
int end_init(void (*last)(void));
/* The end begins; further calls do nothing.  Any thread, and signal handlers. */
void end_begin(void);
/* True from end_begin() on, for who waits for what the end need not wait for.  Any thread. */
bool end_has_begun(void);
/* From now on the end waits for @what, a literal.  Any thread. */
void end_waits_for(const char *what);
/* Nothing is waited for any more: join the thread, if it runs.  The thread of end_init(). */
void end_over(void);

/* End the process with @status.  exit() runs the destructors of libraries, which must not meet a
 * thread that is still in one of them: end_at_once() runs none, and end_with() none while a call
 * goes on that its caller has left (worker.h).  Both write what stdio holds. */
_Noreturn void end_at_once(int status);
_Noreturn void end_with(int status);

/* ---- exit status ---- */

/* The exit statuses of all programs.  The manual of each program says which of these it has; the
 * status of nbdkit is nbdkit's own.  C's EXIT_FAILURE is EXIT_FAILED. */
enum exit_status {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,		/* not here, or not now: the same call may work later */
	EXIT_USAGE = 2,			/* somebody has to mend the command line or a file: a unit
					 * does not try again */
	EXIT_UNWELL = 3,		/* rtrsctl: the answer is there, and not all is well */
};

/* The status of a program whose start ended with -errno.  -EINVAL is a mistake of the user, in an
 * option or a file (opt.h). */
static inline enum exit_status exit_status_of(int rc)
{
	return rc == 0 ? EXIT_DONE : rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}

/* The error @rc of a file that an option names: -EINVAL if it lasts until somebody mends the file,
 * its name or its rights; else @rc, of a machine or a file system that may recover. */
static inline int exit_file_error(int rc)
{
	switch (-rc) {
	case ENOENT: case ENOTDIR: case EISDIR: case ELOOP: case ENAMETOOLONG:
	case EACCES: case EPERM: case EFBIG:
		return -EINVAL;
	default:
		return rc;
	}
}

/* ---- standard descriptors: main thread ---- */

/* Open /dev/null in place of each closed standard descriptor.  Call first in main(): otherwise the
 * next open() or socket() becomes that descriptor, and output goes there.  Returns 0 or -errno. */
int std_fds_open(void);
/* Flush stdout.  Returns 0 if all output was written; or -errno, and the same at every later
 * call. */
int std_out_flush(void);
/* The exit status of @program, which ends with @status and with nothing but text on stdout: @status
 * if all of the text was written, or if the user has to mend something.  Otherwise the reason is on
 * stderr. */
enum exit_status std_out_end(const char *program, enum exit_status status);

/* ---- descriptors that are kept free: any thread ----
 *
 * A front end and the session share the descriptors of the process.  Some are kept free: for new
 * clients of a front end that sends clients away, so that each client hears why, and for commands,
 * the log, and keys that are read again. */

#define FDS_PAUSE_MS 1000u
#define FDS_ACCEPT_ROUND 16u		/* clients in a turn */

/* The number of descriptors to keep free, the reserve: as many clients may come at the same time,
 * until these are sent away.  Each client has @client descriptors. */
unsigned fds_reserve(unsigned client);
/* Are at least @n descriptors free?  Opens none. */
bool fds_free(unsigned n);
/* Say in the log that clients wait because of @r, -errno.  Returns @r. */
int fds_tell_short(int r);
/* Take the next client of @listener, which does not block: a client that has gone meanwhile, or
 * whose network fails, is passed over.  Returns the descriptor, which does not block, with the
 * address; -EAGAIN: nobody is there; or another -errno, which the log has: pause for
 * FDS_PAUSE_MS. */
int fds_accept(int listener, struct sockaddr_storage *addr, socklen_t *len);

/* ---- the machine: machine.c ----
 *
 * What this process may use of its machine: a container or a unit of systemd has less than all.
 * The limits are those of control groups (cgroup(7)): in version 2 memory.max, memory.high and
 * cpu.max, in version 1 memory.limit_in_bytes and cpu.cfs_quota_us, of the process's group and of
 * all groups above that can be seen. */

struct machine {
	uint64_t memory;		/* bytes: RAM, or the least limit */
	unsigned cpus;			/* of the affinity, or the least quota, rounded up; 1 at
					 * least */
};

/* As found by the first call: a limit that changes later makes no other default.  Any thread, but
 * the first call is made while there is but one. */
const struct machine *machine(void);

/* Lower @m to the limits that files below @root ("": the real ones) tell: /proc/self/cgroup,
 * /proc/self/mountinfo, and groups where these say.  For machine(), and for tests. */
void machine_limit(struct machine *m, const char *root);

/* ---- how many descriptors it may have: machine.c.  Any thread ---- */

/* The current RLIMIT_NOFILE; 0: unknown. */
unsigned long long fds_limit(void);
/* The text of the error @rc, -errno, as strerror(3) has it; that of -EMFILE with the number of
 * descriptors that the process may have, and how to raise it.  Valid until the thread's next call
 * of this. */
const char *fds_strerror(int rc);
/* If @r is -EMFILE, append to @err, the text of this error, what fds_strerror() adds, unless it has
 * that.  Returns @r. */
int fds_name_limit(int r, char *err, size_t len);
/* The text of the error @rc, -errno, of a call that makes a thread: fds_strerror(), and that of
 * -EAGAIN with the number of threads that the user may have, and how to raise it.  Valid as that
 * of fds_strerror(). */
const char *threads_strerror(int rc);

/* ---- time slices: machine.c ----
 *
 * A thread that has work runs until its slice ends, 1.4 ms or more, while others wait for its CPU.
 * A client at depth 1 waits for each wake-up of a thread.  With short slices the kernel runs a
 * thread that wakes up sooner, and one with much work pauses sooner (doc/decisions.md D29). */

#define SLICE_NS 300000u		/* the kernel takes 0.1 to 100 ms */

/* Have the kernel give the calling thread, and the threads that it creates from now on, slices of
 * SLICE_NS.  A thread whose slices are shorter, or whose policy has none, stays as it is, and so
 * do all threads before Linux 6.12. */
void slices_shorten(void);

/* ---- daemons: a program that goes on in the background once it is ready.  Main thread ---- */

/* Become a daemon: the caller goes on as the child.  The parent waits until the child is ready, and
 * ends with status 0; or with 1, when the child has ended before.  A signal that ends the parent
 * before sends the child SIGTERM.  Before any thread runs.  0, or -errno with nothing forked. */
int daemon_begin(void);
/* Let the parent end, because the daemon is ready.  From now on the standard descriptors of the
 * daemon are /dev/null, and those below FD_SETSIZE that the program had when it was started are
 * closed: a lock or a device of the caller is not for the daemon to hold.  Without a parent:
 * nothing. */
void daemon_ready(void);

/* log_init() of such a program, before it opens anything that its children inherit: lines go to
 * stderr, with its name in front. */
void daemon_log_init(const char *program, enum log_level level);
/* From now on lines go to the system log, because the daemon is ready.  @subject, which outlives
 * the log, comes in front of them; NULL: nothing. */
void daemon_log_to_syslog(const char *subject);

/* ---- memory for keys: any thread ----
 *
 * No core file has it, and it is wiped before it is given back. */

/* @len bytes, at least 1, all 0; NULL with errno.  Give them to secret_free(). */
void *secret_alloc(size_t len);
/* Wipe and give back the @len bytes of @secret, which is as long as asked for; NULL: do nothing. */
void secret_free(void *secret, size_t len);
/* Have the kernel write no core file of this process: keys that a library keeps are anywhere in the
 * heap.  The soft limit of core files becomes one byte, whatever it was; the hard limit stays, so
 * "prlimit --pid PID --core=unlimited" brings core files back, keys included. */
void secret_no_core_file(void);

#endif
