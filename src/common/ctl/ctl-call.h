/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of a program as a table.  Thread of the loop. */
#ifndef CTL_CALL_H
#define CTL_CALL_H

#include <stdbool.h>

#include "ctl.h"

struct ctl_call {
	const char *name;
	/* Do it and answer.  @value: of @member, or NULL: it was not given. */
	void (*fn)(struct ctl_client *client, const char *value, void *arg);
	const char *member;		/* a string that the command takes; NULL: none */
	bool needed;			/* not without it */
};

/* Run the call of @calls (@n, at least one) that @command names.  An unknown command, and a member
 * that the command does not have, is refused: the client may have meant less than all. */
void ctl_call(struct ctl_client *client, const json_t *command, const char *program,
	      const struct ctl_call *calls, size_t n, void *arg);

/* Answer that it is done, and nothing else. */
void ctl_call_done(struct ctl_client *client);

#endif
