/* SPDX-License-Identifier: BSD-3-Clause */
/* "rtrsctl doctor": what may keep the programs of this machine from starting, from reaching each
 * other, or from being fast.  One finding is one line, "warn rtrs-nbd disk0: path: ...", and says
 * what to do.  Main thread; blocks.
 *
 * The machine is looked at first (doctor-machine.c, doctor-rdma.c), then each subject: a program
 * that runs, or a file of configuration with which one may start (doctor-subject.h). */
#ifndef DOCTOR_H
#define DOCTOR_H

#include "args.h"
#include "doctor-note.h"

/* Look, print the findings, and return the exit status: that of "check". */
int doctor_run(const struct ctx *ctx);

/* The clock of the machine. */
void doctor_clock(struct doctor *doctor);
/* Whether a server could start here: io_uring. */
void doctor_io_uring(struct doctor *doctor);
/* RDMA devices, and what they can. */
void doctor_rdma(struct doctor *doctor);

#endif
