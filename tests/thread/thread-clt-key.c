/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows of READs at the end of their connections.
 *
 * The bind of a READ that was answered long ago may be flushed, where the device had not retired
 * it: what needs that window next must not fail for it.  And an invalidate that is queued when a
 * connection is sealed has been told so when clt_tx_seal() returns, whoever sends: the windows are
 * given back next. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

#include "clt-io-priv.h"
#include "clt-rig.h"
#include "dev-req.h"

#define ROUNDS 20000
#define DISK 65536u
#define PARTS_DISK (1u << 20)

/* A client with windows, connected to @server. */
static void client_begin(const struct mock_server_conf *server)
{
	struct clt_sess_conf conf = {
		.wait = &clt_wait_threads, .connections = 1,
		.path.registration = CLT_REG_WINDOW,
	};

	mock_server_start(server);
	rig_open(&conf, 1, NULL);
}

static void client_end(void)
{
	rig_close();
	mock_server_stop();
}

/* ---- a flushed bind ---- */

/* What a device says of binds that it had carried out and not retired. */
static void flush_binds(struct clt_attempt *att)
{
	const struct ibv_wc wc = { .status = IBV_WC_WR_FLUSH_ERR };

	check(att->pool);
	for (unsigned i = 0; i < att->nwindows; i++) {
		struct frwr *w = frwr_at(att->pool, i);

		check(frwr_state(w) == FRWR_FREE);
		w->bind_cqe.done(att->cons[1].fab, &w->bind_cqe, &wc);
	}
}

static void flushed_bind(void)
{
	static const struct mock_server_conf server = {
		.queue_depth = 4, .max_io_size = DISK, .disk_size = DISK, .type_2 = true,
	};
	static uint8_t data[4096], got[4096];

	client_begin(&server);
	memset(data, 0xa5, sizeof(data));
	check(!dev_call_write(&handle, data, sizeof(data), 0, false));
	check(!dev_call_read(&handle, got, sizeof(got), 0));
	flush_binds(&run.clt.sess.paths[0]->att);
	memset(got, 0, sizeof(got));
	check(!dev_call_read(&handle, got, sizeof(got), 0));
	check(!memcmp(got, data, sizeof(data)));
	client_end();
}

/* ---- reads of many parts, whose windows we take away ---- */

static void *parts_reader(void *arg)
{
	uint8_t *got = malloc(PARTS_DISK);

	for (unsigned i = 0; i < 20; i++) {
		memset(got, 0, PARTS_DISK);
		check(!dev_call_read(&handle, got, PARTS_DISK, 0));
		check(got[0] == 0xa5 && got[PARTS_DISK - 1] == 0xa5);
	}
	free(got);
	return NULL;
}

/* One part ends by its invalidate while the owner sends the next. */
static void parts(void)
{
	static const struct mock_server_conf server = {
		.queue_depth = 16, .max_io_size = 4096, .disk_size = PARTS_DISK, .type_2 = true,
	};
	static uint8_t data[PARTS_DISK];
	pthread_t threads[NTHREADS];

	client_begin(&server);
	memset(data, 0xa5, sizeof(data));
	check(!dev_call_write(&handle, data, sizeof(data), 0, false));
	for (int i = 0; i < NTHREADS; i++)
		check(!pthread_create(&threads[i], NULL, parts_reader, NULL));
	for (int i = 0; i < NTHREADS; i++)
		check(!pthread_join(threads[i], NULL));
	client_end();
}

/* ---- sealed with an invalidate in the queue ---- */

static struct clt_io io = { .wait = &clt_wait_threads };
static struct clt_attempt att = { .io = &io };
static struct clt_con con = { .att = &att, .cid = 1, .key = 1 };
static atomic_bool told, stop;

/* Slowly: who seals must not be back before. */
static void inv_posted(struct frwr_entry *e, int rc)
{
	check(rc == -ENOTCONN);
	for (unsigned i = 0; i < 4; i++)
		sched_yield();
	atomic_store(&told, true);
}

static void *flusher(void *arg)
{
	while (!atomic_load(&stop))
		clt_tx_flush(&con);
	return NULL;
}

static void sealed(void)
{
	static struct clt_slot slot;
	pthread_t thread;

	slot.entry.posted = inv_posted;
	atomic_store(&slot.state, con.key << CLT_SLOT_KEY_SHIFT | CLT_SLOT_INV);
	check(!pthread_create(&thread, NULL, flusher, NULL));
	for (unsigned i = 0; i < ROUNDS; i++) {
		atomic_store(&told, false);
		clt_tx_queue(&con, &slot);
		clt_tx_seal(&con);
		check(atomic_load(&told));
	}
	atomic_store(&stop, true);
	check(!pthread_join(thread, NULL));
}

int main(void)
{
	rig_quiet();
	flushed_bind();
	parts();
	sealed();
	return 0;
}
