/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "auth-creds.h"
#include "doubts.h"
#include "log.h"
#include "srv-keys.h"
#include "srv-state.h"

__attribute__((format(printf, 3, 4)))
static void say_line(doubts_say_fn *say, void *arg, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	say(arg, line);
}

void doubts_log(void *arg, const char *line)
{
	(void)arg;
	log_warn(NULL, "%s", line);
}

/* ---- listeners ---- */

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
static void doubt_everybody(const struct srv_conf *conf, doubts_say_fn *say, void *arg)
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
static void doubt_nobody(const struct srv_conf *conf, doubts_say_fn *say, void *arg)
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
		       const struct allow_list *list, doubts_say_fn *say, void *arg)
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
			 doubts_say_fn *say, void *arg)
{
	doubt_list(doubts, ex, "allow", &ex->allow, say, arg);
	doubt_list(doubts, ex, "read-only", &ex->read_only, say, arg);
}

/* ---- the whole ---- */

struct doubts doubts_of(const struct srv_conf *conf, const struct srv *srv)
{
	return (struct doubts){ conf, srv->tls, srv->auth };
}

void doubts_each(const struct doubts *doubts, doubts_say_fn *say, void *arg)
{
	const struct srv_conf *conf = doubts->conf;

	doubt_everybody(conf, say, arg);
	doubt_nobody(conf, say, arg);
	for (unsigned i = 0; i < conf->nexports; i++)
		doubt_export(doubts, conf->exports[i], say, arg);
}

void doubts_each_of(const struct doubts *doubts, const char *name, doubts_say_fn *say, void *arg)
{
	const struct conf_export *ex = conf_export_find(doubts->conf, name);

	if (ex)
		doubt_export(doubts, ex, say, arg);
}
