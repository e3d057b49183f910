/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof.c - blocks of digest trees, proven from the root down
 *
 * A small set-associative cache. A block is identified by its place in the tree of a
 * root, not on the device: two segments of a forged image may name the same
 * blocks, and what one root proves says nothing about another. The victim within a set
 * is of the lowest level, then the least recently used: each level is 127 times the one
 * above, so the few upper blocks stay while the many digests pass through.
 */
#include "lib/image/proof.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/digest.h"
#include "lib/image/section.h"

#define PROVER_MEMORY (256u << 10)
#define AHEAD_BLOCKS  64u
#define WAYS	      8u
#define LEVEL_SHIFT   56u /* of a rank; the clock is below */

struct stele_proof_slot {
	uint8_t root[STELE_DIGEST_SIZE]; /* of its tree */
	uint64_t node; /* number of the block in it, from 1; 0: nothing is there */
	uint64_t rank; /* the lowest of a set goes first */
};

/* What is being checked. */
struct climb {
	struct stele_proof *proof;
	const struct stele_segment *segment;
	struct stele_section digests;
	struct stele_tree_shape shape;
	const char *what; /* for the log: it, and which one */
	uint64_t index;
};

static int climb_begin(struct climb *c)
{
	const struct stele_descriptor *d = &c->segment->descriptor;

	if (stele_descriptor_find_section(d, STELE_BLOCK_DIGESTS,
					  STELE_NO_FIELD, &c->digests) < 0)
		return -EUCLEAN;
	stele_descriptor_tree_shape(d, &c->shape);
	return 0;
}

int stele_proof_init(struct stele_proof *p, const struct stele_image *image,
		     size_t memory)
{
	uint64_t sets = memory / (WAYS * STELE_BLOCK_SIZE);
	int ret;

	*p = (struct stele_proof){.image = image, .set_count = sets ? sets : 1};
	ret = stele_hash_new(&p->hash);
	p->slots = calloc(p->set_count * WAYS, sizeof(*p->slots));
	p->blocks = stele_device_alloc(image->dev,
				       p->set_count * WAYS * STELE_BLOCK_SIZE);
	if (!p->slots || !p->blocks)
		ret = -ENOMEM;
	if (ret < 0)
		stele_proof_release(p);
	return ret;
}

int stele_proof_read_ahead(struct stele_proof *p)
{
	p->ahead = stele_device_alloc(p->image->dev, AHEAD_BLOCKS * STELE_BLOCK_SIZE);
	return p->ahead ? 0 : -ENOMEM;
}

void stele_proof_release(struct stele_proof *p)
{
	stele_hash_free(p->hash);
	free(p->slots);
	free(p->blocks);
	free(p->ahead);
	memset(p, 0, sizeof(*p));
}

static void forget(struct stele_proof *p)
{
	memset(p->slots, 0, p->set_count * WAYS * sizeof(*p->slots));
}

static bool is_at(const struct stele_proof_slot *slot, const struct climb *c,
		  uint64_t node)
{
	return slot->node == node + 1 &&
	       !memcmp(slot->root, c->segment->descriptor.tree_root,
		       sizeof(slot->root));
}

/* Where the block is, or where to put it. */
static struct stele_proof_slot *find(const struct climb *c, uint64_t node)
{
	const struct stele_proof *p = c->proof;
	struct stele_proof_slot *set =
		p->slots + WAYS * ((c->segment->descriptor.id + node) %
				   p->set_count);
	struct stele_proof_slot *lowest = set;

	for (unsigned int i = 0; i < WAYS; i++) {
		if (is_at(&set[i], c, node))
			return &set[i];
		if (set[i].rank < lowest->rank)
			lowest = &set[i];
	}
	return lowest;
}

static struct stele_disk_block *memory_of(const struct stele_proof *p,
					  const struct stele_proof_slot *slot)
{
	return &p->blocks[slot - p->slots];
}

static int log_level(const struct climb *c, unsigned int level)
{
	stele_log_error(&c->proof->image->log,
			"digest of %s %" PRIu64
			" of its segment differs at level %u of the tree",
			c->what, c->index, level);
	return -EBADMSG;
}

static int get_entry(const struct climb *c, unsigned int level, uint64_t index,
		     uint8_t digest[32]);

/* Does the hash of a block of this level match the level above, or the root? */
static int check_hash(const struct climb *c, unsigned int level,
		      const struct stele_disk_block *block,
		      const uint8_t wanted[32])
{
	uint8_t digest[STELE_DIGEST_SIZE];

	stele_hash_block(c->proof->hash, block, digest);
	if (level + 1 == c->shape.level_count)
		stele_hash_root(c->proof->hash, &c->segment->descriptor,
				digest, digest);
	return memcmp(digest, wanted, sizeof(digest)) ?
		       log_level(c, level + 1) :
		       0;
}

/*
 * After a block whose neighbour is next, two more; then each time twice as many as before.
 * What cannot be read is left to be read when it is asked for.
 */
static void read_ahead(const struct climb *c, uint64_t offset, uint64_t index)
{
	const uint64_t left = c->digests.size / STELE_BLOCK_SIZE - index;
	struct stele_proof *p = c->proof;
	uint64_t count = 2 * (p->ahead_end - p->ahead_begin) / STELE_BLOCK_SIZE;

	if (!count)
		count = 2;
	if (count > AHEAD_BLOCKS)
		count = AHEAD_BLOCKS;
	if (count > left)
		count = left;
	if (stele_device_read(p->image->dev, p->ahead, offset, count * STELE_BLOCK_SIZE) < 0)
		return;
	p->ahead_begin = offset;
	p->ahead_end = offset + count * STELE_BLOCK_SIZE;
}

/* A block of digests, as it is; false: it was not read ahead. */
static bool take_ahead(const struct climb *c, uint64_t index, struct stele_disk_block *block)
{
	const uint64_t offset = c->segment->descriptor.offset + c->digests.offset +
				index * STELE_BLOCK_SIZE;
	struct stele_proof *p = c->proof;

	if (!p->ahead || index >= c->digests.size / STELE_BLOCK_SIZE)
		return false;
	if (offset == p->ahead_end)
		read_ahead(c, offset, index);
	if (offset < p->ahead_begin || offset >= p->ahead_end) {
		p->ahead_begin = p->ahead_end = offset + STELE_BLOCK_SIZE;
		return false;
	}
	*block = p->ahead[(offset - p->ahead_begin) / STELE_BLOCK_SIZE];
	return true;
}

static int read_proven(const struct climb *c, unsigned int level,
		       uint64_t index, const uint8_t wanted[32],
		       struct stele_disk_block *block)
{
	const struct stele_image *image = c->proof->image;
	struct stele_section section = c->digests;
	int ret = 0;

	if (level)
		ret = stele_descriptor_find_section(&c->segment->descriptor,
						    STELE_BLOCK_TREE,
						    STELE_NO_FIELD, &section);
	else
		index -= stele_descriptor_leaf(&c->segment->descriptor,
					       &section);
	if (ret < 0)
		return -EUCLEAN;
	index += c->shape.first[level];
	ret = level == 0 && take_ahead(c, index, block) ?
		      stele_section_examine(image, c->segment, &section, index, 1, block) :
		      stele_section_fetch(image, c->segment, &section, index, 1, block);
	return ret < 0 ? ret : check_hash(c, level, block, wanted);
}

/* A block of a level (0: of the digests), proven; valid until the next call. */
static int get_block(const struct climb *c, unsigned int level, uint64_t index,
		     const struct stele_disk_block **block)
{
	const uint64_t node =
		level ? c->shape.blocks[0] + c->shape.first[level] + index :
			index;
	struct stele_proof_slot *slot = find(c, node);
	struct stele_proof *p = c->proof;
	uint8_t wanted[STELE_DIGEST_SIZE];
	int ret;

	if (!is_at(slot, c, node)) {
		ret = get_entry(c, level + 1, index, wanted);
		if (ret < 0)
			return ret;
		slot = find(c, node); /* those above may have taken it */
		*slot = (struct stele_proof_slot){0};
		ret = read_proven(c, level, index, wanted, memory_of(p, slot));
		if (ret < 0)
			return ret;
		memcpy(slot->root, c->segment->descriptor.tree_root,
		       sizeof(slot->root));
		slot->node = node + 1;
	}
	slot->rank = (uint64_t)level << LEVEL_SHIFT | ++p->clock;
	*block = memory_of(p, slot);
	return 0;
}

/*
 * The hash of a block of the level below, proven; of the level above all others:
 * the root. Of level 0: the digest of a sample.
 */
static int get_entry(const struct climb *c, unsigned int level, uint64_t index,
		     uint8_t digest[32])
{
	const struct stele_disk_block *block;
	uint64_t at = index / STELE_DIGESTS_PER_BLOCK;
	int ret;

	if (level == c->shape.level_count) {
		memcpy(digest, c->segment->descriptor.tree_root,
		       STELE_DIGEST_SIZE);
		return 0;
	}
	if (level == 0)
		at += stele_descriptor_leaf(&c->segment->descriptor,
					    &c->digests);
	ret = get_block(c, level, at, &block);
	if (ret == 0)
		memcpy(digest, stele_digest_entry(block, index),
		       STELE_DIGEST_SIZE);
	return ret;
}

int stele_proof_check(struct stele_proof *p,
		      const struct stele_segment *segment, uint64_t number,
		      const uint8_t digest[32])
{
	struct climb c = {
		.proof = p,
		.segment = segment,
		.what = "sample",
		.index = number,
	};
	uint8_t wanted[STELE_DIGEST_SIZE];
	int ret;

	if (number >= segment->descriptor.sample_count)
		return -ERANGE;
	ret = climb_begin(&c);
	if (ret == 0)
		ret = get_entry(&c, 0, number, wanted);
	if (ret == 0 && memcmp(digest, wanted, sizeof(wanted)) != 0)
		ret = log_level(&c, 0);
	if (ret < 0) /* what came with it is read again, too */
		p->ahead_begin = p->ahead_end = 0;
	if (ret == -EBADMSG)
		forget(p);
	return ret;
}

/*
 * Is it block `leaf` of level 0 of the segment's tree? See stele_descriptor_leaf().
 * Return: as stele_proof_check().
 */
static int check_block(struct stele_proof *p,
		       const struct stele_segment *segment, uint64_t leaf,
		       const struct stele_disk_block *block)
{
	struct climb c = {
		.proof = p,
		.segment = segment,
		.what = "section block",
		.index = leaf,
	};
	uint8_t wanted[STELE_DIGEST_SIZE];
	int ret = climb_begin(&c);

	if (ret == 0)
		ret = get_entry(&c, 1, leaf, wanted);
	if (ret == 0)
		ret = check_hash(&c, 0, block, wanted);
	if (ret == -EBADMSG)
		forget(p);
	return ret;
}

/* ---- an image whose sections must be proven -------------------------------- */

struct stele_prover {
	struct stele_proof proof; /* under the lock */
	pthread_mutex_t lock;
};

int stele_prover_new(const struct stele_image *image, struct stele_prover **out)
{
	struct stele_prover *prover = calloc(1, sizeof(*prover));
	int ret = prover ? stele_proof_init(&prover->proof, image,
					    PROVER_MEMORY) :
			   -ENOMEM;

	if (ret < 0) {
		free(prover);
		return ret;
	}
	pthread_mutex_init(&prover->lock, NULL);
	*out = prover;
	return 0;
}

void stele_prover_free(struct stele_prover *prover)
{
	if (!prover)
		return;
	stele_proof_release(&prover->proof);
	pthread_mutex_destroy(&prover->lock);
	free(prover);
}

int stele_prover_check(struct stele_prover *prover,
		       const struct stele_segment *segment, uint64_t leaf,
		       const struct stele_disk_block *blocks, uint64_t count)
{
	int ret = 0;

	pthread_mutex_lock(&prover->lock);
	for (uint64_t i = 0; ret == 0 && i < count; i++)
		ret = check_block(&prover->proof, segment, leaf + i,
					      &blocks[i]);
	pthread_mutex_unlock(&prover->lock);
	return ret;
}
