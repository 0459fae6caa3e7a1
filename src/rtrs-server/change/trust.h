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

/* What the files of a reload say.  All 0: nothing was read. */
struct trust {
	struct secrets_set set;
	char *withdrawn;		/* a line for each change that trust_withdraw() has made;
					 * NULL: none */
};

/* Read the files of keys and certificates that @srv was started with into @t.  False: mistakes,
 * each a line in @errors.  Thread of the worker. */
bool trust_read(struct trust *t, const struct srv *srv, FILE *errors);
/* Take out the keys of @srv that @t does not have, and take the certificates, which are one whole:
 * those who are trusted no more lose their paths.  Each change is a line of the log, and of
 * t->withdrawn.  0, or -ENOMEM: nothing has changed.  Control thread. */
int trust_withdraw(struct trust *t, struct srv *srv);
/* Forget what was read.  Wipes keys that were not taken. */
void trust_fini(struct trust *t);

#endif
