/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_order.h - position of an epoch -> source and id; where a loader is, in 32 bytes
 *
 * A source's draws go through passes over its samples (format/mixture.h), each in an
 * order of its own (format/epoch.h: seed, number of the pass, number of the source). A
 * single source with as many draws as samples thus has exactly the order of
 * stele_shuffle_at().
 */
#ifndef STELE_READ_LOADER_LOADER_ORDER_H
#define STELE_READ_LOADER_LOADER_ORDER_H

#include "format/epoch.h"
#include "format/mixture.h"
#include "lib/read/loader/subset.h"

struct stele_loader_pass {
	uint64_t number, seed;
	bool ready;
	struct stele_epoch epoch;
};

struct stele_loader_part {
	struct stele_subset subset;
	/* Draws of one epoch may be of two passes: even and odd ones. */
	struct stele_loader_pass passes[2];
};

struct stele_loader_order {
	struct stele_epoch_shape shape;
	uint64_t seed;
	struct stele_mixture mixture;
	struct stele_loader_part *parts; /* of each source */
	uint64_t fingerprint;		 /* of all but the seed; 48 bits */
};

/*
 * `shape` as of stele_shuffle_shape(); `epoch_size` as of a mixture, 0: the sum of all
 * samples. Return: 0; -EINVAL, -ERANGE, -ENOTUNIQ, -ENOMEM as stele_loader_open(), and the
 * log says why.
 */
int stele_loader_order_init(struct stele_loader_order *order,
			    const struct stele_loader_source *sources,
			    uint32_t count,
			    const struct stele_epoch_shape *shape,
			    uint64_t seed, uint64_t epoch_size,
			    const struct stele_log *log);
/* Idempotent. */
void stele_loader_order_release(struct stele_loader_order *order);

/*
 * Not const: what it worked out for neighbours is kept. `position` < mixture.size.
 * With `attempt` 1, 2 ...: what stands in for that sample, of the same source;
 * false: there is no other.
 */
bool stele_loader_order_at(struct stele_loader_order *order, uint64_t epoch,
			   uint64_t position, uint32_t attempt,
			   uint32_t *source, uint64_t *id);

struct stele_loader_place {
	uint64_t seed, epoch, position;
};
void stele_loader_place_encode(const struct stele_loader_order *order,
			       const struct stele_loader_place *place,
			       uint8_t state[STELE_LOADER_STATE_SIZE]);
/* Return: 0; -EINVAL (no state); -ESTALE (of something else). */
int stele_loader_place_decode(const struct stele_loader_order *order,
			      const uint8_t state[STELE_LOADER_STATE_SIZE],
			      struct stele_loader_place *place);

#endif
