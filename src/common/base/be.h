/* SPDX-License-Identifier: BSD-3-Clause */
/* Big-endian wire integers, as le.h has little-endian ones. */
#ifndef BASE_BE_H
#define BASE_BE_H

#include <endian.h>
#include <stdint.h>

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
