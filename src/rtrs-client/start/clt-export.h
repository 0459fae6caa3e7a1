/* SPDX-License-Identifier: BSD-3-Clause */
/* The exports of a server, by their names: opened, described, and why one cannot be opened.  Any
 * thread.  Functions block but where the header says that they do not. */
#ifndef CLT_EXPORT_H
#define CLT_EXPORT_H

#include "clt-conf.h"
#include "dev.h"

/* Open @name of @clt with the mode of @conf.  0, or -errno with the reason in @err, fit to be
 * printed; as dev_open().  If the export does not exist, the reason names the existing exports. */
int clt_export_open(struct client *clt, const struct clt_conf *conf, const char *name,
		    struct dev **dev, char err[CLT_FRONT_ERR]);
/* An open in progress.  The caller embeds the struct, which belongs to the client until @done. */
struct clt_export_req {
	const char *name;
	void (*done)(struct clt_export_req *req);	/* service thread */
	int status;			/* as clt_export_open(), whose reason is in @err */
	struct dev *dev;
	char err[CLT_FRONT_ERR];
	/* private */
	struct dev_open_req open;
	const struct clt_conf *conf;
	struct client *clt;
};

/* The same without waiting.  Any thread. */
void clt_export_open_start(struct clt_export_req *req, struct client *clt,
			   const struct clt_conf *conf);

/* Front ends report these beside the properties in dev.h, of the server as it is now.  None of the
 * functions blocks. */
/* The block size to prefer, in bytes: a smaller write costs a read. */
uint32_t clt_export_block(const struct dev *dev);
/* True if the server has no FUA: flush after the write. */
bool clt_export_flushes_fua(const struct dev *dev);
/* True if WRITE_ZEROES that may unmap is faster than a write. */
bool clt_export_fast_zeroes(const struct dev *dev);

/* A request has failed with @r: one line in the log, unless the request was just not supported.
 * Does not block. */
void clt_export_failed(struct dev *dev, const char *what, uint64_t len, uint64_t off, int r);

/* The names of the server's exports; none when the server does not tell them.  Returns the result
 * of dev_list(), with the reason in @err. */
int clt_export_list(struct client *clt, struct dev_list *list, char err[CLT_FRONT_ERR]);
/* Append the names of the server's exports to @err, as many as fit into @size bytes. */
void clt_export_names(struct client *clt, char *err, size_t size);

#endif
