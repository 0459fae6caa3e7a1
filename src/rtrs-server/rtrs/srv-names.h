/* SPDX-License-Identifier: BSD-3-Clause */
/* What people call sessions.  The name of a session is its client's choice, and unique among the
 * sessions of one identity alone: two clients may have a session of one name each, and neither
 * keeps the other one out.  IDENTITY/NAME is one client's; "/NAME" that of a client without an
 * identity.  Control thread. */
#ifndef SRV_NAMES_H
#define SRV_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "fabric.h"
#include "rtrs-proto.h"

struct srv;
struct srv_path;
struct srv_sess;

/* @identity for people: the same, or words for "". */
const char *srv_names_person(const char *identity);
/* True if @text names @sess: NAME, or IDENTITY/NAME. */
bool srv_names_sess(const struct srv_sess *sess, const char *text);
/* True if @text names @path: the name of @path, with or without the name of its session in front,
 * or IDENTITY/ in front of the whole. */
bool srv_names_path(const struct srv_path *path, const char *text);
/* Room for the name of a session as srv_names_tell() writes it, in a buffer. */
#define SRV_NAMES_LEN (FAB_IDENTITY_LEN + RTRS_NAME_MAX)

/* Write the name of @sess to @buf: IDENTITY/NAME if a session of another identity is called NAME,
 * too. */
const char *srv_names_tell(const struct srv_sess *sess, char *buf, size_t len);
/* True if sessions of two identities are called @text.  @buf gets what to say instead:
 * "'psk:gw1/vm' or 'psk:gw2/vm'". */
bool srv_names_two(const struct srv *srv, const char *text, char *buf, size_t len);

#endif
