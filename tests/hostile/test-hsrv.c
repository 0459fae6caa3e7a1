/* SPDX-License-Identifier: BSD-3-Clause */
/* The plugin's client against a server that writes where it may not, or not any more (hsrv.h): the
 * memory of a caller never changes after its request has returned, nor ever outside of its request.
 *
 *	test-hsrv [TRANSPORT://]HOST	over tcp on 127.0.0.1 if nothing is said
 *
 * Each case is a READ, an attack in front of its answer, behind it or when it has returned, and a
 * WRITE over the same connection.  When that is answered the attack is over, because messages come
 * in order: refused, and the client came back with a new path, or placed, in memory of the client's
 * own (registration=static).  Not a READ: that would give the slot of the one before another
 * key.
 *
 * And a server that answers a READ without data: a user of the disk sees no byte of another. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "clock.h"
#include "dev-req.h"
#include "dev.h"
#include "hsrv.h"
#include "log.h"
#include "loop.h"
#include "thread.h"

#define GUARD 4096u
/* Names of memory are below it; this program, and what it has allocated, lies above. */
#define NAMES_END (1ull << 46)
#define FILL 0x11

enum outcome { PLACED, REFUSED, EITHER };

static const struct row {
	const char *name;
	uint32_t len;
	enum hsrv_answer how;
	bool late;			/* the attack comes when the request has returned */
	struct hsrv_attack attack;
	enum outcome want;		/* with a key that ends with its request ... */
	/* ... and with one that opens a slot of the client's own memory */
	enum outcome want_static;
	/* windows of some devices open all of their region: the slot */
	bool of_bounds;
	bool true_addr;			/* the attack is at the address of the caller's buffer */
} rows[] = {
	{ "after the answer", 4096, HSRV_GOOD, true, { 0 }, REFUSED, PLACED },
	{ "after the answer to a large one", HSRV_IO, HSRV_GOOD, true, { 0 }, REFUSED, PLACED },
	{ "after an answer that leaves the key", 4096, HSRV_KEEPS_KEY, true, { 0 }, REFUSED,
	  PLACED },
	{ "after an error", 4096, HSRV_ERROR, true, { 0 }, REFUSED, PLACED },
	{ "right behind the answer", 4096, HSRV_ATTACK_BEHIND, false, { 0 }, EITHER, PLACED },
	{ "right behind the answer to a large one", HSRV_IO, HSRV_ATTACK_BEHIND, false, { 0 },
	  EITHER, PLACED },
	{ "a byte beyond the length", 4096, HSRV_ATTACK_BEFORE, false, { .len_add = 1 }, REFUSED,
	  PLACED, .of_bounds = true },
	{ "far beyond the length", 4096, HSRV_ATTACK_BEFORE, false, { .len_add = HSRV_IO }, REFUSED,
	  REFUSED },
	{ "a byte in front", 4096, HSRV_ATTACK_BEFORE, false, { .addr_add = -1 }, REFUSED,
	  REFUSED },
	{ "at the address of the buffer", 4096, HSRV_ATTACK_BEFORE, false, { 0 }, REFUSED, REFUSED,
	  .true_addr = true },
	{ "next key", 4096, HSRV_ATTACK_BEFORE, false, { .key_xor = 1 }, REFUSED, REFUSED },
	{ "guessed key", 4096, HSRV_ATTACK_BEFORE, false, { .key_xor = 0x5a5a5a00 }, REFUSED,
	  REFUSED },
	{ "the READ before during another", 4096, HSRV_ATTACK_BEFORE, false,
	  { .before_last = true }, REFUSED, PLACED },
	{ "the READ before after another", 4096, HSRV_GOOD, true, { .before_last = true }, REFUSED,
	  PLACED },
};

static struct hsrv *srv;
static struct loop *loop;
static struct client clt;
static struct dev *dev;
static struct dev_handle handle;
static atomic_uint lost_lines;
static const char *current = "";
static int failures;

static void count_lines(enum log_level level, const char *line)
{
	if (strstr(line, "lost: "))
		atomic_fetch_add(&lost_lines, 1);
}

static void failed(const char *what, unsigned value)
{
	printf("    %s: %s (%u)\n", current, what, value);
	failures++;
}

/* ---- the caller ---- */

struct caller {
	uint8_t front[GUARD], buf[HSRV_IO], behind[GUARD];
};

static struct caller *caller_create(void)
{
	struct caller *c = malloc(sizeof(*c));

	check(c);
	memset(c, FILL, sizeof(*c));
	return c;
}

static bool all(const uint8_t *p, size_t len, uint8_t byte)
{
	for (size_t i = 0; i < len; i++) {
		if (p[i] != byte)
			return false;
	}
	return true;
}

/* As it has to be when the request returns.  Right behind its answer a server may still change what
 * it has just sent: before the client has taken it, that is. */
static void look_at(const struct caller *c, const struct row *row)
{
	uint8_t byte = row->how == HSRV_ERROR ? FILL : HSRV_DATA;

	if (!all(c->front, GUARD, FILL))
		failed("the memory in front of the buffer has changed", 0);
	if (row->how != HSRV_ATTACK_BEHIND && !all(c->buf, row->len, byte))
		failed("the buffer has other bytes than it should", c->buf[0]);
	if (!all(c->buf + row->len, HSRV_IO - row->len, FILL) || !all(c->behind, GUARD, FILL))
		failed("the memory behind the buffer has changed", 0);
}

/* ---- a case ---- */

static void session_open(enum clt_registration registration)
{
	struct clt_sess_addr addr = { 0 };
	struct clt_sess_conf conf = {
		.name = "test-hsrv", .wait = &clt_wait_threads, .paths = &addr, .npaths = 1,
		.connections = 1,
		.io_timeout_ms = CLOCK_NEVER, .max_reconnect_attempts = -1,
		.path.registration = registration,
	};

	hsrv_addr(srv, &addr.dst);
	check(!loop_poll_create("rtrs-service", &loop));
	check(!client_init(&clt, loop, &conf));
	if (client_wait_up(&clt)) {
		fprintf(stderr, "no session: %s\n", clt.cause);
		exit(1);
	}
	check(!dev_open(&clt, "disk", RNBD_ACCESS_RW, &dev));
	dev_handle_init(&handle, dev);
}

static void session_close(void)
{
	dev_handle_fini(&handle);
	dev_close(dev);
	client_close(&clt);
	loop_poll_destroy(loop);
	client_fini(&clt);
}

static void read_well(uint32_t len)
{
	struct caller *c = caller_create();

	check(!dev_call_read(&handle, c->buf, len, 0));
	if (!all(c->buf, len, HSRV_DATA))
		failed("another request has other bytes than it should", c->buf[0]);
	free(c);
}

/* All that the server has sent has been seen. */
static void settle(void)
{
	static const uint8_t data[512];

	check(!dev_call_write(&handle, data, sizeof(data), 0, false));
}

static enum outcome wanted(const struct row *row, enum clt_registration registration)
{
	bool slot = clt.sess.paths[0]->att.caps.quirks & FRWR_QUIRK_MR_BOUNDS;

	if (registration == CLT_REG_STATIC || (row->of_bounds && slot))
		return row->want_static;
	return row->want;
}

static void run_row(const struct row *row, enum outcome want)
{
	struct caller *c = caller_create(), *returned = malloc(sizeof(*returned));
	unsigned lives = hsrv_lives(srv), lost = atomic_load(&lost_lines), n;
	struct hsrv_attack attack = row->attack;

	check(returned);
	if (row->true_addr)
		attack.addr = (uintptr_t)c->buf;
	read_well(row->len);		/* the one before */
	hsrv_answer_next(srv, row->how, &attack);
	check(dev_call_read(&handle, c->buf, row->len, 4096) ==
	      (row->how == HSRV_ERROR ? -EIO : 0));
	memcpy(returned, c, sizeof(*c));
	look_at(returned, row);
	if (row->late)
		hsrv_attack_now(srv, &attack);
	settle();
	if (memcmp(returned, c, sizeof(*c)))
		failed("the buffer has changed after the request had returned", c->buf[0]);
	n = hsrv_lives(srv) - lives;
	if (want == EITHER ? n > 1 : n != (want == REFUSED))
		failed("so many paths were lost", n);
	if (atomic_load(&lost_lines) - lost != n)
		failed("so many lines say so", atomic_load(&lost_lines) - lost);
	read_well(row->len);
	free(returned);
	free(c);
}

static void no_address_of_the_client(void)
{
	if (hsrv_highest_addr(srv) >= NAMES_END)
		failed("the server was told an address of this process", 0);
}

/* The other user's requests have left their bytes wherever this one's data comes by. */
static void no_bytes_of_another_user(enum clt_registration registration)
{
	static const uint32_t lens[] = { 4096, HSRV_IO };
	struct caller *c = caller_create();
	const struct hsrv_attack none = { 0 };
	struct dev_handle second;
	uint8_t byte;

	session_open(registration);
	byte = clt.sess.paths[0]->att.way == CLT_MEM_BOUNCE ? 0 : FILL;
	dev_handle_init(&second, dev);
	read_well(HSRV_IO);
	for (unsigned i = 0; i < 2; i++) {
		hsrv_answer_next(srv, HSRV_NO_DATA, &none);
		check(!dev_call_read(&second, c->buf, lens[i], 4096));
		if (!all(c->buf, lens[i], byte))
			failed("a READ without data shows bytes", c->buf[0]);
	}
	check(!dev_call_read(&handle, c->buf, 100, 10));
	hsrv_answer_next(srv, HSRV_NO_DATA, &none);
	check(!dev_call_read(&second, c->buf, 100, 10));
	if (!all(c->buf, 100, 0))
		failed("a READ of a part of a block without data shows bytes", c->buf[0]);
	dev_handle_fini(&second);
	session_close();
	free(c);
}

static void run_users(enum clt_registration registration)
{
	char name[128];
	int before = failures;

	snprintf(name, sizeof(name), "registration=%s: two users, and answers without data",
		 clt_registration_names[registration]);
	current = name;
	no_bytes_of_another_user(registration);
	printf("%s %s\n", failures == before ? "ok  " : "FAIL", name);
}

static void run_all(enum clt_registration registration, unsigned times)
{
	char name[128];

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int before = failures;

		snprintf(name, sizeof(name), "registration=%s: %s",
			 clt_registration_names[registration], rows[i].name);
		current = name;
		for (unsigned k = 0; k < times && failures == before; k++) {
			session_open(registration);
			run_row(&rows[i], wanted(&rows[i], registration));
			session_close();
			no_address_of_the_client();
		}
		printf("%s %s\n", failures == before ? "ok  " : "FAIL", name);
		fflush(stdout);
	}
	run_users(registration);
}

int main(int argc, char **argv)
{
	const struct fab_provider *tcp = fab_provider_find("tcp");
	struct fab_addr addr;
	char err[256];

	if (fab_addr_parse(argc > 1 ? argv[1] : "127.0.0.1:0", tcp, 0, &addr, err, sizeof(err))) {
		fprintf(stderr, "%s\n", err);
		return 2;
	}
	log_init(count_lines, LOG_LEVEL_INFO);
	srv = hsrv_start(&addr);
	/* tcp: regions under another key for each request; of an RDMA device auto takes one of the
	 * others */
	if (addr.provider == tcp)
		run_all(CLT_REG_AUTO, 3);
	run_all(CLT_REG_WINDOW, 1);
	run_all(CLT_REG_STATIC, 1);
	hsrv_stop(srv);
	return failures != 0;
}
