/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of clients, and the certificates, while the server runs: other files take effect for the
 * handshakes that follow, and the paths of a key that was taken out, or of a certificate that would
 * not pass any more, are ended.  Control thread. */
#ifndef SRV_KEYS_H
#define SRV_KEYS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct fab_certs;
struct fab_psks;
struct srv;

/* True if the server has keys for TLS, which srv_keys_take() replaces.  Constant; any thread. */
bool srv_keys_of_tls(const struct srv *srv);
/* True if the server has keys for authentication in messages.  As above. */
bool srv_keys_of_auth(const struct srv *srv);
/* True if the server has certificates, which srv_keys_take_certs() replaces.  As above. */
bool srv_keys_of_certs(const struct srv *srv);
/* True if the server has keys of either kind, or certificates. */
bool srv_keys_any(const struct srv *srv);
/* True if the key with the serial @key is still one of the server, or @key is 0. */
bool srv_keys_hold(const struct srv *srv, uint64_t key);
/* Take @psks in place of the server's keys; @psks gets those of before, for the caller to free.
 * Each difference is a line in @report: "+key gw3", "-key gw1 (2 paths ended)". */
void srv_keys_take(struct srv *srv, struct fab_psks *psks, FILE *report);
/* The same for the keys of authentication in messages: "+auth key gw3".  Handshakes go on with the
 * new keys. */
void srv_keys_take_auth(struct srv *srv, struct fab_psks *psks, FILE *report);
/* Take @certs, with the caller's reference, in place of the server's, if they are others: "tls-
 * certificates: read again (1 path ended)". */
void srv_keys_take_certs(struct srv *srv, struct fab_certs *certs, FILE *report);

#endif
