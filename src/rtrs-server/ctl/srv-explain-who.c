/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "number.h"
#include "secrets.h"
#include "srv-ctl.h"
#include "srv-path.h"
#include "srv-sess.h"
#include "srv-state.h"

/* ---- words ---- */

/* Read "uid:NUMBER": the database of users, which may be slow, is not asked. */
static bool parse_user(const char *text, struct fab_addr *addr)
{
	unsigned uid;

	if (strncmp(text, "uid:", 4) || !number_parse_u(text + 4, 0, UINT32_MAX - 1, &uid))
		return false;
	*addr = (struct fab_addr){ .provider = &fab_tcp, .ss.ss_family = AF_UNIX,
				   .len = sizeof(sa_family_t), .uid = uid };
	return true;
}

/* Read an address as "rtrsctl clients" prints it; an IPv6 one needs no brackets. */
static bool parse_address(const char *text, struct fab_addr *addr)
{
	char v6[FAB_ADDR_STRLEN], why[256];

	if (parse_user(text, addr))
		return true;
	if (fab_addr_text_is_unix(text) || strchr(text, '/'))
		return false;
	if (!fab_addr_parse_text(text, &fab_tcp, 0, addr, why, sizeof(why)) && addr->len)
		return true;
	snprintf(v6, sizeof(v6), "[%s]", text);
	return !fab_addr_parse_text(v6, &fab_tcp, 0, addr, why, sizeof(why)) && addr->len;
}

static bool is_identity(const char *text)
{
	return !strncmp(text, "psk:", 4) || !strncmp(text, "cert:", 5);
}

/* Read "psk:NAME[/LABEL][@ADDRESS]" or "cert:NAME[@ADDRESS]". */
static int parse_identity(const char *text, struct explain_who *who, char *err, size_t len)
{
	const char *at = strrchr(text, '@'), *fault;
	size_t n = strlen(text);
	char *label;

	if (at && parse_address(at + 1, &who->addrs[0])) {
		who->address_given = true;
		who->naddrs = 1;
		n = (size_t)(at - text);
	}
	if (n >= sizeof(who->key))
		n = sizeof(who->key) - 1;	/* too long for a name, as the fault says */
	memcpy(who->key, text, n);
	fault = secret_name_fault(strchr(who->key, ':') + 1);
	if (fault)
		return fmt_error(-EINVAL, err, len, "client '%s': behind %.*s %s", text,
				 (int)(strchr(text, ':') - text + 1), text, fault);
	memcpy(who->identity, who->key, sizeof(who->identity));
	label = *text == 'p' ? strchr(who->identity, '/') : NULL;
	if (label)
		*label = '\0';
	return 0;
}

/* ---- sessions ---- */

static bool comes_from(const struct srv_sess *sess, const struct fab_addr *addr)
{
	const struct srv_path *path;

	list_for_each(path, &sess->paths, link) {
		if (fab_addr_same_host(&path->client, addr))
			return true;
	}
	return false;
}

bool srv_explain_who_has(const struct explain_who *who, const struct srv_sess *sess)
{
	if (who->kind == EXPLAIN_SESSION)
		return srv_sess_is_called(sess, who->text);
	if (who->address_given && !comes_from(sess, &who->addrs[0]))
		return false;
	return who->kind == EXPLAIN_ADDRESS || !strcmp(sess->identity, who->identity);
}

static void add_addresses(struct explain_who *who, const struct srv_sess *sess)
{
	const struct srv_path *path;

	list_for_each(path, &sess->paths, link) {
		bool known = false;

		for (unsigned i = 0; i < who->naddrs; i++)
			known = known || fab_addr_same_host(&who->addrs[i], &path->client);
		if (!known && who->naddrs < EXPLAIN_ADDRS)
			who->addrs[who->naddrs++] = path->client;
	}
}

/* Look at the sessions of @who: identity, if the user gave none, and addresses. */
static int look_at_sessions(const struct srv *srv, struct explain_who *who, char *err, size_t len)
{
	const struct srv_sess *sess;

	list_for_each(sess, &srv->sessions, link) {
		if (!srv_explain_who_has(who, sess))
			continue;
		if (who->kind != EXPLAIN_IDENTITY && who->nsess &&
		    strcmp(who->identity, sess->identity))
			return fmt_error(-EINVAL, err, len, "client '%s': %s and %s come from "
					 "there: expected one of them, as psk:NAME@%s", who->text,
					 srv_sess_person(who->identity),
					 srv_sess_person(sess->identity), who->text);
		if (who->kind != EXPLAIN_IDENTITY) {
			memcpy(who->identity, sess->identity, sizeof(who->identity));
			memcpy(who->key, sess->identity, sizeof(who->key));
		}
		who->nsess++;
		if (!who->address_given)
			add_addresses(who, sess);
	}
	return 0;
}

static bool is_session(const struct srv *srv, const char *text)
{
	const struct srv_sess *sess;

	list_for_each(sess, &srv->sessions, link) {
		if (srv_sess_is_called(sess, text))
			return true;
	}
	return false;
}

int srv_explain_who_find(const struct srv *srv, const char *text, struct explain_who *who,
			 char *err, size_t len)
{
	char two[2 * (FAB_IDENTITY_LEN + RTRS_NAME_MAX) + 16];
	int rc;

	*who = (struct explain_who){ .text = text };
	if (srv_sess_two_called(srv, text, two, sizeof(two)))
		return fmt_error(-EINVAL, err, len, "several clients have a session '%s': expected "
				 "%s", text, two);
	if (is_session(srv, text))
		return look_at_sessions(srv, who, err, len);
	if (is_identity(text)) {
		who->kind = EXPLAIN_IDENTITY;
		rc = parse_identity(text, who, err, len);
		return rc ? rc : look_at_sessions(srv, who, err, len);
	}
	if (parse_address(text, &who->addrs[0])) {
		who->kind = EXPLAIN_ADDRESS;
		who->address_given = true;
		who->naddrs = 1;
		return look_at_sessions(srv, who, err, len);
	}
	return fmt_error(-EINVAL, err, len, "client '%s': expected an address, uid:NUMBER, "
			 "psk:NAME, cert:NAME, or both as psk:NAME@ADDRESS, or the name of a "
			 "session, as \"rtrsctl clients\" lists them", text);
}
