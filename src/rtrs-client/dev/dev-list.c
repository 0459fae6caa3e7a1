/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks for the names of the server's exports.  Owns the question while the question is under way,
 * on the stack of the asking thread; messages run on the service thread.  The server's answer is
 * checked name by name; a wrong name ends the whole question. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dev-list.h"
#include "dev-priv.h"
#include "rnbd-list.h"

struct asking {
	struct dev_ctl ctl;
	struct dev_list *list;
	unsigned room;			/* capacity of list->names, in names */
	struct loop_msg msg;
	struct clt_waiter waiter;
	uint8_t *answer;		/* [RNBD_LIST_ROOM] */
	int status;
};

static void ask(struct asking *a);

static void asking_end(struct asking *a, int status)
{
	a->status = status;
	clt_wait_count(&a->waiter);
}

/* Make room for @n names; false: no memory. */
static bool make_room(struct asking *a, unsigned n)
{
	unsigned room = MAX(n, 2 * a->room);
	void *names;

	if (n <= a->room)
		return true;
	names = realloc(a->list->names, room * sizeof(*a->list->names));
	if (!names)
		return false;
	a->list->names = names;
	a->room = room;
	return true;
}

/* Take the names of the answer.  0: the list is complete; CLT_AGAIN: ask for more; or -errno. */
static int take_names(struct asking *a)
{
	struct dev_list *list = a->list;
	struct rnbd_list_reader r;

	if (rnbd_list_rsp_decode(a->answer, RNBD_LIST_ROOM, &r))
		return -EBADMSG;
	for (uint32_t i = 0; i < r.n && list->n < DEV_LIST_MAX; i++) {
		if (!make_room(a, list->n + 1))
			return -ENOMEM;
		if (rnbd_list_rsp_name(&r, list->names[list->n]))
			return -EBADMSG;
		list->n++;
	}
	return r.left && list->n < DEV_LIST_MAX ? CLT_AGAIN : 0;
}

static void answered(struct dev_ctl *ctl)
{
	struct asking *a = container_of(ctl, struct asking, ctl);
	int r = ctl->op.status;

	if (r == -ECONNABORTED && !clt_sess_expired(&ctl->clt->sess))
		r = CLT_AGAIN;		/* on the next path */
	else if (r == 0)
		r = take_names(a);
	if (r == CLT_AGAIN)
		ask(a);
	else
		asking_end(a, r);
}

static void ask(struct asking *a)
{
	rnbd_list_encode(&a->ctl.msg.list, a->list->n);
	dev_ctl_send(&a->ctl, sizeof(a->ctl.msg.list), RNBD_LIST_ROOM, CLT_OP_FREE, answered);
}

static void asking_msg(struct loop_msg *msg)
{
	struct asking *a = container_of(msg, struct asking, msg);

	if (a->ctl.clt->state == CLIENT_OPEN)
		ask(a);
	else
		asking_end(a, -ESHUTDOWN);
}

int dev_list(struct client *clt, struct dev_list *list)
{
	struct asking a = { .list = list };

	*list = (struct dev_list){ 0 };
	a.answer = malloc(RNBD_LIST_ROOM);
	if (!a.answer)
		return -ENOMEM;
	dev_ctl_init(&a.ctl, clt, NULL);
	a.ctl.into = a.answer;
	a.ctl.feature = RNBD_EXT_LIST;
	loop_msg_init(&a.msg, asking_msg);
	clt_wait_init(&a.waiter, clt->sess.io.wait, NULL);
	loop_post(clt->sess.loop, &a.msg);
	clt_wait_event(&a.waiter);
	free(a.answer);
	return a.status;
}

void dev_list_fini(struct dev_list *list)
{
	free(list->names);
	*list = (struct dev_list){ 0 };
}
