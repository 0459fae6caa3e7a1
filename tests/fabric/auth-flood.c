/* SPDX-License-Identifier: BSD-3-Clause */
/* A flood of complete authentications in messages against a server, over plain tcp:
 *
 *	auth-flood PORT KEYS CLIENTS EACH
 *
 * CLIENTS at once, with the one key of KEYS, prove themselves EACH times, as fast as they can, and
 * take the proof of the server.  Prints the number, the time, and how long the slowest took.  Ends
 * with 1 if a proof failed. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "auth-chap.h"
#include "clock.h"
#include "harness.h"
#include "psk.h"
#include "rtrs-msg.h"
#include "tcp-frame.h"

#define CLIENTS_MAX 64

static struct sockaddr_in server = { .sin_family = AF_INET };
static struct psks keys;
static unsigned each;
static _Atomic unsigned proven;
static _Atomic uint64_t slowest_ms;

static void send_frame(int fd, uint8_t op, const void *data, size_t len)
{
	uint8_t buf[TCP_FRAME_HDR_LEN + 256];
	struct tcp_frame f = { .op = op, .length = (uint32_t)len };

	if (op == TCP_FRAME_CONNECT) {
		f.rkey = TCP_FRAME_VERSION;
		f.addr = TCP_FRAME_MAGIC;
	}
	check(len <= 256);
	tcp_frame_encode(buf, &f);
	memcpy(buf + TCP_FRAME_HDR_LEN, data, len);
	check_eq(send(fd, buf, TCP_FRAME_HDR_LEN + len, MSG_NOSIGNAL), TCP_FRAME_HDR_LEN + len);
}

/* Receive a frame with the opcode @op; returns the length of its @data. */
static size_t recv_frame(int fd, uint8_t op, uint8_t data[256])
{
	struct tcp_frame_wire hdr;
	size_t len;

	check_eq(recv(fd, &hdr, sizeof(hdr), MSG_WAITALL), sizeof(hdr));
	check_eq(hdr.op, op);
	len = le32_get(hdr.length);
	check(len <= 256);
	check_eq(recv(fd, data, len, MSG_WAITALL), len);
	return len;
}

/* Connect and ask for the proof; the messages that both ends have seen go to @where. */
static int greet(struct auth_where *where)
{
	struct rtrs_conn_req req = { .cid_num = 2, .flags = RTRS_CONN_REQ_FIRST_CONN,
				     .auth = RTRS_AUTHS_ASKS,
				     .auth_version = AUTH_VERSION };
	const struct timeval limit = { .tv_sec = 30 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct rtrs_msg_conn_req msg;
	uint8_t rsp[256];

	check(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	check_eq(connect(fd, (const struct sockaddr *)&server, sizeof(server)), 0);
	random_bytes(req.sess_uuid, sizeof(req.sess_uuid));
	random_bytes(req.paths_uuid, sizeof(req.paths_uuid));
	rtrs_conn_req_encode(&msg, &req);
	send_frame(fd, TCP_FRAME_CONNECT, &msg, sizeof(msg));
	check_eq(recv_frame(fd, TCP_FRAME_ACCEPT, rsp), sizeof(where->conn_rsp));
	memset(where, 0, sizeof(*where));
	memcpy(where->conn_req, (uint8_t *)&msg + 2, sizeof(where->conn_req));
	memcpy(where->conn_rsp, rsp, sizeof(where->conn_rsp));
	memcpy(where->channel.transport, "tcp", 3);
	return fd;
}

static void prove(void)
{
	uint64_t begun = clock_now_ms(), took;
	struct auth_chance chance;
	struct auth_where where;
	struct auth_reply reply;
	struct auth_chap chap;
	uint8_t msg[256];
	int fd = greet(&where);

	random_bytes(&chance, sizeof(chance));
	auth_chap_client(&chap, &where, &keys.all[0], &chance, &reply);
	do {
		send_frame(fd, TCP_FRAME_SEND, reply.bytes, reply.len);
		check_eq(auth_chap_take(&chap, msg, recv_frame(fd, TCP_FRAME_SEND, msg), &reply),
			 0);
	} while (reply.len);
	check_eq(chap.state, AUTH_PROVEN);
	auth_chap_end(&chap);
	close(fd);
	proven++;
	took = clock_now_ms() - begun;
	if (took > slowest_ms)
		slowest_ms = took;
}

static void *flood(void *arg)
{
	for (unsigned i = 0; i < each; i++)
		prove();
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t begun = clock_now_ms();
	pthread_t threads[CLIENTS_MAX];
	unsigned clients;
	char err[256];

	check_eq(argc, 5);
	server.sin_port = htons((uint16_t)atoi(argv[1]));
	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	check_eq(psk_read(argv[2], geteuid(), &keys, err, sizeof(err)), 0);
	clients = (unsigned)atoi(argv[3]);
	each = (unsigned)atoi(argv[4]);
	check(clients <= CLIENTS_MAX);
	for (unsigned i = 0; i < clients; i++)
		check_eq(pthread_create(&threads[i], NULL, flood, NULL), 0);
	for (unsigned i = 0; i < clients; i++)
		pthread_join(threads[i], NULL);
	printf("%u proven in %llu ms, slowest %llu ms\n", proven,
	       (unsigned long long)(clock_now_ms() - begun), (unsigned long long)slowest_ms);
	psk_free(&keys);
	return proven != clients * each;
}
