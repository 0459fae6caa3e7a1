/* SPDX-License-Identifier: BSD-3-Clause */
/* RNBD client: a session with the devices that are open in it (doc/protocol.md 8), its start and
 * its end.
 *
 * Control (session info, open, close, open again after a reconnect) runs on the service loop.
 * Functions that say "blocks" wait with clt-wait.h. */
#ifndef CLIENT_H
#define CLIENT_H

#include "clt-sess.h"
#include "rnbd-msg.h"

struct client {
	struct clt_sess sess;
	atomic_uint features;		/* RNBD_EXT_* of the server */
	atomic_uint boot_epoch;		/* first epoch of the session after the server's memory may
					 * have been lost (doc/decisions.md D13) */
	/* service thread */
	enum {
		CLIENT_PEER_NEW,	/* SESS_INFO was not answered yet */
		CLIENT_PEER_UNKNOWN,	/* it says not who it is */
		CLIENT_PEER_KNOWN,	/* boot_id is that of the last epoch */
	} peer;
	unsigned given_up_epoch;		/* of devices that were closed without being
						 * settled */
	struct rnbd_ext met;		/* who has answered this handshake's SESS_INFO, until it is
					 * let in */
	uint8_t boot_id[8];
	uint32_t instance;		/* of the server's process in this epoch; 0: it says not
					 * which */
	uint32_t host;			/* of the server, as far as one has said it; 0: none has */
	enum {
		CLIENT_FILES_UNSEEN,	/* none is open again yet */
		CLIENT_FILES_OTHER,	/* all that were asked for are others than before */
		CLIENT_FILES_SAME,
	} files;			/* of exports in this epoch */
	struct list devs;
	unsigned nctl;			/* messages under way, without those of the handshake */
	struct list ctl_line;		/* struct dev_ctl: of those that have to wait */
	atomic_uint handshake;		/* of the path that is OPENING: enum
					 * dev_handshake_state */
	struct dev_ctl *greeting;	/* the handshake's messages but OPEN */
	struct dev *opens;		/* the handshake's OPEN is of this device */
	struct loop_timer reopen_timer;	/* devices that could not be opened again */
	struct loop_timer close_timer;
	struct loop_msg start_msg, close_msg;
	struct loop_msg drop_msg;	/* references of devices were dropped */
	struct loop_msg patience_msg;
	/* told to those that wait for the session */
	pthread_mutex_t lock;		/* result, state, away, cause */
	struct clt_waiter event;
	struct clt_waiter away_event;
	int result;			/* CLT_AGAIN: not known yet; 0 was up; negative errno */
	enum { CLIENT_OPEN, CLIENT_CLOSING, CLIENT_CLOSED } state;	/* changed on the service
									 * thread alone */
	bool away;			/* requests wait for a path or for an export, or may: it is
					 * silent */
	char cause[256];		/* of a negative result */
};

/* Start a session on @loop.  Does not wait.  0, or as clt_path_init(). */
int client_init(struct client *clt, struct loop *loop, const struct clt_sess_conf *conf);
/* Blocks until the first attempt ended: 0 it is up; -errno it failed and @clt->cause tells why
 * (without conf->once it is tried again). */
int client_wait_up(struct client *clt);
/* Blocks until all is disconnected.  All devices are closed. */
void client_close(struct client *clt);
/* The same without waiting: client_closed() tells.  Any thread. */
void client_close_start(struct client *clt);
bool client_closed(struct client *clt);
/* Blocks until the server, or one of the exports, is away and requests wait for it, or the server
 * has given no sign of life for a heartbeat: true; or until the session is closed: false.  One
 * thread. */
bool client_wait_away(struct client *clt);
/* From now on no request waits for what is away, as with io_timeout_ms 0, and a server that stands
 * still is away after two heartbeats.  Any thread. */
void client_lose_patience(struct client *clt);
/* After close, with the service loop gone. */
void client_fini(struct client *clt);

#endif
