/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.c - see filter.h
 *
 * 12 bits for each key, and 6 places: of the keys that are not there, 4 in 1000 pass.
 */
#include "format/filter.h"

#include "format/checked.h"

#define BITS_PER_KEY 12u
#define PLACES	     6u
#define FNV_BASIS    UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME    UINT64_C(0x100000001b3)
#define MULTIPLIER   UINT64_C(0x9e3779b97f4a7c15)

uint32_t stele_filter_size(uint64_t key_count)
{
	uint64_t size;

	if (key_count > STELE_FILTER_SIZE_MAX * 8 / BITS_PER_KEY)
		return 0;
	size = round_up(key_count * BITS_PER_KEY, 64) / 8;
	return (uint32_t)size;
}

uint64_t stele_filter_hash(const char *key, size_t size)
{
	uint64_t hash = FNV_BASIS;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (uint8_t)key[i]) * FNV_PRIME;
	hash = (hash ^ hash >> 32) * MULTIPLIER;
	return hash ^ hash >> 32;
}

static uint32_t place(uint32_t size, uint64_t hash, uint32_t i)
{
	const uint32_t step = (uint32_t)(hash >> 32) | 1;
	const uint32_t at = (uint32_t)hash + i * step;

	return (uint32_t)(((uint64_t)at * (size * UINT64_C(8))) >> 32);
}

void stele_filter_add(uint8_t *filter, uint32_t size, uint64_t hash)
{
	for (uint32_t i = 0; i < PLACES; i++) {
		const uint32_t bit = place(size, hash, i);

		filter[bit / 8] |= (uint8_t)(1u << bit % 8);
	}
}

bool stele_filter_may_have(const uint8_t *filter, uint32_t size, uint64_t hash)
{
	for (uint32_t i = 0; i < PLACES; i++) {
		const uint32_t bit = place(size, hash, i);

		if (!(filter[bit / 8] >> bit % 8 & 1))
			return false;
	}
	return true;
}
