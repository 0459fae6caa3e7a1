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
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <gnutls/gnutls.h>

#include "fab-tls.h"
#include "fuzz.h"
#include "log.h"
#include "tcp-cm.h"

#define NRECVS 8u
#define MSG_MAX 20000u			/* two records */
#define ROOM (4 + MSG_MAX)
#define RECORDS 128u
#define HDR TCP_FRAME_HDR_LEN

enum { FLAG_ACTIVE = 1, FLAG_ON = 2, FLAG_CHACHA = 4, FLAG_WITH_DH = 8 };

/* A side of all runs, by its mode. */
struct side {
	struct fab_tls *tls;
	struct fab_cm *cm;
	struct fab_listener *listener;
	struct fab_addr addr;
};

static struct side servers[2], clients[2];
static int plain_listener;		/* of the peer, for our active end */
static struct fab_addr plain_addr;
static struct fab_tls *peer_tls[2];	/* as a client, as a server */

struct record {
	uint8_t *bytes;
	size_t len;
};

static struct run {
	unsigned flags;
	struct fab_conn *conn;
	struct fab_pd *pd;
	struct ibv_mr *mr, *out_mr;
	bool drained, up, secret;
	uint32_t heard, said;		/* messages at our end, and of it */

	int fd;
	struct fab_tls_end end;
	gnutls_session_t session;
	bool shaken, dead;
	uint32_t told, got;		/* messages of the peer, and at the peer */
	bool set_up;			/* CONNECT or ACCEPT was said */
	uint8_t in[HDR + ROOM];
	size_t nin;

	struct record records[RECORDS];
	unsigned nrecords;
	struct record line[2 * RECORDS];	/* what is left of those that did not arrive */
	unsigned head, tail;
} run;

static uint8_t bufs[NRECVS][ROOM], out[HDR + ROOM];
static struct fab_cqe cqes[NRECVS], send_cqe;

/* ---- messages ---- */

static uint8_t letter(uint32_t number, size_t i)
{
	return (uint8_t)(number * 31 + i * 7 + i / 256);
}

static void write_message(uint8_t *at, uint32_t number, size_t len)
{
	memcpy(at, &number, 4);
	for (size_t i = 4; i < len; i++)
		at[i] = letter(number, i);
}

static void check_message(const uint8_t *at, uint32_t number, size_t len)
{
	must(len >= 4 && !memcmp(at, &number, 4));
	for (size_t i = 4; i < len; i++)
		must(at[i] == letter(number, i));
}

static void encode(uint8_t *at, enum tcp_frame_op op, size_t len)
{
	struct tcp_frame f = { .op = (uint8_t)op, .length = (uint32_t)len };

	if (op == TCP_FRAME_CONNECT || op == TCP_FRAME_ACCEPT) {
		f.rkey = TCP_FRAME_VERSION;
		f.addr = TCP_FRAME_MAGIC;
	}
	tcp_frame_encode(at, &f);
}

static void peer_read(void);

/* ---- our end ---- */

int __real_fab_tls_session(struct fab_tls_end *end, const char *address,
			   struct gnutls_session_int **session);
int __wrap_fab_tls_session(struct fab_tls_end *end, const char *address,
			   struct gnutls_session_int **session);

/* Keys alone, without a Diffie-Hellman exchange, are five times as many runs. */
int __wrap_fab_tls_session(struct fab_tls_end *end, const char *address,
			   struct gnutls_session_int **session)
{
	static const char *const quick[] = {
		"NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:-KX-ALL:+PSK",
		"NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+CHACHA20-POLY1305:-KX-ALL:+PSK",
	};
	static gnutls_priority_t priority[2];
	unsigned which = !!(run.flags & FLAG_CHACHA);
	int rc = __real_fab_tls_session(end, address, session);

	if (rc || (run.flags & (FLAG_WITH_DH | FLAG_CHACHA)) == (FLAG_WITH_DH | FLAG_CHACHA))
		return rc;
	if (!priority[which])
		must(gnutls_priority_init(&priority[which], quick[which], NULL) == 0);
	must(gnutls_priority_set(*session, priority[which]) == 0);
	return 0;
}

static void post_recv(unsigned i)
{
	struct ibv_sge sge = { .addr = (uintptr_t)bufs[i], .length = ROOM, .lkey = run.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&cqes[i], .sg_list = &sge, .num_sge = 1 };

	must(fab_post_recv(run.conn, &wr) == 0 || fab_conn_cause(run.conn)[0]);
}

static void make_queues(void)
{
	static const struct fab_qp_attr attr = { .max_send_wr = 16, .max_recv_wr = NRECVS,
						 .max_send_sge = 1 };

	must(fab_pd_create(run.conn, &run.pd) == 0);
	run.mr = fab_reg_mr(run.pd, bufs, sizeof(bufs), IBV_ACCESS_LOCAL_WRITE);
	run.out_mr = fab_reg_mr(run.pd, out, sizeof(out), 0);
	must(run.mr && run.out_mr);
	must(fab_create_qp(run.conn, run.pd, &attr) == 0);
	for (unsigned i = 0; i < NRECVS; i++)
		post_recv(i);
}

/* The set-up has ended well: with TLS, or plain because TLS is not required. */
static void set_up(void)
{
	struct fab_identity id;

	fab_conn_identity(run.conn, &id);
	run.secret = id.cipher[0];
	must(run.secret || (run.flags & FLAG_ON));
	must(!run.secret || (run.shaken && run.set_up));
	must(!run.secret || (run.flags & FLAG_ACTIVE) || !strcmp(id.name, "psk:peer"));
}

static void on_event(const struct fab_event *ev)
{
	if (ev->type == FAB_EVENT_CONNECT_REQUEST) {
		must(!run.conn);
		run.conn = ev->conn;
		set_up();
		make_queues();
		if (fab_accept(run.conn, NULL, 0)) {
			fab_disconnect(run.conn);
			run.drained = true;	/* never up */
		}
	} else if (ev->type == FAB_EVENT_ESTABLISHED) {
		run.up = true;
		if (run.flags & FLAG_ACTIVE)
			set_up();
	} else if (ev->type == FAB_EVENT_ROUTE_RESOLVED) {
		make_queues();
		must(fab_connect(run.conn, NULL, 0) == 0);
	} else {
		must(ev->type == FAB_EVENT_UNREACHABLE || ev->type == FAB_EVENT_REJECTED);
	}
}

static void take(void)
{
	struct ibv_wc wc[4];
	int rc = fab_poll(run.conn, wc, 4);

	run.drained = rc == -ENOTCONN;
	must(rc <= 4 && (rc >= 0 || run.drained));
	for (int i = 0; i < rc; i++) {
		unsigned which = (unsigned)((struct fab_cqe *)(uintptr_t)wc[i].wr_id - cqes);

		if (wc[i].wr_id == (uintptr_t)&send_cqe || wc[i].status != IBV_WC_SUCCESS)
			continue;
		must(which < NRECVS);
		if (run.secret) {
			must(run.heard < run.told);
			check_message(bufs[which], run.heard++, wc[i].byte_len);
		}
		post_recv(which);
	}
}

static const struct side *our_side(void)
{
	return &(run.flags & FLAG_ACTIVE ? clients : servers)[!!(run.flags & FLAG_ON)];
}

static void our_step(void)
{
	struct fab_event ev;
	short events;

	for (unsigned i = 0; fab_cm_get_event(our_side()->cm, &ev) > 0; i++) {
		must(i < 100);
		on_event(&ev);
	}
	if (!run.conn || run.drained)
		return;
	if (run.up && !fab_arm(run.conn, &events))
		must(events & POLLIN);
	take();
}

static void our_send(size_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)out, .length = 4 + (uint32_t)len };
	struct ibv_send_wr wr = { .wr_id = (uintptr_t)&send_cqe, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND };

	if (!run.up || run.drained)
		return;
	sge.lkey = run.out_mr->lkey;
	write_message(out, run.said, sge.length);
	/* A message that does not fit the socket would change with the next one in @out. */
	if (fab_post_send(run.conn, &wr) == 0)
		run.said++;
	for (unsigned i = 0; i < 100 && tcp_conn(run.conn)->tx.blocked; i++) {
		peer_read();
		take();
	}
	if (tcp_conn(run.conn)->tx.blocked)
		fab_disconnect(run.conn);
}

/* ---- the wire ---- */

static void enqueue(struct record r)
{
	if (run.tail < ARRAY_SIZE(run.line))
		run.line[run.tail++] = r;
}

/* Whole records of the peer. */
static ssize_t peer_push(gnutls_transport_ptr_t arg, const void *data, size_t len)
{
	struct record r = { malloc(len), len };

	must(r.bytes);
	memcpy(r.bytes, data, len);
	if (run.nrecords == RECORDS) {
		free(r.bytes);
		return (ssize_t)len;
	}
	run.records[run.nrecords++] = r;
	enqueue(r);
	return (ssize_t)len;
}

static ssize_t peer_pull(gnutls_transport_ptr_t arg, void *data, size_t len)
{
	ssize_t n = recv(run.fd, data, len, MSG_DONTWAIT);

	gnutls_transport_set_errno(run.session, errno);
	return n;
}

/* Bytes arrive.  A full socket is one that our end does not read any more. */
static void arrive(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	for (unsigned tries = 0; len && tries < 20; tries++) {
		ssize_t n = send(run.fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		must(n >= 0 || errno == EAGAIN || errno == EPIPE || errno == ECONNRESET);
		if (n < 0)
			our_step();
		p += MAX(n, 0);
		len -= (size_t)MAX(n, 0);
	}
	if (len)
		shutdown(run.fd, SHUT_WR);
}

static struct record *next_record(void)
{
	return run.head < run.tail ? &run.line[run.head] : NULL;
}

static void arrive_next(size_t at_most)
{
	struct record *r = next_record();
	size_t n;

	if (!r)
		return;
	n = MIN(r->len, at_most);
	arrive(r->bytes, n);
	r->bytes += n;
	r->len -= n;
	if (!r->len)
		run.head++;
}

static void repeat(unsigned which)
{
	if (!run.nrecords || run.tail == ARRAY_SIZE(run.line))
		return;
	memmove(&run.line[run.head + 1], &run.line[run.head],
		(run.tail - run.head) * sizeof(run.line[0]));
	run.line[run.head] = run.records[which % run.nrecords];
	run.tail++;
}

static void swap(void)
{
	struct record *r = next_record(), first;

	if (!r || run.tail - run.head < 2)
		return;
	first = r[0];
	r[0] = r[1];
	r[1] = first;
}

/* Copies of the record stay as they are. */
static void change(size_t where, uint8_t by)
{
	struct record *r = next_record();
	uint8_t byte;

	if (!r)
		return;
	where %= r->len;
	arrive_next(where);
	byte = r->bytes[0] ^ by;
	arrive(&byte, 1);
	r->bytes++;
	if (!--r->len)
		run.head++;
}

static void arrive_raw(struct fuzz_in *in)
{
	size_t n = MIN((size_t)fuzz_take(in, 1), in->left);

	arrive(in->p, n);
	in->p += n;
	in->left -= n;
}

/* ---- the peer ---- */

static void peer_frames(void)
{
	struct tcp_frame f;

	while (run.nin >= HDR) {
		must(!tcp_frame_decode(run.in, &f));
		must(f.length <= ROOM);
		if (run.nin < HDR + f.length)
			return;
		if (f.op == TCP_FRAME_SEND) {
			must(run.got < run.said);
			check_message(run.in + HDR, run.got++, f.length);
		}
		run.nin -= HDR + f.length;
		memmove(run.in, run.in + HDR + f.length, run.nin);
	}
}

static void peer_read(void)
{
	ssize_t n = 1;

	while (run.shaken && !run.dead && n > 0) {
		n = gnutls_record_recv(run.session, run.in + run.nin, sizeof(run.in) - run.nin);
		if (n > 0)
			run.nin += (size_t)n;
		else if (n != GNUTLS_E_AGAIN)
			run.dead = true;
		peer_frames();
	}
}

static void peer_step(void)
{
	int rc;

	if (!run.shaken && !run.dead) {
		rc = gnutls_handshake(run.session);
		run.shaken = rc == 0;
		run.dead = rc < 0 && gnutls_error_is_fatal(rc);
	}
	peer_read();
	while (next_record())
		arrive_next(SIZE_MAX);
	our_step();
}

static void peer_say(size_t len)
{
	bool active = run.flags & FLAG_ACTIVE;

	if (!run.shaken || run.dead)
		return;
	if (!run.set_up) {
		encode(out, active ? TCP_FRAME_ACCEPT : TCP_FRAME_CONNECT, 0);
		len = 0;
		run.set_up = true;
	} else {
		len += 4;
		encode(out, TCP_FRAME_SEND, len);
		write_message(out + HDR, run.told++, len);
	}
	for (size_t at = 0, all = HDR + len; at < all;) {
		ssize_t n = gnutls_record_send(run.session, out + at, all - at);

		if (n <= 0) {
			run.dead = true;
			return;
		}
		at += (size_t)n;
	}
}

static void say_plain_connect(void)
{
	uint8_t hdr[HDR];

	encode(hdr, TCP_FRAME_CONNECT, 0);
	arrive(hdr, sizeof(hdr));
}

/* ---- runs ---- */

static void no_line(enum log_level level, const char *line)
{
}

static struct fab_tls *make_tls(const char *keys, bool server, enum fab_tls_mode mode)
{
	const struct fab_tls_conf conf = { .server = server, .asked = true, .mode = mode,
					   .psk = keys };
	struct fab_tls *tls = NULL;
	char err[256];

	must(fab_tls_create(&conf, &tls, err, sizeof(err)) == 0);
	return tls;
}

static int listen_plain(const char *path, struct fab_addr *addr)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&addr->ss;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*addr = (struct fab_addr){ .provider = fab_provider_find("tcp"), .len = sizeof(*un) };
	un->sun_family = AF_UNIX;
	snprintf(un->sun_path, sizeof(un->sun_path), "%s", path);
	must(fd >= 0 && bind(fd, (struct sockaddr *)un, addr->len) == 0 && listen(fd, 4) == 0);
	return fd;
}

static void make_side(struct side *s, const char *keys, bool server, bool on, const char *socket)
{
	char err[256];

	s->tls = make_tls(keys, server, on ? FAB_TLS_ON : FAB_TLS_REQUIRE);
	must(fab_cm_create(&(struct fab_cm_conf){ .provider = fab_provider_find("tcp"),
						  .tls = s->tls }, &s->cm) == 0);
	if (!server)
		return;
	must(fab_addr_parse(socket, fab_provider_find("tcp"), 0, &s->addr, err, sizeof(err)) == 0);
	must(fab_listen(s->cm, &s->addr, &s->listener) == 0);
}

/* Files are gone when all is made: connections need the names of the sockets, which lie in a
 * directory that is removed at the end of the process. */
static char dir[] = "/tmp/fuzz-tls.XXXXXX";

static void remove_dir(void)
{
	static const char *const names[] = { "keys", "require", "on", "plain" };
	char path[64];

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
}

static void make_all(void)
{
	static const char line[] = "peer/1:00112233445566778899aabbccddeeff\n";
	char keys[64], path[64];
	FILE *f;

	must(mkdtemp(dir));
	atexit(remove_dir);
	umask(077);
	log_init(no_line, LOG_LEVEL_DEBUG);
	snprintf(keys, sizeof(keys), "%s/keys", dir);
	f = fopen(keys, "w");
	must(f && fputs(line, f) >= 0 && fclose(f) == 0);
	for (int on = 0; on < 2; on++) {
		snprintf(path, sizeof(path), "unix:%s/%s", dir, on ? "on" : "require");
		make_side(&servers[on], keys, true, on, path);
		make_side(&clients[on], keys, false, on, NULL);
	}
	peer_tls[0] = make_tls(keys, false, FAB_TLS_REQUIRE);
	peer_tls[1] = make_tls(keys, true, FAB_TLS_REQUIRE);
	snprintf(path, sizeof(path), "%s/plain", dir);
	plain_listener = listen_plain(path, &plain_addr);
}

static void start(unsigned flags)
{
	const struct side *s;

	memset(&run, 0, sizeof(run));
	run.flags = flags;
	s = our_side();
	if (flags & FLAG_ACTIVE) {
		must(fab_conn_create(s->cm, NULL, &run.conn) == 0);
		must(fab_resolve(run.conn, NULL, &plain_addr) == 0);
		our_step();
		run.fd = accept(plain_listener, NULL, NULL);
		must(run.fd >= 0);
	} else {
		run.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		must(run.fd >= 0 && connect(run.fd, (const struct sockaddr *)&s->addr.ss,
					    s->addr.len) == 0);
	}
	run.end.tls = peer_tls[!!(flags & FLAG_ACTIVE)];
	must(fab_tls_session(&run.end, "unix", &run.session) == 0);
	gnutls_transport_set_ptr(run.session, &run);
	gnutls_transport_set_push_function(run.session, peer_push);
	gnutls_transport_set_pull_function(run.session, peer_pull);
}

static void finish(void)
{
	const struct tcp_cm *cm = tcp_cm(our_side()->cm);

	gnutls_deinit(run.session);
	close(run.fd);
	/* At least once, for a connection that is not accepted yet. */
	for (unsigned i = 0; !i || cm->strangers || (run.conn && !run.drained); i++) {
		must(i < 10000);
		our_step();
	}
	must(list_empty(&cm->handshakes));
	if (run.conn) {
		if (run.pd)
			must(fab_conn_cause(run.conn)[0]);
		fab_conn_destroy(run.conn);
		fab_dereg_mr(run.mr);
		fab_dereg_mr(run.out_mr);
		fab_pd_destroy(run.pd);
	}
	must(list_empty(&cm->events));
	for (unsigned i = 0; i < run.nrecords; i++)
		free(run.records[i].bytes);
}

static void act(unsigned action, struct fuzz_in *in)
{
	size_t where;

	switch (action) {
	case 0: peer_step(); break;
	case 1: peer_say(fuzz_take(in, 2) % (MSG_MAX + 1)); break;
	case 2: arrive_next(SIZE_MAX); break;
	case 3: arrive_next(fuzz_take(in, 2)); break;
	case 4: run.head += run.head < run.tail; break;
	case 5: repeat((unsigned)fuzz_take(in, 1)); break;
	case 6: swap(); break;
	case 7: arrive_raw(in); break;
	case 8:
		where = fuzz_take(in, 2);
		change(where, (uint8_t)fuzz_take(in, 1));
		break;
	case 9:
		where = fuzz_take(in, 1);
		if (run.shaken && !run.dead)
			gnutls_session_key_update(run.session, where & 1 ? GNUTLS_KU_PEER : 0);
		break;
	case 10:
		where = fuzz_take(in, 1);
		gnutls_alert_send(run.session, (gnutls_alert_level_t)where,
				  (gnutls_alert_description_t)fuzz_take(in, 1));
		break;
	case 11:
		if (run.shaken)
			gnutls_bye(run.session, GNUTLS_SHUT_WR);
		break;
	case 12: our_step(); break;
	case 13: our_send(fuzz_take(in, 2) % (MSG_MAX + 1)); break;
	case 14: shutdown(run.fd, SHUT_WR); break;
	case 15: say_plain_connect(); break;
	case 16:
		if (run.up)
			fab_disconnect(run.conn);
		break;
	default: peer_read(); break;
	}
}

/* An honest run says that the rig gets as far as messages, with all kinds of handshakes. */
static void run_honestly(unsigned flags)
{
	start(flags);
	for (unsigned i = 0; i < 4; i++)
		peer_step();
	must(run.shaken);
	peer_say(0);
	for (unsigned i = 0; i < 4; i++)
		peer_step();
	must(run.up && run.secret);
	for (unsigned i = 0; i < 3; i++) {
		peer_say(MSG_MAX / 2 * i);
		our_send(MSG_MAX / 2 * i);
		peer_step();
		peer_step();
		must(run.heard == i + 1 && run.got == i + 1);
	}
	finish();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	static bool made;

	if (!made) {
		make_all();
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
