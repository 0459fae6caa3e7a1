/* SPDX-License-Identifier: BSD-3-Clause */
/* The plain socket's side of a connection.  Owns nothing; sockets are the test's to close. */
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "raw.h"

void raw_encode(uint8_t *buf, const struct raw_frame *f)
{
	uint16_t reserved = htole16(f->reserved);
	uint32_t length = htole32(f->length), imm = htobe32(f->imm), rkey = htole32(f->rkey);
	uint64_t addr = htole64(f->addr);

	buf[0] = f->op;
	buf[1] = f->flags;
	memcpy(buf + 2, &reserved, 2);
	memcpy(buf + 4, &length, 4);
	memcpy(buf + 8, &imm, 4);
	memcpy(buf + 12, &rkey, 4);
	memcpy(buf + 16, &addr, 8);
}

struct raw_frame raw_handshake(enum raw_op op, uint32_t length)
{
	struct raw_frame f = { .op = (uint8_t)op, .length = length, .rkey = 1 };

	memcpy(&f.addr, "RTRStcp", 8);
	f.addr = le64toh(f.addr);
	return f;
}

int raw_socket(struct world *w)
{
	int fd = socket(w->addr.ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	check(fd >= 0);
	check_eq(connect(fd, (struct sockaddr *)&w->addr.ss, w->addr.len), 0);
	return fd;
}

int raw_socket_from(struct world *w, uint8_t host)
{
	struct sockaddr_in from = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	check(fd >= 0);
	from.sin_addr.s_addr = htonl(0x7f000000u + host);
	check_eq(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	check_eq(connect(fd, (struct sockaddr *)&w->addr.ss, w->addr.len), 0);
	return fd;
}

void raw_send(struct world *w, int fd, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	ssize_t n;

	while (len) {
		n = send(fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0) {
			check_eq(errno, EAGAIN);
			world_step(w, 1);
			continue;
		}
		p += n;
		len -= (size_t)n;
	}
}

void raw_recv(struct world *w, int fd, void *buf, size_t len)
{
	size_t got = raw_recv_all(w, fd, buf, len);

	check_eq(got, len);
}

size_t raw_recv_all(struct world *w, int fd, void *buf, size_t len)
{
	size_t got = 0;

	for (int idle = 0; got < len && idle < WAIT_LIMIT_MS;) {
		ssize_t n = recv(fd, (uint8_t *)buf + got, len - got, MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return got;
		if (n < 0) {
			check_eq(errno, EAGAIN);
			idle++;
			world_step(w, 1);
			continue;
		}
		got += (size_t)n;
	}
	return got;
}

int raw_connect(struct world *w, struct end **e, const struct fab_qp_attr *attr)
{
	return raw_connect_pd(w, e, attr, NULL);
}

int raw_connect_pd(struct world *w, struct end **e, const struct fab_qp_attr *attr,
		   struct fab_pd *pd)
{
	struct raw_frame f = raw_handshake(RAW_CONNECT, 0);
	uint8_t hdr[RAW_HDR], accept[RAW_HDR];
	int fd = raw_socket(w);

	raw_encode(hdr, &f);
	w->request = NULL;
	raw_send(w, fd, hdr, sizeof(hdr));
	world_until(w, w->request);
	*e = w->request;
	end_create_qp(*e, pd, attr);
	check_eq(end_accept(*e, NULL, 0), 0);
	world_until(w, (*e)->established);
	f.op = RAW_ACCEPT;
	raw_encode(hdr, &f);
	raw_recv(w, fd, accept, sizeof(accept));
	check(memcmp(hdr, accept, sizeof(hdr)) == 0);
	return fd;
}

int raw_listen(const struct world *w, struct fab_addr *addr)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in *in = (struct sockaddr_in *)&addr->ss;

	*addr = (struct fab_addr){ .provider = w->p, .len = sizeof(*in) };
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	check(fd >= 0);
	check_eq(bind(fd, (struct sockaddr *)in, sizeof(*in)), 0);
	check_eq(listen(fd, 5), 0);
	check_eq(getsockname(fd, (struct sockaddr *)&addr->ss, &addr->len), 0);
	return fd;
}

struct end *raw_dial(struct world *w, int listener, const struct fab_addr *addr, int *fd)
{
	struct end *e = end_active(w, addr, &default_attr);

	check_eq(fab_connect(e->conn, NULL, 0), 0);
	*fd = accept(listener, NULL, NULL);
	check(*fd >= 0);
	return e;
}
