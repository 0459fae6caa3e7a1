/* SPDX-License-Identifier: BSD-3-Clause */
/* The OPENING of a session's paths, one path at a time (clt-sess.h).  A path begins an epoch, or
 * joins after the proof that the server still has the epoch.  Service thread.  Owns
 * clt_sess.opening and clt_sess.stage. */
#include <errno.h>

#include "clt-sess.h"
#include "log.h"

/* Adopt limits that all paths can carry: @att, which comes up, and the paths that are up, unless
 * @att @begins the epoch. */
static void epoch_adopt(struct clt_sess *sess, const struct clt_attempt *att, bool begins)
{
	unsigned limit = atomic_load(&sess->io.slots.limit),
		depth = MIN(att->depth, sess->io.slots.n);
	uint32_t max_io = atomic_load(&sess->io.max_io_size);

	if (begins || att->max_io < max_io)
		atomic_store(&sess->io.max_io_size, att->max_io);
	if (begins && limit > depth)
		log_warn(sess->name, "the path came back with queue depth %u instead of %u", depth,
			 limit);
	if (begins || depth < limit)
		clt_slot_limit(&sess->io, depth);
}

/* The most requests that all paths that are up can carry, and @att, if it is not NULL. */
static unsigned epoch_depth(struct clt_sess *sess, const struct clt_attempt *att)
{
	unsigned depth = att ? MIN(att->depth, sess->io.slots.n) : sess->io.slots.n;
	struct clt_path *path;

	clt_sess_for_each(path, sess) {
		if (clt_attempt_is_up(&path->att))
			depth = MIN(depth, path->att.depth);
	}
	return depth;
}

static void epoch_begin(struct clt_sess *sess)
{
	sess->stage = CLT_OPENING_BEGINS;
	/* Nothing of the previous epoch is left on the server, because the last path of that epoch
	 * drained before this path connected.  If the last path drained while this path was
	 * connecting, a server that has not noticed keeps the session, which does no harm. */
	sess->io.epoch++;
	epoch_adopt(sess, &sess->opening->att, true);
	sess->ops->opening(sess);
}

static void epoch_ask(struct clt_sess *sess)
{
	struct clt_path *path;

	sess->stage = CLT_OPENING_PROVES;
	clt_sess_for_each(path, sess) {
		if (clt_attempt_is_up(&path->att))
			sess->asked[path->att.index] = clt_path_ask(path);
	}
}

/* Has some path answered a heartbeat of epoch_ask()? */
static bool epoch_proved(struct clt_sess *sess)
{
	struct clt_path *path;

	clt_sess_for_each(path, sess) {
		if (clt_attempt_is_up(&path->att) &&
		    clt_path_answered(path, sess->asked[path->att.index]))
			return true;
	}
	return false;
}

static struct clt_path *epoch_next_path(struct clt_sess *sess)
{
	struct clt_path *path;

	clt_sess_for_each(path, sess) {
		if (clt_path_state(path) == CLT_PATH_OPENING)
			return path;
	}
	return NULL;
}

static void epoch_want_standbys(struct clt_sess *sess)
{
	struct clt_path *path;

	clt_sess_for_each(path, sess)
		clt_path_wanted(path);
}

void clt_epoch_go_on(struct clt_sess *sess)
{
	bool holds = clt_sess_any(sess, clt_path_holds);

	if (sess->stage == CLT_OPENING_PROVES && !holds &&
	    atomic_load(&sess->opening->att.state) == CLT_PATH_OPENING)
		epoch_begin(sess);
	if (sess->stage != CLT_OPENING_NONE)
		return;
	/* While the last path is on the way down, the epoch has not ended, and no path can be
	 * joined. */
	if (holds && !clt_sess_is_up(sess))
		return;
	sess->opening = epoch_next_path(sess);
	if (!sess->opening && !holds) {
		epoch_want_standbys(sess);
		sess->opening = epoch_next_path(sess);
	}
	if (!sess->opening)
		return;
	if (!holds) {
		epoch_begin(sess);
		return;
	}
	sess->stage = CLT_OPENING_JOINS;
	/* ORDER: the message to the server, which may have a shorter queue than the others, has a
	 * permit. */
	clt_slot_limit(&sess->io, epoch_depth(sess, &sess->opening->att));
	sess->ops->opening(sess);
}

static void next_msg(struct loop_msg *msg)
{
	struct clt_sess *sess = container_of(msg, struct clt_sess, next_msg);

	if (sess->stage == CLT_OPENING_LEAVES)
		sess->stage = CLT_OPENING_NONE;
	clt_epoch_go_on(sess);
}

void clt_epoch_left(struct clt_sess *sess, const struct clt_path *path)
{
	if (path == sess->opening) {
		/* The queue of a path that has not joined counts no more. */
		if (sess->stage != CLT_OPENING_BEGINS && clt_sess_is_up(sess))
			clt_slot_limit(&sess->io, epoch_depth(sess, NULL));
		sess->opening = NULL;
		sess->stage = CLT_OPENING_LEAVES;
		/* ORDER: @next_msg comes behind the messages of the calls for @path, which have
		 * been given back by now, but for a call whose key ends later: the user's
		 * handshake waits for that one.  For another path @next_msg may have been posted
		 * before those messages. */
		loop_unpost(sess->loop, &sess->next_msg);
	}
	if (atomic_load(&sess->io.state) < CLT_SESS_CLOSING)
		loop_post(sess->loop, &sess->next_msg);
}

void clt_epoch_alive(struct clt_sess *sess)
{
	if (sess->stage == CLT_OPENING_PROVES && epoch_proved(sess))
		clt_path_opened(sess->opening);
}

void clt_epoch_init(struct clt_sess *sess)
{
	loop_msg_init(&sess->next_msg, next_msg);
}

/* ---- for the upper layer ---- */

void clt_epoch_opened(struct clt_sess *sess)
{
	if (sess->stage == CLT_OPENING_BEGINS) {
		clt_path_opened(sess->opening);
		/* The server of this epoch may be theirs. */
		epoch_want_standbys(sess);
	} else if (sess->stage == CLT_OPENING_JOINS) {
		epoch_adopt(sess, &sess->opening->att, false);
		epoch_ask(sess);
		clt_epoch_go_on(sess);	/* no path may be left to ask */
	}
}

void clt_epoch_stand_by(struct clt_sess *sess)
{
	if (sess->stage == CLT_OPENING_JOINS)
		clt_path_stand_by(sess->opening);
}

void clt_epoch_refuse(struct clt_sess *sess, int err, const char *cause)
{
	if (sess->opening)
		clt_path_fail(sess->opening, err, cause);
}

static bool path_is_failing(struct clt_path *path)
{
	return clt_path_state(path) == CLT_PATH_FAILING;
}

int clt_epoch_bound(struct clt_sess *sess, unsigned epoch)
{
	if (epoch != sess->io.epoch)
		return -ECONNABORTED;
	if (clt_sess_is_up(sess))
		return 0;
	/* The epoch begins, or the service loop has not heard yet of the loss of the last path. */
	return sess->stage == CLT_OPENING_BEGINS || clt_sess_any(sess, path_is_failing) ?
		CLT_AGAIN : -ECONNABORTED;
}
