/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes to chunks that are not the peer's to write, or not any more (doc/promises.md): what
 * reaches the file, and what it costs the attacker.
 *
 * "During the IO" is made certain by held-fs: the storage has the request and has not taken its
 * data yet; then the attack comes, and is over: placed, as an answer shows that came later on the
 * same connection, or refused, as the end of the connection shows; and only then the storage goes
 * on.  So a server whose storage takes the data from the chunk stores what the attacker wrote: what
 * the rows expect with --invalidate=never, and what a copy or a revocation that came too late would
 * do. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "hostile.h"

#define CHUNK_ID 3u
#define PROBE_ID 5u
#define IDLE_ID 7u
#define LAST UINT32_MAX
#define IO_LEN 4096u
#define IO_AT 65536u			/* in the file */
#define ATTACK_BYTE 0xaa

static const struct attack_row {
	const char *name;
	enum { DURING, AFTER } when;	/* the storage has the request; it has been answered */
	/* Where to: the whole of a chunk ... */
	bool others_chunk;		/* and the IO is that other client's */
	uint32_t chunk;			/* 0: that of the IO */
	enum { AT_START, ONE_BEHIND, HALF_BEHIND } at;
	/* ... under which key ... */
	bool others_key;
	uint32_t key_of;		/* which chunk's; 0: the same */
	bool old_key;			/* that of the request before */
	uint8_t generation;		/* added to it */
	uint32_t key_xor;
	/* ... over which connection. */
	unsigned cid;			/* 0: that of the IO */
	int want, want_always;		/* 0: placed; over tcp auto is as always */
	const char *why;		/* over tcp, in the log, where there is one reason */
} attack_rows[] = {
	{ "own chunk during its IO", DURING, .want_always = HCLOSED, .why = "stale key" },
	{ "own chunk during its IO over another connection", DURING, .cid = 2,
	  .want_always = HCLOSED, .why = "stale key" },
	{ "own chunk during its IO with the key of another", DURING, .key_of = IDLE_ID,
	  .want_always = HCLOSED, .why = "out of range" },
	{ "own chunks from the middle of the one before it", DURING, .chunk = CHUNK_ID - 1,
	  .at = HALF_BEHIND, .want_always = HCLOSED, .why = "out of range" },
	{ "own chunk after the answer", AFTER },
	{ "own chunk after the answer with the old key", AFTER, .old_key = true,
	  .want_always = HCLOSED, .why = "stale key" },
	{ "next generation of a key", DURING, .generation = 1, .want = HCLOSED,
	  .want_always = HCLOSED, .why = "stale key" },
	{ "last generation of a key", DURING, .generation = 255, .want = HCLOSED,
	  .want_always = HCLOSED, .why = "stale key" },
	{ "key of another region", DURING, .key_xor = 0x100, .want = HCLOSED,
	  .want_always = HCLOSED },
	{ "guessed key", DURING, .key_xor = 0x5a5a5a00, .want = HCLOSED, .want_always = HCLOSED,
	  .why = "unknown key" },
	{ "past the end", DURING, .chunk = LAST, .at = ONE_BEHIND, .want = HCLOSED,
	  .want_always = HCLOSED, .why = "out of range" },
	{ "another client's chunk, its key", DURING, .others_chunk = true, .others_key = true,
	  .want = HCLOSED, .want_always = HCLOSED },
	{ "another client's chunk, own key", DURING, .others_chunk = true, .want = HCLOSED,
	  .want_always = HCLOSED },
	{ "another client's idle chunk, its key", DURING, .others_chunk = true, .chunk = IDLE_ID,
	  .others_key = true, .want = HCLOSED, .want_always = HCLOSED },
	{ "another client's chunk, its key, over another connection", DURING, .cid = 2,
	  .others_chunk = true, .others_key = true, .want = HCLOSED, .want_always = HCLOSED },
};

/* ---- the storage ---- */

static int held_fd = -1;

static bool held_said(char c)
{
	char got;
	ssize_t n = recv(held_fd, &got, 1, MSG_DONTWAIT);

	if (!n || (n < 0 && errno != EAGAIN))
		die("the storage has gone");
	if (n == 1 && got != c)
		die("the storage says '%c' instead of '%c'", got, c);
	return n == 1;
}

static void held_begin(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	expect(strlen(hrun.held_fs) < sizeof(sa.sun_path));
	strcpy(sa.sun_path, hrun.held_fs);
	held_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	expect(held_fd >= 0);
	expect(!connect(held_fd, (struct sockaddr *)&sa, sizeof(sa)));
	hpump_also(held_fd);
	HWAIT(held_said('H'));
}

static void held_go(void)
{
	expect(send(held_fd, "G", 1, MSG_NOSIGNAL) == 1);
	HWAIT(held_said('D'));
	hpump_also(-1);
	close(held_fd);
}

static void expect_in_file(const uint8_t *want)
{
	int fd = open(hrun.held_file, O_RDONLY | O_CLOEXEC);
	static uint8_t got[IO_LEN];

	expect(fd >= 0);
	expect(pread(fd, got, sizeof(got), IO_AT) == (ssize_t)sizeof(got));
	close(fd);
	if (memcmp(got, want, sizeof(got)))
		die("the file has other bytes than it should: it begins with %02x, expected %02x",
		    got[0], want[0]);
}

/* ---- clients ---- */

static struct {
	struct hpath *attacker, *owner;	/* of the IO; may be the same */
	struct hpath *bystander;
	uint32_t probe_dev;		/* the attacker's, which is not held */
	uint8_t data[IO_LEN];
} s;

static struct hpath *client(const char *export_name, enum rnbd_access_mode mode)
{
	struct hpath *p = hpath_new();

	p->cid_num = 3;
	hpath_up(p);
	expect_outcome(hpath_sess_info(p), 0);
	expect_outcome(hpath_open(p, export_name, mode), 0);
	return p;
}

static void gather(const struct attack_row *row)
{
	s.bystander = client("good", RNBD_ACCESS_RW);
	s.attacker = client("good", RNBD_ACCESS_RO);
	s.probe_dev = s.attacker->dev.device_id;
	s.owner = row->others_chunk ? client("held", RNBD_ACCESS_RW) : s.attacker;
	if (!row->others_chunk)
		expect_outcome(hpath_open(s.attacker, "held", RNBD_ACCESS_RW), 0);
	expect(getrandom(s.data, sizeof(s.data), 0) == (ssize_t)sizeof(s.data));
}

static void post_io(const void *data)
{
	const struct rnbd_io io = { .device_id = s.owner->dev.device_id, .op = RNBD_OP_WRITE,
				    .sector = IO_AT / RNBD_SECTOR_SIZE, .bi_size = IO_LEN };
	struct rnbd_msg_io m;
	const struct hreq r = { .cid = 1, .buf_id = CHUNK_ID, .data_len = IO_LEN, .data = data,
				.usr = &m, .usr_len = sizeof(m) };

	rnbd_io_encode(&m, &io);
	hreq_post(s.owner, &r);
}

static void io_answered(void)
{
	expect_outcome(hpath_wait_answer(s.owner, CHUNK_ID), 0);
}

/* What was in the file before is not what a case looks for; and the server's kernel has asked the
 * storage all that it asks once. */
static void first_io(void)
{
	static const uint8_t zeroes[IO_LEN];

	post_io(zeroes);
	io_answered();
	expect_in_file(zeroes);
}

/* The whole chunk's worth, so the message behind the data, too. */
static void scribble(const struct attack_row *row)
{
	const struct rtrs_geom *geom = &s.attacker->geom;
	const struct hpath *aim = row->others_chunk ? s.owner : s.attacker;
	const struct hpath *keys = row->others_key ? s.owner : s.attacker;
	uint32_t chunk = row->chunk == LAST ? geom->queue_depth - 1 : row->chunk ? row->chunk :
		CHUNK_ID;
	uint32_t key_of = row->key_of ? row->key_of : chunk;
	uint32_t rkey = row->old_key ? keys->answers[key_of].old_rkey : keys->rbufs[key_of].rkey;
	uint64_t addr = aim->rbufs[chunk].addr;
	static uint8_t bytes[1u << 20];

	if (row->at)
		addr += row->at == ONE_BEHIND ? 1 : geom->chunk_size / 2;
	rkey = (rkey & ~0xffu) | (uint8_t)(rkey + row->generation);
	expect(geom->chunk_size <= sizeof(bytes));
	memset(bytes, ATTACK_BYTE, sizeof(bytes));
	hpath_write(s.attacker, row->cid ? row->cid : 1, bytes, geom->chunk_size, addr,
		    rkey ^ row->key_xor, false, 0);
}

/* What became of it: HCLOSED, or 0 when it was placed: what comes later is answered. */
static int attack(const struct attack_row *row)
{
	const struct rnbd_io probe = { .device_id = s.probe_dev, .op = RNBD_OP_READ,
				       .bi_size = RNBD_SECTOR_SIZE };

	scribble(row);
	return hpath_io(s.attacker, row->cid ? row->cid : 1, PROBE_ID, &probe, NULL);
}

static void attack_run(const void *arg)
{
	static const char down[] = "path down: ";
	const struct attack_row *row = arg;
	char why[128];
	unsigned before, before_why;
	bool keys;
	int want;

	if (!hrun.held_fs)
		skip();
	expect(hrun.invalidate && hrun.held_file);
	keys = !strcmp(hrun.invalidate, "always") || !strcmp(hrun.invalidate, "auto");
	want = keys ? row->want_always : row->want;
	snprintf(why, sizeof(why), "remote access error: %s", row->why ? row->why : "");
	gather(row);
	/* A key that was closed is the same again. */
	if (row->old_key && !s.attacker->rsp.new_rkey)
		want = 0;
	first_io();
	before = hlog_count(down);
	before_why = hlog_count(why);
	if (row->when == DURING)
		held_begin();
	post_io(s.data);
	if (row->when == DURING)
		HWAIT(held_said('W'));
	else
		io_answered();
	expect_outcome(attack(row), want);
	good_io(s.bystander);
	if (row->when == DURING)
		held_go();
	if (want == HCLOSED)
		hpath_wait_closed(s.attacker);
	if (row->when == DURING && (row->others_chunk || want != HCLOSED))
		io_answered();
	if (!strcmp(hrun.invalidate, "never") && row->when == DURING && !want)
		memset(s.data, ATTACK_BYTE, sizeof(s.data));
	expect_in_file(s.data);
	good_io(s.bystander);
	if (want == HCLOSED) {
		hlog_expect_one(down, before);
		if (over_tcp())
			hlog_expect_one(why, before_why);
	}
	expect(!hpath_any_closed(s.bystander));
}

const struct hgroup attack_cases = HGROUP("attack", attack_rows, attack_run);
