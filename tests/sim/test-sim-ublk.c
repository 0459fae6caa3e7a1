/* SPDX-License-Identifier: BSD-3-Clause */
/* A disk by ublk whose process is killed at each step of a request: the user sees one success, and
 * what the dead process has sent never comes over what the next one writes. */
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "ublk-abi.h"
#include "world-ublk.h"

#define SECTORS 8u
#define LEN (SECTORS * RNBD_SECTOR_SIZE)
#define SOON_MS 2000

static struct world *w;
static struct sim_ublk *disk;
static int disk_fd;
static struct world_ublk *process;
static struct client_kept kept;
static unsigned life;

/* A request of a user of the disk. */
struct user {
	uint32_t op_flags;
	uint8_t buf[LEN];
	int status;
	struct sim_fiber *fiber;
};

static void user_run(void *arg)
{
	struct user *u = arg;

	u->status = sim_ublk_io(disk, u->op_flags, 0, SECTORS, u->buf);
}

static struct user *user_start(uint32_t op_flags, uint8_t fill)
{
	struct sim_host *kernel = sim_host_find("localhost");
	struct sim_place before = sim_enter(kernel, kernel->epoch);
	struct user *u = calloc(1, sizeof(*u));

	CHECK(u);
	u->op_flags = op_flags;
	memset(u->buf, fill, sizeof(u->buf));
	u->fiber = sim_fiber_start(user_run, u);
	sim_leave(before);
	return u;
}

static bool user_done(void *arg)
{
	return sim_fiber_done(((const struct user *)arg)->fiber);
}

/* Its status; what a READ has brought is all @fill. */
static int user_end(struct user *u, uint8_t fill, uint64_t ms)
{
	int status = u->status;

	CHECK(sim_run_until(user_done, u, ms));
	status = u->status;
	for (unsigned i = 0; status == 0 && u->op_flags == UBLK_OP_READ && i < LEN; i++)
		CHECK(u->buf[i] == fill);
	sim_fiber_free(u->fiber);
	free(u);
	return status;
}

static int request(uint32_t op_flags, uint8_t fill)
{
	return user_end(user_start(op_flags, fill), fill, SOON_MS);
}

/* ---- processes ---- */

/* The first process uses two ways to the server, the next one another two. */
static void next_process(void)
{
	static const char *const paths[2][2] = { { "srv/2", "srv/3" }, { "srv", "srv/1" } };
	static char name[32];

	snprintf(name, sizeof(name), "process-%u", ++life);
	process = world_ublk_start(w, CLIENT(.npaths = 2, .paths = paths[life % 2], .kept = &kept,
					     .name = name, .io_timeout_ms = CLOCK_NEVER),
				   life == 1 ? 1000 : 0, disk, disk_fd);
}

static void kill_process(void)
{
	world_ublk_kill(process);
}

static void lose_ways(void)
{
	sim_drop("clt", "srv");
	sim_drop("clt", "srv/1");
}

static void find_ways(void)
{
	sim_heal("clt", "srv");
	sim_heal("clt", "srv/1");
}

static void begin(void)
{
	life = 0;
	w = world_serve(SERVER(.any_address = true));
	client_kept_init(&kept, "boot", "disk0");
	disk = sim_ublk_create(WORLD_UBLK_DEPTH, &disk_fd);
	next_process();
}

/* All is answered, and the storage has @fill. */
static void end(uint8_t fill)
{
	const uint8_t *p = sim_disk_content(world_disk(w));

	world_run_ms(w, 5000);
	for (unsigned i = 0; i < LEN; i++)
		CHECK(p[i] == fill);
	world_ublk_leave(process);
	sim_ublk_destroy(disk);
	world_destroy(w);
}

/* ---- tests ---- */

SIM_TEST(each_request)
{
	begin();
	CHECK(request(UBLK_OP_WRITE, 7) == 0);
	CHECK(request(UBLK_OP_READ, 7) == 0);
	CHECK(request(UBLK_OP_WRITE | UBLK_F_FUA, 8) == 0);
	CHECK(request(UBLK_OP_FLUSH, 0) == 0);
	CHECK(request(UBLK_OP_READ, 8) == 0);
	CHECK(request(UBLK_OP_WRITE_ZEROES | UBLK_F_NOUNMAP, 0) == 0);
	CHECK(request(UBLK_OP_READ, 0) == 0);
	CHECK(request(UBLK_OP_DISCARD, 0) == 0);
	CHECK(request(UBLK_OP_WRITE, 9) == 0);
	end(9);
}

/* The user and the log hear of what the server's disk says. */
SIM_TEST(failures)
{
	static const struct {
		enum rnbd_io_op op;
		uint32_t op_flags;
		const char *line;
	} cases[] = {
		{ RNBD_OP_READ, UBLK_OP_READ, "read of 4096 bytes at 0: No space" },
		{ RNBD_OP_WRITE, UBLK_OP_WRITE | UBLK_F_FUA, "write of 4096 bytes at 0: No space" },
		{ RNBD_OP_WRITE_ZEROES, UBLK_OP_WRITE_ZEROES, "zero of 4096 bytes at 0: No space" },
	};

	begin();
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		sim_disk_fail(world_disk(w), cases[i].op, -ENOSPC, 1);
		CHECK(request(cases[i].op_flags, 0) == -ENOSPC);
		CHECK(world_traced(w, cases[i].line));
	}
	CHECK(request(UBLK_OP_WRITE, 1) == 0);
	end(1);
}

/* With EOPNOTSUPP fsync(2) would succeed. */
SIM_TEST(failed_flushes)
{
	static const struct { int says, told; } cases[] = {
		{ -EOPNOTSUPP, -EIO }, { -ENOSPC, -ENOSPC }, { -EIO, -EIO },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		begin();
		CHECK(request(UBLK_OP_WRITE, 1) == 0);
		sim_disk_fail(world_disk(w), RNBD_OP_FLUSH, cases[i].says, 1);
		CHECK(request(UBLK_OP_FLUSH, 0) == cases[i].told);
		CHECK(request(UBLK_OP_FLUSH, 0) == cases[i].told);
		end(1);
	}
}

/* A write, @steps steps behind whose begin the process is killed, the server hears of it or not;
 * then another one.  What was sent first arrives last.  True if the first had ended. */
static bool killed_at(unsigned steps, uint32_t op_flags, bool heard)
{
	struct user *u;
	uint64_t until;
	bool done;

	begin();
	CHECK(request(UBLK_OP_WRITE, 1) == 0);
	until = sim_steps() + steps;
	u = user_start(op_flags, 2);
	while (sim_steps() < until)
		CHECK(sim_step(sim_now_us() + 1000000));
	if (!heard)
		lose_ways();
	done = user_done(u);
	kill_process();
	next_process();
	CHECK(user_end(u, 1, SOON_MS) == 0);
	CHECK(request(UBLK_OP_WRITE, 3) == 0);
	CHECK(request(UBLK_OP_READ, 3) == 0);
	find_ways();
	CHECK(sim_ublk_again(disk) <= 1);
	end(3);
	return done;
}

static void at_each_step(uint32_t op_flags)
{
	for (unsigned heard = 0; heard < 2; heard++) {
		unsigned steps = 0;

		while (!killed_at(steps, op_flags, heard))
			steps++;
		CHECK(steps > 10);
	}
}

SIM_TEST(at_each_step_of_a_write)
{
	at_each_step(UBLK_OP_WRITE);
	at_each_step(UBLK_OP_WRITE | UBLK_F_FUA);
}

SIM_TEST(at_each_step_of_zeroes)
{
	at_each_step(UBLK_OP_WRITE_ZEROES | UBLK_F_NOUNMAP);
}

SIM_TEST(at_each_step_of_a_read)
{
	at_each_step(UBLK_OP_READ);
}

SIM_TEST(at_each_step_of_a_flush)
{
	at_each_step(UBLK_OP_FLUSH);
}

/* An update while the server is away: what waits is for the next process. */
SIM_TEST(left_while_the_server_is_away)
{
	struct user *u;

	begin();
	CHECK(request(UBLK_OP_WRITE, 1) == 0);
	world_server_kill(w, SIM_KILL_PROCESS);
	u = user_start(UBLK_OP_WRITE, 2);
	world_run_ms(w, 1000);
	world_ublk_leave(process);
	next_process();
	world_server_start(w, SERVER(.any_address = true));
	CHECK(user_end(u, 2, 60000) == 0);
	CHECK(sim_ublk_again(disk) == 1);
	end(2);
}

/* The server's machine loses what was not flushed: one FLUSH fails, in this process or, if that is
 * killed before the kernel has the answer, in the next one. */
SIM_TEST(a_loss_is_told_once)
{
	for (unsigned killed = 0; killed < 2; killed++) {
		begin();
		CHECK(request(UBLK_OP_WRITE, 1) == 0);
		CHECK(request(UBLK_OP_FLUSH, 0) == 0);
		CHECK(request(UBLK_OP_WRITE, 2) == 0);
		world_server_kill(w, SIM_KILL_POWER);
		if (killed) {
			kill_process();
			next_process();
		}
		sim_power_on("srv");
		world_server_start(w, SERVER(.any_address = true));
		world_run_ms(w, 60000);
		CHECK(request(UBLK_OP_FLUSH, 0) == -EIO);
		CHECK(request(UBLK_OP_FLUSH, 0) == 0);
		/* The kernel has heard of it. */
		kill_process();
		next_process();
		CHECK(request(UBLK_OP_FLUSH, 0) == 0);
		CHECK(request(UBLK_OP_WRITE, 4) == 0);
		end(4);
	}
}

/* A FLUSH that is under way when the process leaves, and tells of a loss: nobody else would. */
SIM_TEST(a_loss_is_told_while_it_leaves)
{
	struct user *u;

	begin();
	CHECK(request(UBLK_OP_WRITE, 2) == 0);
	world_server_kill(w, SIM_KILL_POWER);
	u = user_start(UBLK_OP_FLUSH, 0);
	world_run_ms(w, 1000);
	world_ublk_leave_begin(process);
	sim_power_on("srv");
	world_server_start(w, SERVER(.any_address = true));
	CHECK(user_end(u, 0, 60000) == -EIO);
	world_ublk_leave(process);
	next_process();
	CHECK(request(UBLK_OP_FLUSH, 0) == 0);
	CHECK(request(UBLK_OP_WRITE, 4) == 0);
	end(4);
}
