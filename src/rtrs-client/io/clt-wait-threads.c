/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the sleeping: futexes of waiters, ppoll() of leaders, the choice of the leader, and the
 * poller threads.  Threads of nbdkit; threads_con_*() on the service thread, but for
 * threads_con_kick() on any.  Only threads_con_init() can fail.
 *
 * The futex word of a waiter: counts in steps of WORD_COUNT, which wrap, and flags below.  The
 * thread that adds news clears the sleep flags in the same instruction, and so no other thread
 * wakes the waiter.
 *
 * Missed wake-ups: the sleeper sets the flag only while the word has no news, and sleeps only while
 * the word does not change.  A leader sets @asleep first, and then looks for something to send or a
 * failed path.  Other threads queue a slot or fail the path first, and then look at @asleep (all
 * seq_cst). */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clt-io.h"
#include "signals.h"

#define WORD_SLEEPS 0x1u		/* in futex_wait() */
#define WORD_POLLS 0x2u			/* in ppoll(), which kick_fd ends */
#define WORD_LOOK 0x4u
#define WORD_LEAD 0x8u			/* was given the poll role */
#define WORD_END 0x10u
#define WORD_COUNT 0x20u

#define POLL_BUDGET 64
#define BATCH 64
#define SPIN_INFLIGHT 2
#define POLLER_MIN 3			/* the poller gets the role from so many followers on */
#define POLLER_ROUNDS 16		/* the poller gives the role away after so many with few
					 * waiters */

static _Thread_local struct {
	unsigned depth, n;
	atomic_uint *word[BATCH];
} batch;

static void futex_wake(atomic_uint *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* ---- waiters ---- */

static bool word_has_news(unsigned word, const struct clt_waiter *w)
{
	return (word & WORD_LOOK) || word / WORD_COUNT != w->settled;
}

static bool has_news(struct clt_waiter *w)
{
	return word_has_news(atomic_load(&w->word), w);
}

static void batch_flush(void)
{
	for (unsigned i = 0; i < batch.n; i++)
		futex_wake(batch.word[i]);
	batch.n = 0;
}

static void threads_batch_begin(void)
{
	batch.depth++;
}

static void threads_batch_end(void)
{
	if (--batch.depth == 0)
		batch_flush();
}

/* Add @count and @flags.  After the exchange of a count only the address of @w is valid.  If the
 * memory has another use by then, futex_wake() may wake some thread for nothing. */
static void waiter_tell(struct clt_waiter *w, unsigned count, unsigned flags)
{
	void (*fn)(struct clt_waiter *w) = w->fn;
	unsigned old = atomic_load(&w->word), new;
	int kick_fd;

	do {
		kick_fd = atomic_load(&w->kick_fd);	/* ORDER: after WORD_POLLS was seen */
		new = ((old + count) | flags) & ~(WORD_SLEEPS | WORD_POLLS);
	} while (!atomic_compare_exchange_weak(&w->word, &old, new));

	if (fn) {
		fn(w);
	} else if (old & WORD_POLLS) {
		eventfd_write(kick_fd, 1);
	} else if (old & WORD_SLEEPS) {
		if (batch.n == BATCH)
			batch_flush();
		batch.word[batch.n++] = &w->word;
		if (batch.depth == 0)
			batch_flush();
	}
}

static void threads_count(struct clt_waiter *w)
{
	waiter_tell(w, WORD_COUNT, 0);
}

static void threads_look(struct clt_waiter *w)
{
	waiter_tell(w, 0, WORD_LOOK);
}

static void threads_settle(struct clt_waiter *w, unsigned n)
{
	unsigned mask = UINT_MAX / WORD_COUNT;

	w->settled = (w->settled + n) & mask;
	/* The pusher is between the push and the count. */
	while (!clt_wait_reached(atomic_load(&w->word) / WORD_COUNT, w->settled, mask))
		sched_yield();
}

/* Sleep until @w has news or the poll role.  False: @w had news or the role already. */
static bool waiter_sleep(struct clt_waiter *w)
{
	unsigned word = atomic_load(&w->word);

	do {
		if (word_has_news(word, w) || (word & WORD_LEAD))
			return false;
	} while (!atomic_compare_exchange_weak(&w->word, &word, word | WORD_SLEEPS));
	word |= WORD_SLEEPS;
	while (atomic_load(&w->word) == word)
		syscall(SYS_futex, &w->word, FUTEX_WAIT_PRIVATE, word, NULL, NULL, 0);
	return true;
}

static void threads_event(struct clt_waiter *w)
{
	waiter_sleep(w);
	atomic_fetch_and(&w->word, ~WORD_LOOK);
	w->settled = atomic_load(&w->word) / WORD_COUNT;
}

static unsigned threads_hint(const struct clt_io *io)
{
	static atomic_uint next;
	static _Thread_local unsigned mine;

	if (!mine)
		mine = 1 + (atomic_fetch_add(&next, 1) & INT_MAX);
	return mine - 1;
}

/* ---- the poll role ---- */

static void *poller_main(void *arg);

static int threads_con_init(struct clt_con *con)
{
	struct clt_wait_con *wc = &con->wait;
	int r;

	wc->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wc->kick_fd < 0)
		return -errno;
	pthread_mutex_init(&wc->lock, NULL);
	list_init(&wc->followers);
	wc->nfollowers = 0;
	wc->leader = NULL;
	wc->role = CLT_ROLE_SERVICE;
	atomic_init(&wc->asleep, 0);
	clt_wait_init(&wc->poller, &clt_wait_threads, NULL);
	spin_init(&wc->spin, con->att->io->poll_us);
	r = signals_thread(&wc->thread, poller_main, con);
	if (r < 0) {
		close(wc->kick_fd);
		pthread_mutex_destroy(&wc->lock);
		return r;
	}
	pthread_setname_np(wc->thread, "rtrs-poll");
	return 0;
}

static void threads_con_fini(struct clt_con *con)
{
	struct clt_wait_con *wc = &con->wait;

	waiter_tell(&wc->poller, 0, WORD_LOOK | WORD_END);
	pthread_join(wc->thread, NULL);
	close(wc->kick_fd);
	pthread_mutex_destroy(&wc->lock);
}

static void con_sleep(struct clt_con *con, struct clt_waiter *w)
{
	if (waiter_sleep(w))
		counter_add_shared(&con->wait.wakeups, 1);
}

/* Give the role to the poller if many follow, else to the first follower that still sleeps, else
 * leave the role free.  Returns the waiter to wake, or NULL.  Lock held. */
static struct clt_waiter *role_pass(struct clt_wait_con *wc)
{
	struct clt_waiter *w;

	wc->leader = NULL;
	if (wc->nfollowers >= POLLER_MIN)
		return wc->leader = &wc->poller;
	list_for_each(w, &wc->followers, link) {
		if (has_news(w))
			continue;
		return wc->leader = w;
	}
	return NULL;
}

static void threads_con_kick(struct clt_con *con)
{
	int asleep = 1;

	if (atomic_compare_exchange_strong(&con->wait.asleep, &asleep, 2))
		eventfd_write(con->wait.kick_fd, 1);
}

static bool threads_con_take(struct clt_con *con)
{
	struct clt_wait_con *wc = &con->wait;
	bool has;

	pthread_mutex_lock(&wc->lock);
	if (wc->role != CLT_ROLE_SERVICE)
		wc->role = wc->leader ? CLT_ROLE_WANTED : CLT_ROLE_SERVICE;
	has = wc->role == CLT_ROLE_SERVICE;
	pthread_mutex_unlock(&wc->lock);
	if (!has)
		threads_con_kick(con);
	return has;
}

static void threads_con_release(struct clt_con *con)
{
	struct clt_wait_con *wc = &con->wait;
	struct clt_waiter *next;

	pthread_mutex_lock(&wc->lock);
	wc->role = CLT_ROLE_WAITERS;
	next = role_pass(wc);
	if (next)
		waiter_tell(next, 0, WORD_LEAD);
	pthread_mutex_unlock(&wc->lock);
}

/* The leader @w is done with polling. */
static void role_leave(struct clt_con *con)
{
	struct clt_wait_con *wc = &con->wait;
	struct clt_waiter *next = NULL;
	bool svc;

	threads_batch_begin();
	pthread_mutex_lock(&wc->lock);
	svc = wc->role == CLT_ROLE_WANTED;
	if (svc) {
		wc->leader = NULL;
		wc->role = CLT_ROLE_SERVICE;
	} else if (clt_attempt_is_up(con->att)) {
		next = role_pass(wc);
		if (next) {
			counter_add(&wc->handovers, 1);
			waiter_tell(next, 0, WORD_LEAD);
		}
	} else {
		wc->leader = NULL;	/* the service loop will ask */
	}
	/* ORDER: role_free() is called before the unlock.  From the unlock on the service loop can
	 * see the role, and so may close the session, and end. */
	if (svc)
		con->att->ops->role_free(con);
	pthread_mutex_unlock(&wc->lock);
	threads_batch_end();
}

/* Sleep in ppoll() unless @w has news or @con has something to do. */
static void lead_sleep(struct clt_con *con, struct clt_waiter *w, short events)
{
	struct clt_wait_con *wc = &con->wait;
	struct pollfd fds[2] = {
		{ .fd = fab_conn_fd(con->fab), .events = events },
		{ .fd = wc->kick_fd, .events = POLLIN },
	};
	unsigned word = atomic_load(&w->word);
	eventfd_t n;

	atomic_store(&w->kick_fd, wc->kick_fd);
	do {
		if (word_has_news(word, w))
			return;
	} while (!atomic_compare_exchange_weak(&w->word, &word, word | WORD_POLLS));
	atomic_store(&wc->awake, false);
	atomic_store(&wc->asleep, 1);
	/* RACE: a thread that posted since fab_arm() found no sleeping leader to kick. */
	if (!clt_tx_must_flush(con) && clt_attempt_is_up(con->att) && !clt_tx_must_poll(con)) {
		poll(fds, 2, -1);
		counter_add_shared(&wc->wakeups, 1);
	}
	atomic_exchange(&wc->asleep, 0);
	atomic_fetch_and(&w->word, ~WORD_POLLS);
	if (fds[1].revents & POLLIN)
		eventfd_read(wc->kick_fd, &n);
}

/* Are requests in flight on this path, but at most SPIN_INFLIGHT? With more requests some thread
 * has a better use for the CPU than busy-polling. */
static bool path_few_in_flight(const struct clt_con *con)
{
	unsigned n = 0;

	for (unsigned i = 1; i < con->att->ncons && n <= SPIN_INFLIGHT; i++)
		n += atomic_load_explicit(&con->att->cons[i].inflight, memory_order_relaxed);
	return n && n <= SPIN_INFLIGHT;
}

/* Busy-poll instead of a sleep and a wake-up.  True if something is to be done. */
static bool con_busy_poll(struct clt_con *con, struct clt_waiter *w)
{
	struct spin *spin = &con->wait.spin;
	short events;
	int n;

	if (!path_few_in_flight(con) || !spin_begin(spin))
		return false;
	do {
		/* Without fab_arm() a provider may not look for new completions (fab_poll()). */
		if (fab_arm(con->fab, &events))
			return true;
		n = clt_rx_poll(con, POLL_BUDGET);
		if (n > 0)
			spin_end(spin);
		if (n || clt_tx_must_flush(con) || has_news(w) || !clt_attempt_is_up(con->att))
			return true;
	} while (path_few_in_flight(con) && spin_more(spin));
	return false;
}

/* The poller may go when nothing is in flight.  RACE: a sender counts in con->inflight first, and
 * then looks at @polled (role_wait()). */
static bool poller_leave(struct clt_con *con)
{
	struct clt_wait_con *wc = &con->wait;

	atomic_store(&wc->polled, false);
	if (!atomic_load(&con->inflight) || !clt_attempt_is_up(con->att))
		return true;
	atomic_store(&wc->polled, true);
	return false;
}

/* Poll for all while many requests wait.  Thread of the poller. */
static void poll_for_many(struct clt_con *con)
{
	struct clt_wait_con *wc = &con->wait;
	unsigned few = 0;
	short events;
	int n = 0;

	atomic_store(&wc->polled, true);
	while (n >= 0 && clt_attempt_is_up(con->att)) {
		atomic_store(&wc->awake, true);
		n = clt_rx_poll(con, POLL_BUDGET);
		if (clt_tx_must_flush(con))
			clt_tx_flush(con);
		if (n > 0)
			spin_end(&wc->spin);
		if (n > 0)
			few = n < POLLER_MIN && atomic_load(&con->inflight) < POLLER_MIN ?
				few + 1 : 0;
		else if (n == 0 && !con_busy_poll(con, &wc->poller) &&
			 fab_arm(con->fab, &events) == 0)
			lead_sleep(con, &wc->poller, events);
		if (few >= POLLER_ROUNDS && poller_leave(con))
			break;
	}
	atomic_store(&wc->polled, false);
	atomic_store(&wc->awake, false);
	clt_tx_flush(con);
	role_leave(con);
}

static void *poller_main(void *arg)
{
	struct clt_con *con = arg;
	struct clt_wait_con *wc = &con->wait;

	while (!(atomic_load(&wc->poller.word) & WORD_END)) {
		con_sleep(con, &wc->poller);
		if (atomic_fetch_and(&wc->poller.word, ~WORD_LEAD) & WORD_LEAD)
			poll_for_many(con);
	}
	return NULL;
}

/* Poll for all until @w has news or the path is lost. */
static void waiter_lead(struct clt_con *con, struct clt_waiter *w)
{
	short events;

	while (!has_news(w) && clt_attempt_is_up(con->att)) {
		int n = clt_rx_poll(con, POLL_BUDGET);

		if (n < 0)
			break;
		if (n > 0)
			spin_end(&con->wait.spin);
		if (clt_tx_must_flush(con))
			clt_tx_flush(con);
		if (n == 0 && !con_busy_poll(con, w) && fab_arm(con->fab, &events) == 0)
			lead_sleep(con, w, events);
	}
	role_leave(con);
}

/* Wait for the poll role.  True: @w leads @con now.  False: @w may have news. */
static bool role_wait(struct clt_con *con, struct clt_waiter *w)
{
	struct clt_wait_con *wc = &con->wait;

	if (atomic_load(&wc->polled)) {
		con_sleep(con, w);
		return false;
	}
	pthread_mutex_lock(&wc->lock);
	if (!wc->leader && wc->role == CLT_ROLE_WAITERS && clt_attempt_is_up(con->att)) {
		wc->leader = w;
		pthread_mutex_unlock(&wc->lock);
		return true;
	}
	list_add_tail(&wc->followers, &w->link);
	wc->nfollowers++;
	pthread_mutex_unlock(&wc->lock);

	con_sleep(con, w);

	pthread_mutex_lock(&wc->lock);
	list_del(&w->link);
	wc->nfollowers--;
	pthread_mutex_unlock(&wc->lock);
	return atomic_fetch_and(&w->word, ~WORD_LEAD) & WORD_LEAD;
}

static void threads_more(struct clt_waiter *w, struct clt_con *con)
{
	if (!con || con->cid == 0)
		waiter_sleep(w);
	else if (role_wait(con, w))
		waiter_lead(con, w);
	if (atomic_load_explicit(&w->word, memory_order_relaxed) & WORD_LOOK)
		atomic_fetch_and(&w->word, ~WORD_LOOK);
}

const struct clt_wait_ops clt_wait_threads = {
	.count = threads_count,
	.look = threads_look,
	.settle = threads_settle,
	.more = threads_more,
	.event = threads_event,
	.hint = threads_hint,
	.batch_begin = threads_batch_begin,
	.batch_end = threads_batch_end,
	.con_init = threads_con_init,
	.con_fini = threads_con_fini,
	.con_take = threads_con_take,
	.con_release = threads_con_release,
	.con_kick = threads_con_kick,
};
