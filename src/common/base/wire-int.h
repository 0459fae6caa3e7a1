/* SPDX-License-Identifier: BSD-3-Clause */
/* Integers in messages, little-endian (RTRS, RNBD) and big-endian (NBD, addresses).  Each is a
 * struct with a single member, so a missing conversion does not compile.  All have alignment 1: a
 * wire struct can be laid over any byte.  Short: six types. */
#ifndef BASE_WIRE_INT_H
#define BASE_WIRE_INT_H

#include <endian.h>
#include <stdint.h>

typedef struct { uint16_t v; } __attribute__((packed)) le16;
typedef struct { uint32_t v; } __attribute__((packed)) le32;
typedef struct { uint64_t v; } __attribute__((packed)) le64;

static inline le16 le16_put(uint16_t x) { return (le16){ htole16(x) }; }
static inline le32 le32_put(uint32_t x) { return (le32){ htole32(x) }; }
static inline le64 le64_put(uint64_t x) { return (le64){ htole64(x) }; }

/* The value of a wire integer. */
static inline uint16_t le16_get(le16 x) { return le16toh(x.v); }
static inline uint32_t le32_get(le32 x) { return le32toh(x.v); }
static inline uint64_t le64_get(le64 x) { return le64toh(x.v); }

typedef struct { uint16_t v; } __attribute__((packed)) be16;
typedef struct { uint32_t v; } __attribute__((packed)) be32;
typedef struct { uint64_t v; } __attribute__((packed)) be64;

static inline be16 be16_put(uint16_t x) { return (be16){ htobe16(x) }; }
static inline be32 be32_put(uint32_t x) { return (be32){ htobe32(x) }; }
static inline be64 be64_put(uint64_t x) { return (be64){ htobe64(x) }; }

static inline uint16_t be16_get(be16 x) { return be16toh(x.v); }
static inline uint32_t be32_get(be32 x) { return be32toh(x.v); }
static inline uint64_t be64_get(be64 x) { return be64toh(x.v); }

#endif
