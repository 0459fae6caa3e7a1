/* SPDX-License-Identifier: BSD-3-Clause */
/* Storage in memory, a driver of the store, with the honesty of a disk that has a volatile cache:
 * what a completed FLUSH or FUA covers survives a power cut, of the rest each sector on its own may
 * be there or not.  Operations take time, reach the medium at any moment in between, and can be
 * held back or made to fail.
 *
 * A disk outlives the server that exports it, as a disk does.  An export finds its disk by its
 * path.
 *
 * An export with shared=yes asks for the lock of its disk (sim-share.h).  What such a server has
 * begun lands before another one breaks the lock, or fails with -ESHUTDOWN and changes nothing. */
#ifndef SIM_STORAGE_H
#define SIM_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export-io.h"
#include "sim-core.h"
#include "sim-share.h"

struct sim_disk;

struct sim_disk *sim_disk_create(const char *path, uint64_t size);
/* Nothing may be in flight. */
void sim_disk_destroy(struct sim_disk *d);
struct sim_disk *sim_disk_find(const char *path);
/* What a read would see now. */
const uint8_t *sim_disk_content(const struct sim_disk *d);
uint64_t sim_disk_size(const struct sim_disk *d);
/* As truncate(1): what is cut off is gone, what is new is zeroes.  The server does not know until
 * it asks. */
void sim_disk_resize(struct sim_disk *d, uint64_t size);
/* Who asks for the size gets no answer until sim_disk_release(); at first at once. */
void sim_disk_hold_size(struct sim_disk *d);
/* Who asks is answered with @err, negative; 0: with the size. */
void sim_disk_fail_size(struct sim_disk *d, int err);
/* Operations started and not completed. */
unsigned sim_disk_inflight(const struct sim_disk *d);
unsigned sim_disk_held(const struct sim_disk *d);
/* Of the operation that was started last: export_io.prio. */
uint16_t sim_disk_prio(const struct sim_disk *d);

/* Each operation takes @us and up to @jitter_us more.  At first 100 and 0. */
void sim_disk_delay(struct sim_disk *d, uint32_t us, uint32_t jitter_us);

enum sim_hold {
	SIM_HOLD_NOTHING,
	SIM_HOLD_BEFORE,	/* stops before it reaches the medium */
	SIM_HOLD_AFTER,		/* has reached the medium, its completion stops */
};

/* The next @n operations of kind @op stop, until sim_disk_release() lets all go. */
void sim_disk_hold(struct sim_disk *d, enum rnbd_io_op op, enum sim_hold hold, unsigned n);
void sim_disk_release(struct sim_disk *d);
/* The next @n operations of kind @op fail with @err (negative) and change nothing. */
void sim_disk_fail(struct sim_disk *d, enum rnbd_io_op op, int err, unsigned n);
/* The same for one, behind @skip others. */
void sim_disk_fail_behind(struct sim_disk *d, enum rnbd_io_op op, int err, unsigned skip);

/* The server's process on @host died: what was in flight goes on to the disk, when its time comes
 * or when it is released; nobody is told. */
void sim_disk_process_killed(struct sim_disk *d, const struct sim_host *host);
/* The same, of a disk that other servers have, too: some of what was in flight is lost. */
void sim_disk_host_died(struct sim_disk *d, const struct sim_host *host);
/* Is any of that still to come? */
bool sim_disk_left(const struct sim_disk *d);
/* The machine @host, which has the disk, lost power: what was in flight is done or not, and the
 * volatile part is there or not, sector by sector. */
void sim_disk_power_cut(struct sim_disk *d, const struct sim_host *host);

/* The lock of the disk, of servers that export it with shared=yes. */
struct sim_share *sim_disk_share(struct sim_disk *d);
/* Call @fn behind the done() of each operation that was refused, because another server has the
 * lock. */
void sim_disk_watch_refused(struct sim_disk *d, void (*fn)(const struct export_io *io));
/* Call @fn before each operation, and each sync, starts; NULL: not any more. */
void sim_disk_watch_started(struct sim_disk *d, void (*fn)(const struct export_io *io));
/* The next @n servers that open the disk anew, because they were fenced, cannot: -EIO. */
void sim_disk_fail_renew(struct sim_disk *d, unsigned n);
/* The next export of the disk that comes to a server that runs fails half way in @step, with -EIO.
 * OPEN: a worker has to let go of the rest (store_driver.let_go()).  ATTACH: on @ring; other rings
 * have the export. */
enum sim_disk_step { SIM_STEP_NONE, SIM_STEP_OPEN, SIM_STEP_ATTACH };
void sim_disk_fail_step(struct sim_disk *d, enum sim_disk_step step, unsigned ring);

/* Fixed-buffer handles that are registered anywhere: 0 after everything was closed. */
unsigned sim_storage_mems(void);

#endif
