/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directories.c - the directories of a snapshot: walk its keys and count; walk again, and put
 *
 * Both walks take the same steps. Directories get their places in the order in which they
 * begin, and their entries theirs in the order in which they end. The first one is the
 * snapshot's own, so the root finds it where the part begins.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/merge.h"
#include "lib/posix/part.h"

#define DIRECTORY_NIDS 2u /* 64 bytes */
#define INODE_SIZE     (DIRECTORY_NIDS * STELE_EROFS_NID_SIZE)

/* Directories that have begun, each in the one before. */
struct walk {
	struct stele_posix_tree *tree;
	const struct stele_posix_snapshot *snapshot;
	struct stele_posix_directory *stack; /* owned */
	uint32_t *ends; /* owned: bytes of the path up to each */
	uint32_t depth, capacity;
	char path[STELE_KEY_SIZE_MAX];
	uint64_t offset;	/* of the part; 0: of the plan, which does not know it */
	uint64_t count;		/* of directories that have begun */
	uint64_t entries_size;	/* of the plan */
	struct stele_posix_area *entries; /* NULL: plan */
	uint8_t *inodes;	/* of the directories */
};

/* ---- directories ------------------------------------------------------------ */

static void leave_out(struct walk *w, const char *name, size_t size)
{
	struct stele_posix_tree *tree = w->tree;
	const size_t most = sizeof(tree->first_left_out) - 1;

	if (!w->entries && !tree->left_out++)
		memcpy(tree->first_left_out, name, size < most ? size : most);
}

/* What is a directory, too. */
static void leave_out_file(struct walk *w, const struct stele_posix_directory *d,
			   const struct stele_posix_entry *entry)
{
	const uint32_t end = w->ends[w->depth];

	memcpy(w->path + end, d->names + entry->name, entry->name_size);
	leave_out(w, w->path, end + entry->name_size);
}

static int put_directory(struct walk *w, const struct stele_posix_directory *d)
{
	struct stele_erofs_inode inode;
	int ret = stele_posix_directory_put(d, stele_posix_block_size(w->tree), w->entries,
					    &inode);

	inode.time = w->snapshot->time;
	if (ret == 0)
		stele_erofs_inode_encode(&inode, d->nid,
					 w->inodes + (d->nid * STELE_EROFS_NID_SIZE - w->offset));
	return ret;
}

/* The last one on the stack is whole. */
static int end_directory(struct walk *w)
{
	struct stele_posix_directory *d = &w->stack[--w->depth];

	for (uint64_t both = stele_posix_directory_end(d); both; both--)
		leave_out_file(w, d, &d->entries[d->count + both - 1]);
	if (w->entries)
		return put_directory(w, d);
	w->entries_size += stele_posix_directory_size(d, stele_posix_block_size(w->tree));
	return 0;
}

static int make_room(struct walk *w)
{
	const uint32_t capacity = w->capacity ? 2 * w->capacity : 16;
	struct stele_posix_directory *stack;
	uint32_t *ends;

	if (w->depth < w->capacity)
		return 0;
	stack = realloc(w->stack, capacity * sizeof(*stack));
	if (!stack)
		return -ENOMEM;
	w->stack = stack;
	ends = realloc(w->ends, capacity * sizeof(*ends));
	if (!ends)
		return -ENOMEM;
	w->ends = ends;
	memset(stack + w->capacity, 0, (capacity - w->capacity) * sizeof(*stack));
	w->capacity = capacity;
	return 0;
}

/* Of the next one that begins. */
static uint64_t next_nid(const struct walk *w)
{
	return w->offset / STELE_EROFS_NID_SIZE + w->count * DIRECTORY_NIDS;
}

/* In the last one on the stack, or the root. `end`: bytes of its path. */
static int begin_directory(struct walk *w, uint32_t end)
{
	const uint64_t parent = w->depth ? w->stack[w->depth - 1].nid : STELE_EROFS_ROOT_NID;
	const uint64_t nid = next_nid(w);
	int ret = make_room(w);

	if (ret < 0)
		return ret;
	w->count++;
	w->ends[w->depth] = end;
	return stele_posix_directory_begin(&w->stack[w->depth++], nid, parent);
}

/* ---- samples ------------------------------------------------------------------ */

/* End and begin directories until the key's is the last one on the stack. */
static int enter(struct walk *w, const struct stele_key *key)
{
	int ret = 0;

	while (ret == 0 && (key->key_size < w->ends[w->depth - 1] ||
			    memcmp(key->key, w->path, w->ends[w->depth - 1])))
		ret = end_directory(w);
	while (ret == 0) {
		const uint32_t begin = w->ends[w->depth - 1];
		const char *name = key->key + begin;
		const char *slash = memchr(name, '/', key->key_size - begin);
		const uint32_t size = slash ? (uint32_t)(slash - name) : 0;

		if (!slash)
			break;
		ret = stele_posix_directory_add(&w->stack[w->depth - 1], name, size,
						STELE_EROFS_DIRECTORY, next_nid(w));
		memcpy(w->path + begin, name, size + 1);
		if (ret == 0)
			ret = begin_directory(w, begin + size + 1);
	}
	return ret;
}

static int take(struct walk *w, const struct stele_segment *segment, uint32_t index,
		const struct stele_key *key)
{
	const struct stele_posix_files *files = &w->tree->files[index];
	uint32_t block, end;
	int ret = stele_posix_files_block(w->tree, segment, key->number, key->size, &block);

	if (ret < 0 && ret != -ERANGE)
		return ret;
	if (ret == -ERANGE || !stele_posix_key_ok(key->key, key->key_size)) {
		leave_out(w, key->key, key->key_size);
		return 0;
	}
	ret = enter(w, key);
	if (ret < 0)
		return ret;
	end = w->ends[w->depth - 1];
	return stele_posix_directory_add(&w->stack[w->depth - 1], key->key + end,
					 key->key_size - end, STELE_EROFS_FILE,
					 files->offset / STELE_EROFS_NID_SIZE +
						 key->number * files->nids);
}

static int take_all(struct walk *w, const struct stele_segment *segments)
{
	const uint32_t count = w->snapshot->ref_count;
	struct stele_keys_merge merge;
	const struct stele_key *key;
	uint32_t from;
	uint64_t id;
	int ret = stele_keys_merge_init(&merge, count);

	for (uint32_t i = 0; ret == 0 && i < count; i++)
		ret = stele_keys_merge_add(&merge, w->tree->image, &segments[i], NULL, 0);
	while (ret == 0 && (ret = stele_keys_merge_next(&merge, &from, &key)) > 0) {
		ret = stele_keys_merge_id(&merge, from, key, &id);
		if (ret == 0)
			ret = take(w, &segments[from], w->snapshot->refs[from].segment, key);
		else if (ret == -ENOENT) /* deleted */
			ret = 0;
	}
	stele_keys_merge_release(&merge);
	return ret;
}

static int load_segments(struct walk *w, struct stele_segment *segments, uint32_t *loaded)
{
	const uint32_t count = w->snapshot->ref_count;
	struct stele_segment_at *at = calloc(count + UINT64_C(1), sizeof(*at));
	int ret;

	if (!at)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		at[i].ref = w->snapshot->refs[i];
		at[i].where = w->tree->segments[at[i].ref.segment];
	}
	ret = stele_segments_load(w->tree->image, at, count, segments, loaded);
	free(at);
	return ret;
}

static int walk_snapshot(struct walk *w)
{
	struct stele_segment *segments = calloc(w->snapshot->ref_count + UINT64_C(1),
						sizeof(*segments));
	uint32_t loaded = 0;
	int ret = segments ? begin_directory(w, 0) : -ENOMEM;

	if (ret == 0)
		ret = load_segments(w, segments, &loaded);
	if (ret == 0)
		ret = take_all(w, segments);
	while (ret == 0 && w->depth)
		ret = end_directory(w);
	while (loaded)
		stele_segment_release(&segments[--loaded]);
	free(segments);
	for (uint32_t i = 0; i < w->capacity; i++)
		stele_posix_directory_release(&w->stack[i]);
	free(w->stack);
	free(w->ends);
	return ret;
}

/* ---- the part -------------------------------------------------------------------- */

/* Whole blocks of inodes, before the entries. */
static uint64_t inodes_size(uint64_t count)
{
	return round_up(count * INODE_SIZE, STELE_BLOCK_SIZE);
}

int stele_posix_directories_plan(struct stele_posix_tree *tree, uint32_t snapshot,
				 struct stele_catalog_segment *out)
{
	struct walk w = {.tree = tree, .snapshot = &tree->snapshots[snapshot]};
	int ret = walk_snapshot(&w);

	out->inode_count = w.count;
	out->size = inodes_size(w.count) + round_up(w.entries_size, STELE_BLOCK_SIZE);
	return ret;
}

int stele_posix_directories_put(struct stele_posix_tree *tree, uint32_t snapshot,
				const struct stele_catalog_segment *part,
				const struct stele_posix_output *out)
{
	const uint64_t size = inodes_size(part->inode_count);
	struct stele_posix_area area = {0};
	struct walk w = {
		.tree = tree,
		.snapshot = &tree->snapshots[snapshot],
		.offset = part->offset,
		.entries = &area,
		.inodes = stele_device_alloc(out->dev, size),
	};
	int ret = w.inodes ? 0 : -ENOMEM;

	if (ret == 0) {
		memset(w.inodes, 0, size);
		ret = stele_posix_area_begin(&area, out, part->offset + size);
	}
	if (ret == 0)
		ret = walk_snapshot(&w);
	if (ret == 0)
		ret = stele_posix_area_flush(&area);
	if (ret == 0)
		ret = stele_posix_put(out, w.inodes, part->offset, size);
	stele_posix_area_release(&area);
	free(w.inodes);
	return ret;
}
