/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_tree.c - hashes of the sections' blocks and of the levels above, to the root
 *
 * Each block is compared with its entry one level up. What a damaged block
 * would say about others is unknown, so those are not reported.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "format/decode.h"
#include "lib/image/section.h"
#include "lib/verify/check.h"
#include "lib/image/digest.h"

#define BLOCKS_PER_READ 256u

struct tree {
	struct stele_segment_check *sc;
	struct stele_tree_shape shape;
	struct stele_check_window below; /* a section; levels 1 ..., as children */
	struct stele_check_window above; /* the tree, as parents */
	struct stele_hash *hash;
};

/* A block of a level. */
struct node {
	uint32_t level;
	uint64_t index;	  /* within the level */
	uint64_t at;	  /* within its section */
	uint64_t entries; /* digests or hashes in it; 0: it holds others */
};

static void report(struct tree *t, const struct node *node, const char *why)
{
	stele_check_report(t->sc->check, -EBADMSG,
			   stele_section_name(t->below.section.type),
			   stele_check_window_offset(&t->below, node->at),
			   STELE_BLOCK_SIZE, "level %u: %s", node->level, why);
}

/* What should the hash of this block be? NULL: unknown. */
static const uint8_t *wanted(struct tree *t, const struct node *node)
{
	const struct stele_disk_block *parent;

	if (node->level + 1 == t->shape.level_count)
		return t->sc->segment.descriptor.tree_root;
	parent = stele_check_window_get(&t->above,
					t->shape.first[node->level + 1] +
						node->index /
							STELE_DIGESTS_PER_BLOCK);
	return parent ? stele_digest_entry(parent, node->index) : NULL;
}

static void check_node(struct tree *t, const struct node *node)
{
	const struct stele_descriptor *d = &t->sc->segment.descriptor;
	const bool top = node->level + 1 == t->shape.level_count;
	const struct stele_disk_block *block =
		stele_check_window_get(&t->below, node->at);
	uint8_t digest[STELE_DIGEST_SIZE];
	const uint8_t *want;

	if (!block)
		return;
	if (node->entries && node->entries < STELE_DIGESTS_PER_BLOCK &&
	    !stele_stream_zero_from(block, 1,
				    node->entries * STELE_DIGEST_SIZE))
		report(t, node, "nonzero bytes after the entries");
	want = wanted(t, node);
	if (!want)
		return;
	stele_hash_block(t->hash, block, digest);
	if (top)
		stele_hash_root(t->hash, d, digest, digest);
	if (memcmp(digest, want, sizeof(digest)) != 0)
		report(t, node,
		       top ? "hash does not match the root in the descriptor" :
			     "hash does not match the level above");
}

/* Entries of a block when all blocks hold `total` of them. */
static uint64_t entries_of(uint64_t total, uint64_t index)
{
	const uint64_t left = total - index * STELE_DIGESTS_PER_BLOCK;

	return left < STELE_DIGESTS_PER_BLOCK ? left : STELE_DIGESTS_PER_BLOCK;
}

static int check_section(struct tree *t, const struct stele_section *section)
{
	const struct stele_descriptor *d = &t->sc->segment.descriptor;
	const uint64_t leaf = stele_descriptor_leaf(d, section);
	struct node node = {0};
	int ret = stele_check_window_open(t->sc, section->type, section->field,
					  BLOCKS_PER_READ, &t->below);

	for (uint64_t i = 0; ret == 0 && i < section->size / STELE_BLOCK_SIZE;
	     i++) {
		node.at = i;
		node.index = leaf + i;
		if (section->type == STELE_BLOCK_DIGESTS)
			node.entries = entries_of(d->sample_count, i);
		check_node(t, &node);
	}
	stele_check_window_release(&t->below);
	return ret;
}

static int check_leaves(struct tree *t)
{
	const struct stele_descriptor *d = &t->sc->segment.descriptor;
	int ret = 0;

	for (uint32_t i = 0; i < d->section_count && ret == 0; i++) {
		struct stele_section section;

		stele_descriptor_section(d, i, &section);
		if (section.type != STELE_BLOCK_TREE)
			ret = check_section(t, &section);
	}
	return ret;
}

static int check_levels(struct tree *t)
{
	int ret = stele_check_window_open(t->sc, STELE_BLOCK_TREE,
					  STELE_NO_FIELD, 64, &t->below);

	for (uint32_t level = 1; level < t->shape.level_count && ret == 0;
	     level++) {
		struct node node = {.level = level};

		for (; node.index < t->shape.blocks[level]; node.index++) {
			node.at = t->shape.first[level] + node.index;
			node.entries = entries_of(t->shape.blocks[level - 1],
						  node.index);
			check_node(t, &node);
		}
	}
	stele_check_window_release(&t->below);
	return ret;
}

/* Without samples the root is zero. */
static int check_empty(struct stele_segment_check *sc)
{
	const struct stele_descriptor *d = &sc->segment.descriptor;

	if (!bytes_zero(d->tree_root, STELE_DIGEST_SIZE))
		stele_check_report(sc->check, -EUCLEAN, "descriptor", d->offset,
				   sc->where->descriptor_size,
				   "root without samples");
	return 0;
}

int stele_verify_tree(struct stele_segment_check *sc)
{
	struct tree t = {.sc = sc};
	int ret;

	if (sc->segment.descriptor.sample_count == 0)
		return check_empty(sc);
	stele_descriptor_tree_shape(&sc->segment.descriptor, &t.shape);
	ret = stele_check_window_open(sc, STELE_BLOCK_TREE, STELE_NO_FIELD, 1,
				      &t.above);
	if (ret == 0)
		ret = stele_hash_new(&t.hash);
	if (ret == 0)
		ret = check_leaves(&t);
	if (ret == 0)
		ret = check_levels(&t);
	stele_hash_free(t.hash);
	stele_check_window_release(&t.above);
	return ret == -ENOENT ? 0 : ret;
}
