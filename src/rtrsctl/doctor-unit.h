/* SPDX-License-Identifier: BSD-3-Clause */
/* What systemd says about a unit.  Main thread; blocks as long as systemctl does. */
#ifndef DOCTOR_UNIT_H
#define DOCTOR_UNIT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct doctor_unit {			/* all 0: none */
	char name[256];			/* "rtrs-nbd@disk0.service" */
	json_t *values;			/* texts by the names of properties; lines, if systemd has
					 * several for one; NULL: none */
	bool silent;			/* systemctl has not answered this user */
};

/* True if systemd runs this machine. */
bool doctor_unit_systemd(void);
/* Fill @unit with what systemctl shows of the unit @name.  False: systemctl does not answer, which
 * @unit tells, or there is no such unit. */
bool doctor_unit_ask(struct doctor_unit *unit, const char *name);
/* Write to @name the unit of the process @pid; "": it is of none. */
void doctor_unit_of_process(long pid, char *name, size_t len);
/* The value of @property; "": it has none. */
const char *doctor_unit_value(const struct doctor_unit *unit, const char *property);
/* True if the value of @property is @value. */
bool doctor_unit_is(const struct doctor_unit *unit, const char *property, const char *value);
/* What hides @path of the machine from the unit: "ProtectHome=", "PrivateTmp="; NULL: nothing. */
const char *doctor_unit_hides(const struct doctor_unit *unit, const char *path);
/* True if the unit may open the block device @path. */
bool doctor_unit_may_open(const struct doctor_unit *unit, const char *path);
void doctor_unit_free(struct doctor_unit *unit);

#endif
