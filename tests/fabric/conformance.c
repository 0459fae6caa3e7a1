/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: conformance PROVIDER [TEST]...
 *
 * The promises of fabric.h, a test for each, named by its letter.  Written against fabric.h alone;
 * each provider runs it unchanged. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "harness.h"
#include "util.h"

#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static struct world w;

static void setup_connect(void)
{
	struct fab_addr local, peer;
	struct pair p;

	pair_connect(&w, &p, &default_attr);
	check_eq(p.b->pdata_len, 5);
	check(memcmp(p.b->pdata, "hello", 5) == 0);
	check(p.a->pdata_len >= 7);
	check(memcmp(p.a->pdata, "welcome", 7) == 0);
	fab_conn_addrs(p.a->conn, &local, &peer);
	check_eq(fab_addr_port(&peer), fab_addr_port(&w.addr));
	check(fab_addr_same_host(&peer, &w.addr));
	check(strcmp(fab_conn_cause(p.a->conn), "") == 0);
	pair_close(&p);
}

static void setup_reject(void)
{
	struct end *a = end_active(&w, &w.addr, &default_attr);
	uint8_t why[FAB_REJECT_DATA_MAX];

	memset(why, 0x5a, sizeof(why));
	check_eq(fab_connect(a->conn, "x", 1), 0);
	world_until(&w, w.request);
	fab_reject(w.request->conn, why, sizeof(why));
	end_gone(w.request);
	world_until(&w, a->rejected);
	check_eq(a->pdata_len, sizeof(why));
	check(memcmp(a->pdata, why, sizeof(why)) == 0);
	end_free(a);
}

/* d: what was written is there when the immediate behind it is. */
static void promise_d_visibility(void)
{
	struct pair p;
	struct region src, dst;
	struct ibv_send_wr wr[2];
	struct ibv_sge sge[2];

	pair_connect(&w, &p, &default_attr);
	src = region_create(p.a->pd, 8192, IBV_ACCESS_LOCAL_WRITE);
	dst = region_create(p.b->pd, 8192, RIGHTS);
	memset(src.mem, 0x11, 4096);
	memset(src.mem + 4096, 0x22, 4096);
	sge[0] = region_sge(&src, 0, 4096);
	sge[1] = region_sge(&src, 4096, 4096);
	check_eq(post_recvs(p.b, 0, 2), 0);
	wr[0] = wr_write(0, &sge[0], target(&dst, 0));
	wr[1] = wr_write_imm(1, &sge[1], target(&dst, 4096), 0xabcdef01);
	wr[1].send_flags = IBV_SEND_SIGNALED;
	check_eq(post(p.a, wr, 2), 0);
	check_eq(p.a->nsends, 0);
	world_until(&w, p.b->nrecvs == 1);
	check(memcmp(src.mem, dst.mem, 8192) == 0);
	check_eq(p.b->recvs[0].wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	check_eq(p.b->recvs[0].wc.byte_len, 4096);
	check(p.b->recvs[0].wc.wc_flags & IBV_WC_WITH_IMM);
	check_eq(be32toh(p.b->recvs[0].wc.imm_data), 0xabcdef01);
	world_until(&w, p.a->nsends == 1);
	check_eq(p.a->sends[0].id, 1);
	check_eq(p.a->sends[0].wc.opcode, IBV_WC_RDMA_WRITE);
	region_destroy(&src);
	region_destroy(&dst);
	pair_close(&p);
}

static const struct test {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "setup_connect", setup_connect },
	{ "setup_reject", setup_reject },
	{ "promise_d_visibility", promise_d_visibility },
};

static bool chosen(const char *name, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++) {
		if (strcmp(name, *names) == 0)
			return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	const struct fab_provider *p;

	if (argc < 2) {
		fprintf(stderr, "usage: %s PROVIDER [TEST]...\n", argv[0]);
		return 2;
	}
	p = fab_provider_find(argv[1]);
	if (!p) {
		fprintf(stderr, "%s: no such provider\n", argv[1]);
		return 2;
	}
	for (unsigned i = 0; i < ARRAY_SIZE(tests); i++) {
		if (!chosen(tests[i].name, argv + 2))
			continue;
		printf("%s\n", tests[i].name);
		fflush(stdout);
		world_init(&w, p);
		tests[i].run();
		world_fini(&w);
	}
	return 0;
}
