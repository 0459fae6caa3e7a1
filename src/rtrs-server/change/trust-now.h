/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of a reload that waits for no other change: a reload that is refused because of the
 * change under way still takes trust away (trust.h).  One at a time.  Control thread. */
#ifndef TRUST_NOW_H
#define TRUST_NOW_H

#include "trust.h"
#include "worker.h"

struct trust_now {
	struct srv *srv;
	bool runs;
	/* while it runs */
	/* The caller's: what that change gives when it ends; NULL: it has ended, and a change
	 * behind it has other files. */
	struct trust *pending;
	struct trust trust;
	struct worker_job job;
	bool good;			/* of the job: the files */
	char *text;			/* of the job: a line for each mistake */
	void (*done)(struct trust_now *now, int rc, const char *text);
};

/* Read the files of keys and certificates on @worker; their names stay while the server runs.
 * Then take from the server what the files take away, and from @pending the keys that they
 * do not have.  @done follows, on the control thread: with 0 and a line of @text for each change,
 * maybe none; or with -errno and the mistakes of the files, a line each, and nothing has changed.
 * Returns 0, or -errno: @done does not follow. */
int trust_now_begin(struct trust_now *now, struct trust *pending, struct worker *worker,
		    void (*done)(struct trust_now *now, int rc, const char *text));

#endif
