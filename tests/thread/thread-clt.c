/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads read and write through one session while its connections are cut again and again: nothing
 * is lost, mixed up or left behind.  Each thread owns a stripe of every block, so unaligned writes
 * of different threads meet in the same blocks. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include "../mock/mock-hca.h"
#include "clt-rig.h"
#include "dev-req.h"

#define WORKERS 8
#define ROUNDS 300
#define CUTS 3
#define DISK (1u << 20)
#define STRIPE (DISK / WORKERS)
#define AREA (64u * 1024)		/* shared in stripes of 64 bytes, unaligned */

static atomic_int running;
static enum clt_registration registration;

static void session_open(unsigned connections)
{
	struct clt_sess_conf conf = {
		.wait = &clt_wait_threads, .connections = connections,
		.path.registration = registration,
	};

	rig_open(&conf, 1, NULL);
}

/* ---- whole blocks: every size up to many parts ---- */

static void *blocks(void *arg)
{
	int me = (int)(intptr_t)arg;
	unsigned seed = (unsigned)me + 1;
	uint8_t *mine = calloc(1, STRIPE), *buf = malloc(STRIPE);

	check(mine && buf);
	check(!dev_call_write(&handle, mine, STRIPE, (uint64_t)me * STRIPE, false));
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t off = (uint32_t)rand_r(&seed) % (STRIPE / 512) * 512;
		uint32_t max = rand_r(&seed) % 16 ? 8192 : STRIPE;
		uint32_t len = MIN(512 + (uint32_t)rand_r(&seed) % max / 512 * 512, STRIPE - off);

		if (rand_r(&seed) % 2) {
			memset(mine + off, (int)(i + 1), len);
			check(!dev_call_write(&handle, mine + off, len, (uint64_t)me * STRIPE + off,
					    false));
		} else {
			check(!dev_call_read(&handle, buf, len, (uint64_t)me * STRIPE + off));
			check(!memcmp(buf, mine + off, len));
		}
	}
	free(mine);
	free(buf);
	atomic_fetch_sub(&running, 1);
	return NULL;
}

/* ---- pieces of blocks ---- */

static void *pieces(void *arg)
{
	int me = (int)(intptr_t)arg;
	unsigned seed = (unsigned)me + 1;
	uint8_t *mine = calloc(1, AREA), buf[64];

	check(mine);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t slot = (uint32_t)rand_r(&seed) % (AREA / (64 * WORKERS));
		uint32_t off = (slot * WORKERS + (uint32_t)me) * 64;

		memset(mine + off, (int)(i + 1), 64);
		check(!dev_call_write(&handle, mine + off, 64, off, false));
		slot = (uint32_t)rand_r(&seed) % (AREA / (64 * WORKERS));
		off = (slot * WORKERS + (uint32_t)me) * 64;
		check(!dev_call_read(&handle, buf, 64, off));
		check(!memcmp(buf, mine + off, 64));
	}
	free(mine);
	atomic_fetch_sub(&running, 1);
	return NULL;
}

/* Run @fn on all workers.  @cut: cut all connections, each time some hundred requests were served.
 * Not for ever, because a path that is lost again at once comes back later each time. */
static void run_workers(void *(*fn)(void *arg), bool cut)
{
	pthread_t threads[WORKERS];
	unsigned long next = mock_server_answers() + 200;
	unsigned cuts = cut ? CUTS : 0;

	atomic_store(&running, WORKERS);
	for (int i = 0; i < WORKERS; i++)
		check(!pthread_create(&threads[i], NULL, fn, (void *)(intptr_t)i));
	while (cuts && atomic_load(&running)) {
		if (mock_server_answers() >= next) {
			mock_cut();
			cuts--;
			next = mock_server_answers() + 200;
		}
		sched_yield();
	}
	for (int i = 0; i < WORKERS; i++)
		check(!pthread_join(threads[i], NULL));
}

static bool type_2;			/* else windows of type 1 */

static void world(unsigned depth, int new_rkey, unsigned connections, bool cut)
{
	struct mock_server_conf conf = {
		.queue_depth = depth, .max_io_size = 16384, .disk_size = DISK, .new_rkey = new_rkey,
		.type_1 = true, .type_2 = type_2,
	};
	uint8_t zero[1024] = { 0 }, buf[1024];

	mock_server_start(&conf);
	session_open(connections);
	run_workers(blocks, cut);
	check(!dev_call_zero(&handle, AREA, 0, true, false));
	check(!dev_call_read(&handle, buf, sizeof(buf), 0) && !memcmp(buf, zero, sizeof(buf)));
	run_workers(pieces, cut);
	check(!dev_call_flush(&handle));	/* a reconnect that a late cut began is over */
	check(registration == CLT_REG_STATIC || mock_live_keys() == 0);
	rig_close();
	mock_server_stop();
}

/* Acknowledged, not flushed, and the server's memory is gone: one FLUSH says so, the next is
 * fine. */
static void lost_writes(void)
{
	struct mock_server_conf conf = { .queue_depth = 8, .max_io_size = 16384,
					 .disk_size = DISK };
	uint8_t buf[1024] = { 1 };

	mock_server_start(&conf);
	session_open(1);
	check(!dev_call_write(&handle, buf, sizeof(buf), 0, false));
	check(!dev_call_flush(&handle));
	mock_server_reboot();
	mock_cut();
	check(!dev_call_flush(&handle));	/* all was flushed */
	check(!dev_call_write(&handle, buf, sizeof(buf), 0, true));
	mock_server_reboot();
	mock_cut();
	check(!dev_call_flush(&handle));	/* FUA */
	check(!dev_call_write(&handle, buf, sizeof(buf), 0, false));
	mock_cut();
	check(!dev_call_flush(&handle));	/* the same server */
	check(!dev_call_write(&handle, buf, sizeof(buf), 0, false));
	mock_server_reboot();
	mock_cut();
	check(dev_call_flush(&handle) == -EIO);
	check(!dev_call_flush(&handle));
	rig_close();
	mock_server_stop();
}

int main(void)
{
	rig_quiet();
	world(64, 0, 1, false);
	world(64, 0, 2, true);
	world(4, 1, 1, true);		/* fewer permits than threads; keys that change */
	world(1, 0, 1, true);
	lost_writes();
	/* Answers overtake the word that a bind was posted, and half of the windows are left to
	 * us. */
	registration = CLT_REG_WINDOW;
	type_2 = true;
	world(64, 0, 1, false);
	world(64, 1, 2, true);
	world(4, 0, 1, true);
	type_2 = false;
	world(64, 0, 2, true);
	world(4, 1, 1, true);
	registration = CLT_REG_STATIC;
	world(64, 0, 2, true);
	return 0;
}
