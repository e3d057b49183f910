/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.c - extents against bit maps: every small case
 *
 * All sets of BLOCKS blocks, all ranges added to and taken from each, all
 * places looked for; and the catalog's place for all pairs of what is used and
 * what of that the next generation uses, with tables whose size is just at the end
 * of a block, so that one free extent more or less needs another block.
 */
#include "lib/txn/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

#define BLOCKS 8u
#define BASE   STELE_DATA_OFFSET
#define B      STELE_BLOCK_SIZE

static uint64_t bad;

static void from_bits(unsigned int bits, struct stele_extents *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned int i = BLOCKS; i-- > 0;)
		if (bits >> i & 1 && stele_extents_add(out, BASE + i * B, B) < 0)
			bail("no memory");
}

static unsigned int range_bits(unsigned int from, unsigned int count)
{
	return ((1u << count) - 1) << from;
}

/* The same blocks; ascending, never touching, none empty. */
static bool is_bits(const struct stele_extents *e, unsigned int bits)
{
	unsigned int seen = 0;
	uint64_t end = 0;

	for (uint32_t i = 0; i < e->count; i++) {
		const struct stele_catalog_free *x = &e->list[i];

		if (x->size == 0 || x->offset <= end || x->offset < BASE ||
		    x->offset + x->size > BASE + 2 * BLOCKS * B)
			return false;
		end = x->offset + x->size;
		seen |= range_bits((unsigned int)((x->offset - BASE) / B),
				   (unsigned int)(x->size / B));
	}
	return seen == bits;
}

static void check_sets(void)
{
	for (unsigned int bits = 0; bits < 1u << BLOCKS; bits++)
		for (unsigned int from = 0; from < BLOCKS; from++)
			for (unsigned int n = 0; from + n <= BLOCKS; n++) {
				const unsigned int range = range_bits(from, n);
				struct stele_extents e;

				from_bits(bits, &e);
				bad += !is_bits(&e, bits);
				stele_extents_add(&e, BASE + from * B, n * B);
				bad += !is_bits(&e, bits | range);
				stele_extents_release(&e);
				from_bits(bits, &e);
				stele_extents_remove(&e, BASE + from * B,
						     n * B);
				bad += !is_bits(&e, bits & ~range);
				stele_extents_release(&e);
			}
	is_uint(0, bad, "each range added to and taken from each set");
}

static void check_lists(void)
{
	unsigned int bits = 1;

	bad = 0;
	for (unsigned int round = 0; round < 20000; round++) {
		struct stele_catalog_free list[6];
		unsigned int want, count = round % 7;
		struct stele_extents e;

		bits = bits * 1103515245 + 12345;
		want = bits >> 8 & 0xff;
		from_bits(want, &e);
		for (unsigned int i = 0; i < count; i++) {
			unsigned int from, n;

			bits = bits * 1103515245 + 12345;
			from = bits >> 16 & 7;
			n = (bits >> 24) % (BLOCKS - from + 1);
			list[i] = (struct stele_catalog_free){BASE + from * B,
							      n * B};
			want |= range_bits(from, n);
		}
		stele_extents_add_list(&e, list, count);
		bad += !is_bits(&e, want);
		stele_extents_release(&e);
	}
	is_uint(0, bad, "lists in any order, overlapping");
}

/* The first run of `n` clear bits, by blocks, below `end`. */
static int find_bits(unsigned int bits, unsigned int n, unsigned int align,
		     unsigned int end)
{
	for (unsigned int at = 0; at + n <= end; at++)
		if ((BASE / B + at) % align == 0 &&
		    !(bits & range_bits(at, n)))
			return (int)at;
	return -1;
}

static void check_find(void)
{
	bad = 0;
	for (unsigned int bits = 0; bits < 1u << BLOCKS; bits++)
		for (unsigned int n = 1; n <= BLOCKS; n++)
			for (unsigned int align = 1; align <= 4; align *= 2)
				for (unsigned int end = 0; end <= BLOCKS;
				     end++) {
					int want = find_bits(bits, n, align,
							     end);
					struct stele_extents e;
					uint64_t at;
					int ret;

					from_bits(bits, &e);
					ret = stele_extents_find(
						&e, n * B, align * B,
						BASE + end * B, &at);
					bad += want < 0 ?
						       ret != -ENOSPC :
						       ret != 0 ||
							       at != BASE + (unsigned int)want * B;
					stele_extents_release(&e);
				}
	is_uint(0, bad, "first fit, for each set, size, alignment and end");
}

static void check_gaps(void)
{
	bad = 0;
	for (unsigned int bits = 0; bits < 1u << BLOCKS; bits++)
		for (unsigned int end = 0; end <= BLOCKS; end++) {
			struct stele_extents e, gaps = {0};

			from_bits(bits, &e);
			stele_extents_gaps(&e, BASE + end * B, &gaps);
			bad += !is_bits(&gaps, ~bits & range_bits(0, end));
			stele_extents_release(&e);
			stele_extents_release(&gaps);
		}
	is_uint(0, bad, "gaps");
}

/* ---- the catalog ----------------------------------------------------------- */

static unsigned int highest(unsigned int bits)
{
	return bits ? 32 - (unsigned int)__builtin_clz(bits) : 0;
}

static unsigned int count_gaps(unsigned int bits)
{
	unsigned int gaps = 0;

	for (unsigned int i = 0; i < highest(bits); i++)
		gaps += !(bits >> i & 1) && (i == 0 || bits >> (i - 1) & 1);
	return gaps;
}

/* Blocks of a catalog with so many free extents. */
static unsigned int blocks_with(struct stele_catalog_counts counts,
				unsigned int gaps)
{
	counts.free = gaps;
	return (unsigned int)stele_stream_blocks(
		stele_catalog_stream_size(&counts));
}

/* Is there, at the beginning of some gap, a place that is as it says? */
static int place_bits(unsigned int own, unsigned int used,
		      const struct stele_catalog_counts *counts,
		      unsigned int end, unsigned int *size)
{
	for (unsigned int at = 0; at < end; at++) {
		if (used >> at & 1 || (at > 0 && !(used >> (at - 1) & 1)))
			continue;
		for (unsigned int n = 1; at + n <= end; n++) {
			unsigned int lies = range_bits(at, n);

			if (used & lies ||
			    blocks_with(*counts, count_gaps(own | lies)) != n)
				continue;
			*size = n;
			return (int)at;
		}
	}
	return -1;
}

static bool place_good(unsigned int own, unsigned int used,
		       const struct stele_catalog_counts *counts,
		       unsigned int end)
{
	struct stele_catalog_place place;
	struct stele_extents o, u;
	unsigned int size = 0, all;
	int want = place_bits(own, used, counts, end, &size);
	bool good;
	int ret;

	from_bits(own, &o);
	from_bits(used, &u);
	ret = stele_catalog_find_place(&o, &u, counts, BASE + end * B, &place);
	good = want < 0 ? ret == -ENOSPC : ret == 0;
	if (ret == 0 && good) {
		all = own | range_bits((unsigned int)want, size);
		good = place.offset == BASE + (unsigned int)want * B &&
		       place.size == size * B &&
		       place.free_count == count_gaps(all) &&
		       place.high_water == BASE + highest(all) * B &&
		       stele_catalog_size_bound(&o, counts) >= place.size;
	}
	stele_extents_release(&o);
	stele_extents_release(&u);
	return good;
}

static void check_place(uint32_t notes)
{
	const struct stele_catalog_counts counts = {.notes_size = notes};
	uint64_t cases = 0;

	bad = 0;
	for (unsigned int used = 0; used < 1u << BLOCKS; used++)
		for (unsigned int own = used;; own = (own - 1) & used) {
			for (unsigned int end = BLOCKS - 2; end <= BLOCKS;
			     end++) {
				bad += !place_good(own, used, &counts, end);
				cases++;
			}
			if (own == 0)
				break;
		}
	is_uint(0, bad, "notes of %u bytes: the catalog's place in each of %ju cases",
		notes, (uintmax_t)cases);
}

int main(void)
{
	plan_lazy();
	check_sets();
	check_lists();
	check_find();
	check_gaps();
	/* So that 0, 1, 2, 3 free extents are the last that fit a block. */
	for (uint32_t room = 0; room < 4; room++)
		check_place(STELE_BLOCK_PAYLOAD - 64 - 16 * room);
	check_place(2 * STELE_BLOCK_PAYLOAD - 64 - 16);
	check_place(0);
	return done();
}
