/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the HTTP server and the file of the metrics, and ends both.  Thread of the loop. */
#include <errno.h>
#include <stdlib.h>

#include "metric-file.h"
#include "metrics.h"

struct metrics {
	struct metric_http *http;	/* NULL: none */
	struct metric_file file;	/* path NULL: none */
	unsigned nparts;		/* that have not ended */
	void (*done)(void *arg);
	void *done_arg;
};

int metrics_open(struct loop *loop, struct metric_sock *sock, const char *file,
		 const struct metric_source *source, struct metrics **out)
{
	struct metrics *m;
	int r = 0;

	*out = NULL;
	if (sock->fd < 0 && !file)
		return 0;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	if (sock->fd >= 0)
		r = metric_http_open(loop, sock, source, &m->http);
	if (r) {
		free(m);
		return r;
	}
	metric_file_init(&m->file, loop, file, source);
	if (file)
		metric_file_start(&m->file);
	*out = m;
	return 0;
}

void metrics_unlink(const struct metrics *m)
{
	if (m && m->http)
		metric_http_unlink(m->http);
}

void metrics_remove_file(struct metrics *m, void (*removed)(void *arg), void *arg)
{
	if (m && m->file.path)
		metric_file_remove(&m->file, removed, arg);
	else
		removed(arg);
}

/* ---- end ---- */

/* A part has ended. */
static void part_ended(void *arg)
{
	struct metrics *m = arg;
	void (*done)(void *arg) = m->done;
	void *done_arg = m->done_arg;

	if (--m->nparts)
		return;
	free(m);
	done(done_arg);
}

void metrics_close(struct metrics *m, void (*done)(void *arg), void *arg)
{
	m->done = done;
	m->done_arg = arg;
	m->nparts = (m->http != NULL) + (m->file.path != NULL);
	if (m->http)
		metric_http_close(m->http, part_ended, m);
	if (m->file.path)
		metric_file_stop(&m->file, part_ended, m);
}
