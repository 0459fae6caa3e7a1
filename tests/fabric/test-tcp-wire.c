/* SPDX-License-Identifier: BSD-3-Clause */
/* The tcp provider against a peer made of a plain socket: the bytes it writes, streams cut in odd
 * places, frames no peer may send, full sockets, and the system calls it takes. */
#include <config.h>

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conformance.h"
#include "raw.h"
#include "util.h"

static struct world w;
static unsigned nrecvmsg, nsendmsg;
static size_t npieces;			/* most of a sendmsg() */

ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);

/* A peer that never stops sends empty writes to this descriptor: every read is full. */
static int endless_fd = -1;
static size_t endless_sent;

static ssize_t endless_bytes(const struct msghdr *msg)
{
	const struct raw_frame f = { .op = RAW_WRITE };
	uint8_t hdr[RAW_HDR];
	size_t n = 0;

	raw_encode(hdr, &f);
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		uint8_t *p = msg->msg_iov[i].iov_base;

		for (size_t k = 0; k < msg->msg_iov[i].iov_len; k++)
			p[k] = hdr[endless_sent++ % RAW_HDR];
		n += msg->msg_iov[i].iov_len;
	}
	return (ssize_t)n;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	nrecvmsg++;
	return fd == endless_fd ? endless_bytes(msg) : __real_recvmsg(fd, msg, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	nsendmsg++;
	npieces = MAX(npieces, msg->msg_iovlen);
	return __real_sendmsg(fd, msg, flags);
}

static void put(int fd, const struct raw_frame *f, const void *payload)
{
	uint8_t hdr[RAW_HDR];

	raw_encode(hdr, f);
	raw_send(&w, fd, hdr, sizeof(hdr));
	if (payload)
		raw_send(&w, fd, payload, f->length);
}

static void expect(int fd, const struct raw_frame *f, const void *payload)
{
	uint8_t want[RAW_HDR], *got = malloc(RAW_HDR + f->length);

	check(got != NULL);
	raw_encode(want, f);
	raw_recv(&w, fd, got, RAW_HDR + f->length);
	check(memcmp(want, got, RAW_HDR) == 0);
	check(f->length == 0 || memcmp(payload, got + RAW_HDR, f->length) == 0);
	free(got);
}

static void expect_end(int fd, uint32_t status)
{
	struct raw_frame f = { .op = RAW_DISCONNECT, .imm = status };
	uint8_t end;

	expect(fd, &f, NULL);
	check_eq(raw_recv_all(&w, fd, &end, 1), 0);
}

/* Each kind of request as bytes, one system call for a chain. */
FAB_TEST_ALONE(bytes_of_requests)
{
	static const uint8_t vector[RAW_HDR] = {
		5, 0, 0, 0, 4, 3, 2, 0, 0xa1, 0xb2, 0xc3, 0xd4,
		0x44, 0x33, 0x22, 0x11, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
	};
	const struct raw_frame want[] = {
		{ .op = RAW_WRITE, .length = 10, .rkey = 0x11223344, .addr = 0x1000 },
		{ .op = RAW_SEND, .length = 10 },
		{ .op = RAW_SEND_IMM, .imm = 7 },
		{ .op = RAW_SEND_INV, .length = 10, .rkey = 0x55 },
		{ .op = RAW_WRITE_IMM, .imm = 9 },
	};
	struct raw_frame big = { .op = RAW_WRITE_IMM, .length = 0x00020304, .imm = 0xa1b2c3d4,
				 .rkey = 0x11223344, .addr = 0x1122334455667788 };
	uint8_t hdr[RAW_HDR];
	struct ibv_send_wr wr[5];
	struct region src;
	struct ibv_sge sge;
	struct end *e;
	int fd = raw_connect(&w, &e, &default_attr);

	raw_encode(hdr, &big);
	check(memcmp(hdr, vector, sizeof(hdr)) == 0);

	src = region_create(e->pd, big.length, 0);
	memset(src.mem, 0x3c, src.len);
	sge = region_sge(&src, 0, 10);
	wr[0] = wr_write(0, &sge, 0x1000, 0x11223344);
	wr[1] = wr_send(1, &sge);
	wr[2] = wr_send(2, NULL);
	wr[2].opcode = IBV_WR_SEND_WITH_IMM;
	wr[2].imm_data = htobe32(7);
	wr[3] = wr_send(3, &sge);
	wr[3].opcode = IBV_WR_SEND_WITH_INV;
	wr[3].invalidate_rkey = 0x55;
	wr[4] = wr_write_imm(4, NULL, 0, 0, 9);
	nsendmsg = 0;
	check_eq(post(e, wr, 5), 0);
	check_eq(nsendmsg, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(want); i++)
		expect(fd, &want[i], src.mem);
	sge.length = big.length;
	wr[0] = wr_write_imm(5, &sge, big.addr, big.rkey, big.imm);
	check_eq(post(e, wr, 1), 0);
	expect(fd, &big, src.mem);

	fab_disconnect(e->conn);
	expect_end(fd, 0);
	world_until(&w, e->drained);
	region_destroy(&src);
	end_free(e);
	close(fd);
}

/* A sleeper is woken for each byte; and what is not there is not asked for. */
FAB_TEST_ALONE(byte_at_a_time)
{
	struct raw_frame f[4] = {
		{ .op = RAW_WRITE, .length = 100 },
		{ .op = RAW_WRITE_IMM, .length = 3, .imm = 1 },
		{ .op = RAW_SEND, .length = 50 },
		{ .op = RAW_WRITE_IMM, .imm = 2 },
	};
	uint8_t stream[4 * RAW_HDR + 153], *p = stream;
	struct ibv_recv_wr recv;
	struct region dst;
	struct ibv_sge sge;
	struct end *e;
	int fd = raw_connect(&w, &e, &default_attr);

	dst = region_create(e->pd, 4096, RIGHTS);
	check_eq(post_recvs(e, 0, 1), 0);
	sge = region_sge(&dst, 1000, 64);
	recv = (struct ibv_recv_wr){ .wr_id = recv_id(1), .sg_list = &sge, .num_sge = 1 };
	check_eq(fab_post_recv(e->conn, &recv), 0);
	check_eq(post_recvs(e, 2, 1), 0);
	for (unsigned i = 0; i < 4; i++) {
		if (f[i].op == RAW_WRITE || f[i].length == 3) {
			f[i].rkey = dst.mr->rkey;
			f[i].addr = (uintptr_t)dst.mem + i * 200;
		}
		raw_encode(p, &f[i]);
		memset(p + RAW_HDR, 'a' + (int)i, f[i].length);
		p += RAW_HDR + f[i].length;
	}
	nrecvmsg = 0;
	for (size_t i = 0; i < sizeof(stream); i++) {
		raw_send(&w, fd, stream + i, 1);
		world_settle(&w, 0);
	}
	world_until(&w, e->nrecvs == 3);
	/* Within a frame a second read looks for the end of the stream. */
	check(nrecvmsg <= 2 * sizeof(stream) + 2);
	check_eq(dst.mem[0], 'a');
	check_eq(dst.mem[99], 'a');
	check_eq(dst.mem[100], 0);
	check_eq(dst.mem[202], 'b');
	check_eq(dst.mem[1049], 'c');
	check_eq(dst.mem[1050], 0);
	check_eq(e->recvs[1].wc.byte_len, 50);
	close(fd);
	world_until(&w, e->drained);
	check(strcmp(fab_conn_cause(e->conn), "peer closed") == 0);
	region_destroy(&dst);
	end_free(e);
}

/* Headers that cost the connection, with what the peer is told. */
static const struct bad {
	const char *cause;
	uint32_t status;
	struct raw_frame f;
} bad_frames[] = {
	{ "unknown opcode", IBV_WC_BAD_RESP_ERR, { .op = 0 } },
	{ "unknown opcode", IBV_WC_BAD_RESP_ERR, { .op = 6 } },
	{ "unknown opcode", IBV_WC_BAD_RESP_ERR, { .op = 255 } },
	{ "unknown flag", IBV_WC_BAD_RESP_ERR, { .op = RAW_SEND, .flags = 1 } },
	{ "unknown flag", IBV_WC_BAD_RESP_ERR, { .op = RAW_WRITE_IMM, .flags = 0x80 } },
	{ "reserved bits", IBV_WC_BAD_RESP_ERR, { .op = RAW_SEND, .reserved = 0x100 } },
	{ "unused field", IBV_WC_BAD_RESP_ERR, { .op = RAW_SEND, .imm = 1 } },
	{ "unused field", IBV_WC_BAD_RESP_ERR, { .op = RAW_SEND, .rkey = 1 } },
	{ "unused field", IBV_WC_BAD_RESP_ERR, { .op = RAW_SEND_IMM, .addr = 1 } },
	{ "unused field", IBV_WC_BAD_RESP_ERR, { .op = RAW_SEND_INV, .imm = 1, .rkey = 1 } },
	{ "unused field", IBV_WC_BAD_RESP_ERR, { .op = RAW_WRITE, .imm = 1 } },
	{ "unused field", IBV_WC_BAD_RESP_ERR, { .op = RAW_DISCONNECT, .length = 1 } },
	{ "too long", IBV_WC_BAD_RESP_ERR, { .op = RAW_SEND, .length = 0x40000001 } },
	{ "too long", IBV_WC_BAD_RESP_ERR, { .op = RAW_WRITE, .length = UINT32_MAX } },
	{ "handshake opcode", IBV_WC_BAD_RESP_ERR,
	  { .op = RAW_ACCEPT, .rkey = 1, .addr = 0x0070637453525452 } },
	{ "handshake opcode", IBV_WC_BAD_RESP_ERR,
	  { .op = RAW_CONNECT, .rkey = 1, .addr = 0x0070637453525452 } },
	{ "stale key", IBV_WC_REM_ACCESS_ERR, { .op = RAW_WRITE, .length = 1, .rkey = 0x7f } },
	{ "unknown key", IBV_WC_REM_ACCESS_ERR,
	  { .op = RAW_WRITE_IMM, .length = 1, .rkey = 0x12345678 } },
	{ "unknown key", IBV_WC_REM_ACCESS_ERR,
	  { .op = RAW_WRITE, .length = 1, .rkey = 0xffffff00 } },
	{ "remote invalidate of the key of", IBV_WC_REM_INV_REQ_ERR,
	  { .op = RAW_SEND_INV, .rkey = 1 } },
	{ "remote invalidate of the key of", IBV_WC_REM_INV_REQ_ERR, { .op = RAW_SEND_INV } },
	{ "longer than its receive", IBV_WC_LOC_LEN_ERR, { .op = RAW_SEND, .length = 1 } },
	{ "peer disconnected", 0, { .op = RAW_DISCONNECT } },
	{ "remote access error", 0, { .op = RAW_DISCONNECT, .imm = IBV_WC_REM_ACCESS_ERR } },
	{ "peer failed", 0, { .op = RAW_DISCONNECT, .imm = 0xffffffff } },
};

FAB_TEST_ALONE(bad_headers)
{
	for (unsigned i = 0; i < ARRAY_SIZE(bad_frames); i++) {
		const struct bad *b = &bad_frames[i];
		struct region dst;
		struct end *e;
		int fd = raw_connect(&w, &e, &default_attr);

		dst = region_create(e->pd, 4096, RIGHTS);
		check_eq(post_recvs(e, 0, 2), 0);
		/* The header is enough, its payload never comes. */
		put(fd, &b->f, NULL);
		world_until(&w, e->drained);
		if (!strstr(fab_conn_cause(e->conn), b->cause)) {
			fprintf(stderr, "cause \"%s\" does not say \"%s\"\n",
				fab_conn_cause(e->conn), b->cause);
			exit(1);
		}
		expect_end(fd, b->status);
		check_eq(e->nrecvs, 2);
		for (unsigned k = 0; k < 2; k++)
			check(e->recvs[k].wc.status != IBV_WC_SUCCESS);
		region_destroy(&dst);
		end_free(e);
		close(fd);
	}
}

FAB_TEST_ALONE(half_a_frame)
{
	struct raw_frame f = { .op = RAW_WRITE_IMM, .length = 4096 };

	for (int with_payload = 0; with_payload < 2; with_payload++) {
		uint8_t buf[RAW_HDR + 100];
		struct region dst;
		struct end *e;
		int fd = raw_connect(&w, &e, &default_attr);

		dst = region_create(e->pd, 4096, RIGHTS);
		check_eq(post_recvs(e, 0, 1), 0);
		f.rkey = dst.mr->rkey;
		f.addr = (uintptr_t)dst.mem;
		raw_encode(buf, &f);
		memset(buf + RAW_HDR, 1, 100);
		raw_send(&w, fd, buf, with_payload ? sizeof(buf) : RAW_HDR - 1);
		close(fd);
		world_until(&w, e->drained);
		check(strstr(fab_conn_cause(e->conn), "middle of a frame"));
		check_eq(e->nrecvs, 1);
		check_eq(e->recvs[0].wc.status, IBV_WC_WR_FLUSH_ERR);
		region_destroy(&dst);
		end_free(e);
	}
}

/* Small buffers, a slow reader that takes odd pieces: not a byte is lost, doubled or reordered. */
FAB_TEST_ALONE(partial_writes)
{
	enum { N = 60, MAX = 9000 };
	struct raw_frame f = { .op = RAW_WRITE_IMM, .rkey = 5, .addr = 77 };
	uint8_t *want = malloc(N * (RAW_HDR + MAX)), *p = want, piece[1000];
	int small = 4096, fd;
	struct ibv_send_wr wr;
	struct ibv_sge sge[2];
	struct region src;
	unsigned seed = 1;
	struct end *e;
	short events;
	bool rearm = false;

	check(want != NULL);
	fd = raw_connect(&w, &e, &default_attr);
	check_eq(setsockopt(fab_conn_fd(e->conn), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	check_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	src = region_create(e->pd, MAX, 0);
	for (unsigned i = 0; i < MAX; i++)
		src.mem[i] = (uint8_t)(i % 253);
	check_eq(fab_arm(e->conn, &events), 0);
	check_eq(events, POLLIN);
	for (unsigned i = 0; i < N; i++) {
		seed = seed * 1103515245 + 12345;
		f.length = i % 5 ? seed / 65536 % MAX : 0;
		f.imm = i;
		sge[0] = region_sge(&src, 0, f.length / 3);
		sge[1] = region_sge(&src, f.length / 3, f.length - f.length / 3);
		wr = wr_write_imm(i, sge, f.addr, f.rkey, i);
		wr.num_sge = 2;
		check_eq(post(e, &wr, 1), 0);
		rearm |= fab_need_rearm(e->conn);
		raw_encode(p, &f);
		memcpy(p + RAW_HDR, src.mem, f.length);
		p += RAW_HDR + f.length;
	}
	/* The socket is full, and a sleeper that waits for POLLIN has to be told. */
	check(rearm);
	check_eq(fab_arm(e->conn, &events), 0);
	check_eq(events, POLLIN | POLLOUT);
	check(!fab_need_rearm(e->conn));
	for (uint8_t *q = want; q < p;) {
		seed = seed * 1103515245 + 12345;
		size_t n = MIN((size_t)(p - q), 1 + seed / 65536 % sizeof(piece));

		raw_recv(&w, fd, piece, n);
		check(memcmp(q, piece, n) == 0);
		q += n;
	}
	world_settle(&w, 0);
	check_eq(fab_arm(e->conn, &events), 0);
	check_eq(events, POLLIN);
	close(fd);
	world_until(&w, e->drained);
	region_destroy(&src);
	end_free(e);
	free(want);
}

/* A client whose program stands still acknowledges nothing more once its socket is full, and the
 * kernel below it answers each probe: its connection ends, and gives back what it holds. */
FAB_TEST_ALONE(closed_window)
{
	enum { N = 60, LEN = 9000 };
	int small = 4096, fd;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct region src;
	struct end *e;

	fab_cm_set_silence(w.cm[0], 1000);
	fd = raw_connect(&w, &e, &default_attr);
	check_eq(setsockopt(fab_conn_fd(e->conn), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	check_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	src = region_create(e->pd, LEN, 0);
	sge = region_sge(&src, 0, LEN);
	for (unsigned i = 0; i < N; i++) {
		wr = wr_write_imm(i, &sge, 77, 5, i);
		check_eq(post(e, &wr, 1), 0);
	}
	world_until(&w, e->drained);
	check(strcmp(fab_conn_cause(e->conn), strerror(ETIMEDOUT)) == 0);
	check(e->nsends && e->sends[e->nsends - 1].id == N - 1);
	check_eq(e->sends[e->nsends - 1].wc.status, IBV_WC_WR_FLUSH_ERR);
	close(fd);
	region_destroy(&src);
	end_free(e);
}

#define TX_IOV_MAX 128u			/* as tcp-tx.c has it */

/* A chain of @n requests of @sges elements, each of which is a piece beside the header, takes
 * @calls. */
static void chain_of_pieces(unsigned n, unsigned sges, unsigned calls)
{
	const struct fab_qp_attr attr = { .max_send_wr = 4 * TX_IOV_MAX, .max_recv_wr = 1,
					  .max_send_sge = 2 };
	struct raw_frame f = { .op = RAW_WRITE_IMM, .rkey = 5, .addr = 77, .length = 10 * sges };
	static struct ibv_send_wr wr[4 * TX_IOV_MAX];
	struct ibv_sge sge[2];
	struct region src;
	struct end *e;
	int fd = raw_connect(&w, &e, &attr);

	src = region_create(e->pd, 20, 0);
	for (unsigned i = 0; i < 20; i++)
		src.mem[i] = (uint8_t)(i + 1);
	for (unsigned i = 0; i < 2; i++)
		sge[i] = region_sge(&src, 10 * i, 10);
	for (unsigned i = 0; i < n; i++) {
		wr[i] = wr_write_imm(i, sge, f.addr, f.rkey, i);
		wr[i].num_sge = (int)sges;
	}
	nsendmsg = npieces = 0;
	check_eq(post(e, wr, n), 0);
	check_eq(nsendmsg, calls);
	check(npieces <= TX_IOV_MAX);
	for (f.imm = 0; f.imm < n; f.imm++)
		expect(fd, &f, src.mem);
	close(fd);
	world_until(&w, e->drained);
	region_destroy(&src);
	end_free(e);
}

FAB_TEST_ALONE(pieces_of_a_call)
{
	for (unsigned sges = 0; sges <= 2; sges++) {
		unsigned n = TX_IOV_MAX / (1 + sges);	/* as many as one call takes */

		chain_of_pieces(n - 1, sges, 1);
		chain_of_pieces(n, sges, 1);
		chain_of_pieces(n + 1, sges, 2);
		chain_of_pieces(4 * n, sges, 4);
	}
}

/* Where the peer waits for payload nothing else may come, DISCONNECT neither: it would be
 * placed. */
FAB_TEST_ALONE(disconnect_inside_a_frame)
{
	struct raw_frame f = { .op = RAW_WRITE, .length = 1 << 20, .rkey = 5, .addr = 77 };
	uint8_t want[RAW_HDR], *got = malloc(RAW_HDR + f.length);
	struct ibv_send_wr wr;
	struct pollfd room;
	struct ibv_sge sge;
	struct region src;
	int small = 4096, fd;
	size_t n;
	struct end *e;

	check(got != NULL);
	fd = raw_connect(&w, &e, &default_attr);
	check_eq(setsockopt(fab_conn_fd(e->conn), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	src = region_create(e->pd, f.length, 0);
	memset(src.mem, 0x3c, src.len);
	sge = region_sge(&src, 0, f.length);
	wr = wr_write(0, &sge, f.addr, f.rkey);
	check_eq(post(e, &wr, 1), 0);
	/* Room again, so that it is no full socket that keeps DISCONNECT back. */
	room = (struct pollfd){ .fd = fab_conn_fd(e->conn), .events = POLLOUT };
	for (n = 0; !poll(&room, 1, 0); n += RAW_HDR)
		check_eq(recv(fd, got + n, RAW_HDR, MSG_WAITALL), RAW_HDR);
	fab_disconnect(e->conn);
	n += raw_recv_all(&w, fd, got + n, RAW_HDR + f.length - n);
	check(n > RAW_HDR && n < RAW_HDR + f.length);
	raw_encode(want, &f);
	check(memcmp(want, got, RAW_HDR) == 0);
	check(memcmp(src.mem, got + RAW_HDR, n - RAW_HDR) == 0);
	world_until(&w, e->drained);
	region_destroy(&src);
	end_free(e);
	close(fd);
	free(got);
}

/* One recv for what came together, one behind an arm or a full poll, where bytes may have come
 * since, and none where nothing can be. */
FAB_TEST_ALONE(system_calls)
{
	struct raw_frame f = { .op = RAW_WRITE_IMM, .length = 1000 };
	static uint8_t buf[8][RAW_HDR + 1000];
	struct region dst;
	struct ibv_wc wc[16];
	struct end *e;
	short events;
	int fd = raw_connect(&w, &e, &default_attr);
	struct pollfd pfd = { .fd = fab_conn_fd(e->conn), .events = POLLIN };

	e->quota = 0;
	dst = region_create(e->pd, 4096, RIGHTS);
	check_eq(post_recvs(e, 0, 16), 0);
	f.rkey = dst.mr->rkey;
	f.addr = (uintptr_t)dst.mem;
	memset(buf, 0, sizeof(buf));
	for (unsigned i = 0; i < ARRAY_SIZE(buf); i++)
		raw_encode(buf[i], &f);
	check_eq(fab_poll(e->conn, wc, 16), 0);
	check_eq(fab_arm(e->conn, &events), 0);
	raw_send(&w, fd, buf, sizeof(buf));
	check_eq(poll(&pfd, 1, WAIT_LIMIT_MS), 1);
	nrecvmsg = 0;
	check_eq(fab_poll(e->conn, wc, 3), 3);
	check_eq(nrecvmsg, 1);
	check_eq(fab_arm(e->conn, &events), 1);
	check_eq(fab_poll(e->conn, wc, 16), 5);
	check_eq(nrecvmsg, 2);
	check_eq(fab_poll(e->conn, wc, 16), 0);
	check_eq(fab_poll(e->conn, wc, 16), 0);
	check_eq(nrecvmsg, 2);
	check_eq(fab_arm(e->conn, &events), 0);
	check_eq(fab_poll(e->conn, wc, 16), 0);
	check_eq(nrecvmsg, 3);
	e->quota = 16;
	close(fd);
	world_until(&w, e->drained);
	region_destroy(&dst);
	end_free(e);
}

/* Frames that complete nothing, without an end: each poll takes its share and no more. */
FAB_TEST_ALONE(endless)
{
	struct ibv_wc wc[16];
	struct end *e;
	short events;
	int fd = raw_connect(&w, &e, &default_attr);

	check_eq(fab_arm(e->conn, &events), 0);
	for (int i = 0; i < 3; i++) {
		endless_fd = fab_conn_fd(e->conn);
		nrecvmsg = 0;
		check_eq(fab_poll(e->conn, wc, 16), 0);
		check(nrecvmsg >= 1 && nrecvmsg <= 20);
		check_eq(fab_arm(e->conn, &events), 1);
	}
	endless_fd = -1;
	fab_disconnect(e->conn);
	world_until(&w, e->drained);
	end_free(e);
	close(fd);
}

/* Posts that are errors of the program: told, and they fail the connection. */
FAB_TEST_ALONE(bad_posts)
{
	const struct fab_qp_attr small = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1 };

	for (int i = 0; i < 10; i++) {
		static const int want[] = { -ENOMEM, -ENOMEM, -EINVAL, -EOPNOTSUPP, -EINVAL,
					    -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL };
		struct ibv_send_wr wr[5];
		struct ibv_sge sge[2];
		struct region r;
		struct end *e;
		int fd = raw_connect(&w, &e, &small), rc;

		r = region_create(e->pd, 64, 0);
		sge[0] = sge[1] = region_sge(&r, 0, 64);
		for (unsigned k = 0; k < 5; k++)
			wr[k] = wr_write_imm(k, NULL, 0, 0, 0);
		if (i == 1)
			rc = post_recvs(e, 0, 5);
		else if (i == 4) {
			/* Receive into memory that is not for writing. */
			struct ibv_recv_wr rwr = { .wr_id = recv_id(0), .sg_list = sge,
						   .num_sge = 1 };

			rc = fab_post_recv(e->conn, &rwr);
		} else {
			if (i == 2)
				wr[0].opcode = IBV_WR_LOCAL_INV;
			if (i == 3)
				wr[0].opcode = IBV_WR_RDMA_READ;
			if (i == 9)
				wr[0].opcode = IBV_WR_BIND_MW;
			if (i == 5)
				sge[0].length = 65;
			if (i == 6)
				sge[0].lkey ^= 1;
			if (i == 7)
				wr[0].send_flags = IBV_SEND_INLINE;
			if (i == 8)
				wr[0].num_sge = 2;
			if (i == 2 || i == 5 || i == 6 || i == 8)
				wr[0].sg_list = sge;
			if (i == 2 || i == 5 || i == 6)
				wr[0].num_sge = 1;
			rc = post(e, wr, i == 0 ? 5 : 1);
		}
		check_eq(rc, want[i]);
		check(fab_conn_cause(e->conn)[0] != '\0');
		world_until(&w, e->drained);
		region_destroy(&r);
		end_free(e);
		close(fd);
	}
}

/* Memory that is not there: the connection fails, and nothing else. */
FAB_TEST_ALONE(bad_memory)
{
	/* Mapped, but behind the end of its file. */
	int empty = memfd_create("empty", MFD_CLOEXEC);
	void *none = mmap(NULL, 4096, PROT_READ, MAP_SHARED, empty, 0);
	struct ibv_send_wr wr;
	struct ibv_sge sge = { .addr = (uintptr_t)none, .length = 4096 };
	struct end *e;
	int fd = raw_connect(&w, &e, &default_attr);

	check(none != MAP_FAILED);
	check(fab_pd_local_dma_lkey(e->pd, &sge.lkey));
	wr = wr_send(0, &sge);
	check_eq(post(e, &wr, 1), 0);
	world_until(&w, e->drained);
	check(strcmp(fab_conn_cause(e->conn), strerror(EFAULT)) == 0);
	check_eq(e->nsends, 1);
	check_eq(e->sends[0].wc.status, IBV_WC_WR_FLUSH_ERR);
	end_free(e);
	close(fd);
	munmap(none, 4096);
	close(empty);
}

/* The peer's program dies with our bytes unread: both ways to hear of it name the reset. */
FAB_TEST_ALONE(reset)
{
	for (int posting = 0; posting < 2; posting++) {
		struct linger now = { .l_onoff = 1 };
		struct ibv_send_wr wr = wr_send(0, NULL);
		struct end *e;
		int fd = raw_connect(&w, &e, &default_attr);

		check_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
		close(fd);
		if (posting)
			check_eq(post(e, &wr, 1), 0);
		world_until(&w, e->drained);
		check(strcmp(fab_conn_cause(e->conn), strerror(ECONNRESET)) == 0);
		end_free(e);
	}
}

/* The header of a write into @dst and half of its bytes.  Returns the descriptor. */
static int half_a_write(struct end **e, struct fab_pd *pd, struct region *dst)
{
	struct raw_frame f = { .op = RAW_WRITE_IMM, .length = 1024, .imm = 1 };
	uint8_t stream[RAW_HDR + 512];
	int fd = raw_connect_pd(&w, e, &default_attr, pd);

	*dst = region_create((*e)->pd ? (*e)->pd : pd, f.length, RIGHTS);
	check_eq(post_recvs(*e, 0, 1), 0);
	f.rkey = dst->mr->rkey;
	f.addr = (uintptr_t)dst->mem;
	raw_encode(stream, &f);
	memset(stream + RAW_HDR, 0x5a, 512);
	raw_send(&w, fd, stream, sizeof(stream));
	world_settle(&w, 0);
	check_eq(dst->mem[511], 0x5a);
	return fd;
}

/* A key that is taken away stops what is written under it, and nothing else. */
FAB_TEST_ALONE(another_key_goes)
{
	struct region dst, other;
	uint8_t rest[512];
	struct end *e, *stopped;
	int fd = half_a_write(&e, NULL, &dst), stopped_fd = half_a_write(&stopped, e->pd, &other);

	region_revoke(&other);
	world_settle(&w, 0);
	check(stopped->drained);
	memset(rest, 0xa5, sizeof(rest));
	raw_send(&w, fd, rest, sizeof(rest));
	world_until(&w, e->nrecvs == 1);
	check(strstr(fab_conn_cause(stopped->conn), "was revoked during a write"));
	check_eq(e->recvs[0].wc.status, IBV_WC_SUCCESS);
	check(dst.mem[511] == 0x5a && dst.mem[512] == 0xa5 && dst.mem[1023] == 0xa5);
	close(fd);
	close(stopped_fd);
	world_until(&w, e->drained);
	region_destroy(&dst);
	region_destroy(&other);
	end_free(stopped);
	end_free(e);
}

/* A byte from the peer behind @fd at the start of @dst under @key is refused, and costs @e its
 * connection. */
static void expect_refused_write(int fd, struct end *e, const struct region *dst, uint32_t key)
{
	struct raw_frame f = { .op = RAW_WRITE, .length = 1, .rkey = key,
			       .addr = (uintptr_t)dst->mem };
	uint8_t stream[RAW_HDR + 1] = { 0 };

	raw_encode(stream, &f);
	stream[RAW_HDR] = 0x5a;
	raw_send(&w, fd, stream, sizeof(stream));
	world_settle(&w, 0);
	check(e->drained);
	check_eq(dst->mem[0], 0);
	close(fd);
}

/* The next region has the slot of the last one, and another key. */
FAB_TEST_ALONE(key_of_the_region_before)
{
	struct region before, dst;
	struct end *e;
	int fd = raw_connect(&w, &e, &default_attr);
	uint32_t key;

	before = region_create(e->pd, 4096, RIGHTS);
	key = before.mr->rkey;
	region_destroy(&before);
	dst = region_create(e->pd, 4096, RIGHTS);
	check(key != dst.mr->rkey);
	check_eq(key >> 8, dst.mr->rkey >> 8);
	expect_refused_write(fd, e, &dst, key);
	region_destroy(&dst);
	end_free(e);
}

/* A window of type 2 is its connection's. */
FAB_TEST_ALONE(window_of_another_connection)
{
	struct end *e, *other;
	struct ibv_send_wr wr;
	struct region dst;
	struct ibv_mw *mw;
	int fd = raw_connect(&w, &e, &default_attr);
	int other_fd = raw_connect_pd(&w, &other, &default_attr, e->pd);

	dst = region_create(e->pd, 4096, RIGHTS | IBV_ACCESS_MW_BIND);
	mw = fab_alloc_mw(e->pd, IBV_MW_TYPE_2);
	check(mw != NULL);
	wr = wr_bind(0, mw, &dst, 0, dst.len);
	check_eq(post(e, &wr, 1), 0);
	expect_refused_write(other_fd, other, &dst, mw->rkey);
	close(fd);
	world_until(&w, e->drained);
	check_eq(fab_dealloc_mw(mw), 0);
	region_destroy(&dst);
	end_free(other);
	end_free(e);
}

/* Who arms while a send completion waits to be polled is not to sleep. */
FAB_TEST_ALONE(completion_before_arm)
{
	struct ibv_send_wr wr;
	struct end *e;
	short events;
	int fd = raw_connect(&w, &e, &default_attr);

	world_settle(&w, 0);
	check_eq(fab_arm(e->conn, &events), 0);
	wr = wr_send(1, NULL);
	wr.send_flags |= IBV_SEND_SIGNALED;
	check_eq(post(e, &wr, 1), 0);
	check_eq(fab_arm(e->conn, &events), 1);
	world_settle(&w, 0);
	check_eq(fab_arm(e->conn, &events), 0);
	close(fd);
	world_until(&w, e->drained);
	end_free(e);
}

/* ---- polled while another thread fails the connection ---- */

static atomic_bool failer_waits, failer_may_go;
static _Thread_local bool is_failer;

int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);

/* It has said that the connection has failed, and goes on using it. */
int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	if (is_failer) {
		is_failer = false;
		atomic_store(&failer_waits, true);
		while (!atomic_load(&failer_may_go))
			sched_yield();
	}
	return __real_pthread_mutex_lock(m);
}

static void *fail(void *arg)
{
	is_failer = true;
	fab_disconnect(arg);
	return NULL;
}

/* Drained means that it may be destroyed. */
FAB_TEST_ALONE(drained_after_the_failure)
{
	struct ibv_wc wc[8];
	pthread_t thread;
	struct end *e;
	int fd = raw_connect(&w, &e, &default_attr);

	check_eq(pthread_create(&thread, NULL, fail, e->conn), 0);
	while (!atomic_load(&failer_waits))
		sched_yield();
	check_eq(fab_poll(e->conn, wc, ARRAY_SIZE(wc)), 0);
	atomic_store(&failer_may_go, true);
	check_eq(pthread_join(thread, NULL), 0);
	world_until(&w, e->drained);
	end_free(e);
	close(fd);
}

int main(void)
{
	fab_tests_run(fab_provider_find("tcp"), &w, NULL, NULL);
	return 0;
}
