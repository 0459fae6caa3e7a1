/* SPDX-License-Identifier: BSD-3-Clause */
/* NBD's server side (src/nbd): the stream of several clients, handshake and requests.  Input: a
 * script of what clients write and what happens meanwhile, one byte of action, one byte of client,
 * then its arguments:
 *
 *	0	8 bits n, then n bytes as they are
 *	1	8 bits: a whole handshake; bits 0 and 1: headers, 2: base:allocation,
 *		3: EXPORT_NAME, 4: "large"
 *	2	a request: 8 bits type, 8 bits flags, 32 bits offset, 24 bits length; the data of a
 *		WRITE follows up to 64 KiB of it
 *	3	8 bits n: n * 64 zeroes
 *	4	8 bits n: take up to n KiB of replies
 *	5	8 bits n: n * 64 ms pass
 *	6	close
 *	7	8 bits: a held request ends, bit 7: with an error
 *	8	8 bits: requests are held from now on, or not
 *	9	the server stops
 *	10	8 bits option, 8 bits n, then n bytes: its data; behind STARTTLS "TLS" passes bytes
 *		as they are
 *	11	8 bits n: what the client writes from now on is kept, and what is kept comes in one
 *		piece, without its last n bytes; n = 255: nothing is kept any more
 *
 * A client connects with its first action.  Whatever clients say: each read and write is inside the
 * export, which the disk checks, and nothing is left at the end, which the server checks. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit/nbd-rig.h"
#include "fuzz.h"
#include "log.h"

#define NCLIENTS 4
#define MEMORY (128u << 20)

static struct rig rig;
static int clients[NCLIENTS];		/* -1: not connected */
static enum nbd_headers headers[NCLIENTS];

static void quiet(enum log_level level, const char *line)
{
}

/* What client @of writes, until it is let go. */
static struct {
	uint8_t bytes[256 << 10];
	size_t len;
	unsigned of;			/* NCLIENTS: none */
} kept;

static void say_now(unsigned c, const void *bytes, size_t len)
{
	const char *p = bytes;

	while (len) {
		ssize_t n = send(clients[c], p, len, MSG_NOSIGNAL);

		if (n <= 0)
			break;		/* full, or ended */
		p += n;
		len -= (size_t)n;
		rig_run(&rig);
	}
	rig_run(&rig);
}

static void say(unsigned c, const void *bytes, size_t len)
{
	if (c == kept.of && kept.len + len <= sizeof(kept.bytes)) {
		/* An option without data has no bytes to point at. */
		if (len)
			memcpy(kept.bytes + kept.len, bytes, len);
		kept.len += len;
		return;
	}
	say_now(c, bytes, len);
}

/* Let go what is kept, but @left bytes, and keep what @c writes. */
static void keep(unsigned c, size_t left)
{
	size_t n = kept.len - MIN(kept.len, left);

	if (kept.of < NCLIENTS && clients[kept.of] >= 0)
		say_now(kept.of, kept.bytes, n);
	kept.len = c == kept.of ? kept.len - n : 0;
	memmove(kept.bytes, kept.bytes + n, kept.len);
	kept.of = left == 255 ? NCLIENTS : c;
}

static void say_option(unsigned c, uint32_t option, const void *data, uint32_t len)
{
	struct nbd_msg_option m = { be64_put(NBD_OPT_MAGIC), be32_put(option), be32_put(len) };

	say(c, &m, sizeof(m));
	say(c, data, len);
}

static void handshake(unsigned c, unsigned how)
{
	static const uint8_t meta[] = "\0\0\0\4disk\0\0\0\1\0\0\0\17base:allocation";
	static const uint8_t go_disk[] = "\0\0\0\4disk\0\0", go_large[] = "\0\0\0\5large\0\0";
	be32 flags = be32_put(NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES);

	say(c, &flags, sizeof(flags));
	headers[c] = how % 4 == 3 ? NBD_HEADERS_SIMPLE : how % 4;
	if (headers[c] != NBD_HEADERS_SIMPLE)
		say_option(c, headers[c] == NBD_HEADERS_EXTENDED ? NBD_OPT_EXTENDED_HEADERS :
			   NBD_OPT_STRUCTURED_REPLY, NULL, 0);
	if (how & 4)
		say_option(c, NBD_OPT_SET_META_CONTEXT, meta, 31);
	if (how & 8)
		say_option(c, NBD_OPT_EXPORT_NAME, "disk", 4);
	else if (how & 16)
		say_option(c, NBD_OPT_GO, go_large, 11);
	else
		say_option(c, NBD_OPT_GO, go_disk, 10);
}

static void request(unsigned c, struct fuzz_in *in)
{
	static const uint8_t data[64 << 10];
	uint16_t type = (uint16_t)fuzz_take(in, 1), flags = (uint16_t)fuzz_take(in, 1);
	uint64_t off = fuzz_take(in, 4), len = fuzz_take(in, 3);
	struct nbd_msg_request m = {
		be32_put(NBD_REQUEST_MAGIC), be16_put(flags), be16_put(type), be64_put(off),
		be64_put(off), be32_put((uint32_t)len),
	};
	struct nbd_msg_request_ext ext = {
		be32_put(NBD_EXTENDED_REQUEST_MAGIC), be16_put(flags), be16_put(type),
		be64_put(off), be64_put(off), be64_put(len),
	};

	if (headers[c] == NBD_HEADERS_EXTENDED)
		say(c, &ext, sizeof(ext));
	else
		say(c, &m, sizeof(m));
	if (type == NBD_CMD_WRITE)
		say(c, data, MIN(len, (uint64_t)sizeof(data)));
}

static void hear(unsigned c, size_t kib)
{
	static char bytes[1024];

	while (kib-- && recv(clients[c], bytes, sizeof(bytes), 0) > 0)
		rig_run(&rig);
}

static void leave(unsigned c)
{
	if (kept.of == c)
		kept.of = NCLIENTS;
	close(clients[c]);
	clients[c] = -1;
	rig_run(&rig);
}

static void act(struct fuzz_in *in, bool *stopped)
{
	static const uint8_t zeroes[255 * 64];
	unsigned action = (unsigned)fuzz_take(in, 1) % 12;
	unsigned c = (unsigned)fuzz_take(in, 1) % NCLIENTS;
	unsigned n = action == 2 || action == 6 || action == 9 ? 0 : (unsigned)fuzz_take(in, 1);
	unsigned m = action == 10 ? (unsigned)fuzz_take(in, 1) : n;
	const uint8_t *raw = in->p;

	if (action == 0 || action == 10) {
		m = (unsigned)MIN((size_t)m, in->left);
		in->p += m;
		in->left -= m;
	}
	if (clients[c] < 0 && !*stopped)
		clients[c] = rig_connect(&rig);
	switch (action) {
	case 5:
		rig_pass_time(&rig, n * 64);
		return;
	case 7:
		if (rig.nheld)
			rig_finish(&rig, (n & 127) % rig.nheld, n & 128 ? -EIO : 0);
		return;
	case 8:
		rig.mode = n & 1 ? RIG_HOLDS : RIG_ANSWERS;
		return;
	case 9:
		if (!*stopped)
			nbd_server_stop(rig.server, NULL, NULL);
		*stopped = true;
		rig_run(&rig);
		return;
	}
	if (clients[c] < 0)
		return;
	switch (action) {
	case 0:
		say(c, raw, m);
		break;
	case 1:
		handshake(c, n);
		break;
	case 2:
		request(c, in);
		break;
	case 3:
		say(c, zeroes, n * 64u);
		break;
	case 4:
		hear(c, n);
		break;
	case 6:
		leave(c);
		break;
	case 10:
		say_option(c, n % 16, raw, m);
		break;
	case 11:
		keep(c, n);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	bool stopped = false;

	log_init(quiet, LOG_LEVEL_ERROR);
	rig_begin(&rig, MEMORY);
	for (unsigned c = 0; c < NCLIENTS; c++)
		clients[c] = -1;
	kept.of = NCLIENTS;
	kept.len = 0;
	while (in.left)
		act(&in, &stopped);
	for (unsigned c = 0; c < NCLIENTS; c++) {
		if (clients[c] >= 0)
			leave(c);
	}
	rig.mode = RIG_ANSWERS;
	while (rig.nheld)
		rig_finish(&rig, 0, 0);
	rig_run(&rig);
	rig_end(&rig);
	return 0;
}
