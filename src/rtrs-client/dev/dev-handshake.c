/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the handshake of a path: the table of its states, and the actions of the rows.  A path that
 * begins an epoch sends SESS_INFO, then an OPEN for each device.  A path that joins an epoch sends
 * SESS_INFO alone.  dev-fsm.h tells the place of rounds of authentication.
 *
 * Service thread.  A session has at most one path in its handshake (clt-sess.h).  The handshake
 * has at most one message under way, whose end comes before the next handshake.  A handshake ends
 * with clt_epoch_opened(), with clt_epoch_refuse(), or with its path. */
#define FSM_PREFIX DEV_HANDSHAKE_

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dev-priv.h"

static void handshake_event(struct client *clt, enum dev_handshake_event event)
{
	fsm_run(&dev_handshake_fsm, clt->sess.name, &clt->handshake, event, clt);
}

/* ---- messages ---- */

/* The message under way has ended. */
static void message_ended(struct dev_ctl *ctl)
{
	struct client *clt = ctl->clt;
	bool closed = clt_sess_is_closed(&clt->sess), waits = clt->start_waits;
	bool lost = ctl->op.status == -ECONNABORTED || closed || waits;

	clt->start_waits = false;
	handshake_event(clt, lost ? DEV_HANDSHAKE_EV_LOST : DEV_HANDSHAKE_EV_ANSWER);
	/* The path that waited may have gone as well: then the next one is announced. */
	if (waits && !closed && clt->sess.opening)
		handshake_event(clt, DEV_HANDSHAKE_EV_START);
}

static void handshake_refuse(struct client *clt, int err, const char *why)
{
	handshake_event(clt, DEV_HANDSHAKE_EV_REFUSED);
	clt_epoch_refuse(&clt->sess, err, why);
}

static void handshake_refuse_info(struct client *clt, int r)
{
	char why[128];

	snprintf(why, sizeof(why), "SESS_INFO: %s", strerror(-r));
	handshake_refuse(clt, r, why);
}

/* ---- the next event ---- */

/* The next device to open in this epoch, or NULL. */
static struct dev *next_device(struct client *clt)
{
	struct dev *dev;

	list_for_each(dev, &clt->devs, link) {
		if (!dev->ctl.done && dev->tried_epoch != clt_sess_epoch(&clt->sess) &&
		    dev_is_in(dev, DEV_IN_USE))
			return dev;
	}
	return NULL;
}

static bool may_hide_loss(const struct client *clt)
{
	struct dev *dev;

	list_for_each(dev, &clt->devs, link) {
		if (dev_greet_behind_open(dev))
			return true;
	}
	return false;
}

static void refuse_files(struct client *clt)
{
	const char *why = "not the server that had the exports";
	struct dev *dev;

	list_for_each(dev, &clt->devs, link) {
		if (dev_has_other_file(dev) && clt->met.features & RNBD_EXT_SHARED)
			why = "not the server that had the exports: it has another disk or image "
			      "under the name of a shared one";
		else if (dev_has_other_file(dev))
			why = "not the server that had the exports; if it has copies of them: "
			      "rtrsctl server accept";
	}
	handshake_refuse(clt, -ESTALE, why);
}

/* A session with several paths refuses a server without any of the devices' files: the path leads
 * to another server than before.  The path to the lost server can still come up, and no write
 * counts as lost. */
static void handshake_next(struct client *clt)
{
	if (next_device(clt))
		handshake_event(clt, DEV_HANDSHAKE_EV_DEVICE);
	else if (clt->files == CLIENT_FILES_OTHER && clt->sess.io.natts > 1)
		refuse_files(clt);
	else if (clt->met.valid && may_hide_loss(clt))
		handshake_event(clt, DEV_HANDSHAKE_EV_UNSURE);
	else
		handshake_event(clt, DEV_HANDSHAKE_EV_READY);
}

/* ---- actions: messages ---- */

/* Does the path join the epoch of other paths? */
static bool joins(const struct client *clt)
{
	return clt->sess.stage == CLT_OPENING_JOINS;
}

static void admit_path(void *object)
{
	handshake_event(object, joins(object) ? DEV_HANDSHAKE_EV_JOIN : DEV_HANDSHAKE_EV_BEGIN);
}

static void greet_server(void *object)
{
	struct client *clt = object;

	clt->files = CLIENT_FILES_UNSEEN;
	dev_greet(clt->greeting, CLT_OP_HANDSHAKE, message_ended);
}

static void greet_server_again(void *object)
{
	struct client *clt = object;

	dev_greet(clt->greeting, CLT_OP_HANDSHAKE, message_ended);
}

static void greet_to_join(void *object)
{
	struct client *clt = object;

	dev_greet(clt->greeting, CLT_OP_JOIN, message_ended);
}

static void open_device(void *object)
{
	struct client *clt = object;

	clt->opens = next_device(clt);
	clt->opens->tried_epoch = clt_sess_epoch(&clt->sess);
	dev_ctl_open(&clt->opens->ctl, CLT_OP_HANDSHAKE, message_ended);
}

/* A path that has gone since the last answer is no longer there: the message ends as LOST. */
static void probe(struct client *clt, enum rtrs_dir dir)
{
	struct clt_path *path = clt->sess.opening;
	uint32_t len = MIN(atomic_load(&clt->sess.io.max_io_size), DEV_PROBE_BYTES);

	if (path) {
		len = MIN(len, path->att.max_io);
		clt_path_probes(path, len);
	}
	dev_ctl_probe(clt->greeting, dir, clt->probe, len,
		      joins(clt) ? CLT_OP_JOIN : CLT_OP_HANDSHAKE, message_ended);
}

static void probe_to_server(void *object)
{
	probe(object, RTRS_DIR_WRITE);
}

static void probe_from_server(void *object)
{
	probe(object, RTRS_DIR_READ);
}

/* ---- actions: answers ---- */

/* True if the server that says @ext may have the exports of the server of the last epoch.  The
 * answers to the OPENs tell whether it has them. */
static bool may_take_over(const struct client *clt, const struct rnbd_ext *ext)
{
	return ext->valid && (clt->epoch_features & ext->features & RNBD_EXT_SHARED);
}

/* The addresses of a session's paths may differ, and a name may move, but all lead to one server,
 * or to servers that share exports.  A path to another machine is a mistake in a cable or a name; a
 * device opened on the other machine has other data under the same name, unless the administrator
 * says that it is a copy. */
static bool is_another_machine(const struct client *clt, const struct rnbd_ext *ext)
{
	if (clt->place == CLIENT_PLACE_GIVEN && ext->host == clt->other_host)
		return false;
	return clt->host && ext->host && clt->host != ext->host;
}

/* What the administrator has accepted before is another one, or this one after all. */
static void refuse_machine(struct client *clt)
{
	clt->other_host = clt->met.host;
	clt->place = CLIENT_PLACE_TAKEN;
	handshake_refuse(clt, -ESTALE, "another machine than the paths led to before; if it is a "
			 "copy of the former server: rtrsctl server accept");
}

/* True if the server that says @ext answers PROBE. */
static bool is_probed(const struct rnbd_ext *ext)
{
	return ext->valid && ext->features & RNBD_EXT_PROBE;
}

/* Begin with digests on the path of the server that says clt->met, if they are wanted.  False: the
 * server has none, and the path is refused. */
static bool begin_digests(struct client *clt)
{
	if (clt->sess.path_conf.digest == RTRS_DIGEST_NONE)
		return true;
	if (!clt->met.valid || !(clt->met.features & RNBD_EXT_DIGEST)) {
		handshake_refuse(clt, -EOPNOTSUPP, "digest=crc32c: the server has no digests (a "
				 "kernel's, an older rtrs-server, or one built without ISA-L): "
				 "expected another server, or digest=none");
		return false;
	}
	/* The path may have gone since. */
	if (clt->sess.opening)
		clt->sess.opening->att.digest = CLT_DIGEST_ON;
	return true;
}

static void meet_server(void *object)
{
	struct client *clt = object;
	int r = dev_greet_who(clt->greeting, &clt->met);

	if (r < 0) {
		handshake_refuse_info(clt, r);
		return;
	}
	if (is_another_machine(clt, &clt->met) && !may_take_over(clt, &clt->met)) {
		refuse_machine(clt);
		return;
	}
	if (!begin_digests(clt))
		return;
	dev_greet_use(clt, &clt->met);
	if (is_probed(&clt->met))
		handshake_event(clt, DEV_HANDSHAKE_EV_PROBE);
	else
		handshake_next(clt);
}

/* The device may be gone when this returns: it was CLOSING. */
static void take_answer(struct client *clt)
{
	struct dev *dev = clt->opens;

	clt->opens = NULL;
	dev_life_answer(dev, dev_reopen_answer(&dev->ctl));
}

static void take_device(void *object)
{
	take_answer(object);
	handshake_next(object);
}

static void meet_server_again(void *object)
{
	struct client *clt = object;
	int r = dev_greet_answer(clt->greeting, &clt->met);

	if (r < 0)
		handshake_refuse_info(clt, r);
	else
		handshake_event(clt, DEV_HANDSHAKE_EV_READY);
}

/* A path that leads to the server of the session; NULL: none is up any more. */
static const struct clt_path *path_that_is_up(struct client *clt)
{
	struct clt_path *path;

	clt_sess_for_each(path, &clt->sess) {
		if (!path->removed && clt_attempt_is_up(&path->att))
			return path;
	}
	return NULL;
}

/* True if of two servers, that of the epoch and the one that says @ext, one alone has exports that
 * others have, too. */
static bool one_shares(const struct client *clt, const struct rnbd_ext *ext)
{
	return ext->valid && (clt->epoch_features ^ ext->features) & RNBD_EXT_SHARED;
}

static void refuse_server(struct client *clt)
{
	const struct clt_path *up = path_that_is_up(clt);
	const char *todo = one_shares(clt, &clt->met) ?
		"one of the two servers alone has shared=yes" :
		"one of these addresses is wrong (a disk of another server has a gateway of its "
		"own)";
	char why[CLT_WHY];

	snprintf(why, sizeof(why), "not the server that the other paths lead to%s%s: %s",
		 up ? ", as " : "", up ? clt_path_name(up) : "", todo);
	handshake_refuse(clt, -ESTALE, why);
}

/* Two addresses may be the addresses of two servers, or of a server that was started again.
 * Kernels send no instance. */
static void compare_servers(struct client *clt, const struct rnbd_ext *ext)
{
	if (ext->instance != clt->instance && may_take_over(clt, ext))
		handshake_event(clt, DEV_HANDSHAKE_EV_OTHER);
	else if (ext->instance != clt->instance)
		refuse_server(clt);
	else
		handshake_event(clt, DEV_HANDSHAKE_EV_SAME);
}

static void meet_to_join(void *object)
{
	struct client *clt = object;
	int r = dev_greet_who(clt->greeting, &clt->met);

	if (r < 0)
		handshake_refuse_info(clt, r);
	else if (!begin_digests(clt))
		return;
	else if (is_probed(&clt->met))
		handshake_event(clt, DEV_HANDSHAKE_EV_PROBE);
	else
		compare_servers(clt, &clt->met);
}

/* True if the PROBE under way was answered well. */
static bool probe_passed(struct client *clt)
{
	int r = clt->greeting->op.status;
	char why[128];

	if (r == 0)
		return true;
	snprintf(why, sizeof(why), "PROBE: %s", strerror(-r));
	handshake_refuse(clt, r, why);
	return false;
}

static void take_probe(void *object)
{
	if (probe_passed(object))
		handshake_event(object, DEV_HANDSHAKE_EV_PROBE_BACK);
}

static void take_probe_back(void *object)
{
	struct client *clt = object;

	if (clt->sess.opening)
		clt_path_probes(clt->sess.opening, 0);
	if (!probe_passed(clt))
		return;
	if (joins(clt))
		compare_servers(clt, &clt->met);
	else
		handshake_next(clt);
}

/* ---- actions: the end ---- */

/* The devices are open again.  A request may have been given up behind the answer to its OPEN. */
static void begin_epoch(void *object)
{
	struct client *clt = object;
	struct dev *dev;

	dev_greet_believe(clt, &clt->met);
	list_for_each(dev, &clt->devs, link) {
		if (dev_is_in(dev, 1u << DEV_OPEN) && dev_unsettled(dev))
			dev_life_event(dev, DEV_EV_UNSETTLED);
		else if (dev_is_in(dev, 1u << DEV_REPLACED))
			dev_life_event(dev, DEV_EV_EPOCH);
	}
	clt_epoch_opened(&clt->sess);
}

static void join_epoch(void *object)
{
	clt_epoch_opened(&((struct client *)object)->sess);
}

static void stand_by(void *object)
{
	clt_epoch_stand_by(&((struct client *)object)->sess);
}

static void give_up_path(void *object)
{
	client_tell_closed(object);
}

static void give_up_opening(void *object)
{
	take_answer(object);
	give_up_path(object);
}

/* ---- the table ---- */

static const struct fsm_row rows[] = {
	/* The rows of rounds belong here (dev-fsm.h); RTRS has no rounds. */
	ROW(IN(IDLE), START, ADMITTED, admit_path),

	ROW(IN(ADMITTED), BEGIN, GREETS, greet_server),
	ROW(IN(GREETS), ANSWER, MET, meet_server),
	ROW(IN(MET), DEVICE, OPENS, open_device),
	ROW(IN(OPENS), ANSWER, MET, take_device),
	/* A sync may have failed between SESS_INFO and the OPEN of a device, which makes the server
	 * forget the failure (doc/decisions.md D13).  So the client asks for the identity again
	 * behind the OPENs, before requests go on.  A later failure stays latched, because the
	 * devices are open. */
	ROW(IN(MET), UNSURE, ASKS, greet_server_again),
	ROW(IN(ASKS), ANSWER, MET, meet_server_again),
	ROW(IN(MET), READY, IDLE, begin_epoch),

	ROW(IN(ADMITTED), JOIN, JOINS, greet_to_join),
	ROW(IN(JOINS), ANSWER, MET, meet_to_join),
	ROW(IN(MET), SAME, IDLE, join_epoch),
	ROW(IN(MET), OTHER, IDLE, stand_by),

	/* Small packets pass where large ones do not (a wrong MTU): a path that is up has carried
	 * data of full size in both directions. */
	ROW(IN(MET), PROBE, PROBES, probe_to_server),
	ROW(IN(PROBES), ANSWER, MET, take_probe),
	ROW(IN(MET), PROBE_BACK, PROBED, probe_from_server),
	ROW(IN(PROBED), ANSWER, MET, take_probe_back),

	ROW(IN(MET), REFUSED, IDLE, NULL),
	ROW(IN(GREETS) | IN(ASKS) | IN(JOINS) | IN(PROBES) | IN(PROBED), LOST, IDLE, give_up_path),
	ROW(IN(OPENS), LOST, IDLE, give_up_opening),
};

static const char *const states[DEV_HANDSHAKE_NSTATES] = {
	"idle", "admitted", "greets", "opens", "asks", "joins", "probes", "probed", "met",
};

static const char *const events[DEV_HANDSHAKE_NEVENTS] = {
	"start", "begin", "join", "answer", "lost", "probe", "probe back", "device", "unsure",
	"ready", "same", "other", "refused",
};

const struct fsm dev_handshake_fsm = FSM("handshake", rows, states, events);

void dev_handshake_start(struct clt_sess *sess)
{
	struct client *clt = container_of(sess, struct client, sess);

	/* The last message for a path that has gone ends with its keys, perhaps behind the path. */
	clt->start_waits = atomic_load(&clt->handshake) != DEV_HANDSHAKE_IDLE;
	if (!clt->start_waits)
		handshake_event(clt, DEV_HANDSHAKE_EV_START);
}
