/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the paths of a session: made, given another address, freed. */
#include <errno.h>
#include <stdlib.h>

#include "clt-paths.h"

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
