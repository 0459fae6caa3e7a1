/* SPDX-License-Identifier: BSD-3-Clause */
/* All secrets of a program, read again: the files are good together, or none is used.  What they
 * take away (withdraw) and what they bring (give) may come apart, the former first.  The thread
 * that owns the secrets, unless a function says otherwise. */
#ifndef SECRETS_SET_H
#define SECRETS_SET_H

#include <stdio.h>

#include "changes.h"
#include "secrets.h"

/* Of a gateway the most: auth-psk, tls-psk or tls-certificates, and the same for NBD clients. */
#define SECRETS_SET_MAX 3

struct secrets_set {
	struct secrets_next all[SECRETS_SET_MAX];
	unsigned n;
};

/* Who made something by a secret that does not hold any more ends it.  @key: the serial of a key;
 * 0: the certificates may be others, and time has passed.  Returns how many paths have ended. */
typedef unsigned secrets_end_fn(void *arg, uint64_t key);

/* @set, whose n is 0 at first, is to read @file in place of @s; NULL: there is none. */
void secrets_set_add(struct secrets_set *set, struct secrets *s, const char *file);
/* Read all files.  False: mistakes, each a line in @errors.  Any thread. */
bool secrets_set_read(struct secrets_set *set, FILE *errors);
/* Take out the keys that @set does not have, the same bytes under the same name, and take the
 * certificates, which are one whole; @end is called for each key, and for certificates.  Lines of
 * @report: "-key gw1 (2 paths ended)", "-auth key gw3", "tls-certificates: read again".  0, or
 * -ENOMEM: nothing has changed. */
int secrets_set_withdraw(struct secrets_set *set, secrets_end_fn *end, void *arg, FILE *report);
/* Behind secrets_set_withdraw(): take the keys of @set, which gets those of before.  Those that are
 * new are lines of @report: "+key gw3". */
void secrets_set_give(struct secrets_set *set, FILE *report);
/* Take all that was read, at once, maybe behind secrets_set_withdraw().  @report gets a line for
 * each key that is new or gone, "+nbd key gw1/b", for certificates, or for each file that nothing
 * has changed. */
void secrets_set_replace(struct secrets_set *set, FILE *report);
/* Wipe and free what was read; @set reads nothing then. */
void secrets_set_free(struct secrets_set *set);

/* ---- as part of a change ---- */

/* A change (changes.h) that may be a reload of secrets: what its files take away is gone as soon as
 * they are read, whatever keeps the rest of the change waiting, or makes it fail.  Thread of the
 * changes. */
/* Embedded in its owner. */
struct secrets_change {
	struct changes_call queued;
	struct secrets_set set;		/* what the files say; empty: none is read */
	char *withdrawn;		/* a line for each thing that was taken away; NULL: none */
};

/* Have what holds, and the changes in the queue that were read before, lose what @change, whose
 * files were read, does not have (secrets_set_withdraw()).  *@lines: what this call has taken away,
 * for the caller to free; change->withdrawn gets it, too.  0, or -ENOMEM. */
int secrets_change_withdraw(struct secrets_change *change, secrets_end_fn *end, void *arg,
			    char **lines);
/* Wipe and free what @change has. */
void secrets_change_free(struct secrets_change *change);

#endif
