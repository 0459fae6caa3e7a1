/* SPDX-License-Identifier: BSD-3-Clause */
/* "rtrsctl doctor": what may keep the programs of this machine from starting, from reaching each
 * other, or from being fast.  One finding is one line, "warn rtrs-nbd disk0: path: ...", and says
 * what to do.  Main thread; blocks.
 *
 * The machine is looked at first (doctor-machine.c), then each subject: a program that runs, or a
 * file of configuration with which one may start. */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include <jansson.h>

#include "check.h"
#include "opt-file.h"

/* ---- doctor-note.c: the findings, and the worst of them; files of /proc; tools ---- */

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

/* Open the file @name of /proc/@pid; NULL: there is none. */
FILE *doctor_proc(long pid, const char *name);
/* Run the words @argv.  Returns where to read what comes from @fd, its standard output or error;
 * NULL: it could not be started.  doctor_tool_end() follows. */
FILE *doctor_tool_begin(const char *const argv[], int fd, pid_t *pid);
/* Close @f and wait for @pid, both of doctor_tool_begin().  The status of waitpid(), which is not 0
 * for what could not be started. */
int doctor_tool_end(FILE *f, pid_t pid);
#define DOCTOR_NOT_RUN 127		/* the exit status of what could not be executed */

/* ---- doctor-machine.c: the machine ---- */

/* The clock of the machine. */
void doctor_machine_clock(struct doctor *doctor);
/* Whether a server could start here: io_uring. */
void doctor_machine_io_uring(struct doctor *doctor);
/* RDMA devices, and what they can. */
void doctor_machine_rdma(struct doctor *doctor);

/* ---- doctor-conf.c ----
 * The lines of a configuration, as far as they can be read: for a look at what they name.  Whether
 * they are right is for the program to say, which has the tables of options. */

struct doctor_line {
	const char *section;		/* the name of the export; "": none */
	const char *name, *value;
};

struct doctor_conf {			/* all 0: none */
	struct doctor_line *lines;
	size_t n;
	struct opt_texts texts;		/* of @lines */
	bool is_server;			/* it has a section of a server */
};

/* Add the lines of @path, and of the files "*.conf" in @path.d, to @conf, which doctor_conf_free()
 * frees in any case.  A line of text for each file or directory that cannot be read, for free();
 * NULL: no memory. */
char *doctor_conf_read(struct doctor_conf *conf, const char *path);
/* The value of the next line called @name, behind line *@at, which counts on; NULL: no more.
 * *@section, unless NULL: the section of the line.  *@at begins with 0. */
const char *doctor_conf_next(const struct doctor_conf *conf, const char *name, size_t *at,
			     const char **section);
/* The value of the line @name of @section; NULL: there is none. */
const char *doctor_conf_of(const struct doctor_conf *conf, const char *section, const char *name);
void doctor_conf_free(struct doctor_conf *conf);

/* ---- doctor-unit.c ----
 * The state of a unit, as systemd has it.  Blocks as long as systemctl does. */

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
/* The names of the units of this project that have failed, or are about to start again: the keys of
 * a JSON object.  Empty: there are none, or systemctl does not answer. */
json_t *doctor_unit_broken(void);
/* Write to @name the unit of the process @pid; "": it is of none. */
void doctor_unit_of_process(long pid, char *name, size_t len);
/* The value of @property; "": it has none. */
const char *doctor_unit_value(const struct doctor_unit *unit, const char *property);
/* True if the value of @property is @value. */
bool doctor_unit_is(const struct doctor_unit *unit, const char *property, const char *value);
/* What hides @path of the machine from the unit: "ProtectHome=", "PrivateTmp="; NULL: nothing. */
const char *doctor_unit_hides(const struct doctor_unit *unit, const char *path);
/* The setting that keeps the unit from writing to the directory @path, which its user may write to:
 * "ProtectSystem=strict"; NULL: none. */
const char *doctor_unit_read_only(const struct doctor_unit *unit, const char *path);
/* The directory in which the unit starts its program, as @user. */
const char *doctor_unit_directory(const struct doctor_unit *unit, uid_t user);
/* True if the unit may open the block device @path. */
bool doctor_unit_may_open(const struct doctor_unit *unit, const char *path);
void doctor_unit_free(struct doctor_unit *unit);

/* ---- doctor-user.c ----
 * Looks at files as another user sees them, while the process has no other thread. */

#define DOCTOR_GROUPS_MAX 64u

struct doctor_user {
	uid_t uid;
	gid_t gid;
	gid_t groups[DOCTOR_GROUPS_MAX];
	unsigned ngroups;
};

/* Fill @user with who runs this program. */
void doctor_user_self(struct doctor_user *user);
/* Fill @user with the user of the process @pid.  False: it cannot be read. */
bool doctor_user_of_process(struct doctor_user *user, long pid);
/* Fill @user as systemd does: @name, the group @group ("": the user's own), and the groups @more,
 * separated by blanks; all by name or number.  False: there is no such user. */
bool doctor_user_named(struct doctor_user *user, const char *name, const char *group,
		       const char *more);

/* Looks, and writes the finding to @text. */
typedef enum check_level doctor_look_fn(const void *arg, char *text, size_t len);

/* Call @look(@arg, @text, @len) as @user, in a child process unless @user is who runs this program,
 * and leave its answer in @level.  False: this user may not look as @user does; @text says so. */
bool doctor_look_as(const struct doctor_user *user, doctor_look_fn *look, const void *arg,
		    enum check_level *level, char *text, size_t len);

/* ---- the subject ---- */

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
/* Keys, certificates, images and directories, as the user of @s sees them (doctor-files.c). */
void doctor_subject_files(struct doctor *doctor, const struct doctor_subject *s);
/* The configuration, by --check of its program as the user of @s (doctor-conf.c). */
void doctor_subject_check(struct doctor *doctor, const struct doctor_subject *s);
/* Paths and their MTU; of one that does not run whether its servers listen, and
 * whether the machine has the addresses of a server (doctor-path.c). */
void doctor_subject_paths(struct doctor *doctor, const struct doctor_subject *s);

#endif
