/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of a path: clt-path.c (the objects of a path), clt-path-life.c (the life of a
 * path), clt-path-end.c (how the state of an attempt moves, its addresses, its end), clt-setup.c
 * (how connections are made) and clt-con.c (a connection, and connection 0).  None calls a file
 * that this list names earlier.  Service thread. */
#ifndef CLT_PATH_PRIV_H
#define CLT_PATH_PRIV_H

#include <string.h>

#include "clock.h"
#include "clt-path.h"

#define CLT_POLL_BUDGET 64
#define NAME_NEXT_MS 2000u		/* to connect, while other addresses are left */
#define CLT_BACKOFF_ALONE_MS 1000	/* while requests wait, because no other path is up */
#define CLT_PATH_RUNS                                                                              \
	(1u << CLT_PATH_RESOLVING | 1u << CLT_PATH_CONNECTING | 1u << CLT_PATH_PROVING |           \
	 1u << CLT_PATH_INFO |                                                                     \
	 1u << CLT_PATH_OPENING | 1u << CLT_PATH_STANDBY | 1u << CLT_PATH_UP |                     \
	 1u << CLT_PATH_SILENT)

/* The path to whose attempt @con belongs. */
static inline struct clt_path *clt_path_of(const struct clt_con *con)
{
	return container_of(con->att, struct clt_path, att);
}

/* Is an attempt connecting, or up: not failed, not closed, not in back-off? */
static inline bool clt_path_runs(struct clt_path *path)
{
	return 1u << clt_attempt_state(&path->att) & CLT_PATH_RUNS;
}

/* From now on the attempt has @ms for what comes up to the next call. */
static inline void clt_path_give_time(struct clt_path *path, unsigned ms)
{
	path->setup_ms = ms;
	loop_timer_set(path->loop, &path->setup_timer, clock_now_ms() + ms);
}

/* Watch @fd, or change the events of @watch, if @watch stands already.  If watching fails, the path
 * fails. */
static inline void clt_path_watch(struct clt_path *path, struct loop_watch *watch, int fd,
				  short events, bool (*ready)(struct loop_watch *watch))
{
	int r;

	watch->ready = ready;
	if (watch->loop) {
		loop_watch_events(watch, events);
		return;
	}
	watch->fd = fd;
	watch->events = events;
	r = loop_watch(path->loop, watch);
	if (r < 0)
		clt_tx_fail(&path->att.cons[0], r, "cannot watch a descriptor: %s", strerror(-r));
}

/* ---- clt-path-life.c ---- */

/* Initialize the messages, the timers, and the calls from connections. */
void clt_path_life_init(struct clt_path *path);

/* ---- clt-path-end.c ---- */

/* Initialize the messages and the timer of the end. */
void clt_path_end_init(struct clt_path *path);
/* An action: disconnect all connections.  DRAINED follows. */
void clt_path_end_drain(void *object);
/* An action: release the attempt, and set the timer of the next one.  The first try after a steady
 * path follows at once; then 100 ms .. 5 s, a quarter more or less, so that the clients of a server
 * do not come back in step. */
void clt_path_end_back_off(void *object);
/* Actions: forget the names and tell the owner, of a path without an attempt; or release the
 * attempt before that. */
void clt_path_end_close(void *object);
void clt_path_end_release_and_close(void *object);

/* An action: ask the resolver for the addresses.  FOUND follows, or a failure. */
void clt_path_names_look_up(void *object);
/* The resolver has failed, or is silent: try what it said before, or fail. */
void clt_path_names_not_found(struct clt_path *path, int err, const char *why);

/* Take the row of @event in the table of states. */
void clt_path_step(struct clt_path *path, enum clt_path_event event);

/* ---- clt-setup.c: 0, or -errno with @why ---- */

/* Make connection @path->next_cid. */
int clt_setup_con(struct clt_path *path, char why[CLT_WHY]);
/* Handle an event of the connection manager.  1: @con is established; 2: it is, and the server asks
 * for a proof on it (clt-path.h). */
int clt_setup_event(struct clt_con *con, const struct fab_event *ev, char why[CLT_WHY]);
/* Ask for the chunks, when all connections are established.  Calls @done when the chunks are known
 * and receives are posted, or with -errno. */
int clt_setup_info(struct clt_path *path,
		   void (*done)(struct clt_path *path, int err, const char *why),
		   char why[CLT_WHY]);
/* Destroy all connections, which are drained and sealed, and all other objects of this attempt. */
void clt_setup_release(struct clt_path *path);

/* ---- clt-con.c: connection 0 ---- */

/* Initialize the message and the heartbeats of connection 0. */
void clt_con_zero_init(struct clt_path *path);
/* Serve connection 0, soon.  Any thread. */
void clt_con_zero_service(struct clt_path *path);
/* Make the memory for messages of @in and of @out bytes: path->talk.  @came is called for each that
 * comes.  0, or -errno with @why. */
int clt_con_zero_talk(struct clt_path *path, size_t in, size_t out,
		      void (*came)(struct clt_path *path, const struct ibv_wc *wc),
		      char why[CLT_WHY]);
/* Send the first @len bytes of path->talk.out, which an answer follows.  0, or -errno with @why. */
int clt_con_zero_say(struct clt_path *path, size_t len, char why[CLT_WHY]);
/* Free the memory of path->talk, if there is any: connection 0 has drained. */
void clt_con_zero_talk_end(struct clt_path *path);
/* Begin to send heartbeats. */
void clt_con_zero_up(struct clt_path *path);
/* At each tick: send a heartbeat, fail @path, or do nothing while the last heartbeat has no answer
 * yet.  Returns which. */
enum rtrs_hb_action clt_con_zero_tick(struct clt_path *path);
/* A heartbeat, or the answer to a heartbeat, has come on @con. */
void clt_con_zero_heartbeat(struct clt_con *con, unsigned type);
/* No request waits for @path any longer: fail @path if @path is SILENT. */
void clt_con_zero_lose_patience(struct clt_path *path);

/* ---- clt-con.c ---- */

/* Is @con established, and not drained? */
static inline bool clt_con_is_open(struct clt_con *con)
{
	unsigned state = atomic_load(&con->state);

	return state == CLT_CON_OPEN || state == CLT_CON_LEFT;
}

/* Create the connection of the fabric. 0 or -errno. */
int clt_con_make(struct clt_con *con, struct fab_cm *cm);
/* @con is established, by the event of the connection manager. */
void clt_con_established(struct clt_con *con);
/* Fail the path if the peer of @con, an IO connection in service, hangs up while no thread
 * polls. */
void clt_con_watch_hangup(struct clt_con *con);
/* The poll role of @con may have become free: look at @con, if @con is LEFT and waits for the
 * role. */
void clt_con_role_free(struct clt_con *con);
/* Serve @con, whose poll role the service loop has, and poll soon.  If the descriptor cannot be
 * watched, the path fails. */
void clt_con_serve(struct clt_con *con);
/* Disconnect @con; then path->drain_msg is posted whenever clt_con_drain() is worth while. */
void clt_con_shut(struct clt_con *con);
/* Have @con drain, as soon as the service loop has the poll role.  True when @con has drained. */
bool clt_con_drain(struct clt_con *con);
/* Destroy the connection of the fabric, if @con has any.  @con is drained and sealed; its receives
 * are left, for clt_rx_free(). */
void clt_con_release(struct clt_con *con);

/* ---- clt-auth.c: the proof of who the client is (struct clt_auth) ---- */

/* fab_cm_conf.seal() of a path: the last word on the CONN_REQ @data of @conn, which gets its tag.
 * A path whose first connection has TLS has TLS on all. */
const char *clt_auth_seal(struct fab_conn *conn, void *data, size_t len);
/* Judge @rsp, as it came in @msg on @con.  1: the server asks for the proof, clt_auth_begin() is to
 * follow; 0: go on; or -errno with @why. */
int clt_auth_judge(const struct clt_con *con, const struct rtrs_conn_rsp *rsp,
		   const struct rtrs_msg_conn_rsp *msg, char *why, size_t len);
/* Begin the proof on connection 0, which is established.  While another path of the session is
 * connected the proof is of that path's key: the server lets nobody else into a session than who
 * made it, and the key of the configuration may be a new one by now (clt-reload.h).  An attempt
 * behind one that failed so proves the key of the configuration, because this path may lead to
 * another server, or the session may be gone there.  Calls @done when the server has proven
 * itself, too, or with -errno. */
int clt_auth_begin(struct clt_path *path,
		   void (*done)(struct clt_path *path, int err, const char *why),
		   char why[CLT_WHY]);
/* Forget the attempt. */
void clt_auth_release(struct clt_path *path);

#endif
