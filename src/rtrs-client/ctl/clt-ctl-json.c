/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing; service thread, to which sessions, paths and devices belong.  Other threads may
 * change a counter during a read. */
#include <config.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "changes.h"
#include "clock.h"
#include "clt-ctl.h"
#include "ctl-json.h"
#include "dev.h"

static json_t *address_json(const struct fab_addr *addr)
{
	char text[FAB_ADDR_STRLEN];

	return ctl_json_text(addr->len ? fab_addr_format(addr, text, sizeof(text)) : "");
}

/* ---- paths ---- */

/* "path_mtu" and "sent_mtu"; 0: not known. */
static json_t *path_mtu(const struct clt_attempt *att)
{
	struct fab_mtu mtu = { 0 };

	if (clt_attempt_is_up(att))
		fab_conn_mtu(att->cons[0].fab, &mtu);
	return json_pack("{s:I,s:I}", "path_mtu", (json_int_t)mtu.path,
			 "sent_mtu", (json_int_t)mtu.sent);
}

static json_t *path_show(struct clt_path *path)
{
	const struct clt_attempt *att = &path->att;
	bool up = clt_attempt_is_up(&path->att);
	struct fab_addr src = path->src;
	struct fab_identity peer = { 0 };
	bool digests = att->digest == CLT_DIGEST_ON;

	if (up) {
		fab_conn_addrs(att->cons[0].fab, &src, NULL);
		fab_conn_identity(att->cons[0].fab, &peer);
	}
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:i,s:i,s:I,s:I,s:I,s:I,s:I,s:o}",
			 "state", ctl_json_text(clt_path_state_word(clt_path_state(path))),
			 "server_name", ctl_json_text(up && path->auth.proven ?
						      path->auth.chap.peer : ""),
			 "transport", ctl_json_text(fab_addr_transport(&path->dst)),
			 "cipher", ctl_json_text(peer.cipher),
			 "digest", ctl_json_text(rtrs_digest_names[up && digests]),
			 "peer", address_json(&path->dst),
			 "src_addr", address_json(&src),
			 "dst_addr", address_json(&path->dst),
			 "hca_name", ctl_json_text(up ? att->caps.dev.name : ""),
			 "hca_port", up ? (int)att->caps.dev.port : 0,
			 "connections", up ? (int)att->ncons : 0,
			 "latency_ns", (json_int_t)atomic_load(&path->att.hb.latency_ns),
			 "inflight", (json_int_t)clt_pick_inflight(att),
			 "failed_attempts", (json_int_t)path->fails,
			 "queue_depth", up ? (json_int_t)att->depth : 0,
			 "max_io_size", up ? (json_int_t)att->max_io : 0,
			 "cause", ctl_json_text(up ? "" : path->cause.told));
}

static json_t *path_stat(const struct clt_path *path)
{
	json_t *object = json_object();
	struct clt_stat stat;
	bool ok = object;

	clt_path_stat_get(path, &stat);
	for (unsigned i = 0; i < CLT_STAT_N && ok; i++)
		ok = !json_object_set_new(object, clt_path_stat_name(i),
					  json_integer((json_int_t)stat.n[i]));
	return ctl_json_whole(object, ok);
}

static json_t *path_json(struct clt_path *path, enum clt_ctl_depth depth)
{
	json_t *object = json_pack("{s:o}", "name", ctl_json_text(clt_path_name(path)));

	if (depth >= CLT_CTL_SHOW)
		object = ctl_json_with(ctl_json_with(object, path_show(path)),
				       path_mtu(&path->att));
	if (depth >= CLT_CTL_STATS)
		object = ctl_json_with(object, path_stat(path));
	return object;
}

static json_t *paths_json(struct clt_sess *sess, enum clt_ctl_depth depth)
{
	json_t *array = json_array();
	bool ok = true;

	for (unsigned i = 0; i < sess->io.natts; i++) {
		if (!sess->paths[i]->removed)
			ok = ok && ctl_json_add(array, path_json(sess->paths[i], depth));
	}
	return ctl_json_whole(array, ok);
}

/* ---- devices ---- */

static json_t *dev_json(const struct dev *dev)
{
	json_t *object = json_pack("{s:i,s:o,s:o,s:b,s:o}", "id", (int)dev_id(dev),
				   "export", ctl_json_text(dev_name(dev)),
				   "access_mode", ctl_json_text(rnbd_access_names[dev_mode(dev)]),
				   "read_only", dev_mode(dev) == RNBD_ACCESS_RO,
				   "state", ctl_json_text(dev_state_name(dev)));
	const char *cause = dev_cause(dev);

	return cause ? ctl_json_with(object, json_pack("{s:o}", "cause", ctl_json_text(cause))) :
		       object;
}

static json_t *devs_json(struct client *clt)
{
	json_t *array = json_array();
	struct dev *dev;
	bool ok = true;

	dev_for_each(dev, clt)
		ok = ok && ctl_json_add(array, dev_json(dev));
	return ctl_json_whole(array, ok);
}

static json_t *export_stat(const struct dev *dev)
{
	struct dev_stat sum;
	json_t *wait;

	dev_stat_get(dev, &sum);
	wait = ctl_json_with(json_pack("{s:I}", "count", (json_int_t)hist_total(&sum.queued)),
			     ctl_stat_hist(&sum.queued));
	return ctl_json_with(ctl_stat_io(&sum.io),
			     json_pack("{s:{s:o}}", "queueing", "wait", wait));
}

static json_t *export_show(const struct dev *dev)
{
	const char *mode = dev_mode(dev) == RNBD_ACCESS_RO ? "ro" : "rw";

	return json_pack("{s:I,s:o,s:i,s:I}", "size", (json_int_t)dev_size(dev),
			 "mode", ctl_json_text(mode), "users", (int)dev_users(dev),
			 "oldest_ns", (json_int_t)dev_stat_oldest_ns(dev));
}

/* The export that the server has refused, and that nobody has open: as an export without storage
 * at a server. */
static bool add_refused(json_t *array, const struct client *clt, enum clt_ctl_depth depth)
{
	const char *name, *why;
	uint64_t ms;

	why = depth >= CLT_CTL_SHOW ? dev_watch_refused(clt, &name, &ms) : NULL;
	return !why || ctl_json_add(array, json_pack("{s:o,s:o,s:I,s:o}",
						     "name", ctl_json_text(name),
						     "storage", ctl_json_text("refused"),
						     "failed_ns", (json_int_t)ms * 1000000,
						     "error", ctl_json_text(why)));
}

/* The devices again, as exports of the front end. */
static json_t *exports_json(struct client *clt, enum clt_ctl_depth depth)
{
	json_t *array = json_array();
	struct dev *dev;
	bool ok = true;

	dev_for_each(dev, clt) {
		json_t *object = json_pack("{s:o}", "name", ctl_json_text(dev_name(dev)));

		if (depth >= CLT_CTL_SHOW)
			object = ctl_json_with(object, export_show(dev));
		if (depth >= CLT_CTL_STATS)
			object = ctl_json_with(object, export_stat(dev));
		ok = ok && ctl_json_add(array, object);
	}
	ok = ok && add_refused(array, clt, depth);
	return ctl_json_whole(array, ok);
}

/* ---- the program ---- */

static json_t *sess_show(struct client *clt, uint64_t oldest_ns)
{
	struct clt_sess *sess = &clt->sess;
	const char *state = clt_sess_fsm.states[atomic_load(&sess->io.state)];
	const char *policy = clt_pick_policies[atomic_load(&sess->io.policy)];

	return json_pack("{s:o,s:o,s:I,s:I,s:I,s:o,s:i,s:I,s:o}", "uuid", ctl_json_uuid(sess->uuid),
			 "state", ctl_json_text(state),
			 "up_ns", (json_int_t)clt_sess_up_ms(sess) * 1000000,
			 "down_ns", (json_int_t)clt_sess_down_ms(sess) * 1000000,
			 "oldest_ns", (json_int_t)oldest_ns,
			 "policy", ctl_json_text(policy),
			 "max_reconnect_attempts", sess->max_reconnect_attempts,
			 "poll_us", (json_int_t)sess->io.poll_us,
			 "devices", devs_json(clt));
}

/* "peer_lacks": the features of this version that the server has not, once it has answered. */
static json_t *sess_peer(const struct client *clt)
{
	uint32_t lacks = RNBD_EXT_ALL & ~atomic_load(&clt->features);

	if (clt->peer == CLIENT_PEER_NEW)
		return json_object();
	return json_pack("{s:o}", "peer_lacks",
			 ctl_json_bits(lacks, rnbd_ext_names, RNBD_EXT_FEATURES));
}

static json_t *sess_json(struct client *clt, enum clt_ctl_depth depth, uint64_t oldest_ns)
{
	struct clt_sess *sess = &clt->sess;
	json_t *object = json_pack("{s:o,s:o}", "name", ctl_json_text(sess->name),
				   "paths", paths_json(sess, depth));

	if (depth >= CLT_CTL_SHOW)
		object = ctl_json_with(ctl_json_with(object, sess_show(clt, oldest_ns)),
				       sess_peer(clt));
	return object;
}

/* "digest_errors", and "digest_error_ns" since the last one, if there was any. */
static json_t *digest_errors_json(struct clt_sess *sess)
{
	struct clt_path *path;
	uint64_t n = 0, last_ms = 0;

	clt_sess_for_each(path, sess) {
		n += path->digest_errors;
		last_ms = MAX(last_ms, path->digest_error_ms);
	}
	return ctl_digest_errors_json(n, clock_now_ms() - last_ms);
}

/* The name of the program, for which @name has room: that of its file, as its unit has, whatever
 * the name of its export. */
static const char *program_name(const struct client *clt, const struct clt_conf *conf,
				char name[RNBD_NAME_MAX])
{
	const char *file = conf->config ? strrchr(conf->config, '/') : NULL;
	size_t n = file ? strlen(++file) : 0;

	if (n > 5 && !strcmp(file + n - 5, ".conf"))
		n -= 5;
	if (conf->name)
		return conf->name;
	if (!n)
		return conf->export_name ? conf->export_name : clt->sess.name;
	snprintf(name, RNBD_NAME_MAX, "%.*s", (int)n, file);
	return name;
}

json_t *clt_secrets_json(const struct fab_tls *tls, const struct fab_tls_conf *conf,
			 const char *auth_psk)
{
	const struct secrets_dates dates = secrets_dates(fab_tls_secrets(tls));
	const struct ctl_secrets secrets = {
		.tls = fab_tls_mode_names[fab_tls_mode(tls)],
		.tls_psk = tls ? conf->psk : NULL,
		.tls_certificates = tls ? conf->certificates : NULL,
		.auth_psk = auth_psk,
		.end_file = dates.end_file,
		.end_s = dates.end_s,
		.begin_file = dates.begin_file,
		.begin_s = dates.begin_s,
	};

	return ctl_secrets_json(&secrets);
}

/* @object with the secrets of the client, and with what its front end shows. */
static json_t *with_secrets(json_t *object, const struct clt_conf *conf)
{
	object = ctl_json_with(object, clt_secrets_json(conf->tls, &conf->tls_conf,
							conf->auth ? conf->auth_conf.psk : NULL));
	if (conf->front->show)
		object = ctl_json_with(object, conf->front->show());
	return object;
}

json_t *clt_ctl_json(struct client *clt, const struct clt_conf *conf, enum clt_ctl_depth depth)
{
	uint64_t timeout_ms = clt->sess.io_timeout_ms, oldest_ns = dev_stat_ages(clt);
	char name[RNBD_NAME_MAX];
	json_t *object = json_pack("{s:o,s:o,s:i,s:o,s:[o]}",
				   "program", ctl_json_text(conf->front->program),
				   "name", ctl_json_text(program_name(clt, conf, name)),
				   "pid", (int)getpid(),
				   "exports", exports_json(clt, depth),
				   "sessions", sess_json(clt, depth, oldest_ns));

	if (depth >= CLT_CTL_SHOW)
		object = ctl_json_with(object, json_pack("{s:o,s:i,s:I,s:I}",
							 "version", ctl_json_text(PACKAGE_VERSION),
							 "control_version", CTL_VERSION,
							 "files_age_ns",
							 (json_int_t)files_age_ns(),
							 "now_ns", (json_int_t)clock_now_ns()));
	if (depth >= CLT_CTL_SHOW)
		object = ctl_json_with(object, digest_errors_json(&clt->sess));
	if (depth >= CLT_CTL_SHOW && timeout_ms != CLOCK_NEVER)
		object = ctl_json_with(object, json_pack("{s:I}", "io_timeout_ns",
							 (json_int_t)timeout_ms * 1000000));
	if (depth >= CLT_CTL_SHOW)
		object = with_secrets(object, conf);
	return object;
}
