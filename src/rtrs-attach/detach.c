/* SPDX-License-Identifier: BSD-3-Clause */
/* rtrs-detach: removes devices of rtrs-attach, whether their process lives or not.
 *
 * The happy path, for each device: nobody uses it, what it was given is flushed, the wish is
 * written to the state, the kernel removes the device, and its process, which finds both, ends.
 * Possible failures: the device is in use, and each user is named; no process serves it; the kernel
 * refuses; the device answers nothing.
 *
 * A child does the work for each device (detach_child_run()). */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attach.h"
#include "clock.h"
#include "number.h"
#include "opt-rows.h"
#include "process.h"
#include "util.h"

#define PROCESS_WAIT_MS (END_MS + 5000)	/* for the end of the process of a device */
#define USERS_WAIT_MS 1000		/* for one who only looks at the device */

struct detach_options {
	bool all, force, lazy;
};

#define FIELD(field) OPT_FIELD(struct detach_options, field)

static const struct opt rows[] = {
	{ .name = "all", .letter = 'a', .type = OPT_FLAG, FIELD(all), .holds = OPT_AT_START,
	  .help = "detach all devices" },
	{ .name = "force", .letter = 'f', .type = OPT_FLAG, FIELD(force), .holds = OPT_AT_START,
	  .help = "even if in use: its users get errors, and what\n"
		  "is not written yet is lost" },
	{ .name = "lazy", .letter = 'l', .type = OPT_FLAG, FIELD(lazy), .holds = OPT_AT_START,
	  .help = "when its last user has gone" },
	{ OPT_ROW_HELP }, { OPT_ROW_VERSION },
};

static const struct opt_table table = {
	.program = "rtrs-detach",
	.rows = rows,
	.n = ARRAY_SIZE(rows),
	.dashes = "--",
	.head = "Usage: rtrs-detach [OPTIONS] NAME... | --all\n"
		"Remove block devices that rtrs-attach has made.\n\nOptions:\n",
	.tail = "\nExit status: 0 done; 1 a device is in use, or another failure; 2 an error "
		"in\noptions.\n",
	.column = 28,
};

static int complain(const char *name, const char *err)
{
	fprintf(stderr, "rtrs-detach: %s: %s\n", name, err);
	return -1;
}

/* Have the process of the device look for the wish. */
static void wake_process(const struct attach_state *s)
{
	pid_t pid = attach_state_process(s->name);

	if (pid > 0)
		kill(pid, SIGUSR1);
}

/* Say who uses the device. */
static int complain_used(const struct attach_state *s)
{
	fprintf(stderr, "rtrs-detach: %s: /dev/%s is in use:\n", s->name, s->disk);
	if (!attach_users(s->disk, stderr))
		fprintf(stderr, "  by something that this process cannot see, a file system of "
			"another mount namespace for instance\n");
	fprintf(stderr, "End its use first, or give --lazy, or --force.\n");
	return -1;
}

/* True if the device has gone, or goes within a moment. */
static bool goes(const struct attach_state *s)
{
	const struct timespec nap = { .tv_nsec = 20000000 };
	uint64_t since_ms = clock_now_ms();
	struct attach_state now;

	do {
		now = *s;
		if (driver_find(&now) == -ENODEV)
			return true;
	} while (clock_now_ms() - since_ms < USERS_WAIT_MS && nanosleep(&nap, NULL) == 0);
	return false;
}

/* May the device be removed, for which attach_users_keep_out() has returned @fd?  0, or -1 with a
 * line on stderr. */
static int look_for_users(const struct attach_state *s, int fd)
{
	bool is_used = fd < 0 && attach_users(s->disk, NULL);
	char err[256];

	/* Another rtrs-detach may have kept this one out, and have removed the device since. */
	if (fd >= 0 || (fd == -EBUSY && !is_used && goes(s)))
		return 0;
	if (fd == -EBUSY || is_used)
		return complain_used(s);
	/* The disk has gone, or its node alone has, and nobody uses it. */
	if (fd == -ENOENT || fd == -ENXIO || fd == -ENODEV)
		return 0;
	snprintf(err, sizeof(err), "/dev/%s cannot be opened, and so not be flushed: %s", s->disk,
		 strerror(-fd));
	return complain(s->name, err);
}

/* Wait until the process of the device has ended.  Returns the lock, or -errno. */
static int wait_for_process(const char *name)
{
	const struct timespec nap = { .tv_nsec = 20000000 };
	uint64_t since_ms = clock_now_ms();
	char err[256];
	int lock;

	do {
		lock = attach_state_lock(name, err, sizeof(err));
	} while (lock == -EWOULDBLOCK && clock_now_ms() - since_ms < PROCESS_WAIT_MS &&
		 nanosleep(&nap, NULL) == 0);
	return lock;
}

/* Write the wish for the process to find, beside what it has written meanwhile. */
static int wish(const struct attach_state *s, enum attach_wish wish, char *err, size_t len)
{
	struct attach_state now;
	int r = attach_state_read(&now, s->name, err, len);

	if (r < 0 && r != -ENOENT)
		return r;
	if (r < 0)
		now = *s;
	now.wish = wish;
	return attach_state_write(&now, err, len);
}

static int detach_lazily(const struct attach_state *s, bool served)
{
	char err[256];

	if (!served)
		return complain(s->name, "no process serves it, so none would remove it later: "
				"start rtrs-attach first, or give --force");
	if (wish(s, ATTACH_GOES_UNUSED, err, sizeof(err)) < 0)
		return complain(s->name, err);
	wake_process(s);
	return 0;
}

/* Have the kernel remove the device. */
static int remove_now(const struct attach_state *s, bool wake, char *err, size_t len)
{
	char why[256];
	int r = wish(s, ATTACH_GOES, err, len);

	if (r < 0)
		return r;
	/* ORDER: the kernel may wait for requests that wait for a server, until the process leaves
	 * them. */
	if (wake)
		wake_process(s);
	r = driver_remove(s, err, len);
	if (r < 0)
		wish(s, ATTACH_STAYS, why, sizeof(why));
	return r;
}

/* Remove the device, which nobody uses, or whose users get errors.  @fd, or less than 0: it keeps
 * others out, and is taken; *@lock as wait_for_process(). */
static int detach_now(const struct attach_state *s, bool force, int fd, int *lock)
{
	char err[256];
	int r = 0;

	detach_child_at(DETACH_FLUSHES);
	/* ORDER: a device that no process serves has nothing to flush, because it was flushed when
	 * the last user closed it. */
	if (fd >= 0 && *lock < 0 && fsync(fd) < 0)
		r = fmt_error(-errno, err, sizeof(err), "/dev/%s cannot be flushed: %s", s->disk,
			      strerror(errno));
	detach_child_at(DETACH_REMOVES);
	if (r == 0)
		r = remove_now(s, force && *lock < 0, err, sizeof(err));
	if (fd >= 0)
		close(fd);
	if (r < 0)
		return complain(s->name, err);
	detach_child_at(DETACH_WAITS);
	if (*lock < 0) {
		wake_process(s);
		*lock = wait_for_process(s->name);
	}
	if (*lock < 0) {
		snprintf(err, sizeof(err), "the device has gone, and its process %d has not ended",
			 (int)attach_state_process(s->name));
		return complain(s->name, err);
	}
	driver_forget(s);
	return 0;
}

/* There is no device yet; and none is to be, if this process has got @lock. */
static int detach_early(const struct detach_options *o, const struct attach_state *s, int lock)
{
	char err[256];

	if (lock >= 0) {
		driver_forget(s);
		attach_state_unlock(lock, s->name);
		return o->all ? 0 : complain(s->name, "it is not attached");
	}
	snprintf(err, sizeof(err), "it is not attached yet: process %d waits for the server: stop "
		 "its unit, or kill it", (int)attach_state_process(s->name));
	return complain(s->name, err);
}

/* Read the state, or have the kernel know the device if its state is lost. */
static int find(struct attach_state *s, const char *name, char *err, size_t len)
{
	int r = attach_state_read(s, name, err, len), found;

	if (r < 0 && r != -ENOENT)
		return r;
	found = driver_find(s);
	if (r < 0 && found < 0)
		snprintf(err, len, "it is not attached");
	return r < 0 ? found : 0;
}

/* 0, or -1 with a line on stderr. */
static int detach_one(const char *name, const void *arg)
{
	const struct detach_options *o = arg;
	int fd = -1, lock, r;
	struct attach_state s;
	char err[256];

	if (find(&s, name, err, sizeof(err)) < 0)
		return complain(name, err);
	/* ORDER: this may wait for the process of the device, which needs the lock. */
	if (!o->force && !o->lazy && *s.disk) {
		fd = attach_users_keep_out(s.disk, USERS_WAIT_MS);
		if (look_for_users(&s, fd) < 0)
			return -1;
	}
	lock = attach_state_lock(name, err, sizeof(err));
	if (lock < 0 && lock != -EWOULDBLOCK) {
		if (fd >= 0)
			close(fd);
		return complain(name, err);
	}
	if (!*s.driver)
		return detach_early(o, &s, lock);
	r = o->lazy ? detach_lazily(&s, lock < 0) : detach_now(&s, o->force, fd, &lock);
	if (lock >= 0)
		attach_state_unlock(lock, name);
	return r;
}

static int detach_all(const struct detach_options *o)
{
	char **names, err[256];
	int n = attach_state_names(&names, err, sizeof(err)), r = 0;

	if (n < 0)
		return complain("--all", err);
	for (int i = 0; i < n; i++)
		r |= detach_child_run(names[i], o->force, detach_one, o);
	attach_state_names_free(names, n);
	return r;
}

/* What is wrong with the options together; NULL: nothing. */
static const char *wrong(const struct detach_options *o, int nnames)
{
	if (o->force && o->lazy)
		return "--force with --lazy: give one or the other";
	if (o->all && nnames)
		return "--all with a NAME: give one or the other";
	return o->all || nnames ? NULL : "expected NAME, or --all";
}

int detach_main(int argc, char **argv)
{
	struct detach_options o = { 0 };
	enum opt_result result;
	int first = argc, r = 0;
	char err[512];

	result = opt_argv(&table, &o, argc, argv, &first, NULL, err, sizeof(err));
	if (result == OPT_EXIT)
		return std_out_end("rtrs-detach", EXIT_DONE);
	if (result == OPT_RUN && wrong(&o, argc - first)) {
		snprintf(err, sizeof(err), "%s", wrong(&o, argc - first));
		result = OPT_USAGE;
	}
	for (int i = first; result == OPT_RUN && i < argc; i++) {
		if (!attach_name_ok(argv[i])) {
			snprintf(err, sizeof(err), "'%s' is no NAME of a device", argv[i]);
			result = OPT_USAGE;
		}
	}
	if (result != OPT_RUN) {
		fprintf(stderr, "rtrs-detach: %s\n", err);
		return EXIT_USAGE;
	}
	if (o.all)
		r = detach_all(&o);
	for (int i = first; i < argc; i++)
		r |= detach_child_run(argv[i], o.force, detach_one, &o);
	return r ? EXIT_FAILED : EXIT_DONE;
}
