/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys and certificates of a reload: trust goes first, and comes last.  What the files take
 * away is gone before the plan of the reload begins, because exports may keep the plan waiting, or
 * make it fail.  A key that is new comes with the plan, beside the rules that are made for it. */
#ifndef TRUST_H
#define TRUST_H

#include <stdbool.h>
#include <stdio.h>

#include "srv-keys.h"

struct srv;
struct srv_conf;

/* What the files of a reload say.  All 0: nothing was read. */
struct trust {
	struct srv_key_files keys;
	struct certs *certs;		/* not taken yet; NULL: none */
	char *withdrawn;		/* a line for each change that trust_withdraw() has made;
					 * NULL: none */
};

/* Read the files of keys and certificates that @srv was started with, as @conf has them, into @t.
 * False: mistakes, each a line in @errors.  Thread of the worker. */
bool trust_read(struct trust *t, const struct srv *srv, const struct srv_conf *conf, FILE *errors);
/* Take from @t, which was read before @later, the keys that @later does not have.  0, or -ENOMEM:
 * nothing has changed. */
int trust_narrow(struct trust *t, const struct trust *later);
/* Take out the keys of @srv that @t does not have, and take the certificates, which are one whole:
 * those who are trusted no more lose their paths.  Each change is a line of the log, and of
 * t->withdrawn.  0, or -ENOMEM: nothing has changed.  Control thread. */
int trust_withdraw(struct trust *t, struct srv *srv);
/* Behind trust_withdraw(): take the keys that are new; each is a line in @report.  Control
 * thread. */
void trust_give(struct trust *t, struct srv *srv, FILE *report);
/* Forget what was read.  Wipes keys that were not taken. */
void trust_fini(struct trust *t);

#endif
