/* SPDX-License-Identifier: BSD-3-Clause */
/* Prefixes of addresses and users, and whether a peer is in a list of them.  Owns nothing. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "names.h"
#include "number.h"
#include "secrets.h"

#define ALLOW_FORMS "expected ADDR or ADDR/BITS with an IPv4 or IPv6 address, uid:USER or unix"
#define ALLOW_FORMS_EXPORT "expected ADDR or ADDR/BITS with an IPv4 or IPv6 address, uid:USER, " \
	"unix, psk:NAME or cert:NAME"

/* Clear the bits of @addr behind the first @bits. */
static void allow_mask(uint8_t addr[16], unsigned bits)
{
	for (unsigned i = 0; i < 16; i++) {
		unsigned keep = bits > 8 * i ? bits - 8 * i : 0;

		if (keep < 8)
			addr[i] &= (uint8_t)(0xff00u >> keep);
	}
}

static int allow_parse_user(const char *text, struct srv_allow *allow, char *why, size_t len)
{
	allow->family = AF_UNIX;
	if (fab_user_parse(text, &allow->uid))
		return fmt_error(strspn(text, "0123456789") == strlen(text) ? -EINVAL : -ENOENT,
				 why, len, "expected uid: and the name of a user of this machine, "
				 "or a number from 0 to %u", UINT32_MAX - 1);
	return 0;
}

/* Have ::ffff:a.b.c.d/96+n mean a.b.c.d/n, as conf_allow_find() has it of a peer. */
static int allow_unmap(struct srv_allow *allow, char *why, size_t len)
{
	static const uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff };
	uint8_t prefix[16];

	memcpy(prefix, mapped, sizeof(prefix));
	allow_mask(prefix, allow->bits);
	if (allow->family != AF_INET6 || allow->bits <= 80 || memcmp(allow->addr, prefix, 12))
		return 0;
	if (allow->bits < 96)
		return fmt_error(-EINVAL, why, len, "expected /96 or more for an IPv4 address "
				 "in IPv6 (::ffff:a.b.c.d), or the IPv4 address");
	allow->family = AF_INET;
	allow->bits -= 96;
	memmove(allow->addr, allow->addr + 12, 4);
	memset(allow->addr + 4, 0, 12);
	return 0;
}

int conf_allow_parse(const char *text, struct srv_allow *allow, char *why, size_t whylen)
{
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	char addr[INET6_ADDRSTRLEN];

	memset(allow, 0, sizeof(*allow));
	if (!strncmp(text, "uid:", 4))
		return allow_parse_user(text + 4, allow, why, whylen);
	if (!strncmp(text, "psk:", 4) || !strncmp(text, "cert:", 5))
		return fmt_error(-EINVAL, why, whylen, "who has a key or certificate is known "
				 "after the connection, so an export has this rule: expected "
				 "allow = %s below [export \"NAME\"], or NAME=PATH,allow=%s", text,
				 text);
	if (!strcmp(text, "all"))
		return fmt_error(-EINVAL, why, whylen, "without a rule every address may connect: "
				 "leave it out, or 0.0.0.0/0 and ::/0");
	if (!strcmp(text, "unix")) {
		allow->family = AF_UNIX;
		allow->uid = ALLOW_ANY_USER;
		return 0;
	}
	if (len > 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	if (!len || len >= sizeof(addr))
		return fmt_error(-EINVAL, why, whylen, ALLOW_FORMS);
	memcpy(addr, text, len);
	addr[len] = '\0';
	if (inet_pton(AF_INET, addr, allow->addr) == 1) {
		allow->family = AF_INET;
		allow->bits = 32;
	} else if (inet_pton(AF_INET6, addr, allow->addr) == 1) {
		allow->family = AF_INET6;
		allow->bits = 128;
	} else {
		return fmt_error(-EINVAL, why, whylen, ALLOW_FORMS);
	}
	if (slash && !number_parse_u(slash + 1, 0, allow->bits, &allow->bits))
		return fmt_error(-EINVAL, why, whylen,
				 "expected a number of bits from 0 to %u after '/'",
				 allow->bits);
	allow_mask(allow->addr, allow->bits);
	return allow_unmap(allow, why, whylen);
}

static bool allow_has_address(const struct srv_allow *allow, int family, const uint8_t addr[16])
{
	uint8_t masked[16];

	if (allow->family != family || family == AF_UNSPEC)
		return false;
	memcpy(masked, addr, sizeof(masked));
	allow_mask(masked, allow->bits);
	return !memcmp(masked, allow->addr, sizeof(masked));
}

/* True if @rule is for the identity @identity, which is not "". */
static bool allow_has_identity(const struct srv_allow *rule, const char *identity)
{
	return rule->family == AF_UNSPEC && *identity && !strcmp(rule->identity, identity);
}

const struct srv_allow *conf_allow_find(const struct srv_allow *rules, unsigned n,
					const struct fab_addr *peer, const char *identity)
{
	int family = peer->ss.ss_family;
	uint8_t addr[16] = { 0 };

	if (family == AF_INET) {
		memcpy(addr, &((const struct sockaddr_in *)&peer->ss)->sin_addr, 4);
	} else if (family == AF_INET6) {
		const struct in6_addr *a = &((const struct sockaddr_in6 *)&peer->ss)->sin6_addr;

		if (IN6_IS_ADDR_V4MAPPED(a)) {
			family = AF_INET;
			memcpy(addr, a->s6_addr + 12, 4);
		} else {
			memcpy(addr, a->s6_addr, 16);
		}
	}
	for (unsigned i = 0; i < n; i++) {
		if (allow_has_identity(&rules[i], identity))
			return &rules[i];
		if (family != AF_UNIX && allow_has_address(&rules[i], family, addr))
			return &rules[i];
		if (fab_addr_is_unix(peer) && rules[i].family == AF_UNIX &&
		    (rules[i].uid == ALLOW_ANY_USER || rules[i].uid == peer->uid))
			return &rules[i];
	}
	return NULL;
}

bool conf_allow_peer(const struct srv_conf *conf, const struct fab_addr *peer)
{
	bool addresses = true;		/* and nothing else */

	if (!conf->nallow || conf_allow_find(conf->allow, conf->nallow, peer, ""))
		return true;
	for (unsigned i = 0; i < conf->nallow; i++)
		addresses = addresses && conf->allow[i].family != AF_UNIX;
	return addresses && fab_addr_is_unix(peer);
}

/* ---- lists ---- */

int conf_allow_split(const char *text, conf_allow_add_fn *add, void *arg, char *why, size_t len)
{
	char *copy = strdup(text), *rest = copy, *word, fault[256];
	int rc = copy ? 0 : fmt_error(-ENOMEM, why, len, "out of memory");

	while (!rc && (word = strsep(&rest, ","))) {
		word += strspn(word, " \t");
		for (size_t n = strlen(word); n && strchr(" \t", word[n - 1]); n--)
			word[n - 1] = '\0';
		rc = add(arg, word, fault, sizeof(fault));
		if (rc && strchr(text, ','))
			snprintf(why, len, "'%s' in it: %s", word, fault);
		else if (rc)
			snprintf(why, len, "%s", fault);
	}
	free(copy);
	return rc;
}

/* ---- the list of an export ---- */

/* Parse the identity @text, whose kind has @kind bytes. */
static int list_parse_identity(const char *text, size_t kind, struct srv_allow *allow, char *why,
			       size_t len)
{
	const char *fault = secret_name_fault(text + kind);

	memset(allow, 0, sizeof(*allow));
	if (fault)
		return fmt_error(-EINVAL, why, len, "behind %.*s %s", (int)kind, text, fault);
	if (strchr(text, '/') && *text == 'p')
		return fmt_error(-EINVAL, why, len, "expected the name of an identity: the name "
				 "of its key up to the '/'");
	allow->family = AF_UNSPEC;
	allow->identity = intern(text);
	return allow->identity ? 0 : fmt_error(-ENOMEM, why, len, "out of memory");
}

static int list_parse_rule(const char *text, struct srv_allow *allow, char *why, size_t len)
{
	int rc;

	if (!strncmp(text, "psk:", 4))
		return list_parse_identity(text, 4, allow, why, len);
	if (!strncmp(text, "cert:", 5))
		return list_parse_identity(text, 5, allow, why, len);
	rc = conf_allow_parse(text, allow, why, len);
	return rc && !strcmp(why, ALLOW_FORMS) ? fmt_error(rc, why, len, ALLOW_FORMS_EXPORT) :
						 rc;
}

static int list_add_rule(void *arg, const char *text, char *why, size_t len)
{
	struct allow_list *list = arg;
	int rc;

	if (!strcmp(text, "all")) {
		if (list->n)
			return fmt_error(-EINVAL, why, len, "expected 'all' alone, without "
					 "addresses, users and identities");
		return 0;
	}
	if (list->n == ALLOW_LIST_MAX)
		return fmt_error(-EINVAL, why, len, "expected at most %u addresses, users and "
				 "identities", ALLOW_LIST_MAX);
	rc = list_parse_rule(text, &list->rules[list->n], why, len);
	if (!rc)
		list->n++;
	return rc;
}

int conf_allow_list_add(struct allow_list *list, const char *text, char *why, size_t len)
{
	return conf_allow_split(text, list_add_rule, list, why, len);
}

/* Comparing bytes is enough: parsing leaves no byte of a rule unset, and an identity has one
 * text. */
bool conf_allow_list_same(const struct allow_list *a, const struct allow_list *b)
{
	return a->n == b->n && !memcmp(a->rules, b->rules, a->n * sizeof(*a->rules));
}

const char *conf_allow_rule_text(const struct srv_allow *rule, char *buf, size_t len)
{
	char addr[INET6_ADDRSTRLEN];
	unsigned all = rule->family == AF_INET ? 32 : 128;

	if (rule->family == AF_UNSPEC) {
		snprintf(buf, len, "%s", rule->identity);
		return buf;
	}
	if (rule->family == AF_UNIX && rule->uid == ALLOW_ANY_USER) {
		snprintf(buf, len, "unix");
		return buf;
	}
	if (rule->family == AF_UNIX) {
		snprintf(buf, len, "uid:%u", (unsigned)rule->uid);
		return buf;
	}
	inet_ntop(rule->family, rule->addr, addr, sizeof(addr));
	if (rule->bits == all)
		snprintf(buf, len, "%s", addr);
	else
		snprintf(buf, len, "%s/%u", addr, rule->bits);
	return buf;
}

const char *conf_allow_list_text(const struct allow_list *list, char *buf, size_t len)
{
	static const char more[] = ", ...";
	size_t at = 0;

	snprintf(buf, len, "%s", list->n ? "" : "all");
	for (unsigned i = 0; i < list->n; i++) {
		char rule[FAB_IDENTITY_LEN];	/* the longest kind of rule */

		conf_allow_rule_text(&list->rules[i], rule, sizeof(rule));
		if (at + strlen(rule) + 2 + sizeof(more) > len) {
			snprintf(buf + at, len - at, "%s", at ? more : "...");
			break;
		}
		at += (size_t)snprintf(buf + at, len - at, "%s%s", at ? ", " : "", rule);
	}
	return buf;
}
