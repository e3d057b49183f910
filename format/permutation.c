/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permutation.c - position to id, and back
 */
#include "format/permutation.h"

void stele_permutation_init(struct stele_permutation *p, uint64_t count,
			    uint64_t seed, uint64_t epoch, uint64_t purpose)
{
	*p = (struct stele_permutation){.count = count};
	p->keys[0] = (seed + epoch + purpose) % count;
}

uint64_t stele_permutation_at(const struct stele_permutation *p,
			      uint64_t position)
{
	return (position + p->keys[0]) % p->count;
}

uint64_t stele_permutation_position(const struct stele_permutation *p,
				    uint64_t id)
{
	return (id + p->count - p->keys[0]) % p->count;
}
