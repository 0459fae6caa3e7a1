/* SPDX-License-Identifier: BSD-3-Clause */
/* "rtrsctl doctor": what may keep the programs of this machine from starting, from reaching each
 * other, or from being fast.  One finding is one line, "warn rtrs-nbd disk0: path: ...", and says
 * what to do.  Main thread; blocks.
 *
 * The machine is looked at first (doctor-machine.c), then each subject: a program
 * that runs, or a file of configuration with which one may start (doctor-subject.h). */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdbool.h>

#include <jansson.h>

#include "check.h"

/* The findings, and the worst of them. */
struct doctor {
	enum check_level level;		/* the worst finding: CHECK_OK, _WARNING, _CRITICAL */
	json_t *findings;
	const char *program;		/* that the next findings are about; NULL: the machine */
};

/* Add a finding about @what of doctor->program.  @level: CHECK_OK, _WARNING or _CRITICAL.  Bytes of
 * a file or a peer are made safe. */
void doctor_note(struct doctor *doctor, enum check_level level, const char *what, const char *fmt,
		 ...) __attribute__((format(printf, 4, 5)));
/* Print the findings on standard output, as JSON or as lines. */
void doctor_note_print(const struct doctor *doctor, bool json);

/* ---- the machine ---- */

/* The clock of the machine. */
void doctor_machine_clock(struct doctor *doctor);
/* Whether a server could start here: io_uring. */
void doctor_machine_io_uring(struct doctor *doctor);
/* RDMA devices, and what they can. */
void doctor_machine_rdma(struct doctor *doctor);

#endif
