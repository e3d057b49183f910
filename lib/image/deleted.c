/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deleted.c - see deleted.h
 *
 * The catalog has been checked, so the blocks of lists are within the target. A list
 * cannot make us allocate more than the target holds. They are read a piece at a time.
 */
#include "lib/image/deleted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "format/sections.h"

#define BLOCKS_PER_READ 256u
#define PER_WORD	STELE_DELETED_PER_WORD
#define HUGE_PAGE_SIZE	(UINT64_C(2) << 20)

static uint64_t ones(uint64_t bits)
{
	return (uint64_t)__builtin_popcountll(bits);
}

/* Look-ups go anywhere: in small pages, most of them miss the TLB, too. */
static int reserve(struct stele_deleted *out, uint64_t words)
{
	uint64_t size;

	memset(out, 0, sizeof(*out));
	if (!checked_mul(words + 1, sizeof(*out->words), &size))
		return -ENOMEM;
	if (size < HUGE_PAGE_SIZE)
		out->words = malloc(size);
	else if (checked_round_up(size, HUGE_PAGE_SIZE, &size))
		out->words = aligned_alloc(HUGE_PAGE_SIZE, size);
	if (out->words && size >= HUGE_PAGE_SIZE)
		madvise(out->words, size, MADV_HUGEPAGE);
	return out->words ? 0 : -ENOMEM;
}

/* There is room; bits may be 0. */
static void add(struct stele_deleted *out, uint64_t index, uint64_t bits)
{
	if (!bits)
		return;
	out->words[out->word_count++] = (struct stele_deleted_word){
		.index = index,
		.bits = bits,
		.below = out->count,
	};
	out->count += ones(bits);
}

/* ---- on the target ----------------------------------------------------------- */

static int read_piece(const struct stele_image *image,
		      const struct stele_catalog_list *list, uint64_t first,
		      uint64_t count, struct stele_disk_block *blocks,
		      const char **why)
{
	const uint64_t offset = list->offset + first * STELE_BLOCK_SIZE;
	int ret;

	*why = "cannot be read";
	ret = stele_device_read(image->dev, blocks, offset,
				count * STELE_BLOCK_SIZE);
	if (ret == 0)
		ret = stele_blocks_check(blocks, count, STELE_BLOCK_DELETED,
					 offset, list->owner, why);
	return ret == -EMEDIUMTYPE ? -EBADMSG : ret;
}

static int unpack(const struct stele_image *image,
		  const struct stele_catalog_list *list, uint64_t sample_count,
		  struct stele_disk_block *blocks, struct stele_deleted *out,
		  const char **why)
{
	const uint64_t total = stele_deleted_blocks(list->count);
	const uint64_t per_read =
		(uint64_t)BLOCKS_PER_READ * STELE_DELETED_PER_BLOCK;

	for (uint64_t first = 0; first < total; first += BLOCKS_PER_READ) {
		const uint64_t done = out->word_count;
		const uint64_t left = list->count - done;
		const uint64_t take = left < per_read ? left : per_read;
		int ret;

		ret = read_piece(image, list, first, stele_deleted_blocks(take),
				 blocks, why);
		if (ret == 0)
			ret = stele_deleted_check(blocks, take, sample_count,
						  why);
		if (ret < 0)
			return ret;
		for (uint64_t i = 0; i < take; i++) {
			uint64_t index, bits;

			stele_deleted_get(blocks, i, &index, &bits);
			add(out, index, bits);
		}
		if (done && out->words[done].index <= out->words[done - 1].index) {
			*why = "deleted: not ascending";
			return -EUCLEAN;
		}
	}
	return 0;
}

int stele_deleted_load_list(const struct stele_image *image,
			    const struct stele_catalog_list *list,
			    uint64_t sample_count, struct stele_deleted *out,
			    const char **why)
{
	const uint64_t total = stele_deleted_blocks(list->count);
	const uint64_t most = total < BLOCKS_PER_READ ? total : BLOCKS_PER_READ;
	struct stele_disk_block *blocks;
	int ret = reserve(out, list->count);

	*why = "no memory";
	blocks = stele_device_alloc(image->dev, most * STELE_BLOCK_SIZE);
	if (!blocks)
		ret = -ENOMEM;
	if (ret == 0)
		ret = unpack(image, list, sample_count, blocks, out, why);
	free(blocks);
	if (ret < 0)
		stele_deleted_release(out);
	return ret;
}

/* What is in both lists is one too many for the count. */
static int load_both(const struct stele_image *image,
		     const struct stele_catalog_ref *ref, uint64_t sample_count,
		     struct stele_deleted *out, const char **why)
{
	struct stele_deleted first = {0}, second = {0};
	int ret;

	ret = stele_deleted_load_list(image, &ref->lists[0], sample_count,
				      &first, why);
	if (ret == 0)
		ret = stele_deleted_load_list(image, &ref->lists[1],
					      sample_count, &second, why);
	if (ret == 0) {
		*why = "no memory";
		ret = stele_deleted_combine(&first, &second, STELE_DELETED_OR,
					    out);
	}
	stele_deleted_release(&first);
	stele_deleted_release(&second);
	return ret;
}

int stele_deleted_load(const struct stele_image *image,
		       const struct stele_catalog_ref *ref,
		       uint64_t sample_count, struct stele_deleted *out,
		       const char **why)
{
	int ret;

	memset(out, 0, sizeof(*out));
	if (!ref->deleted_count)
		return 0;
	if (ref->lists[1].offset)
		ret = load_both(image, ref, sample_count, out, why);
	else
		ret = stele_deleted_load_list(image, &ref->lists[0],
					      sample_count, out, why);
	if (ret == 0 && out->count != ref->deleted_count) {
		*why = "deleted: count differs from the catalog";
		ret = -EUCLEAN;
	}
	if (ret < 0)
		stele_deleted_release(out);
	return ret;
}

/* ---- made of others ------------------------------------------------------------ */

int stele_deleted_make(const uint64_t *numbers, uint64_t count,
		       struct stele_deleted *out)
{
	uint64_t words = 0, bits = 0;
	int ret;

	for (uint64_t i = 0; i < count; i++)
		words += !i || numbers[i] / PER_WORD != numbers[i - 1] / PER_WORD;
	ret = reserve(out, words);
	for (uint64_t i = 0; ret == 0 && i < count; i++) {
		const uint64_t index = numbers[i] / PER_WORD;

		bits |= UINT64_C(1) << numbers[i] % PER_WORD;
		if (i + 1 < count && numbers[i + 1] / PER_WORD == index)
			continue;
		add(out, index, bits);
		bits = 0;
	}
	return ret;
}

static uint64_t apply(enum stele_deleted_op op, uint64_t a, uint64_t b)
{
	switch (op) {
	case STELE_DELETED_AND:
		return a & b;
	case STELE_DELETED_XOR:
		return a ^ b;
	case STELE_DELETED_ANDNOT:
		return a & ~b;
	default:
		return a | b;
	}
}

int stele_deleted_combine(const struct stele_deleted *a,
			  const struct stele_deleted *b,
			  enum stele_deleted_op op, struct stele_deleted *out)
{
	uint64_t i = 0, j = 0;
	int ret = reserve(out, a->word_count + b->word_count);

	while (ret == 0 && (i < a->word_count || j < b->word_count)) {
		const uint64_t x = i < a->word_count ? a->words[i].index : UINT64_MAX;
		const uint64_t y = j < b->word_count ? b->words[j].index : UINT64_MAX;

		add(out, x <= y ? x : y,
		    apply(op, x <= y ? a->words[i].bits : 0,
			  y <= x ? b->words[j].bits : 0));
		i += x <= y;
		j += y <= x;
	}
	return ret;
}

void stele_deleted_release(struct stele_deleted *deleted)
{
	free(deleted->words);
	memset(deleted, 0, sizeof(*deleted));
}

/* ---- look up ------------------------------------------------------------------- */

/* Where many are deleted most words are there: about where it would be among all. */
static uint64_t guess(const struct stele_deleted *d, uint64_t index)
{
	const uint64_t at = (uint64_t)((double)index * (double)d->word_count /
				       (double)(d->words[d->word_count - 1].index + 1));

	return at < d->word_count ? at : d->word_count - 1;
}

void stele_deleted_prefetch(const struct stele_deleted *d, uint64_t number)
{
	const struct stele_deleted_word *word;

	if (!d->word_count)
		return;
	word = &d->words[guess(d, number / PER_WORD)];
	__builtin_prefetch(word);
	__builtin_prefetch(&word->below);
}

/* The first word from `index` on: in growing steps from the guess, then bisect the last. */
static uint64_t find(const struct stele_deleted *d, uint64_t index)
{
	const struct stele_deleted_word *words = d->words;
	uint64_t low = 0, high = d->word_count, step = 1, at;

	if (!high || words[high - 1].index < index)
		return high;
	at = guess(d, index);
	if (words[at].index == index)
		return at;
	if (words[at].index < index) {
		low = at + 1;
		while (step < high - low && words[low + step].index < index) {
			low += step + 1;
			step *= 2;
		}
		if (step < high - low)
			high = low + step;
	} else {
		high = at;
		while (step <= high && words[high - step].index >= index) {
			high -= step;
			step *= 2;
		}
		if (step <= high)
			low = high - step + 1;
	}
	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;

		if (words[middle].index < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool stele_deleted_has(const struct stele_deleted *d, uint64_t number,
		       uint64_t *below)
{
	const uint64_t index = number / PER_WORD, at = find(d, index);
	const uint64_t bit = UINT64_C(1) << number % PER_WORD;
	const bool there = at < d->word_count && d->words[at].index == index;

	if (below)
		*below = at == d->word_count ? d->count : d->words[at].below;
	if (below && there)
		*below += ones(d->words[at].bits & (bit - 1));
	return there && d->words[at].bits & bit;
}

/* Position of the n-th bit of `bits`, which has it. */
static uint64_t select_bit(uint64_t bits, uint64_t n)
{
	uint64_t position = 0;

	for (unsigned int width = PER_WORD / 2; width; width /= 2) {
		const uint64_t low = bits & ((UINT64_C(1) << width) - 1);

		if (n < ones(low)) {
			bits = low;
			continue;
		}
		n -= ones(low);
		bits >>= width;
		position += width;
	}
	return position;
}

uint64_t stele_deleted_live(const struct stele_deleted *d, uint64_t n)
{
	const struct stele_deleted_word *word;
	uint64_t low = 0, high = d->word_count, first, left;

	/* Words up to whose first number there are no more than n live ones. */
	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;

		word = &d->words[middle];
		if (word->index * PER_WORD - word->below <= n)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return n;
	word = &d->words[low - 1];
	first = word->index * PER_WORD;
	left = n - (first - word->below);
	if (left >= ones(~word->bits))
		return n + word->below + ones(word->bits);
	return first + select_bit(~word->bits, left);
}

uint64_t *stele_deleted_numbers(const struct stele_deleted *d)
{
	uint64_t *numbers = calloc(d->count + 1, sizeof(*numbers));
	uint64_t n = 0;

	for (uint64_t i = 0; numbers && i < d->word_count; i++) {
		uint64_t bits = d->words[i].bits;

		for (; bits; bits &= bits - 1)
			numbers[n++] = d->words[i].index * PER_WORD +
				       (uint64_t)__builtin_ctzll(bits);
	}
	return numbers;
}
