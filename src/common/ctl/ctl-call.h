/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of a program as a table.  Thread of the loop. */
#ifndef CTL_CALL_H
#define CTL_CALL_H

#include <stdbool.h>

#include "ctl.h"

struct ctl_call {
	const char *name;
	/* Run the command and answer.  @value: of @member; NULL: not given. */
	void (*fn)(struct ctl_client *client, const char *value, void *arg);
	/* In place of @fn, if the command takes two strings. */
	void (*fn_two)(struct ctl_client *client, const char *value, const char *second,
		       void *arg);
	/* In place of @fn, if the command is one of several changes. @force: the client said "NAME
	 * force", which a command without takes_force does not have. */
	void (*fn_change)(struct ctl_client *client, int change, const char *value, bool force,
			  void *arg);
	int change;
	bool takes_force;
	const char *member;		/* a string that the command takes; NULL: none */
	bool needed;			/* refused without @member */
	const char *second;		/* another one, never needed; NULL: none */
};

/* Run the entry of @calls (@n, at least 1) that @command names.  An unknown command is refused, and
 * so is a member that the command does not take: the client may have asked for less than all. */
void ctl_call(struct ctl_client *client, const json_t *command, const char *program,
	      const struct ctl_call *calls, size_t n, void *arg);

/* True if @command names an entry of @calls (@n, or none). */
bool ctl_call_has(const json_t *command, const struct ctl_call *calls, size_t n);

/* Answer that the command is done, without data. */
void ctl_call_done(struct ctl_client *client);
/* Answer @client, a struct ctl_client, that a change has ended.  @rc 0: {"changes": [...]} with the
 * lines of @text; else the command is refused because of @text. */
void ctl_call_ended(void *client, int rc, const char *text);

#endif
