/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.c - walk, count, place; walk again, and write
 *
 * Both walks take the same steps. Directories get their places in the order in which they
 * begin, and their entries theirs in the order in which they end.
 */
#include "lib/posix/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/block.h"
#include "lib/image/merge.h"
#include "lib/image/snapshot.h"
#include "lib/posix/directory.h"

#define BUFFER_SIZE    (UINT32_C(1) << 20)
#define COMPACT_MAX    UINT64_C(0xffffffff) /* bytes of the file of a compact inode */
#define LINK_BITS      16		    /* of what is known of a sample; its size above */
#define DIRECTORY_NIDS 2u		    /* 64 bytes */
#define USERS_NAMED    3u		    /* snapshots, in a message */
#define USERS_SIZE     (USERS_NAMED * (STELE_NAME_SIZE_MAX + 8) + 32)

/* The files of a segment. */
struct stele_posix_part {
	uint64_t inodes;   /* where they begin in the tree */
	uint32_t nids;	   /* that each takes */
	bool wanted;
	uint64_t *samples; /* owned, by number: size and count of links */
};

/* A snapshot's directories that have begun, each in the one before. */
struct walk {
	struct stele_posix_tree *tree;
	struct stele_posix_directory *stack; /* owned */
	uint32_t *ends; /* owned: bytes of the path up to each */
	uint32_t depth, capacity;
	char path[STELE_KEY_SIZE_MAX];
	int64_t time;
	struct writer *writer; /* NULL: count */
};

/* Fills an area of the tree from its beginning, in large pieces. */
struct area {
	struct writer *writer;
	uint8_t *buffer; /* owned */
	uint64_t at;	 /* on the device, of what is in the buffer */
	uint32_t filled;
};

struct writer {
	struct stele_device *dev;
	uint64_t offset; /* of the tree */
	uint64_t *differs; /* NULL: write; else compare, and say where it differs */
	struct area entries;
	uint8_t *directories; /* owned: their inodes */
	uint64_t inode_count;
};

static uint32_t block_size(const struct stele_posix_tree *tree)
{
	return UINT32_C(1) << tree->block_bits;
}

/* ---- areas ----------------------------------------------------------------- */

/* What is there must be `data`, of whole blocks. */
static int compare(struct writer *writer, const uint8_t *data, uint64_t at, size_t size)
{
	uint8_t *seen = stele_device_alloc(writer->dev, size);
	int ret = seen ? stele_device_read(writer->dev, seen, at, size) : -ENOMEM;

	for (size_t i = 0; ret == 0 && i < size; i += STELE_BLOCK_SIZE) {
		if (!memcmp(seen + i, data + i, STELE_BLOCK_SIZE))
			continue;
		*writer->differs = at + i;
		ret = -EUCLEAN;
	}
	free(seen);
	return ret;
}

static int put(struct writer *writer, const uint8_t *data, uint64_t at, size_t size)
{
	if (!size)
		return 0;
	return writer->differs ? compare(writer, data, at, size) :
				 stele_device_write(writer->dev, data, at, size);
}

static int area_begin(struct area *area, struct writer *writer, uint64_t at)
{
	*area = (struct area){.writer = writer, .at = at};
	area->buffer = stele_device_alloc(writer->dev, BUFFER_SIZE);
	if (!area->buffer)
		return -ENOMEM;
	memset(area->buffer, 0, BUFFER_SIZE);
	return 0;
}

/* Whole blocks of what there is. */
static int area_flush(struct area *area)
{
	const uint32_t size = (uint32_t)round_up(area->filled, STELE_BLOCK_SIZE);
	int ret = put(area->writer, area->buffer, area->at, size);

	memset(area->buffer, 0, size);
	area->at += size;
	area->filled = 0;
	return ret;
}

/* The next `size` bytes, a divisor of the buffer's, zeroed. NULL: *ret says why. */
static uint8_t *area_take(struct area *area, uint32_t size, int *ret)
{
	uint8_t *bytes;

	*ret = area->filled == BUFFER_SIZE ? area_flush(area) : 0;
	if (*ret < 0)
		return NULL;
	bytes = area->buffer + area->filled;
	area->filled += size;
	return bytes;
}

/* ---- directories ------------------------------------------------------------ */

static uint64_t nid_of(const struct walk *w, const struct stele_posix_entry *e)
{
	const struct stele_posix_tree *tree = w->tree;
	const struct stele_posix_part *part;

	if (e->segment == STELE_POSIX_DIRECTORY && e->number == STELE_POSIX_ROOT)
		return STELE_EROFS_ROOT_NID;
	if (e->segment == STELE_POSIX_DIRECTORY)
		return (w->writer->offset + tree->directories) / STELE_EROFS_NID_SIZE +
		       e->number * DIRECTORY_NIDS;
	part = &tree->parts[e->segment];
	return (w->writer->offset + part->inodes) / STELE_EROFS_NID_SIZE +
	       e->number * part->nids;
}

/* And count the links of what it leads to: of directories, `links`. */
static void put_block(struct walk *w, const struct stele_posix_directory *d,
		      uint64_t first, uint32_t count, uint8_t *block, uint32_t *links)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct stele_posix_entry *e = &d->entries[first + i];
		const bool is_file = e->segment != STELE_POSIX_DIRECTORY;
		const struct stele_erofs_dirent entry = {
			.nid = nid_of(w, e),
			.type = is_file ? STELE_EROFS_FILE : STELE_EROFS_DIRECTORY,
			.name = d->names + e->name,
			.name_size = e->name_size,
		};

		stele_erofs_dirent_put(block, i, count, at, &entry);
		at += e->name_size;
		if (is_file)
			w->tree->parts[e->segment].samples[e->number]++;
		else
			++*links;
	}
}

/* `inode`: of a directory that begins where the entries so far end. */
static int put_entries(struct walk *w, const struct stele_posix_directory *d,
		       struct stele_erofs_inode *inode)
{
	const struct area *area = &w->writer->entries;
	const uint32_t size = block_size(w->tree);
	uint32_t count, used = 0;
	int ret = 0;

	*inode = (struct stele_erofs_inode){
		.type = STELE_EROFS_DIRECTORY,
		.extended = true,
		.block = (uint32_t)((area->at + area->filled) / size),
		.time = w->time,
	};
	for (uint64_t i = 0; i < d->count; i += count) {
		uint8_t *block = area_take(&w->writer->entries, size, &ret);

		if (!block)
			return ret;
		count = stele_posix_directory_fit(d, i, size, &used);
		put_block(w, d, i, count, block, &inode->link_count);
		inode->size += i + count < d->count ? size : used;
	}
	return 0;
}

static void count_entries(struct stele_posix_tree *tree,
			  const struct stele_posix_directory *d)
{
	uint32_t used;

	for (uint64_t i = 0; i < d->count;) {
		i += stele_posix_directory_fit(d, i, block_size(tree), &used);
		tree->entries_size += block_size(tree);
	}
}

static void leave_out(struct walk *w, const char *name, size_t size)
{
	struct stele_posix_tree *tree = w->tree;
	const size_t most = sizeof(tree->first_left_out) - 1;

	if (w->writer)
		return;
	if (!tree->left_out++)
		memcpy(tree->first_left_out, name, size < most ? size : most);
	tree->file_count--;
}

/* What is a directory, too. */
static void leave_out_file(struct walk *w, const struct stele_posix_directory *d,
			   const struct stele_posix_entry *entry)
{
	const uint32_t end = w->ends[w->depth];

	memcpy(w->path + end, d->names + entry->name, entry->name_size);
	leave_out(w, w->path, end + entry->name_size);
}

/* The last one on the stack is whole. */
static int end_directory(struct walk *w)
{
	struct stele_posix_directory *d = &w->stack[--w->depth];
	struct stele_erofs_inode inode;
	uint64_t place = d->place * DIRECTORY_NIDS * STELE_EROFS_NID_SIZE;
	int ret;

	for (uint64_t both = stele_posix_directory_end(d); both; both--)
		leave_out_file(w, d, &d->entries[d->count + both - 1]);
	if (!w->writer) {
		count_entries(w->tree, d);
		return 0;
	}
	ret = put_entries(w, d, &inode);
	if (ret == 0)
		stele_erofs_inode_encode(&inode,
					 (w->writer->offset + w->tree->directories + place) /
						 STELE_EROFS_NID_SIZE,
					 w->writer->directories + place);
	return ret;
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

/* In the last one on the stack, or the root. `end`: bytes of its path. */
static int begin_directory(struct walk *w, uint64_t *place, uint32_t end)
{
	uint64_t parent = w->depth ? w->stack[w->depth - 1].place : STELE_POSIX_ROOT;
	int ret = make_room(w);

	if (ret < 0)
		return ret;
	w->ends[w->depth] = end;
	return stele_posix_directory_begin(&w->stack[w->depth++], (*place)++, parent);
}

/* ---- samples ------------------------------------------------------------------ */

/* Its first block. 0; -ERANGE (beyond what EROFS reaches); -EUCLEAN (logged). */
static int find_block(const struct stele_posix_tree *tree,
		      const struct stele_segment *segment, uint64_t number, uint64_t size,
		      uint32_t *block)
{
	uint64_t offset, slot_size;

	stele_segment_slot(segment, number, &offset, &slot_size);
	if (size > slot_size) {
		stele_log_error(&tree->image->log,
				"segment %" PRIx64 ": sample %" PRIu64
				" is larger than its slot",
				segment->descriptor.id, number);
		return -EUCLEAN;
	}
	if ((offset + slot_size) >> tree->block_bits > STELE_EROFS_BLOCK_MAX)
		return -ERANGE;
	*block = (uint32_t)(offset >> tree->block_bits);
	return 0;
}

/* End and begin directories until the key's is the last one on the stack. */
static int enter(struct walk *w, const struct stele_key *key, uint64_t *place)
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
						STELE_POSIX_DIRECTORY, *place);
		memcpy(w->path + begin, name, size + 1);
		if (ret == 0)
			ret = begin_directory(w, place, begin + size + 1);
	}
	return ret;
}

static int take(struct walk *w, const struct stele_segment *segment, uint32_t index,
		const struct stele_key *key, uint64_t *place)
{
	uint64_t *samples = w->tree->parts[index].samples;
	uint32_t block, end;
	int ret = find_block(w->tree, segment, key->number, key->size, &block);

	if (ret < 0 && ret != -ERANGE)
		return ret;
	if (!w->writer)
		w->tree->file_count++;
	if (ret == -ERANGE || !stele_posix_key_ok(key->key, key->key_size)) {
		leave_out(w, key->key, key->key_size);
		return 0;
	}
	if (w->writer)
		samples[key->number] = key->size << LINK_BITS |
				       (samples[key->number] & ((1u << LINK_BITS) - 1));
	ret = enter(w, key, place);
	if (ret < 0)
		return ret;
	end = w->ends[w->depth - 1];
	return stele_posix_directory_add(&w->stack[w->depth - 1], key->key + end,
					 key->key_size - end, index, key->number);
}

static int take_all(struct walk *w, const struct stele_posix_snapshot *snapshot,
		    const struct stele_segment *segments, uint64_t *place)
{
	struct stele_keys_merge merge;
	const struct stele_key *key;
	uint32_t from;
	uint64_t id;
	int ret = stele_keys_merge_init(&merge, snapshot->ref_count);

	for (uint32_t i = 0; ret == 0 && i < snapshot->ref_count; i++)
		ret = stele_keys_merge_add(&merge, w->tree->image, &segments[i], NULL, 0);
	while (ret == 0 && (ret = stele_keys_merge_next(&merge, &from, &key)) > 0) {
		ret = stele_keys_merge_id(&merge, from, key, &id);
		if (ret == 0)
			ret = take(w, &segments[from], snapshot->refs[from].segment, key,
				   place);
		else if (ret == -ENOENT) /* deleted */
			ret = 0;
	}
	stele_keys_merge_release(&merge);
	return ret;
}

static int load_segments(struct walk *w, const struct stele_posix_snapshot *snapshot,
			 struct stele_segment *segments, uint32_t *loaded)
{
	const uint32_t count = snapshot->ref_count;
	struct stele_segment_at *at = calloc(count + UINT64_C(1), sizeof(*at));
	int ret;

	if (!at)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		at[i].ref = snapshot->refs[i];
		at[i].where = w->tree->segments[at[i].ref.segment];
	}
	ret = stele_segments_load(w->tree->image, at, count, segments, loaded);
	free(at);
	return ret;
}

static int walk_snapshot(struct walk *w, const struct stele_posix_snapshot *snapshot,
			 uint64_t *place)
{
	struct stele_segment *segments = calloc(snapshot->ref_count + UINT64_C(1),
						sizeof(*segments));
	uint32_t loaded = 0;
	int ret = segments ? begin_directory(w, place, 0) : -ENOMEM;

	w->time = snapshot->time;
	if (ret == 0)
		ret = load_segments(w, snapshot, segments, &loaded);
	if (ret == 0)
		ret = take_all(w, snapshot, segments, place);
	while (ret == 0 && w->depth)
		ret = end_directory(w);
	while (loaded)
		stele_segment_release(&segments[--loaded]);
	free(segments);
	return ret;
}

/* The root's entries; its inode is the front's. */
static int end_root(struct walk *w, const uint64_t *places, struct stele_erofs_inode *inode)
{
	const struct stele_posix_tree *tree = w->tree;
	struct stele_posix_directory root = {0};
	int ret = stele_posix_directory_begin(&root, STELE_POSIX_ROOT, STELE_POSIX_ROOT);

	w->time = 0;
	for (uint32_t i = 0; ret == 0 && i < tree->snapshot_count; i++) {
		const struct stele_posix_snapshot *s = &tree->snapshots[i];

		if (s->time > w->time)
			w->time = s->time;
		ret = stele_posix_directory_add(&root, s->name, (uint32_t)strlen(s->name),
						STELE_POSIX_DIRECTORY, places[i]);
	}
	stele_posix_directory_end(&root);
	if (ret == 0 && w->writer)
		ret = put_entries(w, &root, inode);
	else if (ret == 0)
		count_entries(w->tree, &root);
	stele_posix_directory_release(&root);
	return ret;
}

/* `root` is set when writing. */
static int walk_all(struct stele_posix_tree *tree, struct writer *writer,
		    struct stele_erofs_inode *root)
{
	struct walk w = {.tree = tree, .writer = writer};
	uint64_t *places = calloc(tree->snapshot_count + UINT64_C(1), sizeof(*places));
	uint64_t place = 0;
	int ret = places ? 0 : -ENOMEM;

	for (uint32_t i = 0; ret == 0 && i < tree->snapshot_count; i++) {
		places[i] = place;
		ret = walk_snapshot(&w, &tree->snapshots[i], &place);
	}
	if (ret == 0)
		ret = end_root(&w, places, root);
	tree->directory_count = place;
	for (uint32_t i = 0; i < w.capacity; i++)
		stele_posix_directory_release(&w.stack[i]);
	free(w.stack);
	free(w.ends);
	free(places);
	return ret;
}

/* ---- plan --------------------------------------------------------------------- */

uint32_t stele_posix_block_min(const struct stele_device *dev)
{
	const uint32_t block = dev->limits.logical_block;

	return dev->resizable || block < STELE_POSIX_GRANULE_MIN ? STELE_POSIX_GRANULE_MIN :
								   block;
}

int stele_posix_check_granule(const struct stele_descriptor *d, uint32_t block_min,
			      const char *users, const struct stele_log *log)
{
	if (d->granule >= block_min)
		return 0;
	stele_log_error(log,
			"segment %" PRIx64 "%s has a granule of %u: only samples at multiples "
			"of %u can be files%s",
			d->id, users, d->granule, block_min,
			block_min > STELE_POSIX_GRANULE_MIN ? " on this device" : "");
	return -EOPNOTSUPP;
}

static bool has_segment(const struct stele_posix_snapshot *s, uint32_t segment)
{
	for (uint32_t i = 0; i < s->ref_count; i++)
		if (s->refs[i].segment == segment)
			return true;
	return false;
}

/* " of 'v1', 'v2'": some of the snapshots that have it. */
static void name_users(const struct stele_posix_tree *tree, uint32_t segment, char *text,
		       size_t size)
{
	uint32_t count = 0;
	size_t at = 0;

	for (uint32_t i = 0; i < tree->snapshot_count; i++) {
		if (!has_segment(&tree->snapshots[i], segment) || ++count > USERS_NAMED)
			continue;
		at += (size_t)snprintf(text + at, size - at, "%s'%s'", count > 1 ? ", " : " of ",
				       tree->snapshots[i].name);
	}
	if (count > USERS_NAMED)
		snprintf(text + at, size - at, " and %u more", count - USERS_NAMED);
}

static int look_at_segment(struct stele_posix_tree *tree, uint32_t index)
{
	struct stele_posix_part *part = &tree->parts[index];
	struct stele_segment segment;
	char users[USERS_SIZE] = "";
	int ret = stele_segment_load_bare(tree->image, &tree->segments[index], &segment);

	if (ret < 0)
		return ret;
	if (segment.descriptor.granule < tree->block_min)
		name_users(tree, index, users, sizeof(users));
	ret = stele_posix_check_granule(&segment.descriptor, tree->block_min, users,
					&tree->image->log);
	if (ret == 0 && segment.descriptor.granule < block_size(tree))
		tree->block_bits = STELE_EROFS_BITS_MIN;
	part->nids = 1;
	for (uint32_t i = 0; i < segment.descriptor.run_count; i++)
		if (segment.runs[i].slot_size > COMPACT_MAX)
			part->nids = 2;
	stele_segment_release(&segment);
	return ret;
}

static int look_at_segments(struct stele_posix_tree *tree)
{
	int ret = 0;

	tree->block_bits = STELE_EROFS_BITS_MAX;
	for (uint32_t i = 0; i < tree->snapshot_count; i++)
		for (uint32_t j = 0; j < tree->snapshots[i].ref_count; j++)
			tree->parts[tree->snapshots[i].refs[j].segment].wanted = true;
	for (uint32_t i = 0; ret == 0 && i < tree->segment_count; i++)
		if (tree->parts[i].wanted)
			ret = look_at_segment(tree, i);
	return ret;
}

static int place_all(struct stele_posix_tree *tree)
{
	uint64_t at = STELE_BLOCK_SIZE; /* behind the front */

	for (uint32_t i = 0; i < tree->segment_count; i++) {
		struct stele_posix_part *part = &tree->parts[i];

		if (!part->wanted)
			continue;
		part->inodes = at;
		at = round_up(at + tree->segments[i].sample_count * part->nids *
					   STELE_EROFS_NID_SIZE,
			      STELE_BLOCK_SIZE);
	}
	tree->directories = at;
	at += tree->directory_count * DIRECTORY_NIDS * STELE_EROFS_NID_SIZE;
	tree->entries = round_up(at, STELE_BLOCK_SIZE);
	tree->size = round_up(tree->entries + tree->entries_size, STELE_BLOCK_SIZE);
	return 0;
}

int stele_posix_tree_plan(struct stele_posix_tree *tree)
{
	int ret = 0;

	tree->parts = calloc(tree->segment_count + UINT64_C(1), sizeof(*tree->parts));
	if (!tree->parts)
		ret = -ENOMEM;
	if (ret == 0)
		ret = look_at_segments(tree);
	if (ret == 0)
		ret = walk_all(tree, NULL, NULL);
	return ret < 0 ? ret : place_all(tree);
}

void stele_posix_tree_release(struct stele_posix_tree *tree)
{
	for (uint32_t i = 0; tree->parts && i < tree->segment_count; i++)
		free(tree->parts[i].samples);
	free(tree->parts);
	tree->parts = NULL;
}

/* ---- write ---------------------------------------------------------------------- */

static int put_file(const struct stele_posix_tree *tree, const struct stele_segment *segment,
		    const struct stele_posix_part *part, uint64_t number, uint64_t nid,
		    uint8_t *out)
{
	struct stele_erofs_inode inode = {
		.type = STELE_EROFS_FILE,
		.extended = part->nids > 1,
		.link_count = part->samples[number] & ((1u << LINK_BITS) - 1),
		.size = part->samples[number] >> LINK_BITS,
		.time = tree->image->sb.create_time,
	};
	int ret;

	if (!inode.link_count)
		return 0;
	ret = find_block(tree, segment, number, inode.size, &inode.block);
	stele_erofs_inode_encode(&inode, nid, out);
	return ret < 0 ? ret : 1;
}

/* The inodes of a segment's files; those without a name stay zero. */
static int put_files(struct stele_posix_tree *tree, struct writer *writer, uint32_t index)
{
	const struct stele_posix_part *part = &tree->parts[index];
	const uint32_t size = part->nids * STELE_EROFS_NID_SIZE;
	const uint64_t offset = writer->offset + part->inodes;
	struct stele_segment segment;
	struct area area = {0};
	int ret = stele_segment_load_bare(tree->image, &tree->segments[index], &segment);

	if (ret < 0)
		return ret;
	ret = area_begin(&area, writer, offset);
	for (uint64_t i = 0; ret >= 0 && i < tree->segments[index].sample_count; i++) {
		uint8_t *out = area_take(&area, size, &ret);

		if (out)
			ret = put_file(tree, &segment, part, i,
				       offset / STELE_EROFS_NID_SIZE + i * part->nids, out);
		if (ret > 0)
			writer->inode_count++;
	}
	if (ret >= 0)
		ret = area_flush(&area);
	free(area.buffer);
	stele_segment_release(&segment);
	return ret;
}

/* The blocks that anything of it may have: of nothing that may change without it. */
static uint32_t count_blocks(const struct stele_posix_tree *tree, const struct writer *writer)
{
	uint64_t end = writer->offset + tree->size;

	for (uint32_t i = 0; i < tree->segment_count; i++) {
		const struct stele_catalog_segment *s = &tree->segments[i];

		if (tree->parts[i].wanted && s->offset + s->size > end)
			end = s->offset + s->size;
	}
	end >>= tree->block_bits;
	return end < UINT32_MAX ? (uint32_t)end : UINT32_MAX;
}

static int put_front(const struct stele_posix_tree *tree, struct writer *writer,
		     const struct stele_erofs_inode *root)
{
	struct stele_erofs_super super = {
		.block_bits = tree->block_bits,
		.block_count = count_blocks(tree, writer),
		.inode_count = writer->inode_count + tree->directory_count + 1,
		.time = tree->image->sb.create_time,
	};
	void *block = stele_device_alloc(tree->image->dev, STELE_BLOCK_SIZE);
	int ret;

	if (!block)
		return -ENOMEM;
	memset(block, 0, STELE_BLOCK_SIZE);
	memcpy(super.uuid, tree->image->sb.uuid, sizeof(super.uuid));
	memcpy(super.volume, tree->image->sb.label, STELE_EROFS_VOLUME_SIZE);
	stele_erofs_front_encode(&super, root, block);
	ret = put(writer, block, writer->offset, STELE_BLOCK_SIZE);
	free(block);
	return ret;
}

static int alloc_writer(struct stele_posix_tree *tree, struct writer *writer)
{
	const uint64_t size = tree->entries - tree->directories;

	for (uint32_t i = 0; i < tree->segment_count; i++) {
		struct stele_posix_part *part = &tree->parts[i];

		if (!part->wanted)
			continue;
		part->samples = calloc(tree->segments[i].sample_count + 1,
				       sizeof(*part->samples));
		if (!part->samples)
			return -ENOMEM;
	}
	writer->directories = stele_device_alloc(tree->image->dev,
						 size ? size : STELE_BLOCK_SIZE);
	if (!writer->directories)
		return -ENOMEM;
	memset(writer->directories, 0, size);
	return area_begin(&writer->entries, writer, writer->offset + tree->entries);
}

static int write_all(struct stele_posix_tree *tree, struct writer *writer)
{
	struct stele_erofs_inode root;
	const uint64_t size = tree->entries - tree->directories;
	int ret = walk_all(tree, writer, &root);

	if (ret == 0)
		ret = area_flush(&writer->entries);
	if (ret == 0)
		ret = put(writer, writer->directories, writer->offset + tree->directories,
			  size);
	for (uint32_t i = 0; ret == 0 && i < tree->segment_count; i++)
		if (tree->parts[i].wanted)
			ret = put_files(tree, writer, i);
	return ret < 0 ? ret : put_front(tree, writer, &root);
}

static int run(struct stele_posix_tree *tree, uint64_t offset, uint64_t *differs)
{
	struct writer writer = {
		.dev = tree->image->dev, .offset = offset, .differs = differs,
	};
	int ret;

	if ((offset + tree->size) >> tree->block_bits > STELE_EROFS_BLOCK_MAX) {
		stele_log_error(&tree->image->log,
				"the tree of files would lie beyond 2^32 blocks of %u bytes",
				block_size(tree));
		return -EFBIG;
	}
	ret = alloc_writer(tree, &writer);
	if (ret == 0)
		ret = write_all(tree, &writer);
	free(writer.entries.buffer);
	free(writer.directories);
	return ret;
}

int stele_posix_tree_write(struct stele_posix_tree *tree, uint64_t offset)
{
	return run(tree, offset, NULL);
}

int stele_posix_tree_check(struct stele_posix_tree *tree, uint64_t offset, uint64_t *differs)
{
	*differs = offset;
	return run(tree, offset, differs);
}
