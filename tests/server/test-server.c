/* SPDX-License-Identifier: BSD-3-Clause */
/* rtrs-server over tcp, seen by a client that can do anything (tests/hostile/hostile.h): set-up and
 * its refusals, come-backs, sharing, IO, what closes a path, shutdown.
 *
 *	test-server RTRS-SERVER SECONDS [CASE]		SECONDS: the limit of each wait
 *
 * Each case runs in a process of its own and has a server of its own with two exports, "a" (1 MiB)
 * and "ro" (64 KiB, read-only), in a temporary directory. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"
#include "rnbd-ext.h"
#include "rtrs-imm.h"
#include "tcp-frame.h"
#include "util.h"

#define A_SIZE (1024u * 1024u)
#define RO_SIZE 65536u

/* Where in hpath.result the data of a READ and of a WRITE with this chunk lies. */
#define PIECE 2048u

struct hrun hrun;
static const char *server_program;

/* ---- a server ---- */

static struct {
	pid_t pid;
	char dir[64];
} server;

static void path_in_dir(char *buf, size_t len, const char *name)
{
	snprintf(buf, len, "%s/%s", server.dir, name);
}

static void file_create(const char *name, off_t size)
{
	char path[128];
	int fd;

	path_in_dir(path, sizeof(path), name);
	fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
	expect(fd >= 0);
	expect_eq(ftruncate(fd, size), 0);
	close(fd);
}

static void file_read(const char *name, void *buf, size_t len, off_t off)
{
	char path[128];
	int fd;

	path_in_dir(path, sizeof(path), name);
	fd = open(path, O_RDONLY);
	expect(fd >= 0);
	expect_eq(pread(fd, buf, len, off), (ssize_t)len);
	close(fd);
}

static void server_exec(int out, const char *const *options)
{
	char a[sizeof(server.dir) + 16], ro[sizeof(server.dir) + 16];
	const char *argv[32] = { server_program, "--listen", "tcp://127.0.0.1:0" };
	unsigned n = 3;

	snprintf(a, sizeof(a), "a=%s/a", server.dir);
	snprintf(ro, sizeof(ro), "ro=%s/ro,readonly", server.dir);
	for (; *options; options++)
		argv[n++] = *options;
	argv[n++] = a;
	argv[n++] = ro;
	argv[n] = NULL;
	dup2(out, STDOUT_FILENO);
	execv(server_program, (char *const *)argv);
	perror(server_program);
	_exit(127);
}

static void server_start(const char *const *options)
{
	static const char prefix[] = "listening on tcp://";
	char line[sizeof(prefix) + FAB_ADDR_STRLEN], err[256];
	int out[2];
	FILE *f;

	strcpy(server.dir, "/tmp/test-server.XXXXXX");
	expect(mkdtemp(server.dir));
	file_create("a", A_SIZE);
	file_create("ro", RO_SIZE);
	expect_eq(pipe(out), 0);
	server.pid = fork();
	expect(server.pid >= 0);
	if (!server.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);	/* when a check fails */
		server_exec(out[1], options);
	}
	close(out[1]);
	f = fdopen(out[0], "r");
	expect(f && fgets(line, sizeof(line), f));
	expect(!strncmp(line, prefix, strlen(prefix)));
	line[strcspn(line, "\n")] = 0;
	expect_eq(fab_addr_parse(line + strlen(prefix), fab_provider_find("tcp"), RTRS_PORT,
				 &hrun.server, err, sizeof(err)), 0);
	fclose(f);
}

static void server_reap(void)
{
	char path[128];
	int status;

	expect_eq(waitpid(server.pid, &status, 0), server.pid);
	expect(WIFEXITED(status));
	expect_eq(WEXITSTATUS(status), 0);
	server.pid = 0;
	path_in_dir(path, sizeof(path), "a");
	unlink(path);
	path_in_dir(path, sizeof(path), "ro");
	unlink(path);
	rmdir(server.dir);
}

static void server_stop(void)
{
	expect_eq(kill(server.pid, SIGTERM), 0);
	server_reap();
}

static void fill(uint8_t *p, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(seed + i * 7 + (i >> 8));
}

/* A client of @cid_num connections to be. */
static struct hpath *client(unsigned cid_num)
{
	struct hpath *p = hpath_new();

	p->cid_num = (uint16_t)cid_num;
	return p;
}

static void rename_to(struct hpath *p, const char *name)
{
	snprintf(p->name, sizeof(p->name), "%s", name);
}

/* Another client with the identity of @of. */
static struct hpath *twin(const struct hpath *of)
{
	struct hpath *p = client(of->cid_num);

	memcpy(p->sess_uuid, of->sess_uuid, RTRS_UUID_LEN);
	memcpy(p->paths_uuid, of->paths_uuid, RTRS_UUID_LEN);
	rename_to(p, of->name);
	p->recon_cnt = of->recon_cnt;
	return p;
}

/* The end of a life; hpath_up() begins the next. */
static void go_away(struct hpath *p)
{
	hpath_reset(p);
	p->recon_cnt++;
}

static void open_a(struct hpath *p)
{
	expect_eq(hpath_open(p, "a", RNBD_ACCESS_RW), 0);
	expect_eq(p->dev.nsectors, A_SIZE / 512);
}

/* A client in service with "a" open for writing. */
static struct hpath *client_rw(unsigned cid_num)
{
	struct hpath *p = client(cid_num);

	hpath_up(p);
	open_a(p);
	return p;
}

static uint8_t *data_of(struct hpath *p, uint32_t buf_id)
{
	expect(buf_id < HRESULT_LEN / PIECE);
	return p->result + buf_id * PIECE;
}

/* Any message; nothing is on its way with this chunk. */
static void post(struct hpath *p, unsigned cid, uint32_t buf_id, bool is_read, const void *usr,
		 uint32_t usr_len, uint32_t data_len)
{
	const struct hreq r = {
		.cid = cid,
		.buf_id = buf_id,
		.is_read = is_read,
		.data_len = data_len,
		.result_at = (uint32_t)(data_of(p, buf_id) - p->result),
		.usr = usr,
		.usr_len = usr_len,
		.data = data_of(p, buf_id),
	};

	expect_eq(p->answers[buf_id].posted, p->answers[buf_id].n);
	expect(r.result_at + data_len <= HRESULT_LEN);
	hreq_post(p, &r);
}

/* @io of the device that was opened last, its bytes at @off. */
static void post_io(struct hpath *p, unsigned cid, uint32_t buf_id, enum rnbd_io_op op,
		    uint32_t flags, uint64_t off, uint32_t len)
{
	const struct rnbd_io io = { .device_id = p->dev.device_id, .op = op, .flags = flags,
				    .sector = off >> RNBD_SECTOR_SHIFT, .bi_size = len };
	struct rnbd_msg_io m;

	rnbd_io_encode(&m, &io);
	post(p, cid, buf_id, op == RNBD_OP_READ || op == RNBD_OP_FLUSH, &m, sizeof(m),
	     op == RNBD_OP_READ || op == RNBD_OP_WRITE ? len : 0);
}

/* The answer, of which there is one. */
static int answer(struct hpath *p, uint32_t buf_id)
{
	int status = hpath_wait_answer(p, buf_id);

	expect_eq(p->answers[buf_id].n, p->answers[buf_id].posted);
	return status;
}

static int do_io(struct hpath *p, unsigned cid, uint32_t buf_id, enum rnbd_io_op op, uint32_t flags,
		 uint64_t off, uint32_t len)
{
	post_io(p, cid, buf_id, op, flags, off, len);
	return answer(p, buf_id);
}

static int do_close(struct hpath *p, uint32_t device_id)
{
	struct rnbd_msg_close m;

	rnbd_close_encode(&m, device_id);
	post(p, 0, 0, false, &m, sizeof(m), 0);
	return answer(p, 0);
}

/* ---- set-up ---- */

static void case_refused(void)
{
	struct hpath *p = client(3), *other;

	p->first_conn = false;			/* and nobody knows the session */
	expect_eq(hpath_connect(p, 0), -ENXIO);
	p->first_conn = true;
	p->cid_num = 0;
	expect_eq(hpath_connect(p, 0), -ECONNRESET);
	p->cid_num = RTRS_MAX_CONS + 1;
	expect_eq(hpath_connect(p, 0), -ECONNRESET);
	p->cid_num = 3;
	expect_eq(hpath_connect(p, 0), 0);
	p->cid_num = 4;
	expect_eq(hpath_connect(p, 1), -ECONNRESET);
	p->cid_num = 3;
	expect_eq(hpath_connect(p, 2), 0);	/* any order */

	other = twin(p);			/* the same path, its connection 2 is taken */
	expect_eq(hpath_connect(other, 2), -ECONNRESET);
	other->sess_uuid[0]++;			/* another path between the same addresses */
	expect_eq(hpath_connect(other, 0), -EEXIST);

	expect_eq(hpath_connect(p, 1), 0);
	expect_eq(hpath_info(p), 0);
}

static void case_info(void)
{
	static const char *const bad[] = { "with.dot", "with/slash", "", "name" };
	struct hpath *first = client(2), *p = client(2);

	rename_to(first, "name");
	hpath_up(first);
	expect_eq(hpath_connect(p, 0), 0);
	expect_eq(hpath_info(p), HCLOSED);	/* not all connections */
	go_away(p);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		rename_to(p, bad[i]);
		hpath_connect_all(p);
		expect_eq(hpath_info(p), HCLOSED);
		go_away(p);
	}
	hpath_close(first);
	hpath_up(p);				/* "name" is dying, or gone by now */
}

/* INFO_REQ a second time is a SEND where only requests are expected. */
static void case_info_twice(void)
{
	struct hpath *p = client(2);

	hpath_up(p);
	hpath_send(p, 0, NULL, 0);
	hpath_wait_closed(p);
}

/* A client is back with the same identities and not refused: a server that did not end its former
 * life would let it wait for that, and refuse it then. */
static void case_come_back(void)
{
	struct hpath *p = client_rw(3), *again;

	for (unsigned i = 0; i < 5; i++) {
		post_io(p, 1, 1, RNBD_OP_READ, 0, 0, 4096);
		go_away(p);
		hpath_up(p);
		open_a(p);
	}
	/* Its former connections still look alive to the server: they are closed at once. */
	again = twin(p);
	again->recon_cnt++;
	hpath_up(again);
	hpath_wait_closed(p);
	open_a(again);
}

static void case_half_open(void)
{
	struct hpath *p = client(4), *again = twin(p);

	for (unsigned k = 1; k <= 4; k++) {
		for (unsigned cid = 0; cid < k; cid++)
			expect_eq(hpath_connect(p, cid), 0);
		again->recon_cnt = p->recon_cnt + 1;
		hpath_up(again);
		go_away(p);
		go_away(again);
		p->recon_cnt = again->recon_cnt + 1;
	}
}

/* One host must not have it all. */
static void expect_share(uint16_t cid_num, unsigned at_least, unsigned at_most)
{
	unsigned n = 0;
	int rc;

	do {
		rc = hpath_connect(client(cid_num), 0);
		n++;
	} while (n < 60 && !rc);
	expect_eq(rc, -ENOMEM);
	expect(n > at_least && n <= at_most + 1);
}

static void case_host_memory(void)
{
	expect_share(2, 1, 40);	/* at most 4 of 16 GiB, 128.5 MiB each */
}

static void case_host_connections(void)
{
	expect_share(1000, 6, 6);
}

static void case_not_allowed(void)
{
	expect_eq(hpath_connect(client(2), 0), -ECONNRESET);
}

/* ---- devices ---- */

static void case_open(void)
{
	struct hpath *p = client_rw(2), *s = client(2);
	uint8_t id[sizeof(p->dev.export_id)];
	int status;

	hpath_up(s);
	expect_eq(hpath_open(p, "a", RNBD_ACCESS_RO), 0);	/* the same handle again */
	expect_eq(p->dev.device_id, 0);
	memcpy(id, p->dev.export_id, sizeof(id));
	expect_eq(hpath_open(p, "ro", RNBD_ACCESS_RO), 0);
	expect_eq(p->dev.device_id, 1);
	expect_eq(p->dev.nsectors, RO_SIZE / 512);
	expect(memcmp(id, p->dev.export_id, sizeof(id)));
	expect_eq(hpath_open(s, "ro", RNBD_ACCESS_RW), -EROFS);
	expect_eq(hpath_open(s, "none", RNBD_ACCESS_RO), -ENOENT);
	expect_eq(hpath_open(s, "../a", RNBD_ACCESS_RO), -EINVAL);
	expect_eq(hpath_open(s, "a", RNBD_ACCESS_RW), -EPERM);
	expect_eq(hpath_open(s, "a", RNBD_ACCESS_MIGRATION), 0);
	expect(!memcmp(id, s->dev.export_id, sizeof(id)));
	expect_eq(do_close(s, 0), 0);
	expect_eq(do_close(s, 77), 0);
	expect_eq(do_io(s, 1, 1, RNBD_OP_READ, 0, 0, 512), -ENOTCONN);
	expect_eq(do_close(p, 0), 0);
	open_a(s);
	expect(s->dev.device_id);			/* not the one that was closed */
	/* Its holder is dying: as soon as the server knows, the other one's OPEN waits for the end
	 * of that instead of failing. */
	hpath_close(s);
	while ((status = hpath_open(p, "a", RNBD_ACCESS_RW)))
		expect_eq(status, -EPERM);
}

/* The answer to @info in its place. */
static void sess_info(struct hpath *p, struct rnbd_sess_info *info)
{
	struct rnbd_msg_sess_info m;

	rnbd_sess_info_encode(&m, RNBD_MSG_SESS_INFO, info);
	post(p, 0, 0, true, &m, sizeof(m), sizeof(m));
	expect_eq(answer(p, 0), 0);
	expect_eq(rnbd_sess_info_decode(data_of(p, 0), sizeof(m), info), 0);
}

static void case_sess_info(void)
{
	struct hpath *p = client(2);
	struct rnbd_sess_info info = { .ver = 9 };
	uint8_t boot_id[8];
	uint32_t instance;

	hpath_up(p);
	sess_info(p, &info);
	expect_eq(info.ver, RNBD_PROTO_VER_MAJOR);
	expect(!info.ext.valid);			/* not asked for */
	expect_eq(info.ext.instance, 0);
	info = (struct rnbd_sess_info){ .ver = 1, .ext = { .valid = true } };
	sess_info(p, &info);
	expect_eq(info.ver, 1);
	expect(info.ext.valid);
	expect_eq(info.ext.features, RNBD_EXT_ALL);
	memcpy(boot_id, info.ext.boot_id, sizeof(boot_id));
	instance = info.ext.instance;
	expect(instance);
	info.ext = (struct rnbd_ext){ .valid = true };
	sess_info(p, &info);
	expect(!memcmp(boot_id, info.ext.boot_id, sizeof(boot_id)));
	expect_eq(info.ext.instance, instance);
}

/* An answer carries nothing but itself, however much room the client gives it. */
static void case_no_stale_bytes(void)
{
	const uint32_t room = 8192;
	struct hpath *p = client_rw(2);
	struct rnbd_msg_sess_info m;
	const struct rnbd_sess_info info = { .ver = 2 };

	fill(data_of(p, 3), room, 1);
	expect_eq(do_io(p, 1, 3, RNBD_OP_WRITE, 0, 0, room), 0);
	expect_eq(do_io(p, 1, 3, RNBD_OP_READ, 0, 0, room), 0);
	rnbd_sess_info_encode(&m, RNBD_MSG_SESS_INFO, &info);
	post(p, 0, 3, true, &m, sizeof(m), room);
	expect_eq(answer(p, 3), 0);
	for (uint32_t i = 5; i < room; i++)	/* header and version */
		expect_eq(data_of(p, 3)[i], 0);
	/* too little room, or none */
	post(p, 0, 3, true, &m, sizeof(m), sizeof(m) - 1);
	expect_eq(answer(p, 3), -EINVAL);
	post(p, 0, 3, false, &m, sizeof(m), 0);
	expect_eq(answer(p, 3), -EINVAL);
}

/* Ask for the names from @first on. */
static int list_names(struct hpath *p, uint32_t first, uint32_t room)
{
	struct rnbd_msg_list m;

	rnbd_list_encode(&m, first);
	post(p, 0, 0, true, &m, sizeof(m), room);
	return answer(p, 0);
}

static void expect_names(struct hpath *p, uint32_t room, const char *const *names, unsigned n,
			 uint32_t left)
{
	struct rnbd_list_reader r;
	char name[RNBD_NAME_MAX];

	expect_eq(rnbd_list_rsp_decode(data_of(p, 0), room, &r), 0);
	expect_eq(r.n, n);
	expect_eq(r.left, left);
	for (unsigned i = 0; i < n; i++) {
		expect_eq(rnbd_list_rsp_name(&r, name), 0);
		expect(!strcmp(name, names[i]));
	}
	for (; r.at < r.end; r.at++)
		expect_eq(*r.at, 0);
}

static void case_list(void)
{
	static const char *const names[] = { "a", "ro" };
	struct rnbd_sess_info info = { .ver = 2,
				       .ext = { .valid = true, .features = RNBD_EXT_LIST } };
	struct hpath *p = client(2);
	struct rnbd_msg_list m;

	hpath_up(p);
	fill(data_of(p, 0), 4096, 1);
	expect_eq(list_names(p, 0, 4096), -EINVAL);	/* it has not said that it can */
	sess_info(p, &info);
	expect_eq(list_names(p, 0, 4096), 0);
	expect_names(p, 4096, names, 2, 0);
	expect_eq(list_names(p, 1, RNBD_LIST_ROOM_MIN), 0);
	expect_names(p, RNBD_LIST_ROOM_MIN, names + 1, 1, 0);
	expect_eq(list_names(p, 2, 4096), 0);
	expect_names(p, 4096, NULL, 0, 0);
	expect_eq(list_names(p, UINT32_MAX, 4096), 0);
	expect_names(p, 4096, NULL, 0, 0);
	/* too little room, or none; cut off */
	expect_eq(list_names(p, 0, RNBD_LIST_ROOM_MIN - 1), -EINVAL);
	rnbd_list_encode(&m, 0);
	post(p, 0, 0, false, &m, sizeof(m), 0);
	expect_eq(answer(p, 0), -EINVAL);
	post(p, 0, 0, true, &m, sizeof(m) - 1, 4096);
	expect_eq(answer(p, 0), -EINVAL);
}

/* Data to the server means nothing, and data from there is zero, as much as fits a request. */
static void case_probe(void)
{
	struct rnbd_sess_info info = { .ver = 2,
				       .ext = { .valid = true, .features = RNBD_EXT_PROBE } };
	struct hpath *p = client(2);
	uint32_t full = p->geom.max_io_size;
	struct rnbd_msg_probe m;

	rnbd_probe_encode(&m);
	hpath_up(p);
	post(p, 0, 0, true, &m, sizeof(m), 4096);
	expect_eq(answer(p, 0), -EINVAL);		/* it has not said that it can */
	sess_info(p, &info);
	fill(data_of(p, 0), full, 1);
	post(p, 0, 0, false, &m, sizeof(m), full);
	expect_eq(answer(p, 0), 0);
	post(p, 0, 0, true, &m, sizeof(m), full);
	expect_eq(answer(p, 0), 0);
	for (uint32_t i = 0; i < full; i++)
		expect_eq(data_of(p, 0)[i], 0);
	post(p, 0, 0, true, &m, sizeof(m), 0);
	expect_eq(answer(p, 0), 0);
}

/* ---- IO ---- */

static void case_io(void)
{
	struct hpath *p = client_rw(4);
	static uint8_t want[8192], got[8192];

	for (unsigned cid = 0; cid < 4; cid++) {
		fill(want, sizeof(want), cid);
		memcpy(data_of(p, cid), want, sizeof(want));
		expect_eq(do_io(p, cid, cid, RNBD_OP_WRITE, RNBD_F_FUA, 65536 * cid, 8192), 0);
		file_read("a", got, sizeof(got), 65536 * cid);
		expect(!memcmp(want, got, sizeof(want)));
		memset(data_of(p, cid), 0xee, sizeof(want));
		expect_eq(do_io(p, cid, cid, RNBD_OP_READ, 0, 65536 * cid, 8192), 0);
		expect(!memcmp(want, data_of(p, cid), sizeof(want)));
	}
	expect_eq(do_io(p, 1, 0, RNBD_OP_FLUSH, 0, 0, 0), 0);
	expect_eq(do_io(p, 1, 0, RNBD_OP_WRITE_ZEROES, 0, 65536, 4096), 0);
	file_read("a", got, 8192, 65536);
	for (unsigned i = 0; i < 4096; i++)
		expect_eq(got[i], 0);
	fill(want, sizeof(want), 1);
	expect(!memcmp(want + 4096, got + 4096, 4096));
	expect_eq(do_io(p, 1, 0, RNBD_OP_DISCARD, 0, 0, 4096), 0);
	expect_eq(do_io(p, 1, 0, RNBD_OP_READ, 0, A_SIZE, 0), 0);
}

/* Ask what @len bytes from @off on are. */
static int extents(struct hpath *p, uint32_t device_id, uint64_t off, uint32_t len, uint32_t room)
{
	const struct rnbd_io io = { .device_id = device_id, .op = RNBD_OP_EXTENTS,
				    .sector = off / 512,
				    .bi_size = len };
	struct rnbd_msg_io m;

	rnbd_io_encode(&m, &io);
	post(p, 1, 0, true, &m, sizeof(m), room);
	return answer(p, 0);
}

static void case_extents(void)
{
	struct rnbd_sess_info info = { .ver = 2,
				       .ext = { .valid = true, .features = RNBD_EXT_EXTENTS } };
	struct hpath *p = client_rw(2);
	uint8_t *data = data_of(p, 0);

	fill(data, 4096, 1);
	/* it has not said that it can */
	expect_eq(extents(p, p->dev.device_id, 0, A_SIZE, 4096), -EOPNOTSUPP);
	sess_info(p, &info);
	expect_eq(do_io(p, 1, 0, RNBD_OP_WRITE, 0, 65536, 4096), 0);
	expect_eq(extents(p, p->dev.device_id, 0, A_SIZE, 4096), 0);
	expect_eq(rnbd_extents_decode(data, 4096, A_SIZE), 3);
	expect_eq(rnbd_extents_get(data, 0).len, 65536);
	expect_eq(rnbd_extents_get(data, 0).what, RNBD_EXTENT_HOLE | RNBD_EXTENT_ZERO);
	expect_eq(rnbd_extents_get(data, 1).len, 4096);
	expect_eq(rnbd_extents_get(data, 1).what, 0);
	expect_eq(rnbd_extents_get(data, 2).what, RNBD_EXTENT_HOLE | RNBD_EXTENT_ZERO);
	for (unsigned i = 32; i < 4096; i++)	/* nothing of what was there */
		expect_eq(data[i], 0);
	expect_eq(extents(p, p->dev.device_id, 0, A_SIZE, RNBD_EXTENTS_ROOM_MIN), 0);
	expect_eq(rnbd_extents_decode(data, RNBD_EXTENTS_ROOM_MIN, A_SIZE), 1);
	/* beyond the end; of nothing; without room; not open */
	expect_eq(extents(p, p->dev.device_id, A_SIZE - 512, 1024, 4096), -EIO);
	expect_eq(extents(p, p->dev.device_id, 0, 0, 4096), -EINVAL);
	expect_eq(extents(p, p->dev.device_id, 0, 512, RNBD_EXTENTS_ROOM_MIN - 1), -EINVAL);
	expect_eq(extents(p, p->dev.device_id + 1, 0, 512, 4096), -ENOTCONN);
	file_read("a", data, 4096, 65536);	/* nothing was done to it */
	expect(data[0] || data[1]);
}

static void case_io_errors(void)
{
	struct hpath *p = client_rw(2);
	struct rnbd_msg_io m;
	struct rnbd_io io = { .op = RNBD_OP_WRITE, .device_id = 1, .bi_size = 512 };
	uint8_t before[512];

	expect_eq(hpath_open(p, "ro", RNBD_ACCESS_RO), 0);
	open_a(p);				/* again the same handle */
	memset(data_of(p, 2), 0xab, 4096);
	expect_eq(do_io(p, 1, 2, RNBD_OP_READ, 0, A_SIZE - 512, 1024), -EIO);
	for (unsigned i = 0; i < 4096; i++)	/* a failed READ sends no data */
		expect_eq(data_of(p, 2)[i], 0xab);
	expect_eq(do_io(p, 1, 2, RNBD_OP_WRITE, 0, A_SIZE, 512), -EIO);
	expect_eq(do_io(p, 1, 2, RNBD_OP_SECURE_ERASE, 0, 0, 512), -EOPNOTSUPP);
	rnbd_io_encode(&m, &io);		/* device 1 is read-only */
	post(p, 1, 2, false, &m, sizeof(m), 512);
	expect_eq(answer(p, 2), -EPERM);
	file_read("ro", before, sizeof(before), 0);
	expect_eq(before[0], 0);
	io.device_id = 2;			/* does not exist */
	rnbd_io_encode(&m, &io);
	post(p, 1, 2, false, &m, sizeof(m), 512);
	expect_eq(answer(p, 2), -ENOTCONN);
	io.bi_size = 1024;			/* doc/traps.md 18 */
	rnbd_io_encode(&m, &io);
	post(p, 1, 2, false, &m, sizeof(m), 512);
	expect_eq(answer(p, 2), -EINVAL);
	post(p, 1, 2, false, "\x63\0\0\0", 4, 0);	/* unknown message */
	expect_eq(answer(p, 2), -EINVAL);
}

/* Every chunk in use, for many rounds, over all connections: writes, then reads that must match. */
static void case_depth(void)
{
	struct hpath *p = client_rw(5);
	unsigned depth = p->geom.queue_depth, len = 2048;

	expect(depth * len <= A_SIZE);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < depth; i++) {
			fill(data_of(p, i), len, round * 31 + i);
			post_io(p, 1 + i % 4, i, RNBD_OP_WRITE, 0, (uint64_t)i * len, len);
		}
		for (unsigned i = 0; i < depth; i++)
			expect_eq(answer(p, i), 0);
		for (unsigned i = 0; i < depth; i++) {
			memset(data_of(p, i), 0, len);
			post_io(p, 1 + (i + round) % 4, i, RNBD_OP_READ, 0, (uint64_t)i * len,
				    len);
		}
		for (unsigned i = 0; i < depth; i++) {
			uint8_t want[2048];

			expect_eq(answer(p, i), 0);
			fill(want, len, round * 31 + i);
			expect(!memcmp(want, data_of(p, i), len));
		}
	}
	expect_eq(p->answers[0].n, 2 * 20 + 1);	/* and the OPEN */
}

/* Lost with everything in flight, again and again.  Each chunk writes a block of its own, with
 * another content in each life: what is there at the end is what was written last, never an older
 * copy that was still on its way. */
static void case_churn(void)
{
	struct hpath *p = client_rw(4);
	unsigned depth = p->geom.queue_depth, len = 4096, lives = 60, life;

	expect(depth * len <= A_SIZE);
	for (life = 1; life <= lives; life++) {
		for (unsigned i = 0; i < depth; i++) {
			fill(data_of(p, i), len, life * 31 + i);
			post_io(p, 1 + (i + life) % 3, i, RNBD_OP_WRITE,
				    i % 16 ? 0 : RNBD_F_FUA, (uint64_t)i * len, len);
		}
		if (life % 3)	/* some answered, some not, some not even arrived */
			answer(p, life % depth);
		if (life == lives)
			break;
		go_away(p);
		hpath_up(p);
		open_a(p);
	}
	for (unsigned i = 0; i < depth; i++) {
		static uint8_t want[4096], got[4096];

		expect_eq(answer(p, i), 0);
		fill(want, len, life * 31 + i);
		file_read("a", got, len, (off_t)i * len);
		expect(!memcmp(want, got, len));
	}
}

/* A client that asks for much and takes nothing must not keep others from their answers. */
static void case_slow_reader(void)
{
	struct hpath *slow = client_rw(2), *p = client(3);
	uint32_t len = MIN(slow->geom.max_io_size, 131072u);

	for (unsigned i = 0; i < slow->geom.queue_depth; i++)
		post_io(slow, 1, i, RNBD_OP_READ, 0, 0, len);
	slow->idle = true;
	hpath_up(p);
	expect_eq(hpath_open(p, "a", RNBD_ACCESS_MIGRATION), 0);
	for (unsigned i = 0; i < 300; i++) {
		expect_eq(do_io(p, 1 + i % 2, i % 64, RNBD_OP_READ, 0, 0, 4096), 0);
		expect_eq(do_io(p, 1 + i % 2, i % 64, RNBD_OP_WRITE, 0, 0, 4096), 0);
	}
	slow->idle = false;
	for (unsigned i = 0; i < slow->geom.queue_depth; i++)
		expect_eq(answer(slow, i), 0);
}

/* ---- what closes a path ---- */

static void post_imm(struct hpath *p, unsigned cid, __be32 imm)
{
	hpath_write(p, cid, NULL, 0, 0, 0, true, be32toh(imm));
}

/* Both arrive before the first can have been answered. */
static void same_chunk_twice(struct hpath *p)
{
	const struct rnbd_io io = { .op = RNBD_OP_READ, .bi_size = 65536 };
	struct rnbd_msg_io m;
	const struct hreq r = { .cid = 1, .is_read = true, .data_len = io.bi_size, .usr = &m,
				.usr_len = sizeof(m) };
	struct hwrite w[2];

	expect_eq(hpath_open(p, "a", RNBD_ACCESS_RO), 0);
	rnbd_io_encode(&m, &io);
	for (unsigned i = 0; i < 2; i++)
		hreq_fill(&w[i], p, &r);
	w[0].wr.next = &w[1].wr;
	expect_eq(fab_post_send(p->cons[1].conn, &w[0].wr), 0);
}

static void case_violations(void)
{
	struct hpath *p = client(2);
	struct rnbd_msg_io m = { 0 };
	const struct {
		unsigned cid;
		__be32 imm;
	} imms[] = {
		{ 1, rtrs_imm_pack(RTRS_HB_MSG_IMM, 0) },	/* heartbeats belong on 0 */
		{ 1, rtrs_imm_pack(RTRS_IO_RSP_IMM, 0) },
		{ 0, rtrs_imm_pack(15, 1) },
		{ 1, rtrs_imm_pack(RTRS_IO_REQ_IMM, RTRS_IMM_PAYL_MASK) },	/* no such chunk */
		{ 1, rtrs_imm_pack(RTRS_IO_REQ_IMM, 64) },	/* nothing was written there */
	};

	for (unsigned i = 0; i < ARRAY_SIZE(imms); i++) {
		hpath_up(p);
		post_imm(p, imms[i].cid, imms[i].imm);
		hpath_wait_closed(p);
		go_away(p);
	}
	hpath_up(p);
	same_chunk_twice(p);
	hpath_wait_closed(p);
	go_away(p);
	hpath_up(p);
	post(p, 1, 0, false, &m, sizeof(m), 0);
	/* type SESS_INFO, too short: an answer, no violation */
	expect_eq(answer(p, 0), -EINVAL);
}

/* The end of a stream right behind a whole frame, in one segment: one event tells of both. */
static void case_end_behind_frame(void)
{
	const struct tcp_frame f = { .op = TCP_FRAME_RDMA_WRITE };
	struct hpath *p = client(3);
	uint8_t hdr[TCP_FRAME_HDR_LEN];
	int fd;

	hpath_up(p);
	fd = fab_conn_fd(p->cons[1].conn);
	tcp_frame_encode(hdr, &f);
	expect_eq(send(fd, hdr, sizeof(hdr), MSG_MORE), sizeof(hdr));
	expect_eq(shutdown(fd, SHUT_WR), 0);
	hpath_wait_closed(p);		/* heartbeats go on, so nothing else ends it */
}

static void case_heartbeat(void)
{
	struct hpath *p = client(2);

	hpath_up(p);
	for (unsigned i = 1; i <= 3; i++) {
		post_imm(p, 0, rtrs_imm_pack(RTRS_HB_MSG_IMM, 0));
		HWAIT(p->hb_acks == i);
	}
	HWAIT(p->hb_msgs);	/* the server's own, 5 s after INFO_RSP */
}

/* ---- shutdown ---- */

static void case_shutdown(void)
{
	struct hpath *p = client_rw(3), *half = client(2);
	unsigned depth = p->geom.queue_depth;

	expect_eq(hpath_connect(half, 0), 0);
	for (unsigned i = 0; i < depth; i++)
		post_io(p, 1 + i % 2, i, RNBD_OP_WRITE, RNBD_F_FUA, 4096 * (i % 256), 4096);
	HWAIT(p->answers[0].n == p->answers[0].posted);
	expect_eq(kill(server.pid, SIGTERM), 0);
	hpath_wait_closed(p);
	hpath_wait_closed(half);
	server_reap();
	for (unsigned i = 0; i < depth; i++)
		expect(p->answers[i].n < p->answers[i].posted || !p->answers[i].status);
}

/* ---- main ---- */

#define NONE .options = { NULL }
#define NEVER .options = { "--invalidate=never", NULL }
#define SMALL .options = { "--queue-depth=16", "--max-io-size=4096", "--threads=1", NULL }
#define LARGE .options = { "--max-io-size=1M", NULL }
#define ALLOW .options = { "--allow=192.0.2.0/24", NULL }

static const struct {
	const char *name;
	void (*fn)(void);
	const char *options[6];
	bool stops_itself;
} cases[] = {
	{ "refused", case_refused, NONE },
	{ "info", case_info, NONE },
	{ "info-twice", case_info_twice, NONE },
	{ "come-back", case_come_back, NONE },
	{ "come-back-never", case_come_back, NEVER },
	{ "half-open", case_half_open, NONE },
	{ "not-allowed", case_not_allowed, ALLOW },
	{ "host-memory", case_host_memory, LARGE },
	{ "host-connections", case_host_connections, SMALL },
	{ "open", case_open, NONE },
	{ "sess-info", case_sess_info, NONE },
	{ "list", case_list, NONE },
	{ "probe", case_probe, NONE },
	{ "extents", case_extents, NONE },
	{ "extents-never", case_extents, NEVER },
	{ "no-stale-bytes", case_no_stale_bytes, NONE },
	{ "no-stale-bytes-never", case_no_stale_bytes, NEVER },
	{ "io", case_io, NONE },
	{ "io-never", case_io, NEVER },
	{ "io-errors", case_io_errors, NONE },
	{ "depth", case_depth, NONE },
	{ "depth-never", case_depth, NEVER },
	{ "depth-small", case_depth, SMALL },
	{ "churn", case_churn, NONE },
	{ "churn-never", case_churn, NEVER },
	{ "slow-reader", case_slow_reader, NONE },
	{ "slow-reader-never", case_slow_reader, NEVER },
	{ "violations", case_violations, NONE },
	{ "end-behind-frame", case_end_behind_frame, NONE },
	{ "heartbeat", case_heartbeat, NONE },
	{ "shutdown", case_shutdown, NONE, .stops_itself = true },
	{ "shutdown-never", case_shutdown, NEVER, .stops_itself = true },
};

static void run_case(unsigned i)
{
	server_start(cases[i].options);
	cases[i].fn();
	if (!cases[i].stops_itself)
		server_stop();
}

int main(int argc, char **argv)
{
	unsigned ran = 0, failed = 0;

	if (argc < 3)
		return 2;
	server_program = argv[1];
	hrun.timeout_ms = strtoull(argv[2], NULL, 10) * 1000;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		int status;
		pid_t pid;

		if (argc > 3 && strcmp(argv[3], cases[i].name))
			continue;
		printf("case %s\n", cases[i].name);
		fflush(stdout);
		pid = fork();
		expect(pid >= 0);
		if (!pid) {
			run_case(i);
			_exit(0);
		}
		expect_eq(waitpid(pid, &status, 0), pid);
		failed += status != 0;
		ran++;
	}
	printf("%u cases, %u failed\n", ran, failed);
	return failed || !ran;
}
