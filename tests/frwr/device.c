/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: frwr-device [PROVIDER [CASE]...]
 *
 * The cases of device-*.c on PROVIDER [tcp], all of them or those whose names begin with CASE.  A
 * guest runs it on soft-RoCE, with FABRIC_ADDRESS at the address of the device
 * (tests/guest/test-frwr.sh). */
#include <string.h>

#include "device.h"

bool on_device;

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "tcp";
	const struct fab_provider *p;
	unsigned nrun;
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
	nrun = fab_tests_run(p, &w, argc > 1 ? argv + 2 : NULL, NULL);
	printf("%u cases passed on %s\n", nrun, name);
	if (known_failures)
		printf("%u XFAIL: what this device is known not to keep (see above)\n",
		       known_failures);
	return nrun ? 0 : 2;
}
