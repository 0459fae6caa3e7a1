/* SPDX-License-Identifier: BSD-3-Clause */
/* The stream of TLS below the frames, with somebody on the wire.  The peer is GnuTLS with the right
 * key and makes records; the script says which of their bytes reach our end, and when.  Input: a
 * byte of flags, then one byte of action with its arguments:
 *
 *	0	the peer takes a step of its handshake, all of its records arrive, our end polls
 *	1	the peer says its next message, of 16 bits of length: at first CONNECT or ACCEPT
 *	2	the next record arrives
 *	3	16 bits of bytes of the next record arrive, and the rest stays in front
 *	4	the next record is lost
 *	5	a copy of an earlier record, 8 bits, is next in line
 *	6	the next two records change places
 *	7	8 bits n, then n bytes arrive as they are
 *	8	a byte of the next record changes: 16 bits of place, 8 bits of change
 *	9	the peer changes its keys, and with an odd argument asks for ours
 *	10	the peer sends an alert: 8 bits of level, 8 bits of description
 *	11	the peer says that it ends its stream
 *	12	our end polls
 *	13	our end sends a message
 *	14	the end of the stream arrives
 *	15	a CONNECT in plain arrives
 *	16	our end disconnects
 *	17	the peer reads
 *
 * Whatever the script says: over TLS our end hears the messages of the peer in their order, whole
 * and once, up to an end, and the peer ours; without TLS a side that requires TLS is not up; all
 * ends, and nothing is left. */
#include <string.h>
#include <sys/socket.h>

#include "fuzz.h"
#include "tls-rig.h"

struct run run;

/* ---- runs ---- */

static void start(unsigned flags)
{
	memset(&run, 0, sizeof(run));
	run.flags = flags;
	end_connect();
	run.fd = flags & FLAG_ACTIVE ? sides_accept() : sides_connect(flags);
	peer_begin();
}

static void finish(void)
{
	peer_finish();
	end_finish();
	wire_finish();
}

/* ---- actions of several ---- */

static void step(void)
{
	peer_shake();
	peer_read();
	wire_all();
	end_step();
}

/* A message that does not fit the socket would change with the next one. */
static void send_whole(size_t len)
{
	if (!end_send(len))
		return;
	for (unsigned i = 0; i < 100 && end_blocked(); i++) {
		peer_read();
		end_take();
	}
	if (end_blocked())
		end_disconnect();
}

static void arrive_raw(struct fuzz_in *in)
{
	size_t n = MIN((size_t)fuzz_take(in, 1), in->left);

	wire_arrive(in->p, n);
	in->p += n;
	in->left -= n;
}

/* ---- the script ---- */

static void act(unsigned action, struct fuzz_in *in)
{
	unsigned first;

	switch (action) {
	case 0: step(); break;
	case 1: peer_say(fuzz_take(in, 2) % (MSG_MAX + 1)); break;
	case 2: wire_next(SIZE_MAX); break;
	case 3: wire_next(fuzz_take(in, 2)); break;
	case 4: wire_lose(); break;
	case 5: wire_repeat((unsigned)fuzz_take(in, 1)); break;
	case 6: wire_swap(); break;
	case 7: arrive_raw(in); break;
	case 8:
		first = (unsigned)fuzz_take(in, 2);
		wire_change(first, (uint8_t)fuzz_take(in, 1));
		break;
	case 9: peer_update_keys(fuzz_take(in, 1) & 1); break;
	case 10:
		first = (unsigned)fuzz_take(in, 1);
		peer_alert(first, (unsigned)fuzz_take(in, 1));
		break;
	case 11: peer_bye(); break;
	case 12: end_step(); break;
	case 13: send_whole(fuzz_take(in, 2) % (MSG_MAX + 1)); break;
	case 14: shutdown(run.fd, SHUT_WR); break;
	case 15: peer_say_in_plain(); break;
	case 16: end_disconnect(); break;
	default: peer_read(); break;
	}
}

/* An honest run says that the rig gets as far as messages, with all kinds of handshakes. */
static void run_honestly(unsigned flags)
{
	start(flags);
	for (unsigned i = 0; i < 4; i++)
		step();
	must(run.shaken);
	peer_say(0);
	for (unsigned i = 0; i < 4; i++)
		step();
	must(run.up && run.secret);
	for (unsigned i = 0; i < 3; i++) {
		peer_say(MSG_MAX / 2 * i);
		send_whole(MSG_MAX / 2 * i);
		step();
		step();
		must(run.heard == i + 1 && run.got == i + 1);
	}
	finish();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	static bool made;

	if (!made) {
		sides_make();
		for (unsigned flags = 0; flags < 16; flags++)
			run_honestly(flags);
	}
	made = true;
	start((unsigned)fuzz_take(&in, 1));
	while (in.left)
		act((unsigned)fuzz_take(&in, 1) % 18, &in);
	finish();
	return 0;
}
