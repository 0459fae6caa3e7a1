/* SPDX-License-Identifier: BSD-3-Clause */
/* The certificates of an end, out of a directory as nbdkit has one: NAME-cert.pem and NAME-key.pem
 * of its own, ca-cert.pem, and ca-crl.pem if there is one.
 *
 * A set of certificates is constant.  A session of TLS keeps a reference to its set, so another set
 * can take the place of this one while sessions go on.  Any thread. */
#ifndef CERTS_H
#define CERTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct certs;
struct gnutls_certificate_credentials_st;
struct gnutls_session_int;

/* Read the certificates in @dir, of a server or a client, which need not have its own pair, into
 * @out, with one reference.  @before: the set whose place @out is to take; NULL: none.  If @before
 * has a list of revocations, so must @dir.  0, or -errno with a line in @err that names the file:
 * "tls-certificates: FILE: ...". */
int certs_read(const char *dir, bool server, const struct certs *before, struct certs **out,
	       char *err, size_t len);
/* Take one more reference to @certs.  Returns @certs. */
struct certs *certs_get(struct certs *certs);
/* One less; the last one wipes and frees @certs.  NULL: do nothing. */
void certs_put(struct certs *certs);
/* True if @a and @b were read from the same bytes. */
bool certs_same(const struct certs *a, const struct certs *b);
/* When the first file of a set ends, and from when on all of them are valid.
 *
 * The own pair ends with the first certificate of its chain, ca-cert.pem with the last authority,
 * ca-crl.pem when its issuer promised the next list.  From then on peers that verify it refuse new
 * connections (RFC 5280, 6.1.3 and 6.3.3).  All are valid with each certificate of the own chain,
 * the first authority, and each list.  Before that, whoever verifies refuses, too. */
struct secrets_dates {
	/* "server-cert.pem", constant; NULL: none has this date */
	const char *end_file, *begin_file;
	int64_t end_s, begin_s;		/* since 1970 */
};
/* The dates of @certs; none of NULL. */
struct secrets_dates certs_dates(const struct certs *certs);
/* What GnuTLS takes; belongs to @certs. */
struct gnutls_certificate_credentials_st *certs_credentials(const struct certs *certs);
/* True if a signature by the peer's certificate of @session costs little to verify: the key is the
 * peer's choice, and one of 16384 bits takes seconds of a processor. */
bool certs_cheap(struct gnutls_session_int *session);
/* In a handshake: 0 if the peer's certificate of @session passes, which is that of a server or else
 * of a client (RFC 5280, 4.2.1.12: a certificate without a purpose is for both); @hostname: the
 * name that has to stand in it; NULL: any.  Else GnuTLS's error, and @status: its faults of the
 * certificate.  The chain is verified from an authority on, so no key is used that an authority
 * does not vouch for. */
int certs_verify(struct gnutls_session_int *session, const char *hostname, bool of_server,
		 unsigned *status);
/* True if the authorities and the revocations of @certs let the peer's certificate of @session pass
 * now, as in a handshake.  @seen: @certs have let it pass before, so dates alone can refuse it; a
 * list of revocations whose successor is late ends nobody then.  After the handshake; a thread may
 * use @session meanwhile. */
bool certs_trust(const struct certs *certs, struct gnutls_session_int *session,
		 const char *hostname, bool of_server, bool seen);

#endif
