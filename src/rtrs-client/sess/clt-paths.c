/* SPDX-License-Identifier: BSD-3-Clause */
/* The paths of a session: their text, and how they are made, given another address, freed. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clt-sess.h"
#include "rtrs-proto.h"

/* ---- the text of a path: any thread ---- */

const char *const clt_transport_names[CLT_TRANSPORTS] = {
	[CLT_TRANSPORT_AUTO] = "auto", [CLT_TRANSPORT_RDMA] = "rdma", [CLT_TRANSPORT_TCP] = "tcp",
};

static size_t scheme_len(const char *text)
{
	const char *sep = strstr(text, "://");

	return sep ? (size_t)(sep - text) + 3 : 0;
}

bool clt_paths_is_open(const char *text)
{
	return !scheme_len(text) && !fab_addr_text_is_unix(text);
}

/* Read an end, @text, into @addr, or, if it is no address, into @name, too.  0, or -1 with @err. */
static int parse_end(const char *text, const struct fab_provider *provider, uint16_t port,
		     struct fab_addr *addr, char name[CLT_NAME_MAX + 1], char *err, size_t errlen)
{
	const char *rest = text + scheme_len(text);

	if (fab_addr_parse_text(text, provider, port, addr, err, errlen))
		return -1;
	if (addr->len)
		return 0;
	if (strlen(rest) > CLT_NAME_MAX) {
		snprintf(err, errlen, "expected a name and a port of at most %d bytes",
			 CLT_NAME_MAX);
		return -1;
	}
	strcpy(name, rest);
	return 0;
}

/* Read the address of this end, @text.  Its connections cannot have one port. */
static int parse_source(const char *text, const struct fab_provider *provider,
			struct clt_sess_addr *addr, char *err, size_t errlen)
{
	const char *bracket;

	if (parse_end(text, provider, 0, &addr->src, addr->src_name, err, errlen))
		return -1;
	bracket = strchr(addr->src_name, ']');
	if (!fab_addr_port(&addr->src) && !strchr(bracket ? bracket : addr->src_name, ':'))
		return 0;
	snprintf(err, errlen, "'%s' in front of '@' or ',' is the address of this machine, and has "
		 "no port: expected [SOURCE@]HOST[:PORT], and path= again for another path", text);
	return -1;
}

int clt_paths_parse(const char *text, const struct fab_provider *provider,
		    struct clt_sess_addr *addr, char *err, size_t errlen)
{
	const char *sep = strpbrk(text, "@,");
	size_t scheme = scheme_len(text);
	/* Each is as long as @text at most. */
	char src[CLT_ADDR_TEXT_MAX + 1] = "", dst[CLT_ADDR_TEXT_MAX + 1];
	int r = 0;

	memset(addr, 0, sizeof(*addr));
	/* A path in the file system may contain any character, and has no source. */
	if (fab_addr_text_is_unix(text))
		return fab_addr_parse(text, provider, 0, &addr->dst, err, errlen) < 0 ? -1 : 0;
	if (strlen(text) > CLT_ADDR_TEXT_MAX) {
		snprintf(err, errlen, "expected [SOURCE@]HOST[:PORT] of at most %d bytes",
			 CLT_ADDR_TEXT_MAX);
		return -1;
	}
	if (sep && (size_t)(sep - text) < scheme)
		sep = NULL;
	if (sep && sep == text + scheme) {
		snprintf(err, errlen,
			 "nothing before '%c': expected [SOURCE@]HOST[:PORT]", *sep);
		return -1;
	}
	if (sep)
		snprintf(src, sizeof(src), "%.*s", (int)(sep - text), text);
	snprintf(dst, sizeof(dst), "%.*s%s", (int)(sep ? scheme : 0), text, sep ? sep + 1 : text);
	if (sep)
		r = parse_source(src, provider, addr, err, errlen);
	if (r == 0)
		r = parse_end(dst, provider, RTRS_PORT, &addr->dst, addr->dst_name, err, errlen);
	return r;
}

const char *clt_paths_url(const struct clt_sess_addr *addr, char buf[CLT_ADDR_TEXT_MAX + 1])
{
	int n = 0;

	if (*addr->dst_name || !fab_addr_is_unix(&addr->dst))
		n = sprintf(buf, "%s://", fab_provider_name(addr->dst.provider));
	clt_sess_addr_text(addr, buf + n, (size_t)(CLT_ADDR_TEXT_MAX + 1 - n));
	return buf;
}

struct clt_path *clt_paths_find(struct clt_sess *sess, const struct clt_sess_addr *addr)
{
	struct clt_path *path;

	clt_sess_for_each(path, sess) {
		if (!path->removed && clt_paths_same(&path->conf.addr, addr))
			return path;
	}
	return NULL;
}

/* Reuse a removed path with the same provider, if the path is closed by now. */
static int paths_reuse(struct clt_sess *sess, const struct clt_sess_addr *addr,
		       struct clt_path **ret)
{
	struct clt_path *path;
	int r = -ENOSPC;

	clt_sess_for_each(path, sess) {
		if (!path->removed || path->conf.addr.dst.provider != addr->dst.provider)
			continue;
		if (clt_path_state(path) == CLT_PATH_CLOSED) {
			clt_path_readdress(path, addr);
			path->removed = false;
			*ret = path;
			return 0;
		}
		r = -EAGAIN;
	}
	return r;
}

static int paths_make(struct clt_sess *sess, const struct clt_sess_addr *addr,
		      struct clt_path **ret)
{
	struct clt_path_conf conf = sess->path_conf;
	struct clt_path *path = calloc(1, sizeof(*path));
	unsigned n = sess->io.natts;
	int r;

	if (!path)
		return -ENOMEM;
	conf.index = n;
	conf.addr = *addr;
	r = clt_path_init(path, &conf, sess->path_ops);
	if (r < 0) {
		free(path);
		return r;
	}
	sess->paths[n] = path;
	sess->io.atts[n] = &path->att;
	/* ORDER: complete before other threads can see the path. */
	atomic_store_explicit(&sess->io.natts, n + 1, memory_order_release);
	*ret = path;
	return 0;
}

bool clt_paths_same(const struct clt_sess_addr *a, const struct clt_sess_addr *b)
{
	return a->dst.provider == b->dst.provider && !strcmp(a->src_name, b->src_name) &&
	       !strcmp(a->dst_name, b->dst_name) &&
	       (*a->src_name || fab_addr_same(&a->src, &b->src)) &&
	       (*a->dst_name || fab_addr_same(&a->dst, &b->dst));
}

int clt_paths_add(struct clt_sess *sess, const struct clt_sess_addr *addr, struct clt_path **ret)
{
	struct clt_path *path;
	int r;

	if (clt_paths_find(sess, addr))
		return -EEXIST;
	r = paths_reuse(sess, addr, &path);
	if (r < 0 && sess->io.natts < CLT_PATHS_MAX)
		r = paths_make(sess, addr, &path);
	if (r == 0 && ret)
		*ret = path;
	return r;
}

int clt_paths_remove(struct clt_sess *sess, struct clt_path *path)
{
	struct clt_path *other;
	unsigned n = 0;

	clt_sess_for_each(other, sess)
		n += !other->removed;
	if (n == 1)
		return -EBUSY;
	path->removed = true;
	clt_path_close(path);
	return 0;
}

void clt_paths_fini(struct clt_sess *sess)
{
	struct clt_path *path;

	clt_sess_for_each(path, sess) {
		clt_path_fini(path);
		free(path);
	}
	sess->io.natts = 0;
}
