/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixture.h - which of several sources has which position of an epoch
 *
 * Each source gets its share of an epoch's draws, by weight and largest remainder,
 * the same in all epochs. Along the epoch they alternate as evenly as they can,
 * but within each period in an order that hangs on seed and epoch: else with
 * two equal sources and two ranks each rank would see one of them. Closed form: position
 * to (source, how many of its draws came before), with no memory that grows.
 */
#ifndef STELE_READ_MIXTURE_H
#define STELE_READ_MIXTURE_H

#include <stdbool.h>

#include "format/permutation.h"
#include "lib/stele.h"

#define STELE_MIXTURE_PERIOD	  4096u /* draws */

struct stele_mixture {
	uint64_t size;	/* draws of an epoch */
	uint32_t count; /* of sources */
	/* Source s has draws[s + 1] - draws[s] of them. */
	uint64_t draws[STELE_LOADER_SOURCES_MAX + 1];
	/* Of the period that was asked for last. */
	struct stele_permutation permutation;
	uint64_t seed, epoch, period;
	bool ready;
};

/*
 * `samples` and `weights` have `count` entries; weight 0: its number of samples.
 * `size` 0: the sum of all samples. A source has at least one draw.
 * Return: 0; -EINVAL (counts, sums or sizes that are 0 or too large; fewer draws than
 * sources; a weight that is negative or no number).
 */
int stele_mixture_init(struct stele_mixture *mixture, const uint64_t *samples,
		       const double *weights, uint32_t count, uint64_t size);
/* `position` < size. *draw: 0 ... of this source in this epoch. */
void stele_mixture_at(struct stele_mixture *mixture, uint64_t seed,
		      uint64_t epoch, uint64_t position, uint32_t *source,
		      uint64_t *draw);

static inline uint64_t stele_mixture_draws(const struct stele_mixture *mixture,
					   uint32_t source)
{
	return mixture->draws[source + 1] - mixture->draws[source];
}

#endif
