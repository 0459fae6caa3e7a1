/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: conformance PROVIDER [TEST]...
 *
 * The promises of fabric.h, a test for each, named by its letter.  Written against fabric.h alone;
 * each provider runs it unchanged.  Each test gets a world of its own and leaves nothing in it. */
#include <string.h>

#include "conformance.h"
#include "util.h"

#define TEST(fn) { #fn, fn, false }
#define TEST_THREADS(fn) { #fn, fn, true }

static const struct test {
	const char *name;
	void (*run)(struct world *w);
	bool threads;
} tests[] = {
	TEST(setup_connect),
	TEST(setup_reject),
	TEST(setup_admit),
	TEST(setup_seal),
	TEST(setup_unreachable),
	TEST(setup_abort),
	TEST(setup_port_in_use),
	TEST(setup_many),
	TEST(setup_limits),
	TEST(promise_a_order),
	TEST(promise_b_unsignaled),
	TEST(promise_c_flush),
	TEST(promise_c_peer),
	TEST(promise_d_visibility),
	TEST(promise_e_p12_no_receive),
	TEST(promise_f_only_poll),
	TEST(promise_g_both_ways),
	TEST_THREADS(promise_h_threads),
	TEST(promise_i_checks),
	TEST(promise_i_edges),
	TEST(promise_i_domains),
	TEST(region_by_iova),
	TEST(rereg_by_iova),
	TEST(promise_k_rereg),
	TEST(promise_k_placing),
	TEST(promise_k_suspend),
	TEST(promise_k_suspend_placing),
	TEST_THREADS(promise_k_threads),
	TEST(promise_k_windows),
	TEST_THREADS(promise_k_window_threads),
	TEST(promise_l_buffers),
	TEST(promise_m_bind),
	TEST(promise_m_all_memory),
	TEST(promise_m_zero_based),
	TEST(promise_m_t18_chain),
	TEST(promise_m_remote_inv),
	TEST(promise_m_t20_type_1),
	TEST(promise_m_mixed),
	TEST(promise_m_rules),
	TEST(promise_m_remote_rules),
	TEST(promise_m_both_invalidate),
	TEST(promise_m_t20_writes),
	TEST(promise_m_dead),
	TEST(promise_n_hold),
	TEST(memory_given_back),
	TEST_THREADS(promise_n_threads),
	TEST(sleep_and_post),
	TEST(edge_before_poll),
	TEST(send_kinds),
	TEST(send_lists),
	TEST(send_too_long),
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
	unsigned nrun = 0;
	struct world w;

	if (argc < 2) {
		fprintf(stderr, "usage: %s PROVIDER [TEST]...\n", argv[0]);
		return 2;
	}
	provider_start();
	p = fab_provider_find(argv[1]);
	if (!p) {
		fprintf(stderr, "%s: no such provider\n", argv[1]);
		return 2;
	}
	for (unsigned i = 0; i < ARRAY_SIZE(tests); i++) {
		if (!chosen(tests[i].name, argv + 2) || (tests[i].threads && !provider_threads))
			continue;
		printf("%s\n", tests[i].name);
		fflush(stdout);
		world_init(&w, p);
		tests[i].run(&w);
		world_fini(&w);
		nrun++;
	}
	printf("%u tests passed on %s\n", nrun, argv[1]);
	if (known_failures)
		printf("%u XFAIL: what this device is known not to keep (see above)\n",
		       known_failures);
	return nrun ? 0 : 2;
}
