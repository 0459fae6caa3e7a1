/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns an array of names, in the order of their last use; control thread.  Ends with the server.
 * Fails to keep a name without memory; the name is then nobody's. */
#include <stdlib.h>
#include <string.h>

#include "srv-names.h"
#include "util.h"

struct srv_name {
	char name[RTRS_NAME_MAX];
	char identity[FAB_IDENTITY_LEN];
};

const char *srv_names_owner(const struct srv_names *names, const char *name)
{
	for (unsigned i = 0; i < names->n; i++) {
		if (!strcmp(names->all[i].name, name))
			return names->all[i].identity;
	}
	return "";
}

static void forget(struct srv_names *names, unsigned i)
{
	names->n--;
	memmove(&names->all[i], &names->all[i + 1], (names->n - i) * sizeof(*names->all));
}

/* Make room for a name of @identity: first among the names of @identity. */
static void push_out(struct srv_names *names, const char *identity)
{
	unsigned own = 0, oldest = names->n;

	for (unsigned i = names->n; i-- > 0;) {
		if (strcmp(names->all[i].identity, identity))
			continue;
		own++;
		oldest = i;
	}
	if (own >= SRV_NAMES_OF_ONE)
		forget(names, oldest);
	else if (names->n >= SRV_NAMES_MAX)
		forget(names, 0);
}

static bool grow(struct srv_names *names)
{
	unsigned room = MIN(names->room ? 2 * names->room : 16, SRV_NAMES_MAX);
	struct srv_name *all;

	if (names->n < names->room)
		return true;
	all = realloc(names->all, room * sizeof(*all));
	if (!all)
		return false;
	names->all = all;
	names->room = room;
	return true;
}

void srv_names_bind(struct srv_names *names, const char *name, const char *identity)
{
	struct srv_name *new;

	if (!*identity)
		return;
	for (unsigned i = 0; i < names->n; i++) {
		if (!strcmp(names->all[i].name, name)) {
			forget(names, i);
			break;
		}
	}
	push_out(names, identity);
	if (!grow(names))
		return;
	new = &names->all[names->n++];
	memset(new, 0, sizeof(*new));
	strncpy(new->name, name, sizeof(new->name) - 1);
	strncpy(new->identity, identity, sizeof(new->identity) - 1);
}

void srv_names_forget(struct srv_names *names, const char *identity)
{
	for (unsigned i = names->n; i-- > 0;) {
		if (!strcmp(names->all[i].identity, identity))
			forget(names, i);
	}
}

void srv_names_fini(struct srv_names *names)
{
	free(names->all);
	*names = (struct srv_names){ 0 };
}

const char *srv_names_person(const char *identity)
{
	return *identity ? identity : "a client without a name";
}
