/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer of TLS does what our own provider does not: changes keys, ends in all ways, sends records
 * of nonsense, handshakes in single bytes and handshakes that stall.  The peer is GnuTLS on a plain
 * socket.  Brings its own clock, so that ten seconds pass at once.  With FABRIC_KTLS the
 * kernel makes the records of our ends. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/gnutls.h>

#include "clock.h"
#include "fab-tls.h"
#include "fake-ktls.h"
#include "log.h"
#include "raw.h"
#include "tcp-tls.h"
#include "util.h"

#define HANDSHAKE_MS 10000

static struct world w;
static uint64_t skipped_ms;
static char last_line[1024];
static struct fab_tls *server_tls, *client_tls;
static bool ktls;			/* our ends; the peer is GnuTLS always */

uint64_t clock_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000 + skipped_ms;
}

static void keep_line(enum log_level level, const char *line)
{
	snprintf(last_line, sizeof(last_line), "%s", line);
}

static void keep_no_ktls(enum log_level level, const char *line)
{
	if (strstr(line, "no kTLS: "))
		keep_line(level, line);
}

/* ---- the peer ---- */

struct peer {
	int fd;
	struct fab_tls_end end;
	gnutls_session_t session;
	bool slow;			/* a byte in a call */
	bool chacha;
	size_t record;			/* largest that it takes; 0: TLS's own limit */
	bool hold;			/* until peer_release() */
	uint8_t held[1024];
	size_t nheld;
};

static ssize_t peer_push(gnutls_transport_ptr_t arg, const void *data, size_t len)
{
	struct peer *p = arg;
	ssize_t n;

	if (p->hold) {
		check(len <= sizeof(p->held) - p->nheld);
		memcpy(p->held + p->nheld, data, len);
		p->nheld += len;
		return (ssize_t)len;
	}
	n = send(p->fd, data, p->slow ? 1 : len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (p->slow)
		world_step(&w, 0);
	gnutls_transport_set_errno(p->session, errno);
	return n;
}

static ssize_t peer_pull(gnutls_transport_ptr_t arg, void *data, size_t len)
{
	struct peer *p = arg;
	ssize_t n = recv(p->fd, data, len, MSG_DONTWAIT);

	gnutls_transport_set_errno(p->session, errno);
	return n;
}

static void peer_begin(struct peer *p, int fd, const struct fab_tls *tls)
{
	p->fd = fd;
	p->end.tls = tls;
	check_eq(fab_tls_session(&p->end, "127.0.0.1", &p->session), 0);
	if (p->chacha)
		check_eq(gnutls_priority_set_direct(p->session, "NORMAL:-VERS-ALL:+VERS-TLS1.3:"
						    "-CIPHER-ALL:+CHACHA20-POLY1305:-KX-ALL:"
						    "+ECDHE-PSK", NULL), 0);
	if (p->record)
		check_eq(gnutls_record_set_max_recv_size(p->session, p->record), 0);
	gnutls_transport_set_ptr(p->session, p);
	gnutls_transport_set_push_function(p->session, peer_push);
	gnutls_transport_set_pull_function(p->session, peer_pull);
}

/* Call @step until it has done its work; the world goes on meanwhile. */
#define peer_until(step)                                                                           \
	({                                                                                         \
		ssize_t rc_;                                                                       \
		int idle_ = 0;                                                                     \
		while (((rc_ = (step)) == GNUTLS_E_AGAIN || rc_ == GNUTLS_E_INTERRUPTED) &&        \
		       idle_++ < WAIT_LIMIT_MS)                                                    \
			world_step(&w, 1);                                                         \
		rc_;                                                                               \
	})

static void peer_send(struct peer *p, const void *data, size_t len)
{
	check_eq(peer_until(gnutls_record_send(p->session, data, len)), len);
}

static void peer_release(struct peer *p)
{
	p->hold = false;
	raw_send(&w, p->fd, p->held, p->nheld);
	p->nheld = 0;
}

static void peer_recv(struct peer *p, void *data, size_t len)
{
	for (size_t got = 0; got < len;) {
		ssize_t n = peer_until(gnutls_record_recv(p->session, (char *)data + got,
							  len - got));

		check(n > 0);
		got += (size_t)n;
	}
}

static void peer_fini(struct peer *p)
{
	fab_tls_session_end(&p->end, p->session);
	close(p->fd);
}

static void make_frame(uint8_t hdr[RAW_HDR], enum raw_op op, uint32_t length)
{
	struct raw_frame f = { .op = (uint8_t)op, .length = length };

	if (op >= RAW_CONNECT && op <= RAW_REJECT)
		f = raw_handshake(op, length);
	raw_encode(hdr, &f);
}

/* Connect to the world, and be accepted. */
static struct end *peer_connect(struct peer *p)
{
	uint8_t hdr[RAW_HDR];
	struct end *e;

	peer_begin(p, raw_socket(&w), client_tls);
	check_eq(peer_until(gnutls_handshake(p->session)), 0);
	make_frame(hdr, RAW_CONNECT, 0);
	w.request = NULL;
	peer_send(p, hdr, sizeof(hdr));
	world_until(&w, w.request);
	e = w.request;
	end_create_qp(e, NULL, &default_attr);
	check_eq(end_accept(e, NULL, 0), 0);
	peer_recv(p, hdr, sizeof(hdr));
	check_eq(hdr[0], RAW_ACCEPT);
	return e;
}

/* ---- connections that go on ---- */

/* A SEND each way. */
static void talk(struct peer *p, struct end *e, unsigned round)
{
	struct region r = region_create(e->pd, 64, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = region_sge(&r, 0, 5);
	struct ibv_recv_wr recv = { .wr_id = recv_id(round), .sg_list = &sge, .num_sge = 1 };
	struct ibv_send_wr send = wr_send(round, &sge);
	uint8_t frame[RAW_HDR + 5];

	check_eq(fab_post_recv(e->conn, &recv), 0);
	make_frame(frame, RAW_SEND, 5);
	memcpy(frame + RAW_HDR, "hello", 5);
	peer_send(p, frame, sizeof(frame));
	world_until(&w, e->nrecvs == round + 1);
	check(!memcmp(r.mem, "hello", 5));
	check_eq(post(e, &send, 1), 0);
	memset(frame, 0, sizeof(frame));
	peer_recv(p, frame, sizeof(frame));
	check(frame[0] == RAW_SEND && !memcmp(frame + RAW_HDR, "hello", 5));
	region_destroy(&r);
}

static void ends_with(struct peer *p, struct end *e, const char *cause)
{
	world_until(&w, e->drained);
	if (!strstr(fab_conn_cause(e->conn), cause)) {
		fprintf(stderr, "\"%s\" does not say \"%s\"\n", fab_conn_cause(e->conn), cause);
		exit(1);
	}
	end_free(e);
	peer_fini(p);
}

/* The peer changes its keys, and asks for others of ours. */
FAB_TEST_ALONE(key_update)
{
	struct peer p = { 0 };
	struct end *e = peer_connect(&p);

	talk(&p, e, 0);
	if (ktls) {
		check_eq(peer_until(gnutls_session_key_update(p.session, 0)), 0);
		ends_with(&p, e, "TLS: the peer changes its key, which TLS in the kernel cannot "
			  "follow");
		return;
	}
	check_eq(peer_until(gnutls_session_key_update(p.session, 0)), 0);
	talk(&p, e, 1);
	check_eq(peer_until(gnutls_session_key_update(p.session, GNUTLS_KU_PEER)), 0);
	talk(&p, e, 2);
	talk(&p, e, 3);
	end_close(e);
	peer_fini(&p);
}

/* A handshake and frames whose bytes come one by one. */
FAB_TEST_ALONE(single_bytes)
{
	struct peer p = { .slow = true };
	struct end *e = peer_connect(&p);

	talk(&p, e, 0);
	end_close(e);
	peer_fini(&p);
}

/* A peer that does not read for a while: what the library took and the socket did not is sent when
 * there is room, without another post. */
static void messages_to_slow_peer(size_t record)
{
	/* Each message fills the buffer of records, of which an empty socket takes less. */
	enum { LEN = 65536 - RAW_HDR, N = 60 };
	struct peer p = { .record = record };
	struct end *e = peer_connect(&p);
	struct region r = region_create(e->pd, LEN, 0);
	struct ibv_sge sge = region_sge(&r, 0, LEN);
	static uint8_t got[RAW_HDR + LEN];
	int small = 4096;

	for (unsigned i = 0; i < LEN; i++)
		r.mem[i] = (uint8_t)(i * 7 + i / 256);
	check_eq(setsockopt(fab_conn_fd(e->conn), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	for (unsigned i = 0; i < N; i++) {
		struct ibv_send_wr wr = wr_send(i, &sge);

		check_eq(post(e, &wr, 1), 0);
	}
	world_settle(&w, 1);
	for (unsigned i = 0; i < N; i++) {
		peer_recv(&p, got, sizeof(got));
		check(got[0] == RAW_SEND && !memcmp(got + RAW_HDR, r.mem, LEN));
	}
	region_destroy(&r);
	end_close(e);
	peer_fini(&p);
}

FAB_TEST_ALONE(full_socket)
{
	messages_to_slow_peer(0);
}

/* The same, with a peer that asks for records of 1 KiB.  The kernel would send larger ones, and
 * does not get the keys. */
FAB_TEST_ALONE(small_records)
{
	const char *cipher = provider_cipher;

	provider_cipher = "TLS1.3 ";
	messages_to_slow_peer(1024);
	provider_cipher = cipher;
}

/* ---- who the peer is ---- */

/* The server knows its client by the key, without the label of the key. */
FAB_TEST_ALONE(identity)
{
	struct peer p = { 0 };
	struct end *e = peer_connect(&p);
	struct fab_identity id;

	fab_conn_identity(e->conn, &id);
	check(!strcmp(id.name, "psk:peer"));
	check(!strcmp(id.cipher, ktls ? "kTLS1.3 AES-128-GCM" : "TLS1.3 AES-128-GCM"));
	end_close(e);
	peer_fini(&p);
}

/* The second cipher. */
FAB_TEST_ALONE(chacha)
{
	struct peer p = { .chacha = true };
	struct end *e = peer_connect(&p);
	struct fab_identity id;

	talk(&p, e, 0);
	talk(&p, e, 1);
	fab_conn_identity(e->conn, &id);
	check(!strcmp(id.cipher, ktls ? "kTLS1.3 CHACHA20-POLY1305" : "TLS1.3 CHACHA20-POLY1305"));
	end_close(e);
	peer_fini(&p);
}

/* ---- records around the handshake ---- */

/* The last flight of the handshake, CONNECT and a message arrive with a single segment. */
FAB_TEST_ALONE(at_once)
{
	struct peer p = { 0 };
	uint8_t frame[RAW_HDR + 5];
	struct region r;
	struct ibv_sge sge;
	struct ibv_recv_wr recv = { .wr_id = recv_id(0), .sg_list = &sge, .num_sge = 1 };
	struct end *e;

	peer_begin(&p, raw_socket(&w), client_tls);
	check_eq(gnutls_handshake(p.session), GNUTLS_E_AGAIN);
	p.hold = true;
	check_eq(peer_until(gnutls_handshake(p.session)), 0);
	make_frame(frame, RAW_CONNECT, 0);
	w.request = NULL;
	peer_send(&p, frame, RAW_HDR);
	make_frame(frame, RAW_SEND, 5);
	memcpy(frame + RAW_HDR, "early", 5);
	peer_send(&p, frame, sizeof(frame));
	peer_release(&p);
	world_until(&w, w.request);
	e = w.request;
	end_create_qp(e, NULL, &default_attr);
	r = region_create(e->pd, 64, IBV_ACCESS_LOCAL_WRITE);
	sge = region_sge(&r, 0, 5);
	check_eq(fab_post_recv(e->conn, &recv), 0);
	check_eq(end_accept(e, NULL, 0), 0);
	peer_recv(&p, frame, RAW_HDR);
	check_eq(frame[0], RAW_ACCEPT);
	world_until(&w, e->nrecvs == 1);
	check(!memcmp(r.mem, "early", 5));
	talk(&p, e, 1);
	region_destroy(&r);
	end_close(e);
	peer_fini(&p);
}

/* No byte of an alert comes where the bytes of a message belong. */
FAB_TEST_ALONE(alert_in_message)
{
	enum { LEN = 20000, SENT = 17000 };
	static uint8_t frame[RAW_HDR + LEN];
	struct peer p = { 0 };
	struct end *e = peer_connect(&p);
	struct region r = region_create(e->pd, LEN, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = region_sge(&r, 0, LEN);
	struct ibv_recv_wr recv = { .wr_id = recv_id(0), .sg_list = &sge, .num_sge = 1 };

	memset(r.mem, 0x77, LEN);
	check_eq(fab_post_recv(e->conn, &recv), 0);
	make_frame(frame, RAW_SEND, LEN);
	for (size_t at = 0; at < RAW_HDR + SENT;) {
		ssize_t n = peer_until(gnutls_record_send(p.session, frame + at,
							  RAW_HDR + SENT - at));

		check(n > 0);
		at += (size_t)n;
	}
	world_settle(&w, 1);
	check_eq(peer_until(gnutls_alert_send(p.session, GNUTLS_AL_FATAL,
					      GNUTLS_A_INTERNAL_ERROR)), 0);
	world_until(&w, e->drained);
	check(strstr(fab_conn_cause(e->conn), "TLS alert: Internal error"));
	for (unsigned i = 0; i < LEN; i++)
		check_eq(r.mem[i], i < SENT ? 0 : 0x77);
	region_destroy(&r);
	end_free(e);
	peer_fini(&p);
}

/* ---- a kernel that does not take the keys ---- */

/* A kernel without the module, or that refuses the first key, leaves TLS to GnuTLS, without a lost
 * byte; one that refuses the second key ends the connection. */
FAB_TEST_ALONE(refusals)
{
	struct peer p = { 0 };
	struct fab_identity id;
	struct end *e;

	if (!&fake_ktls_refuse) {
		printf("(a kernel that refuses keys is test-tcp-ktls's)\n");
		return;
	}
	for (int r = FAKE_KTLS_NO_MODULE; r <= FAKE_KTLS_NO_KEY; r++) {
		provider_cipher = "TLS1.3 ";
		fake_ktls_refuse = (enum fake_ktls_refusal)r;
		e = peer_connect(&p);
		talk(&p, e, 0);
		talk(&p, e, 1);
		fab_conn_identity(e->conn, &id);
		check(!strcmp(id.cipher, "TLS1.3 AES-128-GCM"));
		end_close(e);
		peer_fini(&p);
		at_once();
	}
	fake_ktls_refuse = FAKE_KTLS_NO_SENDING;
	last_line[0] = '\0';
	log_init(keep_line, LOG_LEVEL_INFO);
	peer_begin(&p, raw_socket(&w), client_tls);
	check_eq(peer_until(gnutls_handshake(p.session)), 0);
	for (int i = 0; i < WAIT_LIMIT_MS && !*last_line; i++)
		world_step(&w, 1);
	check(strstr(last_line, "the kernel took the key for receiving and refused the other"));
	log_init(NULL, LOG_LEVEL_INFO);
	peer_fini(&p);
	fake_ktls_refuse = FAKE_KTLS_TAKES_ALL;
	provider_cipher = "kTLS1.3 ";
}


/* ---- ends ---- */

/* Our end says that it ends: a peer that cannot be fooled sees it. */
FAB_TEST_ALONE(says_bye)
{
	struct peer p = { 0 };
	struct end *e = peer_connect(&p);
	uint8_t hdr[RAW_HDR];

	talk(&p, e, 0);
	fab_disconnect(e->conn);
	peer_recv(&p, hdr, sizeof(hdr));
	check_eq(hdr[0], RAW_DISCONNECT);
	check_eq(peer_until(gnutls_record_recv(p.session, hdr, sizeof(hdr))), 0);
	world_until(&w, e->drained);
	end_free(e);
	peer_fini(&p);
}

/* A key of the kernel ends with its budget. */
FAB_TEST_ALONE(budget)
{
	uint64_t left = 5;
	struct iovec iov = { "hello", 5 };
	int fds[2];

	check_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	check_eq(tcp_ktls_send(fds[0], &iov, 1, &left), 5);
	check_eq(left, 0);
	check_eq(tcp_ktls_send(fds[0], &iov, 1, &left), -1);
	check_eq(errno, EKEYEXPIRED);
	left = 3;
	check_eq(tcp_ktls_send(fds[0], &iov, 1, &left), 5);
	check_eq(left, 0);
	close(fds[0]);
	close(fds[1]);
}

/* Our end, which cannot decrypt a record, says so before it closes. */
static void hears_bad_record(struct peer *p, struct end *e)
{
	char byte;

	world_until(&w, e->drained);
	check_eq(peer_until(gnutls_record_recv(p->session, &byte, 1)),
		 GNUTLS_E_FATAL_ALERT_RECEIVED);
	check_eq(gnutls_alert_get(p->session), GNUTLS_A_BAD_RECORD_MAC);
}

FAB_TEST_ALONE(ends)
{
	static const uint8_t nonsense[] = "\x17\x03\x03\x00\x20" "0123456789abcdef0123456789abcdef";
	uint8_t half[RAW_HDR + 2];
	struct peer p = { 0 };
	struct end *e = peer_connect(&p);

	check_eq(shutdown(p.fd, SHUT_WR), 0);
	ends_with(&p, e, "peer closed: its TLS stream was cut");

	e = peer_connect(&p);
	check_eq(peer_until(gnutls_bye(p.session, GNUTLS_SHUT_WR)), 0);
	ends_with(&p, e, "peer closed");

	e = peer_connect(&p);
	check_eq(post_recvs(e, 0, 1), 0);
	make_frame(half, RAW_SEND, 5);
	peer_send(&p, half, RAW_HDR / 2);
	check_eq(peer_until(gnutls_bye(p.session, GNUTLS_SHUT_WR)), 0);
	ends_with(&p, e, "peer closed in the middle of a frame");

	e = peer_connect(&p);
	check_eq(peer_until(gnutls_alert_send(p.session, GNUTLS_AL_FATAL,
					      GNUTLS_A_INTERNAL_ERROR)), 0);
	ends_with(&p, e, "peer failed the connection: TLS alert: Internal error");

	/* TLS 1.3 knows no warnings. */
	e = peer_connect(&p);
	check_eq(peer_until(gnutls_alert_send(p.session, GNUTLS_AL_WARNING,
					      GNUTLS_A_USER_CANCELED)), 0);
	ends_with(&p, e, "peer failed the connection: TLS alert: User canceled");

	/* A third party puts a record in. */
	e = peer_connect(&p);
	raw_send(&w, p.fd, nonsense, sizeof(nonsense) - 1);
	hears_bad_record(&p, e);
	ends_with(&p, e, "TLS: ");

	/* The same behind a good record, so that no byte is left in the socket. */
	e = peer_connect(&p);
	make_frame(half, RAW_DISCONNECT, 0);
	e->quota = 0;
	peer_send(&p, half, RAW_HDR / 2);
	raw_send(&w, p.fd, nonsense, sizeof(nonsense) - 1);
	e->quota = 16;
	hears_bad_record(&p, e);
	ends_with(&p, e, "TLS: ");
}

/* ---- the active side ---- */

/* Frames in the record of the ACCEPT wait inside of the library when the connection is up: an end
 * that arms first, and then sleeps, hears of them. */
FAB_TEST_ALONE(behind_accept)
{
	struct peer p = { 0 };
	struct fab_addr addr;
	uint8_t frames[2 * RAW_HDR], hdr[RAW_HDR];
	int listener = raw_listen(&w, &addr), fd;
	struct end *a = raw_dial(&w, listener, &addr, &fd);
	short events = 0;

	check_eq(post_recvs(a, 0, 1), 0);
	a->quota = 0;
	peer_begin(&p, fd, server_tls);
	check_eq(peer_until(gnutls_handshake(p.session)), 0);
	peer_recv(&p, hdr, sizeof(hdr));
	check_eq(hdr[0], RAW_CONNECT);
	make_frame(frames, RAW_ACCEPT, 0);
	make_frame(frames + RAW_HDR, RAW_SEND, 0);
	peer_send(&p, frames, sizeof(frames));
	world_until(&w, a->established);
	/* poll(2) sees bytes that wait inside of the kernel. */
	check_eq(fab_arm(a->conn, &events), ktls ? 0 : 1);
	a->quota = 16;
	world_until(&w, a->nrecvs == 1);
	end_close(a);
	peer_fini(&p);
	close(listener);
}

/* A server that asks for small records does not get them from the kernel of the client. */
FAB_TEST_ALONE(small_records_of_server)
{
	struct peer p = { .record = 1024 };
	struct fab_addr addr;
	struct fab_identity id;
	uint8_t frame[RAW_HDR];
	int listener = raw_listen(&w, &addr), fd;
	const char *cipher = provider_cipher;
	struct end *a;

	provider_cipher = "TLS1.3 ";
	last_line[0] = '\0';
	log_init(keep_no_ktls, LOG_LEVEL_DEBUG);
	a = raw_dial(&w, listener, &addr, &fd);
	peer_begin(&p, fd, server_tls);
	check_eq(peer_until(gnutls_handshake(p.session)), 0);
	peer_recv(&p, frame, sizeof(frame));
	check_eq(frame[0], RAW_CONNECT);
	make_frame(frame, RAW_ACCEPT, 0);
	peer_send(&p, frame, sizeof(frame));
	world_until(&w, a->established);
	log_init(NULL, LOG_LEVEL_INFO);
	fab_conn_identity(a->conn, &id);
	check_eq(id.cipher[0], 'T');
	check(!ktls || strstr(last_line, "no kTLS: the peer takes records of 1024 bytes at most"));
	provider_cipher = cipher;
	end_close(a);
	peer_fini(&p);
	close(listener);
}

/* An answer in plain to a side that requires TLS: a refusal is one, all else is none. */
FAB_TEST_ALONE(answers_in_plain)
{
	static const struct {
		enum raw_op op;
		uint8_t flags;
		bool rejected;
		const char *cause;
	} answers[] = {
		{ RAW_REJECT, 0, true, "rejected by the peer" },
		{ RAW_REJECT, 2, false, "the server has no TLS (tls=off there)" },
		{ RAW_ACCEPT, 0, false, "TLS: " },
	};
	struct fab_addr addr;
	int listener = raw_listen(&w, &addr), fd;

	for (unsigned i = 0; i < ARRAY_SIZE(answers); i++) {
		struct end *a = raw_dial(&w, listener, &addr, &fd);
		struct raw_frame f = raw_handshake(answers[i].op, 0);
		uint8_t hdr[RAW_HDR];

		f.flags = answers[i].flags;
		raw_encode(hdr, &f);
		raw_send(&w, fd, hdr, sizeof(hdr));
		world_until(&w, a->rejected || a->unreachable);
		check_eq(a->rejected, answers[i].rejected);
		check(strstr(fab_conn_cause(a->conn), answers[i].cause));
		end_free(a);
		close(fd);
	}
	close(listener);
}

/* A server of our key that closes behind its hello has too many in set-up: what else is wrong it
 * says by an alert.  One that closes before may be any server. */
FAB_TEST_ALONE(closed_behind_hello)
{
	enum { BEFORE, HELLO, HANDSHAKE, NCLOSES };
	struct fab_addr addr;
	int listener = raw_listen(&w, &addr), fd;
	uint8_t frame[RAW_HDR];

	for (unsigned at = BEFORE; at < NCLOSES; at++) {
		struct end *a = raw_dial(&w, listener, &addr, &fd);
		struct peer p = { .hold = at != HANDSHAKE };

		peer_begin(&p, fd, server_tls);
		if (at == HANDSHAKE) {
			check_eq(peer_until(gnutls_handshake(p.session)), 0);
			peer_recv(&p, frame, sizeof(frame));
		}
		while (p.hold && !p.nheld) {
			world_step(&w, 1);
			gnutls_handshake(p.session);
		}
		if (at == HELLO)
			peer_release(&p);
		peer_fini(&p);
		world_until(&w, a->unreachable);
		check_eq(a->status, at == BEFORE ? -ECONNRESET : -EUSERS);
		end_free(a);
	}
	close(listener);
}

/* ---- strangers ---- */

/* Plain strangers, and strangers whose handshake stops: bounded in number and time.  An honest peer
 * gets in, and so does one whose hello came first. */
FAB_TEST_ALONE(stalled)
{
	enum { N = 300, KEPT = 256 };
	static const char hello[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
	static int fds[N];
	int slow = raw_socket(&w);
	unsigned open = 0;
	struct pair pair;
	char c;

	raw_send(&w, slow, hello, 11);
	for (unsigned i = 0; i < N; i++) {
		fds[i] = raw_socket_from(&w, (uint8_t)(2 + i % 5));
		raw_send(&w, fds[i], hello, 11);
		world_settle(&w, 0);
	}
	world_settle(&w, 1);
	pair_connect(&w, &pair, &default_attr);
	for (unsigned i = 0; i < N; i++)
		open += recv(fds[i], &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
	check(open <= KEPT - 1 && open >= KEPT - 2);
	check(recv(slow, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	last_line[0] = '\0';
	log_init(keep_line, LOG_LEVEL_INFO);
	skipped_ms += HANDSHAKE_MS + 1;
	for (int i = 0; i < WAIT_LIMIT_MS && recv(fds[N - 1], &c, 1, MSG_DONTWAIT) < 0 &&
	     errno == EAGAIN; i++)
		world_step(&w, 1);
	check(strstr(last_line, "TLS: no handshake in time"));
	log_init(NULL, LOG_LEVEL_INFO);
	for (unsigned i = 0; i < N; i++)
		close(fds[i]);
	close(slow);
	pair_close(&pair);
}

/* ---- */

static struct fab_tls *make_tls(const char *file, bool server)
{
	const struct fab_tls_conf conf = { .server = server, .asked = true,
					   .mode = FAB_TLS_REQUIRE, .psk = file,
					   .ktls = ktls ? FAB_KTLS_AUTO : FAB_KTLS_OFF };
	struct fab_tls *tls = NULL;
	char err[256] = "";

	if (fab_tls_create(&conf, &tls, err, sizeof(err)))
		check_failed(__FILE__, __LINE__, err);
	return tls;
}

static void make_keys(void)
{
	static const char line[] = "peer/1:00112233445566778899aabbccddeeff\n";
	char file[] = "/tmp/fab-tls.XXXXXX";
	int fd = mkstemp(file);

	check(fd >= 0);
	check_eq(write(fd, line, sizeof(line) - 1), sizeof(line) - 1);
	close(fd);
	server_tls = make_tls(file, true);
	client_tls = make_tls(file, false);
	unlink(file);
	provider_tls[0] = server_tls;
	provider_tls[1] = client_tls;
}

/* The kernel is asked for modules when the credentials are made, and a connection does not ask
 * again for what the kernel does not have. */
static void asked_once(enum fake_ktls_refusal refusal)
{
	struct peer p = { 0 };
	struct fab_identity id;
	struct end *e;
	unsigned ulps = refusal == FAKE_KTLS_NO_MODULE ? 1 : 2, keys = ulps == 1 ? 0 : 2;

	fake_ktls_refuse = refusal;
	make_keys();
	check_eq(fake_ktls_ulps, ulps);
	check_eq(fake_ktls_keys, keys);
	fake_ktls_refuse = FAKE_KTLS_TAKES_ALL;
	if (refusal != FAKE_KTLS_TAKES_ALL)
		provider_cipher = "TLS1.3 ";
	world_init(&w, fab_provider_find("tcp"));
	e = peer_connect(&p);
	talk(&p, e, 0);
	fab_conn_identity(e->conn, &id);
	check_eq(*id.cipher == 'k', refusal == FAKE_KTLS_TAKES_ALL);
	check(refusal != FAKE_KTLS_NO_MODULE || fake_ktls_ulps == ulps);
	check(refusal != FAKE_KTLS_NO_KEY || fake_ktls_keys == keys);
	end_close(e);
	peer_fini(&p);
	world_fini(&w);
	fab_tls_destroy(server_tls);
	fab_tls_destroy(client_tls);
}

/* A process asks once: each case has its own. */
static void asked_once_each(void)
{
	int status;
	pid_t pid;

	if (!&fake_ktls_refuse)
		return;
	printf("asked_once\n");
	fflush(stdout);
	for (int r = FAKE_KTLS_TAKES_ALL; r <= FAKE_KTLS_NO_KEY; r++) {
		pid = fork();
		check(pid >= 0);
		if (pid == 0) {
			asked_once((enum fake_ktls_refusal)r);
			exit(0);
		}
		check_eq(waitpid(pid, &status, 0), pid);
		check_eq(status, 0);
	}
}

int main(void)
{
	ktls = getenv("FABRIC_KTLS");
	provider_cipher = ktls ? "kTLS1.3 " : "TLS1.3 ";
	asked_once_each();
	make_keys();
	fab_tests_run(fab_provider_find("tcp"), &w, NULL, NULL);
	fab_tls_destroy(server_tls);
	fab_tls_destroy(client_tls);
	return 0;
}
