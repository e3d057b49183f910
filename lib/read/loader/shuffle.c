/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shuffle.c - stele_shuffle_*: format/epoch.h for programs
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lib/read/loader/shuffle.h"

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/stele.h"

#define BLOCK_SIZE_DEFAULT  64u
#define BLOCK_COUNT_DEFAULT 256u
#define WINDOW_SIZE_MAX	    (UINT64_C(1) << 31) /* samples */

_Static_assert((int)STELE_SHUFFLE_FULL == (int)STELE_EPOCH_FULL &&
		       (int)STELE_SHUFFLE_WINDOWED == (int)STELE_EPOCH_WINDOWED &&
		       (int)STELE_SHUFFLE_NONE == (int)STELE_EPOCH_SEQUENTIAL,
	       "one list of kinds, for programs and for the format");

struct stele_shuffle {
	struct stele_epoch epoch;
};

int stele_shuffle_shape(uint32_t kind, uint64_t block_size, uint32_t block_count,
			const struct stele_log *log,
			struct stele_epoch_shape *out)
{
	*out = (struct stele_epoch_shape){
		.kind = kind,
		.block_size = block_size ? block_size : BLOCK_SIZE_DEFAULT,
		.block_count = block_count ? block_count : BLOCK_COUNT_DEFAULT,
	};
	if (kind <= STELE_SHUFFLE_NONE &&
	    out->block_size <= WINDOW_SIZE_MAX / out->block_count)
		return 0;
	stele_log_error(log,
			"'block_count' %" PRIu32 " x 'block_size' %" PRIu64
			" is too large a window: it may have %" PRIu64 " samples",
			out->block_count, out->block_size, WINDOW_SIZE_MAX);
	return -EINVAL;
}

static int check_options(uint64_t count, const struct stele_shuffle_opts *opts,
			 const struct stele_log *log,
			 struct stele_epoch_shape *shape)
{
	const struct stele_option limits[] = {
		{"kind", opts->kind, STELE_SHUFFLE_NONE},
		{"count", count, STELE_PERMUTATION_COUNT_MAX},
	};
	int err = stele_options_check(limits, sizeof(limits) / sizeof(*limits),
				      log);

	if (!err && !count) {
		stele_log_error(log, "cannot shuffle zero samples");
		err = -EINVAL;
	}
	return err ? err : stele_shuffle_shape(opts->kind, opts->block_size,
					       opts->block_count, log, shape);
}

static int shuffle_open(uint64_t count, const struct stele_shuffle_opts *opts,
			struct stele_shuffle **out)
{
	struct stele_shuffle_opts known;
	struct stele_epoch_shape shape;
	struct stele_shuffle *shuffle;
	struct stele_log log;
	int err = stele_options_get(opts, &known, sizeof(known), &log);

	if (!err)
		err = check_options(count, &known, &log, &shape);
	if (err)
		return err;
	shuffle = calloc(1, sizeof(*shuffle));
	if (!shuffle)
		return -ENOMEM;
	stele_epoch_init(&shuffle->epoch, &shape, count, known.seed,
			 known.epoch, 0);
	*out = shuffle;
	return 0;
}

int stele_shuffle_open(uint64_t count, const struct stele_shuffle_opts *opts,
		       struct stele_shuffle **out)
{
	return STELE_CALL(shuffle_open(count, opts, out),
			  "cannot make an order");
}

uint64_t stele_shuffle_at(struct stele_shuffle *shuffle, uint64_t position)
{
	return position < shuffle->epoch.count
		       ? stele_epoch_at(&shuffle->epoch, position)
		       : UINT64_MAX;
}

uint64_t stele_shuffle_position(struct stele_shuffle *shuffle, uint64_t id)
{
	return id < shuffle->epoch.count
		       ? stele_epoch_position(&shuffle->epoch, id)
		       : UINT64_MAX;
}

void stele_shuffle_close(struct stele_shuffle *shuffle)
{
	free(shuffle);
}
