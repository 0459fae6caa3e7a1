/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel that has a disk by a client process (clt-kept.h), as ublk_drv and nbd.ko have: it keeps
 * its requests, kills the process, and hands what was not answered to the next one.  Around each
 * change it runs two commands, STOP and GO: a relay on one of two ways to the server stands still,
 * has requests of the dead process, and passes them on when the next one has sent them again over
 * the other way.  A process is killed when all of its paths were up.
 *
 * Usage: kept-kernel STOP GO KILLS FILE KEY=VALUE...
 *
 * Each slot has one request at a time.  A write says its number in each block; what a read or the
 * end finds must be the last write that was answered, or the one under way. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clt-export.h"
#include "clt-kept.h"
#include "clt-start.h"
#include "clock.h"
#include "dev-req.h"
#include "log.h"
#include "util.h"

#define SLOTS 8u
#define BLOCKS 16u			/* of each slot, its own */
#define BLOCK 4096u

enum what { READS, WRITES, FLUSHES };

/* In memory of kernel and process. */
struct slot {
	atomic_uint asked, answered;	/* numbers of requests */
	enum what what;
	unsigned block;
	uint64_t value;			/* WRITES: to write; READS: what was there */
	int status;
};

static struct shared {
	struct slot slots[SLOTS];
	atomic_uint ups;		/* paths of the process that are up */
} *shared;
static struct slot *slots;		/* [SLOTS], in @shared */
static uint64_t written[SLOTS][BLOCKS];	/* the kernel's: the last that was answered */

static void die(const char *what)
{
	fprintf(stderr, "kept-kernel: %s\n", what);
	exit(1);
}

static void pause_us(unsigned us)
{
	const struct timespec t = { .tv_nsec = us * 1000L };

	nanosleep(&t, NULL);
}

/* ---- the process ---- */

static struct dev_handle handle;

static int carry_out(struct slot *s, unsigned n)
{
	_Alignas(4096) static _Thread_local uint64_t buf[BLOCK / sizeof(uint64_t)];
	uint64_t off = (uint64_t)(n * BLOCKS + s->block) * BLOCK;
	int r;

	if (s->what == FLUSHES)
		return dev_call_flush(&handle);
	for (unsigned i = 0; s->what == WRITES && i < ARRAY_SIZE(buf); i++)
		buf[i] = s->value;
	if (s->what == WRITES)
		return dev_call_write(&handle, buf, BLOCK, off, false);
	r = dev_call_read(&handle, buf, BLOCK, off);
	for (unsigned i = 1; i < ARRAY_SIZE(buf); i++) {
		if (r == 0 && buf[i] != buf[0])
			return -EBADMSG;
	}
	s->value = buf[0];
	return r;
}

static void *serve(void *arg)
{
	struct slot *s = arg;

	for (;;) {
		while (atomic_load(&s->asked) == atomic_load(&s->answered))
			pause_us(100);
		s->status = carry_out(s, (unsigned)(s - slots));
		atomic_store(&s->answered, atomic_load(&s->asked));
	}
	return NULL;
}

static int nap(void)
{
	pause_us(100000);
	return 0;
}

static const struct clt_front front = {
	.name = "kept-kernel", .program = "kept-kernel", .help = "none",
	.wait = &clt_wait_threads, .client_fds = 1, .nap = nap,
};

static void print(enum log_level level, const char *line)
{
	fprintf(stderr, "%s\n", line);
}

static unsigned paths_up(struct clt_sess *sess)
{
	unsigned n = 0;

	for (unsigned i = 0; i < atomic_load(&sess->io.natts); i++)
		n += clt_attempt_is_up(sess->io.atts[i]);
	return n;
}

_Noreturn static void process(const char *file, char **keys)
{
	static struct clt_conf conf;
	static struct clt_start start;
	char err[CLT_FRONT_ERR], *why = NULL;
	pthread_t thread;
	struct dev *dev;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	log_init(print, LOG_LEVEL_WARN);
	clt_conf_init(&conf, &front);
	for (; *keys; keys++) {
		char *value = strchr(*keys, '=');

		*value = '\0';
		if (clt_conf_set(&conf, *keys, value + 1, &why))
			die(why);
		*value = '=';
	}
	if (clt_conf_complete(&conf, &why))
		die(why);
	clt_start_init(&start, &conf);
	if (clt_kept_open(&conf, file, err) || clt_probe(&start, err) ||
	    clt_start_session(&start, err) ||
	    clt_export_open(&start.run.clt, &conf, conf.export_name, &dev, err))
		die(err);
	dev_handle_init(&handle, dev);
	for (unsigned i = 0; i < SLOTS; i++) {
		if (pthread_create(&thread, NULL, serve, &slots[i]))
			die("no thread");
	}
	for (;; pause_us(1000))
		atomic_store(&shared->ups, paths_up(&start.run.clt.sess));
}

/* ---- the kernel ---- */

static unsigned long nwrites, nagain;	/* answered; not answered by a process that was killed */

static void look_at(const struct slot *s, unsigned n)
{
	if (s->status) {
		fprintf(stderr, "kept-kernel: request of slot %u: %s\n", n, strerror(-s->status));
		exit(1);
	}
	if (s->what == WRITES) {
		written[n][s->block] = s->value;
		nwrites++;
	} else if (s->what == READS && s->value != written[n][s->block]) {
		fprintf(stderr, "kept-kernel: block %u of slot %u has %llu, expected %llu\n",
			s->block, n, (unsigned long long)s->value,
			(unsigned long long)written[n][s->block]);
		exit(1);
	}
}

static void ask(struct slot *s)
{
	unsigned chance = (unsigned)rand() % 16;

	s->what = chance < 11 ? WRITES : chance < 15 ? READS : FLUSHES;
	s->block = (unsigned)rand() % BLOCKS;
	if (s->what == WRITES) {
		static uint64_t number;

		s->value = ++number;
	}
	atomic_fetch_add(&s->asked, 1);
}

/* Take at least @n answers of the process @pid, for at least @us and until it has @paths, and ask
 * on. */
static void work(pid_t pid, unsigned n, uint64_t us, unsigned paths)
{
	uint64_t until_ns = clock_now_ns() + us * 1000;
	unsigned answers = 0;

	while (answers < n || clock_now_ns() < until_ns || atomic_load(&shared->ups) < paths) {
		for (unsigned i = 0; i < SLOTS; i++) {
			if (atomic_load(&slots[i].asked) != atomic_load(&slots[i].answered))
				continue;
			look_at(&slots[i], i);
			ask(&slots[i]);
			answers++;
		}
		if (waitpid(pid, NULL, WNOHANG))
			die("the process has ended");
		pause_us(50);
	}
}

/* Until each slot has its answer. */
static void drain(pid_t pid)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		while (atomic_load(&slots[i].asked) != atomic_load(&slots[i].answered)) {
			if (waitpid(pid, NULL, WNOHANG))
				die("the process has ended");
			pause_us(1000);
		}
		look_at(&slots[i], i);
	}
}

static void check_all(pid_t pid)
{
	for (unsigned block = 0; block < BLOCKS; block++) {
		for (unsigned i = 0; i < SLOTS; i++) {
			slots[i].what = READS;
			slots[i].block = block;
			atomic_fetch_add(&slots[i].asked, 1);
		}
		drain(pid);
	}
}

static pid_t begin(const char *file, char **keys)
{
	pid_t pid;

	atomic_store(&shared->ups, 0);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		process(file, keys);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (unsigned i = 0; i < SLOTS; i++)
		nagain += atomic_load(&slots[i].asked) != atomic_load(&slots[i].answered);
}

static void run(const char *command)
{
	if (system(command))
		die(command);
}

int main(int argc, char **argv)
{
	char **keys = argv + 5;
	unsigned paths = 0;
	const char *file;
	pid_t pid;
	int kills;

	if (argc < 6)
		die("usage: kept-kernel STOP GO KILLS FILE KEY=VALUE...");
	kills = atoi(argv[3]);
	file = argv[4];
	for (char **key = keys; *key; key++)
		paths += !strncmp(*key, "server=", 7) || !strncmp(*key, "path=", 5);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	slots = shared->slots;
	for (unsigned i = 0; i < SLOTS; i++)
		slots[i].what = FLUSHES;
	pid = begin(file, keys);
	for (int i = 0; i < kills; i++) {
		work(pid, 4 * SLOTS, (unsigned)rand() % 50000, paths);
		run(argv[1]);
		work(pid, 0, (unsigned)rand() % 5000, 0);
		end(pid);
		pid = begin(file, keys);
		work(pid, 4 * SLOTS, (unsigned)rand() % 5000, 1);
		run(argv[2]);
	}
	drain(pid);
	check_all(pid);
	end(pid);
	printf("%lu writes, %d kills, %lu requests again\n", nwrites, kills, nagain);
	return 0;
}
