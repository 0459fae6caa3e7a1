/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the start and the end of a client.
 *
 * Everything runs on the service thread; other threads post messages to the service thread, or wait
 * for the news of client-tell.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clock.h"
#include "dev-priv.h"
#include "process.h"

#define CLOSE_MS 5000			/* for the CLOSEs when the session ends */
#define AGAIN_MS 1000			/* for a path that came back in between */

static void path_up(struct clt_sess *sess)
{
	struct client *clt = container_of(sess, struct client, sess);

	client_tell_away(clt);
	client_tell_up(clt);
}

static void path_away(struct clt_sess *sess)
{
	client_tell_away(container_of(sess, struct client, sess));
}

static void path_failed(struct clt_sess *sess, int err, const char *cause)
{
	client_tell_failed(container_of(sess, struct client, sess), err, cause);
}

static void path_closed(struct clt_sess *sess)
{
	client_tell_closed(container_of(sess, struct client, sess));
}

static void patience_msg(struct loop_msg *msg)
{
	struct client *clt = container_of(msg, struct client, patience_msg);

	clt_sess_lose_patience(&clt->sess);
	if (clt->state != CLIENT_OPEN)
		return;
	loop_timer_set(clt->sess.loop, &clt->reopen_timer, clock_now_ms());
	loop_timer_set(clt->sess.loop, &clt->patience_timer, clock_now_ms() + END_WAITS_MS);
}

static bool server_has_requests(struct client *clt)
{
	struct clt_io *io = &clt->sess.io;

	for (unsigned i = 0; i < atomic_load(&io->natts); i++) {
		if (clt_pick_inflight(io->atts[i]))
			return true;
	}
	return false;
}

/* The number of requests of users that have ended, to the devices that are open. */
static uint64_t requests_ended(struct client *clt)
{
	struct dev_stat sum;
	struct dev *dev;
	uint64_t n = 0;

	list_for_each(dev, &clt->devs, link) {
		dev_stat_ever(dev, &sum);
		for (unsigned op = 0; op < IO_STAT_NOPS; op++)
			n += counter_get(&sum.io.op[op].count);
	}
	return n;
}

/* Counts requests of users, not their parts: the parts of a large request may end one by one for an
 * hour. */
static void held_timer(struct loop_timer *timer)
{
	struct client *clt = container_of(timer, struct client, held_timer);
	unsigned before = clt->requests;
	uint64_t ended;

	clt->requests = CLIENT_REQUESTS_NONE;
	if (server_has_requests(clt)) {
		ended = requests_ended(clt);
		clt->requests = before != CLIENT_REQUESTS_NONE && ended == clt->ended ?
				CLIENT_REQUESTS_HELD : CLIENT_REQUESTS_FLOW;
		clt->ended = ended;
	}
	if (clt->requests != before)
		client_tell_away(clt);
	loop_timer_set(clt->sess.loop, timer, clock_now_ms() + RTRS_HB_INTERVAL_MS);
}

/* A server that lives may hold requests for ever, for instance because its storage does. */
static void patience_timer(struct loop_timer *timer)
{
	struct client *clt = container_of(timer, struct client, patience_timer);

	if (server_has_requests(clt))
		clt_sess_fail(&clt->sess, -ETIMEDOUT, "requests are still in flight at the end");
	loop_timer_set(clt->sess.loop, timer, clock_now_ms() + AGAIN_MS);
}

static void start_msg(struct loop_msg *msg)
{
	struct client *clt = container_of(msg, struct client, start_msg);

	clt_sess_start(&clt->sess);
	held_timer(&clt->held_timer);
}

static void close_timer(struct loop_timer *timer)
{
	clt_sess_close(&container_of(timer, struct client, close_timer)->sess);
}

static void close_msg(struct loop_msg *msg)
{
	struct client *clt = container_of(msg, struct client, close_msg);

	pthread_mutex_lock(&clt->lock);
	if (clt->state == CLIENT_OPEN)
		clt->state = CLIENT_CLOSING;
	pthread_mutex_unlock(&clt->lock);
	loop_timer_cancel(&clt->reopen_timer);
	loop_timer_cancel(&clt->patience_timer);
	loop_timer_cancel(&clt->held_timer);
	dev_watch_stop(clt);
	dev_life_close(clt);
	if (clt->resumed)
		dev_close(clt->resumed);
	clt->resumed = NULL;
	client_tell_closed(clt);
	if (!list_empty(&clt->devs))
		loop_timer_set(clt->sess.loop, &clt->close_timer, clock_now_ms() + CLOSE_MS);
}

/* clt_sess_init(), with the next uuid of the lineage of conf->kept. */
static int sess_init(struct client *clt, struct loop *loop, const struct clt_sess_conf *conf,
		     const struct clt_sess_ops *ops)
{
	struct clt_sess_conf next = *conf;
	uint8_t uuid[RTRS_UUID_LEN];

	if (conf->kept) {
		client_kept_next(conf->kept, uuid);
		next.uuid = uuid;
	}
	return clt_sess_init(&clt->sess, loop, &next, ops);
}

int client_init(struct client *clt, struct loop *loop, const struct clt_sess_conf *conf)
{
	static const struct clt_sess_ops ops = {
		dev_handshake_start, path_up, path_away, path_failed, path_closed,
	};
	int r;

	memset(clt, 0, sizeof(*clt));
	clt->result = CLT_AGAIN;
	clt->kind = conf->path.once ? CLIENT_PROBES : CLIENT_STAYS;
	clt->kept = conf->path.once ? NULL : conf->kept;
	list_init(&clt->devs);
	list_init(&clt->ctl_line);
	clt_wait_init(&clt->event, conf->wait, NULL);
	clt_wait_init(&clt->away_event, conf->wait, NULL);
	dev_init(clt);
	dev_life_init(clt);
	loop_timer_init(&clt->close_timer, close_timer);
	loop_timer_init(&clt->patience_timer, patience_timer);
	loop_timer_init(&clt->held_timer, held_timer);
	loop_msg_init(&clt->start_msg, start_msg);
	loop_msg_init(&clt->close_msg, close_msg);
	loop_msg_init(&clt->patience_msg, patience_msg);
	clt->greeting = calloc(1, sizeof(*clt->greeting));
	clt->probe = calloc(1, DEV_PROBE_BYTES);
	r = clt->greeting && clt->probe ? 0 : -ENOMEM;
	if (r == 0) {
		dev_ctl_init(clt->greeting, clt, NULL);
		r = sess_init(clt, loop, conf, &ops);
	}
	if (r == 0 && clt->kept) {
		r = dev_resume(clt);
		if (r < 0)
			clt_sess_fini(&clt->sess);
	}
	if (r < 0) {
		free(clt->probe);
		free(clt->greeting);
		return r;
	}
	pthread_mutex_init(&clt->lock, NULL);
	loop_post(loop, &clt->start_msg);
	return 0;
}

int client_wait_up(struct client *clt)
{
	for (;;) {
		int r;

		pthread_mutex_lock(&clt->lock);
		r = clt->result;
		pthread_mutex_unlock(&clt->lock);
		if (r != CLT_AGAIN)
			return r;
		clt_wait_event(&clt->event);
	}
}

void client_close_start(struct client *clt)
{
	loop_post(clt->sess.loop, &clt->close_msg);
}

bool client_closed(struct client *clt)
{
	LOCK_SCOPE(&clt->lock);
	return clt->state == CLIENT_CLOSED;
}

void client_close(struct client *clt)
{
	client_close_start(clt);
	while (!client_closed(clt))
		clt_wait_event(&clt->event);
}

bool client_wait_away(struct client *clt)
{
	for (;;) {
		bool away, closed;

		pthread_mutex_lock(&clt->lock);
		away = clt->away;
		closed = clt->state == CLIENT_CLOSED;
		pthread_mutex_unlock(&clt->lock);
		if (away || closed)
			return !closed;
		clt_wait_event(&clt->away_event);
	}
}

int client_accept(struct client *clt)
{
	const bool machine = clt->place != CLIENT_PLACE_KEPT;
	bool any = machine;
	struct dev *dev;

	list_for_each(dev, &clt->devs, link) {
		const bool file = dev_has_other_file(dev);

		if (file || (machine && dev_is_in(dev, DEV_IN_USE)))
			dev->file = DEV_FILE_ANY;
		any |= file;
	}
	if (machine)
		clt->place = CLIENT_PLACE_GIVEN;
	return any ? 0 : -ENOENT;
}

void client_lose_patience(struct client *clt)
{
	loop_post(clt->sess.loop, &clt->patience_msg);
}

void client_fini(struct client *clt)
{
	clt_sess_fini(&clt->sess);
	free(clt->watch);
	free(clt->probe);
	free(clt->greeting);
	pthread_mutex_destroy(&clt->lock);
}
