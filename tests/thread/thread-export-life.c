/* SPDX-License-Identifier: BSD-3-Clause */
/* Exports come and go on three rings, of which two write to another export all the time.  Memory, a
 * file, and a second name of the written file come; every ring reads each once before it goes.  In
 * the end every sector holds the last write, and one export is left.  Without io_uring the program
 * says so and exits 77. */
#include <config.h>

#include <fcntl.h>
#include <semaphore.h>
#include <unistd.h>

#include "export-io.h"
#include "export-life.h"
#include "export-ring.h"
#include "thread.h"

#define RINGS 3u		/* the first is that of the control thread */
#define ROUNDS 60u
#define DEPTH 8u
#define SECTOR 512u

static struct exports exports;
static struct export_life life;
static struct export *home;
static struct reactor *reactors[RINGS];
static atomic_uint known;

/* ---- the rings that write ---- */

struct request {
	struct export_io io;
	struct ring *ring;
	uint8_t buf[SECTOR];
};

static struct ring {
	pthread_t thread;
	unsigned index;
	struct request requests[DEPTH];
	unsigned long writes;
	unsigned under_way;
	atomic_bool enough;
	sem_t attached;
	/* one READ of an export that has come */
	struct loop_msg visit_msg;
	struct export_io visit;
	uint8_t visited[SECTOR];
} rings[RINGS];

static struct export *visited;
static atomic_uint visits;
static struct loop_msg visits_over;

static void write_next(struct request *r)
{
	struct ring *ring = r->ring;
	unsigned sector = (unsigned)(r - ring->requests) + DEPTH * ring->index;

	memset(r->buf, (uint8_t)++ring->writes, SECTOR);
	r->io = (struct export_io){ .ex = home, .op = RNBD_OP_WRITE, .offset = sector * SECTOR,
				    .len = SECTOR, .buf = r->buf, .mem = -1, .done = r->io.done };
	if (!(ring->writes % 32))
		r->io.flags = RNBD_F_FUA;
	export_io_start(reactors[ring->index], &r->io);
}

static void written(struct export_io *io, int status)
{
	struct request *r = container_of(io, struct request, io);

	check(!status);
	if (!atomic_load(&r->ring->enough))
		write_next(r);
	else if (!--r->ring->under_way)
		reactor_stop(reactors[r->ring->index]);
}

static void visit_done(struct export_io *io, int status)
{
	check(!status);
	if (atomic_fetch_sub(&visits, 1) == 1)
		loop_post(reactor_loop(reactors[0]), &visits_over);
}

static void visit_msg(struct loop_msg *msg)
{
	struct ring *ring = container_of(msg, struct ring, visit_msg);

	ring->visit = (struct export_io){ .ex = visited, .op = RNBD_OP_READ, .len = SECTOR,
					  .buf = ring->visited, .mem = -1, .done = visit_done };
	export_io_start(reactors[ring->index], &ring->visit);
}

static void *ring_main(void *arg)
{
	struct ring *ring = arg;
	char err[256];

	check(!export_ring_attach(reactors[ring->index], ring->index, &exports, false, err,
				  sizeof(err)));
	ring->under_way = DEPTH;
	for (unsigned i = 0; i < DEPTH; i++) {
		ring->requests[i].ring = ring;
		ring->requests[i].io.done = written;
		write_next(&ring->requests[i]);
	}
	sem_post(&ring->attached);
	check(!reactor_run(reactors[ring->index]));
	export_ring_let_go(reactors[ring->index]);
	return NULL;
}

/* ---- the control thread ---- */

static int export_comes(void *arg, struct export *ex)
{
	atomic_fetch_add(&known, 1);
	return 0;
}

static void export_goes(void *arg, struct export *ex)
{
	atomic_fetch_sub(&known, 1);
}

static int store_comes(void *arg, unsigned ring, const struct store *store)
{
	return 0;
}

static void store_goes(void *arg, unsigned ring, const struct store *store)
{
}

static const struct export_users users = {
	.export_comes = export_comes,
	.export_goes = export_goes,
	.store_comes = store_comes,
	.store_goes = store_goes,
};

static unsigned left = ROUNDS;
static struct export_spec specs[3];

static void come(void);

static void gone(void *arg)
{
	for (unsigned i = 1; i < RINGS; i++)
		atomic_store(&rings[i].enough, true);
	reactor_stop(reactors[0]);
}

static void visited_by_all(struct loop_msg *msg)
{
	export_put(visited);
	export_life_remove(&life, visited);
	if (--left)
		come();
	else
		export_life_stop(&life, gone, NULL);
}

static void ready(struct export *ex, int rc, const char *err, void *arg)
{
	if (rc)
		fprintf(stderr, "%s\n", err);
	check(!rc);
	export_life_show(&life, ex);
	export_hold(ex);
	visited = ex;
	atomic_store(&visits, RINGS);
	loop_msg_init(&visits_over, visited_by_all);
	for (unsigned i = 0; i < RINGS; i++)
		loop_post(reactor_loop(reactors[i]), &rings[i].visit_msg);
}

static void come(void)
{
	check(export_life_add(&life, &specs[left % 3], ready, NULL));
}

static void verify(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t sector[SECTOR];

	check(fd >= 0);
	for (unsigned i = 1; i < RINGS; i++) {
		for (unsigned k = 0; k < DEPTH; k++) {
			check(pread(fd, sector, SECTOR, (DEPTH * i + k) * SECTOR) == SECTOR);
			check(!memcmp(sector, rings[i].requests[k].buf, SECTOR));
		}
		check(rings[i].writes > DEPTH);
	}
	close(fd);
}

static void make_file(char *path)
{
	int fd = mkstemp(path);

	check(fd >= 0 && !ftruncate(fd, RINGS * DEPTH * SECTOR));
	close(fd);
}

int main(void)
{
	char home_path[] = "/var/tmp/thread-export-life.XXXXXX";
	char other_path[] = "/var/tmp/thread-export-life.XXXXXX";
	struct export_spec spec = { .name = "home", .path = home_path };
	char err[512] = "";

	make_file(home_path);
	make_file(other_path);
	specs[0] = (struct export_spec){ .name = "new", .path = "mem:64K" };
	specs[1] = (struct export_spec){ .name = "new", .path = other_path };
	specs[2] = (struct export_spec){ .name = "new", .path = home_path, .readonly = true };
	for (unsigned i = 0; i < 3; i++)
		check(!export_spec_check(&specs[i], err, sizeof(err)));
	exports_init(&exports, RINGS);
	check(!export_spec_check(&spec, err, sizeof(err)));
	check(!exports_add(&exports, &spec, err, sizeof(err)));
	check(!exports_lock(&exports, err, sizeof(err)));
	home = exports_find(&exports, "home");
	for (unsigned i = 0; i < RINGS; i++) {
		rings[i].index = i;
		sem_init(&rings[i].attached, 0, 0);
		loop_msg_init(&rings[i].visit_msg, visit_msg);
		if (reactor_create("reactor", 32, &reactors[i])) {
			unlink(home_path);
			unlink(other_path);
			fprintf(stderr, "SKIP: no io_uring here\n");
			return 77;
		}
	}
	check(!export_ring_attach(reactors[0], 0, &exports, true, err, sizeof(err)));
	for (unsigned i = 1; i < RINGS; i++) {
		check(!pthread_create(&rings[i].thread, NULL, ring_main, &rings[i]));
		while (sem_wait(&rings[i].attached))
			;
	}
	atomic_store(&known, 1);
	check(!export_life_init(&life, &exports, reactors, &users, NULL));
	come();
	check(!reactor_run(reactors[0]));
	for (unsigned i = 1; i < RINGS; i++)
		check(!pthread_join(rings[i].thread, NULL));
	export_ring_let_go(reactors[0]);
	for (unsigned i = 0; i < RINGS; i++)
		export_ring_detach(reactors[i]);
	export_life_fini(&life);
	check(exports.n == 1 && atomic_load(&known) == 1);
	verify(home_path);
	for (unsigned i = 0; i < RINGS; i++)
		reactor_destroy(reactors[i]);
	exports_fini(&exports);
	unlink(home_path);
	unlink(other_path);
	printf("%u exports came and went, %lu writes\n", ROUNDS,
	       rings[1].writes + rings[2].writes);
	return 0;
}
