/* SPDX-License-Identifier: Apache-2.0 */
/*
 * le.h - little-endian integers as stored on the device
 *
 * Byte-array types: alignment 1, so structs made of them need no packing and
 * can be at any address; confusing one with an integer does not compile. Written
 * out in full because compilers turn that, and not a loop, into one load.
 */
#ifndef STELE_FORMAT_LE_H
#define STELE_FORMAT_LE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
	uint8_t b[2];
} le16;
typedef struct {
	uint8_t b[4];
} le32;
typedef struct {
	uint8_t b[6];
} le48;
typedef struct {
	uint8_t b[8];
} le64;

static inline uint16_t le16_get(le16 v)
{
	return (uint16_t)(v.b[0] | v.b[1] << 8);
}

static inline uint32_t le32_get(le32 v)
{
	return (uint32_t)v.b[0] | (uint32_t)v.b[1] << 8 |
	       (uint32_t)v.b[2] << 16 | (uint32_t)v.b[3] << 24;
}

static inline uint64_t le48_get(le48 v)
{
	return (uint64_t)v.b[0] | (uint64_t)v.b[1] << 8 |
	       (uint64_t)v.b[2] << 16 | (uint64_t)v.b[3] << 24 |
	       (uint64_t)v.b[4] << 32 | (uint64_t)v.b[5] << 40;
}

static inline uint64_t le64_get(le64 v)
{
	return (uint64_t)v.b[0] | (uint64_t)v.b[1] << 8 |
	       (uint64_t)v.b[2] << 16 | (uint64_t)v.b[3] << 24 |
	       (uint64_t)v.b[4] << 32 | (uint64_t)v.b[5] << 40 |
	       (uint64_t)v.b[6] << 48 | (uint64_t)v.b[7] << 56;
}

static inline le16 le16_put(uint16_t v)
{
	return (le16){{(uint8_t)v, (uint8_t)(v >> 8)}};
}

static inline le32 le32_put(uint32_t v)
{
	return (le32){{(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
		       (uint8_t)(v >> 24)}};
}

/* The value must fit 48 bits. */
static inline le48 le48_put(uint64_t v)
{
	return (le48){{(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
		       (uint8_t)(v >> 24), (uint8_t)(v >> 32),
		       (uint8_t)(v >> 40)}};
}

static inline le64 le64_put(uint64_t v)
{
	return (le64){{(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
		       (uint8_t)(v >> 24), (uint8_t)(v >> 32),
		       (uint8_t)(v >> 40), (uint8_t)(v >> 48),
		       (uint8_t)(v >> 56)}};
}

/*
 * A copy of memory that others may be writing to, such as a mapped device: the value that was
 * checked is the one used. Without the barrier the compiler may read the memory again.
 */
static inline void le_copy_once(void *to, const void *from, size_t size)
{
	memcpy(to, from, size);
	__asm__ __volatile__("" : : "r"(to) : "memory");
}

#endif
