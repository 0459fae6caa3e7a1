/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  Messages about a refusal name the parameter to change. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clt-export.h"
#include "dev.h"
#include "log.h"
#include "names.h"

static void append_names(const struct dev_list *list, char *err, size_t size)
{
	static const char more[] = " and 10000 more";
	size_t len = strlen(err), end = size - sizeof(more);
	unsigned i = 0;

	for (; i < list->n; i++) {
		const char *sep = i ? ", " : "; it has ";

		if (len + strlen(sep) + strlen(list->names[i]) > end)
			break;
		len += (size_t)snprintf(err + len, size - len, "%s%s", sep, list->names[i]);
	}
	if (i && i < list->n)
		snprintf(err + len, size - len, " and %u more", list->n - i);
}

void clt_export_names(struct client *clt, char *err, size_t size)
{
	struct dev_list list;

	if (dev_list(clt, &list) == 0)
		append_names(&list, err, size);
	dev_list_fini(&list);
}

int clt_export_list(struct client *clt, struct dev_list *list, char err[CLT_FRONT_ERR])
{
	int r = dev_list(clt, list);

	if (r == -EOPNOTSUPP)
		return 0;
	if (r < 0)
		snprintf(err, CLT_FRONT_ERR, "the server's exports cannot be listed: %s",
			 strerror(-r));
	return r;
}

/* The server lets no one write.  EACCES: the kernel's server. */
static bool is_read_only(int r)
{
	return r == -EROFS || r == -EACCES;
}

static void tell_read_only(const char *name)
{
	log_info(name, "read-only on the server: mode=auto is ro");
}

/* Write into @err why @open has failed. */
static void export_open_failed(const struct clt_conf *conf, const struct dev_open_req *open,
			       char err[CLT_FRONT_ERR])
{
	/* As much of a name as RNBD has room for: a client may have chosen it. */
	snprintf(err, CLT_FRONT_ERR, "export '%.*s' of server=%.64s: %s", RNBD_NAME_MAX - 1,
		 open->name, conf->server, dev_why(open->status, open->refusal));
}

int clt_export_open(struct client *clt, const struct clt_conf *conf, const char *name,
		    struct dev **dev, char err[CLT_FRONT_ERR])
{
	struct dev_open_req req = { .name = name, .mode = conf->mode };
	int r = dev_open_wait(clt, &req);

	if (conf->mode_auto && is_read_only(r)) {
		tell_read_only(name);
		req.mode = RNBD_ACCESS_RO;
		r = dev_open_wait(clt, &req);
	}
	*dev = req.dev;
	if (r < 0) {
		export_open_failed(conf, &req, err);
		if (r == -ENOENT)
			clt_export_names(clt, err, CLT_FRONT_ERR);
		mask_control(err);
	}
	return r;
}

static void open_ended(struct clt_export_req *req)
{
	mask_control(req->err);
	req->done(req);
}

/* The names of those that the server has instead. */
static void export_named(void *arg, int status, struct dev_list *list)
{
	struct clt_export_req *req = arg;

	if (status == 0)
		append_names(list, req->err, CLT_FRONT_ERR);
	open_ended(req);
}

static void export_opened(struct dev_open_req *open)
{
	struct clt_export_req *req = container_of(open, struct clt_export_req, open);

	if (req->conf->mode_auto && open->mode == RNBD_ACCESS_RW && is_read_only(open->status)) {
		tell_read_only(req->name);
		open->mode = RNBD_ACCESS_RO;
		dev_open_start(req->clt, open);
		return;
	}
	req->status = open->status;
	req->dev = open->dev;
	if (req->status < 0)
		export_open_failed(req->conf, open, req->err);
	if (req->status != -ENOENT || dev_list_start(req->clt, export_named, req) < 0)
		open_ended(req);
}

void clt_export_open_start(struct clt_export_req *req, struct client *clt,
			   const struct clt_conf *conf)
{
	req->clt = clt;
	req->conf = conf;
	req->err[0] = '\0';
	req->open =
		(struct dev_open_req){.name = req->name, .mode = conf->mode, .done = export_opened};
	dev_open_start(clt, &req->open);
}

uint32_t clt_export_block(const struct dev *dev)
{
	const struct rnbd_dev_info *info = dev_info(dev);
	/* Below 4096 a page cache reads for a write. */
	uint32_t block = MAX(4096u, (uint32_t)info->logical_block_size);

	return is_pow2(info->physical_block_size) ?
	       MAX(block, (uint32_t)info->physical_block_size) : block;
}

bool clt_export_flushes_fua(const struct dev *dev)
{
	return dev_info(dev)->writeback && !dev_info(dev)->fua;
}

/* WRITE_ZEROES that may unmap is a discard there; any other may have to write. */
bool clt_export_fast_zeroes(const struct dev *dev)
{
	return dev_can_nounmap(dev) && dev_can_discard(dev);
}

void clt_export_failed(struct dev *dev, const char *what, uint64_t len, uint64_t off, int r)
{
	if (r != -EOPNOTSUPP)
		log_err(NULL, "export '%s': %s of %llu bytes at %llu: %s", dev_name(dev), what,
			(unsigned long long)len, (unsigned long long)off, strerror(-r));
}
