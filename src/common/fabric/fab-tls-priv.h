/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of TLS: fab-tls.c, which owns credentials, and fab-tls-session.c, whose
 * sessions use them. */
#ifndef FAB_TLS_PRIV_H
#define FAB_TLS_PRIV_H

#include <pthread.h>
#include <stdbool.h>

#include <gnutls/gnutls.h>

#include "certs.h"
#include "psk.h"
#include "fab-tls-session.h"
#include "util.h"

struct fab_tls_creds {
	struct fab_tls base;
	bool server, verify_peer, nbd;
	gnutls_priority_t priority;
	/* of both kinds one is not NULL */
	gnutls_psk_server_credentials_t psk_server;
	gnutls_psk_client_credentials_t psk_client;
	char *username;				/* client: whose key; NULL: the only one */
	char *hostname;				/* NULL: the address */

	pthread_mutex_t lock;			/* of what follows; innermost */
	struct certs *certs;			/* NULL from the start on, or never */
	struct psks psks;			/* of a client its key alone */
};

/* Not constant: also a reader takes the lock. */
static inline struct fab_tls_creds *fab_tls_creds(const struct fab_tls *tls)
{
	return container_of(tls, struct fab_tls_creds, base);
}

/* A reference to the certificates of now; NULL: there are none.  Any thread. */
struct certs *fab_tls_get_certs(struct fab_tls_creds *tls);

#endif
