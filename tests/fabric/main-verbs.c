/* SPDX-License-Identifier: BSD-3-Clause */
/* The suite on real descriptors of this machine's RDMA devices, at FABRIC_ADDRESS. */
#include "harness.h"

const char *provider_address = "10.1.0.1";
const bool provider_threads = true;
const bool provider_retries_rnr = true;
const bool provider_rereg = false;
const bool provider_windows = true;
const bool provider_zero_based = false;
const bool provider_window_bounds = false;
const unsigned provider_late_bytes = 4096;	/* the largest packet of RoCE */
const bool provider_peer_inv_checked = false;

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
