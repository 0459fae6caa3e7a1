/* SPDX-License-Identifier: BSD-3-Clause */
/* Small arithmetic and struct helpers.  Pure, any thread. */
#ifndef BASE_UTIL_H
#define BASE_UTIL_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Each argument is evaluated once; the names are unique, so MIN and MAX nest. */
#define MIN(a, b) UTIL_PICK_(a, <, b, __COUNTER__)
#define MAX(a, b) UTIL_PICK_(a, >, b, __COUNTER__)
#define UTIL_PICK_(a, op, b, n) UTIL_PICK__(a, op, b, n)
#define UTIL_PICK__(a, op, b, n)                                                                   \
	({                                                                                         \
		__auto_type pick_a_##n = (a);                                                      \
		__auto_type pick_b_##n = (b);                                                      \
		pick_a_##n op pick_b_##n ? pick_a_##n : pick_b_##n;                                \
	})

/* The smallest multiple of @align, a power of two, that is not below @x. */
static inline uint64_t align_up(uint64_t x, uint64_t align)
{
	return (x + align - 1) & ~(align - 1);
}

/* The largest multiple of @align, a power of two, that is not above @x. */
static inline uint64_t align_down(uint64_t x, uint64_t align)
{
	return x & ~(align - 1);
}

/* True if @x is a power of two; 0 is none. */
static inline bool is_pow2(uint64_t x)
{
	return x && !(x & (x - 1));
}

/* Bits that hold the values 0..x-1: ceil(log2 x); 0 for x <= 1. */
static inline unsigned ceil_log2(uint64_t x)
{
	return x <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(x - 1);
}

/* True if [off, off + len) lies inside [0, size).  Never wraps. */
static inline bool range_ok(uint64_t off, uint64_t len, uint64_t size)
{
	return len <= size && off <= size - len;
}

#define FNV1A_INIT 0xcbf29ce484222325u

/* The FNV-1a hash of @buf, the same on every machine and in every version.  @hash is FNV1A_INIT, or
 * the hash of the bytes in front of @buf. */
static inline uint64_t fnv1a(uint64_t hash, const void *buf, size_t len)
{
	const uint8_t *p = buf;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ p[i]) * 0x100000001b3u;
	return hash;
}

#endif
