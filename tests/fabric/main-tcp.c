/* SPDX-License-Identifier: BSD-3-Clause */
/* The suite on real descriptors of this machine's loopback. */
#include "harness.h"

const char *provider_address = "127.0.0.1";
const bool provider_threads = true;

int provider_wait(struct pollfd *fds, unsigned n, int timeout_ms)
{
	return poll(fds, n, timeout_ms);
}
