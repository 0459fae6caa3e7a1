/* SPDX-License-Identifier: BSD-3-Clause */
/* The conformance suite of tests/fabric on the sim provider: waiting is stepping virtual time. */
#include "../fabric/harness.h"
#include "sim-fabric.h"

const char *provider_address = "127.0.0.1";
const bool provider_threads = false;
const bool provider_retries_rnr = false;
const bool provider_rereg = true;
const bool provider_windows = true;
const bool provider_zero_based = true;
const bool provider_window_bounds = true;
const unsigned provider_late_bytes = 0;
const bool provider_peer_inv_checked = true;

void provider_start(void)
{
	sim_init(1);
	fab_provider_register(&fab_sim);
}

static int count_ready(const struct pollfd *fds, unsigned n)
{
	int ready = 0;

	for (unsigned i = 0; i < n; i++)
		ready += (sim_fd_ready(fds[i].fd) & fds[i].events) != 0;
	return ready;
}

int provider_wait(struct pollfd *fds, unsigned n, int timeout_ms)
{
	uint64_t until_us = timeout_ms < 0 ? UINT64_MAX :
					     sim_now_us() + (uint64_t)timeout_ms * 1000;

	while (!count_ready(fds, n) && sim_step(until_us))
		;
	return count_ready(fds, n);
}
