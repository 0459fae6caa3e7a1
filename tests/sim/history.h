/* SPDX-License-Identifier: BSD-3-Clause */
/* What may legally stand in each sector of a disk, given what was asked and what was answered.
 *
 * Every written sector carries the number of its write and its place.  The model knows for each
 * sector which writes may be the current one, and which one is safe from a loss of power.  Writes
 * to one sector must not overlap in time (history_may_write()); everything else may.
 *
 * A write that failed may still happen at a later time, so it stays possible until a later write to
 * the same sectors was answered: it must not come over that.  A write that was going on while the
 * power was lost may have been answered in parts: what it did before may be lost although it ends
 * well; then the next FLUSH must tell (doc/decisions.md D13).  The client finds that loss when a
 * later part is answered, and its users hear of the write's end later still: so all users may be
 * told from the loss of power on until behind that end, whatever they were told meanwhile. */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdbool.h>
#include <stdint.h>

/* Each user of the disk is told of a loss by a FLUSH or FUA of his own. */
#define HISTORY_USERS 3u

struct history;
struct history_op;

struct history *history_create(unsigned nsectors);
void history_destroy(struct history *h);

/* No write to these sectors is going on. */
bool history_may_write(const struct history *h, unsigned sector, unsigned n);

/* @op, which has just begun, is @user's; without this call it is user 0's. */
void history_by(struct history_op *op, unsigned user);

/* A new connection takes the place of @user.  The new connection need not be told of earlier
 * losses, but may be: a connection that leaves untold leaves a debt (doc/decisions.md D13). */
void history_new_user(struct history *h, unsigned user);

/* @op, a FLUSH that has just begun, goes through a stream, as do the answers of other requests.
 * Another FLUSH may tell of a loss before @op reaches the device, and @op succeeds afterwards: its
 * success says nothing of that loss.  A write answered later than @op began may be covered. */
void history_queued(struct history_op *op);

/* Begin a write and fill @buf with what it is to write; @zero: it writes zeroes and @buf is not
 * needed.  Ends with history_write_end(). */
struct history_op *history_write(struct history *h, unsigned sector, unsigned n, bool zero,
				 uint8_t *buf);
/* @op, a write that has just begun, needs a FLUSH to be durable.  The FLUSH may be a part of @op,
 * which then has FUA at its end. */
void history_needs_flush(struct history_op *op);
void history_write_end(struct history_op *op, int status, bool fua);
/* End a write that never left its client whole: no part of the write may ever be there. */
void history_write_never(struct history_op *op);
/* Something ended that has a FLUSH in it: what was answered before may be safe by now. */
void history_maybe_flushed(struct history *h);
/* The same for @op, which ends: its FLUSH was at some time since @op began, before or after a loss
 * of power. */
void history_maybe_flushed_by(struct history_op *op);
/* @op is a discard with a FLUSH behind it. */
void history_will_flush(struct history_op *op);
/* Instead of it for a discard: what is there now may be zeroes, or what was there. */
void history_discard_end(struct history_op *op, int status);

struct history_op *history_read(struct history *h, unsigned sector, unsigned n);
/* NULL, or in static text what is wrong with what was read. */
const char *history_read_end(struct history_op *op, int status, const uint8_t *buf);

/* The same for one that asked which sectors are holes: these read as zeroes. */
const char *history_extents_end(struct history_op *op, int status, const bool *hole);

struct history_op *history_flush(struct history *h);
/* NULL, or what is wrong with that answer. */
const char *history_flush_end(struct history_op *op, int status);
/* It failed, for a loss of power or for another reason. */
void history_flush_failed(struct history_op *op);
/* The answer to @op was lost with the connection.  No user was told, and writes may be durable. */
void history_flush_in_doubt(struct history_op *op);
/* Another operation that makes things durable failed.  True if that may tell of a loss; then it
 * has.  Before its own _end function. */
bool history_tells(struct history_op *op);

/* The same question of one whose error is not taken for that. */
bool history_may_tell(const struct history_op *op);

/* The server's machine lost what was not on stable storage. */
void history_power_cut(struct history *h);
/* The server was killed while something was synced: nothing is lost by that, and a FLUSH may
 * tell. */
void history_sync_cut(struct history *h);
/* Nothing is going on: is @disk's content one of the legal ones? */
const char *history_check(struct history *h, const uint8_t *disk);

#endif
