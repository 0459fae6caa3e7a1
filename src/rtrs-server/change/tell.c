/* SPDX-License-Identifier: BSD-3-Clause */
/* The log's lines for the administrator: what is served, how requests are protected, how many
 * clients find room, and what is doubtful of a configuration. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "auth-creds.h"
#include "export.h"
#include "log.h"
#include "process.h"
#include "srv-auth.h"
#include "srv-state.h"
#include "store.h"
#include "tell.h"
#include "util.h"

/* "10 GiB", "1.5 TiB"; tenths are cut off. */
static const char *human_size(uint64_t bytes, char *buf, size_t len)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	uint64_t tenths = 0;
	unsigned u = 0;

	while (bytes >= 1024 && u + 1 < ARRAY_SIZE(units)) {
		tenths = bytes % 1024 * 10 / 1024;
		bytes /= 1024;
		u++;
	}
	if (tenths)
		snprintf(buf, len, "%llu.%llu %s", (unsigned long long)bytes,
			 (unsigned long long)tenths, units[u]);
	else
		snprintf(buf, len, "%llu %s", (unsigned long long)bytes, units[u]);
	return buf;
}

/* A name of the store of @ex that came before @ex, can be written, and is not an export of the same
 * name, which is removed and still in use; NULL: none. */
static const struct export *earlier_name(const struct export *ex)
{
	const struct export *other;

	list_for_each(other, &ex->store->names, store_link) {
		if (other == ex)
			break;
		if (!other->spec.readonly && strcmp(other->name, ex->name))
			return other;
	}
	return NULL;
}

/* A mistake most often; a second name for reading is none. */
static void tell_second_name(const struct export *ex)
{
	const struct export *other = earlier_name(ex);

	if (other && !ex->spec.readonly)
		log_warn(ex->name, "'%s' and '%s' of export '%s' are the same storage: while a "
			 "client writes to one of them, the other one refuses writers", ex->path,
			 other->path, other->name);
}

/* Writes behind the limit fail, and so do clients that trust the size. */
static void tell_file_limit(const struct export *ex)
{
	struct rlimit limit;

	if (ex->spec.readonly || strcmp(ex->kind, "file") || getrlimit(RLIMIT_FSIZE, &limit) < 0 ||
	    limit.rlim_cur >= export_size(ex))
		return;
	log_warn(ex->name, "writes at and after byte %llu will fail: the limit of a file's size "
		 "(RLIMIT_FSIZE: LimitFSIZE= of systemd, ulimit -f) is below the export's",
		 (unsigned long long)limit.rlim_cur);
}

void tell_export(const struct export *ex)
{
	const struct rnbd_dev_info *g = &ex->geometry;
	char size[32];

	log_event(LOG_LEVEL_INFO, LOG_FIELDS(EXPORT_ADDED, .export = ex->name), ex->name,
		  "exports %s '%s', %llu bytes (%s), %s, %s, block size %u (logical) "
		  "and %u (physical)%s",
		  ex->kind_text, ex->path, (unsigned long long)export_size(ex),
		  human_size(export_size(ex), size, sizeof(size)),
		  ex->spec.readonly ? "readonly" : "rw", ex->direct ? "direct" : "buffered",
		  g->logical_block_size, g->physical_block_size,
		  ex->spec.readonly || g->max_discard_sectors ? "" :
		  "; no TRIM: the storage does not support discard");
	tell_second_name(ex);
	tell_file_limit(ex);
}

void tell_exports(const struct exports *exports)
{
	const struct export *ex;

	list_for_each(ex, &exports->list, link)
		tell_export(ex);
}

void tell_protection(const struct srv_conf *conf)
{
	static const char *const what[] = {
		[SRV_INVALIDATE_AUTO] = "are protected from clients by keys or copies, as the "
					"device permits",
		[SRV_INVALIDATE_ALWAYS] = "are protected from clients by per-request keys",
		[SRV_INVALIDATE_COPY] = "are protected from clients by copies",
		[SRV_INVALIDATE_NEVER] = "are not protected from clients, which must be trusted",
	};

	log_info(NULL, "write buffers %s (--invalidate=%s)",
		 what[conf->invalidate], srv_invalidate_names[conf->invalidate]);
}

/* A limit beyond the process's own: the process meets the other one first. */
static void tell_far_limits(const struct srv_conf *conf)
{
	char ours[32], all[32];
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < conf->max_cons)
		log_warn(NULL, "--max-connections is %u, and each connection is a descriptor: "
			 "RLIMIT_NOFILE allows %llu (LimitNOFILE= of systemd, ulimit -n)",
			 conf->max_cons, (unsigned long long)limit.rlim_cur);
	if (conf->max_memory > machine()->memory)
		log_warn(NULL, "--max-memory is %s, and this machine, or its control group, "
			 "allows %s", human_size(conf->max_memory, ours, sizeof(ours)),
			 human_size(machine()->memory, all, sizeof(all)));
}

void tell_limits(const struct srv_conf *conf)
{
	uint64_t path = (uint64_t)conf->queue_depth * (conf->max_io_size + CONF_HDR_SIZE);
	char all[32], one[32], host[32];

	log_info(NULL, "limits: %u sessions, %u paths, %u connections, %s for paths of %s; of them "
		 "one host may have %u connections and %s", conf->max_sessions, conf->max_paths,
		 conf->max_cons, human_size(conf->max_memory, all, sizeof(all)),
		 human_size(path, one, sizeof(one)), conf_host_cons(conf),
		 human_size(conf->max_memory / CONF_HOST_MEMORY_SHARE, host, sizeof(host)));
	tell_far_limits(conf);
}

void tell_mistakes(const char *text)
{
	log_lines(LOG_LEVEL_ERROR, "", text);
}

void tell_changes(const char *text)
{
	log_lines(LOG_LEVEL_INFO, "reload: ", text);
}

void tell_plan(const struct srv_conf *conf, const struct plan *plan, FILE *out)
{
	char text[PLAN_TEXT_MAX];

	for (unsigned i = 0; i < conf->nlisteners; i++)
		fprintf(out, "listen on %s\n",
			fab_addr_url(&conf->listeners[i].addr, text, sizeof(text)));
	for (unsigned i = 0; i < plan->n; i++)
		fprintf(out, "%s\n", plan_step_text(&plan->steps[i], text, sizeof(text)));
}

/* ---- doubts ---- */

__attribute__((format(printf, 3, 4)))
static void say_line(tell_doubt_fn *say, void *arg, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	say(arg, line);
}

void tell_doubt(void *arg, const char *line)
{
	(void)arg;
	log_warn(NULL, "%s", line);
}

static bool is_loopback(const struct fab_addr *addr)
{
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)&addr->ss)->sin6_addr;
	const uint8_t *v4 = (const uint8_t *)&((const struct sockaddr_in *)&addr->ss)->sin_addr;

	if (fab_addr_is_unix(addr))
		return true;
	if (addr->ss.ss_family == AF_INET)
		return v4[0] == 127;
	return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

/* True if TLS lets in only those with a key. */
static bool tls_admits_few(const struct fab_tls_conf *tls)
{
	return fab_tls_conf_mode(tls) == FAB_TLS_REQUIRE && (tls->psk || tls->verify_peer);
}

/* True if the listener at @addr goes on only with clients that prove to have a key. */
static bool auth_admits_few(const struct srv_conf *conf, const struct fab_addr *addr)
{
	enum auth_mode mode = conf_listener_auth(conf, addr);

	if (mode == AUTH_MODES)
		mode = auth_conf_mode(&conf->auth);
	return mode == AUTH_MODE_REQUIRE;
}

/* Other machines can reach the server, and nothing restricts them. */
static void doubt_everybody(const struct srv_conf *conf, tell_doubt_fn *say, void *arg)
{
	char text[FAB_ADDR_STRLEN];

	if (conf->nallow || tls_admits_few(&conf->tls))
		return;
	for (unsigned i = 0; i < conf->nlisteners; i++) {
		const struct fab_addr *addr = &conf->listeners[i].addr;

		if (conf->listeners[i].missing || is_loopback(addr) || auth_admits_few(conf, addr))
			continue;
		say_line(say, arg, "--listen %s without --allow: every host that reaches this "
			 "address can read and write the exports; restrict clients with "
			 "--allow=ADDR[/BITS]",
			 fab_addr_url(addr, text, sizeof(text)));
		return;
	}
}

/* Only this machine can reach the server, and may not. */
static void doubt_nobody(const struct srv_conf *conf, tell_doubt_fn *say, void *arg)
{
	for (unsigned i = 0; i < conf->nlisteners; i++) {
		const struct fab_addr *addr = &conf->listeners[i].addr;

		if (!is_loopback(addr) || fab_addr_is_unix(addr) || conf_allow_peer(conf, addr))
			return;
	}
	say(arg, "no client can connect: the server listens on loopback only, and --allow contains "
	    "no address there; expected --listen=tcp://ADDR for the clients of --allow");
}

/* ---- rules of exports ---- */

/* The reason why nobody can be @identity, or NULL: somebody may. */
static const char *no_such_client(const struct doubts *doubts, const char *identity)
{
	if (!strncmp(identity, "cert:", 5))
		return doubts->conf->tls.certificates ? NULL : "there is no --tls-certificates";
	if (srv_keys_name(doubts->tls, doubts->auth, identity))
		return NULL;
	return doubts->conf->tls.psk || doubts->conf->auth.psk ?
	       "no file of keys has this name" : "there is no --tls-psk and no --auth-psk";
}

static void doubt_list(const struct doubts *doubts, const struct conf_export *ex, const char *key,
		       const struct allow_list *list, tell_doubt_fn *say, void *arg)
{
	for (unsigned i = 0; i < list->n; i++) {
		const struct srv_allow *rule = &list->rules[i];
		const char *why = rule->family == AF_UNSPEC ?
				  no_such_client(doubts, rule->identity) : NULL;

		if (why)
			say_line(say, arg, "export '%s': %s %s matches no client: %s",
				 ex->spec.name, key, rule->identity, why);
	}
}

static void doubt_export(const struct doubts *doubts, const struct conf_export *ex,
			 tell_doubt_fn *say, void *arg)
{
	doubt_list(doubts, ex, "allow", &ex->allow, say, arg);
	doubt_list(doubts, ex, "read-only", &ex->read_only, say, arg);
}

/* ---- the whole ---- */

struct doubts tell_doubts_of(const struct srv_conf *conf, const struct srv *srv)
{
	return (struct doubts){ conf, srv->tls, srv->auth };
}

void tell_doubts(const struct doubts *doubts, tell_doubt_fn *say, void *arg)
{
	const struct srv_conf *conf = doubts->conf;

	doubt_everybody(conf, say, arg);
	doubt_nobody(conf, say, arg);
	for (unsigned i = 0; i < conf->nexports; i++)
		doubt_export(doubts, conf->exports[i], say, arg);
}

void tell_doubts_export(const struct doubts *doubts, const char *name, tell_doubt_fn *say,
			void *arg)
{
	const struct conf_export *ex = conf_export_find(doubts->conf, name);

	if (ex)
		doubt_export(doubts, ex, say, arg);
}
