/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <linux/tls.h>

#include "fake-ktls.h"
#include "harness.h"
#include "util.h"

#define FDS 1024
#define RECORD 16384u
#define HDR 5u
#define TAG 16u
#define WHOLE (HDR + RECORD + 1 + TAG + 255)

enum { RX, TX };
enum { DATA = 23 };

struct side {
	bool on;
	gnutls_aead_cipher_hd_t cipher;
	uint8_t iv[12], number[8];
};

static struct fake {
	struct side side[2];
	size_t taken;			/* bytes of the first record */
	uint8_t out[WHOLE];		/* of a record that is not in the socket yet */
	size_t at, nout;
	bool aborted;			/* by a bad record, and no call has heard of that yet */
} fakes[FDS];

enum fake_ktls_refusal fake_ktls_refuse;
unsigned fake_ktls_ulps, fake_ktls_keys;

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __real_close(int fd);
int __wrap_close(int fd);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);

static void __attribute__((constructor)) ask_for_ktls(void)
{
	setenv("FABRIC_KTLS", "1", 1);
}

static int fail(int err)
{
	errno = err;
	return -1;
}

/* ---- keys ---- */

static void fake_reset(struct fake *f)
{
	for (int i = 0; i < 2; i++) {
		if (f->side[i].on)
			gnutls_aead_cipher_deinit(f->side[i].cipher);
	}
	memset(f, 0, sizeof(*f));
}

static int take_key(struct side *s, const void *value, socklen_t len)
{
	const struct tls_crypto_info *info = value;
	const struct tls12_crypto_info_aes_gcm_128 *gcm = value;
	const struct tls12_crypto_info_chacha20_poly1305 *chacha = value;
	gnutls_datum_t key;

	check(!s->on);
	check_eq(info->version, TLS_1_3_VERSION);
	if (info->cipher_type == TLS_CIPHER_AES_GCM_128) {
		check_eq(len, sizeof(*gcm));
		key = (gnutls_datum_t){ (unsigned char *)gcm->key, sizeof(gcm->key) };
		memcpy(s->iv, gcm->salt, 4);
		memcpy(s->iv + 4, gcm->iv, 8);
		memcpy(s->number, gcm->rec_seq, 8);
		check_eq(gnutls_aead_cipher_init(&s->cipher, GNUTLS_CIPHER_AES_128_GCM, &key), 0);
	} else {
		check_eq(info->cipher_type, TLS_CIPHER_CHACHA20_POLY1305);
		check_eq(len, sizeof(*chacha));
		key = (gnutls_datum_t){ (unsigned char *)chacha->key, sizeof(chacha->key) };
		memcpy(s->iv, chacha->iv, 12);
		memcpy(s->number, chacha->rec_seq, 8);
		check_eq(gnutls_aead_cipher_init(&s->cipher, GNUTLS_CIPHER_CHACHA20_POLY1305,
						 &key), 0);
	}
	s->on = true;
	return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	check(fd < FDS);
	fake_ktls_ulps += level == IPPROTO_TCP && name == TCP_ULP;
	fake_ktls_keys += level == SOL_TLS;
	if (level == IPPROTO_TCP && name == TCP_ULP) {
		if (fake_ktls_refuse == FAKE_KTLS_NO_MODULE)
			return fail(ENOENT);
		fake_reset(&fakes[fd]);
		return 0;
	}
	if (level != SOL_TLS)
		return __real_setsockopt(fd, level, name, value, len);
	if (fake_ktls_refuse == FAKE_KTLS_NO_KEY ||
	    (fake_ktls_refuse == FAKE_KTLS_NO_SENDING && name == TLS_TX))
		return fail(EINVAL);
	return take_key(&fakes[fd].side[name == TLS_TX ? TX : RX], value, len);
}

/* The error is heard of once. */
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (level == SOL_SOCKET && name == SO_ERROR && fakes[fd].aborted) {
		fakes[fd].aborted = false;
		*(int *)value = EBADMSG;
		return 0;
	}
	return __real_getsockopt(fd, level, name, value, len);
}

static int fail_and_keep(struct fake *f, int err)
{
	f->aborted = true;
	return fail(err);
}

/* The next socket with this number is another one. */
int __wrap_close(int fd)
{
	if (fd >= 0 && fd < FDS)
		fake_reset(&fakes[fd]);
	return __real_close(fd);
}

/* ---- records ---- */

static void make_nonce(const struct side *s, uint8_t nonce[12])
{
	memcpy(nonce, s->iv, 12);
	for (int i = 0; i < 8; i++)
		nonce[4 + i] ^= s->number[i];
}

static void next_number(struct side *s)
{
	for (int i = 7; i >= 0 && !++s->number[i]; i--)
		;
}

/* Look at the first record.  Returns its whole length, its @plain of @len bytes and its @type; 0:
 * the stream has ended; or -1. */
static ssize_t peek_record(struct fake *f, int fd, uint8_t *plain, size_t *len, uint8_t *type)
{
	static uint8_t bytes[WHOLE];
	uint8_t nonce[12];
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	size_t whole;

	if (n <= 0)
		return n;
	whole = HDR + ((size_t)bytes[3] << 8 | bytes[4]);
	if (n >= (ssize_t)HDR && whole > WHOLE)
		return fail(EMSGSIZE);
	if (n < (ssize_t)HDR || (size_t)n < whole)
		return fail(EAGAIN);
	make_nonce(&f->side[RX], nonce);
	*len = RECORD + 1;
	if (gnutls_aead_cipher_decrypt(f->side[RX].cipher, nonce, 12, bytes, HDR, TAG, bytes + HDR,
				       whole - HDR, plain, len))
		return fail_and_keep(f, EBADMSG);
	while (*len && !plain[*len - 1])
		--*len;
	if (!*len)
		return fail(EBADMSG);
	*type = plain[--*len];
	return (ssize_t)whole;
}

static void consume(struct fake *f, int fd, size_t whole)
{
	static uint8_t bytes[WHOLE];

	check_eq(recv(fd, bytes, whole, MSG_DONTWAIT), whole);
	next_number(&f->side[RX]);
	f->taken = 0;
}

/* Copy bytes to @msg, at @skip.  Returns how many. */
static size_t scatter(const struct msghdr *msg, size_t skip, const uint8_t *bytes, size_t len)
{
	size_t done = 0, part;

	for (size_t i = 0; i < msg->msg_iovlen && done < len; i++) {
		const struct iovec *v = &msg->msg_iov[i];

		if (skip >= v->iov_len) {
			skip -= v->iov_len;
			continue;
		}
		part = MIN(v->iov_len - skip, len - done);
		memcpy((uint8_t *)v->iov_base + skip, bytes + done, part);
		skip = 0;
		done += part;
	}
	return done;
}

/* Tell @type, if @msg has room for a type. */
static bool tell_type(struct msghdr *msg, uint8_t type)
{
	struct cmsghdr *cmsg = msg->msg_controllen >= CMSG_LEN(1) ? CMSG_FIRSTHDR(msg) : NULL;

	if (!cmsg)
		return false;
	cmsg->cmsg_level = SOL_TLS;
	cmsg->cmsg_type = TLS_GET_RECORD_TYPE;
	cmsg->cmsg_len = CMSG_LEN(1);
	*CMSG_DATA(cmsg) = type;
	return true;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	static uint8_t plain[RECORD + 1];
	struct fake *f = &fakes[fd];
	size_t got = 0, len, n;
	ssize_t whole;
	uint8_t type;

	if (!f->side[RX].on)
		return __real_recvmsg(fd, msg, flags);
	while ((whole = peek_record(f, fd, plain, &len, &type)) > 0) {
		if (type != DATA && got)
			break;
		if (type != DATA && !tell_type(msg, type))
			return fail(EIO);
		n = scatter(msg, got, plain + f->taken, len - f->taken);
		got += n;
		f->taken += n;
		if (f->taken < len)
			break;
		consume(f, fd, (size_t)whole);
		if (type != DATA)
			break;
	}
	return got ? (ssize_t)got : whole;
}

/* True if no byte waits. */
static bool flush_out(struct fake *f, int fd)
{
	ssize_t n;

	while (f->at < f->nout) {
		n = send(fd, f->out + f->at, f->nout - f->at, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return false;
		/* A connection that has gone takes all. */
		f->at += n < 0 ? f->nout - f->at : (size_t)n;
	}
	return true;
}

/* The next bytes of @msg, at @skip. */
static size_t gather(const struct msghdr *msg, size_t skip, uint8_t *bytes, size_t room)
{
	size_t done = 0, part;

	for (size_t i = 0; i < msg->msg_iovlen && done < room; i++) {
		const struct iovec *v = &msg->msg_iov[i];

		if (skip >= v->iov_len) {
			skip -= v->iov_len;
			continue;
		}
		part = MIN(v->iov_len - skip, room - done);
		memcpy(bytes + done, (const uint8_t *)v->iov_base + skip, part);
		skip = 0;
		done += part;
	}
	return done;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	static uint8_t plain[RECORD + 1];
	struct fake *f = &fakes[fd];
	struct side *s = &f->side[TX];
	const struct cmsghdr *cmsg = msg->msg_controllen ? CMSG_FIRSTHDR(msg) : NULL;
	uint8_t type = cmsg ? *CMSG_DATA(cmsg) : DATA, nonce[12];
	size_t sent = 0, n, len;

	if (!s->on)
		return __real_sendmsg(fd, msg, flags);
	if (f->aborted) {
		f->aborted = false;
		return fail(EBADMSG);
	}
	check(!cmsg || (cmsg->cmsg_level == SOL_TLS && cmsg->cmsg_type == TLS_SET_RECORD_TYPE));
	while (flush_out(f, fd) && (n = gather(msg, sent, plain, RECORD))) {
		plain[n] = type;
		len = n + 1 + TAG;
		memcpy(f->out, (uint8_t[]){ DATA, 3, 3, (uint8_t)(len >> 8), (uint8_t)len }, HDR);
		make_nonce(s, nonce);
		check_eq(gnutls_aead_cipher_encrypt(s->cipher, nonce, 12, f->out, HDR, TAG, plain,
						    n + 1, f->out + HDR, &len), 0);
		next_number(s);
		f->at = 0;
		f->nout = HDR + len;
		sent += n;
	}
	return sent ? (ssize_t)sent : fail(EAGAIN);
}

/* What was taken goes on without another call. */
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	for (int fd = 0; fd < FDS; fd++) {
		if (!flush_out(&fakes[fd], fd))
			timeout_ms = MIN(timeout_ms, 1);
	}
	return __real_poll(fds, n, timeout_ms);
}
