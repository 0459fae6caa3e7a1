/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of keys or certificates of one end of TLS, read again: kept apart from what holds,
 * until the files of all ends are good. */
#ifndef CLT_FILES_H
#define CLT_FILES_H

#include <stdbool.h>
#include <stdio.h>

#include "psk.h"

struct certs;
struct fab_tls;
struct fab_tls_conf;

/* All 0: nothing was read. */
struct clt_files {
	struct psks psks;
	struct certs *certs;		/* a reference; NULL: none */
};

/* Read the files of @conf, as @tls was made of, into @f, which is empty.  @tls NULL: there are
 * none.  False: a mistake, which is a line in @errors: @dashes, the option and the value.  Any
 * thread. */
bool clt_files_read(struct clt_files *f, const struct fab_tls *tls, const struct fab_tls_conf *conf,
		    const char *dashes, FILE *errors);
/* Give @tls what clt_files_read() has read: for handshakes from now on.  @report gets a line for
 * each key that is new or gone, "+key gw1/b", with @kind in front of "key", or for certificates; or
 * one that nothing has changed.  The thread that owns @tls. */
void clt_files_take(struct clt_files *f, struct fab_tls *tls, const char *kind, FILE *report);
/* Wipe and free what @f has, which is empty then. */
void clt_files_forget(struct clt_files *f);

#endif
