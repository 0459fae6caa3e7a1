/* SPDX-License-Identifier: BSD-3-Clause */
/* A device with persistent reservations that ioctl() plays, for unit tests that wrap ioctl() and
 * getrandom(): host i has the descriptor FD + i.  One thread. */
#ifndef PR_DEVICE_H
#define PR_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#define FD 1000
#define KEYS_MAX 8190u			/* as store-file-pr-ask.c has it */
#define NHOSTS (4 * (int)KEYS_MAX)
#define CHECK 0x02
#define CONFLICT 0x18

extern struct device {
	bool scsi;			/* asked by SCSI command */
	uint64_t keys[NHOSTS];		/* 0: not registered */
	int holder;			/* -1: nobody */
	bool everybody;			/* all who are registered have it: its key is 0 */
	int attentions;			/* so many commands fail first */
	bool illegal;			/* no SCSI command is known */
	int refuses;			/* errno of each ioctl; 0: none */
	bool stubborn;			/* PREEMPT removes no key */
	unsigned sent;			/* a SCSI answer ends there; 0: whole */
	unsigned aborts;
} dev;

/* The numbers that getrandom() gives, one for each call. */
extern uint64_t random_numbers[4];
extern unsigned nrandom;

#endif
