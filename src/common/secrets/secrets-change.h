/* SPDX-License-Identifier: BSD-3-Clause */
/* A change (changes.h) that may be a reload of secrets: what its files take away is gone as soon as
 * they are read, whatever keeps the rest of the change waiting, or makes it fail.  Thread of the
 * changes. */
#ifndef SECRETS_CHANGE_H
#define SECRETS_CHANGE_H

#include "changes.h"
#include "secrets-set.h"

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
