/* SPDX-License-Identifier: BSD-3-Clause */
/* A path: the connections between a pair of addresses, and their life (clt-fsm.h).
 *
 * Owned by the service thread.  Other threads see @att, the part for requests (clt-io.h), and
 * clt_path_fail().  The struct lives as long as the session; connections of the fabric come and go
 * with each attempt. */
#ifndef CLT_PATH_H
#define CLT_PATH_H

#include <stdint.h>

#include "auth-chap.h"
#include "clt-cause.h"
#include "clt-io.h"
#include "clt-key.h"
#include "clt-names.h"
#include "fabric.h"
#include "rtrs-msg.h"

struct auth_key;
struct clt_con;
struct clt_lookup;
struct clt_path;

/* ---- counters of a path, summed over all attempts ----
 *
 * Counters stand in struct clt_path, in the pools of frwr, and in struct clt_con and struct
 * clt_wait_con, under locks or roles that counting threads hold anyway.  The service thread reads
 * all without these locks, and so may miss requests that are being counted.  A reset remembers the
 * values, and later reads subtract the remembered values. */

enum clt_stat_what {
	CLT_STAT_READS, CLT_STAT_READ_BYTES,	/* requests with data, counted when sent */
	CLT_STAT_WRITES, CLT_STAT_WRITE_BYTES,
	CLT_STAT_FAILOVERS,		/* requests that another path had sent, and lost */
	CLT_STAT_RECONNECTS, CLT_STAT_RECONNECTS_FAILED,
	CLT_STAT_POLL_HANDOVERS,	/* of the poll role, from thread to thread */
	CLT_STAT_WAKEUPS,		/* of threads sleeping for an answer, or for the role */
	CLT_STAT_KEYS_MAPPED, CLT_STAT_KEYS_BOUND,
	CLT_STAT_REMOTE_INVALIDATES, CLT_STAT_LOCAL_INVALIDATES, CLT_STAT_MISSING_INVALIDATES,
	CLT_STAT_DIGEST_ERRORS,		/* losses of the path by an answer that had changed */
	CLT_STAT_N
};

struct clt_stat {
	uint64_t n[CLT_STAT_N];
};

/* The name of a counter in rtrsctl: "failovers", ... */
const char *clt_path_stat_name(enum clt_stat_what what);
/* Read the counters since the session began; resets change nothing.  Service thread. */
void clt_path_stat_ever(const struct clt_path *path, struct clt_stat *stat);
/* Read the counters since the last reset.  Service thread. */
void clt_path_stat_get(const struct clt_path *path, struct clt_stat *stat);
/* Begin to count again.  Service thread. */
void clt_path_stat_reset(struct clt_path *path);
/* The number of requests of IO that were ever answered over @path.  Service thread. */
uint64_t clt_path_stat_answered(const struct clt_path *path);

/* ---- the path ---- */

#define CLT_PATH_PREFIX "path "
#define CLT_PATH_PREFIX_LEN (sizeof(CLT_PATH_PREFIX) - 1)

#define CLT_STEADY_MS RTRS_HB_INTERVAL_MS /* a path lost sooner was not really back */

/* The configuration of a path, the same for all attempts.  All pointers outlive the path. */
struct clt_path_conf {
	/* the caller's (clt_sess_conf.path) */
	unsigned hb_interval_ms, hb_misses;	/* 0: as of rtrs_hb_conf() */
	unsigned setup_ms;		/* for an attempt; 0: RTRS_CONNECT_TIMEOUT_MS */
	enum clt_registration registration;
	enum rtrs_digest digest;	/* a server without it is refused */
	struct frwr_lessons *lessons;	/* NULL: the session keeps lessons of its own */
	struct fab_users servers;	/* users who may listen at dst, a unix socket */
	const struct fab_tls *tls;	/* NULL: no TLS */
	const struct auth_creds *auth;	/* NULL: no authentication in messages */
	bool once;			/* a single attempt, no reconnect (the probe at start): do
					 * not log failures */
	/* the session's */
	struct clt_io *io;
	const char *sess_name;
	const uint8_t *sess_uuid;	/* [RTRS_UUID_LEN] */
	uint8_t lineage;		/* RTRS_CONN_REQ_LINEAGE: it is of a lineage; else 0 */
	unsigned index;			/* of the session's paths */
	struct clt_sess_addr addr;
	unsigned ncons;
};

/* Calls to the owner of a path, on the service thread. */
struct clt_path_ops {
	/* This attempt's geometry and depth are known.  0, or -errno with @why: the path cannot
	 * serve the session. */
	int (*geometry)(struct clt_path *path, char *why, size_t len);
	/* OPENING: the control slot may be used; clt_path_opened() is awaited. */
	void (*opening)(struct clt_path *path);
	/* The path is STANDBY, after OPENING. */
	void (*standby)(struct clt_path *path);
	/* The path is UP, after OPENING. */
	void (*up)(struct clt_path *path);
	/* The path was lost, or an attempt failed. */
	void (*down)(struct clt_path *path);
	/* The attempt failed before the path was up; follows down(). */
	void (*failed)(struct clt_path *path, int err, const char *cause);
	/* The path is SILENT, or UP again. */
	void (*silence)(struct clt_path *path);
	/* A heartbeat was answered. */
	void (*alive)(struct clt_path *path);
	/* An attempt has ended, and no object of the attempt is left; the path waits for the next
	 * attempt. */
	void (*ended)(struct clt_path *path);
	/* CLOSED: nothing runs any more. */
	void (*closed)(struct clt_path *path);
};

/* The proof of who the client is, on connection 0 of an attempt, before the attempt makes the
 * connections of the path (doc/decisions.md D23).  Service thread. */
struct clt_auth {
	/* of this attempt */
	bool proven;			/* @chap is PROVEN: connections have tags */
	struct auth_chap chap;
	struct rtrs_msg_conn_req req;	/* the last CONN_REQ */
	struct rtrs_msg_conn_rsp rsp;	/* and the answer, which asks for the proof */
	struct auth_key *key;		/* that is proven; NULL: none yet */
	void (*done)(struct clt_path *path, int err, const char *why);
	/* kept from the attempt before */
	bool passed_over;		/* it had the key of other paths, and did not come up */
};

/* Messages on connection 0, before it carries requests: those of the proof, then INFO. */
struct clt_talk {
	void *in, *out;			/* one piece of memory; NULL: none */
	size_t in_len;
	struct ibv_mr *mr;		/* of @in and @out */
	struct fab_cqe recv_cqe, send_cqe;
	void (*came)(struct clt_path *path, const struct ibv_wc *wc);	/* in @in */
};

struct clt_path {
	struct clt_attempt att;
	struct clt_path_conf conf;
	struct rtrs_hb_conf hb;		/* of @conf, at the begin of the attempt */
	const struct clt_path_ops *ops;
	struct loop *loop;
	/* "path [SRC@]DST", for the log: from the configuration, so that the name is the same in
	 * and between all attempts. */
	char name[CLT_PATH_PREFIX_LEN + (size_t)2 * (CLT_NAME_MAX + 1)];
	uint8_t uuid[RTRS_UUID_LEN];

	unsigned attempts;		/* recon_cnt is the low half */

	struct clt_names names;		/* of a path with a name */
	struct clt_lookup *lookup;	/* under way, or NULL */
	char tried[CLT_WHY];		/* why the addresses of this round failed before */

	/* of this attempt */
	struct fab_addr src, dst;	/* src.len 0: any.  dst.len 0: none was found yet */
	unsigned setup_ms;		/* for this step */
	uint32_t max_qp_wr;		/* of the device */
	uint32_t window_send_wr;	/* length of the send queue for windows, or 0 */
	struct clt_talk talk;
	struct fab_cqe hb_cqe;
	void (*info_done)(struct clt_path *path, int err, const char *why);
	unsigned next_cid;
	unsigned probe_bytes;		/* of data in the PROBE under way; 0: none */
	struct clt_auth auth;

	/* kept from the first attempt on */
	struct fab_cm *cm;
	char mode_why[256];		/* the reason of att.mode */

	bool impatient;			/* fail instead of waiting while the path is silent */
	struct loop_watch cm_watch;
	struct loop_timer setup_timer, hb_timer, retry_timer;
	struct loop_msg fail_msg, drain_msg, service_msg;
	unsigned tries;			/* attempts since the path was steady (CLT_STEADY_MS) */
	unsigned fails;			/* attempts that ended since the path last came up */
	uint64_t up_since_ms;		/* 0: not in this attempt */
	uint64_t lost_ms;		/* when the path was lost, or first failed to connect; 0:
					 * never */
	unsigned stuck;			/* losses in a row, see path_note_stuck() */
	bool removed;			/* removed from the session (clt-sess.h) */
	bool tell_up;			/* the log has a warning of the loss or failure */
	unsigned ups;			/* how often the path came up */
	unsigned failed;		/* attempts that failed before the path was up */
	int round;			/* CLT_BUSY: an address of this round was busy; 0 */
	unsigned digest_errors;		/* answers with a wrong digest */
	uint64_t digest_error_ms;	/* when the last one came */
	struct clt_stat stat_base;	/* at the last reset */

	struct clt_cause cause;
};

/* The state of @path, which may change at any time.  Any thread. */
static inline enum clt_path_state clt_path_state(const struct clt_path *path)
{
	return clt_attempt_state(&path->att);
}

/* The word for @state in rtrsctl and metrics: that of the kernel's client for a path that is up. */
static inline const char *clt_path_state_word(enum clt_path_state state)
{
	return state == CLT_PATH_UP ? "connected" : clt_path_fsm.states[state];
}

/* The name for people, in the form of the parameter path=: "[SRC@]DST". */
static inline const char *clt_path_name(const struct clt_path *path)
{
	return path->name + CLT_PATH_PREFIX_LEN;
}

/* Of a line of the log about @path; @id as in LOG_FIELDS(). */
#define CLT_PATH_FIELDS(path, id)                                                                  \
	LOG_FIELDS(id, .session = (path)->conf.sess_name, .peer = clt_path_name(path))

/* Make @path, IDLE, with the poll role of each connection.  0, -ENOMEM, or the error of a thread or
 * event of a poll role: -EMFILE, -EAGAIN. */
int clt_path_init(struct clt_path *path, const struct clt_path_conf *conf,
		  const struct clt_path_ops *ops);
/* Free the objects of @path, which is IDLE or CLOSED. */
void clt_path_fini(struct clt_path *path);
/* CLOSED: give the path other addresses, of the same provider.  Keys stay, because the owners of
 * earlier requests may yet have to end the keys. */
void clt_path_readdress(struct clt_path *path, const struct clt_sess_addr *addr);

/* Service thread. */
/* IDLE or CLOSED: begin the first attempt. */
void clt_path_start(struct clt_path *path);
/* BACKOFF: begin the next attempt at once. */
void clt_path_retry(struct clt_path *path);
/* BACKOFF: begin the next attempt within the back-off of a path without others. */
void clt_path_hurry(struct clt_path *path);
/* End the path for good; ops->closed() follows. */
void clt_path_close(struct clt_path *path);
/* OPENING: a PROBE of @bytes of data is under way, or, with 0, has been answered.  A path that is
 * lost meanwhile says so. */
static inline void clt_path_probes(struct clt_path *path, unsigned bytes)
{
	path->probe_bytes = bytes;
}
/* The user messages of OPENING are answered. */
void clt_path_opened(struct clt_path *path);
/* OPENING: the server of @path is another one than that of the paths that are up. */
void clt_path_stand_by(struct clt_path *path);
/* STANDBY: OPENING again, without a call of ops->opening(). */
void clt_path_wanted(struct clt_path *path);
/* From now on @path fails after standing still for two heartbeats. */
void clt_path_lose_patience(struct clt_path *path);
/* Send a heartbeat now; @ops->alive is called at each answer.  Returns the number of the heartbeat
 * for clt_path_answered(). */
unsigned clt_path_ask(struct clt_path *path);
/* Has the heartbeat @asked of clt_path_ask() been answered? */
bool clt_path_answered(const struct clt_path *path, unsigned asked);
/* Was the path up in this attempt, so that requests may not have come back yet? */
bool clt_path_holds(struct clt_path *path);
/* Has the attempt failed at an address of a name, and are others left, which are tried at once? */
bool clt_path_goes_on(struct clt_path *path);
/* Is the path on the way up? */
bool clt_path_tries(struct clt_path *path);

/* Fail @path once per attempt; the first cause is kept and logged.  Any thread, also from
 * handlers. */
void clt_path_fail(struct clt_path *path, int err, const char *cause);

#endif
