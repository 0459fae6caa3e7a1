/* SPDX-License-Identifier: BSD-3-Clause */
/* A kernel with TLS, made of setsockopt(), sendmsg() and recvmsg() in the place of the C library's
 * (--wrap): what tests/guest/test-ktls.sh sees of real kernels, without one.  A record stays in the
 * socket until its last byte is taken, so that poll(2) sees what waits.  One thread. */
#ifndef FAKE_KTLS_H
#define FAKE_KTLS_H

enum fake_ktls_refusal {
	FAKE_KTLS_TAKES_ALL,
	FAKE_KTLS_NO_MODULE,
	FAKE_KTLS_NO_KEY,
	FAKE_KTLS_NO_SENDING,		/* takes the key for receiving alone */
};

/* What the kernel refuses.  Absent in a program with the real kernel. */
extern enum fake_ktls_refusal fake_ktls_refuse __attribute__((weak));
/* How often the kernel was asked for TLS, and for a key, either of which may load a module. */
extern unsigned fake_ktls_ulps __attribute__((weak));
extern unsigned fake_ktls_keys __attribute__((weak));

#endif
