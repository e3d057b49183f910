/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment_sections.c - check the section references of a descriptor
 *
 * Size and count of a section follow from the number of samples, or bound each
 * other, so that a reader can trust both before it reads a block.
 */
#include "format/decode.h"
#include "format/sections.h"
#include "format/segment_check.h"

/* Entries with a suffix of one byte. */
#define KEYS_PER_PAGE_MAX 238u
#define NAME_ENTRY_MIN    3u
#define NAME_ENTRY_MAX    4002u

/* By type: bit `field`, or bit 0 where there is none. */
struct seen {
	uint64_t bits[STELE_BLOCK_NAMES + 1];
};
_Static_assert(STELE_FIELD_COUNT_MAX <= 64, "a field needs a bit");

/* An entry is the hash of a block below; the topmost block has none. */
static void tree_geometry(uint64_t sample_count, uint64_t *count,
			  uint64_t *blocks)
{
	struct stele_tree_shape shape;

	stele_tree_shape(sample_count, &shape);
	*count = 0;
	for (uint32_t i = 0; i + 1 < shape.level_count; i++)
		*count += shape.blocks[i];
	*blocks = shape.tree_blocks;
}

bool stele_section_geometry(uint32_t type, uint64_t sample_count,
			    uint64_t *count, uint64_t *size)
{
	uint64_t blocks;

	*count = sample_count;
	switch (type) {
	case STELE_BLOCK_ORDER:
		blocks = 2 * stele_order_blocks(sample_count);
		break;
	case STELE_BLOCK_COLUMN:
		blocks = stele_column_blocks(sample_count);
		break;
	case STELE_BLOCK_DIGESTS:
		blocks = ceil_div(sample_count, STELE_DIGESTS_PER_BLOCK);
		break;
	case STELE_BLOCK_TREE:
		tree_geometry(sample_count, count, &blocks);
		break;
	default:
		return false;
	}
	*size = blocks * STELE_BLOCK_SIZE;
	return blocks > 0;
}

static int check_field(const struct stele_descriptor *d,
		       const struct stele_section *section, const char **why)
{
	struct stele_descriptor_field field;

	if (section->type != STELE_BLOCK_COLUMN &&
	    section->type != STELE_BLOCK_NAMES) {
		if (section->field != STELE_NO_FIELD)
			return unclean(why, "descriptor: section with a field");
		return 0;
	}
	if (section->field >= d->field_count)
		return unclean(why, "descriptor: section of no field");
	stele_descriptor_field(d, section->field, &field);
	if (field.type != STELE_FIELD_I64 &&
	    (field.type != STELE_FIELD_F64 ||
	     section->type == STELE_BLOCK_NAMES))
		return unclean(why, "descriptor: section of a wrong field");
	return 0;
}

static bool see(struct seen *seen, const struct stele_section *section)
{
	uint64_t bit = 1;
	uint64_t *bits = &seen->bits[section->type];
	bool before;

	if (section->field != STELE_NO_FIELD)
		bit <<= section->field;
	before = *bits & bit;
	*bits |= bit;
	return !before;
}

static int check_keys(const struct stele_descriptor *d,
		      const struct stele_section *section, const char **why)
{
	uint64_t pages = section->size / STELE_BLOCK_SIZE;

	if (section->count != d->sample_count)
		return unclean(why, "descriptor: keys against samples");
	if (section->count < pages ||
	    section->count > pages * KEYS_PER_PAGE_MAX)
		return unclean(why, "descriptor: keys against their pages");
	return 0;
}

static int check_names(const struct stele_section *section, const char **why)
{
	if (section->stream_size == 0 ||
	    section->stream_size > STELE_NAMES_SIZE_MAX)
		return unclean(why, "descriptor: names' size out of range");
	if (section->size !=
	    stele_stream_blocks(section->stream_size) * STELE_BLOCK_SIZE)
		return unclean(why, "descriptor: names against their blocks");
	if (section->count < ceil_div(section->stream_size, NAME_ENTRY_MAX) ||
	    section->count > section->stream_size / NAME_ENTRY_MIN)
		return unclean(why, "descriptor: names against their size");
	return 0;
}

static int check_content(const struct stele_descriptor *d,
			 const struct stele_section *section, const char **why)
{
	uint64_t count, size;

	if (section->type == STELE_BLOCK_NAMES)
		return check_names(section, why);
	if (section->stream_size != 0)
		return unclean(why, "descriptor: section is no stream");
	if (section->type == STELE_BLOCK_KEYS)
		return check_keys(d, section, why);
	if (!stele_section_geometry(section->type, d->sample_count, &count,
				    &size))
		return unclean(why, "descriptor: section of nothing");
	if (section->count != count)
		return unclean(why, "descriptor: section against samples");
	if (section->size != size)
		return unclean(why, "descriptor: section size against count");
	return 0;
}

static int check_section(const struct stele_descriptor *d,
			 const struct stele_section *section, struct seen *seen,
			 uint64_t *end, const char **why)
{
	const uint64_t limit = d->size - stele_descriptor_size(d);
	int ret;

	if (section->type < STELE_BLOCK_KEYS ||
	    section->type > STELE_BLOCK_NAMES)
		return unclean(why, "descriptor: unknown type of a section");
	ret = check_field(d, section, why);
	if (ret < 0)
		return ret;
	if (!see(seen, section))
		return unclean(why, "descriptor: section twice");
	if (!is_aligned(section->offset | section->size, STELE_BLOCK_SIZE) ||
	    section->size == 0 ||
	    !range_ok(section->offset, section->size, limit))
		return unclean(why, "descriptor: section out of bounds");
	if (section->offset < *end)
		return unclean(why, "descriptor: section on other data");
	*end = section->offset + section->size;
	return check_content(d, section, why);
}

int stele_descriptor_check_sections(const struct stele_descriptor *d,
				    const char **why)
{
	uint64_t end = d->slots_offset + d->slots_size;
	struct seen seen = {0};

	for (uint32_t i = 0; i < d->section_count; i++) {
		struct stele_section section;
		int ret;

		stele_descriptor_section(d, i, &section);
		ret = check_section(d, &section, &seen, &end, why);
		if (ret < 0)
			return ret;
	}
	return 0;
}
