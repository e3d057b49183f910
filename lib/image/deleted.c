/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deleted.c - deleted lists in memory, read a piece at a time
 *
 * The catalog has been checked, so these blocks are within the target. A list cannot
 * make us allocate more than the target holds.
 */
#include "lib/image/deleted.h"

#include <errno.h>
#include <stdlib.h>

#include "format/sections.h"

#define BLOCKS_PER_READ 256u

static int read_piece(struct stele_image *image,
		      const struct stele_catalog_ref *ref, uint64_t first,
		      uint64_t count, struct stele_disk_block *blocks,
		      const char **why)
{
	const uint64_t offset = ref->deleted_offset + first * STELE_BLOCK_SIZE;
	int ret;

	*why = "cannot be read";
	ret = stele_device_read(image->dev, blocks, offset,
				count * STELE_BLOCK_SIZE);
	if (ret == 0)
		ret = stele_blocks_check(blocks, count, STELE_BLOCK_DELETED,
					 offset, ref->deleted_owner, why);
	return ret == -EMEDIUMTYPE ? -EBADMSG : ret;
}

static int unpack(struct stele_image *image,
		  const struct stele_catalog_ref *ref, uint64_t sample_count,
		  struct stele_disk_block *blocks, uint64_t *numbers,
		  const char **why)
{
	const uint64_t total = stele_deleted_blocks(ref->deleted_count);
	const uint64_t per_read =
		(uint64_t)BLOCKS_PER_READ * STELE_DELETED_PER_BLOCK;

	for (uint64_t first = 0; first < total; first += BLOCKS_PER_READ) {
		uint64_t done = first * STELE_DELETED_PER_BLOCK;
		uint64_t left = ref->deleted_count - done;
		uint64_t take = left < per_read ? left : per_read;
		int ret;

		ret = read_piece(image, ref, first, stele_deleted_blocks(take),
				 blocks, why);
		if (ret == 0)
			ret = stele_deleted_check(blocks, take, sample_count,
						  why);
		if (ret < 0)
			return ret;
		for (uint64_t i = 0; i < take; i++) {
			const le64 *from =
				(const le64 *)blocks[i / STELE_DELETED_PER_BLOCK]
					.payload;

			numbers[done + i] =
				le64_get(from[i % STELE_DELETED_PER_BLOCK]);
		}
		if (done && numbers[done] <= numbers[done - 1]) {
			*why = "deleted: not ascending";
			return -EUCLEAN;
		}
	}
	return 0;
}

int stele_deleted_load(struct stele_image *image,
		       const struct stele_catalog_ref *ref,
		       uint64_t sample_count, uint64_t **numbers,
		       const char **why)
{
	const uint64_t total = stele_deleted_blocks(ref->deleted_count);
	const uint64_t most = total < BLOCKS_PER_READ ? total : BLOCKS_PER_READ;
	struct stele_disk_block *blocks;
	int ret;

	*numbers = NULL;
	*why = "more numbers than samples";
	if (ref->deleted_count > sample_count)
		return -EUCLEAN;
	*why = "no memory";
	blocks = stele_device_alloc(image->dev, most * STELE_BLOCK_SIZE);
	*numbers = calloc(ref->deleted_count + 1, sizeof(**numbers));
	ret = blocks && *numbers ? unpack(image, ref, sample_count, blocks,
					  *numbers, why) :
				   -ENOMEM;
	free(blocks);
	if (ret < 0) {
		free(*numbers);
		*numbers = NULL;
	}
	return ret;
}

uint64_t stele_deleted_below(const uint64_t *numbers, uint64_t count,
			     uint64_t number)
{
	uint64_t low = 0, high = count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (numbers[middle] < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct stele_deleted_word *stele_deleted_words(const uint64_t *numbers,
					       uint64_t count,
					       uint64_t sample_count)
{
	const uint64_t word_count = sample_count / 64 + 1;
	struct stele_deleted_word *words = calloc(word_count, sizeof(*words));
	uint64_t below = 0;

	for (uint64_t i = 0; words && i < count; i++)
		words[numbers[i] / 64].bits |= UINT64_C(1) << numbers[i] % 64;
	for (uint64_t i = 0; words && i < word_count; i++) {
		words[i].below = below;
		below += (uint64_t)__builtin_popcountll(words[i].bits);
	}
	return words;
}

uint64_t *stele_deleted_merge(const uint64_t *a, uint64_t a_count,
			      const uint64_t *b, uint64_t b_count)
{
	uint64_t *out = calloc(a_count + b_count + 1, sizeof(*out));
	uint64_t i = 0, j = 0;

	while (out && i + j < a_count + b_count) {
		bool first = j == b_count || (i < a_count && a[i] < b[j]);

		out[i + j] = first ? a[i] : b[j];
		i += first;
		j += !first;
	}
	return out;
}
