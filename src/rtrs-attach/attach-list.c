/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices as their states and sysfs show them, whoever serves them: a table, JSON, and lines for
 * udev(7).  Changes nothing.  Main thread. */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach-nbd.h"
#include "attach.h"
#include "ctl-json.h"
#include "lock-file.h"
#include "number.h"
#include "process.h"
#include "ublk-dev.h"

struct item {
	struct attach_state state;
	char node[ATTACH_NODE_LEN];
	uint64_t size;			/* bytes; 0: the device has gone */
	const char *serves;
};

/* "gone": the process was killed before it had a device, or another program has removed the device
 * and the process was killed since.  What is to be done with a device is done by a process. */
static const char *serves(struct item *item)
{
	struct attach_state *s = &item->state;

	if (!attach_state_served(s->name)) {
		s->pid = 0;
		return item->size ? "waits for rtrs-attach" : "gone";
	}
	/* The next process has the lock, and has not written the state yet. */
	if (!lock_holder_lives(s->pid)) {
		s->pid = 0;
		s->ready = ATTACH_BEGINS;
	}
	if (s->wish == ATTACH_GOES)
		return "goes";
	if (s->wish == ATTACH_GOES_UNUSED)
		return "goes when unused";
	return item->size && s->ready == ATTACH_READY ? "served" : "waits for server";
}

/* 0, or -errno with @err; -ENOENT: there is no device, and none is to be. */
static int read_item(struct item *item, const char *name, char *err, size_t len)
{
	int r = attach_state_read(&item->state, name, err, len);

	if (r < 0 && r != -ENOENT)
		return r;
	driver_node(name, item->node);
	/* A user who may not ask the kernel believes the state. */
	driver_find(&item->state);
	if (!*item->state.driver && (r < 0 || !attach_state_served(name)))
		return -ENOENT;
	item->size = driver_node_size(item->state.disk);
	item->serves = serves(item);
	return 0;
}

/* ---- the table ---- */

static void print_item(const struct item *item)
{
	const struct attach_state *s = &item->state;
	char size[SIZE_TEXT_MAX];

	printf("%-16s %-8s %8s  %-21s  %s/%s\n", s->name, *s->disk ? s->disk : "-",
	       size_text(item->size, size), item->serves, *s->server ? s->server : "?",
	       *s->export_name ? s->export_name : "?");
}

/* ---- JSON ---- */

static json_t *item_json(const struct item *item)
{
	const struct attach_state *s = &item->state;

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:i}", "name",
			 ctl_json_text(s->name), "node", ctl_json_text(item->node), "disk",
			 ctl_json_text(s->disk), "driver", ctl_json_text(s->driver), "server",
			 ctl_json_text(s->server), "export", ctl_json_text(s->export_name), "size",
			 (json_int_t)item->size, "state", ctl_json_text(item->serves), "pid",
			 s->pid);
}

/* ---- all ---- */

int attach_list(bool json)
{
	json_t *array = json ? json_array() : NULL;
	char **names, err[256];
	int n = attach_state_names(&names, err, sizeof(err)), r;
	bool failed = n < 0, whole = !json || array;
	struct item item;

	if (!json && n > 0)
		printf("%-16s %-8s %8s  %-21s  %s\n", "NAME", "DISK", "SIZE", "STATE",
		       "SERVER/EXPORT");
	if (failed)
		fprintf(stderr, "rtrs-attach: %s\n", err);
	for (int i = 0; i < n; i++) {
		r = read_item(&item, names[i], err, sizeof(err));
		if (r == 0 && json)
			whole &= ctl_json_add(array, item_json(&item));
		else if (r == 0)
			print_item(&item);
		else if (r != -ENOENT)
			failed = fprintf(stderr, "rtrs-attach: %s\n", err) != 0;
	}
	if (n >= 0)
		attach_state_names_free(names, n);
	if (json && !whole) {
		failed = fputs("rtrs-attach: out of memory\n", stderr) >= 0;
	} else if (json) {
		failed |= json_dumpf(array, stdout, JSON_INDENT(1)) < 0;
		putchar('\n');
	}
	json_decref(array);
	return std_out_end("rtrs-attach", failed ? EXIT_FAILED : EXIT_DONE);
}

/* ---- udev ---- */

/* Print @text as a part of a file name. */
static void print_safe(const char *text)
{
	for (; *text; text++)
		putchar(isalnum((unsigned char)*text) || strchr(".:_+-", *text) ? *text : '_');
}

static int mark_of(int id, uint64_t *mark)
{
#ifdef HAVE_LIBURING
	char why[UBLK_WHY];

	return ublk_disk_mark(id, mark, why);
#else
	return -EOPNOTSUPP;
#endif
}

/* Find the state whose mark is that of the kernel's @id.  0, or -ENOENT. */
static int find_marked(struct attach_state *s, int id)
{
	char **names, err[256];
	int n, r = -ENOENT;
	uint64_t mark;

	if (mark_of(id, &mark) < 0)
		return r;
	n = attach_state_names(&names, err, sizeof(err));
	for (int i = 0; r < 0 && i < n; i++) {
		if (attach_state_read(s, names[i], err, sizeof(err)) == 0 &&
		    (attach_state_mark(s) == mark || attach_state_mark_0(s) == mark))
			r = 0;
	}
	if (n >= 0)
		attach_state_names_free(names, n);
	return r;
}

/* The state of the device that is @disk, as the kernel has it: the state may not name the disk yet.
 * 0, or -ENOENT. */
static int find_state(struct attach_state *s, const char *disk)
{
	char owner[ATTACH_NBD_TEXT], err[256];
	int id;

	if (sscanf(disk, "ublkb%d", &id) == 1)
		return find_marked(s, id);
	if (!attach_nbd_owner(disk, owner))
		return -ENOENT;
	owner[strcspn(owner, ":")] = '\0';
	return attach_state_read(s, owner, err, sizeof(err)) == 0 ? 0 : -ENOENT;
}

int attach_list_udev(const char *disk)
{
	struct attach_state s;

	if (find_state(&s, disk) < 0)
		return EXIT_FAILED;
	printf("RTRS_NAME=%s\nRTRS_EXPORT=", s.name);
	print_safe(s.export_name);
	printf("\nRTRS_SERVER=");
	print_safe(s.server);
	putchar('\n');
	return std_out_end("rtrs-attach", EXIT_DONE);
}
