/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream of TLS, with GnuTLS as the client: bytes that wait inside the stream, full sockets, keys
 * that change, small records, all ends, and system calls, which are counted. */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "fab-tls-stream.h"
#include "fabric.h"
#include "unit.h"
#include "util.h"

static struct fab_tls *server_tls, *client_tls;
static struct fab_tls_stream *server;
static struct fab_tls_end client_end;
static gnutls_session_t client;
static int fds[2];			/* server, client */
static char why[FAB_TLS_WHY_LEN];

static struct fab_tls *make_tls(bool server_side, enum fab_tls_protocol protocol,
				const char *keys)
{
	char file[] = "/tmp/test-tls-stream.XXXXXX", err[512];
	int fd = mkstemp(file);
	struct fab_tls_conf conf = { .server = server_side, .protocol = protocol,
				     .psk = file };
	struct fab_tls *tls;

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, keys, strlen(keys)), (ssize_t)strlen(keys));
	close(fd);
	cr_assert_eq(fab_tls_create(&conf, &tls, err, sizeof(err)), 0, "%s", err);
	unlink(file);
	return tls;
}

#define KEY "alice:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
#define WRONG "alice:ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"

static void begin(void)
{
	server_tls = make_tls(true, FAB_TLS_NBD, KEY);
}

/* A stream of server_tls, and a client of client_tls. */
static void connect_ends(void)
{
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	server = fab_tls_stream_create(server_tls, fds[0], "", false);
	cr_assert_not_null(server);
	client_end.tls = client_tls;
	cr_assert_eq(fab_tls_session(&client_end, "", &client), 0);
	gnutls_transport_set_int(client, fds[1]);
}

/* A client with @keys, which names a protocol as NBD's or as RTRS' clients do. */
static void connect_client(const char *keys, enum fab_tls_protocol protocol)
{
	client_tls = make_tls(false, protocol, keys);
	connect_ends();
}

/* True if the socket of the server has what the stream waits for. */
static bool socket_ready(void)
{
	struct pollfd pfd = { .fd = fds[0], .events = POLLIN };

	if (fab_tls_stream_unsent(server))
		pfd.events |= POLLOUT;
	return poll(&pfd, 1, 0) == 1;
}

/* Both go on until both are done, or the server has failed.  What the server says. */
static int shake(void)
{
	int rc = GNUTLS_E_AGAIN, r = -EAGAIN;

	for (unsigned i = 0; i < 100 && (rc == GNUTLS_E_AGAIN || r == -EAGAIN); i++) {
		if (rc == GNUTLS_E_AGAIN)
			rc = gnutls_handshake(client);
		if (r == -EAGAIN && socket_ready())
			r = fab_tls_stream_handshake(server, why);
	}
	return r;
}

static void connected(void)
{
	connect_client(KEY, FAB_TLS_NBD);
	cr_assert_eq(shake(), 0, "%s", why);
}

static void end(void)
{
	fab_tls_stream_destroy(server);
	if (client)
		fab_tls_session_end(&client_end, client);
	fab_tls_destroy(client_tls);
	fab_tls_destroy(server_tls);
	if (fds[0])
		close(fds[0]);
	if (fds[1] > 0)
		close(fds[1]);
}

TestSuite(tls_stream, .init = begin, .fini = end);

static ssize_t take(void *buf, size_t len)
{
	struct iovec iov = { buf, len };
	struct fab_tls_take t = { .iov = &iov, .n = 1 };

	while (fab_tls_stream_take(server, &t))
		;
	return fab_tls_stream_taken(server, &t);
}

/* The stream has ended, with @error and a cause that begins with @cause, and stays so. */
static void expect_cause(int error, const char *cause)
{
	char byte;

	for (unsigned i = 0; i < 2; i++) {
		errno = 0;
		cr_assert_eq(take(&byte, 1), -1);
		cr_assert_eq(errno, error, "%s: %s", strerror(errno), fab_tls_stream_why(server));
		cr_assert_eq(strncmp(fab_tls_stream_why(server), cause, strlen(cause)), 0, "%s",
			     fab_tls_stream_why(server));
	}
	cr_assert(fab_tls_stream_pending(server));
}

Test(tls_stream, identity)
{
	struct fab_identity id = { 0 };

	connected();
	fab_tls_identity(fab_tls_stream_end(server), fab_tls_stream_session(server), &id);
	cr_assert_str_eq(id.cipher, "TLS1.3 AES-128-GCM");
	cr_assert_str_eq(id.name, "psk:alice");
}

Test(tls_stream, wrong_key)
{
	connect_client(WRONG, FAB_TLS_NBD);
	cr_assert_eq(shake(), -EPROTO);
	cr_assert_str_eq(why, "TLS: wrong key of 'alice'");
}

/* The key is right, and the client is one of RTRS. */
Test(tls_stream, another_protocol)
{
	connect_client(KEY, FAB_TLS_RTRS);
	cr_assert_eq(shake(), -EPROTO);
}

/* Bytes that GnuTLS or the buffer has do not show in the socket. */
Test(tls_stream, pending)
{
	char buf[100];
	struct pollfd pfd;

	connected();
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(gnutls_record_send(client, "0123456789", 10), 10);
	cr_assert_eq(take(buf, 4), 4);
	pfd = (struct pollfd){ .fd = fds[0], .events = POLLIN };
	cr_assert_eq(poll(&pfd, 1, 0), 0);
	cr_assert(fab_tls_stream_pending(server));
	cr_assert_eq(take(buf + 4, sizeof(buf) - 4), 26);
	cr_assert_eq(memcmp(buf, "012345678901234567890123456789", 30), 0);
	cr_assert(!fab_tls_stream_pending(server));
	errno = 0;
	cr_assert_eq(take(buf, 1), -1);
	cr_assert_eq(errno, EAGAIN);
	/* Of the last record GnuTLS has the rest, and the buffer nothing. */
	cr_assert_eq(gnutls_record_send(client, "0123456789", 10), 10);
	cr_assert_eq(take(buf, 4), 4);
	cr_assert(fab_tls_stream_pending(server));
	cr_assert_eq(take(buf, sizeof(buf)), 6);
	cr_assert(!fab_tls_stream_pending(server));
}

/* The end comes in one read with the bytes in front. */
Test(tls_stream, end_behind_bytes)
{
	char buf[100];

	connected();
	cr_assert_eq(gnutls_record_send(client, "0123456789", 10), 10);
	cr_assert_eq(gnutls_bye(client, GNUTLS_SHUT_WR), 0);
	cr_assert_eq(take(buf, sizeof(buf)), 10);
	cr_assert(fab_tls_stream_pending(server), "the socket does not show this end");
	cr_assert_eq(take(buf, sizeof(buf)), 0);
	cr_assert_str_eq(fab_tls_stream_why(server), "");
}

Test(tls_stream, cut)
{
	connected();
	shutdown(fds[1], SHUT_WR);
	expect_cause(ECONNRESET, "peer closed: its TLS stream was cut");
}

/* The same in the middle of a record. */
Test(tls_stream, cut_in_record)
{
	char byte;

	connected();
	cr_assert_eq(write(fds[1], "\x17\x03\x03\0\x20" "0123", 9), 9);
	cr_assert_eq(take(&byte, 1), -1);
	cr_assert_eq(errno, EAGAIN);
	shutdown(fds[1], SHUT_WR);
	expect_cause(ECONNRESET, "peer closed: its TLS stream was cut");
}

/* The same in a record of the handshake. */
Test(tls_stream, cut_in_handshake)
{
	connect_client(KEY, FAB_TLS_NBD);
	cr_assert_eq(write(fds[1], "\x16\x03\x01\x01\0\x01\0\0", 8), 8);
	cr_assert_eq(fab_tls_stream_handshake(server, why), -EAGAIN);
	shutdown(fds[1], SHUT_WR);
	cr_assert_eq(fab_tls_stream_handshake(server, why), -ECONNRESET);
	cr_assert_str_eq(why, "TLS: peer closed");
}

/* A peer that closes unread bytes. */
Test(tls_stream, reset_in_handshake)
{
	connect_client(KEY, FAB_TLS_NBD);
	cr_assert_eq(write(fds[0], "x", 1), 1);
	close(fds[1]);
	cr_assert_eq(fab_tls_stream_handshake(server, why), -ECONNRESET);
	cr_assert_str_eq(why, "TLS: peer closed");
}

Test(tls_stream, alert)
{
	connected();
	cr_assert_eq(gnutls_alert_send(client, GNUTLS_AL_FATAL, GNUTLS_A_INTERNAL_ERROR), 0);
	expect_cause(EPROTO, "peer failed the connection: TLS alert: Internal error");
}

Test(tls_stream, record_of_somebody_else)
{
	static const uint8_t record[] = "\x17\x03\x03\0\x20" "0123456789abcdef0123456789abcdef";
	char byte;

	connected();
	cr_assert_eq(write(fds[1], record, sizeof(record) - 1), (ssize_t)sizeof(record) - 1);
	expect_cause(EPROTO, "TLS: ");
	cr_assert_eq(gnutls_record_recv(client, &byte, 1), GNUTLS_E_FATAL_ALERT_RECEIVED);
	cr_assert_eq(gnutls_alert_get(client), GNUTLS_A_BAD_RECORD_MAC);
}

/* The server goes on with new keys, and answers with its own. */
Test(tls_stream, key_update)
{
	char buf[10];
	struct iovec iov = { buf, sizeof(buf) };

	connected();
	cr_assert_eq(gnutls_session_key_update(client, GNUTLS_KU_PEER), 0);
	cr_assert_eq(gnutls_record_send(client, "0123456789", 10), 10);
	cr_assert_eq(take(buf, sizeof(buf)), 10);
	cr_assert_eq(fab_tls_stream_send(server, &iov, 1), 10);
	cr_assert_eq(fab_tls_stream_flush(server), 0);
	/* The answer comes in front of the bytes. */
	cr_assert_eq(gnutls_record_recv(client, buf, sizeof(buf)), GNUTLS_E_AGAIN);
	cr_assert_eq(gnutls_record_recv(client, buf, sizeof(buf)), 10);
	cr_assert_eq(memcmp(buf, "0123456789", 10), 0);
}

/* Send @len bytes in pieces of @piece, as the socket takes them, while the client reads. */
static void send_all(size_t len, size_t piece)
{
	uint8_t *from = malloc(len), *to = calloc(1, len);
	size_t sent = 0, got = 0, n;
	struct iovec iov[64];
	bool was_full = false;
	ssize_t rc;
	int left;

	cr_assert(from && to);
	for (size_t i = 0; i < len; i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	for (unsigned turns = 0; got < len && turns < 100000; turns++) {
		for (n = 0; n < ARRAY_SIZE(iov) && sent + n * piece < len; n++)
			iov[n] = (struct iovec){ from + sent + n * piece,
						 MIN(piece, len - sent - n * piece) };
		rc = n ? fab_tls_stream_send(server, iov, n) : 0;
		cr_assert(rc >= 0 || errno == EAGAIN);
		sent += (size_t)MAX(rc, 0);
		left = fab_tls_stream_flush(server);
		cr_assert_geq(left, 0);
		cr_assert_eq(fab_tls_stream_unsent(server), (size_t)left);
		was_full |= left > 0;
		rc = gnutls_record_recv(client, to + got, len - got);
		cr_assert(rc > 0 || rc == GNUTLS_E_AGAIN, "%s", gnutls_strerror((int)rc));
		got += (size_t)MAX(rc, 0);
	}
	cr_assert_eq(got, len);
	cr_assert_eq(memcmp(from, to, len), 0);
	cr_assert(was_full, "the socket was never full");
	free(from);
	free(to);
}

Test(tls_stream, full_socket)
{
	int small = 4096;

	connected();
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	send_all(2u << 20, 64u << 10);
	send_all(1u << 20, 1000);
}

/* A client may ask for records of 512 bytes. */
Test(tls_stream, small_records)
{
	int small = 4096;

	connect_client(KEY, FAB_TLS_NBD);
	cr_assert_eq(gnutls_record_set_max_recv_size(client, 512), 0);
	cr_assert_eq(shake(), 0, "%s", why);
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	send_all(1u << 20, 64u << 10);
}

/* The peer sees the end of the stream as an end. */
Test(tls_stream, bye)
{
	char byte;

	connected();
	fab_tls_stream_bye(server);
	cr_assert_eq(fab_tls_stream_flush(server), 0);
	cr_assert_eq(gnutls_record_recv(client, &byte, 1), 0);
}

/* ---- system calls ---- */

static unsigned nrecvs, nsends;
static uint8_t comes;			/* the peer's byte behind a look at the empty socket */

ssize_t __real_recv(int fd, void *buf, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags);
ssize_t __real_send(int fd, const void *buf, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *buf, size_t len, int flags);

ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags)
{
	ssize_t n = __real_recv(fd, buf, len, flags);

	nrecvs++;
	if (n < 0 && comes && flags & MSG_PEEK) {
		cr_assert_eq(__real_send(fds[1], &comes, 1, 0), 1);
		comes = 0;
		errno = EAGAIN;
	}
	return n;
}

ssize_t __wrap_send(int fd, const void *buf, size_t len, int flags)
{
	nsends++;
	return __real_send(fd, buf, len, flags);
}

/* A peer that speaks in plain is left alone, also if its byte comes behind the look, and in each
 * way to read. */
Test(tls_stream, in_plain)
{
	for (unsigned exact = 0; exact < 2; exact++) {
		uint8_t byte = 0;

		cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
		server = fab_tls_stream_create(server_tls, fds[0], "", exact);
		fab_tls_stream_leave(server, 'R');
		comes = 'R';
		for (unsigned i = 0; i < 3; i++)
			cr_assert_eq(fab_tls_stream_handshake(server, why), -EAGAIN, "%s", why);
		cr_assert_eq(comes, 0);
		cr_assert_not(fab_tls_stream_heard(server));
		cr_assert_eq(__real_recv(fds[0], &byte, 1, 0), 1);
		cr_assert_eq(byte, 'R');
		/* The end of the stream is no byte. */
		close(fds[1]);
		cr_assert_lt(fab_tls_stream_handshake(server, why), 0);
		cr_assert_neq(fab_tls_stream_handshake(server, why), -EAGAIN);
		fab_tls_stream_destroy(server);
		close(fds[0]);
	}
	server = NULL;
	fds[0] = fds[1] = 0;
}

/* Small and large pieces are one call each way: records share it. */
Test(tls_stream, few_calls)
{
	static uint8_t bytes[49152], got[sizeof(bytes) + 1];
	struct iovec iov[] = { { bytes, 16 }, { bytes + 16, sizeof(bytes) - 16 } };
	size_t at = 0;
	ssize_t n;

	connected();
	memset(bytes, 7, sizeof(bytes));
	nsends = 0;
	cr_assert_eq(fab_tls_stream_send(server, iov, 2), (ssize_t)sizeof(bytes));
	cr_assert_eq(nsends, 0);
	cr_assert_eq(fab_tls_stream_flush(server), 0);
	cr_assert_eq(nsends, 1);
	while (at < sizeof(bytes)) {
		n = gnutls_record_recv(client, got + at, sizeof(bytes) - at);
		cr_assert_gt(n, 0);
		at += (size_t)n;
	}
	for (at = 0; at < sizeof(bytes); at += (size_t)n) {
		n = gnutls_record_send(client, bytes + at, sizeof(bytes) - at);
		cr_assert_gt(n, 0);
	}
	nrecvs = 0;
	cr_assert_eq(take(got, sizeof(got)), (ssize_t)sizeof(bytes));
	cr_assert_eq(nrecvs, 1);
	/* Another call may find more. */
	cr_assert_eq(gnutls_record_send(client, bytes, 10), 10);
	cr_assert_eq(take(got, sizeof(got)), 10);
	cr_assert_eq(nrecvs, 2);
}

/* Bytes behind the handshake stay in the socket, for somebody else. */
Test(tls_stream, exact)
{
	char buf[100];

	connect_client(KEY, FAB_TLS_NBD);
	fab_tls_stream_destroy(server);
	server = fab_tls_stream_create(server_tls, fds[0], "", true);
	cr_assert_not(fab_tls_stream_heard(server));
	cr_assert_eq(gnutls_handshake(client), GNUTLS_E_AGAIN);
	cr_assert_eq(fab_tls_stream_handshake(server, why), -EAGAIN);
	cr_assert(fab_tls_stream_heard(server));
	cr_assert_eq(gnutls_handshake(client), 0);
	cr_assert_eq(gnutls_record_send(client, "0123456789", 10), 10);
	cr_assert_eq(fab_tls_stream_handshake(server, why), 0);
	cr_assert_not(fab_tls_stream_pending(server));
	/* A header, ten bytes with their type, and a tag. */
	cr_assert_eq(recv(fds[0], buf, sizeof(buf), MSG_PEEK), 5 + 11 + 16);
	fab_tls_stream_read_ahead(server);
	cr_assert_eq(take(buf, sizeof(buf)), 10);
}

/* ---- memory ---- */

static const char secret[] = "bytes of a disk, in two pieces of one record";
static unsigned nfound;

void __real_free(void *p);
void __wrap_free(void *p);

/* Look for @secret in a stream that is given back. */
void __wrap_free(void *p)
{
	if (p == server && p && memmem(p, fab_tls_stream_memory(), secret, sizeof(secret)))
		nfound++;
	__real_free(p);
}

Test(tls_stream, wiped)
{
	struct iovec iov[] = { { (void *)secret, 10 },
			       { (void *)(secret + 10), sizeof(secret) - 10 } };

	connected();
	cr_assert_eq(fab_tls_stream_send(server, iov, 2), (ssize_t)sizeof(secret));
	cr_assert_not_null(memmem(server, fab_tls_stream_memory(), secret, sizeof(secret)));
	fab_tls_stream_destroy(server);
	server = NULL;
	cr_assert_eq(nfound, 0);
}

/* ---- a long handshake ---- */

static void write_pem(const char *dir, const char *name, const void *data, size_t len)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	cr_assert_not_null(f);
	cr_assert_eq(fwrite(data, 1, len, f), len);
	cr_assert_eq(fclose(f), 0);
}

/* Write to @dir a certificate of more than @size bytes, which signs itself, and its key. */
static void make_long_certificate(const char *dir, size_t size)
{
	static uint8_t value[70000], pem[200000];
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t crt;
	size_t len = sizeof(pem);

	cr_assert_eq(gnutls_x509_privkey_init(&key), 0);
	cr_assert_eq(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
						  GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1),
						  0), 0);
	cr_assert_eq(gnutls_x509_crt_init(&crt), 0);
	cr_assert_eq(gnutls_x509_crt_set_version(crt, 3), 0);
	cr_assert_eq(gnutls_x509_crt_set_serial(crt, "\1", 1), 0);
	cr_assert_eq(gnutls_x509_crt_set_activation_time(crt, time(NULL) - 60), 0);
	cr_assert_eq(gnutls_x509_crt_set_expiration_time(crt, time(NULL) + 3600), 0);
	cr_assert_eq(gnutls_x509_crt_set_dn(crt, "CN=long", NULL), 0);
	cr_assert_eq(gnutls_x509_crt_set_key(crt, key), 0);
	cr_assert_eq(gnutls_x509_crt_set_extension_by_oid(crt, "1.3.6.1.4.1.55555.1", value,
							  size, 0), 0);
	cr_assert_eq(gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0), 0);
	cr_assert_eq(gnutls_x509_crt_export(crt, GNUTLS_X509_FMT_PEM, pem, &len), 0);
	write_pem(dir, "ca-cert.pem", pem, len);
	write_pem(dir, "server-cert.pem", pem, len);
	write_pem(dir, "client-cert.pem", pem, len);
	len = sizeof(pem);
	cr_assert_eq(gnutls_x509_privkey_export(key, GNUTLS_X509_FMT_PEM, pem, &len), 0);
	write_pem(dir, "server-key.pem", pem, len);
	write_pem(dir, "client-key.pem", pem, len);
	gnutls_x509_crt_deinit(crt);
	gnutls_x509_privkey_deinit(key);
}

static void remove_certificate(const char *dir)
{
	static const char *const names[] = { "ca-cert.pem", "server-cert.pem", "server-key.pem",
					     "client-cert.pem", "client-key.pem" };
	char path[64];

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
}

/* Both ends have a certificate of @size bytes, which the server asks for if it verifies. */
static void connect_with_certificates(size_t size, bool verify)
{
	char dir[] = "/tmp/test-tls-stream.XXXXXX", err[512];
	struct fab_tls_conf conf = { .server = true, .protocol = FAB_TLS_NBD, .certificates = dir,
				     .verify_peer = verify };

	cr_assert_not_null(mkdtemp(dir));
	umask(077);
	make_long_certificate(dir, size);
	fab_tls_destroy(server_tls);
	cr_assert_eq(fab_tls_create(&conf, &server_tls, err, sizeof(err)), 0, "%s", err);
	conf.server = conf.verify_peer = false;
	cr_assert_eq(fab_tls_create(&conf, &client_tls, err, sizeof(err)), 0, "%s", err);
	remove_certificate(dir);
	connect_ends();
}

/* A flight of the handshake may be longer than the buffer: the stream writes what the socket takes,
 * and goes on. */
Test(tls_stream, long_certificate)
{
	connect_with_certificates(70000, false);
	/* No ChangeCipherSpec of this client wakes the stream in between. */
	cr_assert_eq(gnutls_priority_set_direct(client, "NORMAL:-VERS-ALL:+VERS-TLS1.3:"
						"%DISABLE_TLS13_COMPAT_MODE", NULL), 0);
	cr_assert_eq(shake(), 0, "%s", why);
}

/* A message of the client may be longer than a record, and lies in the buffer of the stream, where
 * the socket shows nothing of it. */
Test(tls_stream, long_certificate_of_the_client)
{
	connect_with_certificates(20000, true);
	cr_assert_eq(shake(), 0, "%s", why);
}

static time_t in_two_hours(time_t *now)
{
	return time(NULL) + 7200;
}

/* A certificate that was good in the handshake ends. */
Test(tls_stream, a_certificate_ends)
{
	const struct fab_tls_end *end;

	connect_with_certificates(20000, true);
	cr_assert_eq(shake(), 0, "%s", why);
	end = fab_tls_stream_end(server);
	cr_assert(fab_tls_trusts(end, fab_tls_stream_session(server)));
	gnutls_global_set_time_function(in_two_hours);
	cr_assert_not(fab_tls_trusts(end, fab_tls_stream_session(server)));
}
