/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocking sockets with a time-out; owns nothing, one thread. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "raw.h"

int raw_connect(void)
{
	struct timeval tv = { .tv_sec = (time_t)(hrun.timeout_ms / 1000) };
	int fd;

	if (!over_tcp())
		skip();
	fd = socket(hrun.server.ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	expect(fd >= 0);
	expect(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	expect(!setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	expect(!connect(fd, (struct sockaddr *)&hrun.server.ss, hrun.server.len));
	return fd;
}

void raw_send_some(int fd, const void *buf, size_t len)
{
	const uint8_t *p = buf;

	while (len) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return;
		if (n <= 0)
			die("send: %s", strerror(errno));
		p += n;
		len -= (size_t)n;
	}
}

void raw_send(int fd, const void *buf, size_t len)
{
	if (send(fd, buf, len, MSG_NOSIGNAL) != (ssize_t)len)
		die("send of %zu bytes: %s", len, strerror(errno));
}

bool raw_try_send(int fd, const void *buf, size_t len)
{
	return send(fd, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

void raw_expect_end(int fd)
{
	uint64_t deadline = hdeadline();
	uint8_t buf[1024];
	ssize_t n;

	do {
		n = recv(fd, buf, sizeof(buf), 0);
		if (hnow_ms() > deadline)
			die("the server goes on talking");
	} while (n > 0);
	if (n < 0 && errno != ECONNRESET)
		die("the server does not hang up: %s", strerror(errno));
}

static void raw_recv(int fd, void *buf, size_t len)
{
	/* even for 0 bytes it would wait for some */
	ssize_t n = len ? recv(fd, buf, len, MSG_WAITALL) : 0;

	if (n != (ssize_t)len)
		die("%zd of %zu bytes from the server: %s", n, len,
		    n < 0 ? strerror(errno) : "end");
}

/* A frame of @op with @len bytes or more, of which @len are kept. */
static void recv_frame(int fd, enum tcp_frame_op op, void *payload, size_t len)
{
	uint8_t hdr[TCP_FRAME_HDR_LEN];
	static uint8_t rest[65536];
	struct tcp_frame f;
	const char *why;

	raw_recv(fd, hdr, sizeof(hdr));
	why = tcp_frame_decode(hdr, &f);
	if (why)
		die("a frame from the server: %s", why);
	if (f.op != op || f.length < len || f.length - len > sizeof(rest))
		die("opcode %u with %u bytes from the server, expected %u with %zu", f.op, f.length,
		    op, len);
	raw_recv(fd, payload, len);
	raw_recv(fd, rest, f.length - len);
}

static size_t frame(uint8_t *buf, const struct tcp_frame *f, const void *payload)
{
	tcp_frame_encode(buf, f);
	memcpy(buf + TCP_FRAME_HDR_LEN, payload, f->length);
	return TCP_FRAME_HDR_LEN + f->length;
}

size_t raw_connect_frame(uint8_t *buf)
{
	const struct tcp_frame f = { .op = TCP_FRAME_CONNECT, .rkey = TCP_FRAME_VERSION,
				     .addr = TCP_FRAME_MAGIC,
				     .length = sizeof(struct rtrs_msg_conn_req) };
	struct rtrs_conn_req req = { .cid_num = 1, .recon_cnt = 1,
				     .flags = RTRS_CONN_REQ_FIRST_CONN };
	struct rtrs_msg_conn_req m;

	expect(getrandom(req.sess_uuid, RTRS_UUID_LEN, 0) == RTRS_UUID_LEN);
	expect(getrandom(req.paths_uuid, RTRS_UUID_LEN, 0) == RTRS_UUID_LEN);
	rtrs_conn_req_encode(&m, &req);
	return frame(buf, &f, &m);
}

size_t raw_info_frame(uint8_t *buf, unsigned n)
{
	const struct tcp_frame f = { .op = TCP_FRAME_SEND,
				     .length = sizeof(struct rtrs_msg_info_req) };
	struct rtrs_msg_info_req m;
	char name[64];

	snprintf(name, sizeof(name), "raw-%d-%u", (int)getpid(), n);
	rtrs_info_req_encode(&m, name);
	return frame(buf, &f, &m);
}

void raw_expect_accept(int fd)
{
	struct rtrs_msg_conn_rsp m;
	struct rtrs_conn_rsp rsp;
	const char *why;

	recv_frame(fd, TCP_FRAME_ACCEPT, &m, sizeof(m));
	expect(!rtrs_conn_rsp_decode(&m, sizeof(m), false, &rsp, &why) && !rsp.status);
}

void raw_handshake(int fd)
{
	uint8_t buf[RAW_FRAME_MAX];

	raw_send(fd, buf, raw_connect_frame(buf));
	raw_expect_accept(fd);
}

void raw_expect_info(int fd, struct rtrs_region *chunks)
{
	union {
		struct rtrs_msg_info_rsp m;
		uint8_t bytes[sizeof(struct rtrs_msg_info_rsp) + sizeof(struct rtrs_sg_desc)];
	} rsp;

	recv_frame(fd, TCP_FRAME_SEND, rsp.bytes, sizeof(rsp.bytes));
	expect(le16_get(rsp.m.sg_cnt) >= 1);	/* all chunks, or the first of them */
	chunks->addr = le64_get(rsp.m.desc[0].addr);
	chunks->key = le32_get(rsp.m.desc[0].key);
	chunks->len = le32_get(rsp.m.desc[0].len);
}

void raw_info_named(int fd, unsigned n, struct rtrs_region *chunks)
{
	uint8_t buf[RAW_FRAME_MAX];

	raw_send(fd, buf, raw_info_frame(buf, n));
	raw_expect_info(fd, chunks);
}

void raw_info(int fd, struct rtrs_region *chunks)
{
	raw_info_named(fd, 0, chunks);
}
