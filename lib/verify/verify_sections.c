/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_sections.c - every block of every section; order, columns, tree
 *
 * Blocks come first, and damaged ones are reported there. Comparisons of
 * contents skip them.
 *
 * That the two arrays of the order are inverse to each other is verified in
 * one pass and constant memory: the pairs (ordinal, number) of both
 * must be the same set, and sums of keyed hashes over the pairs are
 * compared. n pairs with n different ordinals and n different numbers are a
 * permutation.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "format/decode.h"
#include "lib/image/section.h"
#include "lib/verify/check.h"
#include "lib/image/digest.h"

#define BLOCKS_PER_READ 256u

/* ---- blocks ------------------------------------------------------------------ */

/* Return: is it sound? */
static bool check_block(struct stele_segment_check *sc,
			const struct stele_section *section,
			struct stele_disk_block *block, uint64_t offset,
			int error)
{
	const char *why = "cannot be read";

	if (error < 0)
		error = stele_check_read(sc->check, block, offset,
					 STELE_BLOCK_SIZE);
	if (error == 0)
		error = stele_block_check(block, section->type, offset,
					  sc->segment.descriptor.id, &why);
	if (error < 0)
		stele_check_report(sc->check, error,
				   stele_section_name(section->type), offset,
				   STELE_BLOCK_SIZE, "%s", why);
	return error == 0;
}

/* Of sound blocks, which the schema was loaded from. */
static void check_names(struct stele_segment_check *sc,
			const struct stele_section *section)
{
	const int damage = sc->segment.names->field[section->field].damage;

	if (damage)
		stele_check_report(sc->check, damage, stele_section_name(section->type),
				   sc->segment.descriptor.offset + section->offset,
				   section->size, "%s",
				   damage == -EUCLEAN ? "impossible contents" :
							"could not be read at first");
}

static int check_blocks(struct stele_segment_check *sc,
			const struct stele_section *section,
			struct stele_disk_block *blocks)
{
	const uint64_t total = section->size / STELE_BLOCK_SIZE;
	uint64_t offset = sc->segment.descriptor.offset + section->offset;
	bool sound = true;
	int ret = 0;

	for (uint64_t i = 0; i < total && ret == 0; i += BLOCKS_PER_READ) {
		uint64_t left = total - i;
		uint64_t count = left < BLOCKS_PER_READ ? left :
							  BLOCKS_PER_READ;
		int error = stele_check_read(sc->check, blocks, offset,
					     count * STELE_BLOCK_SIZE);

		for (uint64_t j = 0; j < count; j++)
			sound &= check_block(sc, section, &blocks[j],
					     offset + j * STELE_BLOCK_SIZE, error);
		offset += count * STELE_BLOCK_SIZE;
		ret = stele_check_progress(sc->check, count * STELE_BLOCK_SIZE,
					   count, 0);
	}
	if (ret == 0 && sound && section->type == STELE_BLOCK_NAMES)
		check_names(sc, section);
	return ret;
}

static int check_all_blocks(struct stele_segment_check *sc)
{
	const struct stele_descriptor *d = &sc->segment.descriptor;
	struct stele_disk_block *blocks;
	struct stele_section section;
	uint64_t most = 1;
	int ret = 0;

	for (uint32_t i = 0; i < d->section_count; i++) {
		stele_descriptor_section(d, i, &section);
		if (section.size / STELE_BLOCK_SIZE > most)
			most = section.size / STELE_BLOCK_SIZE;
	}
	if (most > BLOCKS_PER_READ)
		most = BLOCKS_PER_READ;
	blocks = stele_device_alloc(sc->check->image->dev,
				    most * STELE_BLOCK_SIZE);
	if (!blocks)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->section_count && ret == 0; i++) {
		stele_descriptor_section(d, i, &section);
		ret = check_blocks(sc, &section, blocks);
	}
	free(blocks);
	return ret;
}

static void check_present(struct stele_segment_check *sc, uint32_t type,
			  uint32_t field)
{
	const struct stele_descriptor *d = &sc->segment.descriptor;
	struct stele_section section;

	if (stele_descriptor_find_section(d, type, field, &section) < 0)
		stele_check_report(sc->check, -EUCLEAN, "descriptor", d->offset,
				   sc->where->descriptor_size,
				   "no section '%s'",
				   stele_section_name(type));
}

static void check_all_present(struct stele_segment_check *sc)
{
	const struct stele_descriptor *d = &sc->segment.descriptor;

	if (d->sample_count == 0)
		return;
	check_present(sc, STELE_BLOCK_KEYS, STELE_NO_FIELD);
	check_present(sc, STELE_BLOCK_ORDER, STELE_NO_FIELD);
	check_present(sc, STELE_BLOCK_DIGESTS, STELE_NO_FIELD);
	check_present(sc, STELE_BLOCK_TREE, STELE_NO_FIELD);
	for (uint32_t i = 0; i < d->field_count; i++)
		if (stele_field_is_scalar(sc->segment.fields[i].type))
			check_present(sc, STELE_BLOCK_COLUMN, i);
}

/* ---- order ------------------------------------------------------------------- */

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

struct order {
	struct stele_segment_check *sc;
	struct stele_check_window window;
	uint64_t key[2];
	uint64_t sum[2]; /* of the pairs of the one array, less the other's */
	uint32_t width, per_block;
	bool damaged;
};

static void add_pair(struct order *o, uint64_t ordinal, uint64_t number,
		     uint64_t sign)
{
	for (unsigned int i = 0; i < 2; i++)
		o->sum[i] += sign * mix(mix(ordinal + o->key[i]) ^ number);
}

/* Are the bits of a payload from `bit` on zero? */
static bool zero_from_bit(const struct stele_disk_block *block, uint64_t bit)
{
	size_t byte = bit / 8;
	size_t size = STELE_BLOCK_PAYLOAD - byte;

	if (size == 0)
		return true;
	if (block->payload[byte] >> (bit % 8))
		return false;
	return bytes_zero(block->payload + byte + 1, size - 1);
}

/* Block `index` of the section; its first entry is `first` of array 0 or 1. */
static void check_order_block(struct order *o, uint64_t index, uint64_t first,
			      bool inverse)
{
	const struct stele_disk_block *block =
		stele_check_window_get(&o->window, index);
	const uint64_t total = o->sc->segment.descriptor.sample_count;
	uint64_t count = total - first;
	const char *why = NULL;

	if (!block) {
		o->damaged = true;
		return;
	}
	if (count > o->per_block)
		count = o->per_block;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t value = stele_order_get(block, o->width, i);

		if (value >= total)
			why = "entry out of range";
		if (inverse)
			add_pair(o, value, first + i, UINT64_MAX);
		else
			add_pair(o, first + i, value, 1);
	}
	if (!zero_from_bit(block, count * o->width))
		why = "nonzero bits after the entries";
	if (!why)
		return;
	o->damaged = true;
	stele_check_report(o->sc->check, -EUCLEAN, "order",
			   stele_check_window_offset(&o->window, index),
			   STELE_BLOCK_SIZE, "%s", why);
}

static int check_order(struct stele_segment_check *sc)
{
	const uint64_t count = sc->segment.descriptor.sample_count;
	const uint64_t blocks = stele_order_blocks(count);
	struct order o = {.sc = sc};
	int ret;

	if (getrandom(o.key, sizeof(o.key), GRND_NONBLOCK) < 0)
		o.key[0] = (uintptr_t)&o;
	o.width = stele_order_width(count);
	o.per_block = stele_order_per_block(o.width);
	ret = stele_check_window_open(sc, STELE_BLOCK_ORDER, STELE_NO_FIELD,
				      BLOCKS_PER_READ, &o.window);
	if (ret < 0)
		return ret == -ENOENT ? 0 : ret;
	for (uint64_t i = 0; i < 2 * blocks; i++)
		check_order_block(&o, i, i % blocks * o.per_block, i >= blocks);
	if (!o.damaged && (o.sum[0] || o.sum[1]))
		stele_check_report(sc->check, -EUCLEAN, "order",
				   stele_check_window_offset(&o.window, 0),
				   o.window.section.size,
				   "not a permutation and its inverse");
	stele_check_window_release(&o.window);
	return 0;
}

/* ---- columns: minimum, maximum, padding; values with the records -------------- */

static void check_column_block(struct stele_check_window *window,
			       uint64_t index, uint64_t left, uint32_t type)
{
	const struct stele_disk_block *block =
		stele_check_window_get(window, index);
	struct stele_disk_column column;
	uint32_t count = left < STELE_COLUMN_PER_BLOCK ?
				 (uint32_t)left :
				 STELE_COLUMN_PER_BLOCK;

	if (!block)
		return;
	memcpy(&column, block->payload, sizeof(column));
	stele_column_summarise(&column, count, type);
	memset(&column.values[count], 0,
	       (STELE_COLUMN_PER_BLOCK - count) * sizeof(le64));
	if (memcmp(&column, block->payload, sizeof(column)) != 0)
		stele_check_report(window->sc->check, -EUCLEAN, "column",
				   stele_check_window_offset(window, index),
				   STELE_BLOCK_SIZE,
				   "minimum, maximum or padding do not match "
				   "the values");
}

static int check_column(struct stele_segment_check *sc, uint32_t field)
{
	const uint64_t total = sc->segment.descriptor.sample_count;
	struct stele_check_window window;
	int ret;

	ret = stele_check_window_open(sc, STELE_BLOCK_COLUMN, field,
				      BLOCKS_PER_READ, &window);
	if (ret < 0)
		return ret == -ENOENT ? 0 : ret;
	for (uint64_t done = 0; done < total; done += STELE_COLUMN_PER_BLOCK)
		check_column_block(&window, done / STELE_COLUMN_PER_BLOCK,
				   total - done, sc->segment.fields[field].type);
	stele_check_window_release(&window);
	return 0;
}

static int check_columns(struct stele_segment_check *sc)
{
	int ret = 0;

	for (uint32_t i = 0; i < sc->segment.descriptor.field_count; i++)
		if (ret == 0 && stele_field_is_scalar(sc->segment.fields[i].type))
			ret = check_column(sc, i);
	return ret;
}

int stele_verify_sections(struct stele_segment_check *sc)
{
	int ret;

	check_all_present(sc);
	ret = check_all_blocks(sc);
	if (ret == 0)
		ret = check_order(sc);
	if (ret == 0)
		ret = check_columns(sc);
	if (ret == 0)
		ret = stele_verify_tree(sc);
	return ret;
}
