/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys to the kernel, and records of other types than data: see tcp-tls.h.
 *
 * A record of another type waits in front of the data behind it: recvmsg(2) without room for the
 * type says EIO, and so puts no byte of the record where bytes of the stream belong. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <gnutls/gnutls.h>
#include <linux/tls.h>

#include "fab-tls-stream.h"
#include "fab-tls.h"
#include "number.h"
#include "tcp-tls.h"

enum record_type {
	RECORD_ALERT = 21,
	RECORD_HANDSHAKE = 22,
	RECORD_DATA = 23,
};

enum { ALERT_WARNING = 1, ALERT_FATAL = 2 };
enum { MESSAGE_KEY_UPDATE = 24 };

/* ---- keys ---- */

union keys {
	struct tls_crypto_info info;
	struct tls12_crypto_info_aes_gcm_128 gcm;
	struct tls12_crypto_info_chacha20_poly1305 chacha;
};

/* Fill @keys with a key of @session.  Returns the bytes in use; 0: the cipher is another one. */
static socklen_t fill_keys(gnutls_session_t session, bool receive, union keys *keys)
{
	gnutls_datum_t mac, iv, key;
	unsigned char number[8];

	memset(keys, 0, sizeof(*keys));
	if (gnutls_protocol_get_version(session) != GNUTLS_TLS1_3 ||
	    gnutls_record_get_state(session, receive, &mac, &iv, &key, number) < 0)
		return 0;
	keys->info.version = TLS_1_3_VERSION;
	switch (gnutls_cipher_get(session)) {
	case GNUTLS_CIPHER_AES_128_GCM:
		if (key.size != sizeof(keys->gcm.key) ||
		    iv.size != sizeof(keys->gcm.salt) + sizeof(keys->gcm.iv))
			return 0;
		keys->info.cipher_type = TLS_CIPHER_AES_GCM_128;
		memcpy(keys->gcm.key, key.data, sizeof(keys->gcm.key));
		memcpy(keys->gcm.salt, iv.data, sizeof(keys->gcm.salt));
		memcpy(keys->gcm.iv, iv.data + sizeof(keys->gcm.salt), sizeof(keys->gcm.iv));
		memcpy(keys->gcm.rec_seq, number, sizeof(keys->gcm.rec_seq));
		return sizeof(keys->gcm);
	case GNUTLS_CIPHER_CHACHA20_POLY1305:
		if (key.size != sizeof(keys->chacha.key) || iv.size != sizeof(keys->chacha.iv))
			return 0;
		keys->info.cipher_type = TLS_CIPHER_CHACHA20_POLY1305;
		memcpy(keys->chacha.key, key.data, sizeof(keys->chacha.key));
		memcpy(keys->chacha.iv, iv.data, sizeof(keys->chacha.iv));
		memcpy(keys->chacha.rec_seq, number, sizeof(keys->chacha.rec_seq));
		return sizeof(keys->chacha);
	default:
		return 0;
	}
}

static int give_key(int fd, gnutls_session_t session, bool receive)
{
	union keys keys;
	socklen_t len = fill_keys(session, receive, &keys);
	int error = len ? fab_ktls_cipher_error(keys.info.cipher_type) : ENOTSUP;

	if (!error && setsockopt(fd, SOL_TLS, receive ? TLS_RX : TLS_TX, &keys, len))
		error = errno;
	explicit_bzero(&keys, sizeof(keys));
	return -error;
}

/* Make @fd a socket of TLS, without keys.  0 or errno. */
static int begin(int fd)
{
	int error = fab_ktls_module_error();

	if (!error && setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")))
		error = errno;
	return error;
}

int tcp_ktls_start(int fd, gnutls_session_t session, char *why, size_t len)
{
	int rc;

	if (gnutls_record_check_pending(session)) {
		snprintf(why, len, "bytes of the peer wait in GnuTLS");
		return 0;
	}
	rc = begin(fd);
	if (rc) {
		snprintf(why, len, "%s", rc == ENOENT ? "the kernel has no module tls, or has not "
						       "loaded it" : strerror(rc));
		return 0;
	}
	/* ORDER: without any key the socket stays a plain one. */
	rc = give_key(fd, session, true);
	if (rc) {
		snprintf(why, len, "the kernel refuses the keys of %s: %s",
			 gnutls_cipher_get_name(gnutls_cipher_get(session)), strerror(-rc));
		return 0;
	}
	rc = give_key(fd, session, false);
	if (!rc)
		return 1;
	return fmt_error(rc, why, len, "TLS: the kernel took the key for receiving and refused the "
			 "other: %s", strerror(-rc));
}

/* ---- records of other types ---- */

static void send_alert(int fd, uint8_t level, uint8_t description)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(1)];
	} control = { 0 };
	uint8_t bytes[2] = { level, description };
	struct iovec iov = { bytes, sizeof(bytes) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control.room) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_TLS;
	cmsg->cmsg_type = TLS_SET_RECORD_TYPE;
	cmsg->cmsg_len = CMSG_LEN(1);
	*CMSG_DATA(cmsg) = RECORD_ALERT;
	/* A full socket: the peer sees the end of the stream. */
	(void)!sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static ssize_t end_with(struct tcp_ktls_end *end, int error, const char *why)
{
	end->ended = true;
	end->error = error;
	snprintf(end->why, end->why_len, "%s", why);
	errno = error;
	return error ? -1 : 0;
}

/* Of TLS 1.3 each alert ends the stream, whatever level the alert has. */
static ssize_t take_alert(uint8_t description, struct tcp_ktls_end *end)
{
	char why[FAB_TLS_WHY_LEN];

	if (description == GNUTLS_A_CLOSE_NOTIFY)
		return end_with(end, 0, "");
	fab_tls_alert_text(description, why, sizeof(why));
	return end_with(end, EPROTO, why);
}

/* Take the record that is no data. */
static ssize_t take_control(int fd, struct tcp_ktls_end *end)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(1)];
	} control = { 0 };
	uint8_t bytes[64];
	struct iovec iov = { bytes, sizeof(bytes) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control.room) };
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT);
	struct cmsghdr *cmsg = n < 0 ? NULL : CMSG_FIRSTHDR(&msg);
	uint8_t type = 0;

	if (cmsg && cmsg->cmsg_level == SOL_TLS && cmsg->cmsg_type == TLS_GET_RECORD_TYPE)
		type = *CMSG_DATA(cmsg);
	if (type == RECORD_ALERT && n == 2)
		return take_alert(bytes[1], end);
	send_alert(fd, ALERT_FATAL, GNUTLS_A_UNEXPECTED_MESSAGE);
	if (type == RECORD_HANDSHAKE && n > 0 && bytes[0] == MESSAGE_KEY_UPDATE)
		return end_with(end, EPROTO, "TLS: the peer changes its key, which TLS in the "
				"kernel cannot follow (tls-ktls=off can)");
	return end_with(end, EPROTO, "TLS: unexpected record");
}

/* The kernel keeps the error of a bad record for the next call, which would be the alert. */
static void clear_error(int fd)
{
	int error;
	socklen_t len = sizeof(error);

	(void)!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
}

/* The receive side has ended with @error, of recvmsg(2). */
static ssize_t end_by_error(int fd, int error, struct tcp_ktls_end *end)
{
	char why[128] = "";

	clear_error(fd);
	switch (error) {
	case EBADMSG:
		send_alert(fd, ALERT_FATAL, GNUTLS_A_BAD_RECORD_MAC);
		return end_with(end, EPROTO, "TLS: a record cannot be decrypted");
	case EMSGSIZE:
	case EINVAL:
		send_alert(fd, ALERT_FATAL, GNUTLS_A_RECORD_OVERFLOW);
		snprintf(why, sizeof(why), "TLS: bad record: %s", strerror(error));
		return end_with(end, EPROTO, why);
	default:
		return end_with(end, error, "");
	}
}

/* ---- bytes ---- */

ssize_t tcp_ktls_recv(int fd, struct iovec *iov, unsigned n, struct tcp_ktls_end *end)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t rc = recvmsg(fd, &msg, MSG_DONTWAIT);

	if (rc > 0 || (rc < 0 && (errno == EAGAIN || errno == EINTR)))
		return rc;
	/* No alert said so. */
	if (rc == 0)
		return end_with(end, ECONNRESET, "peer closed: its TLS stream was cut");
	return errno == EIO ? take_control(fd, end) : end_by_error(fd, errno, end);
}

ssize_t tcp_ktls_send(int fd, struct iovec *iov, unsigned n, uint64_t *budget)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t rc;

	if (!*budget) {
		errno = EKEYEXPIRED;
		return -1;
	}
	rc = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (rc > 0)
		*budget -= (uint64_t)rc < *budget ? (uint64_t)rc : *budget;
	return rc;
}

void tcp_ktls_bye(int fd)
{
	send_alert(fd, ALERT_WARNING, GNUTLS_A_CLOSE_NOTIFY);
}
