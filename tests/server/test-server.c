/* SPDX-License-Identifier: BSD-3-Clause */
/* rtrs-server over tcp, seen by a client that can do anything (raw.h): set-up and its refusals,
 * come-backs, sharing, IO, what closes a path, shutdown.  usage: test-server [RTRS-SERVER [CASE]], in the top build directory
 *
 * Each case has a server of its own with two exports, "a" (1 MiB) and "ro" (64 KiB, read-only), in a
 * temporary directory. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "raw.h"
#include "rtrs-imm.h"
#include "tcp-frame.h"
#include "util.h"

#define A_SIZE (1024u * 1024u)
#define RO_SIZE 65536u

static const char *server_program = "./rtrs-server";

/* ---- a server ---- */

static struct {
	pid_t pid;
	char dir[64];
	char addr[FAB_ADDR_STRLEN];
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
	check(fd >= 0);
	check_eq(ftruncate(fd, size), 0);
	close(fd);
}

static void file_read(const char *name, void *buf, size_t len, off_t off)
{
	char path[128];
	int fd;

	path_in_dir(path, sizeof(path), name);
	fd = open(path, O_RDONLY);
	check(fd >= 0);
	check_eq(pread(fd, buf, len, off), (ssize_t)len);
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
	char line[sizeof(prefix) + sizeof(server.addr)];
	int out[2];
	FILE *f;

	strcpy(server.dir, "/tmp/test-server.XXXXXX");
	check(mkdtemp(server.dir));
	file_create("a", A_SIZE);
	file_create("ro", RO_SIZE);
	check_eq(pipe(out), 0);
	server.pid = fork();
	check(server.pid >= 0);
	if (!server.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);	/* when a check fails */
		server_exec(out[1], options);
	}
	close(out[1]);
	f = fdopen(out[0], "r");
	check(f && fgets(line, sizeof(line), f));
	check(!strncmp(line, prefix, strlen(prefix)));
	line[strcspn(line, "\n")] = 0;
	memmove(server.addr, line + strlen(prefix), strlen(line) - strlen(prefix) + 1);
	fclose(f);
}

static void server_reap(void)
{
	char path[128];
	int status;

	check_eq(waitpid(server.pid, &status, 0), server.pid);
	check(WIFEXITED(status));
	check_eq(WEXITSTATUS(status), 0);
	server.pid = 0;
	path_in_dir(path, sizeof(path), "a");
	unlink(path);
	path_in_dir(path, sizeof(path), "ro");
	unlink(path);
	rmdir(server.dir);
}

static void server_stop(void)
{
	check_eq(kill(server.pid, SIGTERM), 0);
	server_reap();
}

static void fill(uint8_t *p, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(seed + i * 7 + (i >> 8));
}

/* A client in service with "a" open for writing as device 0. */
static struct raw *client_rw(unsigned cid_num, const char *name)
{
	struct raw *r = raw_create(server.addr, cid_num);
	struct rnbd_dev_info info;

	raw_up(r, name);
	check_eq(raw_open(r, "a", RNBD_ACCESS_RW, &info), 0);
	check_eq(info.device_id, 0);
	check_eq(info.nsectors, A_SIZE / 512);
	return r;
}

/* ---- set-up ---- */

static void case_refused(void)
{
	struct raw *r = raw_create(server.addr, 3), *other;

	r->req.first_conn = false;
	check_eq(raw_connect(r, 0), -ENXIO);
	r->req.first_conn = true;
	r->req.cid_num = 0;
	check_eq(raw_connect(r, 0), -ECONNRESET);
	r->req.cid_num = RTRS_MAX_CONS + 1;
	check_eq(raw_connect(r, 0), -ECONNRESET);
	r->req.cid_num = 3;
	check_eq(raw_connect(r, 0), 0);
	r->req.cid_num = 4;
	check_eq(raw_connect(r, 1), -ECONNRESET);
	r->req.cid_num = 3;
	check_eq(raw_connect(r, 2), 0);		/* any order */

	other = raw_create(server.addr, 3);	/* the same path, its connection 2 is taken */
	other->req = r->req;
	check_eq(raw_connect(other, 2), -ECONNRESET);
	other->req.sess_uuid[0]++;		/* another path between the same addresses */
	check_eq(raw_connect(other, 0), -EEXIST);
	raw_destroy(other);

	check_eq(raw_connect(r, 1), 0);
	check(raw_info(r, "refused"));
	raw_destroy(r);
}

static void case_info(void)
{
	struct raw *first = raw_create(server.addr, 2), *r;
	static const char *const bad[] = { "with.dot", "with/slash", "" };

	raw_up(first, "name");
	r = raw_create(server.addr, 2);
	check_eq(raw_connect(r, 0), 0);
	check(!raw_info(r, "incomplete"));
	raw_down(r);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		check_eq(raw_connect(r, 0), 0);
		check_eq(raw_connect(r, 1), 0);
		check(!raw_info(r, bad[i]));
		raw_down(r);
	}
	check_eq(raw_connect(r, 0), 0);
	check_eq(raw_connect(r, 1), 0);
	check(!raw_info(r, "name"));		/* the other session's */
	raw_down(r);
	raw_destroy(first);
	raw_up(r, "name");			/* dying, or gone by now */
	raw_destroy(r);
}

/* INFO_REQ a second time is a SEND where only requests are expected. */
static void case_info_twice(void)
{
	struct raw *r = raw_create(server.addr, 2);
	struct ibv_send_wr wr = { .wr_id = (uintptr_t)&r->cons[0].cqe, .opcode = IBV_WR_SEND };

	raw_up(r, "twice");
	check_eq(fab_post_send(r->cons[0].fab, &wr), 0);
	raw_wait_closed(r);
	raw_destroy(r);
}

/* A client is back with the same identities and not refused: a server that did not end its former life would let it
 * wait for that, and refuse it then. */
static void come_back(struct raw *r, const char *name)
{
	raw_up(r, name);
}

static void case_come_back(void)
{
	struct raw *r = client_rw(3, "back"), *again;
	struct rnbd_dev_info info;

	for (unsigned i = 0; i < 5; i++) {
		raw_post_io(r, 1, 1, RNBD_OP_READ, 0, 0, 4096);
		raw_down(r);
		come_back(r, "back");
		check_eq(raw_open(r, "a", RNBD_ACCESS_RW, &info), 0);
	}
	/* Its former connections still look alive to the server: they are closed at once. */
	again = raw_create(server.addr, 3);
	again->req = r->req;
	again->req.recon_cnt++;
	come_back(again, "back");
	raw_wait_closed(r);
	check_eq(raw_open(again, "a", RNBD_ACCESS_RW, &info), 0);
	raw_destroy(again);
	raw_destroy(r);
}

static void case_half_open(void)
{
	struct raw *r = raw_create(server.addr, 4), *again = raw_create(server.addr, 4);

	for (unsigned k = 1; k <= 4; k++) {
		for (unsigned cid = 0; cid < k; cid++)
			check_eq(raw_connect(r, cid), 0);
		again->req = r->req;
		again->req.recon_cnt++;
		come_back(again, "half");
		raw_down(r);
		r->req.recon_cnt = again->req.recon_cnt;
		raw_down(again);
		r->req.recon_cnt += 2;
	}
	raw_destroy(again);
	raw_destroy(r);
}

/* One host must not have it all. */
static void expect_share(uint16_t cid_num, unsigned at_least, unsigned at_most)
{
	struct raw *all[60];
	unsigned n = 0;
	int rc = 0;

	while (n < ARRAY_SIZE(all) && !rc) {
		all[n] = raw_create(server.addr, 2);
		all[n]->req.cid_num = cid_num;
		rc = raw_connect(all[n++], 0);
	}
	check_eq(rc, -ENOMEM);
	check(n > at_least && n <= at_most + 1);
	for (unsigned i = 0; i < n; i++)
		raw_destroy(all[i]);
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
	struct raw *r = raw_create(server.addr, 2);

	check_eq(raw_connect(r, 0), -ECONNRESET);
	raw_destroy(r);
}

/* ---- devices ---- */

static void case_open(void)
{
	struct raw *r = client_rw(2, "one"), *s = raw_create(server.addr, 2);
	struct rnbd_dev_info info;
	int status;

	raw_up(s, "two");
	check_eq(raw_open(r, "a", RNBD_ACCESS_RO, &info), 0);	/* the same handle again */
	check_eq(info.device_id, 0);
	check_eq(raw_open(r, "ro", RNBD_ACCESS_RO, &info), 0);
	check_eq(info.device_id, 1);
	check_eq(info.nsectors, RO_SIZE / 512);
	check_eq(raw_open(s, "ro", RNBD_ACCESS_RW, &info), -EROFS);
	check_eq(raw_open(s, "none", RNBD_ACCESS_RO, &info), -ENOENT);
	check_eq(raw_open(s, "../a", RNBD_ACCESS_RO, &info), -EINVAL);
	check_eq(raw_open(s, "a", RNBD_ACCESS_RW, &info), -EPERM);
	check_eq(raw_open(s, "a", RNBD_ACCESS_MIGRATION, &info), 0);
	check_eq(raw_close(s, 0), 0);
	check_eq(raw_close(s, 77), 0);
	check_eq(raw_io(s, 1, 1, RNBD_OP_READ, 0, 0, 512), -ENOTCONN);
	check_eq(raw_close(r, 0), 0);
	check_eq(raw_open(s, "a", RNBD_ACCESS_RW, &info), 0);
	check_eq(info.device_id, 0);
	/* Its holder is dying: as soon as the server knows, the other one's OPEN waits for the end of
	 * that instead of failing. */
	raw_destroy(s);
	while ((status = raw_open(r, "a", RNBD_ACCESS_RW, &info)))
		check_eq(status, -EPERM);
	raw_destroy(r);
}

static void case_sess_info(void)
{
	struct raw *r = raw_create(server.addr, 2);
	struct rnbd_sess_info info = { .ver = 9 };
	uint8_t boot_id[8];

	raw_up(r, "info");
	check_eq(raw_sess_info(r, &info), 0);
	check_eq(info.ver, RNBD_PROTO_VER_MAJOR);
	check(!info.ext.valid);			/* not asked for */
	info = (struct rnbd_sess_info){ .ver = 1, .ext = { .valid = true } };
	check_eq(raw_sess_info(r, &info), 0);
	check_eq(info.ver, 1);
	check(info.ext.valid);
	check_eq(info.ext.features, RNBD_EXT_ALL);
	memcpy(boot_id, info.ext.boot_id, sizeof(boot_id));
	info.ext = (struct rnbd_ext){ .valid = true };
	check_eq(raw_sess_info(r, &info), 0);
	check(!memcmp(boot_id, info.ext.boot_id, sizeof(boot_id)));
	raw_destroy(r);
}

/* An answer carries nothing but itself, however much room the client gives it. */
static void case_no_stale_bytes(void)
{
	const uint32_t room = 8192;
	struct raw *r = client_rw(2, "stale");
	struct rnbd_msg_sess_info m;
	const struct rnbd_sess_info info = { .ver = 2 };

	fill(raw_data(r, 3), room, 1);
	check_eq(raw_io(r, 1, 3, RNBD_OP_WRITE, 0, 0, room), 0);
	check_eq(raw_io(r, 1, 3, RNBD_OP_READ, 0, 0, room), 0);
	rnbd_sess_info_encode(&m, RNBD_MSG_SESS_INFO, &info);
	raw_post(r, 0, 3, RTRS_DIR_READ, &m, sizeof(m), room);
	check_eq(raw_wait(r, 3), 0);
	for (uint32_t i = 5; i < room; i++)	/* header and version */
		check_eq(raw_data(r, 3)[i], 0);
	/* too little room, or none */
	raw_post(r, 0, 3, RTRS_DIR_READ, &m, sizeof(m), sizeof(m) - 1);
	check_eq(raw_wait(r, 3), -EINVAL);
	raw_post(r, 0, 3, RTRS_DIR_WRITE, &m, sizeof(m), 0);
	check_eq(raw_wait(r, 3), -EINVAL);
	raw_destroy(r);
}

/* ---- IO ---- */

static void case_io(void)
{
	struct raw *r = client_rw(4, "io");
	static uint8_t want[8192], got[8192];

	for (unsigned cid = 0; cid < 4; cid++) {
		fill(want, sizeof(want), cid);
		memcpy(raw_data(r, cid), want, sizeof(want));
		check_eq(raw_io(r, cid, cid, RNBD_OP_WRITE, RNBD_F_FUA, 65536 * cid, 8192), 0);
		file_read("a", got, sizeof(got), 65536 * cid);
		check(!memcmp(want, got, sizeof(want)));
		memset(raw_data(r, cid), 0xee, sizeof(want));
		check_eq(raw_io(r, cid, cid, RNBD_OP_READ, 0, 65536 * cid, 8192), 0);
		check(!memcmp(want, raw_data(r, cid), sizeof(want)));
	}
	check_eq(raw_io(r, 1, 0, RNBD_OP_FLUSH, 0, 0, 0), 0);
	check_eq(raw_io(r, 1, 0, RNBD_OP_WRITE_ZEROES, 0, 65536, 4096), 0);
	file_read("a", got, 8192, 65536);
	for (unsigned i = 0; i < 4096; i++)
		check_eq(got[i], 0);
	fill(want, sizeof(want), 1);
	check(!memcmp(want + 4096, got + 4096, 4096));
	check_eq(raw_io(r, 1, 0, RNBD_OP_DISCARD, 0, 0, 4096), 0);
	check_eq(raw_io(r, 1, 0, RNBD_OP_READ, 0, A_SIZE, 0), 0);
	raw_destroy(r);
}

static void case_io_errors(void)
{
	struct raw *r = client_rw(2, "errors");
	struct rnbd_dev_info info;
	struct rnbd_msg_io m;
	struct rnbd_io io = { .op = RNBD_OP_WRITE, .device_id = 1, .bi_size = 512 };
	uint8_t before[512];

	check_eq(raw_open(r, "ro", RNBD_ACCESS_RO, &info), 0);
	memset(raw_data(r, 2), 0xab, 4096);
	check_eq(raw_io(r, 1, 2, RNBD_OP_READ, 0, A_SIZE - 512, 1024), -EIO);
	for (unsigned i = 0; i < 4096; i++)	/* a failed READ sends no data */
		check_eq(raw_data(r, 2)[i], 0xab);
	check_eq(raw_io(r, 1, 2, RNBD_OP_WRITE, 0, A_SIZE, 512), -EIO);
	check_eq(raw_io(r, 1, 2, RNBD_OP_SECURE_ERASE, 0, 0, 512), -EOPNOTSUPP);
	check_eq(raw_io(r, 1, 2, RNBD_OP_WRITE, 0x1000, 0, 512), -EOPNOTSUPP);
	rnbd_io_encode(&m, &io);		/* device 1 is read-only */
	raw_post(r, 1, 2, RTRS_DIR_WRITE, &m, sizeof(m), 512);
	check_eq(raw_wait(r, 2), -EPERM);
	file_read("ro", before, sizeof(before), 0);
	check_eq(before[0], 0);
	io.device_id = 2;			/* does not exist */
	rnbd_io_encode(&m, &io);
	raw_post(r, 1, 2, RTRS_DIR_WRITE, &m, sizeof(m), 512);
	check_eq(raw_wait(r, 2), -ENOTCONN);
	io.bi_size = 1024;			/* doc/traps.md 18 */
	rnbd_io_encode(&m, &io);
	raw_post(r, 1, 2, RTRS_DIR_WRITE, &m, sizeof(m), 512);
	check_eq(raw_wait(r, 2), -EINVAL);
	raw_post(r, 1, 2, RTRS_DIR_WRITE, "\x63\0\0\0", 4, 0);	/* unknown message */
	check_eq(raw_wait(r, 2), -EINVAL);
	raw_destroy(r);
}

/* Every chunk in use, for many rounds, over all connections: writes, then reads that must match. */
static void case_depth(void)
{
	struct raw *r = client_rw(5, "depth");
	unsigned depth = r->geom.queue_depth, len = 2048;

	check(depth * len <= A_SIZE);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < depth; i++) {
			fill(raw_data(r, i), len, round * 31 + i);
			raw_post_io(r, 1 + i % 4, i, RNBD_OP_WRITE, 0, (uint64_t)i * len, len);
		}
		for (unsigned i = 0; i < depth; i++)
			check_eq(raw_wait(r, i), 0);
		for (unsigned i = 0; i < depth; i++) {
			memset(raw_data(r, i), 0, len);
			raw_post_io(r, 1 + (i + round) % 4, i, RNBD_OP_READ, 0, (uint64_t)i * len,
				    len);
		}
		for (unsigned i = 0; i < depth; i++) {
			uint8_t want[2048];

			check_eq(raw_wait(r, i), 0);
			fill(want, len, round * 31 + i);
			check(!memcmp(want, raw_data(r, i), len));
		}
	}
	check_eq(r->slots[0].answers, 2 * 20 + 1);	/* and the OPEN */
	raw_destroy(r);
}

/* Lost with everything in flight, again and again.  Each chunk writes a block of its own, with another
 * content in each life: what is there at the end is what was written last, never an older copy that
 * was still on its way. */
static void case_churn(void)
{
	struct raw *r = client_rw(4, "churn");
	unsigned depth = r->geom.queue_depth, len = 4096, lives = 60, life;
	struct rnbd_dev_info info;

	check(depth * len <= A_SIZE);
	for (life = 1; life <= lives; life++) {
		for (unsigned i = 0; i < depth; i++) {
			fill(raw_data(r, i), len, life * 31 + i);
			raw_post_io(r, 1 + (i + life) % 3, i, RNBD_OP_WRITE,
				    i % 16 ? 0 : RNBD_F_FUA, (uint64_t)i * len, len);
		}
		if (life % 3)	/* some answered, some not, some not even arrived */
			raw_wait(r, life % depth);
		if (life == lives)
			break;
		raw_down(r);
		come_back(r, "churn");
		check_eq(raw_open(r, "a", RNBD_ACCESS_RW, &info), 0);
		check_eq(info.device_id, 0);
	}
	for (unsigned i = 0; i < depth; i++) {
		static uint8_t want[4096], got[4096];

		check_eq(raw_wait(r, i), 0);
		fill(want, len, life * 31 + i);
		file_read("a", got, len, (off_t)i * len);
		check(!memcmp(want, got, len));
	}
	raw_destroy(r);
}

/* A client that asks for much and takes nothing must not keep others from their answers. */
static void case_slow_reader(void)
{
	struct raw *slow = client_rw(2, "slow"), *r = raw_create(server.addr, 3);
	struct rnbd_dev_info info;
	uint32_t len = MIN(slow->geom.max_io_size, 131072u);

	for (unsigned i = 0; i < slow->geom.queue_depth; i++)
		raw_post_io(slow, 1, i, RNBD_OP_READ, 0, 0, len);
	raw_up(r, "quick");
	check_eq(raw_open(r, "a", RNBD_ACCESS_MIGRATION, &info), 0);
	for (unsigned i = 0; i < 300; i++) {
		check_eq(raw_io(r, 1 + i % 2, i % 64, RNBD_OP_READ, 0, 0, 4096), 0);
		check_eq(raw_io(r, 1 + i % 2, i % 64, RNBD_OP_WRITE, 0, 0, 4096), 0);
	}
	for (unsigned i = 0; i < slow->geom.queue_depth; i++)
		check_eq(raw_wait(slow, i), 0);
	raw_destroy(r);
	raw_destroy(slow);
}

/* ---- what closes a path ---- */

static void post_imm(struct raw *r, unsigned cid, __be32 imm)
{
	struct ibv_send_wr wr = {
		.wr_id = (uintptr_t)&r->cons[cid].cqe,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = imm,
	};

	check_eq(fab_post_send(r->cons[cid].fab, &wr), 0);
}

/* Both arrive before the first can have been answered. */
static void same_chunk_twice(struct raw *r)
{
	struct rtrs_wr_req w[2];
	struct rnbd_dev_info info;
	const struct rnbd_io io = { .op = RNBD_OP_READ, .bi_size = 65536 };
	struct rnbd_msg_io m;

	check_eq(raw_open(r, "a", RNBD_ACCESS_RO, &info), 0);
	rnbd_io_encode(&m, &io);
	for (unsigned i = 0; i < 2; i++)
		raw_prepare(r, &w[i], 1, 0, RTRS_DIR_READ, &m, sizeof(m), io.bi_size);
	w[0].wr.next = &w[1].wr;
	check_eq(fab_post_send(r->cons[1].fab, &w[0].wr), 0);
}

static void case_violations(void)
{
	struct raw *r = raw_create(server.addr, 2);
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
		raw_up(r, "violations");
		post_imm(r, imms[i].cid, imms[i].imm);
		raw_wait_closed(r);
		raw_down(r);
	}
	raw_up(r, "violations");
	same_chunk_twice(r);
	raw_wait_closed(r);
	raw_down(r);
	raw_up(r, "violations");
	raw_post(r, 1, 0, RTRS_DIR_WRITE, &m, sizeof(m), 0);
	check_eq(raw_wait(r, 0), -EINVAL);	/* type SESS_INFO, too short: an answer, no violation */
	raw_destroy(r);
}

/* The end of a stream right behind a whole frame, in one segment: one event tells of both. */
static void case_end_behind_frame(void)
{
	const struct tcp_frame f = { .op = TCP_FRAME_RDMA_WRITE };
	struct raw *r = raw_create(server.addr, 3);
	uint8_t hdr[TCP_FRAME_HDR_LEN];
	int fd;

	raw_up(r, "end");
	fd = fab_conn_fd(r->cons[1].fab);
	tcp_frame_encode(hdr, &f);
	check_eq(send(fd, hdr, sizeof(hdr), MSG_MORE), sizeof(hdr));
	check_eq(shutdown(fd, SHUT_WR), 0);
	raw_wait_closed(r);		/* heartbeats go on, so nothing else ends it */
	raw_destroy(r);
}

static void case_heartbeat(void)
{
	struct raw *r = raw_create(server.addr, 2);

	raw_up(r, "heart");
	for (unsigned i = 1; i <= 3; i++) {
		post_imm(r, 0, rtrs_imm_pack(RTRS_HB_MSG_IMM, 0));
		raw_until(r, r->acks_seen == i);
	}
	raw_until(r, r->hb_seen);	/* the server's own, 5 s after INFO_RSP */
	raw_destroy(r);
}

/* ---- shutdown ---- */

static void case_shutdown(void)
{
	struct raw *r = client_rw(3, "shutdown"), *half = raw_create(server.addr, 2);
	unsigned depth = r->geom.queue_depth;

	check_eq(raw_connect(half, 0), 0);
	for (unsigned i = 0; i < depth; i++)
		raw_post_io(r, 1 + i % 2, i, RNBD_OP_WRITE, RNBD_F_FUA, 4096 * (i % 256), 4096);
	raw_until(r, !r->slots[0].busy);
	check_eq(kill(server.pid, SIGTERM), 0);
	raw_wait_closed(r);
	raw_wait_closed(half);
	server_reap();
	for (unsigned i = 0; i < depth; i++)
		check(r->slots[i].busy || !r->slots[i].status);
	raw_destroy(half);
	raw_destroy(r);
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

int main(int argc, char **argv)
{
	unsigned ran = 0;

	if (argc > 1)
		server_program = argv[1];
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		if (argc > 2 && strcmp(argv[2], cases[i].name))
			continue;
		fprintf(stderr, "case %s\n", cases[i].name);
		server_start(cases[i].options);
		cases[i].fn();
		if (!cases[i].stops_itself)
			server_stop();
		ran++;
	}
	check(ran);
	return 0;
}
