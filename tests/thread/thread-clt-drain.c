/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections whose provider says for ever that there is work, and has none: a server that sends
 * without a pause, a device that is broken.  The service loop does its other work meanwhile: here a
 * message, which ends that state. */
#include <sched.h>

#include "../mock/mock-hca.h"
#include "clt-io-priv.h"
#include "clt-loop.h"
#include "clt-rig.h"

static struct fab_provider busy;
static atomic_int busy_cid = -1;	/* of the connection that is busy; -1: none */
static atomic_uint arms;		/* of that connection, by the service loop */

/* ---- the provider ---- */

static bool is_busy(const struct fab_conn *conn)
{
	return (int)((struct clt_con *)fab_conn_context(conn))->cid == atomic_load(&busy_cid);
}

static int busy_poll(struct fab_conn *conn, struct ibv_wc *wc, int n)
{
	return is_busy(conn) ? 0 : fab_mock.poll(conn, wc, n);
}

static int busy_arm(struct fab_conn *conn, short *events)
{
	if (!is_busy(conn))
		return fab_mock.arm(conn, events);
	if (loop_running() == run.loop)
		atomic_fetch_add(&arms, 1);
	return 1;
}

static int busy_cm_create(struct fab_cm **cm)
{
	check(!fab_mock.cm_create(cm));
	(*cm)->ops = &busy;
	return 0;
}

static int busy_conn_create(struct fab_cm *cm, struct fab_conn **conn)
{
	check(!fab_mock.conn_create(cm, conn));
	(*conn)->ops = &busy;
	return 0;
}

static void busy_build(void)
{
	busy = fab_mock;
	busy.name = "busy";
	busy.cm_create = busy_cm_create;
	busy.conn_create = busy_conn_create;
	busy.poll = busy_poll;
	busy.arm = busy_arm;
}

/* ---- other work of the service loop ---- */

static void other_runs(struct loop_call *call)
{
	atomic_store(&busy_cid, -1);
	loop_call_end(call);
}

/* The service loop polls the busy connection, and runs the message all the same. */
static void expect_other_work(void)
{
	while (atomic_load(&arms) < 3)
		sched_yield();
	loop_call(run.loop, other_runs, NULL);
	atomic_store(&arms, 0);
}

static void *open_device(void *arg)
{
	*(struct dev **)arg = rig_dev();
	return NULL;
}

/* The OPEN makes the service loop poll connection 0. */
static struct dev *connection_0(void)
{
	struct dev *dev;
	pthread_t thread;

	atomic_store(&busy_cid, 0);
	check(!pthread_create(&thread, NULL, open_device, &dev));
	expect_other_work();
	check(!pthread_join(thread, NULL));
	return dev;
}

static void drain(void)
{
	atomic_store(&busy_cid, 2);
	mock_cut();
	expect_other_work();
}

/* ---- */

int main(void)
{
	struct mock_server_conf server = { .queue_depth = 8, .max_io_size = 16384,
					   .disk_size = 1 << 20 };
	struct dev *dev;

	rig_quiet();
	mock_server_start(&server);
	busy_build();
	rig_session(&(struct clt_sess_conf){ .wait = &clt_loop_wait, .connections = 2 }, 2, &busy);

	dev = connection_0();
	drain();

	dev_close(dev);
	rig_session_end();
	mock_server_stop();
	return 0;
}
