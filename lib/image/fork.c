/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork.c - see fork.h
 *
 * What the branches share becomes a catalog in memory, made from the first branch's,
 * so that readers of the image need not know about the others.
 */
#include "lib/image/fork.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/crc32c.h"
#include "lib/image/catalog.h"

/* ---- branches -------------------------------------------------------------------- */

static int load_catalog(struct stele_device *dev, struct stele_branch *branch)
{
	const char *why;
	int ret = stele_catalog_load(dev, &branch->sb, &branch->blocks, &branch->catalog, &why);

	if (ret < 0 && (ret == -ENOMEM || !stele_error_of_content(ret)))
		return ret;
	branch->error = ret;
	return 0;
}

static bool is_known(const struct stele_fork *fork,
		     const struct stele_superblock *sb)
{
	for (unsigned int i = 0; i < fork->count; i++)
		if (stele_superblock_same(&fork->branches[i].sb, sb))
			return true;
	return false;
}

static int add_branch(struct stele_device *dev, const struct stele_superblock *sb,
		      unsigned int slot, struct stele_fork *fork)
{
	struct stele_branch *branch = &fork->branches[fork->count];
	uint64_t target_size;
	int ret = stele_device_size(dev, &target_size);

	if (ret < 0 || is_known(fork, sb))
		return ret;
	branch->slot = slot;
	branch->sb = *sb;
	fork->count++;
	if (sb->image_size <= target_size)
		return load_catalog(dev, branch);
	branch->error = -ENODATA;
	return 0;
}

/* Those of newer generations first. */
static int load_branches(struct stele_device *dev,
			 const struct stele_copies *copies, uint64_t generation,
			 struct stele_fork *fork)
{
	int ret = 0;

	for (unsigned int n = 0; n < 2 * STELE_SUPERBLOCKS && ret == 0; n++) {
		const bool newer = n < STELE_SUPERBLOCKS;
		const unsigned int i = n % STELE_SUPERBLOCKS;
		const struct stele_superblock *sb = &copies->copy[i].sb;

		if (copies->copy[i].error == 0 && sb->state == STELE_STATE_READY &&
		    sb->generation >= generation && newer == (sb->generation > generation))
			ret = add_branch(dev, sb, stele_copies_slot(copies, i), fork);
	}
	return ret;
}

const char *stele_fork_fate(const struct stele_fork *fork)
{
	if (fork->doubt)
		return "may have been published, but superblocks and witness are damaged";
	return "was published, but its catalog is damaged";
}

void stele_fork_free(struct stele_fork *fork)
{
	for (unsigned int i = 0; fork && i < fork->count; i++)
		free(fork->branches[i].blocks);
	free(fork);
}

/* ---- what they share ------------------------------------------------------------- */

static bool same_ref(const struct stele_catalog *a, uint32_t i,
		     const struct stele_catalog *b, uint32_t j)
{
	struct stele_catalog_segment s, t;
	struct stele_catalog_ref x, y;

	stele_catalog_ref(a, i, &x);
	stele_catalog_ref(b, j, &y);
	stele_catalog_segment(a, x.segment, &s);
	stele_catalog_segment(b, y.segment, &t);
	return s.id == t.id && s.offset == t.offset && s.size == t.size &&
	       x.deleted_count == y.deleted_count &&
	       !memcmp(x.lists, y.lists, sizeof(x.lists));
}

static bool has_same(const struct stele_catalog *catalog,
		     const struct stele_catalog *of,
		     const struct stele_catalog_snapshot *wanted)
{
	struct stele_catalog_snapshot s;
	bool same = false;

	for (uint32_t i = 0; i < catalog->counts.snapshots && !same; i++) {
		stele_catalog_snapshot(catalog, i, &s);
		same = s.id == wanted->id && s.ref_count == wanted->ref_count &&
		       !strcmp(s.name, wanted->name) &&
		       !memcmp(s.digest, wanted->digest, sizeof(s.digest));
	}
	for (uint32_t i = 0; same && i < s.ref_count; i++)
		same = same_ref(catalog, s.first_ref + i, of,
				wanted->first_ref + i);
	return same;
}

bool stele_fork_common(const struct stele_fork *fork,
		       const struct stele_branch *branch, uint32_t index)
{
	struct stele_catalog_snapshot s;

	stele_catalog_snapshot(&branch->catalog, index, &s);
	for (unsigned int i = 0; i < fork->count; i++) {
		const struct stele_branch *other = &fork->branches[i];

		if (other != branch && !other->error &&
		    (memcmp(other->sb.uuid, branch->sb.uuid,
			    sizeof(branch->sb.uuid)) != 0 ||
		     !has_same(&other->catalog, &branch->catalog, &s)))
			return false;
	}
	return true;
}

bool stele_fork_has(const struct stele_fork *fork, const char *name,
		    const uint8_t *digest)
{
	for (unsigned int i = 0; i < fork->count; i++) {
		const struct stele_branch *branch = &fork->branches[i];
		struct stele_catalog_snapshot s;

		for (uint32_t j = 0;
		     !branch->error && j < branch->catalog.counts.snapshots; j++) {
			stele_catalog_snapshot(&branch->catalog, j, &s);
			if ((!name || !strcmp(s.name, name)) &&
			    (!digest ||
			     !memcmp(s.digest, digest, sizeof(s.digest))))
				return true;
		}
	}
	return false;
}

/* ---- a catalog of it ----------------------------------------------------------------- */

struct reduction {
	const struct stele_catalog *from;
	struct stele_catalog_counts counts;
	bool *kept; /* snapshots, by index */
	bool *used; /* segments, by index */
	char *notes;
	uint8_t *signatures;
	struct stele_disk_block *blocks;
};

static void reduction_release(struct reduction *r)
{
	free(r->kept);
	free(r->used);
	free(r->notes);
	free(r->signatures);
	free(r->blocks);
}

static void count(struct reduction *r, const struct stele_fork *fork,
		  const struct stele_branch *branch)
{
	struct stele_catalog_snapshot s;
	struct stele_catalog_ref ref;

	r->counts = r->from->counts;
	r->counts.snapshots = r->counts.deleted = r->counts.refs = 0;
	r->counts.signatures = r->counts.notes_size = 0;
	for (uint32_t i = 0; i < r->from->counts.snapshots; i++) {
		r->kept[i] = stele_fork_common(fork, branch, i);
		if (!r->kept[i])
			continue;
		stele_catalog_snapshot(r->from, i, &s);
		r->counts.snapshots++;
		r->counts.refs += s.ref_count;
		r->counts.signatures += s.signature_count;
		r->counts.notes_size += s.note_size;
		for (uint32_t j = 0; j < s.ref_count; j++) {
			stele_catalog_ref(r->from, s.first_ref + j, &ref);
			r->used[ref.segment] = true;
		}
	}
}

static void put_snapshots(const struct reduction *r)
{
	const struct stele_catalog_counts *counts = &r->counts;
	uint32_t at = 0, refs = 0, notes = 0, signatures = 0;
	struct stele_catalog_snapshot s;
	struct stele_catalog_ref ref;

	for (uint32_t i = 0; i < r->from->counts.snapshots; i++) {
		if (!r->kept[i])
			continue;
		stele_catalog_snapshot(r->from, i, &s);
		stele_catalog_note(r->from, i, r->notes + notes);
		stele_catalog_signatures(r->from, i,
					 r->signatures + (size_t)signatures *
							 STELE_SIGNATURE_SIZE);
		for (uint32_t j = 0; j < s.ref_count; j++) {
			stele_catalog_ref(r->from, s.first_ref + j, &ref);
			stele_catalog_put_ref(r->blocks, counts, refs + j,
					      &ref);
		}
		s.first_ref = refs;
		s.note_offset = notes;
		s.first_signature = signatures;
		refs += s.ref_count;
		notes += s.note_size;
		signatures += s.signature_count;
		stele_catalog_put_snapshot(r->blocks, counts, at++, &s);
	}
	if (counts->signatures)
		stele_catalog_put_signatures(r->blocks, counts, r->signatures);
	if (counts->notes_size)
		stele_catalog_put_notes(r->blocks, counts, r->notes);
}

static void put_rest(const struct reduction *r)
{
	struct stele_catalog_segment segment;
	struct stele_catalog_free extent;

	for (uint32_t i = 0; i < r->counts.segments; i++) {
		stele_catalog_segment(r->from, i, &segment);
		if (!r->used[i] && !segment.unused_since)
			segment.unused_since = 1;
		stele_catalog_put_segment(r->blocks, &r->counts, i, &segment);
	}
	for (uint32_t i = 0; i < r->counts.free; i++) {
		stele_catalog_free(r->from, i, &extent);
		stele_catalog_put_free(r->blocks, &r->counts, i, &extent);
	}
}

static int reduction_init(struct reduction *r, const struct stele_fork *fork,
			  const struct stele_branch *branch)
{
	const struct stele_catalog_counts *all = &branch->catalog.counts;

	*r = (struct reduction){.from = &branch->catalog};
	r->kept = calloc((size_t)all->snapshots + 1, sizeof(*r->kept));
	r->used = calloc((size_t)all->segments + 1, sizeof(*r->used));
	if (!r->kept || !r->used)
		return -ENOMEM;
	count(r, fork, branch);
	r->notes = malloc((size_t)r->counts.notes_size + 1);
	r->signatures = malloc((size_t)r->counts.signatures *
				       STELE_SIGNATURE_SIZE + 1);
	r->blocks = calloc(stele_stream_blocks(stele_catalog_stream_size(
				   &r->counts)),
			   STELE_BLOCK_SIZE);
	return r->notes && r->signatures && r->blocks ? 0 : -ENOMEM;
}

/* Into the image. */
static int reduce(const struct stele_fork *fork,
		  const struct stele_branch *branch, struct stele_image *image)
{
	struct stele_superblock sb = branch->sb;
	struct reduction r;
	int ret = reduction_init(&r, fork, branch);

	if (ret == 0) {
		stele_catalog_begin(r.blocks, &r.counts,
				    branch->catalog.next_snapshot_id);
		put_snapshots(&r);
		put_rest(&r);
		stele_catalog_end(r.blocks, &r.counts, sb.catalog_offset,
				  sb.generation);
		sb.catalog_size = stele_stream_blocks(stele_catalog_stream_size(
					  &r.counts)) * STELE_BLOCK_SIZE;
		sb.catalog_crc = stele_crc32c(0, r.blocks, sb.catalog_size);
		ret = stele_catalog_decode(r.blocks, sb.catalog_size, &sb,
					   &image->catalog, NULL);
	}
	if (ret == 0) {
		image->catalog_blocks = r.blocks;
		r.blocks = NULL;
	}
	reduction_release(&r);
	return ret;
}

/* ---- all --------------------------------------------------------------------------------- */

int stele_fork_load(struct stele_device *dev, const struct stele_log *log,
		    const struct stele_copies *copies, uint64_t generation,
		    struct stele_image *image)
{
	struct stele_fork *fork = calloc(1, sizeof(*fork));
	unsigned int first = 0;
	int ret = fork ? load_branches(dev, copies, generation, fork) : -ENOMEM;

	while (ret == 0 && first < fork->count &&
	       (fork->branches[first].error ||
		fork->branches[first].sb.generation > generation))
		first++;
	if (ret == 0 && first == fork->count) {
		stele_log_error(log, "and none of their catalogs is usable");
		ret = -ENOTUNIQ;
	}
	if (ret == 0)
		ret = reduce(fork, &fork->branches[first], image);
	if (ret < 0) {
		stele_fork_free(fork);
		return ret;
	}
	image->sb = fork->branches[first].sb;
	image->slot = fork->branches[first].slot;
	image->fork = fork;
	fork->doubt = copies->doubt;
	if (copies->generation_max > generation)
		fork->lost = copies->generation_max;
	return 0;
}

int stele_fork_choose(struct stele_image *image, unsigned int branch)
{
	struct stele_branch *chosen;

	if (!image->fork || branch >= image->fork->count)
		return -ENOENT;
	chosen = &image->fork->branches[branch];
	if (chosen->error)
		return chosen->error;
	free(image->catalog_blocks);
	image->catalog_blocks = chosen->blocks;
	image->catalog = chosen->catalog;
	image->sb = chosen->sb;
	image->slot = chosen->slot;
	chosen->blocks = NULL;
	stele_fork_free(image->fork);
	image->fork = NULL;
	return 0;
}
