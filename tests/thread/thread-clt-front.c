/* SPDX-License-Identifier: BSD-3-Clause */
/* A front end that is no nbdkit: the kit probes the server, opens the session and the export.  Its
 * threads sleep for their answers; the next session of the same process has all its IO on its
 * loop. */
#include <semaphore.h>

#include "clt-export.h"
#include "clt-loop.h"
#include "clt-rig.h"
#include "clt-start.h"
#include "dev-req.h"

#define BLOCK 4096u
#define ROUNDS 200u
#define PATTERN 0x5a

static int nap(void)
{
	return -1;
}

static const struct clt_front front = {
	.name = "front",
	.program = "the-front-end",
	.help = "front --help",
	.wait = &clt_wait_threads,
	.start_fds = 2,
	.client_fds = 1,
	.nap = nap,
};

static struct clt_conf conf;
static struct clt_start start;

static void configure(const char *key, const char *value)
{
	char *err = NULL;

	check(!clt_conf_set(&conf, key, value, &err));
}

/* ---- all IO on the loop ---- */

struct on_loop {
	struct clt_run run;
	struct dev_handle h;
	struct loop_msg msg;
	struct loop_task step;
	struct dev_io io;
	uint8_t buf[BLOCK];
	unsigned rounds;
	sem_t ended;
};

static void news(struct clt_waiter *w)
{
	struct clt_op *op = container_of(w, struct clt_op, waiter);
	struct on_loop *l = container_of(container_of(op, struct dev_io, clt), struct on_loop, io);

	loop_defer(l->run.loop, &l->step);
}

static void begin(struct on_loop *l)
{
	memset(l->buf, 0, sizeof(l->buf));
	dev_io_start(&l->io, &l->h, RNBD_OP_READ, 0, l->buf, BLOCK, 0, news);
}

/* One read after another. */
static void step(struct loop_task *task)
{
	struct on_loop *l = container_of(task, struct on_loop, step);

	while (clt_op_step(&l->io.clt)) {
		check(!dev_io_end(&l->io));
		check(l->buf[0] == PATTERN && l->buf[BLOCK - 1] == PATTERN);
		if (++l->rounds == ROUNDS) {
			sem_post(&l->ended);
			return;
		}
		begin(l);
	}
}

static void begin_msg(struct loop_msg *msg)
{
	struct on_loop *l = container_of(msg, struct on_loop, msg);

	begin(l);
	loop_defer(l->run.loop, &l->step);
}

static void loop_begin(struct on_loop *l)
{
	struct clt_sess_conf sess = {
		.name = "loop", .wait = &clt_loop_wait, .paths = conf.paths, .npaths = 1,
		.connections = 1, .io_timeout_ms = CLOCK_NEVER, .path.once = true,
	};
	struct dev *dev;
	char why[256];

	sem_init(&l->ended, 0, 0);
	loop_task_init(&l->step, step);
	loop_msg_init(&l->msg, begin_msg);
	check(!clt_run_thread(&l->run, "loop"));
	check(!clt_run_session(&l->run, &sess));
	check(!clt_run_wait_up(&l->run, why, sizeof(why)));
	check(!dev_open(&l->run.clt, "disk", RNBD_ACCESS_RO, &dev));
	dev_handle_init(&l->h, dev);
	loop_post(l->run.loop, &l->msg);
}

static void loop_end(struct on_loop *l)
{
	while (sem_wait(&l->ended))
		;
	dev_handle_fini(&l->h);
	dev_close(l->h.dev);
	clt_run_close(&l->run);
	clt_run_fini(&l->run);
	sem_destroy(&l->ended);
}

/* ---- threads that sleep ---- */

static void *read_blocks(void *arg)
{
	static _Thread_local uint8_t buf[BLOCK];

	pthread_barrier_wait(&thread_start);
	for (unsigned i = 0; i < ROUNDS; i++) {
		check(!dev_call_read(&handle, buf, BLOCK, 0));
		check(buf[0] == PATTERN && buf[BLOCK - 1] == PATTERN);
	}
	return NULL;
}

static void session(void)
{
	static uint8_t buf[BLOCK];
	char err[CLT_FRONT_ERR] = "";
	struct dev *dev;

	check(!clt_export_open(&start.run.clt, &conf, conf.export_name, &dev, err));
	dev_handle_init(&handle, dev);
	memset(buf, PATTERN, sizeof(buf));
	check(!dev_call_write(&handle, buf, BLOCK, 0, true));
	run_threads(read_blocks);
	dev_handle_fini(&handle);
	dev_close(dev);
}

int main(void)
{
	struct mock_server_conf server = { .queue_depth = 8, .max_io_size = 16384,
					   .disk_size = 1 << 20 };
	static struct on_loop on_loop;
	char err[CLT_FRONT_ERR];

	rig_quiet();
	mock_server_start(&server);
	clt_conf_init(&conf, &front);
	clt_start_init(&start, &conf);
	configure("export", "disk");
	configure("control", "none");
	configure("connections", "2");
	conf.server = "the-server";
	mock_server_addr(&conf.paths[0].dst);
	conf.npaths = 1;

	check(!clt_probe(&start, err));
	check(!start.run.loop);
	check(!clt_start_session(&start, err));
	check(!client_wait_up(&start.run.clt));
	check(!clt_start_admit(&start, err));
	session();
	clt_start_end(&start);

	loop_begin(&on_loop);
	loop_end(&on_loop);

	/* A client that comes while there is no session is one more try. */
	check(!clt_start_admit(&start, err));
	check(start.run.loop);
	clt_start_end(&start);
	mock_server_stop();
	return 0;
}
