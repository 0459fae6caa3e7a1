/* SPDX-License-Identifier: BSD-3-Clause */
/* RNBD client: a session with its open devices (doc/protocol.md 8), its start and its end.
 *
 * Control (session info, open, close, open again after a reconnect) runs on the service loop.
 * Functions that say "blocks" wait with clt-wait.h. */
#ifndef CLIENT_H
#define CLIENT_H

#include "clt-sess.h"
#include "rnbd-msg.h"

#define DEV_PROBE_BYTES (128u << 10)	/* more than a packet of any network has */

struct client {
	struct clt_sess sess;
	atomic_uint features;		/* RNBD_EXT_* of the server */
	atomic_uint boot_epoch;		/* first epoch of the session after the server's memory may
					 * have been lost (doc/decisions.md D13) */
	enum { CLIENT_STAYS, CLIENT_PROBES } kind;	/* constant; a probe waits for nothing */
	struct client_kept *kept;	/* constant; NULL: the client ends with its process, or
					 * probes */
	/* service thread */
	enum {
		CLIENT_PEER_NEW,	/* SESS_INFO was not answered yet */
		CLIENT_PEER_UNKNOWN,	/* the server does not tell its identity */
		CLIENT_PEER_KNOWN,	/* boot_id is valid, of the last epoch */
	} peer;
	unsigned given_up_epoch;		/* of devices that were closed without being
						 * settled */
	struct rnbd_ext met;		/* the answer to this handshake's SESS_INFO, until the
					 * server is accepted */
	uint8_t boot_id[8];
	uint32_t instance;		/* of the server's process in this epoch; 0: unknown */
	uint32_t host;			/* of the server that last told its host; 0: none */
	uint32_t epoch_features;	/* of the server of the last epoch; @features may be of one
					 * that is refused for its files */
	uint32_t other_host;		/* of the machine that answers in the place of @host */
	enum {
		CLIENT_PLACE_KEPT,	/* there is none */
		CLIENT_PLACE_TAKEN,	/* it was refused */
		CLIENT_PLACE_GIVEN,	/* the administrator lets it in, for the next epoch */
	} place;
	enum {
		CLIENT_FILES_UNSEEN,	/* no device is open again yet */
		CLIENT_FILES_OTHER,	/* each file so far is missing, or another file */
		CLIENT_FILES_SAME,	/* some file is the same as before */
	} files;			/* of exports in this epoch */
	struct list devs;
	struct dev *resumed;		/* that the process before had open: a reference, until the
					 * client closes; NULL: none */
	struct dev_watch *watch;	/* dev_watch_start(); NULL: none */
	unsigned nctl;			/* messages under way, without those of the handshake */
	struct list ctl_line;		/* struct dev_ctl: messages that have to wait */
	atomic_uint handshake;		/* of the path that is OPENING: enum
					 * dev_handshake_state */
	bool start_waits;		/* a path is OPENING, and the last message for the path
					 * before has not ended */
	struct dev_ctl *greeting;	/* all messages of the handshake except OPEN */
	uint8_t *probe;			/* DEV_PROBE_BYTES: the data of PROBE, all zero */
	struct dev *opens;		/* the handshake's OPEN is of this device */
	struct loop_timer reopen_timer;	/* devices that could not be opened again */
	struct loop_timer close_timer;
	struct loop_msg start_msg, close_msg;
	struct loop_msg drop_msg;	/* references of devices were dropped */
	struct loop_msg patience_msg;
	struct loop_timer patience_timer;	/* until requests fail that a server holds */
	struct loop_timer held_timer;	/* at each interval of heartbeats: a look at @requests */
	enum {
		CLIENT_REQUESTS_NONE,	/* none was in flight at the last look */
		CLIENT_REQUESTS_FLOW,
		CLIENT_REQUESTS_HELD,	/* none had ended since the look before */
	} requests;
	uint64_t ended;			/* requests, at the last look that found some in flight */
	/* news for threads that wait for the session */
	pthread_mutex_t lock;		/* result, state, away, cause */
	struct clt_waiter event;
	struct clt_waiter away_event;
	int result;			/* CLT_AGAIN: not known yet; 0: was up; negative errno */
	enum { CLIENT_OPEN, CLIENT_CLOSING, CLIENT_CLOSED } state;	/* changed on the service
									 * thread alone */
	bool away;			/* requests wait for a path or an export, or are held, or
					 * may wait soon: a path is silent */
	char cause[256];		/* of a negative result */
};

/* Start a session on @loop, without waiting.  0, or an error as of clt_path_init(). */
int client_init(struct client *clt, struct loop *loop, const struct clt_sess_conf *conf);
/* Wait for the end of the first attempt.  0: the session is up; -errno: the attempt failed, with
 * the reason in @clt->cause; without conf->path.once the session tries again.  Blocks. */
int client_wait_up(struct client *clt);
/* Close the session, and wait until all paths are disconnected.  The caller has closed all devices.
 * Blocks. */
void client_close(struct client *clt);
/* Begin to close the session, without waiting; client_closed() tells the end.  Any thread. */
void client_close_start(struct client *clt);
/* True if the session is closed.  Any thread. */
bool client_closed(struct client *clt);
/* Wait until requests wait for the server or an export, or requests are in flight and none has
 * ended for an interval of heartbeats, or the server has given no sign of life for a heartbeat:
 * true; or until the session is closed: false.  Blocks; one thread. */
bool client_wait_away(struct client *clt);
/* The administrator accepts what has answered in the place of the server and was refused: another
 * machine, with its files for all devices that are in use, or on the same machine other files
 * (doc/decisions.md D15).  Holds for the next epoch, and for each of these devices until it is open
 * again.  Writes that no FLUSH has covered count as lost.  0; -ENOENT: nothing was refused.
 * Service thread. */
int client_accept(struct client *clt);
/* From now on, fail requests at once if the server or the export is away, as with io_timeout_ms 0.
 * A silent server counts as away after two heartbeats, and a server that lives and holds requests
 * after END_WAITS_MS.  Any thread, and signal handlers. */
void client_lose_patience(struct client *clt);
/* Free the members of @clt, after the close and with the service loop gone. */
void client_fini(struct client *clt);

#endif
