/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checked.h - arithmetic on numbers that a device or a user gave
 *
 * Each helper says whether the result is exact. Raw + and * on such numbers
 * is a bug wherever it stands.
 */
#ifndef STELE_FORMAT_CHECKED_H
#define STELE_FORMAT_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Compile-time layout checks, to stand right below the struct. */
#define STELE_CHECK_SIZE(type, want) \
	_Static_assert(sizeof(type) == (want), #type " is not " #want " bytes")
#define STELE_CHECK_OFFSET(type, member, want)          \
	_Static_assert(offsetof(type, member) == (want), \
		       #type "." #member " is not at " #want)

static inline bool checked_add(uint64_t a, uint64_t b, uint64_t *sum)
{
	return !__builtin_add_overflow(a, b, sum);
}

static inline bool checked_mul(uint64_t a, uint64_t b, uint64_t *product)
{
	return !__builtin_mul_overflow(a, b, product);
}

/* Does [offset, offset + size) lie within [0, limit)? */
static inline bool range_ok(uint64_t offset, uint64_t size, uint64_t limit)
{
	uint64_t end;

	return checked_add(offset, size, &end) && end <= limit;
}

static inline bool is_power_of_two(uint64_t v)
{
	return v && !(v & (v - 1));
}

static inline bool is_aligned(uint64_t v, uint64_t power_of_two)
{
	return !(v & (power_of_two - 1));
}

static inline uint64_t round_down(uint64_t v, uint64_t power_of_two)
{
	return v & ~(power_of_two - 1);
}

/* False when the result does not fit. */
static inline bool checked_round_up(uint64_t v, uint64_t power_of_two,
				    uint64_t *out)
{
	if (!checked_add(v, power_of_two - 1, &v))
		return false;
	*out = round_down(v, power_of_two);
	return true;
}

/* For numbers that are already known to be far from the limit. */
static inline uint64_t round_up(uint64_t v, uint64_t power_of_two)
{
	return round_down(v + power_of_two - 1, power_of_two);
}

#endif
