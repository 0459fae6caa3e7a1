/* SPDX-License-Identifier: BSD-3-Clause */
/* What of a client outlives its process: memory that the next process finds as the last one left
 * it, at whichever instruction that one was killed (doc/decisions.md D27).  clt-kept.h has the
 * file.
 *
 * The client of the next process goes on where the last one stopped, as a client goes on that has
 * lost its last path: it knows the server, and its export is open, with the same geometry.  Its
 * session takes the place of the one before at the server (rtrs-msg.h, lineages).
 *
 * A kill never leaves a word half written.  So each fact that changes later is one word, and facts
 * that belong together are written before the word that says that they are there.  New members are
 * added at the end: an older process has left zeroes there, and has no use for them. */
#ifndef CLIENT_KEPT_H
#define CLIENT_KEPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dev-loss.h"
#include "rnbd-msg.h"
#include "rtrs-proto.h"

struct client_kept {
	char magic[8];
	uint32_t version;
	char boot[40];			/* of this machine: another boot has other devices */
	uint8_t lineage[RTRS_LINEAGE_LEN];
	atomic_uint generation;		/* of the last session; 0: there was none */
	char name[RNBD_NAME_MAX + 1];	/* of the export */

	/* The server of the last epoch. */
	atomic_uint met;		/* 1: there was one, and the next three are of it */
	atomic_uint features;		/* RNBD_EXT_* */
	atomic_uint host;		/* client.host */
	atomic_ullong boot_id;		/* client.boot_id; 0: it tells none */

	/* The export. */
	atomic_uint opened;		/* 1: it was open, and the next three are of it */
	uint32_t mode;			/* enum rnbd_access_mode */
	struct rnbd_msg_open_rsp rsp;	/* the answer to the first OPEN, but for the next two */
	atomic_ullong size;		/* bytes */
	atomic_ullong export_id;
	struct dev_loss_kept loss;

	/* How the server was reached: name of a provider; "": it is not known. */
	char provider[8];
};

/* ---- any thread, while no client uses @kept ---- */

/* Make @kept, all zero, that of a client of this machine, whose boot is @boot, which opens the
 * export @name. */
void client_kept_init(struct client_kept *kept, const char *boot, const char *name);
/* True if client_kept_init() has made @kept. */
bool client_kept_is_valid(const struct client_kept *kept);
/* True if @kept was made in another boot of this machine than @boot. */
bool client_kept_is_old(const struct client_kept *kept, const char *boot);
/* True if the export was open: the next client has it open from its beginning. */
bool client_kept_resumes(const struct client_kept *kept);
/* The next session begins: get its @uuid. */
void client_kept_next(struct client_kept *kept, uint8_t uuid[RTRS_UUID_LEN]);

#endif
