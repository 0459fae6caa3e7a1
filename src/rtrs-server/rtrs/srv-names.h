/* SPDX-License-Identifier: BSD-3-Clause */
/* The owners of the names of sessions.  A name that an identity has used belongs to the identity,
 * while the server runs and has a key of the identity, so that nobody takes the name while its
 * owner is away.  Names that clients without an identity use belong to nobody.
 *
 * An identity keeps its last SRV_NAMES_OF_ONE names, and all together keep SRV_NAMES_MAX: one more
 * pushes out the name that was used longest ago.  Control thread. */
#ifndef SRV_NAMES_H
#define SRV_NAMES_H

#include <stdint.h>

#include "fabric.h"
#include "rtrs-proto.h"

#define SRV_NAMES_OF_ONE 16u
#define SRV_NAMES_MAX 1024u

struct srv_name;

struct srv_names {			/* all 0: none */
	struct srv_name *all;		/* [n], the last used one last */
	unsigned n, room;
};

/* The identity that @name belongs to; "": nobody.  Valid until the next call. */
const char *srv_names_owner(const struct srv_names *names, const char *name);
/* Give @name to @identity, which uses the name now; "": do nothing.  Without memory the name is not
 * kept. */
void srv_names_bind(struct srv_names *names, const char *name, const char *identity);
/* Take the names of @identity away: nobody can prove to be @identity any more. */
void srv_names_forget(struct srv_names *names, const char *identity);
/* Free all. */
void srv_names_fini(struct srv_names *names);

/* @identity for people: the same, or words for "". */
const char *srv_names_person(const char *identity);

#endif
