/* SPDX-License-Identifier: BSD-3-Clause */
/* A client that can do every step of a path's life by hand and put any value in any field
 * (hpath.h).
 *
 * Each case runs in a process of its own, so that what it leaves open vanishes with it; a kit
 * function that cannot go on prints the reason and ends that process with status 1.  One thread.
 * After each case (main.c) a well-behaved client must be served, and the server must hold no more
 * descriptors than before. */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../peer/hpath.h"

/* ---- the run (main.c, kit.c) ---- */

struct hrun {
	struct fab_addr server;
	uint64_t timeout_ms;		/* for any one thing that the server is to do */
	const char *log;		/* the server's, to be looked into, or NULL */
	const char *invalidate;		/* how the server runs: "always", "copy", "never" */
	/* the socket of held-fs, whose disk is export "held", or NULL */
	const char *held_fs;
	const char *held_file;		/* what it stores in */
};

extern struct hrun hrun;

#define HSKIPPED 77			/* exit status of a case */

/* Does the run go over tcp? */
bool over_tcp(void);
/* End a case that this transport cannot have. */
void skip(void) __attribute__((noreturn));

/* A group of cases: rows of @size bytes that begin with `const char *name`. */
struct hgroup {
	const char *name;
	const void *rows;
	size_t n, size;
	/* in the case's process; returns when all was as expected */
	void (*run)(const void *row);
	bool slow;			/* takes tens of seconds; runs with --slow, all at once */
};

#define HGROUP(name_, table_, run_) { .name = name_, .rows = table_, .n = ARRAY_SIZE(table_),     \
				      .size = sizeof((table_)[0]), .run = run_ }

extern const struct hgroup conn_cases, order_cases, info_cases, req_cases, rnbd_cases, dev_cases,
	ext_cases, tcp_cases, vanish_cases, comeback_cases, meanwhile_cases, attack_cases,
	slow_cases;

/* ---- over sockets or a device (kit.c) ---- */

/* In a child of a case's process: begin anew, the connections are the parent's. */
void kit_forget(void);
/* Fresh uuids and a fresh name; two connections.  Never freed. */
struct hpath *hpath_new(void);

/* hpump() returns when there is something to read from @fd, too; -1: from none. */
void hpump_also(int fd);
uint64_t hnow_ms(void);

/* Up, SESS_INFO and OPEN; ends the case unless all is answered with 0. */
struct hpath *hpath_ready(const char *export_name, enum rnbd_access_mode mode);

/* ---- what the server logs (hlog.c) ---- */

/* How many lines have @text; 0 where the log is not to be looked into. */
unsigned hlog_count(const char *text);
/* Wait until they are more than @before, which must be by one. */
void hlog_expect_one(const char *text, unsigned before);

/* ---- the well-behaved client (good.c) ---- */

/* A whole life with data written, flushed, read back and compared on export "good". */
void good_client(void);
/* The IO part of it on a path that is up. */
void good_io(struct hpath *p);

#endif
