/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface of the kernel's driver ublk_drv, as Linux 6.12 to 7.3 have it: its numbers, and the
 * layout of what it shares with us.  Headers of older systems know only the old numbers of the
 * commands, which a kernel may be built without (CONFIG_BLKDEV_UBLK_LEGACY_OPCODES).
 *
 * CONTROL.  A device is made and ruled by commands for UBLK_CONTROL, each an entry of 128 bytes of
 * an io_uring with a struct ublk_abi_ctl.  ADD_DEV makes the character device UBLK_CHAR.
 * SET_PARAMS describes the disk.  START_DEV makes the disk UBLK_DISK, once each queue has its
 * requests.
 *
 * REQUESTS.  A queue has as many tags as its depth.  FETCH_REQ gives a tag to the kernel, which
 * completes the command when it has a request: the struct ublk_abi_desc of the tag says which.
 * COMMIT_AND_FETCH_REQ answers and gives the tag back.  All commands of a queue come from a single
 * thread.
 *
 * DEATH of the process.  With USER_RECOVERY the disk stays (QUIESCED), and its users wait.  Between
 * START_USER_RECOVERY and END_USER_RECOVERY the next process opens the character device and fetches
 * all tags.  With USER_RECOVERY_REISSUE it gets the requests that were not answered. */
#ifndef UBLK_ABI_H
#define UBLK_ABI_H

#include <errno.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/types.h>

#define UBLK_CONTROL "/dev/ublk-control"
#define UBLK_CHAR "/dev/ublkc"		/* the number follows */
#define UBLK_DISK "/dev/ublkb"

/* ---- limits of the driver ---- */

#define UBLK_TAGS 4096u			/* of a queue, at most */
#define UBLK_BLOCK_MAX 4096u		/* bytes of a logical block: a page */
#define UBLK_NO_QUEUE UINT16_MAX	/* ublk_abi_ctl.queue of a command for the device */

/* ---- features and flags: bits of ublk_abi_dev.flags ---- */

#define UBLK_ABI_RECOVERY (1ull << 3)
#define UBLK_ABI_REISSUE (1ull << 4)
#define UBLK_ABI_IOCTL_NUMBERS (1ull << 6)	/* the commands have the numbers below */
#define UBLK_ABI_RESIZE (1ull << 10)	/* UBLK_CTL_UPDATE_SIZE; Linux 6.16 */

/* ---- control ---- */

struct ublk_abi_ctl {
	uint32_t dev;
	uint16_t queue;
	uint16_t len;			/* bytes at @addr */
	uint64_t addr;			/* of what the command reads or writes */
	uint64_t data;
	uint16_t path_len;		/* of devices without privilege, which we do not make */
	uint16_t pad;
	uint32_t reserved;
};

#define UBLK_CTL_READ(number) _IOR('u', number, struct ublk_abi_ctl)
#define UBLK_CTL_CHANGE(number) _IOWR('u', number, struct ublk_abi_ctl)

#define UBLK_CTL_GET_DEV_INFO UBLK_CTL_READ(0x02)	/* struct ublk_abi_dev */
#define UBLK_CTL_ADD_DEV UBLK_CTL_CHANGE(0x04)		/* struct ublk_abi_dev */
#define UBLK_CTL_START_DEV UBLK_CTL_CHANGE(0x06)	/* data: the number of our process */
#define UBLK_CTL_STOP_DEV UBLK_CTL_CHANGE(0x07)
#define UBLK_CTL_SET_PARAMS UBLK_CTL_CHANGE(0x08)	/* struct ublk_abi_params */
#define UBLK_CTL_GET_PARAMS UBLK_CTL_READ(0x09)		/* struct ublk_abi_params */
#define UBLK_CTL_START_RECOVERY UBLK_CTL_CHANGE(0x10)
#define UBLK_CTL_END_RECOVERY UBLK_CTL_CHANGE(0x11)	/* data: the number of our process */
#define UBLK_CTL_GET_FEATURES UBLK_CTL_READ(0x13)	/* uint64_t */
#define UBLK_CTL_DEL_DEV_ASYNC UBLK_CTL_READ(0x14)
#define UBLK_CTL_UPDATE_SIZE UBLK_CTL_CHANGE(0x15)	/* data: sectors */

enum ublk_abi_state {
	UBLK_ABI_DEAD,			/* no disk */
	UBLK_ABI_LIVE,
	UBLK_ABI_QUIESCED,		/* the process is gone, requests wait for the next one */
};

struct ublk_abi_dev {
	uint16_t queues, depth;
	uint16_t state;			/* enum ublk_abi_state */
	uint16_t pad0;
	uint32_t io_bytes;		/* of the largest request */
	uint32_t id;			/* ADD_DEV: UINT32_MAX, any */
	int32_t pid;			/* of the process that serves, -1: none */
	uint32_t pad1;
	uint64_t flags;
	uint64_t ours;			/* the kernel keeps it for us */
	uint32_t uid, gid;
	uint64_t reserved[2];
};

/* ublk_abi_basic.attrs */
#define UBLK_ABI_ATTR_READ_ONLY (1u << 0)
#define UBLK_ABI_ATTR_ROTATIONAL (1u << 1)
#define UBLK_ABI_ATTR_WRITE_CACHE (1u << 2)
#define UBLK_ABI_ATTR_FUA (1u << 3)

struct ublk_abi_basic {
	uint32_t attrs;
	uint8_t logical_shift, physical_shift;	/* of bytes of a block */
	uint8_t io_opt_shift, io_min_shift;
	uint32_t max_sectors, chunk_sectors;
	uint64_t sectors;
	uint64_t virt_boundary;
};

struct ublk_abi_discard {
	uint32_t alignment, granularity;	/* bytes */
	uint32_t max_sectors, max_zeroes_sectors;
	uint16_t max_segments;
	uint16_t reserved;
};

/* ublk_abi_params.types */
#define UBLK_PARAM_BASIC (1u << 0)
#define UBLK_PARAM_DISCARD (1u << 1)

/* Later kernels have more behind these, which @len leaves out. */
struct ublk_abi_params {
	uint32_t len;			/* of the struct */
	uint32_t types;
	struct ublk_abi_basic basic;
	struct ublk_abi_discard discard;
};

/* ---- requests ---- */

#define UBLK_IO_FETCH _IOWR('u', 0x20, struct ublk_abi_io)
#define UBLK_IO_COMMIT_AND_FETCH _IOWR('u', 0x21, struct ublk_abi_io)

/* The result of a FETCH whose tag the kernel needs no more: the device has stopped. */
#define UBLK_IO_ABORTED (-ENODEV)

struct ublk_abi_io {
	uint16_t queue, tag;
	int32_t result;			/* COMMIT: bytes of a READ or WRITE, or -errno */
	uint64_t addr;			/* of the tag's buffer */
};

enum ublk_abi_op {
	UBLK_OP_READ, UBLK_OP_WRITE, UBLK_OP_FLUSH, UBLK_OP_DISCARD,
	UBLK_OP_WRITE_ZEROES = 5,
};

#define UBLK_OP_MASK 0xffu
#define UBLK_F_FUA (1u << 13)
#define UBLK_F_NOUNMAP (1u << 15)

struct ublk_abi_desc {
	uint32_t op_flags;		/* enum ublk_abi_op | UBLK_F_* */
	uint32_t sectors;
	uint64_t start;			/* sector */
	uint64_t addr;
};

/* The descriptors of queue @n are a mapping of the character device, read-only, from this offset
 * on. */
#define UBLK_DESCS_OFF(n) ((off_t)(n) * UBLK_TAGS * (off_t)sizeof(struct ublk_abi_desc))

_Static_assert(sizeof(struct ublk_abi_ctl) == 32 && sizeof(struct ublk_abi_dev) == 64 &&
	       sizeof(struct ublk_abi_basic) == 32 && sizeof(struct ublk_abi_discard) == 20 &&
	       sizeof(struct ublk_abi_io) == 16 && sizeof(struct ublk_abi_desc) == 24,
	       "the kernel's sizes");

#endif
