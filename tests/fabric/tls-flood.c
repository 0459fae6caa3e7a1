/* SPDX-License-Identifier: BSD-3-Clause */
/* A flood of handshakes of TLS against a server, at a given rate:
 *
 *	tls-flood PORT GOOD-KEYS WRONG-KEYS PER-SECOND SECONDS
 *
 * Every other handshake has a wrong key, and 200 more connections stop in the middle of a hello.
 * Prints the numbers, and how long the slowest good handshake took.  Ends with 1 if a handshake had
 * another outcome than its key. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gnutls/gnutls.h>

#include "clock.h"
#include "fab-tls.h"
#include "harness.h"

#define THREADS 4
#define STALLED 200
#define STALLED_HOSTS 4		/* none has more than its share of places, 64 */

static struct sockaddr_in server = { .sin_family = AF_INET };
static struct fab_tls *good, *wrong;
static unsigned per_second, seconds;
static _Atomic unsigned done[2], astray;
static _Atomic uint64_t slowest_ms;

/* From 127.0.0.@host. */
static int dial(unsigned host)
{
	const struct timeval limit = { .tv_sec = 30 };
	struct sockaddr_in from = { .sin_family = AF_INET };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	check(fd >= 0);
	from.sin_addr.s_addr = htonl(0x7f000000u + host);
	check_eq(setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one)), 0);
	check_eq(bind(fd, (const struct sockaddr *)&from, sizeof(from)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	check_eq(connect(fd, (const struct sockaddr *)&server, sizeof(server)), 0);
	return fd;
}

static void shake(bool bad)
{
	struct fab_tls_end end = { .tls = bad ? wrong : good };
	uint64_t begun = clock_now_ms(), took;
	gnutls_session_t session;
	int fd = dial(1), rc;

	check_eq(fab_tls_session(&end, "127.0.0.1", &session), 0);
	gnutls_transport_set_int(session, fd);
	do {
		rc = gnutls_handshake(session);
	} while (rc < 0 && !gnutls_error_is_fatal(rc) && clock_now_ms() - begun < 30000);
	took = clock_now_ms() - begun;
	astray += bad ? rc != GNUTLS_E_FATAL_ALERT_RECEIVED : rc != 0;
	done[bad]++;
	if (!bad && took > slowest_ms)
		slowest_ms = took;
	fab_tls_session_end(&end, session);
	close(fd);
}

static void *flood(void *arg)
{
	uint64_t begun = clock_now_ms(), at;
	unsigned all = per_second * seconds / THREADS;

	for (unsigned i = 0; i < all; i++) {
		at = begun + (uint64_t)i * 1000 * THREADS / per_second;
		while (clock_now_ms() < at)
			usleep(500);
		shake(i % 2);
	}
	return NULL;
}

static struct fab_tls *read_keys(const char *file)
{
	const struct fab_tls_conf conf = { .asked = true, .mode = FAB_TLS_REQUIRE, .psk = file };
	struct fab_tls *tls = NULL;
	char err[256] = "";

	if (fab_tls_create(&conf, &tls, err, sizeof(err)))
		check_failed(__FILE__, __LINE__, err);
	return tls;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int stalled[STALLED];

	check_eq(argc, 6);
	server.sin_port = htons((uint16_t)atoi(argv[1]));
	server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	good = read_keys(argv[2]);
	wrong = read_keys(argv[3]);
	per_second = (unsigned)atoi(argv[4]);
	seconds = (unsigned)atoi(argv[5]);
	for (unsigned i = 0; i < STALLED; i++) {
		stalled[i] = dial(2 + i % STALLED_HOSTS);
		check_eq(send(stalled[i], "\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9, 0), 9);
	}
	for (unsigned i = 0; i < THREADS; i++)
		check_eq(pthread_create(&threads[i], NULL, flood, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < STALLED; i++)
		close(stalled[i]);
	printf("%u good, %u refused, %u astray, slowest %llu ms\n", done[0], done[1], astray,
	       (unsigned long long)slowest_ms);
	fab_tls_destroy(good);
	fab_tls_destroy(wrong);
	return astray != 0;
}
