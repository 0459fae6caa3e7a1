/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of clients, and the certificates, while the server runs: other files take effect for the
 * handshakes that follow, and the paths of a key that was removed, or of a certificate that would
 * not pass any more, are ended.  Control thread. */
#ifndef SRV_KEYS_H
#define SRV_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "secrets-set.h"

struct auth_creds;
struct fab_tls;
struct srv;
struct srv_conf;

/* Read the files of @conf for a start: *@tls and *@auth are NULL for none, and the caller's behind
 * an error, too.  0; -EINVAL: a mistake in an option or a file; another -errno: not now.  @err gets
 * the option, its value and the reason. */
int srv_keys_open(const struct srv_conf *conf, struct fab_tls **tls, struct auth_creds **auth,
		  char *err, size_t errlen);
/* Read the files of @conf, and forget them: a later start can read them, too.  0, or -errno and a
 * line in @errors for each that cannot be used.  Any thread. */
int srv_keys_try(const struct srv_conf *conf, FILE *errors);

/* True if a key of @tls or @auth, either NULL for none, is that of the identity @identity,
 * "psk:NAME".  Any thread. */
bool srv_keys_name(const struct fab_tls *tls, const struct auth_creds *auth, const char *identity);
/* True if the server has keys of either kind, or certificates.  Constant; any thread. */
bool srv_keys_any(const struct srv *srv);
/* True if the key with the serial @key is still one of the server, or @key is 0. */
bool srv_keys_hold(const struct srv *srv, uint64_t key);
/* Have @set, which is all 0, read the files that @srv was started with.  Any thread. */
void srv_keys_add(const struct srv *srv, struct secrets_set *set);
/* As secrets_change_withdraw(), and end the paths of those who are trusted no more: "-key gw1 (2
 * paths ended)".  Paths end whose certificate is revoked, not of these authorities, or over; the
 * last of these if the certificates are no others, too. */
int srv_keys_withdraw(struct srv *srv, struct secrets_change *change, char **lines);

#endif
