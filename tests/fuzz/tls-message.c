/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages whose every byte is known by their number, and headers of frames. */
#include <string.h>

#include "fuzz.h"
#include "tls-rig.h"

static uint8_t letter(uint32_t number, size_t i)
{
	return (uint8_t)(number * 31 + i * 7 + i / 256);
}

void message_write(uint8_t *at, uint32_t number, size_t len)
{
	memcpy(at, &number, 4);
	for (size_t i = 4; i < len; i++)
		at[i] = letter(number, i);
}

void message_check(const uint8_t *at, uint32_t number, size_t len)
{
	must(len >= 4 && !memcmp(at, &number, 4));
	for (size_t i = 4; i < len; i++)
		must(at[i] == letter(number, i));
}

void message_frame(uint8_t *at, enum tcp_frame_op op, size_t len)
{
	struct tcp_frame f = { .op = (uint8_t)op, .length = (uint32_t)len };

	if (op == TCP_FRAME_CONNECT || op == TCP_FRAME_ACCEPT) {
		f.rkey = TCP_FRAME_VERSION;
		f.addr = TCP_FRAME_MAGIC;
	}
	tcp_frame_encode(at, &f);
}
