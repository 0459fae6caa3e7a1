/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of TLS: fab-tls.c, which owns credentials, and fab-tls-session.c, whose
 * sessions use them.  Short: private. */
#ifndef FAB_TLS_PRIV_H
#define FAB_TLS_PRIV_H

#include <stdbool.h>

#include <gnutls/gnutls.h>

#include "fab-tls-session.h"
#include "secrets.h"
#include "util.h"

struct fab_tls_creds {
	struct fab_tls base;
	bool server, verify_peer;
	enum fab_tls_protocol protocol;
	gnutls_priority_t priority;
	/* of both kinds one is not NULL */
	gnutls_psk_server_credentials_t psk_server;
	gnutls_psk_client_credentials_t psk_client;
	char *hostname;				/* NULL: the address */
	struct secrets *secrets;
};

/* Not constant: also a reader takes the lock. */
static inline struct fab_tls_creds *fab_tls_creds(const struct fab_tls *tls)
{
	return container_of(tls, struct fab_tls_creds, base);
}

#endif
