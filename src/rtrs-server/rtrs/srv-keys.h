/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of clients, and the certificates, while the server runs: other files take effect for the
 * handshakes that follow, and the paths of a key that was taken out, or of a certificate that would
 * not pass any more, are ended.  Control thread. */
#ifndef SRV_KEYS_H
#define SRV_KEYS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "psk.h"

struct certs;
struct srv;

/* Keys as the files have them: for TLS, and for authentication in messages.  Empty: the server has
 * no keys of this kind. */
struct srv_key_files {
	struct psks tls, auth;
};

/* True if the server has keys for TLS, which a reload replaces.  Constant; any thread. */
bool srv_keys_of_tls(const struct srv *srv);
/* True if the server has keys for authentication in messages.  As above. */
bool srv_keys_of_auth(const struct srv *srv);
/* True if the server has certificates, which srv_keys_take_certs() replaces.  As above. */
bool srv_keys_of_certs(const struct srv *srv);
/* True if the server has keys of either kind, or certificates. */
bool srv_keys_any(const struct srv *srv);
/* True if the key with the serial @key is still one of the server, or @key is 0. */
bool srv_keys_hold(const struct srv *srv, uint64_t key);
/* Take out the keys of the server that @files does not have, the same bytes under the same name,
 * and end their paths: "-key gw1 (2 paths ended)", "-auth key gw3" in @report.  Handshakes go on
 * without these keys.  0, or -ENOMEM: the keys are as before. */
int srv_keys_withdraw(struct srv *srv, const struct srv_key_files *files, FILE *report);
/* Behind srv_keys_withdraw(): take the keys of @files in place of the server's.  Those that are new
 * are lines of @report: "+key gw3".  @files gets the keys of before, for the caller to free. */
void srv_keys_give(struct srv *srv, struct srv_key_files *files, FILE *report);
/* As fab_tls_read_certs(), for the server, which has certificates.  Any thread. */
int srv_keys_read_certs(const struct srv *srv, const char *dir, struct certs **out, char *err,
			size_t len);
/* Take @certs, with the caller's reference, in place of the server's, if they are others: "tls-
 * certificates: read again (1 path ended)".  Paths end whose certificate is revoked, not of these
 * authorities, or over; the last of these if they are no others, too. */
void srv_keys_take_certs(struct srv *srv, struct certs *certs, FILE *report);

#endif
