/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_blocks.c - blocks of sections: check, seal for their new place
 *
 * All are held against the level above, up to the source's root, on either side:
 * what a checksum says of a block that was found on the target is only that
 * somebody wrote it there for a segment of this id.
 */
#include <errno.h>
#include <string.h>

#include "lib/segment/copy_worker.h"

static const char *name_of(uint32_t type)
{
	switch (type) {
	case STELE_BLOCK_KEYS:
		return "keys";
	case STELE_BLOCK_ORDER:
		return "order";
	case STELE_BLOCK_COLUMN:
		return "column";
	case STELE_BLOCK_DIGESTS:
		return "digests";
	case STELE_BLOCK_TREE:
		return "tree";
	default:
		return "names";
	}
}

/* What the level above says that the hash of a block is. */
static int wanted_hash(struct stele_copy_worker *w,
		       const struct stele_tree_shape *shape, uint32_t level,
		       uint64_t index, const uint8_t **hash)
{
	const struct stele_segment *segment = w->copy->segment;
	struct stele_section tree;
	uint64_t at;
	int ret = 0;

	at = shape->first[level + 1] + index / STELE_DIGESTS_PER_BLOCK;
	if (stele_descriptor_find_section(&segment->descriptor,
					  STELE_BLOCK_TREE, STELE_NO_FIELD,
					  &tree) < 0)
		return -EUCLEAN;
	if (at != w->parent_index)
		ret = stele_section_read(w->copy->image, segment, &tree, at, 1,
					 w->parent);
	w->parent_index = ret < 0 ? UINT64_MAX : at;
	*hash = stele_digest_entry(w->parent, index);
	return ret;
}

/* Return: 0; -EBADMSG (*why is set); errno of reading the level above. */
static int check_hash(struct stele_copy_worker *w,
		      const struct stele_section *section, uint64_t block,
		      const struct stele_disk_block *data, const char **why)
{
	const struct stele_descriptor *d = &w->copy->segment->descriptor;
	const uint8_t *want = d->tree_root;
	uint8_t digest[STELE_DIGEST_SIZE];
	struct stele_tree_shape shape;
	uint32_t level = 0;
	bool top;
	int ret = 0;

	if (!d->sample_count) /* no tree: the schema's digest vouches for its names */
		return 0;
	stele_descriptor_tree_shape(d, &shape);
	if (section->type == STELE_BLOCK_TREE)
		for (level = 1; level + 1 < shape.level_count &&
				block >= shape.first[level + 1];)
			level++;
	else
		block += stele_descriptor_leaf(d, section);
	block -= shape.first[level];
	top = level + 1 >= shape.level_count;
	if (!top)
		ret = wanted_hash(w, &shape, level, block, &want);
	if (ret < 0)
		return ret;
	stele_hash_block(w->hash, data, digest);
	if (top)
		stele_hash_root(w->hash, d, digest, digest);
	if (!memcmp(digest, want, sizeof(digest)))
		return 0;
	*why = "hash does not match the level above";
	return -EBADMSG;
}

/* Return: 0; -EBADMSG, -EUCLEAN (logged); errno. */
static int check_blocks(struct stele_copy_worker *w,
			const struct stele_copy_side *side,
			const struct stele_copy_unit *unit,
			const struct stele_section *section)
{
	const struct stele_disk_block *blocks = (void *)w->buffer;
	const char *why = "";
	int ret = 0;

	for (uint64_t i = 0; ret == 0 && i < unit->size / STELE_BLOCK_SIZE;
	     i++) {
		const uint64_t offset = unit->offset + i * STELE_BLOCK_SIZE;

		ret = stele_block_check(&blocks[i], section->type,
					side->base + offset,
					w->copy->segment->descriptor.id, &why);
		if (ret == -EMEDIUMTYPE)
			ret = -EBADMSG;
		if (ret == 0)
			ret = check_hash(w, section, unit->block + i,
					 &blocks[i], &why);
		if (ret < 0 && *why)
			stele_copy_complain(w, side, ret, offset, name_of(section->type), why);
	}
	return ret;
}

int stele_copy_find_blocks(struct stele_copy_worker *w,
			   const struct stele_copy_unit *unit)
{
	struct stele_section section;
	int ret;

	stele_descriptor_section(&w->copy->segment->descriptor, unit->section,
				 &section);
	ret = stele_copy_transfer(w, &w->to, STELE_OP_READ, w->buffer,
				  unit->offset, unit->size);
	if (ret < 0)
		return ret;
	ret = check_blocks(w, &w->to, unit, &section);
	if (ret == -EBADMSG || ret == -EUCLEAN)
		return 0;
	return ret < 0 ? ret : 1;
}

int stele_copy_send_blocks(struct stele_copy_worker *w,
			   const struct stele_copy_unit *unit)
{
	struct stele_section section;
	int ret;

	stele_descriptor_section(&w->copy->segment->descriptor, unit->section,
				 &section);
	ret = stele_copy_transfer(w, &w->from, STELE_OP_READ, w->buffer,
				  unit->offset, unit->size);
	if (ret == 0)
		ret = check_blocks(w, &w->from, unit, &section);
	if (ret < 0)
		return ret;
	stele_blocks_seal((void *)w->buffer, unit->size / STELE_BLOCK_SIZE,
			  section.type, w->to.base + unit->offset,
			  w->copy->segment->descriptor.id);
	return stele_copy_transfer(w, &w->to, STELE_OP_WRITE, w->buffer,
				   unit->offset, unit->size);
}
