/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: conformance PROVIDER [TEST]...
 *
 * The promises of fabric.h, a test for each, named by its letter.  Written against fabric.h alone;
 * each provider runs it unchanged.  Each test gets a world of its own and leaves nothing in it. */
#include "conformance.h"

int main(int argc, char **argv)
{
	const struct fab_provider *p;
	unsigned nrun;
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
	nrun = fab_tests_run(p, &w, argv + 2, NULL);
	printf("%u tests passed on %s\n", nrun, argv[1]);
	if (known_failures)
		printf("%u XFAIL: what this device is known not to keep (see above)\n",
		       known_failures);
	return nrun ? 0 : 2;
}
