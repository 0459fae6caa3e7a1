/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the thread of the end, which sleeps until the end begins, and then until it is over; the
 * first error of stdout; the pipe between a daemon and its parent; and where its log goes. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <syslog.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "process.h"
#include "signals.h"
#include "util.h"
#include "worker.h"

/* ---- the end ---- */

enum end_state { END_NOT, END_BEGUN, END_OVER };

static _Atomic(enum end_state) state;
static _Atomic(const char *) waits_for = "its start";
static void (*last_fn)(void);
static sem_t news;			/* posted for each change of @state */
static pthread_t thread;
static bool running;

static void end_by_force(void)
{
	if (last_fn)
		last_fn();
	log_err(NULL, "shutdown has taken %u s: exiting without waiting for %s",
		END_MS / 1000, atomic_load(&waits_for));
	_exit(1);
}

static void *end_main(void *arg)
{
	struct timespec until;
	int r;

	while (atomic_load(&state) == END_NOT)
		sem_wait(&news);
	until = clock_in_ms(END_MS);
	while (atomic_load(&state) == END_BEGUN) {
		r = sem_clockwait(&news, CLOCK_MONOTONIC, &until);
		if (r < 0 && errno == ETIMEDOUT && atomic_load(&state) == END_BEGUN)
			end_by_force();
	}
	return NULL;
}

int end_init(void (*last)(void))
{
	int r;

	last_fn = last;
	sem_init(&news, 0, 0);
	r = signals_thread(&thread, end_main, NULL);
	if (r < 0)
		return r;
	pthread_setname_np(thread, "end");
	running = true;
	return 0;
}

void end_begin(void)
{
	enum end_state not = END_NOT;

	if (atomic_compare_exchange_strong(&state, &not, END_BEGUN))
		sem_post(&news);
}

bool end_has_begun(void)
{
	return atomic_load(&state) != END_NOT;
}

void end_waits_for(const char *what)
{
	atomic_store(&waits_for, what);
}

void end_over(void)
{
	if (!running)
		return;
	atomic_store(&state, END_OVER);
	sem_post(&news);
	pthread_join(thread, NULL);
	running = false;
}

void end_at_once(int status)
{
	fflush(NULL);
	_exit(status);
}

void end_with(int status)
{
	if (aside_left())
		end_at_once(status);
	exit(status);
}

/* ---- standard descriptors ---- */

int std_fds_open(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* open() returns the lowest free descriptor, @fd. */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
			return -errno;
	}
	return 0;
}

int std_out_flush(void)
{
	static int first;

	if (!first && fflush(stdout) != 0)
		first = -errno;
	/* An earlier printf() has failed; its errno is lost. */
	if (!first && ferror(stdout))
		first = -EIO;
	return first;
}

enum exit_status std_out_end(const char *program, enum exit_status status)
{
	int rc = std_out_flush();

	if (!rc || status == EXIT_USAGE)
		return status;
	fprintf(stderr, "%s: standard output: %s\n", program, strerror(-rc));
	return EXIT_FAILED;
}

/* ---- descriptors that are kept free ---- */

#define RESERVE_PART 16			/* of the limit */
#define RESERVE_MIN 2			/* clients */
#define RESERVE_MAX 64

static struct log_limit short_limit = LOG_LIMIT_INIT(4, 10000);

unsigned fds_reserve(unsigned client)
{
	unsigned long long part = fds_limit() / RESERVE_PART,
		least = (unsigned long long)RESERVE_MIN * client,
			   most = (unsigned long long)RESERVE_MAX * client;

	return (unsigned)MAX(MIN(part, most), least);
}

/* Count from above: the lowest descriptors are taken first. */
bool fds_free(unsigned n)
{
	int fd = (int)MIN(fds_limit(), (unsigned long long)INT_MAX);

	while (n && --fd >= 0) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			n--;
	}
	return n == 0;
}

int fds_tell_short(int r)
{
	log_event_limited(&short_limit, LOG_LEVEL_WARN, LOG_FIELDS(CLIENT_REFUSED), NULL,
			  "cannot accept a client now: %s", fds_strerror(r));
	return r;
}

/* Other errors are of a client, or of its network (accept(2)): one time each. */
static bool is_short(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM;
}

int fds_accept(int listener, struct sockaddr_storage *addr, socklen_t *len)
{
	for (unsigned i = 0; i < FDS_ACCEPT_ROUND; i++) {
		int fd;

		*len = sizeof(*addr);
		fd = accept4(listener, (struct sockaddr *)addr, len, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			return fd;
		if (errno == EAGAIN)
			return -EAGAIN;
		if (is_short(errno))
			break;
	}
	return fds_tell_short(-errno);
}

/* ---- memory for keys: whole pages, so that nothing else is left out of a core file ---- */

static size_t pages(size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (len + page - 1) / page * page;
}

void *secret_alloc(size_t len)
{
	void *secret = mmap(NULL, pages(len), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	if (secret == MAP_FAILED)
		return NULL;
	if (madvise(secret, pages(len), MADV_DONTDUMP)) {
		munmap(secret, pages(len));
		return NULL;
	}
	return secret;
}

void secret_free(void *secret, size_t len)
{
	if (!secret)
		return;
	explicit_bzero(secret, pages(len));
	munmap(secret, pages(len));
}

void secret_no_core_file(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CORE, &limit))
		return;
	/* With 0 the kernel still feeds a program that core_pattern names (core(5)); with 1 it
	 * does not (kernel: fs/coredump.c, do_coredump()). */
	limit.rlim_cur = MIN((rlim_t)1, limit.rlim_max);
	setrlimit(RLIMIT_CORE, &limit);
}

/* ---- daemons ----
 *
 * A daemon that ends before it is ready closes the pipe to its parent, which fails.  A parent that
 * ends before the daemon is ready ends the daemon. */

static int ready_fd = -1;		/* of the daemon, until it is ready */
static fd_set inherited;		/* descriptors of the caller of the program */

/* The parent: returns the exit status. */
static int wait_ready(int fd)
{
	char byte;
	ssize_t n;

	do {
		n = read(fd, &byte, 1);
	} while (n < 0 && errno == EINTR);
	return n == 1 ? 0 : 1;
}

int daemon_begin(void)
{
	pid_t parent = getpid(), pid;
	sigset_t none;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid < 0) {
		int r = -errno;

		close(fds[0]);
		close(fds[1]);
		return r;
	}
	close(fds[pid ? 1 : 0]);
	if (pid) {
		/* A signal ends the parent, and that the child, whatever the program blocks. */
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		_exit(wait_ready(fds[0]));
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	ready_fd = fds[1];
	setsid();
	return chdir("/") < 0 ? -errno : 0;
}

/* Each descriptor that this program opens has FD_CLOEXEC.  One without the flag was open before
 * execve(), which closes those that have it. */
static void find_inherited(void)
{
	for (int fd = STDERR_FILENO + 1; fd < FD_SETSIZE; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags >= 0 && !(flags & FD_CLOEXEC))
			FD_SET(fd, &inherited);
	}
}

void daemon_ready(void)
{
	int null;

	if (ready_fd < 0)
		return;
	for (int fd = STDERR_FILENO + 1; fd < FD_SETSIZE; fd++) {
		if (FD_ISSET(fd, &inherited))
			close(fd);
	}
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	if (null > STDERR_FILENO)
		close(null);
	/* ORDER: the parent ends when it has the byte. */
	prctl(PR_SET_PDEATHSIG, 0);
	(void)!write(ready_fd, "", 1);
	close(ready_fd);
	ready_fd = -1;
}

static const char *log_program, *log_subject;
static atomic_bool to_syslog;

static void daemon_log(enum log_level level, const char *line)
{
	static const int priority[] = { LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

	if (!atomic_load(&to_syslog))
		log_to_stderr("%s: %s\n", log_program, line);
	else
		syslog(LOG_DAEMON | priority[level], "%s%s%s", log_subject ? log_subject : "",
		       log_subject ? ": " : "", line);
}

void daemon_log_init(const char *program, enum log_level level)
{
	log_program = program;
	find_inherited();
	log_init(daemon_log, level);
}

void daemon_log_to_syslog(const char *subject)
{
	log_subject = subject;
	openlog(log_program, LOG_PID, LOG_DAEMON);
	atomic_store(&to_syslog, true);
}
