/* SPDX-License-Identifier: BSD-3-Clause */
/* Two reactors on one direct export with blocks of 8K: each writes its own sectors of every block,
 * many at once, so that nearly all writes are read-modify-writes that have to keep each other out
 * across threads.  In the end every sector holds what was last written to it, and FLUSHes of both
 * threads were answered.  Meanwhile each asks for the file's extents, which one thread finds for
 * both.  Without O_DIRECT or io_uring the program says so and exits 77. */
#include <config.h>

#include <fcntl.h>
#include <unistd.h>

#include "export-io.h"
#include "export-ring.h"
#include "exports.h"
#include "rnbd-ext.h"
#include "thread.h"

#define REACTORS 2
#define SECTORS 256u
#define DEPTH 16
#define ROUNDS 60u		/* writes of each sector */
#define BLOCK 8192u

struct slot {
	struct export_io io;
	struct submitter *worker;
	uint8_t *buf;
};

struct submitter {
	pthread_t thread;
	unsigned index;
	struct reactor *reactor;
	struct loop_task start;
	struct slot slots[DEPTH];
	unsigned next, done;		/* writes of this worker */
	unsigned flushes;
	struct export_io ask;
	bool asking;
	uint8_t answer[RNBD_EXTENTS_ROOM];
};

static struct exports exports;
static struct export *ex;
static struct submitter workers[REACTORS];
static uint8_t expected[SECTORS];

static const unsigned writes_each = SECTORS / REACTORS * ROUNDS;

/* The same sector comes again only when all others have been written in between, long after its
 * last write has ended. */
static void start_next(struct slot *s)
{
	struct submitter *w = s->worker;
	unsigned n = w->next++, mine = n % (SECTORS / REACTORS);
	unsigned sector = mine * REACTORS + w->index;
	uint8_t value = (uint8_t)(n / (SECTORS / REACTORS) * 3 + sector);

	memset(s->buf, value, 512);
	expected[sector] = value;
	s->io = (struct export_io){ .ex = ex, .op = RNBD_OP_WRITE, .offset = sector * 512ull,
				    .len = 512, .buf = s->buf, .mem = -1, .done = s->io.done };
	if (!(n % 97)) {
		s->io.flags = RNBD_F_FUA;
		w->flushes++;
	}
	export_io_start(w->reactor, &s->io);
}

static void stop_at_end(struct submitter *w)
{
	if (w->done == writes_each && !w->asking)
		reactor_stop(w->reactor);
}

static void ask(struct submitter *w);

static void ask_done(struct export_io *io, int status)
{
	struct submitter *w = container_of(io, struct submitter, ask);

	check(!status && rnbd_extents_decode(w->answer, sizeof(w->answer), SECTORS * 512) > 0);
	w->asking = false;
	if (w->done < writes_each)
		ask(w);
	else
		stop_at_end(w);
}

static void ask(struct submitter *w)
{
	w->asking = true;
	w->ask = (struct export_io){ .ex = ex, .op = RNBD_OP_EXTENTS, .len = SECTORS * 512,
				     .buf = w->answer,
				     .room = sizeof(w->answer), .mem = -1, .done = ask_done };
	export_io_start(w->reactor, &w->ask);
}

static void write_done(struct export_io *io, int status)
{
	struct slot *s = container_of(io, struct slot, io);
	struct submitter *w = s->worker;

	check(!status);
	if (++w->done == writes_each)
		stop_at_end(w);
	else if (w->next < writes_each)
		start_next(s);
}

static void start_all(struct loop_task *task)
{
	struct submitter *w = container_of(task, struct submitter, start);

	for (unsigned i = 0; i < DEPTH; i++) {
		w->slots[i].worker = w;
		w->slots[i].io.done = write_done;
		check(!posix_memalign((void **)&w->slots[i].buf, BLOCK, 512));
		start_next(&w->slots[i]);
	}
	ask(w);
}

static void *worker_main(void *arg)
{
	struct submitter *w = arg;
	char err[256];

	if (export_ring_attach(w->reactor, w->index, &exports, false, err, sizeof(err))) {
		fprintf(stderr, "%s\n", err);
		exit(1);
	}
	loop_task_init(&w->start, start_all);
	loop_defer(reactor_loop(w->reactor), &w->start);
	check(!reactor_run(w->reactor));
	export_ring_detach(w->reactor);
	return NULL;
}

static void verify(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t sector[512];

	check(fd >= 0);
	for (unsigned i = 0; i < SECTORS; i++) {
		check(read(fd, sector, 512) == 512);
		for (unsigned k = 0; k < 512; k++)
			check(sector[k] == expected[i]);
	}
	close(fd);
}

int main(void)
{
	char path[] = "/var/tmp/thread-export-io.XXXXXX", err[512];
	struct export_spec spec = { .name = "a", .path = path, .direct = true };
	int fd = mkstemp(path);

	check(fd >= 0 && !ftruncate(fd, SECTORS * 512));
	close(fd);
	exports_init(&exports, REACTORS);
	check(!export_spec_check(&spec, err, sizeof(err)));
	if (exports_add(&exports, &spec, err, sizeof(err))) {
		unlink(path);
		fprintf(stderr, "SKIP: no O_DIRECT here: %s\n", err);
		return 77;
	}
	ex = exports_find(&exports, "a");
	check(ex->block_align <= BLOCK);
	ex->block_align = BLOCK;
	for (unsigned i = 0; i < REACTORS; i++) {
		workers[i].index = i;
		if (reactor_create("reactor", 32, &workers[i].reactor)) {
			unlink(path);
			fprintf(stderr, "SKIP: no io_uring here\n");
			return 77;
		}
	}
	for (unsigned i = 0; i < REACTORS; i++)
		check(!pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]));
	for (unsigned i = 0; i < REACTORS; i++)
		check(!pthread_join(workers[i].thread, NULL));
	verify(path);
	for (unsigned i = 0; i < REACTORS; i++) {
		check(workers[i].flushes);
		reactor_destroy(workers[i].reactor);
		for (unsigned k = 0; k < DEPTH; k++)
			free(workers[i].slots[k].buf);
	}
	exports_fini(&exports);
	unlink(path);
	printf("%u writes\n", REACTORS * writes_each);
	return 0;
}
