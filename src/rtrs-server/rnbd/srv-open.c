/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the OPENs that wait, and the end of handles; control thread.  A control message ends in
 * srv_req_finish_control(), once; errors are answers.
 *
 * A handle closes when its last reference has gone, after a CLOSE or after its session lost its
 * last path.  A closing handle still counts for sharing (doc/protocol.md 8.7).
 *   - An OPEN first waits for the size that its export has now (srv-size.h).
 *   - An OPEN that only a closing handle forbids waits for it, at most SRV_OPEN_TIMEOUT.
 *   - So does an OPEN of an export that is opened anew after a failed sync.
 *   - A session that comes back takes its closing handles up again: the fence (srv-fence.h) orders
 *     the requests that its client sends again.
 *   - A kernel's client does not send them again, and writes the same sectors under other buf_ids.
 *     So its OPEN waits until the handle has closed, and the storage is done, as long as that
 *     takes: a kernel would not try again. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "export.h"
#include "log.h"
#include "srv-open.h"
#include "srv-rnbd-state.h"
#include "srv-size.h"
#include "util.h"

#define for_each_dev(dev, table)                                                                   \
	for (struct srv_dev *dev = srv_dev_first(table); dev; dev = srv_dev_next(table, dev))

static struct log_limit open_limit = LOG_LIMIT_INIT(20, 10000);

/* Did the client ask for an answer of at least @len bytes? */
static bool wants_result(const struct srv_req *req, size_t len)
{
	return req->rtrs.has_desc && req->rtrs.data_len >= len;
}

/* The answer goes to the start of the request's chunk; all the client gets beyond @len is zero. */
static void put_result(struct srv_req *req, const void *rsp, size_t len)
{
	uint8_t *chunk = srv_chunk(&req->path->chunks, req->buf_id);

	memcpy(chunk, rsp, len);
	memset(chunk + len, 0, req->rtrs.data_len - len);
}

/* ---- SESS_INFO ---- */

/* The id that a client compares when it comes back: another boot of the host, or a loss since,
 * makes another id. */
static void put_boot_id(const struct srv_rnbd *rnbd, uint8_t id[SRV_IDENT_BOOT_LEN])
{
	uint64_t losses = exports_losses(rnbd->exports);

	memcpy(id, rnbd->boot_id, SRV_IDENT_BOOT_LEN);
	for (unsigned i = 0; i < SRV_IDENT_BOOT_LEN; i++)
		id[i] ^= (uint8_t)(losses >> 8 * i);
}

/* 24 bits of the host's hash, not 0.  A host that is another one after a reboot does not say which
 * it is. */
static uint32_t host_told(const struct srv_rnbd *rnbd)
{
	uint64_t id = rnbd->host_id;
	uint32_t host = (uint32_t)(id ^ id >> 24 ^ id >> 48) & 0xffffff;

	return !rnbd->host_lasts ? 0 : host ? host : 1;
}

void srv_open_sess_info(struct srv_req *req)
{
	const struct srv_rnbd *rnbd = srv_rnbd(req->path->srv);
	struct srv_rnbd_sess *sess = srv_rnbd_sess(req->path->sess);
	struct rnbd_sess_info info;
	struct rnbd_msg_sess_info rsp;
	int rc = rnbd_sess_info_decode(req->rtrs.usr, req->rtrs.usr_len, &info);

	if (rc || !wants_result(req, sizeof(rsp))) {
		srv_req_finish_control(req, -EINVAL);
		return;
	}
	sess->resends = info.ext.valid;
	atomic_store(&sess->features, info.ext.valid ? info.ext.features : 0);
	info.ver = MIN(info.ver, (uint8_t)RNBD_PROTO_VER_MAJOR);
	atomic_store(&sess->ver, info.ver);
	if (info.ext.valid) {
		info.ext.features = RNBD_EXT_ALL;
		info.ext.instance = rnbd->instance;
		info.ext.host = host_told(rnbd);
		put_boot_id(rnbd, info.ext.boot_id);
	}
	rnbd_sess_info_encode(&rsp, RNBD_MSG_SESS_INFO_RSP, &info);
	put_result(req, &rsp, sizeof(rsp));
	srv_req_finish_control(req, 0);
}

/* ---- OPEN ---- */

static void put_export_id(const struct srv_rnbd *rnbd, const struct export *ex, uint8_t id[8])
{
	uint64_t hash = fnv1a(rnbd->host_id, &ex->ident, sizeof(ex->ident));

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
	put_result(req, &rsp, sizeof(rsp));
	srv_req_finish_control(req, 0);
}

/* Is there a handle on the file of @ex that is closing, or about to be with its session? */
static bool closing_handle(const struct srv *srv, const struct export *ex)
{
	struct srv_sess *sess;

	list_for_each(sess, &srv->sessions, link) {
		bool dying = srv_sess_dying(sess);

		for_each_dev(dev, &srv_rnbd_sess(sess)->devs) {
			if (dev->ex->first == ex->first && (dying || dev->state != SRV_DEV_OPEN))
				return true;
		}
	}
	return false;
}

static void opened_anew(void *arg)
{
	srv_open_retry(arg);
}

/* As export_acquire(); begins what has to be done before. */
static int acquire(struct srv *srv, struct export *ex, enum rnbd_access_mode mode)
{
	int rc = export_acquire(ex, mode);

	if (rc != -EAGAIN || ex->first->anew == EXPORT_ANEW_RUNS)
		return rc;
	export_io_anew(srv_control(srv), ex, opened_anew, srv);
	return export_acquire(ex, mode);
}

static void dev_quiet(struct loop_msg *msg);

/* 0: the answer is on its way.  -EAGAIN: wait for a handle that is closing, for *@wait_ms at most.
 * -EINPROGRESS: wait for the storage.  Else the answer. */
static int open_try(struct srv_req *req, const struct rnbd_open *open, uint64_t *wait_ms)
{
	struct srv_sess *sess = req->path->sess;
	struct srv_rnbd_sess *r = srv_rnbd_sess(sess);
	struct export *ex;
	struct srv_dev *dev;
	int rc;

	*wait_ms = SRV_OPEN_TIMEOUT;
	if (strstr(open->name, ".."))
		return -EINVAL;
	ex = exports_find(srv_rnbd(sess->srv)->exports, open->name);
	if (!ex)
		return -ENOENT;
	dev = srv_dev_find(&r->devs, ex);
	if (dev && dev->state == SRV_DEV_LOST && !r->resends)
		*wait_ms = CLOCK_NEVER;
	else if (dev && dev->state == SRV_DEV_LOST && dev->mode == open->mode &&
		 srv_dev_revive(dev))
		srv_log_access(sess->srv, &sess->client, sess->name,
			       "device %u taken up again: %s, %s", srv_dev_number(dev), ex->name,
			       rnbd_access_names[dev->mode]);
	if (dev && dev->state != SRV_DEV_OPEN)
		return -EAGAIN;
	if (!dev) {
		rc = acquire(sess->srv, ex, open->mode);
		if (rc == -EAGAIN)
			return -EINPROGRESS;
		if (rc)
			return rc == -EPERM && closing_handle(sess->srv, ex) ? -EAGAIN : rc;
		dev = srv_dev_open(&r->devs, ex, open->mode, dev_quiet);
		if (!dev) {
			export_release(ex, open->mode);
			return -ENOMEM;
		}
		srv_log_access(sess->srv, &sess->client, sess->name, "device %u opened: %s, %s",
			       srv_dev_number(dev), ex->name, rnbd_access_names[open->mode]);
	}
	open_answer(req, dev);
	return 0;
}

/* "; SESSION/CLIENT@SERVER has it open as rw" for each writer of the file of @ex, in @buf. */
static void name_writers(const struct srv *srv, const struct export *ex, char *buf, size_t len)
{
	struct srv_sess *sess;
	size_t n = 0;

	buf[0] = '\0';
	list_for_each(sess, &srv->sessions, link) {
		const struct srv_path *path = list_empty(&sess->paths) ? NULL :
			list_entry(sess->paths.prev, struct srv_path, link);

		for_each_dev(dev, &srv_rnbd_sess(sess)->devs) {
			if (dev->ex->first != ex->first || dev->mode == RNBD_ACCESS_RO || n >= len)
				continue;
			n += (size_t)snprintf(buf + n, len - n, "; %s%s has it open as %s",
					      path ? path->name : sess->name, path ? "" : " (lost)",
					      rnbd_access_names[dev->mode]);
		}
	}
}

static void open_failed(struct srv_req *req, const struct rnbd_open *open, int rc)
{
	struct srv *srv = req->path->srv;
	const char *session = req->path->sess->name;
	char holders[512] = "", line[1024], times[64] = "";
	unsigned more;

	if (rc == -EPERM)
		name_writers(srv, exports_find(srv_rnbd(srv)->exports, open->name), holders,
			     sizeof(holders));
	snprintf(line, sizeof(line), "open of %s as %s refused: %s%s", open->name,
		 rnbd_access_names[open->mode], strerror(-rc), holders);
	/* A client that waits for a writer to leave asks several times a second. */
	if (srv_log_news(&srv->log, &req->path->client, &open_limit, session, line, &more)) {
		if (more)
			snprintf(times, sizeof(times), "; the same %u times more, not told", more);
		log_warn(session, "%s%s", line, times);
	}
	srv_req_finish_control(req, rnbd_errno_to_wire(rc));
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

/* @deadline_ms: of an OPEN that has waited already, or 0. */
static void open_or_wait(struct srv_req *req, uint64_t deadline_ms)
{
	struct srv_rnbd *rnbd = srv_rnbd(req->path->srv);
	struct rnbd_open open;
	uint64_t wait_ms;
	int rc = rnbd_open_decode(req->rtrs.usr, req->rtrs.usr_len, &open);

	if (rc || !wants_result(req, sizeof(struct rnbd_msg_open_rsp))) {
		srv_req_finish_control(req, -EINVAL);
		return;
	}
	rc = open_try(req, &open, &wait_ms);
	if (rc != -EAGAIN && rc != -EINPROGRESS) {
		if (rc)
			open_failed(req, &open, rc);
		return;
	}
	if (deadline_ms && deadline_ms <= clock_now_ms()) {
		open_failed(req, &open, rc == -EAGAIN ? -EPERM : -EIO);
		return;
	}
	if (!deadline_ms)
		deadline_ms = wait_ms == CLOCK_NEVER ? CLOCK_NEVER : clock_now_ms() + wait_ms;
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
	srv_size_path_failed(path);
}

static void open_sized(struct srv_req *req)
{
	if (req->path->state == SRV_PATH_CONNECTED)
		open_or_wait(req, 0);
	else
		srv_req_finish_control(req, -ECONNABORTED);
}

/* What is wrong with it is told by open_or_wait(). */
void srv_open_open(struct srv_req *req)
{
	struct rnbd_open open;
	struct export *ex = NULL;

	if (!rnbd_open_decode(req->rtrs.usr, req->rtrs.usr_len, &open))
		ex = exports_find(srv_rnbd(req->path->srv)->exports, open.name);
	if (!ex || srv_size_ask(req, ex, open_sized))
		open_or_wait(req, 0);
}

/* ---- CLOSE ---- */

static void dev_closed(struct srv_dev *dev)
{
	struct srv *srv = dev->sess->srv;
	struct list *l;

	srv_log_access(srv, &dev->sess->client, dev->sess->name, "device %u closed: %s",
		       srv_dev_number(dev), dev->ex->name);
	export_release(dev->ex, dev->mode);
	while ((l = list_pop(&dev->closers)))
		srv_req_finish_control(list_entry(l, struct srv_req, link), 0);
	srv_dev_free(dev);
	srv_open_retry(srv);
}

static void dev_quiet(struct loop_msg *msg)
{
	dev_closed(container_of(msg, struct srv_dev, quiet_msg));
}

void srv_open_close(struct srv_req *req)
{
	struct srv_dev *dev;
	uint32_t id;

	/* An answer with data would be whatever stands in the chunk. */
	if (rnbd_close_decode(req->rtrs.usr, req->rtrs.usr_len, &id) || req->rtrs.has_desc) {
		srv_req_finish_control(req, -EINVAL);
		return;
	}
	dev = srv_dev_by_id(&srv_rnbd_sess(req->path->sess)->devs, id);
	if (!dev) {
		srv_req_finish_control(req, 0);
		return;
	}
	list_add_tail(&dev->closers, &req->link);
	if (srv_dev_begin_close(dev, SRV_DEV_CLOSED))
		dev_closed(dev);
}

void srv_open_sess_lost(struct srv_sess *sess)
{
	for_each_dev(dev, &srv_rnbd_sess(sess)->devs) {
		if ((dev->state == SRV_DEV_OPEN || dev->state == SRV_DEV_KICKED) &&
		    srv_dev_begin_close(dev, SRV_DEV_LOST))
			dev_closed(dev);
	}
}

unsigned srv_open_kick(struct srv *srv, const struct export *ex)
{
	struct srv_sess *sess;
	unsigned n = 0;

	list_for_each(sess, &srv->sessions, link) {
		struct srv_dev *dev = srv_dev_find(&srv_rnbd_sess(sess)->devs, ex);

		if (!dev || dev->state != SRV_DEV_OPEN)
			continue;
		log_warn(sess->name, "device %u of %s is taken away", srv_dev_number(dev),
			 ex->name);
		n++;
		if (srv_dev_begin_close(dev, SRV_DEV_KICKED))
			dev_closed(dev);
	}
	return n;
}

void srv_open_init(struct srv_rnbd *rnbd)
{
	list_init(&rnbd->open_waiters);
	loop_timer_init(&rnbd->open_timer, open_timeout);
}
