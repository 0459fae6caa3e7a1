/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire from the peer to our end: records in line, of which the script lets bytes arrive. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "fuzz.h"
#include "tls-rig.h"

static struct record *next_record(void)
{
	return run.head < run.tail ? &run.line[run.head] : NULL;
}

void wire_put(const void *bytes, size_t len)
{
	struct record r = { malloc(len), len };

	must(r.bytes);
	memcpy(r.bytes, bytes, len);
	if (run.nrecords == RECORDS) {
		free(r.bytes);
		return;
	}
	run.records[run.nrecords++] = r;
	if (run.tail < ARRAY_SIZE(run.line))
		run.line[run.tail++] = r;
}

/* A full socket is one that our end does not read any more. */
void wire_arrive(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	for (unsigned tries = 0; len && tries < 20; tries++) {
		ssize_t n = send(run.fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		must(n >= 0 || errno == EAGAIN || errno == EPIPE || errno == ECONNRESET);
		if (n < 0)
			end_step();
		p += MAX(n, 0);
		len -= (size_t)MAX(n, 0);
	}
	if (len)
		shutdown(run.fd, SHUT_WR);
}

void wire_next(size_t at_most)
{
	struct record *r = next_record();
	size_t n;

	if (!r)
		return;
	n = MIN(r->len, at_most);
	wire_arrive(r->bytes, n);
	r->bytes += n;
	r->len -= n;
	if (!r->len)
		run.head++;
}

void wire_all(void)
{
	while (next_record())
		wire_next(SIZE_MAX);
}

void wire_lose(void)
{
	run.head += run.head < run.tail;
}

void wire_repeat(unsigned which)
{
	if (!run.nrecords || run.tail == ARRAY_SIZE(run.line))
		return;
	memmove(&run.line[run.head + 1], &run.line[run.head],
		(run.tail - run.head) * sizeof(run.line[0]));
	run.line[run.head] = run.records[which % run.nrecords];
	run.tail++;
}

void wire_swap(void)
{
	struct record *r = next_record(), first;

	if (!r || run.tail - run.head < 2)
		return;
	first = r[0];
	r[0] = r[1];
	r[1] = first;
}

/* Copies of the record stay as they are. */
void wire_change(size_t where, uint8_t by)
{
	struct record *r = next_record();
	uint8_t byte;

	if (!r)
		return;
	where %= r->len;
	wire_next(where);
	byte = r->bytes[0] ^ by;
	wire_arrive(&byte, 1);
	r->bytes++;
	if (!--r->len)
		run.head++;
}

void wire_finish(void)
{
	for (unsigned i = 0; i < run.nrecords; i++)
		free(run.records[i].bytes);
}
