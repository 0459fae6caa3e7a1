/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the answer until it is given.  Changes nothing, and asks no storage.  The checks are those
 * of srv-listen.c (address), srv-pass.c (key, listener), srv-accept.c (limit), srv-allow.c (rights)
 * and srv-open.c (export, mode, use). */
#include <config.h>

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "ctl-json.h"
#include "export-retry.h"
#include "export.h"
#include "exports.h"
#include "fab-tls.h"
#include "number.h"
#include "srv-allow.h"
#include "srv-ctl.h"
#include "srv-listen.h"
#include "srv-rnbd-state.h"
#include "srv-sess.h"
#include "srv-state.h"
#include "store-lead.h"

#define NOTE_LEN 1024u			/* of a line; a longer one is cut */

enum verdict { PASSES, REFUSES, DEPENDS };

struct explain {
	const struct srv *srv;
	const struct explain_who *who;
	json_t *checks;
	bool whole;			/* no memory was missing */
	enum verdict verdict;		/* of all: the worst, a refusal first */
	enum rnbd_access_mode mode;	/* what the client may open the export for */
};

__attribute__((format(printf, 4, 5)))
static void note(struct explain *e, const char *check, enum verdict verdict, const char *fmt, ...)
{
	static const char *const words[] = {
		[PASSES] = "passes", [REFUSES] = "refuses", [DEPENDS] = "depends",
	};
	char text[NOTE_LEN];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (verdict == REFUSES || e->verdict == PASSES)
		e->verdict = verdict;
	e->whole = e->whole &&
		   ctl_json_add(e->checks, json_pack("{s:o,s:o,s:o}",
						     "check", ctl_json_text(check),
						     "verdict", ctl_json_text(words[verdict]),
						     "text", ctl_json_text(text)));
}

static const char *person(const struct explain *e)
{
	return srv_sess_person(e->who->identity);
}

/* Append to @buf, a list. */
__attribute__((format(printf, 3, 4)))
static void append(char *buf, size_t len, const char *fmt, ...)
{
	va_list ap;

	if (*buf)
		fmt_add(buf, len, "; ");
	va_start(ap, fmt);
	fmt_vadd(buf, len, fmt, ap);
	va_end(ap);
}

/* As the user writes it: the process of a user is that of a connection. */
static const char *host_of(const struct fab_addr *addr, char *buf, size_t len)
{
	if (!fab_addr_is_unix(addr))
		return fab_addr_format_host(addr, buf, len);
	snprintf(buf, len, "uid:%u", (unsigned)addr->uid);
	return buf;
}

/* ---- the connection ---- */

static void check_address(struct explain *e)
{
	const struct srv_conf *conf = e->srv->conf;
	char host[FAB_ADDR_STRLEN], text[FAB_IDENTITY_LEN];

	if (!conf->nallow) {
		note(e, "address", PASSES, "every address may connect: there is no --allow");
		return;
	}
	if (!e->who->naddrs)
		note(e, "address", DEPENDS, "--allow has rules, and the address of %s is not "
		     "known: ask for %s@ADDRESS", person(e), e->who->key);
	for (unsigned i = 0; i < e->who->naddrs; i++) {
		const struct fab_addr *addr = &e->who->addrs[i];
		const struct srv_allow *rule = conf_allow_find(conf->allow, conf->nallow, addr, "");

		host_of(addr, host, sizeof(host));
		if (rule)
			note(e, "address", PASSES, "--allow=%s names %s",
			     conf_allow_rule_text(rule, text, sizeof(text)), host);
		else if (conf_allow_peer(conf, addr))
			note(e, "address", PASSES, "--allow has no rule for users, and %s came "
			     "through a unix socket", host);
		else
			note(e, "address", REFUSES, "no --allow names %s", host);
	}
}

/* The key of the client: a key that was taken out is as unknown as one that never was. */
static void check_key(struct explain *e)
{
	const struct srv_conf *conf = e->srv->conf;
	char names[512], in[NOTE_LEN] = "", files[NOTE_LEN] = "";
	const char *key = e->who->key;

	if (!strncmp(key, "cert:", 5) && e->srv->tls && conf->tls.certificates)
		note(e, "key", PASSES, "--tls-certificates=%s: a certificate is judged when it "
		     "comes, by ca-cert.pem, ca-crl.pem and its dates", conf->tls.certificates);
	if (strncmp(key, "psk:", 4))
		return;
	if (e->srv->auth)
		append(files, sizeof(files), "--auth-psk=%s", conf->auth.psk);
	if (secrets_list(auth_secrets(e->srv->auth), key, names, sizeof(names)))
		append(in, sizeof(in), "--auth-psk=%s has %s", conf->auth.psk, names);
	if (e->srv->tls && conf->tls.psk)
		append(files, sizeof(files), "--tls-psk=%s", conf->tls.psk);
	if (secrets_list(fab_tls_secrets(e->srv->tls), key, names, sizeof(names)))
		append(in, sizeof(in), "--tls-psk=%s has %s", conf->tls.psk, names);
	if (*in)
		note(e, "key", PASSES, "%s%s", in, e->who->nsess ? "" : ": if this client reads "
		     "that its key is refused, its file has another key under the name");
	else
		note(e, "key", REFUSES, "%s: no key of %s was read there, or it was removed",
		     *files ? files : "there is no file of keys", key);
}

/* The reason why the listener @l does not take the client for what it is; NULL: it does. */
static const char *listener_fault(const struct explain *e, const struct srv_listening *l)
{
	const struct srv *srv = e->srv;
	const struct fab_tls_conf *tls = &srv->conf->tls;
	const char *identity = e->who->identity;
	bool has_tls = fab_provider_has_tls(l->addr->provider);
	enum fab_tls_mode mode = has_tls ? fab_tls_mode(srv->tls) : FAB_TLS_OFF;
	bool by_tls = mode != FAB_TLS_OFF && secrets_name(fab_tls_secrets(srv->tls), identity);
	bool by_auth = l->auth != AUTH_MODE_NONE && secrets_name(auth_secrets(srv->auth), identity);

	if (!has_tls && fab_tls_mode(srv->tls) == FAB_TLS_REQUIRE && !srv->tls->spares_rdma)
		return "TLS is required, which RDMA does not have";
	if (!*identity && (l->auth == AUTH_MODE_REQUIRE || (mode == FAB_TLS_REQUIRE && tls->psk)))
		return "a client without a key is refused";
	if (!*identity)
		return mode == FAB_TLS_REQUIRE && tls->verify_peer ? "TLS requires a certificate" :
		       NULL;
	if (mode == FAB_TLS_REQUIRE && tls->psk && !by_tls)
		return "TLS requires a key, and this client has none here";
	if (!strncmp(identity, "cert:", 5))
		return mode != FAB_TLS_OFF && tls->certificates && tls->verify_peer ? NULL :
		       "no certificate of a client is verified there";
	if (by_tls || by_auth)
		return NULL;
	if (l->auth == AUTH_MODE_NONE && (mode == FAB_TLS_OFF || !tls->psk))
		return "no client proves a key there: the client has no name, ask for its address";
	return "its key is refused there";
}

struct listeners {
	struct explain *e;
	char in[NOTE_LEN / 2], out[NOTE_LEN / 2];
};

static void look_at_listener(void *arg, const struct srv_listening *l)
{
	struct listeners *all = arg;
	const struct explain_who *who = all->e->who;
	const char *fault = listener_fault(all->e, l);

	if (who->naddrs && fab_addr_is_unix(l->addr) != fab_addr_is_unix(&who->addrs[0]))
		return;
	append(fault ? all->out : all->in, sizeof(all->in), "%s (auth=%s, tls=%s%s%s)", l->url,
	       auth_mode_names[l->auth],
	       fab_tls_mode_names[fab_provider_has_tls(l->addr->provider) ?
				  fab_tls_mode(all->e->srv->tls) : FAB_TLS_OFF],
	       fault ? ": " : "", fault ? fault : "");
}

static void check_listeners(struct explain *e)
{
	struct listeners all = { .e = e };

	srv_listen_each(e->srv, look_at_listener, &all);
	if (*all.in)
		note(e, "listener", PASSES, "%s", all.in);
	else if (*all.out && !*e->who->identity)
		note(e, "listener", REFUSES, "%s; of a client with a key ask for psk:NAME@%s",
		     all.out, e->who->text);
	else
		note(e, "listener", REFUSES, "%s", *all.out ? all.out :
		     "the server listens nowhere where this client could come from");
}

static void check_limits(struct explain *e)
{
	const struct srv *srv = e->srv;
	const struct srv_conf *conf = srv->conf;

	if (e->who->nsess)
		note(e, "limit", PASSES, "the client is connected, by %u session%s", e->who->nsess,
		     e->who->nsess > 1 ? "s" : "");
	else if (srv->nsessions >= conf->max_sessions)
		note(e, "limit", REFUSES, "%u sessions of --max-sessions=%u are there",
		     srv->nsessions, conf->max_sessions);
	else if (srv->npaths >= conf->max_paths)
		note(e, "limit", REFUSES, "%u paths of --max-paths=%u are there", srv->npaths,
		     conf->max_paths);
	else if (srv->ncons >= conf->max_cons)
		note(e, "limit", REFUSES, "%u connections of --max-connections=%u are there",
		     srv->ncons, conf->max_cons);
	else
		note(e, "limit", PASSES, "%u sessions of %u, %u paths of %u, %u connections of %u",
		     srv->nsessions, conf->max_sessions, srv->npaths, conf->max_paths, srv->ncons,
		     conf->max_cons);
}

/* ---- rights ---- */

static bool decided_by_address(const struct allow_list *list)
{
	for (unsigned i = 0; i < list->n; i++) {
		if (list->rules[i].family != AF_UNSPEC)
			return true;
	}
	return false;
}

/* The right of the client that comes from @addr. */
static void check_right(struct explain *e, const struct allow_list *allow,
			const struct allow_list *read_only, const struct fab_addr *addr)
{
	const struct srv_allow *rule;
	char text[FAB_IDENTITY_LEN], host[FAB_ADDR_STRLEN] = "";
	char rules[NOTE_LEN / 3], only[NOTE_LEN / 3];
	enum srv_right right = srv_allow_right(allow, read_only, addr, e->who->identity, &rule);

	if (addr->len)
		host_of(addr, host, sizeof(host));
	if (rule)
		conf_allow_rule_text(rule, text, sizeof(text));
	conf_allow_list_text(allow, rules, sizeof(rules));
	conf_allow_list_text(read_only, only, sizeof(only));
	if (!addr->len && right != SRV_RIGHT_READ &&
	    (decided_by_address(read_only) ||
	     (right == SRV_RIGHT_NONE && decided_by_address(allow))))
		note(e, "rights", DEPENDS, "allow = %s; read-only = %s: the address decides, which "
		     "is not known: ask for %s@ADDRESS", rules, read_only->n ? only : "none",
		     e->who->key);
	else if (right == SRV_RIGHT_READ)
		note(e, "rights", PASSES, "read-only: read-only = %s names %s", text,
		     rule->family == AF_UNSPEC ? person(e) : host);
	else if (rule)
		note(e, "rights", PASSES, "allow = %s names %s", text,
		     rule->family == AF_UNSPEC ? person(e) : host);
	else if (right == SRV_RIGHT_ALL)
		note(e, "rights", PASSES, "the export has no rules: every client may open it");
	else
		note(e, "rights", REFUSES, "allow = %s; read-only = %s: no rule names %s%s%s (the "
		     "client reads: no such export)", allow->n ? rules : "none",
		     read_only->n ? only : "none", person(e), *host ? " or " : "", host);
	if (right == SRV_RIGHT_READ)
		e->mode = RNBD_ACCESS_RO;
}

/* A session may do what each of its paths may do. */
static void check_rights(struct explain *e, const struct allow_list *allow,
			 const struct allow_list *read_only)
{
	static const struct fab_addr unknown;

	if (!e->who->naddrs)
		check_right(e, allow, read_only, &unknown);
	for (unsigned i = 0; i < e->who->naddrs; i++)
		check_right(e, allow, read_only, &e->who->addrs[i]);
}

/* ---- the export ---- */

/* True if a session of the client has @ex open, as the note says. */
static bool has_open(struct explain *e, const struct export *ex)
{
	char name[FAB_IDENTITY_LEN + RTRS_NAME_MAX + 2];
	const struct srv_sess *sess;

	list_for_each(sess, &e->srv->sessions, link) {
		const struct srv_dev *dev = srv_dev_find(&srv_rnbd_sess(sess)->devs, ex);

		if (!dev || dev->state != SRV_DEV_OPEN || !srv_explain_who_has(e->who, sess))
			continue;
		note(e, "use", PASSES, "session %s of this client has it open as %s%s",
		     srv_sess_tell_name(sess, name, sizeof(name)), rnbd_access_names[dev->mode],
		     dev->mode == RNBD_ACCESS_RO ? "" : ": another session cannot open it as rw");
		return true;
	}
	return false;
}

/* Append the sessions that write to the store of @ex. */
static void name_writers(const struct explain *e, const struct export *ex, char *buf, size_t len)
{
	char name[FAB_IDENTITY_LEN + RTRS_NAME_MAX + 2], host[FAB_ADDR_STRLEN];
	const struct srv_sess *sess;

	list_for_each(sess, &e->srv->sessions, link) {
		srv_dev_for_each(dev, &srv_rnbd_sess(sess)->devs) {
			if (dev->ex->store != ex->store || dev->mode == RNBD_ACCESS_RO)
				continue;
			append(buf, len, "session %s of %s, from %s, has %s open as %s%s",
			       srv_sess_tell_name(sess, name, sizeof(name)),
			       srv_sess_person(sess->identity),
			       host_of(&sess->client, host, sizeof(host)),
			       dev->ex->name, rnbd_access_names[dev->mode],
			       dev->state != SRV_DEV_OPEN ? ", and is closing it" : "");
		}
	}
}

/* The lock of a store that other servers have, too. */
static void check_lead(struct explain *e, const struct export *ex)
{
	const char *why = store_lead_refusal(ex->store);

	if (!ex->spec.shared)
		return;
	if (store_lead_lets(ex, e->mode))
		note(e, "lock", PASSES, e->mode == RNBD_ACCESS_RO ? "a reader needs no lock" :
		     "this server has the lock of the storage");
	else
		note(e, "lock", DEPENDS, "another server may have the lock of the storage: this "
		     "one takes it when a client opens the export for writing%s%s",
		     *why ? "; the last try: " : "", why);
}

static void check_use(struct explain *e, const struct export *ex)
{
	unsigned writers = ex->store->writers;
	char who[NOTE_LEN / 2] = "";

	if (has_open(e, ex))
		return;
	name_writers(e, ex, who, sizeof(who));
	if (e->mode == RNBD_ACCESS_RO)
		note(e, "use", PASSES, "readers share it%s%s", *who ? ": " : "", who);
	else if (!writers)
		note(e, "use", PASSES, "no session has it open for writing");
	else
		note(e, "use", REFUSES, "%s (%s)", who, writers == 1 ?
		     "mode=ro or mode=migration would share it" : "mode=ro would share it");
	check_lead(e, ex);
}

static void check_mode(struct explain *e, const struct export *ex)
{
	if (ex->spec.readonly)
		note(e, "mode", PASSES, "read-only: the export is read-only for all");
	else
		note(e, "mode", PASSES, "the export is for reading and writing");
	if (ex->spec.readonly)
		e->mode = RNBD_ACCESS_RO;
}

static void check_export(struct explain *e, const char *name)
{
	const struct exports *exports = srv_rnbd(e->srv)->exports;
	const struct export_retry *retry = export_retry_find(exports, name);
	const struct conf_export *conf = conf_export_find(e->srv->conf, name);
	const struct export *ex = exports_find(exports, name);

	if (ex) {
		note(e, "export", PASSES, "%s is exported, storage %s", name,
		     export_retry_word(ex));
		check_rights(e, &srv_export_of(ex)->allow, &srv_export_of(ex)->read_only);
		check_mode(e, ex);
		check_use(e, ex);
	} else if (retry && export_retry_is_bare(retry)) {
		note(e, "export", REFUSES, "the storage of %s is %s%s%s (a client of ours waits)",
		     name, export_retry_bare_word(retry), *retry->why ? ": " : "", retry->why);
		if (conf)
			check_rights(e, &conf->allow, &conf->read_only);
	} else {
		note(e, "export", REFUSES, "there is no export '%s': \"rtrsctl list\" names those "
		     "that are", name);
	}
}

/* ---- the last time ---- */

struct wanted {
	const struct explain_who *who;
	const char *export;
};

/* True if @r is a refusal of the client, of its connection or of the export.  A name that was said
 * and not proven counts. */
static bool is_of_client(const void *arg, const struct srv_refused *r)
{
	const struct wanted *w = arg;
	bool named = *w->who->identity && !strcmp(r->identity, w->who->identity);
	bool known = false;

	if (*r->export && strcmp(r->export, w->export))
		return false;
	for (unsigned i = 0; i < w->who->naddrs; i++)
		known = known || fab_addr_same_host(&w->who->addrs[i], &r->peer);
	if (w->who->kind == EXPLAIN_ADDRESS)
		return known;
	if (!*w->who->identity)
		return known && !*r->identity;
	return w->who->address_given ? known && (named || !*r->identity) : named;
}

/* @answer with "last_refusal", if the client was refused. */
static json_t *with_last(json_t *answer, const struct explain *e, const char *name)
{
	const struct wanted wanted = { e->who, name };
	const struct srv_refused *r = srv_log_last_refusal(e->srv, is_of_client, &wanted);
	char host[FAB_ADDR_STRLEN];

	if (!r)
		return answer;
	return ctl_json_with(answer, json_pack("{s:{s:I,s:o,s:o,s:o}}", "last_refusal",
				"ago_ns", (json_int_t)(clock_now_ms() - r->at_ms) * 1000000,
				"from", ctl_json_text(host_of(&r->peer, host, sizeof(host))),
				"identity", ctl_json_text(r->identity),
				"reason", ctl_json_text(r->why)));
}

/* ---- the answer ---- */

static json_t *addresses(const struct explain_who *who)
{
	json_t *array = json_array();
	char text[FAB_ADDR_STRLEN];
	bool ok = true;

	for (unsigned i = 0; i < who->naddrs; i++)
		ok = ok && ctl_json_add(array, ctl_json_text(host_of(&who->addrs[i], text,
							      sizeof(text))));
	return ctl_json_whole(array, ok);
}

json_t *srv_explain(const struct srv *srv, const char *name, const struct explain_who *who)
{
	struct explain e = { .srv = srv, .who = who, .checks = json_array(), .whole = true,
			     .mode = RNBD_ACCESS_RW };
	json_t *answer;

	check_address(&e);
	check_key(&e);
	check_listeners(&e);
	check_limits(&e);
	check_export(&e, name);
	answer = json_pack("{s:o,s:o,s:i,s:o,s:o,s:o,s:o,s:i,s:o,s:b}",
			   "program", ctl_json_text("rtrs-server"),
			   "name", ctl_json_text(srv->conf->name),
			   "pid", (int)getpid(),
			   "export", ctl_json_text(name),
			   "client", ctl_json_text(who->text),
			   "identity", ctl_json_text(who->identity),
			   "addresses", addresses(who),
			   "sessions", (int)who->nsess,
			   "checks", ctl_json_whole(e.checks, e.whole),
			   "may_open", e.verdict == PASSES);
	if (e.verdict == PASSES)
		answer = ctl_json_with(answer, json_pack("{s:o}", "mode",
						ctl_json_text(rnbd_access_names[e.mode])));
	return with_last(answer, &e, name);
}
