/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing; control thread, the owner of everything shown but the counters (srv-ctl.h). */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "changes.h"
#include "cleanup.h"
#include "clock.h"
#include "conf-limits.h"
#include "ctl-json.h"
#include "export-retry.h"
#include "export.h"
#include "exports.h"
#include "fab-tls.h"
#include "srv-allow.h"
#include "srv-chunk.h"
#include "srv-con.h"
#include "srv-ctl.h"
#include "srv-export.h"
#include "srv-limit.h"
#include "srv-listen.h"
#include "srv-open.h"
#include "srv-path.h"
#include "srv-rnbd-state.h"
#include "srv-sess.h"
#include "srv-state.h"
#include "store-lead.h"

static json_t *srv_json_address(const struct fab_addr *addr)
{
	char text[FAB_ADDR_STRLEN];

	return ctl_json_text(fab_addr_format(addr, text, sizeof(text)));
}

/* The address without the port, which says nothing and changes with each reconnect. */
static json_t *srv_json_host(const struct fab_addr *addr)
{
	char text[FAB_ADDR_STRLEN];

	return ctl_json_text(fab_addr_format_host(addr, text, sizeof(text)));
}

/* ---- counters ---- */

static json_t *srv_json_path_stats(const struct srv_path *path)
{
	struct io_stat sum;

	srv_stat_path(path, &sum);
	return ctl_json_with(ctl_stat_io(&sum), json_pack("{s:I}", "inflight",
							  (json_int_t)srv_stat_inflight(path)));
}

static json_t *srv_json_export_stats(const struct srv *srv, const struct export *ex)
{
	struct srv_limit_stat waits;
	struct io_stat sum;

	srv_export_stat(srv_rnbd(srv), ex, &sum);
	srv_limit_stat(ex, &waits);
	return ctl_json_with(ctl_stat_io(&sum),
			     json_pack("{s:I,s:I}", "throttled_requests",
				       (json_int_t)waits.requests,
				       "throttled_ns", (json_int_t)waits.ns));
}

/* ---- exports ---- */

static json_t *srv_json_export_show(const struct export *ex)
{
	int error = export_sync_error(ex);

	return json_pack("{s:o,s:o,s:I,s:o,s:o,s:b,s:b,s:o,s:b,s:I,s:I,s:i,s:i,s:i}",
			 "storage", ctl_json_text(export_retry_word(ex)),
			 "path", ex->driver->prefix ? ctl_json_text(ex->path) :
				 ctl_path_json(ex->path),
			 "size", (json_int_t)export_size(ex),
			 "mode", ctl_json_text(ex->spec.readonly ? "ro" : "rw"),
			 "kind", ctl_json_text(ex->kind),
			 "direct", ex->direct,
			 "shared", ex->spec.shared,
			 "ana_state", ctl_json_text(store_lead_word(ex->store)),
			 "sync_failed", error != 0,
			 "waiting_ns", (json_int_t)export_waits_ns(ex),
			 "oldest_ns", (json_int_t)srv_export_of(ex)->oldest_ns,
			 "block_size", (int)ex->geometry.logical_block_size,
			 "users", (int)ex->store->users,
			 "writers", (int)ex->store->writers);
}

/* @object with "clients", if @ex is removed: those that have it open, and no other name of the same
 * storage. */
static json_t *srv_json_clients(json_t *object, const struct srv *srv, const struct export *ex)
{
	if (ex->life.rung == EXPORT_SHOWN)
		return object;
	return ctl_json_with(object, json_pack("{s:i}", "clients",
					       (int)srv_close_nopeners(srv, ex)));
}

/* The limits that @ex has: "limit_iops", "limit_bps_read", ... */
static json_t *srv_json_limits(const struct export *ex)
{
	const struct limits *limits = &srv_export_of(ex)->limit.limits;
	json_t *object = json_object();
	bool ok = true;

	for (unsigned i = 0; i < LIMITS && ok; i++) {
		char key[32];

		snprintf(key, sizeof(key), "limit_%s", limit_names[i]);
		for (char *c = key; *c; c++)
			*c = *c == '-' ? '_' : *c;
		ok = !limits->rate[i] ||
		     !json_object_set_new(object, key, json_integer((json_int_t)limits->rate[i]));
	}
	if (ok && conf_limits_any(limits))
		ok = !json_object_set_new(object, "limit_burst_ns",
					  json_integer((json_int_t)conf_limits_burst_ns(limits)));
	return ctl_json_whole(object, ok);
}

/* Set @key of @object to the rules of @list, if it has any.  False: no memory. */
static bool srv_json_rules(json_t *object, const char *key, const struct allow_list *list)
{
	char *text = list->n ? malloc(ALLOW_TEXT_MAX) : NULL;
	bool ok = !list->n || (text && !json_object_set_new(object, key,
			ctl_json_text(conf_allow_list_text(list, text, ALLOW_TEXT_MAX))));

	free(text);
	return ok;
}

/* "allow", "read_only" and "priority", each only if @ex has it. */
static json_t *srv_json_rights(const struct export *ex)
{
	char prio[PRIORITY_TEXT_MAX];
	json_t *object = json_object();
	bool ok = srv_json_rules(object, "allow", &srv_export_of(ex)->allow) &&
		  srv_json_rules(object, "read_only", &srv_export_of(ex)->read_only);

	if (ok && srv_export_prio(ex))
		ok = !json_object_set_new(object, "priority",
			ctl_json_text(conf_limits_priority_text(srv_export_prio(ex), prio)));
	return ctl_json_whole(object, ok);
}

/* @object with "writes_failed", if the last writes to @ex have failed. */
static json_t *srv_json_writes(json_t *object, struct export *ex)
{
	struct export_writes_failed w = export_writes_failed(ex);
	uint64_t ms = clock_now_ms() - w.since_ms;

	if (!w.n)
		return object;
	return ctl_json_with(object, json_pack("{s:{s:I,s:I,s:o}}", "writes_failed",
					       "count", (json_int_t)w.n,
					       "since_ns", (json_int_t)ms * 1000000,
					       "error", ctl_json_text(strerror(-w.err))));
}

static json_t *srv_json_export(const struct srv *srv, struct export *ex,
			       enum srv_ctl_depth depth)
{
	const struct export_retry *retry = ex->life.rung == EXPORT_SHOWN ?
		export_retry_find(ex->all, ex->name) : NULL;
	json_t *object = json_pack("{s:o}", "name", ctl_json_text(ex->name));

	if (ex->life.rung != EXPORT_SHOWN)
		object = ctl_json_with(object, json_pack("{s:b}", "removed", 1));
	if (depth < SRV_CTL_SHOW)
		return object;
	object = ctl_json_with(object, json_pack("{s:I}", "id",
						 (json_int_t)srv_export_of(ex)->id));
	object = ctl_json_with(object, srv_json_export_show(ex));
	object = ctl_json_with(object, srv_json_limits(ex));
	object = ctl_json_with(object, srv_json_rights(ex));
	object = srv_json_clients(srv_json_writes(object, ex), srv, ex);
	if (retry)
		object = ctl_json_with(object, json_pack("{s:o}", "error",
							 ctl_json_text(retry->why)));
	if (depth >= SRV_CTL_STATS)
		object = ctl_json_with(object, srv_json_export_stats(srv, ex));
	return object;
}

/* An export without storage. */
static json_t *srv_json_retry(const struct export_retry *retry, enum srv_ctl_depth depth)
{
	json_t *object = json_pack("{s:o}", "name", ctl_json_text(retry->name));
	uint64_t ms = clock_now_ms() - retry->since_ms;

	if (depth >= SRV_CTL_SHOW)
		object = ctl_json_with(object, json_pack("{s:o,s:I,s:o}",
						"storage",
						ctl_json_text(export_retry_bare_word(retry)),
						"failed_ns", (json_int_t)ms * 1000000,
						"error", ctl_json_text(retry->why)));
	return object;
}

static json_t *srv_json_exports(const struct srv *srv, enum srv_ctl_depth depth)
{
	const struct exports *exports = srv_rnbd(srv)->exports;
	const struct export_retry *retry;
	json_t *array = json_array();
	struct export *ex;
	bool ok = true;

	srv_export_each(ex, srv)
		ok = ok && ctl_json_add(array, srv_json_export(srv, ex, depth));
	list_for_each(retry, &exports->retries, link) {
		if (export_retry_is_bare(retry))
			ok = ok && ctl_json_add(array, srv_json_retry(retry, depth));
	}
	return ctl_json_whole(array, ok);
}

/* ---- sessions ---- */

static json_t *srv_json_path_show(const struct srv_path *path)
{
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:i,s:i,s:I,s:o,s:I}",
			 "state", ctl_json_text(srv_path_fsm.states[path->state]),
			 "transport", ctl_json_text(fab_addr_transport(&path->client)),
			 "digest", ctl_json_text(rtrs_digest_names[atomic_load(&path->digest)]),
			 "peer", srv_json_host(&path->client),
			 "src_addr", srv_json_address(&path->client),
			 "dst_addr", srv_json_address(&path->server),
			 "hca_name", ctl_json_text(path->device),
			 "hca_port", (int)path->device_port,
			 "connections", (int)(path->ncons - path->ndrained),
			 "latency_ns", (json_int_t)atomic_load(&path->hb.latency_ns),
			 "invalidate", ctl_json_text(srv_chunk_protection(&path->chunks)),
			 "memory", (json_int_t)path->memory);
}

/* "path_mtu" and "sent_mtu"; 0: not known. */
static json_t *srv_json_path_mtu(const struct srv_path *path)
{
	struct fab_mtu mtu = { 0 };

	if (path->state == SRV_PATH_CONNECTED)
		fab_conn_mtu(path->cons[0]->fab, &mtu);
	return json_pack("{s:I,s:I}", "path_mtu", (json_int_t)mtu.path,
			 "sent_mtu", (json_int_t)mtu.sent);
}

/* "cipher"; and "key_age_ns", if a key has proven who the client is. */
static json_t *srv_json_path_trust(const struct srv_path *path)
{
	json_t *object = json_pack("{s:o}", "cipher", ctl_json_text(path->transport.cipher));
	int64_t age_s = MAX(time(NULL) - path->key_since_s, 0);

	if (path->key)
		object = ctl_json_with(object, json_pack("{s:I}", "key_age_ns",
							 (json_int_t)age_s * 1000000000));
	return object;
}

static json_t *srv_json_path(const struct srv_path *path, enum srv_ctl_depth depth)
{
	json_t *object = json_pack("{s:o}", "name", ctl_json_text(path->name));

	if (depth >= SRV_CTL_SHOW)
		object = ctl_json_with(ctl_json_with(ctl_json_with(object,
								   srv_json_path_show(path)),
						     srv_json_path_mtu(path)),
				       srv_json_path_trust(path));
	if (depth >= SRV_CTL_STATS)
		object = ctl_json_with(object, srv_json_path_stats(path));
	return object;
}

static json_t *srv_json_dev(const struct srv_dev_table *devs, const struct srv_dev *dev)
{
	static const char *const states[] = {
		[SRV_DEV_OPEN] = "open", [SRV_DEV_LOST] = "lost",
		[SRV_DEV_CLOSED] = "closing",
		[SRV_DEV_KICKED] = "kicked",
	};

	return json_pack("{s:i,s:o,s:I,s:b,s:o,s:b,s:b,s:o,s:I}",
			 "id", (int)srv_dev_number(dev),
			 "export", ctl_json_text(dev->ex->name),
			 "export_id", (json_int_t)srv_export_of(dev->ex)->id,
			 "removed", srv_export_shown(dev->ex)->life.rung != EXPORT_SHOWN,
			 "access_mode", ctl_json_text(rnbd_access_names[dev->mode]),
			 "read_only", dev->mode == RNBD_ACCESS_RO || dev->ex->spec.readonly,
			 "allowed", !srv_allow_over(dev),
			 "state", ctl_json_text(states[dev->state]),
			 "ahead_max", (json_int_t)srv_dev_ahead_max(devs, dev));
}

static json_t *srv_json_paths(const struct srv_sess *sess, enum srv_ctl_depth depth)
{
	json_t *array = json_array();
	const struct srv_path *path;
	bool ok = true;

	list_for_each(path, &sess->paths, link)
		ok = ok && ctl_json_add(array, srv_json_path(path, depth));
	return ctl_json_whole(array, ok);
}

static json_t *srv_json_devs(const struct srv_sess *sess)
{
	json_t *array = json_array();
	const struct srv_dev_table *devs = &srv_rnbd_sess(sess)->devs;
	struct srv_dev *dev;
	bool ok = true;

	for (dev = srv_dev_first(devs); dev && ok; dev = srv_dev_next(devs, dev))
		ok = ctl_json_add(array, srv_json_dev(devs, dev));
	return ctl_json_whole(array, ok);
}

/* "peer_lacks": the features of this version that the client has not, once it has told its own. */
static json_t *srv_json_sess_peer(const struct srv_sess *sess)
{
	uint32_t lacks = RNBD_EXT_ALL & ~atomic_load(&srv_rnbd_sess(sess)->features);

	if (!srv_rnbd_ver(sess))
		return json_object();
	return json_pack("{s:o}", "peer_lacks",
			 ctl_json_bits(lacks, rnbd_ext_names, RNBD_EXT_FEATURES));
}

static json_t *srv_json_sess(const struct srv_sess *sess, enum srv_ctl_depth depth)
{
	json_t *object = json_pack("{s:o,s:o,s:o}", "name", ctl_json_text(sess->name),
				   "identity", ctl_json_text(sess->identity),
				   "paths", srv_json_paths(sess, depth));
	uint64_t down_ms;
	const char *state = srv_sess_state(sess, &down_ms);

	if (depth >= SRV_CTL_SHOW)
		object = ctl_json_with(object, json_pack("{s:o,s:o,s:I,s:I,s:I,s:o,s:b,s:o}",
						"uuid", ctl_json_uuid(sess->uuid),
						"state", ctl_json_text(state),
						"up_ns",
						(json_int_t)srv_sess_up_ms(sess) * 1000000,
						"down_ns", (json_int_t)down_ms * 1000000,
						"oldest_ns", (json_int_t)sess->oldest_ns,
						"client", srv_json_address(&sess->client),
						"resends", srv_rnbd_sess(sess)->resends,
						"devices", srv_json_devs(sess)));
	if (depth >= SRV_CTL_SHOW)
		object = ctl_json_with(object, srv_json_sess_peer(sess));
	return object;
}

static json_t *srv_json_sessions(const struct srv *srv, enum srv_ctl_depth depth)
{
	json_t *array = json_array();
	const struct srv_sess *sess;
	bool ok = true;

	list_for_each(sess, &srv->sessions, link)
		ok = ok && ctl_json_add(array, srv_json_sess(sess, depth));
	return ctl_json_whole(array, ok);
}

/* The paths that come up and are lost again and again, whether they are there now or not. */
static json_t *srv_json_flaps(const struct srv *srv)
{
	const struct srv_flap *f = NULL;
	uint64_t now = clock_now_ms();
	json_t *array = json_array();
	bool ok = true;

	while (ok && (f = srv_flaps_next(&srv->flaps, f))) {
		json_t *one = json_pack("{s:o,s:o,s:o,s:i,s:I,s:I,s:I,s:o}",
					"path", ctl_json_text(f->path),
					"session", ctl_json_text(f->session),
					"identity", ctl_json_text(f->identity),
					"ups", (int)f->ups,
					"since_ns", (json_int_t)(now - f->since_ms) * 1000000,
					"up_ns", (json_int_t)(now - f->up_ms) * 1000000,
					"lost_ns", (json_int_t)(now - f->lost_ms) * 1000000,
					"cause", ctl_json_text(f->cause));

		ok = ctl_json_add(array, one);
	}
	return ctl_json_whole(array, ok);
}

static json_t *srv_json_secrets(const struct srv *srv)
{
	const struct secrets_dates dates = secrets_dates(fab_tls_secrets(srv->tls));
	const struct srv_conf *conf = srv->conf;
	const struct ctl_secrets secrets = {
		.tls = fab_tls_mode_names[fab_tls_mode(srv->tls)],
		.tls_psk = srv->tls ? conf->tls.psk : NULL,
		.tls_certificates = srv->tls ? conf->tls.certificates : NULL,
		.auth_psk = srv->auth ? conf->auth.psk : NULL,
		.end_file = dates.end_file,
		.end_s = dates.end_s,
		.begin_file = dates.begin_file,
		.begin_s = dates.begin_s,
	};

	return ctl_secrets_json(&secrets);
}

struct listed {
	json_t *array;
	bool ok;
};

static void add_listener(void *arg, const struct srv_listening *l)
{
	struct listed *all = arg;

	all->ok = all->ok && ctl_json_add(all->array, ctl_json_text(l->url));
}

static json_t *srv_json_listeners(const struct srv *srv)
{
	struct listed all = { .array = json_array(), .ok = true };

	srv_listen_each(srv, add_listener, &all);
	return ctl_json_whole(all.array, all.ok);
}

json_t *srv_ctl_json(const struct srv *srv, enum srv_ctl_depth depth)
{
	json_t *object;

	srv_stat_age_look(srv);
	object = json_pack("{s:o,s:o,s:i,s:o,s:o}", "program", ctl_json_text("rtrs-server"),
			   "name", ctl_json_text(srv->conf->name),
			   "pid", (int)getpid(),
			   "exports", srv_json_exports(srv, depth),
			   "sessions", srv_json_sessions(srv, depth));
	if (depth < SRV_CTL_SHOW)
		return object;
	object = ctl_json_with(object, json_pack("{s:o,s:i,s:o,s:o,s:i,s:i,s:I,s:I,s:I}",
				"version", ctl_json_text(PACKAGE_VERSION),
				"control_version", CTL_VERSION,
				"listeners", srv_json_listeners(srv),
				"log_level", ctl_json_text(log_level_names[log_level()]),
				"threads", (int)srv->nthreads - 1,
				"queue_depth", (int)srv->geom.queue_depth,
				"max_io_size", (json_int_t)srv->geom.max_io_size,
				"files_age_ns", (json_int_t)files_age_ns(),
				"now_ns", (json_int_t)clock_now_ns()));
	object = ctl_json_with(object, json_pack("{s:o}", "flaps", srv_json_flaps(srv)));
	object = ctl_json_with(object, ctl_digest_errors_json(counter_get(&srv->digest_errors),
				clock_now_ms() - atomic_load(&srv->digest_error_ms)));
	return ctl_json_with(object, srv_json_secrets(srv));
}
