/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a netlink socket for commands and their answers.  Errors are those of the kernel.  Its word
 * that a connection has died (LINK_DEAD) is not listened to: the process at the other end of a
 * socket pair sees the end of the stream, and a process that comes later would have missed it. */
#include <config.h>

#include "attach-nbd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nbd-netlink.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach.h"

/* The kernel looks so often after a request in flight, in place of 30 s. */
#define LOOK_MS "5000"

struct attach_nbd {
	struct nl_sock *sock;
	int family;
	/* of the call under way */
	int status;			/* 1: no answer yet */
	int index;			/* of the answer to CONNECT; -1: none */
};

/* ---- answers ---- */

static int on_error(struct sockaddr_nl *from, struct nlmsgerr *e, void *arg)
{
	struct attach_nbd *nbd = arg;

	nbd->status = e->error;
	return NL_STOP;
}

static int on_ack(struct nl_msg *msg, void *arg)
{
	struct attach_nbd *nbd = arg;

	nbd->status = 0;
	return NL_STOP;
}

static int index_of(struct nl_msg *msg)
{
	struct nlattr *attrs[NBD_ATTR_MAX + 1];

	if (genlmsg_parse(nlmsg_hdr(msg), 0, attrs, NBD_ATTR_MAX, NULL) < 0 ||
	    !attrs[NBD_ATTR_INDEX])
		return -1;
	return (int)nla_get_u32(attrs[NBD_ATTR_INDEX]);
}

static int on_answer(struct nl_msg *msg, void *arg)
{
	struct attach_nbd *nbd = arg;

	nbd->index = index_of(msg);
	return NL_OK;
}

/* ---- calls ---- */

static struct nl_msg *message(struct attach_nbd *nbd, uint8_t command)
{
	struct nl_msg *msg = nlmsg_alloc();

	if (msg && !genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, nbd->family, 0, 0, command,
				NBD_GENL_VERSION)) {
		nlmsg_free(msg);
		return NULL;
	}
	return msg;
}

/* Send @msg, which is taken, and wait for the answer.  The kernel's 0 or -errno. */
static int call(struct attach_nbd *nbd, struct nl_msg *msg)
{
	struct nl_cb *cb = nl_cb_alloc(NL_CB_DEFAULT);
	int r = cb ? 0 : -NLE_NOMEM;

	nbd->status = 1;
	nbd->index = -1;
	if (cb) {
		nl_cb_err(cb, NL_CB_CUSTOM, on_error, nbd);
		nl_cb_set(cb, NL_CB_ACK, NL_CB_CUSTOM, on_ack, nbd);
		nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, on_answer, nbd);
		r = nl_send_auto(nbd->sock, msg);
	}
	while (r >= 0 && nbd->status == 1)
		r = nl_recvmsgs(nbd->sock, cb);
	nlmsg_free(msg);
	if (cb)
		nl_cb_put(cb);
	return nbd->status != 1 ? nbd->status : -EIO;
}

/* Say in @err that the kernel refuses to do @what with /dev/nbd@index.  Returns @r. */
static int refused(int r, const char *what, int index, char *err, size_t len)
{
	if (r < 0 && index >= 0)
		snprintf(err, len, "the kernel does not %s /dev/nbd%d: %s", what, index,
			 strerror(-r));
	else if (r < 0)
		snprintf(err, len, "the kernel does not %s an NBD device: %s", what,
			 strerror(-r));
	return r;
}

/* The attributes that are missing are those that did not fit: the message is too small for none of
 * them. */
static void put_socket(struct nl_msg *msg, int fd)
{
	struct nlattr *sockets = nla_nest_start(msg, NBD_ATTR_SOCKETS);
	struct nlattr *item = nla_nest_start(msg, NBD_SOCK_ITEM);

	nla_put_u32(msg, NBD_SOCK_FD, (uint32_t)fd);
	nla_nest_end(msg, item);
	nla_nest_end(msg, sockets);
}

int attach_nbd_connect(struct attach_nbd *nbd, const struct attach_nbd_dev *dev, char *err,
		       size_t len)
{
	struct nl_msg *msg = message(nbd, NBD_CMD_CONNECT);
	int r = -ENOMEM;

	if (msg) {
		nla_put_u64(msg, NBD_ATTR_SIZE_BYTES, dev->size);
		nla_put_u64(msg, NBD_ATTR_BLOCK_SIZE_BYTES, dev->block);
		nla_put_u64(msg, NBD_ATTR_SERVER_FLAGS, dev->flags);
		/* No request is given up for its time: that is the session's to decide. */
		nla_put_u64(msg, NBD_ATTR_TIMEOUT, 0);
		nla_put_u64(msg, NBD_ATTR_DEAD_CONN_TIMEOUT, dev->dead_s);
		nla_put_string(msg, NBD_ATTR_BACKEND_IDENTIFIER, dev->backend);
		put_socket(msg, dev->fd);
		r = call(nbd, msg);
	}
	if (r == 0 && nbd->index < 0)
		r = -EPROTO;
	return r < 0 ? refused(r, "make", -1, err, len) : nbd->index;
}

static struct nl_msg *reconfigure(struct attach_nbd *nbd, int index, const char *backend)
{
	struct nl_msg *msg = message(nbd, NBD_CMD_RECONFIGURE);

	if (msg) {
		nla_put_u32(msg, NBD_ATTR_INDEX, (uint32_t)index);
		nla_put_string(msg, NBD_ATTR_BACKEND_IDENTIFIER, backend);
	}
	return msg;
}

int attach_nbd_replace(struct attach_nbd *nbd, int index, const struct attach_nbd_dev *dev,
		       char *err, size_t len)
{
	struct nl_msg *msg = reconfigure(nbd, index, dev->backend);
	int r = -ENOMEM;

	if (msg) {
		nla_put_u64(msg, NBD_ATTR_DEAD_CONN_TIMEOUT, dev->dead_s);
		put_socket(msg, dev->fd);
		r = call(nbd, msg);
	}
	return refused(r, "take a new socket for", index, err, len);
}

int attach_nbd_resize(struct attach_nbd *nbd, int index, const char *backend, uint64_t size)
{
	struct nl_msg *msg = reconfigure(nbd, index, backend);

	if (!msg)
		return -ENOMEM;
	nla_put_u64(msg, NBD_ATTR_SIZE_BYTES, size);
	return call(nbd, msg);
}

int attach_nbd_disconnect(struct attach_nbd *nbd, int index, char *err, size_t len)
{
	struct nl_msg *msg = message(nbd, NBD_CMD_DISCONNECT);
	int r = -ENOMEM;

	if (msg) {
		nla_put_u32(msg, NBD_ATTR_INDEX, (uint32_t)index);
		r = call(nbd, msg);
	}
	return refused(r, "end", index, err, len);
}

/* ---- sysfs ---- */

char *attach_nbd_backend(const char *name, const char *export)
{
	char *text;

	/* The address is not part of it: a server may get another one. */
	return asprintf(&text, ATTACH_NBD_PREFIX "%s:%s", name, export) < 0 ? NULL : text;
}

bool attach_nbd_owner(const char *disk, char owner[ATTACH_NBD_TEXT])
{
	size_t prefix = strlen(ATTACH_NBD_PREFIX);

	if (!attach_read_line(owner, ATTACH_NBD_TEXT, "/sys/block/%s/backend", disk) ||
	    strncmp(owner, ATTACH_NBD_PREFIX, prefix) || !strchr(owner + prefix, ':'))
		return false;
	memmove(owner, owner + prefix, strlen(owner + prefix) + 1);
	return true;
}

int attach_nbd_find(const char *name, char *export, size_t len)
{
	char owner[ATTACH_NBD_TEXT], *colon;
	DIR *dir = opendir("/sys/block");
	const struct dirent *e;
	int index = -ENODEV, n;

	if (!dir)
		return -errno;
	while (index < 0 && (e = readdir(dir))) {
		if (sscanf(e->d_name, "nbd%d", &n) != 1 ||
		    !attach_nbd_owner(e->d_name, owner))
			continue;
		colon = strchr(owner, ':');
		*colon = '\0';
		if (!strcmp(owner, name)) {
			index = n;
			snprintf(export, len, "%s", colon + 1);
		}
	}
	closedir(dir);
	return index;
}

int attach_nbd_set_look(const char *disk)
{
	char path[64], now_ms[16];
	FILE *f;
	int r;

	snprintf(path, sizeof(path), "/sys/block/%s/queue/io_timeout", disk);
	if (strncmp(disk, "nbd", 3) || (attach_read_line(now_ms, sizeof(now_ms), "%s", path) &&
					!strcmp(now_ms, LOOK_MS)))
		return 0;
	f = fopen(path, "we");
	if (!f)
		return -errno;
	r = fputs(LOOK_MS, f) < 0 || fflush(f) ? -errno : 0;
	fclose(f);
	return r;
}

/* ---- begin and end ---- */

int attach_nbd_open(struct attach_nbd **out, char *err, size_t len)
{
	struct attach_nbd *nbd = calloc(1, sizeof(*nbd));
	const char *why = "no memory";
	int r = -ENOMEM;

	if (!nbd)
		goto fail;
	nbd->sock = nl_socket_alloc();
	if (!nbd->sock)
		goto fail;
	r = -EOPNOTSUPP;
	why = "no generic netlink";
	if (genl_connect(nbd->sock) < 0)
		goto fail;
	why = "this kernel has no module nbd, or it cannot be loaded here (modprobe nbd)";
	nbd->family = genl_ctrl_resolve(nbd->sock, NBD_GENL_FAMILY_NAME);
	if (nbd->family < 0)
		goto fail;
	*out = nbd;
	return 0;

fail:
	snprintf(err, len, "%s", why);
	attach_nbd_close(nbd);
	return r;
}

void attach_nbd_close(struct attach_nbd *nbd)
{
	if (!nbd)
		return;
	if (nbd->sock)
		nl_socket_free(nbd->sock);
	free(nbd);
}
