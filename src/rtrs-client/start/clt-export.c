/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  Messages about a refusal name the parameter to change. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clt-export.h"
#include "log.h"
#include "mask.h"

static const char *open_reason(int r)
{
	switch (r) {
	case -EPERM:
		return "open for writing by another session, "
		       "which the server's log names (mode=ro or "
		       "mode=migration would share it)";
	case -EROFS: case -EACCES:
		return "read-only on the server (mode=auto or mode=ro would take it)";
	case -ENOENT:
		return "the server has no such export";
	case -EMEDIUMTYPE:
		return "shrunk while other clients here have it open";
	case -ECONNABORTED:
		return "the server was lost";
	default:
		return strerror(-r);
	}
}

void clt_export_names(struct client *clt, char *err, size_t size)
{
	static const char more[] = " and 10000 more";
	size_t len = strlen(err), end = size - sizeof(more);
	struct dev_list list;
	unsigned i = 0;

	if (dev_list(clt, &list) == 0 && list.n) {
		for (; i < list.n; i++) {
			const char *sep = i ? ", " : "; it has ";

			if (len + strlen(sep) + strlen(list.names[i]) > end)
				break;
			len += (size_t)snprintf(err + len, size - len, "%s%s", sep, list.names[i]);
		}
		if (i && i < list.n)
			snprintf(err + len, size - len, " and %u more", list.n - i);
	}
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

int clt_export_open(struct client *clt, const struct clt_conf *conf, const char *name,
		    struct dev **dev, char err[CLT_FRONT_ERR])
{
	int r = dev_open(clt, name, conf->mode, dev);

	/* EACCES: the kernel's server. */
	if (conf->mode_auto && (r == -EROFS || r == -EACCES)) {
		log_info(name, "read-only on the server: mode=auto is ro");
		r = dev_open(clt, name, RNBD_ACCESS_RO, dev);
	}
	if (r < 0) {
		/* Cut the name, which a client may have chosen, to the room in RNBD. */
		snprintf(err, CLT_FRONT_ERR, "export '%.*s' of server=%.64s: %s", RNBD_NAME_MAX - 1,
			 name, conf->server, open_reason(r));
		if (r == -ENOENT)
			clt_export_names(clt, err, CLT_FRONT_ERR);
		mask_control(err);
	}
	return r;
}
