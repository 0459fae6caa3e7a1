/* SPDX-License-Identifier: BSD-3-Clause */
/* The suite on real descriptors of this machine's loopback, or at FABRIC_ADDRESS; over TLS with the
 * keys of the file FABRIC_TLS_PSK, with FABRIC_KTLS by the kernel. */
#include "fab-tls.h"
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

static const struct fab_tls *tls_end(const char *file, bool server)
{
	const struct fab_tls_conf conf = { .server = server, .asked = true,
					   .mode = FAB_TLS_REQUIRE, .psk = file,
					   .ktls = getenv("FABRIC_KTLS") ? FAB_KTLS_AUTO :
									   FAB_KTLS_OFF };
	struct fab_tls *tls = NULL;
	char err[256] = "";

	if (fab_tls_create(&conf, &tls, err, sizeof(err)))
		check_failed(__FILE__, __LINE__, err);
	return tls;
}

void provider_start(void)
{
	const char *keys = getenv("FABRIC_TLS_PSK");
	const char *address = getenv("FABRIC_ADDRESS");

	if (address)
		provider_address = address;
	if (keys)
		provider_cipher = getenv("FABRIC_KTLS") ? "kTLS1.3 " : "TLS1.3 ";
	for (int i = 0; keys && i < 2; i++)
		provider_tls[i] = tls_end(keys, i == 0);
}

int provider_wait(struct pollfd *fds, unsigned n, int timeout_ms)
{
	return poll(fds, n, timeout_ms);
}
