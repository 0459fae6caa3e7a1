/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads files of /proc; owns nothing. */
#include <config.h>

#include <dirent.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "answer.h"
#include "cleanup.h"
#include "doctor.h"
#include "state.h"
#include "text.h"

#define FILES_PART_WARNED 4		/* of the limit, free */

/* ---- versions ---- */

/* True if a line of the file @name of @pid says that the program's file, or the plugin's, is no
 * more what runs.  /proc/PID/maps needs the rights of the process. */
static bool is_replaced(long pid)
{
	_cleanup_free_ char *line = NULL;
	FILE *f = doctor_proc(pid, "maps");
	bool replaced = false;
	size_t size = 0;

	while (f && !replaced && getline(&line, &size, f) > 0)
		replaced = strstr(line, " (deleted)") &&
			   (strstr(line, "/rtrs-server (") || strstr(line, "/rtrs-nbd (") ||
			    strstr(line, "/rtrs-attach (") ||
			    strstr(line, "/nbdkit-rtrs-plugin.so ("));
	if (f)
		fclose(f);
	return replaced;
}

static void note_version(struct doctor *doctor, const struct doctor_subject *s)
{
	const char *version = answer_string(s->answer, "version");

	if (strcmp(version, PACKAGE_VERSION))
		doctor_note(doctor, CHECK_WARNING, "version",
			    "runs %s, and rtrsctl is of %s: upgrade both, and restart the program",
			    version, PACKAGE_VERSION);
	else if (is_replaced(s->pid))
		doctor_note(doctor, CHECK_WARNING, "version",
			    "its file was replaced after its start: restart it to run the "
			    "installed version%s", s->kind == SUBJECT_SERVER ? "" :
			    ", when its NBD clients are gone, or connect again by themselves");
	else
		doctor_note(doctor, CHECK_OK, "version", "%s", version);
}

/* What the other end of @sess lacks of this version. */
static void note_peer(struct doctor *doctor, const json_t *names, const json_t *sess)
{
	const json_t *lacks = json_object_get(sess, "peer_lacks"), *item;
	char name[128], text[256] = "";
	size_t i, len = 0;

	if (!json_is_array(lacks))
		return;
	state_name(names, sess, answer_string(sess, "name"), name, sizeof(name));
	json_array_foreach((json_t *)lacks, i, item) {
		const char *word = json_string_value(item);

		if (word && len < sizeof(text))
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
						i ? ", " : "", word);
	}
	if (!*text)
		doctor_note(doctor, CHECK_OK, "peer", "%s: the other end has all of this version",
			    name);
	else
		doctor_note(doctor, CHECK_WARNING, "peer",
			    "%s: the other end lacks %s: it is older, or the kernel's: upgrade "
			    "it if it is rtrs-server, rtrs-nbd or the plugin", name, text);
}

void doctor_subject_versions(struct doctor *doctor, const struct doctor_subject *s)
{
	json_t *names, *sess;
	size_t i;

	if (!s->answer)
		return;
	note_version(doctor, s);
	names = state_index_names(s->answer);
	json_array_foreach(json_object_get(s->answer, "sessions"), i, sess) {
		if (state_is_user(sess))
			note_peer(doctor, names, sess);
	}
	json_decref(names);
}

/* ---- limits ---- */

/* Read the current value of the limit @name of @pid.  False: it cannot be read. */
static bool limit_of_process(long pid, const char *name, uint64_t *value)
{
	FILE *f = doctor_proc(pid, "limits");
	size_t len = strlen(name);
	char line[256];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		if (strncmp(line, name, len))
			continue;
		found = true;
		if (sscanf(line + len, "%" SCNu64, value) != 1)
			*value = UINT64_MAX;	/* "unlimited" */
	}
	if (f)
		fclose(f);
	return found;
}

/* The same of the unit, whose value may be "infinity". */
static bool limit_of_unit(const struct doctor_unit *unit, const char *property, uint64_t *value)
{
	const char *text = doctor_unit_value(unit, property);

	if (sscanf(text, "%" SCNu64, value) != 1)
		*value = UINT64_MAX;
	return *text;
}

/* And that of a process that this shell would start. */
static bool limit_here(int resource, uint64_t *value)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return false;
	*value = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
	return true;
}

/* True if @pid may lock memory without limit. */
static bool may_lock(long pid)
{
	FILE *f = doctor_proc(pid, "status");
	_cleanup_free_ char *line = NULL;
	uint64_t caps = 0;
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0) {
		if (sscanf(line, "CapEff: %" SCNx64, &caps) == 1)
			break;
	}
	if (f)
		fclose(f);
	return caps >> CAP_IPC_LOCK & 1;
}

/* True if @s locks memory beyond any doubt: a server's buffers are registered with io_uring, and
 * those of RDMA with the device. */
static bool locks_memory(const struct doctor_subject *s)
{
	json_t *sess, *path;
	size_t i, j;

	if (s->kind == SUBJECT_SERVER)
		return true;
	json_array_foreach(json_object_get(s->answer, "sessions"), i, sess) {
		json_array_foreach(json_object_get(sess, "paths"), j, path) {
			if (!strcmp(answer_string(path, "transport"), "rdma"))
				return true;
		}
	}
	return false;
}

static void note_memlock(struct doctor *doctor, const struct doctor_subject *s)
{
	uint64_t limit, asked;
	const char *todo = "LimitMEMLOCK=infinity in the unit, or ulimit -l unlimited";
	char size[32];

	if (!(s->pid ? limit_of_process(s->pid, "Max locked memory", &limit) :
	      s->unit.values ? limit_of_unit(&s->unit, "LimitMEMLOCK", &limit) :
	      limit_here(RLIMIT_MEMLOCK, &limit))) {
		doctor_note(doctor, CHECK_WARNING, "memlock", "the limit cannot be read");
		return;
	}
	if (limit == UINT64_MAX || (s->pid ? may_lock(s->pid) : !s->unit.values && !s->user.uid)) {
		doctor_note(doctor, CHECK_OK, "memlock", "no limit of locked memory");
		return;
	}
	text_bytes(limit, size, sizeof(size));
	/* A container may keep systemd from what the unit asks for. */
	if (s->pid && s->unit.values && limit_of_unit(&s->unit, "LimitMEMLOCK", &asked) &&
	    asked > limit)
		todo = "the unit asks for more, and has not got it: a container is limited from "
		       "outside, and a unit that has changed is restarted";
	if (locks_memory(s))
		doctor_note(doctor, CHECK_WARNING, "memlock",
			    "at most %s may be locked: RDMA fails beyond it, and io_uring copies: "
			    "%s", size, todo);
	else
		doctor_note(doctor, CHECK_OK, "memlock",
			    "at most %s may be locked: enough for TCP; RDMA needs more", size);
}

/* The open descriptors of @pid; 0: they cannot be counted. */
static unsigned count_files(long pid)
{
	const struct dirent *entry;
	unsigned n = 0;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%ld/fd", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

static void note_files(struct doctor *doctor, const struct doctor_subject *s)
{
	unsigned open = s->pid ? count_files(s->pid) : 0;
	uint64_t limit;

	if (!(s->pid ? limit_of_process(s->pid, "Max open files", &limit) :
	      s->unit.values ? limit_of_unit(&s->unit, "LimitNOFILE", &limit) :
	      limit_here(RLIMIT_NOFILE, &limit))) {
		doctor_note(doctor, CHECK_WARNING, "files", "the limit cannot be read");
		return;
	}
	if (!open)
		doctor_note(doctor, CHECK_OK, "files", "at most %" PRIu64 " may be open", limit);
	else if (open >= limit - limit / FILES_PART_WARNED)
		doctor_note(doctor, CHECK_WARNING, "files",
			    "%u of at most %" PRIu64 " are open, and each connection is one: "
			    "LimitNOFILE= in the unit, or ulimit -n", open, limit);
	else
		doctor_note(doctor, CHECK_OK, "files", "%u of at most %" PRIu64 " are open", open,
			    limit);
}

void doctor_subject_limits(struct doctor *doctor, const struct doctor_subject *s)
{
	note_memlock(doctor, s);
	note_files(doctor, s);
}
