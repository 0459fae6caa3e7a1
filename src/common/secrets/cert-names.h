/* SPDX-License-Identifier: BSD-3-Clause */
/* The names for which a certificate was made.  Any thread.  Short, and apart from certs.h, which no
 * other folder sees. */
#ifndef CERT_NAMES_H
#define CERT_NAMES_H

#include <stddef.h>

struct gnutls_session_int;

/* Write to @buf the names of hosts and the addresses in the certificate of the peer of @session,
 * "disks.test, 192.0.2.10": those of subjectAltName (RFC 5280, 4.2.1.6).  "": there are none, or
 * no certificate.  A list that is longer than @buf ends in "...".  Returns @buf. */
const char *cert_names(struct gnutls_session_int *session, char *buf, size_t len);

#endif
