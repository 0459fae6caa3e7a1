/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of handles: the answer to an OPEN (doc/protocol.md 8.2), at once or after waiting for a
 * handle or the storage; and the end by a CLOSE, with the last path of a session, or by the
 * server's own will.  Control thread. */
#ifndef SRV_OPEN_H
#define SRV_OPEN_H

#include <stddef.h>

struct export;
struct loop_msg;
struct srv;
struct srv_path;
struct srv_req;
struct srv_rnbd;
struct srv_sess;
struct store;

/* ---- srv-open.c: the begin of a handle ---- */

/* Begin with no OPEN waiting. */
void srv_open_init(struct srv_rnbd *rnbd);
/* Answer the OPEN @req, whose path is in service.  Ends in srv_req_finish_control(). */
void srv_open_request(struct srv_req *req);
/* End the waiting OPENs of @path, which is failing. */
void srv_open_path_failed(struct srv_path *path);
/* Try waiting OPENs again: a handle was closed, or a dying session has become visible as such. */
void srv_open_retry(struct srv *srv);

/* ---- srv-close.c: the end ---- */

/* Answer the CLOSE @req when the handle has closed.  Ends in srv_req_finish_control(). */
void srv_close_request(struct srv_req *req);
/* For srv_dev_table_init(): @msg belongs to a closing device without references. */
void srv_close_quiet(struct loop_msg *msg);
/* Close all devices of @sess, whose last path has drained; each device when its IO has left the
 * storage. */
void srv_close_sess_lost(struct srv_sess *sess);
/* Close all handles of the exports with the name @name, listed or not, each when its IO has left
 * the storage; with @client, not NULL, those of sessions alone that have this name, identity
 * ("psk:gw1") or address of a path.  Returns how many handles.  Requests on these handles fail with
 * -ENOTCONN from now on, until their client opens the export again. */
unsigned srv_close_kick(struct srv *srv, const char *name, const char *client);
/* For export_users, of the struct srv @arg: as srv_close_kick(), of @ex, and of removed exports
 * with the same name and store; another export may have the name by now. */
void srv_close_kick_export(void *arg, const struct export *ex);
/* As srv_close_kick_export(), from those sessions alone that may not open @ex (srv-allow.h). */
void srv_close_kick_refused(struct srv *srv, const struct export *ex);
/* Write to @buf the names of the sessions that srv_close_kick_export() would take @ex from, "gw1,
 * gw2"; "": none.  Cut at @len. */
void srv_close_openers(const struct srv *srv, const struct export *ex, char *buf, size_t len);
/* Likewise for srv_close_kick() of @name. */
void srv_close_openers_of(const struct srv *srv, const char *name, char *buf, size_t len);
/* How many sessions srv_close_openers() names. */
unsigned srv_close_nopeners(const struct srv *srv, const struct export *ex);

/* For export_users, of the struct srv @arg: fail the paths of the sessions that have a name of
 * @store open.  Their clients have to use the server that has the store's lock. */
void srv_close_fenced(void *arg, const struct store *store);

#endif
