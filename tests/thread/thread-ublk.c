/* SPDX-License-Identifier: BSD-3-Clause */
/* A block device of ublk with a kernel and a server of the test: users read and write on several
 * threads and queues while connections are cut, and while the process dies and the next one takes
 * the disk over.  Each step of making, taking over and ending a disk fails once, and nothing is
 * left. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "../mock/mock-hca.h"
#include "../mock/mock-ublk.h"
#include "clt-loop.h"
#include "clt-rig.h"
#include "ublk-dev.h"

#define LOOPS 2u
#define DEPTH 4u			/* less than the users have */
#define IO_BYTES 16384u
#define SECTOR 512u
#define SIZE (1u << 20)
#define AREA (SIZE / NTHREADS)		/* of a user */
#define ROUNDS 300u
#define MARK 0x1234567890abcdefull
#define EVENTS 4u			/* deaths, and cuts */

static struct dev *dev;
static atomic_uint nlost;
static atomic_int lost_status;

static atomic_uint ncomplaints;

static void count_complaint(enum log_level level, const char *line)
{
	atomic_fetch_add(&ncomplaints, 1);
}

static void lost(void *arg, int status)
{
	atomic_store(&lost_status, status);
	atomic_fetch_add(&nlost, 1);
}

/* ---- a session, a driver, a disk ---- */

static struct ublk_dev_conf conf(void)
{
	return (struct ublk_dev_conf){
		.loops = run.loops, .nloops = run.nloops, .dev = dev, .queues = 3, .depth = DEPTH,
		.io_bytes = IO_BYTES, .lost = lost, .mark = MARK,
	};
}

static void session_open(void)
{
	struct clt_sess_conf sess = {
		.wait = &clt_loop_wait, .connections = 2 * LOOPS, .poll_us = 20,
	};

	rig_session(&sess, LOOPS, NULL);
	dev = rig_dev();
}

static void session_close(void)
{
	dev_close(dev);
	rig_session_end();
}

/* Of the kernel. */
static uint64_t features = UBLK_ABI_RECOVERY | UBLK_ABI_REISSUE | UBLK_ABI_IOCTL_NUMBERS |
			   UBLK_ABI_RESIZE;

static void begin(struct mock_server_conf *server)
{
	struct mock_ublk_conf kernel = { .cpus = LOOPS, .features = features };

	mock_ublk_start(&kernel);
	mock_server_start(server);
	session_open();
	atomic_store(&nlost, 0);
}

static void end(void)
{
	check(!atomic_load(&run.clt.sess.io.naccounts));
	session_close();
	mock_server_stop();
	mock_ublk_stop();
}

static struct ublk_dev *make(void)
{
	struct ublk_dev_conf c = conf();
	char why[UBLK_WHY];
	struct ublk_dev *d;

	check(!ublk_dev_make(&d, &c, why));
	return d;
}

static struct ublk_dev *take(void)
{
	struct ublk_dev_conf c = conf();
	char why[UBLK_WHY];
	struct ublk_dev *d;

	check(!ublk_dev_take(&d, &c, MOCK_UBLK_ID, why));
	return d;
}

static void wait_lost(int status)
{
	while (!atomic_load(&nlost))
		sched_yield();
	check(atomic_load(&nlost) == 1);
	check(atomic_load(&lost_status) == status);
	atomic_store(&nlost, 0);
}

/* The process leaves the disk, and ends. */
static void leave(struct ublk_dev *d)
{
	ublk_dev_leave(d);
	mock_ublk_end_process();
}

/* The disk is removed, as by any process. */
static void stop(struct ublk_dev *d)
{
	char why[UBLK_WHY];

	check(!ublk_disk_remove(ublk_dev_id(d), why));
	wait_lost(0);
	ublk_dev_leave(d);
}

/* ---- users ---- */

static atomic_uint nusers;
static atomic_bool events_over;

/* Writes blocks of its own, and reads them back. */
static void *user(void *number)
{
	unsigned n = (unsigned)*(int *)number, seed = n + 1;
	uint8_t *mine = calloc(1, AREA), *buf = malloc(IO_BYTES);

	check(mine && buf);
	pthread_barrier_wait(&thread_start);
	for (unsigned i = 0; i < ROUNDS || !atomic_load(&events_over); i++) {
		unsigned sectors = 1 + (unsigned)rand_r(&seed) % (IO_BYTES / SECTOR);
		unsigned at = (unsigned)rand_r(&seed) % (AREA / SECTOR - sectors + 1) * SECTOR;
		uint64_t start = (n * AREA + at) / SECTOR;

		if (rand_r(&seed) % 2) {
			memset(mine + at, (int)i, sectors * SECTOR);
			check(!mock_ublk_io(i % LOOPS, UBLK_OP_WRITE | (i % 8 ? 0 : UBLK_F_FUA),
					    start, sectors, mine + at));
		} else {
			check(!mock_ublk_io(i % LOOPS, UBLK_OP_READ, start, sectors, buf));
			check(!memcmp(buf, mine + at, sectors * SECTOR));
		}
		if (i % 16 == 0)
			check(!mock_ublk_io(0, UBLK_OP_FLUSH, 0, 0, NULL));
	}
	free(mine);
	free(buf);
	atomic_fetch_sub(&nusers, 1);
	return NULL;
}

static void *users(void *arg)
{
	run_threads(user);
	return NULL;
}

/* Users for whom @event happens EVENTS times, each time some requests were served. */
static void with_users(void (*event)(void))
{
	unsigned long next = 100;
	unsigned n = 0;
	pthread_t thread;

	atomic_store(&nusers, NTHREADS);
	atomic_store(&events_over, false);
	check(!pthread_create(&thread, NULL, users, NULL));
	while (atomic_load(&nusers)) {
		if (n < EVENTS && mock_server_answers() >= next) {
			event();
			next = mock_server_answers() + 100;
			if (++n == EVENTS)
				atomic_store(&events_over, true);
		}
		sched_yield();
	}
	check(!pthread_join(thread, NULL));
}

static struct ublk_dev *disk;

/* The process is killed, and the next one, which has the same session here, takes over. */
static void die(void)
{
	mock_ublk_kill();
	leave(disk);
	check(mock_ublk_state() == UBLK_ABI_QUIESCED);
	disk = take();
}

/* The process ends without a word to the kernel, and answers what it has begun. */
static void hand_over(void)
{
	ublk_dev_leave(disk);
	check(mock_ublk_state() == UBLK_ABI_LIVE);
	mock_ublk_end_process();
	check(mock_ublk_state() == UBLK_ABI_QUIESCED);
	disk = take();
}

static void users_see_nothing(void)
{
	static void (*const events[])(void) = { mock_cut, die, hand_over };
	struct mock_server_conf server = { .queue_depth = 8, .max_io_size = IO_BYTES,
					   .disk_size = SIZE };

	for (unsigned i = 0; i < ARRAY_SIZE(events); i++) {
		begin(&server);
		disk = make();
		with_users(events[i]);
		check(events[i] != die || mock_ublk_again() > 0);
		stop(disk);
		end();
	}
}

/* ---- requests ---- */

static void each_request(void)
{
	struct mock_server_conf server = { .queue_depth = 8, .max_io_size = IO_BYTES,
					   .disk_size = SIZE };
	static uint8_t buf[IO_BYTES], zero[IO_BYTES];
	unsigned all = IO_BYTES / SECTOR;
	struct ublk_dev *d;

	begin(&server);
	d = make();
	check(ublk_dev_id(d) == MOCK_UBLK_ID);
	memset(buf, 0x5a, sizeof(buf));
	check(!mock_ublk_io(1, UBLK_OP_WRITE, 8, all, buf));
	check(!mock_ublk_io(0, UBLK_OP_READ, 8, 1, buf));
	check(buf[0] == 0x5a);
	check(!mock_ublk_io(0, UBLK_OP_WRITE_ZEROES | UBLK_F_NOUNMAP, 8, all, NULL));
	check(!mock_ublk_io(0, UBLK_OP_READ, 8, all, buf));
	check(!memcmp(buf, zero, sizeof(buf)));
	check(!mock_ublk_io(0, UBLK_OP_WRITE_ZEROES, 0, SIZE / SECTOR, NULL));
	check(!mock_ublk_io(0, UBLK_OP_FLUSH, 0, 0, NULL));
	/* This server has no discards, and nobody knows number 4. */
	check(mock_ublk_io(0, UBLK_OP_DISCARD, 0, 8, NULL) == -EOPNOTSUPP);
	check(mock_ublk_io(0, 4, 0, 8, NULL) == -EOPNOTSUPP);
	check(mock_ublk_io(0, 200, 0, 8, NULL) == -EOPNOTSUPP);
	stop(d);
	end();
}

static bool finds(uint64_t mark, uint64_t mask)
{
	char why[UBLK_WHY];
	int id = ublk_disk_find(&mark, mask, why);

	check(id == MOCK_UBLK_ID ? mark == MARK : id == -ENODEV);
	return id == MOCK_UBLK_ID;
}

static void what_the_disk_is(void)
{
	struct mock_server_conf server = { .queue_depth = 8, .max_io_size = IO_BYTES,
					   .disk_size = SIZE };
	struct ublk_abi_params p;
	char why[UBLK_WHY];
	struct ublk_dev *d;
	uint64_t mark;

	begin(&server);
	d = make();
	p = mock_ublk_params();
	check(p.types == (UBLK_PARAM_BASIC | UBLK_PARAM_DISCARD));
	check(p.basic.attrs == (UBLK_ABI_ATTR_WRITE_CACHE | UBLK_ABI_ATTR_FUA));
	check(p.basic.logical_shift == 9 && p.basic.physical_shift == 12);
	check(p.basic.max_sectors == IO_BYTES / SECTOR && p.basic.sectors == SIZE / SECTOR);
	check(p.discard.max_sectors == 0 && p.discard.max_zeroes_sectors == 1 << 20);
	check(!ublk_dev_resize(d, why));
	mock_ublk_fail(UBLK_CTL_UPDATE_SIZE, -EIO);
	check(ublk_dev_resize(d, why) == -EIO);
	check(finds(MARK, UINT64_MAX));
	check(finds(MARK + 1, UINT64_MAX << 32));
	check(!ublk_disk_mark(MOCK_UBLK_ID, &mark, why) && mark == MARK);
	check(ublk_disk_mark(MOCK_UBLK_ID + 1, &mark, why) == -ENODEV);
	check(!finds(MARK + 1, UINT64_MAX));
	stop(d);
	check(!finds(MARK, UINT64_MAX));
	end();
}

static void large_blocks(void)
{
	struct mock_server_conf server = { .queue_depth = 8, .max_io_size = IO_BYTES,
					   .disk_size = SIZE, .block = 2 * UBLK_BLOCK_MAX };
	struct ublk_dev_conf c;
	char why[UBLK_WHY];
	struct ublk_dev *d;

	begin(&server);
	c = conf();
	check(ublk_dev_make(&d, &c, why) == -EINVAL);
	end();
	server.block = UBLK_BLOCK_MAX;
	begin(&server);
	stop(make());
	end();
}

/* ---- failures ---- */

static void steps_fail(void)
{
	static const uint32_t makes[] = { UBLK_CTL_GET_FEATURES, UBLK_CTL_ADD_DEV,
					  UBLK_CTL_SET_PARAMS, UBLK_IO_FETCH,
					  UBLK_CTL_START_DEV };
	static const uint32_t takes[] = { UBLK_CTL_GET_FEATURES, UBLK_CTL_START_RECOVERY,
					  UBLK_CTL_GET_DEV_INFO, UBLK_CTL_GET_PARAMS,
					  UBLK_IO_FETCH, UBLK_CTL_END_RECOVERY };
	struct mock_server_conf server = { .queue_depth = 8, .max_io_size = IO_BYTES,
					   .disk_size = SIZE };
	struct ublk_dev_conf c;
	char why[UBLK_WHY];
	struct ublk_dev *d;

	begin(&server);
	c = conf();
	check(ublk_dev_take(&d, &c, MOCK_UBLK_ID, why) == -ENODEV);
	for (unsigned i = 0; i < ARRAY_SIZE(makes); i++) {
		mock_ublk_fail(makes[i], -ENOSPC);
		check(ublk_dev_make(&d, &c, why) == -ENOSPC);
		mock_ublk_end_process();
	}
	/* A new disk stays, or another process has removed it. */
	for (unsigned stays = 0; stays < 2; stays++) {
		mock_ublk_fail(UBLK_CTL_START_DEV, -ENOSPC);
		mock_ublk_fail(UBLK_CTL_DEL_DEV_ASYNC, stays ? -EIO : -ENODEV);
		atomic_store(&ncomplaints, 0);
		check(ublk_dev_make(&d, &c, why) == -ENOSPC);
		check(atomic_load(&ncomplaints) == stays);
		mock_ublk_end_process();
		check(!ublk_disk_remove(MOCK_UBLK_ID, why));
	}
	leave(make());
	for (unsigned i = 0; i < ARRAY_SIZE(takes); i++) {
		mock_ublk_fail(takes[i], -ENOSPC);
		check(ublk_dev_take(&d, &c, MOCK_UBLK_ID, why) == -ENOSPC);
		mock_ublk_end_process();
		check(mock_ublk_state() == UBLK_ABI_QUIESCED);
	}
	/* The kernel takes a moment. */
	mock_ublk_busy(3);
	stop(take());
	end();
}

static void *write_once(void *arg)
{
	static uint8_t buf[SECTOR];

	check(!mock_ublk_io(0, UBLK_OP_WRITE, 0, 1, buf));
	return NULL;
}

/* A disk that waits is another one than the export, or the export has grown meanwhile. */
static void another_export(void)
{
	static const char *const words[] = { "it has shrunk", "512 bytes, and the disk 256",
					     "a write cache, and the disk has none",
					     "no FUA any more" };
	struct mock_server_conf server = { .queue_depth = 8, .max_io_size = IO_BYTES,
					   .disk_size = SIZE, .no_fua = true };
	struct ublk_abi_params was, p;
	struct ublk_dev_conf c;
	char why[UBLK_WHY];
	struct ublk_dev *d;

	begin(&server);
	c = conf();
	leave(make());
	was = mock_ublk_params();
	for (unsigned i = 0; i < 5; i++) {
		p = was;
		p.basic.sectors += i == 0;
		p.basic.logical_shift = i == 1 ? 8 : 9;
		p.basic.attrs &= i == 2 ? ~UBLK_ABI_ATTR_WRITE_CACHE : ~0u;
		p.basic.attrs |= i == 3 ? UBLK_ABI_ATTR_FUA : 0;
		p.basic.attrs |= i == 4 ? UBLK_ABI_ATTR_READ_ONLY : 0;
		mock_ublk_describe(&p);
		/* A disk that is read-only may be so still. */
		check(ublk_dev_take(&d, &c, MOCK_UBLK_ID, why) == (i == 4 ? 0 : -EMEDIUMTYPE));
		check(i == 4 || (mock_ublk_state() == UBLK_ABI_QUIESCED && strstr(why, words[i])));
	}
	leave(d);
	p = was;
	p.basic.sectors--;
	mock_ublk_describe(&p);
	mock_ublk_fail(UBLK_CTL_UPDATE_SIZE, -EIO);
	atomic_store(&ncomplaints, 0);
	leave(take());
	check(mock_ublk_params().basic.sectors == was.basic.sectors - 1);
	check(atomic_load(&ncomplaints) == 1);
	d = take();
	check(mock_ublk_params().basic.sectors == was.basic.sectors);
	stop(d);
	end();
}

/* A kernel that cannot resize a disk: nobody minds as long as its size is right. */
static void no_resize(void)
{
	struct mock_server_conf server = { .queue_depth = 8, .max_io_size = IO_BYTES,
					   .disk_size = SIZE };
	char why[UBLK_WHY];
	struct ublk_dev *d;

	features &= ~UBLK_ABI_RESIZE;
	begin(&server);
	leave(make());
	atomic_store(&ncomplaints, 0);
	d = take();
	check(atomic_load(&ncomplaints) == 0);
	check(ublk_dev_resize(d, why) == -EOPNOTSUPP);
	stop(d);
	end();
	features |= UBLK_ABI_RESIZE;
}

/* A process leaves while a request is at the server, and fails the request because its server has
 * gone: the user hears nothing, and the next process does the request. */
static void leaves_failures_to_the_next(void)
{
	struct mock_server_conf server = { .queue_depth = 8, .max_io_size = IO_BYTES,
					   .disk_size = SIZE };
	struct ublk_dev *d;
	pthread_t thread;

	begin(&server);
	d = make();
	mock_server_hold(true);
	check(!pthread_create(&thread, NULL, write_once, NULL));
	while (!mock_server_waiting())
		sched_yield();
	ublk_dev_leave_begin(d);
	client_lose_patience(&run.clt);
	mock_cut();
	leave(d);
	check(mock_ublk_again() == 0);
	session_close();
	mock_server_hold(false);
	session_open();
	d = take();
	check(!pthread_join(thread, NULL));
	check(mock_ublk_again() == 1);
	stop(d);
	end();
}

static void of_another_process(void)
{
	struct mock_server_conf server = { .queue_depth = 8, .max_io_size = IO_BYTES,
					   .disk_size = SIZE };
	struct ublk_dev_conf c;
	struct ublk_dev *d, *other;
	char why[UBLK_WHY], pid[32];

	begin(&server);
	d = make();
	c = conf();
	check(ublk_dev_take(&other, &c, MOCK_UBLK_ID, why) == -EBUSY);
	snprintf(pid, sizeof(pid), "process %d", (int)getpid());
	check(strstr(why, pid));
	stop(d);
	end();
}

/* The kernel refuses an answer, and the next process does the request again. */
static void ends_without_us(void)
{
	struct mock_server_conf server = { .queue_depth = 8, .max_io_size = IO_BYTES,
					   .disk_size = SIZE };
	char why[UBLK_WHY];
	struct ublk_dev *d;
	pthread_t thread;

	begin(&server);
	check(ublk_disk_remove(MOCK_UBLK_ID, why) == -ENODEV);
	d = make();
	mock_ublk_fail(UBLK_IO_COMMIT_AND_FETCH, -EINVAL);
	check(!pthread_create(&thread, NULL, write_once, NULL));
	wait_lost(-EINVAL);
	leave(d);
	check(mock_ublk_again() == 0);
	d = take();
	check(!pthread_join(thread, NULL));
	check(mock_ublk_again() == 1);
	stop(d);
	end();
}

int main(void)
{
	log_init(count_complaint, LOG_LEVEL_WARN);
	each_request();
	what_the_disk_is();
	large_blocks();
	steps_fail();
	users_see_nothing();
	ends_without_us();
	leaves_failures_to_the_next();
	another_export();
	no_resize();
	of_another_process();
	return 0;
}
