/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshakes of rtrs-nbd (gate-tls.h) and time, on the loop of a rig, over streams that
 * never end their handshake.  Virtual time. */
#include <config.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gate-listen.h"
#include "gate-stream.h"
#include "gate-tls.h"
#include "loop-poll.h"
#include "nbd-by-hand.h"
#include "nbd-priv.h"
#include "unit.h"

#define HANDSHAKE_MS 10000u			/* as gate-tls.c has it */

static struct gate_tls tls;
static struct gate_tls_port port;

/* ---- one loop is all that there is ---- */

int loop_poll_create(const char *name, struct loop **out)
{
	*out = rig.server->loop;
	return 0;
}

void loop_poll_destroy(struct loop *loop)
{
}

void __wrap_loop_post(struct loop *loop, struct loop_msg *msg);

void __wrap_loop_post(struct loop *loop, struct loop_msg *msg)
{
	msg->fn(msg);
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
	return -EAGAIN;
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

static void shakes_begin(void)
{
	static const struct fab_tls creds = { .mode = FAB_TLS_REQUIRE };

	by_hand_begin();
	cr_assert_eq(gate_tls_start(&tls, &creds), 0);
	rig.server->tls = gate_tls_port_init(&port, &tls, rig.server->loop);
}

/* A client that has asked for TLS. */
static int shake_one(void)
{
	uint8_t buf[64];
	int fd = rig_connect(&rig);

	greet(fd);
	hear(fd, buf, sizeof(buf));
	say(fd, buf, put_option(buf, NBD_OPT_STARTTLS, NULL, 0));
	cr_assert_eq(hear(fd, buf, sizeof(buf)), 20);
	return fd;
}

/* A client that has asked for TLS, and whose handshake has gone on for @ms. */
static int shake_for(unsigned ms)
{
	int fd;

	shakes_begin();
	fd = shake_one();
	cr_assert_eq(nstreams, 1);
	for (; ms > HANDSHAKE_MS; ms -= HANDSHAKE_MS)
		rig_pass_time(&rig, HANDSHAKE_MS);
	rig_pass_time(&rig, ms);
	return fd;
}

Test(gate_tls, handshakes_have_a_time)
{
	static const unsigned times[] = { HANDSHAKE_MS - 1, HANDSHAKE_MS, HANDSHAKE_MS + 1,
					  4 * HANDSHAKE_MS };
	uint8_t buf[256];

	for_each_case(ms, times) {
		int fd = shake_for(*ms);

		if (*ms < HANDSHAKE_MS) {
			cr_assert_eq(recv(fd, buf, sizeof(buf), MSG_DONTWAIT), -1);
			cr_assert_eq(errno, EAGAIN);
			leave(fd);
			rig_pass_time(&rig, 1);
		} else {
			expect_end(fd);
			cr_assert(strstr(last_line, "TLS: the handshake has taken 10 s"), "%s",
				  last_line);
			close(fd);
		}
		cr_assert_eq(nstreams, 0);
		gate_tls_stop(&tls);
		by_hand_end();
	}
}

/* A step is dear, and none is spent on a client that goes while its step waits: as all do when the
 * program ends. */
Test(gate_tls, no_step_for_who_is_gone)
{
	int fds[8];

	shakes_begin();
	for_each_case(fd, fds)
		*fd = shake_one();
	cr_assert_eq(nstreams, ARRAY_SIZE(fds));
	nsteps = 0;
	for_each_case(fd, fds)
		close(*fd);
	rig_pass_time(&rig, 1);
	cr_assert_eq(nstreams, 0);
	/* A pass of the loop makes so many before it looks at sockets again. */
	cr_assert_leq(nsteps, 3, "%u steps", nsteps);
	gate_tls_stop(&tls);
	by_hand_end();
}
