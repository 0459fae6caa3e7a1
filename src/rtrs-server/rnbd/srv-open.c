/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the OPENs that wait; control thread.  An OPEN ends in srv_req_finish_control(), once;
 * errors are answers.  A closing handle (srv-open.h) still counts for sharing (doc/protocol.md
 * 8.7).
 *   - An OPEN first waits for a look at the path of the export, and for the present size
 *     (srv-size.c).
 *   - An OPEN that only a closing handle forbids waits for the end of this handle, at most
 *     SRV_OPEN_TIMEOUT.
 *   - So does an OPEN by the next process of the client of that handle, in any mode
 *     (doc/decisions.md D27).
 *   - An OPEN of an export that is opened again after a failed sync waits likewise, and so does an
 *     OPEN of an export whose path names other storage than before (export-retry.h).
 *   - A session that comes back takes the closing handles up again: the fence (srv-fence.h) orders
 *     the requests that the client sends again.
 *   - A kernel's client does not send requests again, and writes the same sectors under other
 *     buf_ids.  So the OPEN waits until the handle has closed, and the storage is done, without a
 *     limit: a kernel would not try again. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "export-retry.h"
#include "export.h"
#include "exports.h"
#include "log.h"
#include "srv-allow.h"
#include "srv-open.h"
#include "srv-rnbd-state.h"
#include "srv-sess.h"
#include "store-lead.h"
#include "util.h"

static struct log_limit open_limit = LOG_LIMIT_INIT(20, 10000);

/* The result of a try to open. */
enum open_result {
	OPEN_ANSWERED,			/* the answer is on its way */
	OPEN_UNSETTLED,			/* a handle is lost, of a client that sends nothing again */
	OPEN_CLOSING,			/* only a closing handle is in the way */
	OPEN_STORAGE,			/* the storage is being opened, or taken from a server */
	OPEN_BAD_NAME,
	OPEN_MISSING,
	OPEN_FORBIDDEN,			/* as if missing */
	OPEN_LATER,			/* the storage is missing, and may come */
	OPEN_READ_ONLY,			/* for all clients */
	OPEN_READER,			/* for this client */
	OPEN_IN_USE,
	OPEN_NOT_LEADER,		/* another server keeps the lock of the storage */
	OPEN_NO_MEMORY,
};

/* What becomes of the OPEN: it waits at most @wait_ms, 0: not at all, and is refused then. */
static const struct {
	uint64_t wait_ms;
	int err;			/* 0: of @refusal, or store_lead_error() */
	enum srv_refusal reason;
	enum rnbd_refusal refusal;	/* for a client that knows reasons */
} policies[] = {
	[OPEN_UNSETTLED] = { CLOCK_NEVER, -EPERM, SRV_REFUSED_IN_USE },
	[OPEN_CLOSING] = { SRV_OPEN_TIMEOUT, 0, SRV_REFUSED_IN_USE, RNBD_REFUSES_CLOSING },
	[OPEN_STORAGE] = { SRV_OPEN_TIMEOUT, 0, SRV_REFUSED_OPEN, RNBD_REFUSES_OPENING },
	[OPEN_BAD_NAME] = { 0, -EINVAL, SRV_REFUSED_OPEN },
	[OPEN_MISSING] = { 0, -ENOENT, SRV_REFUSED_MISSING },
	[OPEN_FORBIDDEN] = { 0, -ENOENT, SRV_REFUSED_RIGHTS },
	[OPEN_LATER] = { 0, -ENODEV, SRV_REFUSED_STORAGE },
	[OPEN_READ_ONLY] = { 0, 0, SRV_REFUSED_READ_ONLY, RNBD_REFUSES_READ_ONLY },
	[OPEN_READER] = { 0, 0, SRV_REFUSED_READ_ONLY, RNBD_REFUSES_READER },
	[OPEN_IN_USE] = { 0, 0, SRV_REFUSED_IN_USE, RNBD_REFUSES_WRITER },
	[OPEN_NOT_LEADER] = { 0, 0, SRV_REFUSED_OPEN },
	[OPEN_NO_MEMORY] = { 0, -ENOMEM, SRV_REFUSED_OPEN },
};

static void put_export_id(const struct srv_rnbd *rnbd, const struct export *ex, uint8_t id[8])
{
	/* Another host that has a shared export tells the same id. */
	uint64_t host = ex->spec.shared ? FNV1A_INIT : rnbd->host_id;
	uint64_t hash = fnv1a(host, &ex->ident, sizeof(ex->ident));

	for (unsigned i = 0; i < 8; i++)
		id[i] = (uint8_t)(hash >> 8 * i);
}

static void open_answer(struct srv_req *req, const struct srv_dev *dev)
{
	struct rnbd_dev_info info = dev->ex->geometry;
	struct rnbd_msg_open_rsp rsp;

	info.device_id = dev->id;
	info.nsectors = export_size(dev->ex) >> RNBD_SECTOR_SHIFT;
	put_export_id(srv_rnbd(req->path->srv), dev->ex, info.export_id);
	rnbd_open_rsp_encode(&rsp, &info);
	srv_result_put(req, &rsp, sizeof(rsp));
	srv_req_finish_control(req, 0);
}

/* True if a handle on the store of @ex is closing, or about to close with its session. */
static bool closing_handle(const struct srv *srv, const struct export *ex)
{
	struct srv_sess *sess;

	list_for_each(sess, &srv->sessions, link) {
		bool dying = srv_sess_dying(sess);

		srv_dev_for_each(dev, &srv_rnbd_sess(sess)->devs) {
			if (dev->ex->store == ex->store && (dying || dev->state != SRV_DEV_OPEN))
				return true;
		}
	}
	return false;
}

/* True if a session before @sess in its lineage has a handle on the store of @ex.  No path of it is
 * read any more: the handle closes when the storage is done with its requests. */
static bool earlier_handle(const struct srv_sess *sess, const struct export *ex)
{
	struct srv_sess *other;

	list_for_each(other, &sess->srv->sessions, link) {
		if (!srv_sess_is_earlier(other, sess))
			continue;
		srv_dev_for_each(dev, &srv_rnbd_sess(other)->devs) {
			if (dev->ex->store == ex->store)
				return true;
		}
	}
	return false;
}

static void export_reopened(void *arg)
{
	srv_open_retry(arg);
}

/* The store of @ex lets nobody in because of -errno @rc; 0: it does. */
static enum open_result result_of(const struct srv *srv, const struct export *ex, int rc)
{
	switch (rc) {
	case 0:
		return OPEN_ANSWERED;
	case -EAGAIN:
		return OPEN_STORAGE;
	case -EROFS:
		return OPEN_READ_ONLY;
	case -EPERM:
		return closing_handle(srv, ex) ? OPEN_CLOSING : OPEN_IN_USE;
	default:
		return OPEN_NOT_LEADER;
	}
}

/* export_acquire() that begins to reopen the store, if a failed sync makes this necessary, or to
 * take a shared store from another server. */
static enum open_result open_acquire(struct srv_sess *sess, struct export *ex,
				     enum rnbd_access_mode mode, bool force)
{
	struct srv_rnbd_sess *r = srv_rnbd_sess(sess);
	struct srv *srv = sess->srv;
	int rc;

	/* ORDER: before the lead is asked, which would take the lock from its owner. */
	if (mode != RNBD_ACCESS_RO && ex->spec.readonly)
		return OPEN_READ_ONLY;
	if (!store_lead_lets(ex, mode)) {
		if (force && !r->take_over_ms)
			r->take_over_ms = clock_now_ms();
		store_lead_want(ex->store, force, r->take_over_ms);
		return OPEN_STORAGE;
	}
	rc = export_acquire(ex, mode);
	if (rc == -EAGAIN && ex->store->reopen != EXPORT_REOPEN_RUNS) {
		export_io_reopen(srv_control(srv), ex, export_reopened, srv);
		rc = export_acquire(ex, mode);
	}
	return result_of(srv, ex, rc);
}

/* True if the client of @sess had the device open on another server, and lost its paths. */
static bool takes_over(const struct srv_sess *sess, const struct rnbd_open *open)
{
	return srv_rnbd_has(sess, RNBD_EXT_SHARED) && (open->flags & RNBD_OPEN_TAKE_OVER);
}

/* There is no export @name for @sess. */
static enum open_result open_missing(const struct srv_sess *sess, const char *name)
{
	const struct exports *exports = srv_rnbd(sess->srv)->exports;
	const struct export_retry *retry = export_retry_find(exports, name);
	const struct export *ex = exports_find(exports, name);

	if (retry && export_retry_is_bare(retry) && srv_allow_awaits(sess, name))
		return *retry->why ? OPEN_LATER : OPEN_STORAGE;
	return ex && srv_allow_refuses(sess, ex) ? OPEN_FORBIDDEN : OPEN_MISSING;
}

static void open_log(const struct srv_req *req, const struct srv_dev *dev, const char *done)
{
	const struct srv_sess *sess = req->path->sess;
	const char *mode = rnbd_access_names[dev->mode];
	char name[SRV_SESS_NAME_LEN];

	srv_log_access(sess->srv, &sess->client,
		       LOG_FIELDS(DEVICE_OPENED, .session = sess->name, .export = dev->ex->name,
				  .peer = req->path->name, .identity = sess->identity,
				  .mode = mode),
		       srv_sess_tell_name(sess, name, sizeof(name)), "device %u %s: %s, %s",
		       srv_dev_number(dev), done, dev->ex->name, mode);
}

/* A migration is short.  One that was forgotten has two machines write to one file system. */
static void warn_of_two_writers(const struct srv_req *req, const struct srv_dev *dev)
{
	const struct export *ex = dev->ex;

	if (dev->mode != RNBD_ACCESS_RO && ex->store->writers > 1)
		log_warn(ex->name, "%s is the second writer (mode=migration): nothing coordinates "
			 "their writes until one of them closes", req->path->name);
}

/* @ex as a device of the session, which has none.  @waited: the OPEN has. */
static enum open_result open_new(struct srv_req *req, const struct rnbd_open *open,
				 struct export *ex, bool waited)
{
	struct srv_sess *sess = req->path->sess;
	bool force = takes_over(sess, open);
	enum open_result result;
	struct srv_dev *dev;
	int rc = 0;

	if (earlier_handle(sess, ex))
		return OPEN_CLOSING;
	if (waited && !store_lead_lets(ex, open->mode))
		rc = store_lead_error(ex->store, force);
	result = rc ? result_of(sess->srv, ex, rc) : open_acquire(sess, ex, open->mode, force);
	if (result != OPEN_ANSWERED)
		return result;
	dev = srv_dev_open(&srv_rnbd_sess(sess)->devs, ex, open->mode);
	if (!dev) {
		export_release(ex, open->mode);
		store_lead_closed(ex->store);
		return OPEN_NO_MEMORY;
	}
	open_log(req, dev, "opened");
	warn_of_two_writers(req, dev);
	open_answer(req, dev);
	return OPEN_ANSWERED;
}

/* Try @open, which has @waited. */
static enum open_result open_try(struct srv_req *req, const struct rnbd_open *open, bool waited)
{
	struct srv_sess *sess = req->path->sess;
	struct srv_rnbd_sess *r = srv_rnbd_sess(sess);
	struct export *ex;
	struct srv_dev *dev;

	if (strstr(open->name, ".."))
		return OPEN_BAD_NAME;
	ex = srv_allow_find(sess, open->name);
	if (!ex)
		return open_missing(sess, open->name);
	if (open->mode != RNBD_ACCESS_RO && srv_allow_reads_only(sess, ex))
		return OPEN_READER;
	dev = srv_dev_find(&r->devs, ex);
	if (!dev)
		return open_new(req, open, ex, waited);
	if (dev->state == SRV_DEV_LOST && !r->resends)
		return OPEN_UNSETTLED;
	if (dev->state == SRV_DEV_LOST && dev->mode == open->mode && srv_dev_revive(dev))
		open_log(req, dev, "taken up again");
	if (dev->state != SRV_DEV_OPEN)
		return OPEN_CLOSING;
	open_answer(req, dev);
	return OPEN_ANSWERED;
}

/* Put "; SESSION/CLIENT@SERVER has it open as rw" into @buf for each writer of the store of @ex. */
static void name_writers(const struct srv *srv, const struct export *ex, char *buf, size_t len)
{
	char name[SRV_SESS_NAME_LEN];
	struct srv_sess *sess;
	size_t n = 0;

	buf[0] = '\0';
	list_for_each(sess, &srv->sessions, link) {
		const struct srv_path *path = list_empty(&sess->paths) ? NULL :
			list_entry(sess->paths.prev, struct srv_path, link);

		srv_dev_for_each(dev, &srv_rnbd_sess(sess)->devs) {
			if (dev->ex->store != ex->store || dev->mode == RNBD_ACCESS_RO || n >= len)
				continue;
			n += (size_t)snprintf(buf + n, len - n, "; %s%s has it open as %s",
					      path ? path->name :
					      srv_sess_tell_name(sess, name, sizeof(name)),
					      path ? "" : " (lost)",
					      rnbd_access_names[dev->mode]);
		}
	}
}

/* Put into @buf the path of @sess that the lists of @ex refuse, or let read only.  "": the lists do
 * not say why. */
static void name_refused(const struct srv_sess *sess, const struct export *ex,
			 enum open_result result, char *buf, size_t len)
{
	bool forbidden = result == OPEN_FORBIDDEN;
	const struct srv_path *path = !ex ? NULL :
		forbidden ? srv_allow_refuses(sess, ex) : srv_allow_reads_only(sess, ex);
	char text[FAB_ADDR_STRLEN];

	if (path)
		snprintf(buf, len, "; its %s %s%s%s",
			 forbidden ? "allow does not contain" : "read-only contains",
			 fab_addr_format_host(&path->client, text, sizeof(text)),
			 *path->identity ? ", " : "", path->identity);
}

/* -errno for a client whose OPEN has come to @result. */
static int open_error(const struct srv_sess *sess, const struct rnbd_open *open,
		      const struct export *ex, enum open_result result)
{
	if (policies[result].err)
		return policies[result].err;
	if (policies[result].refusal)
		return rnbd_refusal_errno(policies[result].refusal);
	return store_lead_error(ex->store, takes_over(sess, open));
}

/* What the client of @sess is answered for @rc, -errno of open_error(). */
static int open_status(const struct srv_sess *sess, enum open_result result, int rc)
{
	enum rnbd_refusal refusal = result == OPEN_NOT_LEADER && rc == -EBUSY ?
		RNBD_REFUSES_LOCKED : policies[result].refusal;

	if (refusal && srv_rnbd_has(sess, RNBD_EXT_REASON))
		return rnbd_refusal_to_wire(refusal);
	/* A client that does not know to come again takes EAGAIN for a failure of its own. */
	if (rc == -ENODEV && srv_rnbd_has(sess, RNBD_EXT_LATER))
		rc = -EAGAIN;
	return rnbd_errno_to_wire(rc);
}

static void open_failed(struct srv_req *req, const struct rnbd_open *open, enum open_result result)
{
	struct srv *srv = req->path->srv;
	char name[SRV_SESS_NAME_LEN];
	const char *session = srv_sess_tell_name(req->path->sess, name, sizeof(name));
	const struct export *ex = exports_find(srv_rnbd(srv)->exports, open->name);
	enum srv_refusal reason = policies[result].reason;
	char holders[512] = "", line[1024];
	int rc = open_error(req->path->sess, open, ex, result);

	srv->refused[reason]++;
	if (reason == SRV_REFUSED_IN_USE)
		name_writers(srv, ex, holders, sizeof(holders));
	else if (reason == SRV_REFUSED_RIGHTS || reason == SRV_REFUSED_READ_ONLY)
		name_refused(req->path->sess, ex, result, holders, sizeof(holders));
	snprintf(line, sizeof(line), "open of %s as %s refused: %s%s", open->name,
		 rnbd_access_names[open->mode], reason == SRV_REFUSED_STORAGE ?
		 "the server cannot open its storage now (rtrsctl check says why)" : strerror(-rc),
		 holders);
	srv_log_refusal(srv, &req->path->client, req->path->identity, open->name, line);
	/* A client whose OPEN waits for a writer to leave tries several times a second. */
	srv_log_again(&srv->log, &req->path->client, &open_limit, LOG_LEVEL_WARN,
		      LOG_FIELDS(OPEN_REFUSED, .session = req->path->sess->name,
				 .export = open->name, .peer = req->path->name,
				 .identity = req->path->sess->identity,
				 .mode = rnbd_access_names[open->mode],
				 .reason = srv_refusal_names[reason]),
		      session, line);
	srv_req_finish_control(req, open_status(req->path->sess, result, rc));
}

static void open_rearm(struct srv_rnbd *rnbd)
{
	uint64_t deadline_ms = CLOCK_NEVER;
	struct srv_req *req;

	loop_timer_cancel(&rnbd->open_timer);
	list_for_each(req, &rnbd->open_waiters, link)
		deadline_ms = MIN(deadline_ms, srv_rnbd_req(req)->deadline_ms);
	if (deadline_ms != CLOCK_NEVER)
		loop_timer_set(srv_loop(rnbd->srv), &rnbd->open_timer, deadline_ms);
}

/* @deadline_ms: the deadline of an OPEN that has waited already, or 0. */
static void open_or_wait(struct srv_req *req, uint64_t deadline_ms)
{
	struct srv_rnbd *rnbd = srv_rnbd(req->path->srv);
	struct rnbd_open open;
	uint64_t now = clock_now_ms(), wait_ms;
	enum open_result result;

	if (rnbd_open_decode(req->rtrs.usr, req->rtrs.usr_len, &open) ||
	    !srv_result_wanted(req, sizeof(struct rnbd_msg_open_rsp))) {
		srv_req_finish_control(req, -EINVAL);
		return;
	}
	result = open_try(req, &open, deadline_ms);
	if (result == OPEN_ANSWERED)
		return;
	wait_ms = policies[result].wait_ms;
	if (!wait_ms || (deadline_ms && deadline_ms <= now)) {
		open_failed(req, &open, result);
		return;
	}
	if (!deadline_ms)
		deadline_ms = wait_ms == CLOCK_NEVER ? CLOCK_NEVER : now + wait_ms;
	srv_rnbd_req(req)->deadline_ms = deadline_ms;
	list_add_tail(&rnbd->open_waiters, &req->link);
	open_rearm(rnbd);
}

void srv_open_retry(struct srv *srv)
{
	struct srv_rnbd *rnbd = srv_rnbd(srv);
	struct list again = LIST_INIT(again);
	struct list *l;

	list_splice_tail(&again, &rnbd->open_waiters);
	while ((l = list_pop(&again))) {
		struct srv_req *req = list_entry(l, struct srv_req, link);

		open_or_wait(req, srv_rnbd_req(req)->deadline_ms);
	}
	open_rearm(rnbd);
}

static void open_timeout(struct loop_timer *timer)
{
	srv_open_retry(container_of(timer, struct srv_rnbd, open_timer)->srv);
}

void srv_open_path_failed(struct srv_path *path)
{
	struct srv_rnbd *rnbd = srv_rnbd(path->srv);
	struct srv_req *req, *tmp;

	list_for_each_safe(req, tmp, &rnbd->open_waiters, link) {
		if (req->path != path)
			continue;
		list_del(&req->link);
		srv_req_finish_control(req, -ECONNABORTED);
	}
	open_rearm(rnbd);
}

static void open_sized(struct srv_size_waiter *w)
{
	struct srv_req *req = srv_sized_req(w);

	if (req->path->state == SRV_PATH_CONNECTED)
		open_or_wait(req, 0);
	else
		srv_req_finish_control(req, -ECONNABORTED);
}

/* The export that @req wants to open; NULL: none.  A malformed OPEN goes on to open_or_wait(),
 * which refuses the request. */
static struct export *open_export(struct srv_req *req)
{
	struct rnbd_open open;

	if (rnbd_open_decode(req->rtrs.usr, req->rtrs.usr_len, &open))
		return NULL;
	return srv_allow_find(req->path->sess, open.name);
}

/* An export that nobody had open, and whose path names another file, is off the list by now. */
static void open_size(struct srv_req *req)
{
	struct export *ex = open_export(req);

	if (!ex || srv_size_ask_for(req, ex, EXPORT_ASK_SIZE, open_sized))
		open_or_wait(req, 0);
}

static void open_named(struct srv_size_waiter *w)
{
	struct srv_req *req = srv_sized_req(w);

	if (req->path->state == SRV_PATH_CONNECTED)
		open_size(req);
	else
		srv_req_finish_control(req, -ECONNABORTED);
}

void srv_open_request(struct srv_req *req)
{
	struct export *ex = open_export(req);

	if (!ex || srv_size_ask_for(req, ex, EXPORT_ASK_NAMED, open_named))
		open_size(req);
}

void srv_open_init(struct srv_rnbd *rnbd)
{
	list_init(&rnbd->open_waiters);
	loop_timer_init(&rnbd->open_timer, open_timeout);
}
