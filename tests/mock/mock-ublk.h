/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's driver ublk_drv that does not forgive, in the place of ublk-kernel.c:
 * one device, whose requests come from threads of the test, as those of a disk come from its users.
 *
 * It has the habits of the real one.  Completions of a ring are there when its thread looks for
 * them, not before.  Requests are done again by the next process when the last ring of a device is
 * gone; a ring that was left is gone when the process has ended.  STOP_DEV waits for requests that
 * were handed out, and fails those that were not.  What the kernel would refuse or wait for forever
 * ends the program with the reason: a tag that is given twice, an answer without a request, another
 * thread than the first one of the queue, START_DEV before all tags are there, a ring that is
 * closed while its disk is live.
 *
 * Any thread; one lock. */
#ifndef MOCK_UBLK_H
#define MOCK_UBLK_H

#include "ublk-abi.h"

#define MOCK_UBLK_ID 3			/* of the next device */

struct mock_ublk_conf {
	unsigned cpus;			/* queues, at most */
	uint64_t features;		/* UBLK_ABI_* */
};

/* A driver without a device. */
void mock_ublk_start(const struct mock_ublk_conf *conf);
/* Checks that the device is gone. */
void mock_ublk_stop(void);

/* Have the next command @op (UBLK_CTL_*, UBLK_IO_*) fail with @rc, once. */
void mock_ublk_fail(uint32_t op, int rc);
/* Have UBLK_CTL_START_RECOVERY say -EBUSY so many times. */
void mock_ublk_busy(unsigned times);
/* How the device was described, or resized, last. */
struct ublk_abi_params mock_ublk_params(void);
/* As if another process had described it so. */
void mock_ublk_describe(const struct ublk_abi_params *params);
enum ublk_abi_state mock_ublk_state(void);

/* A request of the disk: like the kernel, wait until the process has answered it.  @buf has
 * @sectors sectors.  Returns 0 or -errno. */
int mock_ublk_io(unsigned queue, uint32_t op_flags, uint64_t start, uint32_t sectors, void *buf);
/* The process is killed: its rings are gone with whatever it has done.  Their memory is freed by
 * ublk_ring_destroy(), or mock_ublk_end_process(). */
void mock_ublk_kill(void);
/* The process has ended: rings that were left are gone, and their memory. */
void mock_ublk_end_process(void);
/* Requests that were handed out again. */
unsigned mock_ublk_again(void);
/* Calls of ublk_ring_submit() that sent commands, and these commands. */
void mock_ublk_calls(unsigned long *calls, unsigned long *commands);

#endif
