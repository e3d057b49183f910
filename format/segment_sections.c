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
void stele_tree_geometry(uint64_t leaf_blocks, uint64_t *count, uint64_t *size)
{
	struct stele_tree_shape shape;

	stele_tree_shape(leaf_blocks, &shape);
	*count = 0;
	for (uint32_t i = 0; i + 1 < shape.level_count; i++)
		*count += shape.blocks[i];
	*size = shape.tree_blocks * STELE_BLOCK_SIZE;
}

/* Blocks of the sections that begin below `offset`, TREE left out. */
static uint64_t leaves_below(const struct stele_descriptor *d, uint64_t offset)
{
	uint64_t size = 0;

	for (uint32_t i = 0; i < d->section_count; i++) {
		struct stele_section section;

		stele_descriptor_section(d, i, &section);
		if (section.type != STELE_BLOCK_TREE && section.offset < offset)
			size += section.size;
	}
	return size / STELE_BLOCK_SIZE;
}

uint64_t stele_descriptor_leaf(const struct stele_descriptor *d,
			       const struct stele_section *section)
{
	return leaves_below(d, section->offset);
}

void stele_descriptor_tree_shape(const struct stele_descriptor *d,
				 struct stele_tree_shape *out)
{
	stele_tree_shape(leaves_below(d, d->size), out);
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
		return unclean(why, "descriptor: section is not a stream");
	if (section->type == STELE_BLOCK_KEYS)
		return check_keys(d, section, why);
	if (section->type == STELE_BLOCK_TREE) /* when all others are known good */
		return 0;
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
		return unclean(why, "descriptor: duplicate section");
	if (!is_aligned(section->offset | section->size, STELE_BLOCK_SIZE) ||
	    section->size == 0 ||
	    !range_ok(section->offset, section->size, limit))
		return unclean(why, "descriptor: section out of bounds");
	if (section->offset < *end)
		return unclean(why, "descriptor: section on other data");
	*end = section->offset + section->size;
	return check_content(d, section, why);
}

static int check_tree(const struct stele_descriptor *d, const char **why)
{
	struct stele_section tree;
	uint64_t count, size;

	if (stele_descriptor_find_section(d, STELE_BLOCK_TREE, STELE_NO_FIELD,
					  &tree) < 0)
		return 0;
	stele_tree_geometry(leaves_below(d, d->size), &count, &size);
	if (tree.count != count || tree.size != size)
		return unclean(why, "descriptor: tree against the sections");
	return 0;
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
	return check_tree(d, why);
}
