/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks for the names of the server's exports.  Owns the question while it is under way; messages on
 * the service thread.  The server's answer is checked name
 * by name; a wrong name ends the whole question. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dev-priv.h"
#include "dev.h"
#include "rnbd-ext.h"

struct asking {
	struct dev_ctl ctl;
	struct dev_list list;
	unsigned room;			/* names that list.names has room for */
	struct loop_msg msg;
	dev_list_fn *done;
	void *arg;
	uint8_t answer[RNBD_LIST_ROOM];
};

static void asking_send(struct asking *a);

static void asking_end(struct asking *a, int status)
{
	a->done(a->arg, status, &a->list);
	dev_list_fini(&a->list);
	free(a);
}

/* Make room for @n names; false: no memory. */
static bool make_room(struct asking *a, unsigned n)
{
	unsigned room = MAX(n, 2 * a->room);
	void *names;

	if (n <= a->room)
		return true;
	names = realloc(a->list.names, room * sizeof(*a->list.names));
	if (!names)
		return false;
	a->list.names = names;
	a->room = room;
	return true;
}

/* Take the names of the answer.  0: the list is complete; CLT_AGAIN: ask for more; or -errno. */
static int take_names(struct asking *a)
{
	struct dev_list *list = &a->list;
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

static void asking_answered(struct dev_ctl *ctl)
{
	struct asking *a = container_of(ctl, struct asking, ctl);
	int r = ctl->op.status;

	if (r == -ECONNABORTED && !clt_sess_expired(&ctl->clt->sess))
		r = CLT_AGAIN;		/* on the next path */
	else if (r == 0)
		r = take_names(a);
	if (r == CLT_AGAIN)
		asking_send(a);
	else
		asking_end(a, r);
}

static void asking_send(struct asking *a)
{
	rnbd_list_encode(&a->ctl.msg.list, a->list.n);
	dev_ctl_send(&a->ctl, sizeof(a->ctl.msg.list), RNBD_LIST_ROOM, CLT_OP_FREE,
		     asking_answered);
}

static void asking_msg(struct loop_msg *msg)
{
	struct asking *a = container_of(msg, struct asking, msg);

	if (a->ctl.clt->state == CLIENT_OPEN)
		asking_send(a);
	else
		asking_end(a, -ESHUTDOWN);
}

int dev_list_start(struct client *clt, dev_list_fn *done, void *arg)
{
	struct asking *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->done = done;
	a->arg = arg;
	dev_ctl_init(&a->ctl, clt, NULL);
	a->ctl.into = a->answer;
	a->ctl.feature = RNBD_EXT_LIST;
	loop_msg_init(&a->msg, asking_msg);
	loop_post(clt->sess.loop, &a->msg);
	return 0;
}

/* A thread that waits. */
struct list_call {
	struct dev_list *list;
	struct clt_waiter waiter;
	int status;
};

static void call_done(void *arg, int status, struct dev_list *list)
{
	struct list_call *w = arg;

	*w->list = *list;
	*list = (struct dev_list){ 0 };
	w->status = status;
	clt_wait_count(&w->waiter);
}

int dev_list(struct client *clt, struct dev_list *list)
{
	struct list_call w = { .list = list };
	int r;

	*list = (struct dev_list){ 0 };
	clt_wait_init(&w.waiter, clt->sess.io.wait, NULL);
	r = dev_list_start(clt, call_done, &w);
	if (r < 0)
		return r;
	clt_wait_event(&w.waiter);
	return w.status;
}

void dev_list_fini(struct dev_list *list)
{
	free(list->names);
	*list = (struct dev_list){ 0 };
}
