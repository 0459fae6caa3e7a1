/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters of a front end: key=value to struct.  Filled before a daemon forks, constant after
 * clt_conf_complete() but for the transport that clt-probe.c chooses.  The text of an error names
 * the key and the value, and is the caller's to free; NULL: no memory for it. */
#ifndef CLT_CONF_H
#define CLT_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "clt-addr.h"
#include "clt-front.h"
#include "clt-sess.h"
#include "opt.h"
#include "rnbd-msg.h"
#include "rtrs-proto.h"

struct clt_conf {
	const struct clt_front *front;
	const char *server;		/* of the first path; values belong to the caller and live
					 * longer */
	const char *path_texts[CLT_PATHS_MAX];	/* server= and path= */
	/* first value of each row of clt_conf_options, NULL: none */
	const char *given[32];
	const char *export_name;	/* NULL: what a client asks for */
	char sessname[RTRS_NAME_MAX];	/* empty: made up by clt_conf_sessname() */
	enum clt_transport transport;
	const struct fab_provider *provider;	/* of @transport, NULL: auto */
	unsigned connections;
	enum rnbd_access_mode mode;
	bool mode_auto;			/* mode is rw, and ro where an export is read-only */
	uint64_t io_timeout_ms;		/* CLOCK_NEVER: for ever */
	unsigned poll_us;		/* 0: sleep at once */
	enum clt_registration registration;
	enum clt_policy policy;
	unsigned heartbeat_ms, heartbeat_misses;
	int max_reconnect_attempts;	/* -1: no end */
	struct fab_users servers;	/* of unix sockets */
	const char *control;		/* clt_ctl_bind() */
	uint64_t connect_timeout_ms;	/* CLOCK_NEVER: start without a server */
	/* clt_conf_complete() */
	struct clt_sess_addr paths[CLT_PATHS_MAX];
	unsigned npaths;
	bool chooses[CLT_PATHS_MAX];	/* the path's provider is still to be chosen */
	bool automatic;			/* that of some path is */
};

/* .carry_out of a row changes a struct clt_sess. */
extern const struct opt_table clt_conf_options;

/* All defaults.  @front outlives @conf. */
void clt_conf_init(struct clt_conf *conf, const struct clt_front *front);
/* 0, or -1 with @err. */
int clt_conf_set(struct clt_conf *conf, const char *key, const char *value, char **err);
/* Check what belongs together, resolve the server's name, which blocks.  0, or -1 with @err. */
int clt_conf_complete(struct clt_conf *conf, char **err);
/* The paths whose provider was left open are over @provider. */
void clt_conf_choose(struct clt_conf *conf, const struct fab_provider *provider);
/* The session's name: as given, or one that no other call gets, here or elsewhere.  Says which
 * process it is for, so that of the session that stays is made after the fork. */
void clt_conf_sessname(const struct clt_conf *conf, char name[RTRS_NAME_MAX]);

#endif
