/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixture.h - which source has which position of an epoch
 *
 * Each source gets its share of an epoch's draws, by weight and largest remainder,
 * the same in all epochs. Over the epoch they alternate as evenly as possible,
 * but within each period in an order that depends on seed and epoch: otherwise, with
 * two equal sources and two ranks, each rank would see one of them. Closed form: position
 * to (source, how many of its draws came before), in constant memory. Like
 * the permutation, this is a frozen spec: stele-format(5), "Mixtures".
 */
#ifndef STELE_FORMAT_MIXTURE_H
#define STELE_FORMAT_MIXTURE_H

#include <stdbool.h>

#include "format/permutation.h"

#define STELE_MIXTURE_VERSION     1u
#define STELE_MIXTURE_SOURCES_MAX 256u
#define STELE_MIXTURE_PERIOD      4096u /* draws */

struct stele_mixture {
	uint64_t size;  /* draws of an epoch */
	uint32_t count; /* of sources */
	/* Source s has draws[s + 1] - draws[s] of them. */
	uint64_t draws[STELE_MIXTURE_SOURCES_MAX + 1];
	/* Of the period requested last. */
	struct stele_permutation permutation;
	uint64_t seed, epoch, period;
	bool ready;
};

/* Is it a valid weight? Those are finite and not negative. */
bool stele_mixture_is_weight(double weight);
/*
 * `samples` and `weights` have `count` entries, up to STELE_MIXTURE_SOURCES_MAX; weight 0
 * stands for the number of samples. No source is empty, and all together have at most
 * STELE_PERMUTATION_COUNT_MAX samples. `size`: from `count` to STELE_PERMUTATION_COUNT_MAX.
 */
void stele_mixture_init(struct stele_mixture *mixture, const uint64_t *samples,
			const double *weights, uint32_t count, uint64_t size);
/* `position` < size. *draw: 0 ... of this source in this epoch. */
void stele_mixture_at(struct stele_mixture *mixture, uint64_t seed,
		      uint64_t epoch, uint64_t position, uint32_t *source,
		      uint64_t *draw);
/*
 * Draws continue from epoch to epoch, in passes over the source's `samples`: returns the
 * number of the pass, which is the epoch of its order, and the position there.
 */
void stele_mixture_pass(const struct stele_mixture *mixture, uint32_t source,
			uint64_t samples, uint64_t epoch, uint64_t draw,
			uint64_t *pass, uint64_t *position);

static inline uint64_t stele_mixture_draws(const struct stele_mixture *mixture,
					   uint32_t source)
{
	return mixture->draws[source + 1] - mixture->draws[source];
}

#endif
