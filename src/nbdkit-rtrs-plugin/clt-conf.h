/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters of the plugin: key=value to struct.  Filled before nbdkit forks, constant after
 * clt_conf_complete() but for the transport that clt-start.c chooses.  Errors are told with nbdkit_error() and name the key and the value. */
#ifndef CLT_CONF_H
#define CLT_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "clt-reg.h"
#include "fabric.h"
#include "rnbd-proto.h"
#include "rtrs-proto.h"

#define CLT_CONF_IO_TIMEOUT_S 30
#define CLT_CONF_POLL_US_MAX 1000000u
#define CLT_CONF_CONNECTIONS_MAX (RTRS_MAX_CONS - 1)

struct clt_conf {
	const char *server;		/* values belong to nbdkit and live as long as the process */
	const char *export_name;	/* NULL: what the NBD client asks for */
	char sessname[RTRS_NAME_MAX];	/* empty: made up by clt_conf_sessname() */
	const struct fab_provider *provider;	/* transport=, NULL: auto */
	unsigned connections;
	enum rnbd_access_mode mode;
	bool mode_auto;			/* mode is rw, and ro where an export is read-only */
	uint64_t io_timeout_ms;		/* CLOCK_NEVER: for ever */
	unsigned poll_us;		/* 0: sleep at once */
	enum clt_registration registration;
	struct fab_addr dst;		/* clt_conf_complete() */
	bool automatic;			/* the same: dst.provider is still to be chosen */
};

extern const char clt_conf_help[];
extern const char *const clt_conf_keys[];	/* NULL at the end */

void clt_conf_init(struct clt_conf *conf);
/* 0, or -1 after nbdkit_error(). */
int clt_conf_set(struct clt_conf *conf, const char *key, const char *value);
/* Checks what belongs together, resolves the server's name.  0, or -1 after nbdkit_error(). */
int clt_conf_complete(struct clt_conf *conf);
/* The session's name: as given, or one that no other call gets, here or elsewhere.  Says which process
 * it is for, so that of the session that stays is made after the fork. */
void clt_conf_sessname(const struct clt_conf *conf, char name[RTRS_NAME_MAX]);

#endif
