/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns listeners.  Thread of the cm; verbs-event.c reports their events. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include <rdma/rdma_cma.h>

#include "verbs-priv.h"

#define BACKLOG 256

int verbs_listen(struct fab_cm *cm, const struct fab_addr *addr, struct fab_listener **out)
{
	struct verbs_listener *l = calloc(1, sizeof(*l));
	struct sockaddr_storage ss = addr->ss;
	int one = 1, err;

	if (!l)
		return -ENOMEM;
	l->fab.ops = cm->ops;
	l->fab.cm = cm;
	if (rdma_create_id(verbs_cm(cm)->channel, &l->id, l, RDMA_PS_TCP))
		goto err_free;
	/* An IPv6 wildcard leaves IPv4 to a listener of its own, as on tcp. */
	if (ss.ss_family == AF_INET6)
		rdma_set_option(l->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &one, sizeof(one));
	if (rdma_bind_addr(l->id, (struct sockaddr *)&ss))
		goto err_id;
	/* A listener there would take the TCP port of the same number. */
	errno = EOPNOTSUPP;
	if (verbs_dev_lacks_imm(l->id->verbs) || rdma_listen(l->id, BACKLOG))
		goto err_id;
	verbs_addr(cm->ops, rdma_get_local_addr(l->id), &l->fab.addr);
	list_add_tail(&verbs_cm(cm)->listeners, &l->link);
	*out = &l->fab;
	return 0;

err_id:
	err = verbs_neg_errno();
	rdma_destroy_id(l->id);
	errno = -err;
err_free:
	err = verbs_neg_errno();
	free(l);
	return err;
}

void verbs_listen_destroy(struct fab_listener *fab)
{
	struct verbs_listener *l = container_of(fab, struct verbs_listener, fab);

	list_del(&l->link);
	rdma_destroy_id(l->id);
	free(l);
}

struct verbs_listener *verbs_listen_of(const struct verbs_cm *cm, const struct rdma_cm_id *id)
{
	struct verbs_listener *l;

	list_for_each(l, &cm->listeners, link) {
		if (l->id == id)
			return l;
	}
	return NULL;
}
