/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshakes of rtrs-nbd (gate.h), their steps and time, on the loop of a rig, over streams
 * that the test plays.  Virtual time; the test decides when the worker runs. */
#include <config.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gate.h"
#include "nbd-by-hand.h"
#include "nbd-priv.h"
#include "unit.h"

#define HANDSHAKE_MS 10000u			/* as gate-tls.c has it */

static struct gate_tls tls;
static struct gate_tls_port port;

/* ---- the worker ---- */

static struct worker_job *waiting[64], *running;
static unsigned nwaiting;
static bool no_thread;

void worker_init(struct worker *w, struct loop *loop)
{
	nwaiting = 0;
	running = NULL;
	no_thread = false;
}

int worker_run(struct worker *w, struct worker_job *job)
{
	if (no_thread)
		return -EAGAIN;
	cr_assert_lt(nwaiting, ARRAY_SIZE(waiting));
	waiting[nwaiting++] = job;
	return 0;
}

bool worker_cancel(struct worker *w, struct worker_job *job)
{
	for (unsigned i = 0; i < nwaiting; i++) {
		if (waiting[i] != job)
			continue;
		waiting[i] = waiting[--nwaiting];
		return true;
	}
	cr_assert_eq(job, running);
	return false;
}

void worker_fini(struct worker *w)
{
	cr_assert(!nwaiting && !running);
}

static void step_begins(void)
{
	cr_assert_gt(nwaiting, 0);
	running = waiting[--nwaiting];
	running->work(running);
}

static void step_ends(void)
{
	struct worker_job *job = running;

	running = NULL;
	job->done(job);
}

/* Time passes, in which the worker makes all steps. */
static void pass(uint64_t ms)
{
	rig_pass_time(&rig, ms);
	while (nwaiting) {
		step_begins();
		step_ends();
		rig_pass_time(&rig, 0);
	}
}

int gate_listen_peer(int fd, struct fab_addr *peer)
{
	memset(peer, 0, sizeof(*peer));
	return 0;
}

uint64_t fab_addr_net(const struct fab_addr *addr)
{
	return 1;
}

/* ---- the stream ---- */

struct gate_stream {
	struct nbd_stream nbd;
	int fd;
};

static unsigned nstreams, nsteps;
static int step_rc = -EAGAIN;

struct gate_stream *gate_stream_create(const struct fab_tls *creds, int fd, uint64_t epoch)
{
	struct gate_stream *s = calloc(1, sizeof(*s));

	cr_assert(s);
	s->fd = fd;
	nstreams++;
	return s;
}

void gate_stream_destroy(struct gate_stream *s)
{
	nstreams -= s != NULL;
	free(s);
}

int gate_stream_handshake(struct gate_stream *s, short *events, char why[FAB_TLS_WHY_LEN])
{
	char c;

	nsteps++;
	/* A client that has left is ready for ever. */
	if (recv(s->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
		snprintf(why, FAB_TLS_WHY_LEN, "TLS: peer closed");
		return -ECONNRESET;
	}
	if (step_rc && step_rc != -EAGAIN)
		snprintf(why, FAB_TLS_WHY_LEN, "TLS: wrong key");
	return step_rc;
}

void gate_stream_describe(const struct gate_stream *s, char *buf, size_t len)
{
	snprintf(buf, len, "no TLS");
}

struct nbd_stream *gate_stream_nbd(struct gate_stream *s)
{
	return &s->nbd;
}

bool gate_stream_is_checked(const struct nbd_stream *s, uint64_t epoch)
{
	return true;
}

bool gate_stream_check(struct nbd_stream *s, uint64_t epoch, char why[FAB_TLS_WHY_LEN])
{
	return true;
}

/* ---- the test ---- */

static void handshakes_begin(void)
{
	static const struct fab_tls creds = { .mode = FAB_TLS_REQUIRE };

	by_hand_begin();
	tls.creds = &creds;
	rig.server->tls = gate_tls_port_init(&port, &tls, rig.server->loop, 1);
	cr_assert_not_null(rig.server->tls);
	step_rc = -EAGAIN;
	nsteps = 0;
}

static void handshakes_end(void)
{
	cr_assert_eq(nstreams, 0);
	gate_tls_port_fini(&port);
	by_hand_end();
}

/* A client that has asked for TLS. */
static int ask_tls(void)
{
	uint8_t buf[64];
	int fd = rig_connect(&rig);

	greet(fd);
	hear(fd, buf, sizeof(buf));
	say(fd, buf, put_option(buf, NBD_OPT_STARTTLS, NULL, 0));
	cr_assert_eq(hear(fd, buf, sizeof(buf)), 20);
	return fd;
}

/* A client whose first step waits for the worker. */
static int ask_for_step(void)
{
	int fd = ask_tls();

	say(fd, "hello", 5);
	rig_pass_time(&rig, 0);
	cr_assert_eq(nwaiting, 1);
	return fd;
}

Test(gate_tls, handshakes_have_a_time)
{
	static const unsigned times[] = { HANDSHAKE_MS - 1, HANDSHAKE_MS, HANDSHAKE_MS + 1,
					  4 * HANDSHAKE_MS };
	uint8_t buf[256];

	for_each_case(ms, times) {
		unsigned left = *ms;
		int fd;

		handshakes_begin();
		fd = ask_tls();
		cr_assert_eq(nstreams, 1);
		for (; left > HANDSHAKE_MS; left -= HANDSHAKE_MS)
			pass(HANDSHAKE_MS);
		pass(left);
		if (*ms < HANDSHAKE_MS) {
			cr_assert_eq(recv(fd, buf, sizeof(buf), MSG_DONTWAIT), -1);
			cr_assert_eq(errno, EAGAIN);
			leave(fd);
			pass(1);
		} else {
			expect_end(fd);
			cr_assert(strstr(last_line, "TLS: the handshake has taken 10 s"), "%s",
				  last_line);
			close(fd);
		}
		handshakes_end();
	}
}

/* A step is dear, and none is spent on a client that goes while its step waits: as all do when the
 * program ends. */
Test(gate_tls, no_step_for_who_is_gone)
{
	int fds[8];

	handshakes_begin();
	for_each_case(fd, fds) {
		*fd = ask_tls();
		say(*fd, "hello", 5);
	}
	rig_pass_time(&rig, 0);
	cr_assert_eq(nwaiting, ARRAY_SIZE(fds));
	for_each_case(fd, fds)
		close(*fd);
	rig_pass_time(&rig, 1);
	cr_assert_eq(nstreams, 0);
	cr_assert_eq(nsteps, 0);
	handshakes_end();
}

/* A client that goes, or is late, while its step runs: the worker has the stream until the step is
 * done, and the step's success is no success.  If the step fails, the client goes because of that,
 * and the log has the step's reason. */
Test(gate_tls, goes_while_the_step_runs)
{
	static const struct {
		int rc;
		bool late;
		const char *why;
	} cases[] = {
		{ 0, false, "TLS: peer closed" },
		{ -EAGAIN, false, "TLS: peer closed" },
		{ -EPROTO, false, "TLS: wrong key" },
		{ 0, true, "TLS: the handshake has taken 10 s" },
		{ -EAGAIN, true, "TLS: the handshake has taken 10 s" },
		{ -EPROTO, true, "TLS: wrong key" },
	};

	for_each_case(c, cases) {
		int fd;

		handshakes_begin();
		fd = ask_for_step();
		step_rc = c->rc;
		step_begins();
		if (!c->late)
			close(fd);
		rig_pass_time(&rig, c->late ? HANDSHAKE_MS : 1);
		rig_pass_time(&rig, 1);
		cr_assert_eq(nstreams, 1);
		step_ends();
		rig_pass_time(&rig, 1);
		cr_assert_eq(nstreams, 0);
		cr_assert(strstr(last_line, c->why), "%s", last_line);
		if (c->late)
			close(fd);
		handshakes_end();
	}
}

Test(gate_tls, no_thread_for_steps)
{
	int fd;

	handshakes_begin();
	fd = ask_tls();
	no_thread = true;
	say(fd, "hello", 5);
	rig_pass_time(&rig, 1);
	cr_assert(strstr(last_line, "TLS: no thread for handshakes"), "%s", last_line);
	close(fd);
	rig_pass_time(&rig, 1);
	handshakes_end();
}
