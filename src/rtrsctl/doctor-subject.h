/* SPDX-License-Identifier: BSD-3-Clause */
/* What the doctor looks at: a program that runs, or a file with which one may start.  Main
 * thread. */
#ifndef DOCTOR_SUBJECT_H
#define DOCTOR_SUBJECT_H

#include "doctor-conf.h"
#include "doctor-unit.h"
#include "doctor-user.h"
#include "doctor.h"

struct doctor_subject {
	char name[256];			/* "rtrs-server disk0", or the file's */
	enum { SUBJECT_SERVER, SUBJECT_GATEWAY } kind;
	long pid;			/* 0: does not run */
	const json_t *answer;		/* to "show"; NULL: does not run */
	const char *config;		/* the file; NULL: not known */
	struct doctor_conf conf;	/* of one that does not run; else empty */
	struct doctor_unit unit;
	struct doctor_user user;	/* of the process, or of the unit, or who asks */
};

/* The unit of @s: whether and how it runs (doctor-unit.c). */
void doctor_subject_unit(struct doctor *doctor, const struct doctor_subject *s);
/* Versions of the program, of its file, and of the other end (doctor-process.c). */
void doctor_subject_versions(struct doctor *doctor, const struct doctor_subject *s);
/* Limits of the process, or of the unit (doctor-process.c). */
void doctor_subject_limits(struct doctor *doctor, const struct doctor_subject *s);
/* Keys, certificates and images, as the user of @s sees them (doctor-files.c). */
void doctor_subject_files(struct doctor *doctor, const struct doctor_subject *s);
/* The configuration, by --check of rtrs-server or rtrs-nbd as the user of @s (doctor-check.c). */
void doctor_subject_check(struct doctor *doctor, const struct doctor_subject *s);
/* Paths and their MTU; of one that does not run whether its servers listen (doctor-path.c). */
void doctor_subject_paths(struct doctor *doctor, const struct doctor_subject *s);

#endif
