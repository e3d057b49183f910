/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_tree.c - hashes of digests and of the levels above them, to the root
 *
 * Each block is compared with its entry one level up. What a damaged block
 * would have said of others is not known, so nothing is said of those.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/image/check.h"
#include "lib/image/digest.h"

struct tree {
	struct stele_segment_check *sc;
	struct stele_tree_shape shape;
	struct stele_check_window digests; /* level 0 */
	struct stele_check_window below;   /* levels 1 ..., as children */
	struct stele_check_window above;   /* the same, as parents */
	struct stele_hash *hash;
};

static struct stele_check_window *children(struct tree *t, uint32_t level)
{
	return level ? &t->below : &t->digests;
}

static void report(struct tree *t, uint32_t level, uint64_t index,
		   const char *why)
{
	const struct stele_check_window *window = children(t, level);

	stele_check_report(t->sc->check, -EBADMSG,
			   level ? "tree" : "digests",
			   stele_check_window_offset(
				   window, t->shape.first[level] + index),
			   STELE_BLOCK_SIZE, "level %u: %s", level, why);
}

/* What should the hash of this block be? NULL: not known. */
static const uint8_t *wanted(struct tree *t, uint32_t level, uint64_t index)
{
	const struct stele_disk_block *parent;

	if (level + 1 == t->shape.level_count)
		return t->sc->segment.descriptor.tree_root;
	parent = stele_check_window_get(&t->above,
					t->shape.first[level + 1] +
						index / STELE_DIGESTS_PER_BLOCK);
	if (!parent)
		return NULL;
	return stele_digest_entry(parent, index);
}

/* `entries`: how many all blocks of this level hold together. */
static void check_node(struct tree *t, uint32_t level, uint64_t index,
		       uint64_t entries)
{
	const struct stele_disk_block *block = stele_check_window_get(
		children(t, level), t->shape.first[level] + index);
	uint64_t left = entries - index * STELE_DIGESTS_PER_BLOCK;
	uint8_t digest[STELE_DIGEST_SIZE];
	const uint8_t *want;

	if (!block)
		return;
	if (left < STELE_DIGESTS_PER_BLOCK &&
	    !stele_stream_zero_from(block, 1, left * STELE_DIGEST_SIZE))
		report(t, level, index, "bytes behind the entries not zero");
	want = wanted(t, level, index);
	if (!want)
		return;
	stele_hash_block(t->hash, block, digest);
	if (memcmp(digest, want, sizeof(digest)) != 0)
		report(t, level, index,
		       level + 1 == t->shape.level_count ?
			       "hash is not the descriptor's root" :
			       "hash is not what the level above says");
}

static void check_levels(struct tree *t)
{
	uint64_t entries = t->sc->segment.descriptor.sample_count;

	for (uint32_t level = 0; level < t->shape.level_count; level++) {
		for (uint64_t i = 0; i < t->shape.blocks[level]; i++)
			check_node(t, level, i, entries);
		entries = t->shape.blocks[level];
	}
}

static int open_tree(struct tree *t)
{
	int ret;

	ret = stele_check_window_open(t->sc, STELE_BLOCK_DIGESTS,
				      STELE_NO_FIELD, 2 * STELE_DIGESTS_PER_BLOCK,
				      &t->digests);
	if (ret == 0 && t->shape.tree_blocks)
		ret = stele_check_window_open(t->sc, STELE_BLOCK_TREE,
					      STELE_NO_FIELD, 64, &t->below);
	if (ret == 0 && t->shape.tree_blocks)
		ret = stele_check_window_open(t->sc, STELE_BLOCK_TREE,
					      STELE_NO_FIELD, 1, &t->above);
	if (ret == 0)
		ret = stele_hash_new(&t->hash);
	return ret;
}

/* Without samples the root is zero. */
static int check_empty(struct stele_segment_check *sc)
{
	const struct stele_descriptor *d = &sc->segment.descriptor;

	if (stele_check_zeros(d->tree_root, STELE_DIGEST_SIZE) !=
	    STELE_DIGEST_SIZE)
		stele_check_report(sc->check, -EUCLEAN, "descriptor", d->offset,
				   sc->where->descriptor_size,
				   "a root without samples");
	return 0;
}

int stele_verify_tree(struct stele_segment_check *sc)
{
	struct tree t = {.sc = sc};
	int ret;

	if (sc->segment.descriptor.sample_count == 0)
		return check_empty(sc);
	stele_tree_shape(sc->segment.descriptor.sample_count, &t.shape);
	ret = open_tree(&t);
	if (ret == 0)
		check_levels(&t);
	stele_hash_free(t.hash);
	stele_check_window_release(&t.digests);
	stele_check_window_release(&t.below);
	stele_check_window_release(&t.above);
	return ret == -ENOENT ? 0 : ret;
}
