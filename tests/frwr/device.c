/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: frwr-device [PROVIDER [CASE]...]
 *
 * The cases of device.h on PROVIDER [tcp], all of them or those whose names begin with CASE.  A
 * guest runs it on soft-RoCE, with FABRIC_ADDRESS at the address of the device
 * (tests/guest/test-frwr.sh). */
#include <string.h>

#include "device.h"
#include "util.h"

#define CASE(fn) { #fn, fn }

static const struct {
	const char *name;
	void (*run)(struct world *w);
} cases[] = {
	CASE(t16_bind_write_invalidate),
	CASE(t17_invalidated_by_the_peer),
	CASE(t18_chains),
	CASE(t19_reads_and_writes),
	CASE(t21_violations),
	CASE(t22_slots_bound_windows),
	CASE(t23_peer_killed),
	CASE(t24_retried_binds),
	CASE(t25_ends_with_requests_in_flight),
	CASE(t26_given_up),
	CASE(t28_double_invalidate),
};

bool on_device;

static bool chosen(const char *name, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++) {
		if (strncmp(name, *names, strlen(*names)) == 0)
			return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "tcp";
	const struct fab_provider *p;
	unsigned nrun = 0;
	struct world w;

	provider_start();
	p = fab_provider_find(name);
	if (!p) {
		fprintf(stderr, "%s: no such provider\n", name);
		return 2;
	}
	on_device = strcmp(name, "tcp") != 0;
	if (argc > 2 && strcmp(argv[2], "--peer") == 0)
		peer_main(p, argc > 3 ? argv[3] : NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		if (argc > 1 && !chosen(cases[i].name, argv + 2))
			continue;
		printf("%s\n", cases[i].name);
		fflush(stdout);
		world_init(&w, p);
		cases[i].run(&w);
		world_fini(&w);
		nrun++;
	}
	printf("%u cases passed on %s\n", nrun, name);
	if (known_failures)
		printf("%u XFAIL: what this device is known not to keep (see above)\n",
		       known_failures);
	return nrun ? 0 : 2;
}
