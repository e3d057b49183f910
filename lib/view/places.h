/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places.h - from bytes of the target to the samples that lie there
 *
 * The way back from stele_slot_locate(): segments by their offset, whose slots ascend with
 * their numbers. Deleted samples are not of the snapshot, so they lie nowhere. Immutable; any
 * thread.
 */
#ifndef STELE_VIEW_PLACES_H
#define STELE_VIEW_PLACES_H

#include "lib/read/sample.h"

struct stele_places {
	const struct stele_dataset *ds;
	const struct stele_segment **segments; /* by offset */
	uint32_t count;
};

/* Return: 0; -ENOMEM. */
int stele_places_init(struct stele_places *places, const struct stele_dataset *ds);
/* Idempotent on a zeroed struct. */
void stele_places_release(struct stele_places *places);

/*
 * Every sample with a byte in [begin, end), by offset, until `fn` returns something else than
 * 0. Return: that; 0.
 */
int stele_places_each(const struct stele_places *places, uint64_t begin, uint64_t end,
		      int (*fn)(void *user, const struct stele_slot *slot), void *user);

#endif
