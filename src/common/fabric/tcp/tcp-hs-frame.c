/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends and reads frames of the handshake.  Owns nothing. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "tcp-hs-frame.h"
#include "tcp-stream.h"

/* Returns the bytes of the frame in @buf. */
static size_t encode_frame(uint8_t buf[TCP_FRAME_HDR_LEN + FAB_PRIVATE_DATA_MAX],
			   enum tcp_frame_op op, uint8_t flags, const void *data, size_t len)
{
	struct tcp_frame f = { .op = (uint8_t)op, .flags = flags, .length = (uint32_t)len,
			       .rkey = TCP_FRAME_VERSION, .addr = TCP_FRAME_MAGIC };

	tcp_frame_encode(buf, &f);
	if (len)
		memcpy(buf + TCP_FRAME_HDR_LEN, data, len);
	return TCP_FRAME_HDR_LEN + len;
}

int tcp_hs_send(struct tcp_conn *c, enum tcp_frame_op op, uint8_t flags, const void *data,
		size_t len)
{
	uint8_t buf[TCP_FRAME_HDR_LEN + FAB_PRIVATE_DATA_MAX];
	size_t all = encode_frame(buf, op, flags, data, len);
	ssize_t n = tcp_stream_send(c, &(struct iovec){ buf, all }, 1);

	if (n < 0)
		return -errno;
	return (size_t)n == all && !tcp_stream_flush(c) ? 0 : -ENOBUFS;
}

void tcp_hs_send_refusal(int fd, const void *data, size_t len)
{
	uint8_t buf[TCP_FRAME_HDR_LEN + FAB_PRIVATE_DATA_MAX];
	size_t all = encode_frame(buf, TCP_FRAME_REJECT, 0, data, len);

	(void)!send(fd, buf, all, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bool first_byte_ok(uint8_t op)
{
	return op == TCP_FRAME_CONNECT || op == TCP_FRAME_ACCEPT || op == TCP_FRAME_REJECT;
}

int tcp_hs_read(struct tcp_conn *c, struct tcp_frame *f, const char **why)
{
	uint32_t need;
	ssize_t n;

	*why = "";
	for (;;) {
		need = TCP_FRAME_HDR_LEN;
		/* Checked before a whole header: a peer of another protocol may send less, and
		 * wait. */
		if (c->hs_len && !first_byte_ok(c->hs_buf[0])) {
			*why = NULL;
			return -EPROTO;
		}
		if (c->hs_len >= TCP_FRAME_HDR_LEN) {
			const char *wrong = tcp_frame_decode(c->hs_buf, f);

			if (wrong) {
				*why = wrong;
				return -EPROTO;
			}
			need += f->length;
			if (c->hs_len == need)
				return 0;
		}
		n = tcp_stream_recv(c, &(struct iovec){ c->hs_buf + c->hs_len,
							need - c->hs_len }, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			*why = tcp_stream_why(c);
		if (n <= 0)
			return n ? -errno : -ECONNRESET;
		c->hs_len += (uint32_t)n;
	}
}
