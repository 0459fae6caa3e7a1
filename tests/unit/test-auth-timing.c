/* SPDX-License-Identifier: BSD-3-Clause */
/* The comparison of proofs takes as long wherever they differ: Welch's t over 10^5 tries of each
 * kind, in an order of chance.  Whoever could time it would find a proof byte by byte.  The same
 * statistics see a comparison that ends at the first difference.  Only with SLOW_TESTS: a machine
 * with other work is no clock. */
#include <math.h>
#include <stdint.h>
#include <time.h>

#include "unit.h"

#include "auth-crypto.h"
#include "clock.h"

#define TRIES 100000u			/* of each kind */
#define CALLS 16			/* in a try */
#define ROUNDS 5
#define T_SAME 5.0			/* |t| above: the kinds differ */
#define T_SEEN 50.0			/* |t| of a comparison that tells */

typedef bool compare_fn(const void *a, const void *b, size_t len);

/* As memcmp() may be: ends early. */
static bool ends_early(const void *a, const void *b, size_t len)
{
	const volatile uint8_t *x = a, *y = b;

	for (size_t i = 0; i < len; i++) {
		if (x[i] != y[i])
			return false;
	}
	return true;
}

static uint32_t took(compare_fn *compare, const uint8_t *a, const uint8_t *b)
{
	struct timespec before, after;
	volatile bool same = false;

	clock_gettime(CLOCK_MONOTONIC, &before);
	for (unsigned i = 0; i < CALLS; i++)
		same = compare(a, b, AUTH_HASH_LEN);
	clock_gettime(CLOCK_MONOTONIC, &after);
	cr_assert_not(same);
	return (uint32_t)((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec -
			  before.tv_nsec);
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Mean and variance of the values up to @most: those beyond are interrupts. */
static double mean_of(const uint32_t *ns, uint32_t most, double *var, double *n)
{
	double sum = 0, squares = 0, mean;

	*n = 0;
	for (unsigned i = 0; i < TRIES; i++) {
		if (ns[i] > most)
			continue;
		*n += 1;
		sum += ns[i];
		squares += (double)ns[i] * ns[i];
	}
	mean = sum / *n;
	*var = squares / *n - mean * mean;
	return mean;
}

/* Welch's t of proofs that differ in the first byte, and in the last byte. */
static double welch(compare_fn *compare, uint64_t seed)
{
	static uint32_t ns[2][TRIES], all[2 * TRIES];
	uint8_t proof[AUTH_HASH_LEN] = { 0 }, wrong[2][AUTH_HASH_LEN] = { { 0 } };
	unsigned n[2] = { 0, 0 };
	double mean[2], var[2], count[2];

	wrong[0][0] = wrong[1][AUTH_HASH_LEN - 1] = 1;
	while (n[0] < TRIES || n[1] < TRIES) {
		unsigned kind = random_next(&seed) & 1;

		kind = n[kind] < TRIES ? kind : !kind;
		ns[kind][n[kind]++] = took(compare, proof, wrong[kind]);
	}
	memcpy(all, ns, sizeof(all));
	qsort(all, 2 * TRIES, sizeof(*all), by_value);
	for (unsigned k = 0; k < 2; k++)
		mean[k] = mean_of(ns[k], all[2 * TRIES * 9 / 10], &var[k], &count[k]);
	return fabs(mean[0] - mean[1]) / sqrt(var[0] / count[0] + var[1] / count[1]);
}

Test(auth_timing, where_proofs_differ, .timeout = 600)
{
	double least = INFINITY, early;

	if (!getenv("SLOW_TESTS"))
		cr_skip_test("timing: only with SLOW_TESTS=yes, as check.sh --full has it\n");
	early = welch(ends_early, 1);
	cr_assert_gt(early, T_SEEN, "t of a comparison that ends early is %.1f", early);
	for (unsigned i = 0; i < ROUNDS && least > T_SAME; i++) {
		double t = welch(auth_crypto_same, i + 2);

		least = t < least ? t : least;
	}
	fprintf(stderr, "t is %.2f; of a comparison that ends early %.0f\n", least, early);
	cr_assert_lt(least, T_SAME, "t is %.1f in each of %u rounds", least, ROUNDS);
}
