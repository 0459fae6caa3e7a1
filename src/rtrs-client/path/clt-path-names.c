/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the question to the resolver, and what failed at the addresses of a name. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clt-lookup.h"
#include "clt-path-priv.h"
#include "log.h"

void clt_path_names_not_found(struct clt_path *path, int err, const char *why)
{
	if (clt_attempt_state(&path->att) != CLT_PATH_RESOLVING)
		return;
	if (!path->names.found.ndst) {
		clt_path_step_fail(path, err, why);
		return;
	}
	log_dbg(path->name, "%s: trying the previous addresses", why);
	clt_names_begin(&path->names, NULL);
	clt_path_step(path, CLT_PATH_EV_FOUND);
}

/* An answer that comes too late for its attempt is the next one's. */
static void names_found(void *arg, int r, const struct clt_found *found, const char *why)
{
	struct clt_path *path = arg;

	path->lookup = NULL;
	if (r < 0) {
		clt_path_names_not_found(path, r, why);
	} else if (!path->up_since_ms && !clt_names_left(&path->names)) {
		clt_names_begin(&path->names, found);
		clt_path_step(path, CLT_PATH_EV_FOUND);
	}
}

void clt_path_names_look_up(void *object)
{
	struct clt_path *path = object;
	char why[CLT_WHY];
	int r = 0;

	path->dst.len = 0;
	*path->tried = '\0';
	clt_path_give_time(path, path->names.found.ndst ? MIN(NAME_NEXT_MS, path->conf.setup_ms)
						    : path->conf.setup_ms);
	if (!path->lookup)
		r = clt_lookup_begin(&path->lookup, path->loop, &path->conf.addr, names_found,
				     path);
	if (r < 0) {
		snprintf(why, sizeof(why), "cannot ask for the addresses: %s", r == -EBUSY ?
			 "the resolver does not answer" : strerror(-r));
		clt_path_names_not_found(path, r, why);
	}
}

bool clt_path_names_go_on(struct clt_path *path)
{
	enum clt_path_state state = clt_attempt_state(&path->att);

	return (state == CLT_PATH_FAILING || state == CLT_PATH_DRAINING ||
		state == CLT_PATH_BACKOFF) &&
	       !path->up_since_ms && clt_names_left(&path->names);
}

void clt_path_names_note(struct clt_path *path, char cause[CLT_WHY])
{
	char addr[FAB_ADDR_STRLEN];
	size_t at = strlen(path->tried);

	if (!clt_sess_addr_is_named(&path->conf.addr) || !path->dst.len)
		return;
	snprintf(path->tried + at, sizeof(path->tried) - at, "%s%s: %s", at ? "; " : "",
		 fab_addr_format(&path->dst, addr, sizeof(addr)), cause);
	memcpy(cause, path->tried, CLT_WHY);
}
