/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the device from its start to its end in this process, on the main thread.
 *
 * The happy path: start_device() has the driver make the device, or take it over; a helper reads
 * from it, and @ready is called; wait_for_end() waits for signals, news of the driver, another
 * size, and a wish of rtrs-detach; SIGTERM starts rtrs-detach as a helper; end_device() ends the
 * work.
 *
 * Possible failures: the device is in use at SIGTERM, and is left to the next process; it is
 * removed by others; the first read fails.
 *
 * NOTHING HERE WAITS FOR THE DEVICE.  A thread that waits for it in the kernel cannot be killed,
 * its process keeps what the next one needs, and nobody answers the request any more.  What may
 * wait, as opening the device does, is done by a helper. */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "attach.h"
#include "clock.h"
#include "log.h"
#include "process.h"
#include "signals.h"
#include "util.h"

/* How often the main thread looks: for the size of the export, and for the last user of a device
 * that is to go then. */
#define SIZE_LOOK_MS 10000
/* How soon a start that failed is tried again, and how often this time is doubled. */
#define NAP_FIRST_MS 1000u
#define NAPS_LONGER 6u
#define UNUSED_LOOK_MS 500

enum run_end {
	RUN_GOES_ON,
	RUN_LEFT,			/* the device is in use, or not to be served, and stays */
	RUN_REMOVED,			/* by rtrs-detach */
	RUN_GONE,			/* the device has gone, nobody said why */
	RUN_FAILED,			/* the first read has */
	RUN_UNUSABLE,			/* for a reason that was logged, or by a signal before IO
					 * works */
};

static const int stop_signals[] = { SIGTERM, SIGINT, SIGQUIT, 0 };

void attach_run_signals(sigset_t *set)
{
	sigemptyset(set);
	signals_add(set, stop_signals);
	signals_add(set, signals_of_habit);
}

/* ---- the start ---- */

/* A signal that has come; 0: none. */
static int next_signal(struct attach *a)
{
	struct signalfd_siginfo info;

	if (read(a->signal_fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	if (info.ssi_signo == SIGHUP && a->start)
		clt_reload_hup(&a->start->reload);
	else if (info.ssi_signo == SIGUSR2)
		signals_tell_ignored(SIGUSR2, NULL);
	return (int)info.ssi_signo;
}

static bool is_to_end(int sig)
{
	return sig == SIGTERM || sig == SIGINT || sig == SIGQUIT;
}

bool attach_run_again(struct attach *a, const char *err)
{
	struct pollfd pfd = { .fd = a->signal_fd, .events = POLLIN };

	if (strcmp(a->said, err)) {
		snprintf(a->said, sizeof(a->said), "%s", err);
		log_warn(NULL, "%s; trying again", err);
		sd_notifyf(0, "STATUS=waits: %s", err);
		a->naps = 0;
	}
	if (poll(&pfd, 1, (int)(NAP_FIRST_MS << a->naps)) == 0 && a->naps < NAPS_LONGER)
		a->naps++;
	return !is_to_end(next_signal(a));
}

/* Have a device, and its first read begun.  0, or -errno with @err, and a device that was there
 * before is as it was. */
static int start_device(struct attach *a, char *err, size_t len)
{
	struct attach_state *s = &a->state;
	bool is_new = !*s->driver;
	int r;

	s->pid = (int)getpid();
	s->ready = ATTACH_BEGINS;
	if (s->wish == ATTACH_GOES)
		s->wish = ATTACH_STAYS;
	snprintf(s->driver, sizeof(s->driver), "%s", a->driver->name);
	/* A rule of udev reads the state as soon as the device is there. */
	r = attach_state_write(s, err, len);
	if (r == 0)
		r = a->driver->start(a, err, len);
	if (r < 0) {
		if (is_new)
			*s->driver = '\0';
		return r;
	}
	r = attach_state_write(s, err, len);
	if (r == 0)
		r = driver_node_make(s, err, len);
	if (r < 0)
		return r;
	r = attach_helper_start(&a->helper, ATTACH_HELPS_READ, ATTACH_READ, s->disk, NULL);
	if (r < 0)
		snprintf(err, len, "cannot start " ATTACH_READ ": %s", threads_strerror(r));
	return r;
}

/* ---- the wait ---- */

struct run {
	struct attach *a;
	void (*ready)(struct attach *a);
	uint64_t leave_ms;		/* a device that is not removed by then stays; 0: no end
					 * was asked for */
};

/* Have the device removed unless somebody uses it.  The helper writes the wish. */
static void begin_detach(struct run *run)
{
	struct attach *a = run->a;
	int r = attach_helper_start(&a->helper, ATTACH_HELPS_DETACH, ATTACH_UNUSED,
				    a->state.name, NULL);

	if (r < 0)
		log_warn(NULL, "cannot start %s: %s", ATTACH_UNUSED, threads_strerror(r));
}

/* True if the kernel has the device. */
static bool is_there(const struct attach *a)
{
	struct attach_state s = a->state;

	return driver_find(&s) != -ENODEV;
}

/* Somebody has removed files below /run, without which nobody knows that this process serves the
 * device. */
static void restore(struct attach *a)
{
	char err[256];
	int lock = attach_state_lock(a->state.name, err, sizeof(err));

	/* -EWOULDBLOCK: by this process, whose lock is still there. */
	if (lock >= 0) {
		close(a->lock);
		a->lock = lock;
	}
	if ((lock >= 0 || lock == -EWOULDBLOCK) &&
	    attach_state_write(&a->state, err, sizeof(err)) == 0)
		log_warn(NULL, ATTACH_DIRECTORY "/%s was lost, and is written again",
			 a->state.name);
}

/* Look what rtrs-detach has written. */
static enum run_end look_for_wish(struct run *run)
{
	struct attach *a = run->a;
	struct attach_state s;
	char err[256];
	int r;

	r = attach_state_read(&s, a->state.name, err, sizeof(err));
	if (r == -ENOENT)
		restore(a);
	if (r < 0)
		return RUN_GOES_ON;
	a->state.wish = s.wish;
	/* ORDER: the helper, which ends with this process, has removed the device before. */
	if (s.wish == ATTACH_GOES)
		return a->helper.task == ATTACH_HELPS_DETACH && is_there(a) ? RUN_GOES_ON :
									      RUN_REMOVED;
	if (s.wish == ATTACH_GOES_UNUSED && a->helper.task == ATTACH_HELPS_NOT &&
	    !attach_users(a->state.disk, NULL))
		begin_detach(run);
	return RUN_GOES_ON;
}

/* The process is to end: at once, if it has been said before, or if IO does not work yet. */
static enum run_end begin_end(struct run *run)
{
	if (run->a->helper.task == ATTACH_HELPS_READ)
		return run->a->found ? RUN_LEFT : RUN_UNUSABLE;
	if (run->leave_ms)
		return RUN_LEFT;
	run->leave_ms = clock_now_ms() + END_WAITS_MS;
	if (run->a->helper.task == ATTACH_HELPS_NOT)
		begin_detach(run);
	return run->a->helper.task == ATTACH_HELPS_NOT ? RUN_LEFT : RUN_GOES_ON;
}

static enum run_end take_signal(struct run *run)
{
	int sig = next_signal(run->a);

	if (sig == SIGUSR1)
		return look_for_wish(run);
	return is_to_end(sig) ? begin_end(run) : RUN_GOES_ON;
}

static enum run_end take_wake(struct run *run)
{
	struct attach *a = run->a;
	enum run_end end;
	eventfd_t n;
	int r;

	eventfd_read(a->wake_fd, &n);
	/* ORDER: a wish is written before the device goes, and the driver knows of none. */
	end = look_for_wish(run);
	if (end != RUN_GOES_ON || a->state.wish == ATTACH_GOES)
		return end;
	attach_size_take(a);
	r = a->driver->news ? a->driver->news(a) : 0;
	if (r == 0)
		return RUN_GOES_ON;
	return r == -ENODEV ? RUN_GONE : RUN_LEFT;
}

static enum run_end take_helper(struct run *run)
{
	struct attach *a = run->a;
	enum attach_helps task = a->helper.task;
	int status = attach_helper_take(&a->helper);
	char err[256];

	if (task == ATTACH_HELPS_DETACH)
		return run->leave_ms ? RUN_LEFT : RUN_GOES_ON;
	if (task == ATTACH_HELPS_RESIZE) {
		attach_size_helped(a, status);
		if (run->leave_ms)
			begin_detach(run);
		return RUN_GOES_ON;
	}
	if (status != EXIT_DONE)
		return RUN_FAILED;
	a->state.ready = ATTACH_READY;
	if (attach_state_write(&a->state, err, sizeof(err)) < 0) {
		log_err(NULL, "%s", err);
		return RUN_UNUSABLE;
	}
	run->ready(a);
	/* It may have grown while nobody was there. */
	attach_size_take(a);
	return RUN_GOES_ON;
}

static enum run_end wait_for_end(struct run *run)
{
	struct attach *a = run->a;
	enum run_end end = RUN_GOES_ON;

	while (end == RUN_GOES_ON) {
		struct pollfd fds[] = { { .fd = a->signal_fd, .events = POLLIN },
					{ .fd = a->wake_fd, .events = POLLIN },
					{ .fd = a->helper.fd, .events = POLLIN } };
		int n = poll(fds, ARRAY_SIZE(fds), a->state.wish == ATTACH_GOES_UNUSED ||
						   run->leave_ms ? UNUSED_LOOK_MS : SIZE_LOOK_MS);

		if (n == 0) {
			attach_size_look(a);
			end = look_for_wish(run);
		}
		if (n > 0 && fds[0].revents)
			end = take_signal(run);
		if (n > 0 && end == RUN_GOES_ON && fds[1].revents)
			end = take_wake(run);
		if (n > 0 && end == RUN_GOES_ON && fds[2].revents)
			end = take_helper(run);
		if (end == RUN_GOES_ON && run->leave_ms && clock_now_ms() >= run->leave_ms)
			end = RUN_LEFT;
	}
	return end;
}

/* ---- the end ---- */

static void log_end_of(struct attach *a, enum run_end end)
{
	switch (end) {
	case RUN_LEFT:
		log_warn(NULL, "/dev/%s stays, and its requests wait for the next rtrs-attach %s",
			 a->state.disk, a->state.name);
		break;
	case RUN_GONE:
		log_warn(NULL, "/dev/%s was removed by another program than rtrs-detach",
			 a->state.disk);
		break;
	case RUN_FAILED:
		log_err(NULL, "/dev/%s cannot be read", a->state.disk);
		break;
	case RUN_UNUSABLE:
		break;
	default:
		log_info(NULL, "/dev/%s is detached", a->state.disk);
		break;
	}
}

/* A new device that does not work is of no use.  True: it has gone. */
static bool remove_failed(struct attach *a)
{
	char err[256];

	if (driver_remove(&a->state, err, sizeof(err)) == 0)
		return true;
	log_warn(NULL, "%s", err);
	return false;
}

/* The kernel ends no resize before the requests in flight, and removes no device before that: they
 * fail END_WAITS_MS from now.  Without an answer nbd.ko would wait for ever, so the limit is the
 * later one, of the whole end. */
static void end_resize(struct attach *a)
{
	struct pollfd pfd = { .fd = a->helper.fd, .events = POLLIN };

	client_lose_patience(&a->start->run.clt);
	poll(&pfd, 1, END_MS);
}

/* End the work on the device.  Returns the exit status: a unit is started again but for
 * EXIT_DONE. */
static int end_device(struct attach *a, enum run_end end)
{
	bool failed = end == RUN_FAILED || end == RUN_UNUSABLE;
	/* rtrs-detach may not have come to its end, nor ever come there. */
	bool gone = end == RUN_GONE || (end == RUN_REMOVED && !is_there(a));

	log_end_of(a, end);
	/* ORDER: the kernel waits for requests that a process has, so they are answered. */
	if (failed && !a->found) {
		client_lose_patience(&a->start->run.clt);
		gone = remove_failed(a);
	}
	if (end == RUN_REMOVED && a->helper.task == ATTACH_HELPS_RESIZE)
		end_resize(a);
	/* ORDER: requests that wait fail now, and the kernel hears of none. */
	a->driver->leave(a);
	client_lose_patience(&a->start->run.clt);
	a->driver->stop(a);
	if (gone)
		driver_forget(&a->state);
	return end == RUN_REMOVED ? EXIT_DONE : EXIT_FAILED;
}

int attach_run(struct attach *a, void (*ready)(struct attach *a))
{
	struct run run = { .a = a, .ready = ready };
	char err[CLT_FRONT_ERR];
	enum run_end end;
	int r;

	do {
		r = start_device(a, err, sizeof(err));
	} while (r < 0 && !a->own && a->waits && attach_run_again(a, err));
	if (r < 0)
		log_err(NULL, "%s", err);
	/* Of a device that was there before the state stays. */
	if (r < 0 && !a->own && !*a->state.driver)
		driver_forget(&a->state);
	if (r < 0 && !a->own)
		return EXIT_FAILED;
	end = r < 0 ? RUN_UNUSABLE : wait_for_end(&run);
	/* A second signal ends the program at once. */
	signals_mask(SIG_UNBLOCK, stop_signals);
	sd_notify(0, "STOPPING=1");
	end_begin();
	end_waits_for("requests in flight");
	return end_device(a, end);
}
