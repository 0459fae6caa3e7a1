/* SPDX-License-Identifier: BSD-3-Clause */
/* The suite on real descriptors of this machine's loopback, or at FABRIC_ADDRESS. */
#include "harness.h"

const char *provider_address = "127.0.0.1";
const bool provider_threads = true;
const bool provider_retries_rnr = false;
const bool provider_rereg = true;
const bool provider_windows = true;
const bool provider_zero_based = true;
const bool provider_window_bounds = true;
const unsigned provider_late_bytes = 0;
const bool provider_peer_inv_checked = true;

void provider_start(void)
{
	const char *address = getenv("FABRIC_ADDRESS");

	if (address)
		provider_address = address;
}

int provider_wait(struct pollfd *fds, unsigned n, int timeout_ms)
{
	return poll(fds, n, timeout_ms);
}
