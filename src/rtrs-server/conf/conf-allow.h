/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may come: rules for the addresses and users of peers, of the whole server (--allow) and of
 * one export (allow =, read-only =), where rules for identities (fab_conn_identity()) stand, too.
 *
 * A list is a plain value.  Pure, any thread, but for conf_allow_parse() and conf_allow_list_add(),
 * which may query the user database. */
#ifndef CONF_ALLOW_H
#define CONF_ALLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fabric.h"

/* ADDR[/BITS], uid:USER, unix, psk:NAME, cert:NAME */
struct srv_allow {
	int family;			/* AF_INET, AF_INET6; AF_UNIX: a user; AF_UNSPEC: an
					 * identity */
	unsigned bits;			/* 0..32, 0..128 */
	union {
		uint8_t addr[16];	/* network order; bits beyond the prefix are 0 */
		uid_t uid;		/* ALLOW_ANY_USER: "unix" */
		/* as fab_identity.name; one text for each identity, which lives as long as the
		 * program (names.h) */
		const char *identity;
	};
};

#define ALLOW_ANY_USER ((uid_t)-1)	/* no user's number */
#define ALLOW_LIST_MAX 64u

/* The rules of an export, in the order of the user. */
struct allow_list {
	unsigned n;			/* 0: everybody */
	struct srv_allow rules[ALLOW_LIST_MAX];
};

/* Parse "ADDR" or "ADDR/BITS", where an IPv6 address may stand in brackets, "uid:NUMBER" or
 * "uid:NAME", or "unix", each client of a unix socket.  ::ffff:a.b.c.d is the IPv4 address, with as
 * many bits more than 96 as it has.  0, -EINVAL, or -ENOENT when the user does
 * not exist; a failure leaves the expected form in @why.  May query the user database. */
int conf_allow_parse(const char *text, struct srv_allow *allow, char *why, size_t len);
/* The first of the @n @rules that names @peer, or @identity, which the peer has proven ("": none);
 * NULL: none does.  IPv4 peers of an IPv6 listener (::ffff:a.b.c.d) match IPv4 prefixes.  No
 * address names a peer of a unix socket.  Of a @peer whose address is not known (len 0) the rules
 * for addresses and users do not count. */
const struct srv_allow *conf_allow_find(const struct srv_allow *rules, unsigned n,
					const struct fab_addr *peer, const char *identity);
/* Write @rule to @buf as conf_allow_list_add() reads the rule.  Returns @buf. */
const char *conf_allow_rule_text(const struct srv_allow *rule, char *buf, size_t len);

typedef int conf_allow_add_fn(void *arg, const char *rule, char *why, size_t len);
/* Call @add for each rule in @text, "RULE[, RULE]...", without the blanks around it, until one is
 * refused.  Returns what @add returned, or -ENOMEM; a failure leaves one line in @why, which names
 * the rule if it is one of several. */
int conf_allow_split(const char *text, conf_allow_add_fn *add, void *arg, char *why, size_t len);

/* Add the rules in @text, "RULE[, RULE]...", to @list, where a rule may be "psk:NAME" or
 * "cert:NAME", too.  "all" is the text of a list without a
 * rule, and is refused behind a rule.  Errors as conf_allow_parse(); a failure may leave some of
 * the rules added. */
int conf_allow_list_add(struct allow_list *list, const char *text, char *why, size_t len);
/* True if @a and @b have the same rules in the same order. */
bool conf_allow_list_same(const struct allow_list *a, const struct allow_list *b);
/* Write @list to @buf as conf_allow_list_add() reads the list.  A list that is longer than @buf
 * ends in ", ...".  Returns @buf. */
const char *conf_allow_list_text(const struct allow_list *list, char *buf, size_t len);
/* Bytes for the text of any list. */
#define ALLOW_TEXT_MAX ((size_t)ALLOW_LIST_MAX * (FAB_IDENTITY_LEN + 2))

#endif
