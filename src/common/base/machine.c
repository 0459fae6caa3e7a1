/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits that this process has on its machine, and its time slices.  Owns the limits that were
 * found; a file that cannot be read is no limit. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cleanup.h"
#include "number.h"
#include "process.h"
#include "util.h"

/* ---- files of a group ---- */

static FILE *open_below(const char *dir, const char *name)
{
	_cleanup_free_ char *path = fmt_new("%s/%s", dir, name);

	return path ? fopen(path, "re") : NULL;
}

/* The first line of @dir/@name, without its end.  false: there is none. */
static bool read_line(const char *dir, const char *name, char *line, size_t len)
{
	FILE *f = open_below(dir, name);
	bool ok;

	if (!f)
		return false;
	ok = fgets(line, (int)len, f) != NULL;
	fclose(f);
	if (ok)
		line[strcspn(line, "\n")] = '\0';
	return ok;
}

/* "max" and "-1", which mean no limit, are no numbers here. */
static void limit_memory(struct machine *m, const char *dir, const char *name)
{
	uint64_t bytes;
	char line[64];

	if (read_line(dir, name, line, sizeof(line)) && sscanf(line, "%" SCNu64, &bytes) == 1)
		m->memory = MIN(m->memory, bytes);
}

static void limit_cpus(struct machine *m, const char *quota_us, const char *period_us)
{
	long long quota = atoll(quota_us), period = atoll(period_us);

	if (quota > 0 && period > 0)
		m->cpus = (unsigned)MIN((long long)m->cpus, (quota + period - 1) / period);
}

static void limit_v2(struct machine *m, const char *dir)
{
	char line[64], *period;

	limit_memory(m, dir, "memory.max");
	limit_memory(m, dir, "memory.high");
	if (!read_line(dir, "cpu.max", line, sizeof(line)))
		return;
	period = strchr(line, ' ');
	if (period)
		limit_cpus(m, line, period);
}

static void limit_v1_memory(struct machine *m, const char *dir)
{
	limit_memory(m, dir, "memory.limit_in_bytes");
}

static void limit_v1_cpu(struct machine *m, const char *dir)
{
	char quota[64], period[64];

	if (read_line(dir, "cpu.cfs_quota_us", quota, sizeof(quota)) &&
	    read_line(dir, "cpu.cfs_period_us", period, sizeof(period)))
		limit_cpus(m, quota, period);
}

/* ---- where groups are ---- */

/* A hierarchy of groups that may limit something. */
static const struct hierarchy {
	const char *fstype, *controller;	/* NULL: all */
	void (*limit)(struct machine *m, const char *dir);
} hierarchies[] = {
	{ "cgroup2", NULL, limit_v2 },
	{ "cgroup", "memory", limit_v1_memory },
	{ "cgroup", "cpu", limit_v1_cpu },
};

/* Is @word one of @list, "word,word"? */
static bool listed(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += len)
		if ((at == list || at[-1] == ',') && (at[len] == ',' || !at[len]))
			return true;
	return false;
}

/* The path in @line, "NUMBER:CONTROLLERS:PATH" of /proc/self/cgroup, if it is of @h, else NULL. */
static const char *group_in(char *line, const struct hierarchy *h)
{
	char *controllers, *path;

	line[strcspn(line, "\n")] = '\0';
	controllers = strchr(line, ':');
	path = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!path)
		return NULL;
	controllers++;
	*path++ = '\0';
	if (h->controller ? !listed(controllers, h->controller) : *controllers)
		return NULL;
	return path;
}

/* This process's group in @h, or NULL.  The caller frees it. */
static char *group_of(const char *root, const struct hierarchy *h)
{
	_cleanup_free_ char *line = NULL;
	const char *group = NULL;
	size_t size = 0;
	FILE *f = open_below(root, "proc/self/cgroup");

	if (!f)
		return NULL;
	while (!group && getline(&line, &size, f) > 0)
		group = group_in(line, h);
	fclose(f);
	return group ? strdup(group) : NULL;
}

/* A blank is \040 in mountinfo, and so on. */
static void unescape(char *text)
{
	char *to = text;

	for (unsigned c; *text; to++) {
		if (*text == '\\' && sscanf(text + 1, "%3o", &c) == 1) {
			*to = (char)c;
			text += 4;
		} else {
			*to = *text++;
		}
	}
	*to = '\0';
}

/* Does @line of mountinfo mount @h?  Where, and from which group on. */
static bool mounts(char *line, const struct hierarchy *h, char **from, char **where)
{
	char *word = line, *save, *fstype, *options = strstr(line, " - ");

	if (!options)
		return false;
	*from = NULL;
	*options = '\0';
	for (int i = 0; word && i < 5; i++) {	/* id, parent, device, root, mount point */
		word = strtok_r(i ? NULL : line, " ", &save);
		if (i == 3)
			*from = word;
	}
	*where = word;
	fstype = strtok_r(options + 3, " ", &save);
	strtok_r(NULL, " ", &save);
	options = strtok_r(NULL, " \n", &save);
	if (!*where || !fstype || !options || strcmp(fstype, h->fstype))
		return false;
	unescape(*from);
	unescape(*where);
	return !h->controller || listed(options, h->controller);
}

/* Go from the group's folder up to the mount's.  A container sees its group as "/", or mounted from
 * there. */
static void limit_up(struct machine *m, const struct hierarchy *h, const char *top,
		     const char *from, const char *group)
{
	size_t skip = strlen(from), top_len = strlen(top);
	_cleanup_free_ char *dir = NULL;
	char *slash;

	if (!strcmp(from, "/"))
		skip = 0;
	else if (strncmp(group, from, skip) || (group[skip] && group[skip] != '/'))
		skip = strlen(group);
	dir = fmt_new("%s%s", top, group + skip);
	while (dir) {
		h->limit(m, dir);
		slash = strrchr(dir, '/');
		if (!slash || slash < dir + top_len)
			return;
		*slash = '\0';
	}
}

static void limit_in(struct machine *m, const char *root, const struct hierarchy *h)
{
	_cleanup_free_ char *line = NULL, *group = group_of(root, h);
	FILE *f = group ? open_below(root, "proc/self/mountinfo") : NULL;
	char *from, *where;
	size_t size = 0;

	if (!f)
		return;
	while (getline(&line, &size, f) > 0) {
		_cleanup_free_ char *top = NULL;

		if (!mounts(line, h, &from, &where))
			continue;
		top = fmt_new("%s%s", root, where);
		if (top)
			limit_up(m, h, top, from, group);
	}
	fclose(f);
}

void machine_limit(struct machine *m, const char *root)
{
	for (unsigned i = 0; i < ARRAY_SIZE(hierarchies); i++)
		limit_in(m, root, &hierarchies[i]);
	m->cpus = MAX(m->cpus, 1u);
}

/* ---- the machine ---- */

/* With more CPUs than a cpu_set_t has there is no answer, and all CPUs are taken. */
static unsigned cpus_of_affinity(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		return (unsigned)CPU_COUNT(&set);
	return (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
}

const struct machine *machine(void)
{
	static struct machine found;
	long pages = sysconf(_SC_PHYS_PAGES);

	if (found.cpus)
		return &found;
	found.memory = pages < 0 ? 0 : (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
	found.cpus = cpus_of_affinity();
	machine_limit(&found, "");
	return &found;
}

/* ---- descriptors ---- */

unsigned long long fds_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) ? 0 : limit.rlim_cur;
}

int fds_name_limit(int r, char *err, size_t len)
{
	if (r == -EMFILE && !strstr(err, "RLIMIT_NOFILE"))
		fmt_add(err, len, " (RLIMIT_NOFILE is %llu: raise it, by ulimit -n or by "
			"LimitNOFILE= of a unit)", fds_limit());
	return r;
}

const char *fds_strerror(int rc)
{
	static _Thread_local char text[160];

	if (rc != -EMFILE)
		return strerror(-rc);
	snprintf(text, sizeof(text), "%s", strerror(-rc));
	fds_name_limit(rc, text, sizeof(text));
	return text;
}

/* ---- threads ---- */

const char *threads_strerror(int rc)
{
	static _Thread_local char text[256];
	struct rlimit limit;

	if (rc != -EAGAIN || getrlimit(RLIMIT_NPROC, &limit))
		return fds_strerror(rc);
	snprintf(text, sizeof(text), "no more threads: %s (", strerror(-rc));
	if (limit.rlim_cur != RLIM_INFINITY)
		fmt_add(text, sizeof(text), "RLIMIT_NPROC is %llu: raise it, by ulimit -u or by "
			"LimitNPROC= of a unit, or ", (unsigned long long)limit.rlim_cur);
	fmt_add(text, sizeof(text), "raise TasksMax= of the unit)");
	return text;
}

/* ---- time slices ---- */

/* struct sched_attr of sched_setattr(2), which glibc has from 2.41 on and <linux/sched/types.h>
 * cannot give beside <sched.h>. */
struct slice_attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

void slices_shorten(void)
{
	struct slice_attr attr;

	if (syscall(SYS_sched_getattr, 0, &attr, (unsigned)sizeof(attr), 0u) < 0)
		return;
	/* Before Linux 6.12 a thread of these policies has a runtime of 0. */
	if ((attr.policy != SCHED_OTHER && attr.policy != SCHED_BATCH) || attr.runtime <= SLICE_NS)
		return;
	attr.runtime = SLICE_NS;
	/* Denied, for instance by a filter of system calls: as before Linux 6.12. */
	syscall(SYS_sched_setattr, 0, &attr, 0u);
}
