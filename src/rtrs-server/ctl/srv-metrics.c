/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the table of the server's metrics, and the place where the metrics are served. */
#include <config.h>

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "confine.h"
#include "export-retry.h"
#include "export.h"
#include "exports.h"
#include "log.h"
#include "srv-con.h"
#include "srv-ctl.h"
#include "srv-export.h"
#include "srv-limit.h"
#include "srv-path.h"
#include "srv-rnbd-state.h"
#include "srv-sess.h"
#include "srv-state.h"
#include "store-lead.h"
#include "util.h"

static const struct srv *srv_of(const void *program)
{
	return ((const struct srv_metrics *)program)->srv;
}

/* ---- the program ---- */

static void read_build(struct metric_out *out, const void *program)
{
	metric_value(out, METRIC_LABELS({ "version", PACKAGE_VERSION }), 1);
}

static void read_start(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, ((const struct srv_metrics *)program)->started_ns);
}

static void read_denied(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, confine_denied());
}

static void read_memory(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, srv_of(program)->memory);
}

static void read_memory_limit(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, srv_of(program)->conf->max_memory);
}

/* ---- exports ---- */

#define for_each_export(ex, program) srv_export_each(ex, srv_of(program))

/* The labels of a sample of an export. */
struct export_labels {
	struct metric_label all[4];
	char id[24];
};

/* Make the labels of @ex, with the label @name unless NULL.  A removed export has a number, because
 * others may have its name by now. */
static const struct metric_label *export_labels(struct export_labels *labels,
						const struct export *ex, const char *name,
						const char *value)
{
	struct metric_label *next = labels->all;

	*next++ = (struct metric_label){ "export", ex->name };
	if (ex->life.rung != EXPORT_SHOWN) {
		snprintf(labels->id, sizeof(labels->id), "%llu",
			 (unsigned long long)srv_export_of(ex)->id);
		*next++ = (struct metric_label){ "removed", labels->id };
	}
	if (name)
		*next++ = (struct metric_label){ name, value };
	*next = (struct metric_label){ NULL, NULL };
	return labels->all;
}

/* Write the sample @value of @ex. */
static void export_value(struct metric_out *out, const struct export *ex, uint64_t value)
{
	struct export_labels labels;

	metric_value(out, export_labels(&labels, ex, NULL, NULL), value);
}

/* Likewise with the label @name. */
static void export_value_of(struct metric_out *out, const struct export *ex, const char *name,
			    const char *text, uint64_t value)
{
	struct export_labels labels;

	metric_value(out, export_labels(&labels, ex, name, text), value);
}

static void read_exports_removed(struct metric_out *out, const void *program)
{
	const struct export *ex;
	uint64_t n = 0;

	for_each_export(ex, program)
		n += ex->life.rung != EXPORT_SHOWN;
	metric_value(out, NULL, n);
}

static void read_exports(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, srv_rnbd(srv_of(program))->exports->n);
}

static void read_export_size(struct metric_out *out, const void *program)
{
	const struct export *ex;

	for_each_export(ex, program)
		export_value(out, ex, export_size(ex));
}

static void read_export_users(struct metric_out *out, const void *program)
{
	const struct export *ex;

	for_each_export(ex, program)
		export_value(out, ex, ex->store->users);
}

static void read_export_writers(struct metric_out *out, const void *program)
{
	const struct export *ex;

	for_each_export(ex, program)
		export_value(out, ex, ex->store->writers);
}

static void read_export_sync_failed(struct metric_out *out, const void *program)
{
	const struct export *ex;

	for_each_export(ex, program)
		export_value(out, ex, export_sync_error(ex) != 0);
}

static void read_export_state(struct metric_out *out, const void *program)
{
	const struct exports *exports = srv_rnbd(srv_of(program))->exports;
	const struct export_retry *retry;
	const struct export *ex;

	for_each_export(ex, program)
		export_value_of(out, ex, "state", export_retry_word(ex), 1);
	list_for_each(retry, &exports->retries, link) {
		if (export_retry_is_bare(retry))
			metric_value(out, METRIC_LABELS({ "export", retry->name },
							{ "state",
							  export_retry_bare_word(retry) }), 1);
	}
}

static void read_export_ana(struct metric_out *out, const void *program)
{
	const struct export *ex;

	for_each_export(ex, program) {
		if (ex->spec.shared)
			export_value_of(out, ex, "state", store_lead_word(ex->store), 1);
	}
}

static void read_export_waits(struct metric_out *out, const void *program)
{
	const struct export *ex;

	for_each_export(ex, program)
		export_value(out, ex, export_waits_ns(ex));
}

static void read_export_writes_failed(struct metric_out *out, const void *program)
{
	struct export *ex;

	for_each_export(ex, program)
		export_value(out, ex, export_writes_failed(ex).n);
}

static void read_export_oldest(struct metric_out *out, const void *program)
{
	const struct export *ex;

	srv_stat_age_look(srv_of(program));
	for_each_export(ex, program)
		export_value(out, ex, srv_export_of(ex)->oldest_ns);
}

static void read_export_io(struct metric_out *out, const void *program)
{
	struct export_labels labels;
	const struct export *ex;
	struct io_stat sum;

	for_each_export(ex, program) {
		srv_export_stat_ever(srv_rnbd(srv_of(program)), ex, &sum);
		metric_io(out, export_labels(&labels, ex, NULL, NULL), &sum);
	}
}

/* ---- limits of exports ---- */

static void read_export_limit(struct metric_out *out, const void *program)
{
	const struct export *ex;

	for_each_export(ex, program) {
		const struct limits *limits = &srv_export_of(ex)->limit.limits;

		for (unsigned i = 0; i < LIMITS; i++) {
			if (limits->rate[i])
				export_value_of(out, ex, "limit", limit_names[i], limits->rate[i]);
		}
	}
}

enum { THROTTLED_REQUESTS, THROTTLED_TIME };

static void read_export_throttled(struct metric_out *out, const void *program)
{
	const struct export *ex;
	struct srv_limit_stat waits;

	for_each_export(ex, program) {
		srv_limit_stat_ever(ex, &waits);
		export_value(out, ex, metric_row(out)->what == THROTTLED_TIME ? waits.ns :
			     waits.requests);
	}
}

/* ---- sessions and paths ---- */

static void read_sessions(struct metric_out *out, const void *program)
{
	static const char *const states[] = { "connecting", "up", "down" };
	unsigned n[ARRAY_SIZE(states)] = { 0 };
	const struct srv_sess *sess;
	uint64_t down_ms;

	list_for_each(sess, &srv_of(program)->sessions, link) {
		const char *state = srv_sess_state(sess, &down_ms);

		for (unsigned i = 0; i < ARRAY_SIZE(states); i++)
			n[i] += !strcmp(state, states[i]);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(states); i++)
		metric_value(out, METRIC_LABELS({ "state", states[i] }), n[i]);
}

static void read_sessions_limit(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, srv_of(program)->conf->max_sessions);
}

static void read_paths(struct metric_out *out, const void *program)
{
	const struct srv_sess *sess;
	const struct srv_path *path;
	unsigned n[SRV_PATH_NSTATES] = { 0 };

	list_for_each(sess, &srv_of(program)->sessions, link) {
		list_for_each(path, &sess->paths, link)
			n[path->state]++;
	}
	for (unsigned i = 0; i < SRV_PATH_GONE; i++)
		metric_value(out, METRIC_LABELS({ "state", srv_path_fsm.states[i] }), n[i]);
}

static void read_paths_limit(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, srv_of(program)->conf->max_paths);
}

static void read_connections(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, srv_of(program)->ncons);
}

static void read_connections_limit(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, srv_of(program)->conf->max_cons);
}

static void read_paths_up(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, srv_of(program)->paths_up);
}

static void read_paths_down(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, srv_of(program)->paths_down);
}

static void read_paths_flapping(struct metric_out *out, const void *program)
{
	const struct srv_flap *f = NULL;
	unsigned n = 0;

	while ((f = srv_flaps_next(&srv_of(program)->flaps, f)))
		n++;
	metric_value(out, NULL, n);
}

/* All clients of unix sockets are one host. */
static bool same_client(const struct srv_path *a, const struct srv_path *b)
{
	if (fab_addr_is_unix(&a->client) || fab_addr_is_unix(&b->client))
		return fab_addr_is_unix(&a->client) && fab_addr_is_unix(&b->client);
	return fab_addr_same_host(&a->client, &b->client);
}

/* Count the paths in service of the client of @of; 0 if a path before @of has the same client. */
static unsigned client_paths(const struct srv *srv, const struct srv_path *of)
{
	const struct srv_sess *sess;
	const struct srv_path *path;
	bool before = true;
	unsigned n = 0;

	list_for_each(sess, &srv->sessions, link) {
		list_for_each(path, &sess->paths, link) {
			before = before && path != of;
			if (path->state != SRV_PATH_CONNECTED || !same_client(path, of))
				continue;
			if (before)
				return 0;
			n++;
		}
	}
	return n;
}

static void read_client_paths(struct metric_out *out, const void *program)
{
	const struct srv *srv = srv_of(program);
	const struct srv_sess *sess;
	const struct srv_path *path;

	list_for_each(sess, &srv->sessions, link) {
		list_for_each(path, &sess->paths, link) {
			bool local = fab_addr_is_unix(&path->client);
			char text[FAB_ADDR_STRLEN] = "unix";
			unsigned n = 0;

			if (path->state == SRV_PATH_CONNECTED)
				n = client_paths(srv, path);
			if (!n)
				continue;
			if (!local)
				fab_addr_format_host(&path->client, text, sizeof(text));
			metric_value(out, METRIC_LABELS({ "client", text }), n);
		}
	}
}

static void read_refused(struct metric_out *out, const void *program)
{
	for (unsigned i = 0; i < SRV_REFUSALS; i++)
		metric_value(out, METRIC_LABELS({ "reason", srv_refusal_names[i] }),
			     srv_of(program)->refused[i]);
}

static void read_digest_errors(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, counter_get(&srv_of(program)->digest_errors));
}

/* One value: the sum of @n_of of all paths. */
static void read_of_paths(struct metric_out *out, const void *program,
			  uint64_t (*n_of)(const struct srv_path *path))
{
	const struct srv_sess *sess;
	const struct srv_path *path;
	uint64_t n = 0;

	list_for_each(sess, &srv_of(program)->sessions, link) {
		list_for_each(path, &sess->paths, link)
			n += n_of(path);
	}
	metric_value(out, NULL, n);
}

static uint64_t path_keys(const struct srv_path *path)
{
	return path->chunks.keys ? path->chunks.keys->n : 0;
}

static void read_keys(struct metric_out *out, const void *program)
{
	read_of_paths(out, program, path_keys);
}

/* ---- requests ---- */

static void read_inflight(struct metric_out *out, const void *program)
{
	read_of_paths(out, program, srv_stat_inflight);
}

static void read_oldest(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, srv_stat_age_look(srv_of(program)));
}

static unsigned list_length(const struct list *list)
{
	unsigned n = 0;

	for (const struct list *l = list->next; l != list; l = l->next)
		n++;
	return n;
}

static void read_waiting(struct metric_out *out, const void *program)
{
	const struct srv *srv = srv_of(program);
	const struct srv_rnbd *rnbd = srv_rnbd(srv);

	metric_value(out, METRIC_LABELS({ "for", "former_path" }), srv->nparked);
	metric_value(out, METRIC_LABELS({ "for", "export" }), list_length(&rnbd->open_waiters));
	metric_value(out, METRIC_LABELS({ "for", "size" }), list_length(&rnbd->size_waiters));
}

/* ---- the table ---- */

static const struct metric rows[] = {
	{ .name = "rtrs_server_build", .type = METRIC_INFO, .read = read_build,
	  .help = "Version of this server." },
	{ .name = "rtrs_server_start_time_seconds", .type = METRIC_GAUGE, .unit = METRIC_SECONDS,
	  .read = read_start,
	  .help = "Start of this server, since 1970." },
	{ .name = "rtrs_server_denied_calls", .type = METRIC_COUNTER, .read = read_denied,
	  .help = "System calls that the filter denied; --seccomp=log: would have denied." },
	{ .name = "rtrs_server_memory_bytes", .type = METRIC_GAUGE, .unit = METRIC_BYTES,
	  .read = read_memory,
	  .help = "Memory for the requests and connections of all paths." },
	{ .name = "rtrs_server_memory_limit_bytes", .type = METRIC_GAUGE, .unit = METRIC_BYTES,
	  .read = read_memory_limit,
	  .help = "Memory limit for all paths." },
	{ .name = "rtrs_server_exports", .type = METRIC_GAUGE, .read = read_exports,
	  .help = "Exports offered to clients." },
	{ .name = "rtrs_server_exports_removed", .type = METRIC_GAUGE,
	  .read = read_exports_removed,
	  .help = "Removed exports that clients still have open." },
	{ .name = "rtrs_server_export_size_bytes", .type = METRIC_GAUGE, .unit = METRIC_BYTES,
	  .read = read_export_size,
	  .help = "Size of the export." },
	{ .name = "rtrs_server_export_users", .type = METRIC_GAUGE, .read = read_export_users,
	  .help = "Sessions that have the storage of the export open." },
	{ .name = "rtrs_server_export_writers", .type = METRIC_GAUGE, .read = read_export_writers,
	  .help = "Sessions that may write to the storage of the export." },
	{ .name = "rtrs_server_export_sync_failed", .type = METRIC_GAUGE,
	  .read = read_export_sync_failed,
	  .help = "1 if writes to the export may be lost, because a sync has failed." },
	{ .name = "rtrs_server_export_state", .type = METRIC_GAUGE, .read = read_export_state,
	  .help = "1, with a label: ok; failed: the storage cannot be opened; stale: another spec "
		  "cannot; replaced, unlinked: what the path names; fenced: another client of the "
		  "cluster has the image; removed: clients still have it open." },
	{ .name = "rtrs_server_export_ana_state", .type = METRIC_GAUGE, .read = read_export_ana,
	  .help = "1, with a label: optimized on the server that writes a shared store, or "
		  "standby." },
	{ .name = "rtrs_server_export_waiting_seconds", .type = METRIC_GAUGE,
	  .unit = METRIC_SECONDS, .read = read_export_waits,
	  .help = "Time since the storage last answered a request, while requests are pending." },
	{ .name = "rtrs_server_export_writes_failed", .type = METRIC_GAUGE,
	  .read = read_export_writes_failed,
	  .help = "Writes that failed in the storage since the last successful one." },
	{ .name = "rtrs_server_export_oldest_request_seconds", .type = METRIC_GAUGE,
	  .unit = METRIC_SECONDS, .read = read_export_oldest,
	  .help = "Age of the oldest unanswered request to the export." },
	{ .name = "rtrs_server_export_io_bytes", .type = METRIC_COUNTER, .unit = METRIC_BYTES,
	  .read = read_export_io, .what = METRIC_IO_BYTES,
	  .help = "Bytes of requests that succeeded." },
	{ .name = "rtrs_server_export_io_errors", .type = METRIC_COUNTER, .read = read_export_io,
	  .what = METRIC_IO_ERRORS,
	  .help = "Requests that failed." },
	{ .name = "rtrs_server_export_io_duration_seconds", .type = METRIC_HISTOGRAM,
	  .unit = METRIC_SECONDS, .read = read_export_io, .what = METRIC_IO_LATENCY,
	  .help = "Time from the arrival of a request to its answer." },
	{ .name = "rtrs_server_export_limit", .type = METRIC_GAUGE, .read = read_export_limit,
	  .help = "Limits of the export: requests or bytes a second." },
	{ .name = "rtrs_server_export_throttled_seconds", .type = METRIC_COUNTER,
	  .unit = METRIC_SECONDS, .read = read_export_throttled, .what = THROTTLED_TIME,
	  .help = "Total time that requests have waited for limits." },
	{ .name = "rtrs_server_export_throttled_requests", .type = METRIC_COUNTER,
	  .read = read_export_throttled, .what = THROTTLED_REQUESTS,
	  .help = "Requests that have waited for limits of the export." },
	{ .name = "rtrs_server_sessions", .type = METRIC_GAUGE, .read = read_sessions,
	  .help = "Sessions, by their state." },
	{ .name = "rtrs_server_sessions_limit", .type = METRIC_GAUGE, .read = read_sessions_limit,
	  .help = "Session limit for all clients." },
	{ .name = "rtrs_server_paths", .type = METRIC_GAUGE, .read = read_paths,
	  .help = "Paths, by their state." },
	{ .name = "rtrs_server_paths_limit", .type = METRIC_GAUGE, .read = read_paths_limit,
	  .help = "Path limit for all sessions." },
	{ .name = "rtrs_server_connections", .type = METRIC_GAUGE, .read = read_connections,
	  .help = "Connections of all paths." },
	{ .name = "rtrs_server_connections_limit", .type = METRIC_GAUGE,
	  .read = read_connections_limit, .help = "Connection limit for all paths." },
	{ .name = "rtrs_server_paths_up", .type = METRIC_COUNTER, .read = read_paths_up,
	  .help = "Paths that have come into service." },
	{ .name = "rtrs_server_paths_down", .type = METRIC_COUNTER, .read = read_paths_down,
	  .help = "Paths that have left service: lost, or closed by the client." },
	{ .name = "rtrs_server_paths_flapping", .type = METRIC_GAUGE, .read = read_paths_flapping,
	  .help = "Paths that come up and are lost again and again." },
	{ .name = "rtrs_server_client_paths", .type = METRIC_GAUGE, .read = read_client_paths,
	  .help = "Paths in service, by the host of the client." },
	{ .name = "rtrs_server_refused", .type = METRIC_COUNTER, .read = read_refused,
	  .help = "Connections, paths and opens of exports that were refused, by the reason." },
	{ .name = "rtrs_server_digest_errors", .type = METRIC_COUNTER, .read = read_digest_errors,
	  .help = "Requests that did not arrive as they were sent, by their digests." },
	{ .name = "rtrs_server_keys", .type = METRIC_GAUGE, .read = read_keys,
	  .help = "Per-request memory keys of all paths." },
	{ .name = "rtrs_server_inflight_requests", .type = METRIC_GAUGE, .read = read_inflight,
	  .help = "Requests that have arrived and are not yet answered." },
	{ .name = "rtrs_server_oldest_request_seconds", .type = METRIC_GAUGE,
	  .unit = METRIC_SECONDS, .read = read_oldest,
	  .help = "Age of the oldest unanswered request of all clients." },
	{ .name = "rtrs_server_waiting_requests", .type = METRIC_GAUGE, .read = read_waiting,
	  .help = "Connections that wait for the end of their former path, and requests that "
		  "wait for an export to be closed or for a size." },
};

const struct metric_table srv_metric_table = { rows, ARRAY_SIZE(rows) };

/* ---- life ---- */

/* The answer to rtrsctl stats. */
static char *srv_metrics_status(const void *program)
{
	json_t *object = srv_ctl_json(srv_of(program), SRV_CTL_STATS);
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

	json_decref(object);
	return text;
}

int srv_metrics_listen(struct srv_metrics *m, const struct srv_conf *conf, char *err, size_t len)
{
	*m = (struct srv_metrics){ .sock = { .fd = -1 } };
	return conf->metrics ? metric_sock_listen(&m->sock, conf->metrics, err, len) : 0;
}

int srv_metrics_open(struct srv_metrics *m, const struct srv *srv)
{
	int rc;

	m->srv = srv;
	m->started_ns = metric_time_ns();
	m->source = (struct metric_source){ .table = &srv_metric_table, .program = m,
					    .hosts = srv->conf->metrics_host };
	if (srv->conf->metrics_page == METRIC_PAGE_YES)
		m->source.status = srv_metrics_status;
	rc = metrics_open(srv_loop(srv), &m->sock, srv->conf->metrics_file, &m->source,
			  &m->served);
	if (!rc && srv->conf->metrics)
		log_info(NULL, "metrics: %s", m->sock.url);
	return rc;
}

void srv_metrics_close(struct srv_metrics *m, void (*done)(void *arg), void *arg)
{
	if (m->served)
		metrics_close(m->served, done, arg);
	else
		done(arg);
}
