/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the place where the metrics of the lasting session are served.  The service thread, to which
 * sessions, paths and devices belong, reads them and serves; the functions of other threads call it
 * there and wait.  Other threads may change a counter during a read. */
#include <config.h>

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clt-ctl.h"
#include "dev.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "process.h"
#include "util.h"

/* metric.read() gets this. */
struct clt_metrics {
	struct client *clt;
	const struct clt_conf *conf;
	uint64_t started_ns;		/* of the real-time clock */
	struct metric_source source;
	struct metrics *served;
};

static struct client *client_of(const void *program)
{
	return ((const struct clt_metrics *)program)->clt;
}

static struct clt_sess *sess_of(const void *program)
{
	return &client_of(program)->sess;
}

/* ---- the program ---- */

static void read_build(struct metric_out *out, const void *program)
{
	const struct clt_metrics *m = program;

	metric_value(out, METRIC_LABELS({ "program", m->conf->front->program },
					{ "version", PACKAGE_VERSION }), 1);
}

static void read_start(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, ((const struct clt_metrics *)program)->started_ns);
}

/* ---- the session ---- */

static void read_session_up(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, clt_sess_is_up(sess_of(program)));
}

static void read_session_down(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, clt_sess_down_ms(sess_of(program)) * 1000000);
}

static void read_session_ups(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, sess_of(program)->ups);
}

static void read_session_oldest(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, dev_stat_ages(client_of(program)));
}

/* Requests that no path takes now. */
static unsigned waits_for_path(struct clt_io *io)
{
	unsigned n = 0;

	LOCK_SCOPE(&io->lock);
	for (const struct list *l = io->up_waiters.next; l != &io->up_waiters; l = l->next)
		n++;
	return n;
}

static void read_waiting(struct metric_out *out, const void *program)
{
	struct clt_io *io = &sess_of(program)->io;
	/* With a path up they wait for the server to open their export again. */
	bool up = clt_sess_is_up(sess_of(program));
	unsigned n = waits_for_path(io);

	metric_value(out, METRIC_LABELS({ "for", "path" }), up ? 0 : n);
	metric_value(out, METRIC_LABELS({ "for", "export" }), up ? n : 0);
	metric_value(out, METRIC_LABELS({ "for", "permit" }), atomic_load(&io->slots.nwaiting));
}

/* ---- paths ---- */

#define shown_path_for_each(path, program) \
	clt_sess_for_each(path, sess_of(program)) if (!(path)->removed)

static void read_paths(struct metric_out *out, const void *program)
{
	unsigned n[CLT_PATH_NSTATES] = { 0 };
	struct clt_path *path;

	shown_path_for_each(path, program)
		n[clt_path_state(path)]++;
	for (unsigned i = 0; i < CLT_PATH_NSTATES; i++)
		metric_value(out, METRIC_LABELS({ "state", clt_path_state_word(i) }), n[i]);
}

/* Two paths may differ in the transport alone. */
#define PATH_LABELS(path, ...) \
	METRIC_LABELS({ "path", clt_path_name(path) }, \
		      { "transport", fab_addr_transport(&(path)->dst) }, ## __VA_ARGS__)

static void read_path_up(struct metric_out *out, const void *program)
{
	struct clt_path *path;

	/* A path that stands by is as it should be. */
	shown_path_for_each(path, program)
		metric_value(out, PATH_LABELS(path), clt_attempt_is_up(&path->att) ||
			     clt_path_state(path) == CLT_PATH_STANDBY);
}

static void read_path_inflight(struct metric_out *out, const void *program)
{
	struct clt_path *path;

	shown_path_for_each(path, program)
		metric_value(out, PATH_LABELS(path), clt_pick_inflight(&path->att));
}

/* Before the first answer the latency is not known. */
static void read_path_heartbeat(struct metric_out *out, const void *program)
{
	struct clt_path *path;

	shown_path_for_each(path, program) {
		uint64_t ns = atomic_load(&path->att.hb.latency_ns);

		if (ns)
			metric_value(out, PATH_LABELS(path), ns);
	}
}

/* metric.what: the counter, of enum clt_stat_what. */
static void read_path_stat(struct metric_out *out, const void *program)
{
	struct clt_path *path;
	struct clt_stat stat;

	shown_path_for_each(path, program) {
		clt_path_stat_ever(path, &stat);
		metric_value(out, PATH_LABELS(path), stat.n[metric_row(out)->what]);
	}
}

/* Two counters of each path, with the words @a and @b in @label. */
static void read_path_two(struct metric_out *out, const void *program, const char *label,
			  const char *a, enum clt_stat_what n_a, const char *b,
			  enum clt_stat_what n_b)
{
	struct clt_path *path;
	struct clt_stat stat;

	shown_path_for_each(path, program) {
		clt_path_stat_ever(path, &stat);
		metric_value(out, PATH_LABELS(path, { label, a }), stat.n[n_a]);
		metric_value(out, PATH_LABELS(path, { label, b }), stat.n[n_b]);
	}
}

static void read_path_requests(struct metric_out *out, const void *program)
{
	read_path_two(out, program, "operation", "read", CLT_STAT_READS, "write",
		      CLT_STAT_WRITES);
}

static void read_path_bytes(struct metric_out *out, const void *program)
{
	read_path_two(out, program, "operation", "read", CLT_STAT_READ_BYTES, "write",
		      CLT_STAT_WRITE_BYTES);
}

static void read_path_invalidates(struct metric_out *out, const void *program)
{
	read_path_two(out, program, "by", "server", CLT_STAT_REMOTE_INVALIDATES, "client",
		      CLT_STAT_LOCAL_INVALIDATES);
}

/* ---- exports ---- */

/* Of a name there is one series. */
#define named_dev_for_each(dev, clt) dev_for_each(dev, clt) if (dev_has_name(dev))

static void read_export_size(struct metric_out *out, const void *program)
{
	struct dev *dev;

	named_dev_for_each(dev, client_of(program))
		metric_value(out, METRIC_LABELS({ "export", dev_name(dev) }), dev_size(dev));
}

static void read_export_users(struct metric_out *out, const void *program)
{
	struct dev *dev;

	named_dev_for_each(dev, client_of(program))
		metric_value(out, METRIC_LABELS({ "export", dev_name(dev) }), dev_users(dev));
}

static void read_export_state(struct metric_out *out, const void *program)
{
	const char *name;
	struct dev *dev;
	uint64_t ms;

	named_dev_for_each(dev, client_of(program))
		metric_value(out, METRIC_LABELS({ "export", dev_name(dev) },
						{ "state", dev_state_name(dev) }), 1);
	if (dev_watch_refused(client_of(program), &name, &ms))
		metric_value(out, METRIC_LABELS({ "export", name }, { "state", "refused" }), 1);
}

static void read_export_oldest(struct metric_out *out, const void *program)
{
	struct dev *dev;

	dev_stat_ages(client_of(program));
	named_dev_for_each(dev, client_of(program))
		metric_value(out, METRIC_LABELS({ "export", dev_name(dev) }),
			     dev_stat_oldest_ns(dev));
}

static void read_export_wait(struct metric_out *out, const void *program)
{
	struct dev *dev;
	struct dev_stat sum;

	named_dev_for_each(dev, client_of(program)) {
		dev_stat_ever(dev, &sum);
		metric_hist(out, METRIC_LABELS({ "export", dev_name(dev) }), &sum.queued);
	}
}

static void read_export_io(struct metric_out *out, const void *program)
{
	struct dev *dev;
	struct dev_stat sum;

	named_dev_for_each(dev, client_of(program)) {
		dev_stat_ever(dev, &sum);
		metric_io(out, METRIC_LABELS({ "export", dev_name(dev) }), &sum.io);
	}
}

/* ---- the table ---- */

static const struct metric rows[] = {
	{ .name = "rtrs_client_build", .type = METRIC_INFO, .read = read_build,
	  .help = "Name and version of this program." },
	{ .name = "rtrs_client_start_time_seconds", .type = METRIC_GAUGE, .unit = METRIC_SECONDS,
	  .read = read_start,
	  .help = "Start of the session, since 1970." },
	{ .name = "rtrs_client_session_up", .type = METRIC_GAUGE, .read = read_session_up,
	  .help = "1 if a path is up." },
	{ .name = "rtrs_client_session_down_seconds", .type = METRIC_GAUGE,
	  .unit = METRIC_SECONDS, .read = read_session_down,
	  .help = "Time for which requests have had no path." },
	{ .name = "rtrs_client_session_ups", .type = METRIC_COUNTER, .read = read_session_ups,
	  .help = "Times that a path came up while no other path was up." },
	{ .name = "rtrs_client_session_oldest_request_seconds", .type = METRIC_GAUGE,
	  .unit = METRIC_SECONDS, .read = read_session_oldest,
	  .help = "Age of the oldest pending request, of users and of the client." },
	{ .name = "rtrs_client_waiting_requests", .type = METRIC_GAUGE, .read = read_waiting,
	  .help = "Requests that wait for a path, an export or a permit of the session." },
	{ .name = "rtrs_client_paths", .type = METRIC_GAUGE, .read = read_paths,
	  .help = "Paths, by their state." },
	{ .name = "rtrs_client_path_up", .type = METRIC_GAUGE, .read = read_path_up,
	  .help = "1 if the path accepts requests, or stands by." },
	{ .name = "rtrs_client_path_inflight_requests", .type = METRIC_GAUGE,
	  .read = read_path_inflight,
	  .help = "Unanswered requests on the path." },
	{ .name = "rtrs_client_path_heartbeat_seconds", .type = METRIC_GAUGE,
	  .unit = METRIC_SECONDS, .read = read_path_heartbeat,
	  .help = "Shortest time of the last four heartbeats, there and back." },
	{ .name = "rtrs_client_path_reconnects", .type = METRIC_COUNTER, .read = read_path_stat,
	  .what = CLT_STAT_RECONNECTS,
	  .help = "Times that the path came up again." },
	{ .name = "rtrs_client_path_reconnects_failed", .type = METRIC_COUNTER,
	  .read = read_path_stat, .what = CLT_STAT_RECONNECTS_FAILED,
	  .help = "Attempts to connect that failed." },
	{ .name = "rtrs_client_path_failovers", .type = METRIC_COUNTER, .read = read_path_stat,
	  .what = CLT_STAT_FAILOVERS,
	  .help = "Requests sent again after another path lost them." },
	{ .name = "rtrs_client_path_requests", .type = METRIC_COUNTER, .read = read_path_requests,
	  .help = "Requests with data that were sent." },
	{ .name = "rtrs_client_path_request_bytes", .type = METRIC_COUNTER, .unit = METRIC_BYTES,
	  .read = read_path_bytes,
	  .help = "Bytes of data of the requests that were sent." },
	{ .name = "rtrs_client_path_wakeups", .type = METRIC_COUNTER, .read = read_path_stat,
	  .what = CLT_STAT_WAKEUPS,
	  .help = "Times that a thread slept for an answer." },
	{ .name = "rtrs_client_path_poll_handovers", .type = METRIC_COUNTER,
	  .read = read_path_stat, .what = CLT_STAT_POLL_HANDOVERS,
	  .help = "Times that a thread handed polling to another one." },
	{ .name = "rtrs_client_path_keys_mapped", .type = METRIC_COUNTER, .read = read_path_stat,
	  .what = CLT_STAT_KEYS_MAPPED,
	  .help = "Keys that were made for a request." },
	{ .name = "rtrs_client_path_keys_bound", .type = METRIC_COUNTER, .read = read_path_stat,
	  .what = CLT_STAT_KEYS_BOUND,
	  .help = "Keys that were bound by a work request." },
	{ .name = "rtrs_client_path_invalidates", .type = METRIC_COUNTER,
	  .read = read_path_invalidates,
	  .help = "Keys that were invalidated, by the server or the client." },
	{ .name = "rtrs_client_path_invalidates_missing", .type = METRIC_COUNTER,
	  .read = read_path_stat, .what = CLT_STAT_MISSING_INVALIDATES,
	  .help = "Keys that the server reported as invalidated but that were not." },
	{ .name = "rtrs_client_path_digest_errors", .type = METRIC_COUNTER,
	  .read = read_path_stat, .what = CLT_STAT_DIGEST_ERRORS,
	  .help = "Answers that did not arrive as they were sent, by their digests." },
	{ .name = "rtrs_client_export_size_bytes", .type = METRIC_GAUGE, .unit = METRIC_BYTES,
	  .read = read_export_size,
	  .help = "Size of the export." },
	{ .name = "rtrs_client_export_users", .type = METRIC_GAUGE, .read = read_export_users,
	  .help = "Users of the front end that have the export open." },
	{ .name = "rtrs_client_export_state", .type = METRIC_GAUGE, .read = read_export_state,
	  .help = "1, with the state of the export as a label." },
	{ .name = "rtrs_client_export_oldest_request_seconds", .type = METRIC_GAUGE,
	  .unit = METRIC_SECONDS, .read = read_export_oldest,
	  .help = "Age of the oldest pending request to the export." },
	{ .name = "rtrs_client_export_io_bytes", .type = METRIC_COUNTER, .unit = METRIC_BYTES,
	  .read = read_export_io, .what = METRIC_IO_BYTES,
	  .help = "Bytes of requests that succeeded." },
	{ .name = "rtrs_client_export_io_errors", .type = METRIC_COUNTER, .read = read_export_io,
	  .what = METRIC_IO_ERRORS,
	  .help = "Requests that failed." },
	{ .name = "rtrs_client_export_io_duration_seconds", .type = METRIC_HISTOGRAM,
	  .unit = METRIC_SECONDS, .read = read_export_io, .what = METRIC_IO_LATENCY,
	  .help = "Time from a request of the user to its end." },
	{ .name = "rtrs_client_export_wait_duration_seconds", .type = METRIC_HISTOGRAM,
	  .unit = METRIC_SECONDS, .read = read_export_wait,
	  .help = "Time that requests waited for a path, a permit or the export before they were "
		  "sent." },
};

static const struct metric_table table = { rows, ARRAY_SIZE(rows) };

/* ---- where they are served ---- */

/* Listens, and is not served yet: a fork keeps the socket. */
static struct metric_sock bound = { .fd = -1 };

int clt_metrics_bind(const struct clt_conf *conf, char *err, size_t errlen)
{
	return conf->metrics ? metric_sock_listen(&bound, conf->metrics, err, errlen) : 0;
}

/* Remove the socket if the program ends between .get_ready and .after_fork, unless a forked process
 * goes on. */
static void __attribute__((destructor)) metrics_unbind(void)
{
	metric_sock_leave(&bound);
}

/* ---- service thread ---- */

static void metrics_open_call(struct loop_call *call)
{
	struct clt_metrics *m = call->arg;

	call->rc = metrics_open(m->clt->sess.loop, &bound, m->conf->metrics_file, &m->source,
				&m->served);
	loop_call_end(call);
}

static void metrics_close_call(struct loop_call *call)
{
	metrics_close(((struct clt_metrics *)call->arg)->served, loop_call_end, call);
}

/* ---- other threads ---- */

/* The answer to rtrsctl stats. */
static char *metrics_status(const void *program)
{
	const struct clt_metrics *m = program;
	json_t *object = clt_ctl_json(m->clt, m->conf, CLT_CTL_STATS);
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

	json_decref(object);
	return text;
}

static struct clt_metrics *metrics_create(const struct clt_conf *conf, struct client *clt)
{
	struct clt_metrics *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	*m = (struct clt_metrics){
		.clt = clt, .conf = conf, .started_ns = metric_time_ns(),
		.source = { .table = &table, .program = m, .hosts = conf->metrics_host },
	};
	if (conf->metrics_page == METRIC_PAGE_YES)
		m->source.status = metrics_status;
	return m;
}

int clt_metrics_open(const struct clt_conf *conf, struct client *clt, struct clt_metrics **out,
		     char *err, size_t errlen)
{
	struct clt_metrics *m;
	int rc;

	*out = NULL;
	if (bound.fd < 0 && !conf->metrics_file)
		return 0;
	m = metrics_create(conf, clt);
	rc = m ? loop_call(clt->sess.loop, metrics_open_call, m) : -ENOMEM;
	if (rc) {
		snprintf(err, errlen, "cannot serve metrics: %s", fds_strerror(rc));
		free(m);
		return rc;
	}
	if (bound.fd >= 0)
		log_info(NULL, "metrics: %s", bound.url);
	bound = (struct metric_sock){ .fd = -1 };
	*out = m;
	return 0;
}

void clt_metrics_close(struct clt_metrics *m)
{
	if (!m)
		return;
	loop_call(m->clt->sess.loop, metrics_close_call, m);
	free(m);
}
