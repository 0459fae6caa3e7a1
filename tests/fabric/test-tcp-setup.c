/* SPDX-License-Identifier: BSD-3-Clause */
/* Setting tcp connections up among strangers: garbage, silence, floods, other versions, answers in
 * single bytes.  Brings its own clock, so that ten seconds pass at once. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "conformance.h"
#include "log.h"
#include "raw.h"
#include "util.h"

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

#define HANDSHAKE_MS 10000

static struct world w;
static uint64_t skipped_ms, stopped_ms;	/* the clock goes on by what is skipped; 0: and by itself */

uint64_t clock_now_ms(void)
{
	struct timespec ts;

	if (stopped_ms)
		return stopped_ms + skipped_ms;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000 + skipped_ms;
}

static bool closed_by_peer(int fd)
{
	char c;
	ssize_t n = recv(fd, &c, 1, MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno == ECONNRESET);
}

static void until_closed(int fd)
{
	for (int i = 0; i < WAIT_LIMIT_MS && !closed_by_peer(fd); i++)
		world_step(&w, 1);
	check(closed_by_peer(fd));
}

static char last_line[1024];

static void keep_line(enum log_level level, const char *line)
{
	snprintf(last_line, sizeof(last_line), "%s", line);
}

/* A hello of TLS is answered in plain, the connection stays open for a CONNECT, and the log names a
 * peer that goes away instead. */
static void tls_is_refused(void)
{
	static const uint8_t tls[] = { 0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3 };
	uint8_t hello[5 + 512] = { 0 }, want[RAW_HDR], got[RAW_HDR];
	struct raw_frame f = raw_handshake(RAW_REJECT, 0);

	f.flags = 2;
	raw_encode(want, &f);
	memcpy(hello, tls, sizeof(tls));
	for (int goes_on = 0; goes_on < 2; goes_on++) {
		int fd = raw_socket(&w);

		w.nrequests = 0;
		last_line[0] = '\0';
		/* In two parts: the header of the record is read before the rest has come. */
		raw_send(&w, fd, hello, 7);
		raw_send(&w, fd, hello + 7, sizeof(hello) - 7);
		raw_recv(&w, fd, got, sizeof(got));
		check(memcmp(want, got, sizeof(got)) == 0);
		if (goes_on) {
			f = raw_handshake(RAW_CONNECT, 0);
			raw_encode(got, &f);
			raw_send(&w, fd, got, sizeof(got));
			world_until(&w, w.nrequests);
			fab_reject(w.request->conn, NULL, 0);
			end_gone(w.request);
			close(fd);
			continue;
		}
		close(fd);
		for (int i = 0; i < WAIT_LIMIT_MS && !last_line[0]; i++)
			world_step(&w, 1);
		check(strstr(last_line, "the peer wants TLS, which is off here"));
		check_eq(w.nrequests, 0);
	}
}

#define TLS_RECORD_MAX 16640u		/* as tcp-hs-frame.c has it */

/* A hello of @len bytes, of which all are skipped, is followed by a CONNECT. */
static void hello_of(uint16_t len)
{
	static uint8_t hello[5 + TLS_RECORD_MAX];
	struct raw_frame f = raw_handshake(RAW_REJECT, 0);
	uint8_t want[RAW_HDR], got[RAW_HDR];
	int fd = raw_socket(&w);

	f.flags = 2;
	raw_encode(want, &f);
	f = raw_handshake(RAW_CONNECT, 0);
	raw_encode(got, &f);
	memset(hello, 0x11, sizeof(hello));	/* no CONNECT is in it */
	memcpy(hello, (uint8_t[]){ 0x16, 3, 1, (uint8_t)(len >> 8), (uint8_t)len }, 5);
	w.nrequests = 0;
	raw_send(&w, fd, hello, 5u + len);
	raw_send(&w, fd, got, sizeof(got));
	raw_recv(&w, fd, got, sizeof(got));
	check(memcmp(want, got, sizeof(got)) == 0);
	world_until(&w, w.nrequests);
	fab_reject(w.request->conn, NULL, 0);
	end_gone(w.request);
	close(fd);
}

/* What a stranger may say, what the log says about it, and whether it is answered by REJECT. */
static void stranger_says(const void *what, size_t len, bool rejected, const char *told)
{
	struct raw_frame f = raw_handshake(RAW_REJECT, 0);
	uint8_t want[RAW_HDR], got[RAW_HDR + 1];
	int fd = raw_socket(&w);
	size_t n;

	f.flags = 1;
	raw_encode(want, &f);
	w.nrequests = 0;
	last_line[0] = '\0';
	raw_send(&w, fd, what, len);
	n = raw_recv_all(&w, fd, got, sizeof(got));
	check_eq(n, rejected ? RAW_HDR : 0);
	check(!rejected || memcmp(want, got, RAW_HDR) == 0);
	check_eq(w.nrequests, 0);
	if (!strstr(last_line, told)) {
		fprintf(stderr, "\"%s\" does not say \"%s\"\n", last_line, told);
		exit(1);
	}
	close(fd);
}

FAB_TEST_ALONE(strangers_talk)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	struct raw_frame f;
	uint8_t hdr[RAW_HDR];

	log_init(keep_line, LOG_LEVEL_INFO);
	stranger_says(http, sizeof(http) - 1, false,
		      "does not speak RTRS (it said 'GET / HTTP/1.1')");
	/* It waits for the server's line, and sends no more. */
	stranger_says("SSH-2.0-y\r\n", 11, false, "does not speak RTRS (it said 'SSH-2.0-y')");
	tls_is_refused();
	hello_of(TLS_RECORD_MAX - 1);
	hello_of(TLS_RECORD_MAX);
	for (unsigned i = 0; i < 2; i++) {
		unsigned len = i ? UINT16_MAX : TLS_RECORD_MAX + 1;
		const uint8_t longer[RAW_HDR] = { 0x16, 3, 1, (uint8_t)(len >> 8), (uint8_t)len };

		stranger_says(longer, sizeof(longer), false, "does not speak RTRS");
	}
	f = raw_handshake(RAW_ACCEPT, 0);
	raw_encode(hdr, &f);
	stranger_says(hdr, sizeof(hdr), false, "expected CONNECT");
	f = raw_handshake(RAW_CONNECT, 57);
	raw_encode(hdr, &f);
	stranger_says(hdr, sizeof(hdr), false, "private data too long");
	f = raw_handshake(RAW_CONNECT, 0);
	f.addr++;
	raw_encode(hdr, &f);
	stranger_says(hdr, sizeof(hdr), false, "bad magic");
	f = (struct raw_frame){ .op = RAW_SEND };
	raw_encode(hdr, &f);
	stranger_says(hdr, sizeof(hdr), false, "its first bytes are 01 00");
	f = raw_handshake(RAW_CONNECT, 0);
	f.rkey = 2;
	raw_encode(hdr, &f);
	stranger_says(hdr, sizeof(hdr), true, "unknown version");
	log_init(NULL, LOG_LEVEL_INFO);
}

/* @n silent connections, from @nhosts hosts in turns. */
static void silence(int *fds, unsigned n, unsigned nhosts)
{
	for (unsigned i = 0; i < n; i++) {
		fds[i] = raw_socket_from(&w, (uint8_t)(2 + i % nhosts));
		if (i % 32 == 0)
			world_settle(&w, 0);
	}
	world_settle(&w, 1);
}

static void check_kept(const int *fds, unsigned n, unsigned kept)
{
	unsigned open;

	do {
		world_settle(&w, 1);
		open = 0;
		for (unsigned i = 0; i < n; i++)
			open += !closed_by_peer(fds[i]);
	} while (open > kept);
	world_settle(&w, 1);
	for (unsigned i = open = 0; i < n; i++)
		open += !closed_by_peer(fds[i]);
	check_eq(open, kept);
}

/* @fd, a stranger up to now, says CONNECT. */
static void says_connect(int fd)
{
	struct raw_frame f = raw_handshake(RAW_CONNECT, 0);
	uint8_t hdr[RAW_HDR];

	w.nrequests = 0;
	raw_encode(hdr, &f);
	raw_send(&w, fd, hdr, sizeof(hdr));
	world_until(&w, w.nrequests);
	fab_reject(w.request->conn, NULL, 0);
	end_gone(w.request);
	close(fd);
}

/* More silent connections than are kept, of one host and of several: they push out their own.  A
 * peer that came first, and needs its time, gets through, and so does one that comes later. */
FAB_TEST_ALONE(strangers_flood)
{
	enum { N = 300, KEPT = 256, OF_HOST = 64 };
	int fds[N], slow = raw_socket(&w);
	struct pair p;

	world_settle(&w, 1);
	silence(fds, N, 1);
	check_kept(fds, N, OF_HOST);
	check(!closed_by_peer(slow));
	for (unsigned i = 0; i < N; i++)
		close(fds[i]);
	world_settle(&w, 1);
	silence(fds, N, 5);
	check_kept(fds, N, KEPT - 1);
	says_connect(slow);
	pair_connect(&w, &p, &default_attr);
	check(!closed_by_peer(fds[N - 1]));
	/* Half a frame is as good as silence. */
	raw_send(&w, fds[N - 1], "\x10", 1);
	world_settle(&w, 1);
	skipped_ms += HANDSHAKE_MS - 2000;
	world_settle(&w, 1);
	check(!closed_by_peer(fds[N - 1]));
	skipped_ms += 2001;
	world_settle(&w, 1);
	for (unsigned i = 0; i < N; i++) {
		until_closed(fds[i]);
		close(fds[i]);
	}
	pair_close(&p);
}

/* A connection that was reported is nobody's stranger any more. */
FAB_TEST_ALONE(slow_server)
{
	struct end *a = end_active(&w, &w.addr, &default_attr);

	check_eq(fab_connect(a->conn, NULL, 0), 0);
	world_until(&w, w.request);
	skipped_ms += HANDSHAKE_MS - 1000;
	world_settle(&w, 1);
	end_create_qp(w.request, NULL, &default_attr);
	check_eq(end_accept(w.request, NULL, 0), 0);
	world_until(&w, a->established);
	end_close(a);
	world_until(&w, w.request->drained);
	end_free(w.request);
}

/* ---- the active side, facing a plain listener ---- */

static struct end *dial(const struct fab_addr *addr, int listener, int *peer)
{
	struct end *a = end_active(&w, addr, &default_attr);
	uint8_t want[RAW_HDR], got[RAW_HDR + 4];
	struct raw_frame f = raw_handshake(RAW_CONNECT, 4);

	check_eq(fab_connect(a->conn, "abcd", 4), 0);
	world_settle(&w, 1);
	*peer = accept(listener, NULL, NULL);
	check(*peer >= 0);
	raw_recv(&w, *peer, got, sizeof(got));
	raw_encode(want, &f);
	check(memcmp(want, got, RAW_HDR) == 0);
	check(memcmp(got + RAW_HDR, "abcd", 4) == 0);
	return a;
}

static void check_unreachable(struct end *a, int peer, int status, const char *cause)
{
	world_until(&w, a->unreachable);
	check_eq(a->status, status);
	if (!strstr(fab_conn_cause(a->conn), cause)) {
		fprintf(stderr, "cause \"%s\" does not say \"%s\"\n", fab_conn_cause(a->conn),
			cause);
		exit(1);
	}
	end_free(a);
	close(peer);
}

FAB_TEST_ALONE(answers)
{
	struct raw_frame f = raw_handshake(RAW_REJECT, 0);
	struct fab_addr addr;
	int l = raw_listen(&w, &addr), peer;
	uint8_t hdr[RAW_HDR];
	struct end *a;

	a = dial(&addr, l, &peer);
	raw_send(&w, peer, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n", 45);
	check_unreachable(a, peer, -EPROTO,
			  "does not speak RTRS (it said 'HTTP/1.1 400 Bad Request')");
	/* Less than a header, and then it waits. */
	a = dial(&addr, l, &peer);
	raw_send(&w, peer, "NBDMAGICIHAVEOPT\x00\x03", 18);
	check_unreachable(a, peer, -EPROTO,
			  "the peer is an NBD server, not an rtrs-server: "
			  "write the address of rtrs-server");
	/* The alert of a server that cannot read our CONNECT. */
	a = dial(&addr, l, &peer);
	raw_send(&w, peer, "\x15\x03\x01\x00\x02\x02\x46", 7);
	check_unreachable(a, peer, -EPROTO, "does not speak RTRS, but TLS");
	a = dial(&addr, l, &peer);
	raw_send(&w, peer, "SSH-2.0-x\r\n", 11);
	check_unreachable(a, peer, -EPROTO, "does not speak RTRS (it said 'SSH-2.0-x')");
	/* What is no text is not printed as such, and not for ever. */
	a = dial(&addr, l, &peer);
	raw_send(&w, peer, "ab\x1b]0;x\x07 and more", 17);
	check_unreachable(a, peer, -EPROTO, "(its first bytes are 61 62 1b 5d 30 3b 78 07)");
	a = dial(&addr, l, &peer);
	raw_send(&w, peer, "ab\xc2\x9b\r\n", 6);
	check_unreachable(a, peer, -EPROTO, "(its first bytes are 61 62 c2 9b 0d 0a)");
	a = dial(&addr, l, &peer);
	raw_send(&w, peer,
		 "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn", 72);
	check_unreachable(a, peer, -EPROTO,
			  "(it said 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
			  "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnn')");

	a = dial(&addr, l, &peer);
	f.flags = 1;
	f.rkey = 2;
	raw_encode(hdr, &f);
	raw_send(&w, peer, hdr, sizeof(hdr));
	check_unreachable(a, peer, -EPROTONOSUPPORT, "version");

	a = dial(&addr, l, &peer);
	f = raw_handshake(RAW_CONNECT, 0);
	raw_encode(hdr, &f);
	raw_send(&w, peer, hdr, sizeof(hdr));
	check_unreachable(a, peer, -EPROTO, "no answer");

	a = dial(&addr, l, &peer);
	f = raw_handshake(RAW_ACCEPT, 0);
	f.rkey = 2;
	raw_encode(hdr, &f);
	raw_send(&w, peer, hdr, sizeof(hdr));
	check_unreachable(a, peer, -EPROTO, "no answer");

	a = dial(&addr, l, &peer);
	shutdown(peer, SHUT_WR);
	check_unreachable(a, peer, -ECONNRESET, "closed the connection without an answer");

	a = dial(&addr, l, &peer);
	world_settle(&w, 1);
	skipped_ms += HANDSHAKE_MS;
	check_unreachable(a, peer, -ETIMEDOUT, "said nothing for 10 s");

	a = dial(&addr, l, &peer);
	raw_send(&w, peer, hdr, 5);
	world_settle(&w, 1);
	skipped_ms += HANDSHAKE_MS;
	check_unreachable(a, peer, -ETIMEDOUT, "no handshake in time");
	close(l);
}

/* The answer in single bytes, and data right behind it that must not get lost. */
FAB_TEST_ALONE(accept_in_pieces)
{
	struct raw_frame f = raw_handshake(RAW_ACCEPT, FAB_PRIVATE_DATA_MAX);
	uint8_t buf[RAW_HDR + FAB_PRIVATE_DATA_MAX];
	struct fab_addr addr;
	int l = raw_listen(&w, &addr), peer;
	struct end *a = dial(&addr, l, &peer);
	struct ibv_wc wc;

	check_eq(post_recvs(a, 0, 1), 0);
	raw_encode(buf, &f);
	memset(buf + RAW_HDR, 0x77, FAB_PRIVATE_DATA_MAX);
	for (unsigned i = 0; i < sizeof(buf) - 1; i++) {
		raw_send(&w, peer, buf + i, 1);
		/* Who polls too early does no harm. */
		check_eq(fab_poll(a->conn, &wc, 1), 0);
		world_settle(&w, 0);
	}
	check(!a->established);
	/* The last byte and two frames in one piece. */
	buf[0] = 0x77;
	f = (struct raw_frame){ .op = RAW_WRITE };
	raw_encode(buf + 1, &f);
	f = (struct raw_frame){ .op = RAW_WRITE_IMM, .imm = 42 };
	raw_encode(buf + 1 + RAW_HDR, &f);
	raw_send(&w, peer, buf, 1 + 2 * RAW_HDR);
	world_until(&w, a->nrecvs == 1);
	check_eq(a->pdata_len, FAB_PRIVATE_DATA_MAX);
	check_eq(a->pdata[0], 0x77);
	check_eq(a->pdata[FAB_PRIVATE_DATA_MAX - 1], 0x77);
	check_eq(a->recvs[0].wc.status, IBV_WC_SUCCESS);
	end_close(a);
	close(peer);
	close(l);
}

/* Out of descriptors: no busy loop, and the connection is taken when there are some again. */
FAB_TEST_ALONE(no_descriptors)
{
	struct rlimit old, low;
	struct end *a = end_active(&w, &w.addr, &default_attr);
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	unsigned steps = 0;

	check(fd >= 0);
	if (RUNNING_ON_VALGRIND) {
		/* It checks the limit itself, after accept4(), and closes what that gave. */
		printf("  not with valgrind: it loses the connection that is to be "
		       "accepted later\n");
		close(fd);
		end_free(a);
		return;
	}
	check_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = (rlim_t)fd;
	close(fd);
	check_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	check_eq(fab_connect(a->conn, NULL, 0), 0);
	while (world_step(&w, 20))
		check(++steps < 100);
	check(w.request == NULL);
	check_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	skipped_ms += 1000;
	world_until(&w, w.request);
	fab_reject(w.request->conn, NULL, 0);
	end_gone(w.request);
	world_until(&w, a->rejected);
	end_free(a);
}

static unsigned accepts, accepts_fail;
static int accept_errno;

int __real_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);

int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	accepts++;
	if (!accepts_fail)
		return __real_accept4(fd, addr, len, flags);
	accepts_fail--;
	errno = accept_errno;
	return -1;
}

static void is_taken(struct end *a)
{
	world_until(&w, w.request);
	fab_reject(w.request->conn, NULL, 0);
	end_gone(w.request);
	world_until(&w, a->rejected);
	end_free(a);
	w.request = NULL;
}

/* The same for all that the machine may be short of: one try, and the next one when time has
 * passed. */
FAB_TEST_ALONE(nothing_left)
{
	static const int errors[] = { EMFILE, ENFILE, ENOBUFS, ENOMEM };

	for (unsigned i = 0; i < ARRAY_SIZE(errors); i++) {
		struct end *a = end_active(&w, &w.addr, &default_attr);

		stopped_ms = clock_now_ms() - skipped_ms;
		accept_errno = errors[i];
		accepts = 0;
		accepts_fail = -1u;
		check_eq(fab_connect(a->conn, NULL, 0), 0);
		for (unsigned turn = 1; turn <= 3; turn++) {
			while (accepts < turn)
				world_step(&w, 20);
			for (unsigned step = 0; step < 20; step++)
				world_step(&w, 0);
			check_eq(accepts, turn);
			skipped_ms += 1000;
		}
		accepts_fail = 0;
		is_taken(a);
		stopped_ms = 0;
	}
}

/* One that has gone while it waited is passed over, and the next one taken at once. */
FAB_TEST_ALONE(one_has_gone)
{
	static const int errors[] = { ECONNABORTED, EPROTO, EHOSTUNREACH, EPERM, EINTR };

	for (unsigned i = 0; i < ARRAY_SIZE(errors); i++) {
		struct end *a = end_active(&w, &w.addr, &default_attr);

		stopped_ms = clock_now_ms() - skipped_ms;
		accept_errno = errors[i];
		accepts_fail = 1;
		check_eq(fab_connect(a->conn, NULL, 0), 0);
		is_taken(a);
		stopped_ms = 0;
	}
}

/* [::] and 0.0.0.0 on one port are two listeners. */
FAB_TEST_ALONE(both_families)
{
	struct fab_addr v4, v6;
	struct fab_listener *l4, *l6;
	char err[256];

	check_eq(fab_addr_parse("0.0.0.0", w.p, 0, &v4, err, sizeof(err)), 0);
	check_eq(fab_listen(w.cm[0], &v4, &l4), 0);
	fab_listener_addr(l4, &v4);
	if (fab_addr_parse("[::]", w.p, fab_addr_port(&v4), &v6, err, sizeof(err)) == 0) {
		int rc = fab_listen(w.cm[0], &v6, &l6);

		if (rc == -EAFNOSUPPORT || rc == -EADDRNOTAVAIL) {
			printf("  no IPv6 on this machine: not tested\n");
		} else {
			check_eq(rc, 0);
			fab_listener_destroy(l6);
		}
	}
	fab_listener_destroy(l4);
}

int main(void)
{
	fab_tests_run(fab_provider_find("tcp"), &w, NULL, NULL);
	return 0;
}
