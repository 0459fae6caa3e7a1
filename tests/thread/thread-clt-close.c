/* SPDX-License-Identifier: BSD-3-Clause */
/* Two threads give up their references of one device.  The one that is held up in dev_close() when
 * the other's post has already closed the device touches it no more. */
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "../mock/mock-server.h"
#include "dev-priv.h"
#include "log.h"
#include "loop.h"
#include "thread.h"

static struct loop *loop;
static struct client clt;
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

static void quiet(enum log_level level, const char *line)
{
}

int main(void)
{
	struct mock_server_conf server = { .queue_depth = 8, .max_io_size = 16384,
					   .disk_size = 1 << 20 };
	struct clt_sess_addr addr = { 0 };
	struct clt_sess_conf conf = { .name = "test", .wait = &clt_wait_threads, .paths = &addr,
				      .npaths = 1, .connections = 1,
				      .max_reconnect_attempts = -1 };
	struct dev *same;
	pthread_t late;

	log_init(quiet, LOG_LEVEL_ERROR);
	mock_server_start(&server);
	mock_server_addr(&addr.dst);
	check(!loop_poll_create("rtrs-service", &loop));
	check(!client_init(&clt, loop, &conf));
	check(!dev_open(&clt, "disk", RNBD_ACCESS_RW, &dev));
	check(!dev_open(&clt, "disk", RNBD_ACCESS_RW, &same) && same == dev);

	atomic_store(&hold, true);
	check(!pthread_create(&late, NULL, close_dev, NULL));
	while (!atomic_load(&held))
		sched_yield();
	close_dev(NULL);
	check(!pthread_join(late, NULL));

	check(!dev_open(&clt, "disk", RNBD_ACCESS_RW, &dev));
	close_dev(NULL);
	client_close(&clt);
	loop_poll_destroy(loop);
	client_fini(&clt);
	mock_server_stop();
	return 0;
}
