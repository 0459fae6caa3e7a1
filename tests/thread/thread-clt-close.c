/* SPDX-License-Identifier: BSD-3-Clause */
/* Two threads give up their references of one device.  The one that is held up in dev_close() when
 * the other's post has already closed the device touches it no more. */
#include <sched.h>
#include <stdatomic.h>

#include "clt-rig.h"
#include "dev-priv.h"

static struct dev *dev;
static atomic_bool hold, held, freed;

void __real_loop_post(struct loop *loop, struct loop_msg *msg);
void __wrap_loop_post(struct loop *loop, struct loop_msg *msg);
void __real_range_lock_fini(struct range_lock *l);
void __wrap_range_lock_fini(struct range_lock *l);

/* The first post after @hold waits until the device is gone. */
void __wrap_loop_post(struct loop *l, struct loop_msg *msg)
{
	if (atomic_exchange(&hold, false)) {
		atomic_store(&held, true);
		while (!atomic_load(&freed))
			sched_yield();
		check((char *)msg < (char *)dev || (char *)msg >= (char *)(dev + 1));
	}
	__real_loop_post(l, msg);
}

/* A device is freed right after this. */
void __wrap_range_lock_fini(struct range_lock *l)
{
	__real_range_lock_fini(l);
	atomic_store(&freed, true);
}

static void *close_dev(void *arg)
{
	dev_close(dev);
	return NULL;
}

int main(void)
{
	struct mock_server_conf server = { .queue_depth = 8, .max_io_size = 16384,
					   .disk_size = 1 << 20 };
	pthread_t late;

	rig_quiet();
	mock_server_start(&server);
	rig_session(&(struct clt_sess_conf){ .wait = &clt_wait_threads, .connections = 1 }, 1,
		    NULL);
	dev = rig_dev();
	check(rig_dev() == dev);

	atomic_store(&hold, true);
	check(!pthread_create(&late, NULL, close_dev, NULL));
	while (!atomic_load(&held))
		sched_yield();
	close_dev(NULL);
	check(!pthread_join(late, NULL));

	dev = rig_dev();
	close_dev(NULL);
	rig_session_end();
	mock_server_stop();
	return 0;
}
