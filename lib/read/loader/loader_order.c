/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_order.c - see loader_order.h
 *
 * A state holds no more than what is needed to go on: a word of magic, version and
 * fingerprint, then seed, epoch, position, as little-endian words. Batch size, number
 * of ranks and policies are not in it: they may change.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/checked.h"
#include "lib/base/error.h"
#include "lib/image/digest.h"
#include "lib/read/loader/loader_order.h"

#define STATE_MAGIC   UINT64_C(0x53) /* 'S' */
#define STATE_VERSION UINT64_C(1)
#define HASH_PREFIX   0x80u /* apart from STELE_HASH_* of the format */

#define FINGERPRINT_MASK ((UINT64_C(1) << 48) - 1)

static void hash_order(const struct stele_loader_order *order,
		       const struct stele_loader_source *sources,
		       struct stele_hash *hash)
{
	const bool windowed = order->shape.kind == STELE_EPOCH_WINDOWED;
	const le64 head[] = {
		le64_put(STELE_PERMUTATION_VERSION),
		le64_put(STELE_MIXTURE_VERSION),
		le64_put(order->shape.kind),
		le64_put(windowed ? order->shape.block_size : 0),
		le64_put(windowed ? order->shape.block_count : 0),
		le64_put(order->mixture.size),
		le64_put(order->mixture.count),
	};

	stele_hash_begin(hash, HASH_PREFIX);
	stele_hash_add(hash, head, sizeof(head));
	for (uint32_t i = 0; i < order->mixture.count; i++) {
		const le64 draws =
			le64_put(stele_mixture_draws(&order->mixture, i));

		stele_hash_add(hash, sources[i].ds->snapshot.digest,
			       STELE_DIGEST_SIZE);
		stele_hash_add(hash, &draws, sizeof(draws));
		stele_subset_hash(&order->parts[i].subset, hash);
	}
}

static int take_fingerprint(struct stele_loader_order *order,
			    const struct stele_loader_source *sources)
{
	uint8_t digest[STELE_DIGEST_SIZE];
	struct stele_hash *hash;
	le64 first;
	int err = stele_hash_new(&hash);

	if (err)
		return err;
	hash_order(order, sources, hash);
	stele_hash_end(hash, digest);
	stele_hash_free(hash);
	memcpy(&first, digest, sizeof(first));
	order->fingerprint = le64_get(first) & FINGERPRINT_MASK;
	return 0;
}

_Static_assert(STELE_LOADER_SOURCES_MAX == STELE_MIXTURE_SOURCES_MAX,
	       "as many sources, for programs and for the format");

/* What is said of a source begins with which it is. */
struct naming {
	const struct stele_log *to;
	uint32_t source;
};

static void say_of_source(void *user, enum stele_log_level level,
			  const char *text)
{
	const struct naming *naming = user;

	stele_log_emit(naming->to, level, "source %" PRIu32 ": %s",
		       naming->source, text);
}

static int init_mixture(struct stele_loader_order *order,
			const uint64_t *samples, const double *weights,
			uint32_t count, uint64_t size,
			const struct stele_log *log)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < count; i++)
		if (!checked_add(all, samples[i], &all) ||
		    all > STELE_PERMUTATION_COUNT_MAX) {
			stele_log_error(log, "too many samples");
			return -EINVAL;
		}
	if (size && size < count) {
		stele_log_error(log,
				"option 'epoch_size' is %" PRIu64
				", less than the %" PRIu32 " sources",
				size, count);
		return -EINVAL;
	}
	stele_mixture_init(&order->mixture, samples, weights, count,
			   size ? size : all);
	return 0;
}

static int init_parts(struct stele_loader_order *order,
		      const struct stele_loader_source *sources, uint32_t count,
		      uint64_t epoch_size, const struct stele_log *log)
{
	uint64_t samples[STELE_LOADER_SOURCES_MAX];
	double weights[STELE_LOADER_SOURCES_MAX];
	int err = 0;

	for (uint32_t i = 0; !err && i < count; i++) {
		struct naming naming = {log, i};
		const struct stele_log of_source = {say_of_source, &naming};

		err = stele_subset_init(&order->parts[i].subset, &sources[i],
					&of_source);
		if (!err && (sources[i].reserved[0] || sources[i].reserved[1])) {
			stele_log_error(&of_source, "reserved bytes are not zero");
			err = -EINVAL;
		}
		samples[i] = order->parts[i].subset.count;
		weights[i] = sources[i].weight;
		if (!err && !stele_mixture_is_weight(weights[i])) {
			stele_log_error(&of_source, "'weight' is %g",
					weights[i]);
			err = -EINVAL;
		}
	}
	if (!err)
		err = init_mixture(order, samples, weights, count, epoch_size,
				   log);
	/* Release goes by it, whatever failed. */
	order->mixture.count = count;
	return err;
}

int stele_loader_order_init(struct stele_loader_order *order,
			    const struct stele_loader_source *sources,
			    uint32_t count,
			    const struct stele_epoch_shape *shape,
			    uint64_t seed, uint64_t epoch_size,
			    const struct stele_log *log)
{
	int err;

	*order = (struct stele_loader_order){.shape = *shape, .seed = seed};
	if (!sources || !count || count > STELE_LOADER_SOURCES_MAX) {
		stele_log_error(log,
				"a loader has 1 to %u sources, not %" PRIu32,
				STELE_LOADER_SOURCES_MAX, sources ? count : 0);
		return -EINVAL;
	}
	order->parts = calloc(count, sizeof(*order->parts));
	if (!order->parts)
		return -ENOMEM;
	err = init_parts(order, sources, count, epoch_size, log);
	if (!err)
		err = take_fingerprint(order, sources);
	if (err)
		stele_loader_order_release(order);
	return err;
}

void stele_loader_order_release(struct stele_loader_order *order)
{
	for (uint32_t i = 0; order->parts && i < order->mixture.count; i++)
		stele_subset_release(&order->parts[i].subset);
	free(order->parts);
	order->parts = NULL;
}

/* ---- positions ---------------------------------------------------------------- */

static struct stele_epoch *pass_of(struct stele_loader_order *order,
				   uint32_t source, uint64_t number)
{
	struct stele_loader_part *part = &order->parts[source];
	struct stele_loader_pass *pass = &part->passes[number % 2];

	if (!pass->ready || pass->number != number ||
	    pass->seed != order->seed)
		stele_epoch_init(&pass->epoch, &order->shape,
				 part->subset.count, order->seed, number,
				 STELE_PURPOSE_SAMPLES + source);
	pass->number = number;
	pass->seed = order->seed;
	pass->ready = true;
	return &pass->epoch;
}

/* From half a pass away on, where it is least likely to be met again soon. */
static bool stand_in(uint64_t count, uint32_t attempt, uint64_t *position)
{
	uint64_t step = count / 2 + attempt - 1;

	if (attempt >= count)
		return false;
	if (step >= count) /* around; never to itself */
		step -= count - 1;
	*position = (*position + step) % count;
	return true;
}

bool stele_loader_order_at(struct stele_loader_order *order, uint64_t epoch,
			   uint64_t position, uint32_t attempt,
			   uint32_t *source, uint64_t *id)
{
	const struct stele_subset *subset;
	uint64_t draw, pass, place;

	stele_mixture_at(&order->mixture, order->seed, epoch, position, source,
			 &draw);
	subset = &order->parts[*source].subset;
	stele_mixture_pass(&order->mixture, *source, subset->count, epoch, draw,
			   &pass, &place);
	if (attempt && !stand_in(subset->count, attempt, &place))
		return false;
	*id = stele_subset_id(subset,
			      stele_epoch_at(pass_of(order, *source, pass),
					     place));
	return true;
}

/* ---- state --------------------------------------------------------------------- */

static uint64_t first_word(const struct stele_loader_order *order)
{
	return STATE_MAGIC | STATE_VERSION << 8 | order->fingerprint << 16;
}

void stele_loader_place_encode(const struct stele_loader_order *order,
			       const struct stele_loader_place *place,
			       uint8_t state[STELE_LOADER_STATE_SIZE])
{
	const le64 words[] = {
		le64_put(first_word(order)),
		le64_put(place->seed),
		le64_put(place->epoch),
		le64_put(place->position),
	};

	_Static_assert(sizeof(words) == STELE_LOADER_STATE_SIZE, "a state");
	memcpy(state, words, sizeof(words));
}

int stele_loader_place_decode(const struct stele_loader_order *order,
			      const uint8_t state[STELE_LOADER_STATE_SIZE],
			      struct stele_loader_place *place)
{
	const uint64_t wanted = first_word(order);
	le64 words[4];

	memcpy(words, state, sizeof(words));
	if ((le64_get(words[0]) ^ wanted) & UINT64_C(0xffff))
		return -EINVAL;
	if (le64_get(words[0]) != wanted) {
		stele_error_explain(-ESTALE, "the state is of other data, or of another shuffle");
		return -ESTALE;
	}
	if (le64_get(words[3]) > order->mixture.size)
		return -EINVAL;
	*place = (struct stele_loader_place){
		.seed = le64_get(words[1]),
		.epoch = le64_get(words[2]),
		.position = le64_get(words[3]),
	};
	return 0;
}
