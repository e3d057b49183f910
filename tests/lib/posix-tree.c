/* SPDX-License-Identifier: Apache-2.0 */
/*
 * posix-tree.c - which samples become files, that damage of a tree is found, and that parts stay
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/posix/front.h"
#include "lib/posix/shown.h"
#include "lib/posix/tree.h"
#include "lib/txn/posix.h"
#include "tests/device/fault.h"
#include "tests/device/memory.h"
#include "tests/fixture/edit.h"
#include "tests/tap.h"

#define IMAGE_SIZE (UINT64_C(4) << 20)

static const char long_key[] =
	"dir/"
	"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
	"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
	"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn";

/* Seven of them cannot be files: the two of a and b/c, and those of bad components. */
static const char *const keys[] = {
	"a", "a/b", "a-b", "b/c", "b/c/d", "b/e", "x//y", "/z", "dir/./q", "../up", long_key,
	"dir/ok", "-minus", "...",
};
#define COUNT	 (sizeof(keys) / sizeof(keys[0]))
#define LEFT_OUT 7u

static void make(struct test_edit *t, struct stele_device *dev, bool posix)
{
	struct test_sample samples[COUNT] = {0};
	uint64_t id;

	for (size_t i = 0; i < COUNT; i++)
		samples[i] = (struct test_sample){
			.key = keys[i], .data = (const uint8_t *)keys[i], .size = 1,
		};
	if (test_edit_create(t, dev, IMAGE_SIZE) < 0)
		bail("begin failed");
	t->granule = posix ? 512 : 64;
	if (test_edit_segment(t, samples, COUNT, &id) < 0 ||
	    test_edit_snapshot(t, "v1", &id, 1, NULL, 0) < 0)
		bail("a segment failed");
}

/* Of the only snapshot. */
static int plan_tree(struct stele_image *image, struct stele_posix_tree *tree)
{
	static struct stele_catalog_segment segments[2];
	static struct stele_catalog_ref ref;
	static struct stele_posix_snapshot snapshot = {
		.name = "v1", .id = 1, .refs = &ref, .ref_count = 1,
	};

	stele_catalog_segment(&image->catalog, 0, &segments[0]);
	stele_catalog_ref(&image->catalog, 0, &ref);
	*tree = (struct stele_posix_tree){
		.block_min = STELE_POSIX_GRANULE_MIN,
		.image = image, .segments = segments, .segment_count = 1,
		.snapshots = &snapshot, .snapshot_count = 1,
	};
	return stele_posix_tree_plan(tree);
}

static void test_names(struct stele_image *image)
{
	struct stele_catalog_segment part;
	struct stele_posix_tree tree;

	is_int(0, plan_tree(image, &tree), "planned");
	is_uint(9, tree.block_bits, "blocks of 512");
	is_int(0, stele_posix_part_plan(&tree, STELE_PART_FILES, 0, &part), "files");
	is_uint(COUNT, part.inode_count, "an inode for each sample, whatever its key");
	is_uint(4096, part.size, "in a block");
	is_int(0, stele_posix_part_plan(&tree, STELE_PART_DIRECTORIES, 0, &part), "directories");
	is_uint(5, part.inode_count, "v1, a, b, b/c, dir");
	is_uint(LEFT_OUT, tree.left_out, "so many samples cannot be files");
	is_string("../up", tree.first_left_out, "the first one is told");
	stele_posix_tree_release(&tree);
}

/* Of all parts in use, each 97th byte. */
static unsigned int count_missed(struct stele_image *image, uint8_t *bytes, unsigned int *parts)
{
	struct stele_catalog_segment part;
	unsigned int missed = 0;
	uint64_t differs;

	for (uint32_t i = 0; i < image->catalog.counts.segments; i++) {
		stele_catalog_segment(&image->catalog, i, &part);
		if (!stele_posix_is_part(&part))
			continue;
		++*parts;
		for (uint64_t at = part.offset; at < part.offset + part.size; at += 97) {
			bytes[at] ^= 4;
			missed += stele_posix_check(image, &differs) != -EUCLEAN ||
				  differs != round_down(at, 4096);
			bytes[at] ^= 4;
		}
	}
	return missed;
}

/* And of block 0. */
static void test_damage(struct test_edit *t, struct stele_device *dev)
{
	struct stele_disk_erofs_front front;
	struct stele_catalog_segment root;
	uint8_t *bytes = stele_device_memory(dev);
	unsigned int parts = 0;
	uint64_t differs;

	ok(stele_posix_find(&t->image, &root), "there is a tree");
	is_int(0, stele_posix_check(&t->image, &differs), "it is what the samples make");
	is_uint(0, count_missed(&t->image, bytes, &parts), "each byte that differs is found");
	is_uint(3, parts, "files, directories, root");
	memset(bytes + STELE_EROFS_OFFSET, 0, STELE_EROFS_FRONT_SIZE);
	bytes[1023] = bytes[1536] = 0x5a;
	is_int(0, stele_txn_show_tree(&t->edit), "block 0 is put right");
	is_int(0, stele_front_read(dev, &front), "and read");
	ok(stele_front_is_own(&front, t->image.sb.uuid), "it is the image's");
	ok(bytes[1023] == 0x5a && bytes[1536] == 0x5a, "the rest of it was left alone");
}

static void test_refused(void)
{
	struct stele_device *dev = test_memory(IMAGE_SIZE, 512, 0);
	struct stele_posix_tree tree;
	struct test_edit t;

	make(&t, dev, false);
	if (stele_txn_publish(&t.edit, 1700000000) < 0)
		bail("a commit failed");
	is_int(-EOPNOTSUPP, plan_tree(&t.image, &tree), "a granule of 64 is refused");
	stele_posix_tree_release(&tree);
	test_edit_end(&t);
	stele_device_close(dev);
}

/* ---- parts are written once ------------------------------------------------------- */

#define MANY	  400u
#define PARTS_MAX 32u
#define KINDS	  4u

/* Parts in use, and what a commit has written of them. */
struct parts {
	struct stele_catalog_segment list[PARTS_MAX];
	uint32_t count;
};

static void list_parts(const struct stele_image *image, struct parts *out)
{
	struct stele_catalog_segment part;

	out->count = 0;
	for (uint32_t i = 0; i < image->catalog.counts.segments; i++) {
		stele_catalog_segment(&image->catalog, i, &part);
		if (stele_posix_is_part(&part) && out->count < PARTS_MAX)
			out->list[out->count++] = part;
	}
}

static bool has_part(const struct parts *parts, const struct stele_catalog_segment *part)
{
	for (uint32_t i = 0; i < parts->count; i++)
		if (!memcmp(&parts->list[i], part, sizeof(*part)))
			return true;
	return false;
}

/* Bytes that went to where the part lies. */
static uint64_t written_to(struct stele_device *dev, const struct stele_catalog_segment *part)
{
	const struct stele_fault_entry *log;
	uint64_t size = 0;
	size_t count;

	log = stele_fault_log(dev, &count);
	for (size_t i = 0; i < count; i++)
		if (log[i].op == STELE_OP_WRITE && log[i].offset < part->offset + part->size &&
		    part->offset < log[i].offset + log[i].size)
			size += log[i].size;
	return size;
}

/* What the front counts: the inodes of all parts, blocks up to the end of what it leads to. */
static void check_counts(struct test_edit *t, const struct parts *parts, const char *what)
{
	struct stele_disk_erofs_front front;
	struct stele_erofs_super super = {0};
	struct stele_catalog_segment s;
	struct stele_erofs_inode root;
	uint64_t inodes = 0, end = 0;

	if (!parts->count)
		return;
	for (uint32_t i = 0; i < parts->count; i++)
		inodes += parts->list[i].inode_count;
	for (uint32_t i = 0; i < t->image.catalog.counts.segments; i++) {
		stele_catalog_segment(&t->image.catalog, i, &s);
		if (!s.unused_since)
			end = s.offset + s.size;
	}
	if (stele_front_read(t->image.dev, &front) < 0 ||
	    stele_erofs_front_decode(&front, &super, &root, NULL) < 0)
		bail("no front");
	is_uint(inodes, super.inode_count, "%s: inodes", what);
	is_uint(end >> super.block_bits, super.block_count, "%s: blocks", what);
}

/* One commit: of each kind so many parts are new, and of all others not a byte is written. */
static void commit_parts(struct test_edit *t, struct stele_device *dev, const char *what,
			 const unsigned int wanted[KINDS])
{
	unsigned int made[KINDS] = {0};
	struct parts before, after;
	uint64_t to_old = 0, differs, to_new = 0;

	list_parts(&t->image, &before);
	stele_fault_log_clear(dev);
	is_int(0, stele_txn_publish(&t->edit, 1700000009), "%s", what);
	list_parts(&t->image, &after);
	for (uint32_t i = 0; i < before.count; i++)
		to_old += written_to(dev, &before.list[i]);
	for (uint32_t i = 0; i < after.count; i++) {
		const struct stele_catalog_segment *part = &after.list[i];

		if (has_part(&before, part))
			continue;
		made[part->part]++;
		to_new += written_to(dev, part) != part->size;
	}
	is_uint(0, to_old, "%s: no byte of a part is written again", what);
	is_uint(0, to_new, "%s: each byte of a new one is, once", what);
	for (unsigned int i = STELE_PART_FILES; i < KINDS; i++)
		is_uint(wanted[i], made[i], "%s: new parts of kind %u", what, i);
	is_int(0, stele_posix_check(&t->image, &differs), "%s: all are right", what);
	check_counts(t, &after, what);
}

static uint32_t count_parts(const struct stele_image *image, bool in_use)
{
	struct stele_catalog_segment part;
	uint32_t count = 0;

	for (uint32_t i = 0; i < image->catalog.counts.segments; i++) {
		stele_catalog_segment(&image->catalog, i, &part);
		count += stele_catalog_is_tree(&part) && !part.unused_since == in_use;
	}
	return count;
}

/* Snapshots come, get names, go, and are back; each commit writes what is new. */
static void test_changes(struct test_edit *t, struct stele_device *dev, uint64_t ids[2])
{
	const uint64_t deleted[] = {3};
	struct test_sample *more = test_samples(1, 300, 5);

	if (test_edit_segment(t, more, 1, &ids[1]) < 0 ||
	    test_edit_snapshot(t, "v2", ids, 2, NULL, 0) < 0)
		bail("an append failed");
	commit_parts(t, dev, "append of one sample", (unsigned int[KINDS]){0, 1, 1, 1});
	is_int(0, stele_txn_rename_snapshot(&t->edit, "v1", "old"), "renamed");
	commit_parts(t, dev, "rename", (unsigned int[KINDS]){0, 0, 0, 1});
	if (test_edit_snapshot(t, "v3", ids, 1, deleted, 1) < 0)
		bail("a delete failed");
	commit_parts(t, dev, "samples deleted", (unsigned int[KINDS]){0, 0, 1, 1});
	is_int(0, stele_txn_remove_snapshot(&t->edit, "v2"), "deleted");
	commit_parts(t, dev, "delete of a snapshot", (unsigned int[KINDS]){0, 0, 0, 1});
	is_uint(4, count_parts(&t->image, true), "left: files, two directories, root");
	is_int(0, stele_txn_undelete_snapshot(&t->edit, "v2", NULL), "undeleted");
	commit_parts(t, dev, "undelete", (unsigned int[KINDS]){0, 1, 1, 1});
	stele_txn_find(&t->edit, "v3")->info.time += 7;
	commit_parts(t, dev, "another time", (unsigned int[KINDS]){0, 0, 1, 1});
	is_int(0, stele_txn_grow(&t->edit, t->image.sb.image_size), "nothing that is shown");
	commit_parts(t, dev, "another change", (unsigned int[KINDS]){0, 0, 0, 0});
	free(more);
}

/* What no snapshot has any more goes with gc, and only that. */
static void test_collected(struct test_edit *t, struct stele_device *dev)
{
	is_int(0, stele_txn_remove_snapshot(&t->edit, "v2"), "deleted again");
	commit_parts(t, dev, "delete", (unsigned int[KINDS]){0, 0, 0, 1});
	is_uint(4, count_parts(&t->image, true), "in use");
	ok(count_parts(&t->image, false) > 4, "others are kept");
	test_edit_collect(t);
	commit_parts(t, dev, "gc", (unsigned int[KINDS]){0, 0, 0, 0});
	is_uint(4, count_parts(&t->image, true), "what is in use stays");
	is_uint(0, count_parts(&t->image, false), "the rest is gone");
}

/* Damage stays where it is until all is written anew. */
static void test_renewed(struct test_edit *t, struct stele_device *dev, uint8_t *bytes)
{
	struct parts parts;
	uint64_t differs;

	list_parts(&t->image, &parts);
	bytes[parts.list[0].offset + 40] ^= 1;
	is_int(-EUCLEAN, stele_posix_check(&t->image, &differs), "damaged");
	is_uint(parts.list[0].offset, differs, "where it is");
	is_int(0, stele_txn_set_posix(&t->edit, true), "written anew");
	commit_parts(t, dev, "all of it", (unsigned int[KINDS]){0, 1, 2, 1});
	is_int(0, stele_txn_set_posix(&t->edit, true), "once");
	is_int(STELE_TXN_CLEAN, t->edit.state, "no more");
}

/* A commit fails after its parts were written; what comes then begins where it did. */
static void test_retried(struct test_edit *t, struct stele_device *dev)
{
	const struct stele_fault_rule rule = {
		.kind = STELE_FAULT_FAIL, .ops = 1u << STELE_OP_WRITE, .error = EIO,
	};
	struct parts before;

	list_parts(&t->image, &before);
	is_int(0, stele_txn_rename_snapshot(&t->edit, "old", "older"), "renamed");
	stele_fault_set_rules(dev, &rule, 1);
	is_int(-EIO, stele_txn_publish(&t->edit, 1700000009), "the root cannot be written");
	stele_fault_set_rules(dev, NULL, 0);
	is_uint(before.count, t->edit.part_count, "the parts are those of this generation");
	for (uint32_t i = 0; i < before.count; i++)
		ok(stele_txn_in_use(&t->edit, before.list[i].id), "part %u is in use", i);
	commit_parts(t, dev, "once more", (unsigned int[KINDS]){0, 0, 0, 1});
}

/* A segment with a granule of 512 among others: blocks become smaller, and stay so. */
static void test_block_size(struct test_edit *t, struct stele_device *dev)
{
	struct test_sample *more = test_samples(2, 300, 6);
	const struct stele_txn_snapshot *v3 = stele_txn_find(&t->edit, "v3");
	uint64_t ids[2] = {v3->refs[0].segment_id};

	is_uint(12, stele_posix_block_bits(&t->image), "blocks of 4096");
	t->granule = 512;
	if (test_edit_segment(t, more, 2, &ids[1]) < 0 ||
	    test_edit_snapshot(t, "v4", ids, 2, NULL, 0) < 0)
		bail("an append failed");
	commit_parts(t, dev, "granule 512", (unsigned int[KINDS]){0, 2, 3, 1});
	is_uint(9, stele_posix_block_bits(&t->image), "blocks of 512");
	is_int(0, stele_txn_remove_snapshot(&t->edit, "v4"), "deleted");
	commit_parts(t, dev, "granule 512 deleted", (unsigned int[KINDS]){0, 0, 0, 1});
	is_uint(9, stele_posix_block_bits(&t->image), "they stay");
	stele_txn_set_posix(&t->edit, false);
	commit_parts(t, dev, "off", (unsigned int[KINDS]){0, 0, 0, 0});
	stele_txn_set_posix(&t->edit, true);
	commit_parts(t, dev, "on", (unsigned int[KINDS]){0, 1, 2, 1});
	is_uint(12, stele_posix_block_bits(&t->image), "and are as large as they may be");
	free(more);
}

/* In one commit a segment goes, and is there again, elsewhere, by the same id. */
static void test_moved(void)
{
	struct stele_device *memory = test_memory(4 * IMAGE_SIZE, 512, 0), *dev;
	struct test_sample *samples = test_samples(3, 9000, 4);
	uint64_t id, again, generation, now;
	struct test_edit t;

	if (stele_device_open_fault(memory, NULL, 0, &dev) < 0 ||
	    test_edit_create(&t, dev, 4 * IMAGE_SIZE) < 0)
		bail("begin failed");
	t.granule = 512;
	generation = t.image.generation_max;
	if (test_edit_segment(&t, samples, 3, &id) < 0 ||
	    test_edit_snapshot(&t, "v1", &id, 1, NULL, 0) < 0)
		bail("a segment failed");
	stele_txn_set_posix(&t.edit, true);
	commit_parts(&t, dev, "a segment", (unsigned int[KINDS]){0, 1, 1, 1});
	is_int(0, stele_txn_remove_snapshot(&t.edit, "v1"), "it goes");
	is_int(0, stele_txn_drop_segment(&t.edit, id), "altogether");
	now = t.image.generation_max;
	t.image.generation_max = generation; /* the fixture's id follows from it */
	if (test_edit_segment(&t, samples, 3, &again) < 0 ||
	    test_edit_snapshot(&t, "v2", &again, 1, NULL, 0) < 0)
		bail("a segment failed");
	t.image.generation_max = now;
	ok(id == again, "the same id");
	commit_parts(&t, dev, "moved", (unsigned int[KINDS]){0, 1, 1, 1});
	test_edit_end(&t);
	stele_device_close(dev);
	free(samples);
}

static void test_parts(void)
{
	struct stele_device *memory = test_memory(4 * IMAGE_SIZE, 512, 0), *dev;
	struct test_sample *samples = test_samples(MANY, 2000, 4);
	struct test_edit t;
	uint64_t ids[2];

	if (stele_device_open_fault(memory, NULL, 0, &dev) < 0 ||
	    test_edit_create(&t, dev, 4 * IMAGE_SIZE) < 0)
		bail("begin failed");
	t.granule = 4096;
	if (test_edit_segment(&t, samples, MANY, &ids[0]) < 0 ||
	    test_edit_snapshot(&t, "v1", ids, 1, NULL, 0) < 0)
		bail("a segment failed");
	stele_txn_set_posix(&t.edit, true);
	commit_parts(&t, dev, "build", (unsigned int[KINDS]){0, 1, 1, 1});
	test_changes(&t, dev, ids);
	test_collected(&t, dev);
	test_renewed(&t, dev, stele_device_memory(memory));
	test_retried(&t, dev);
	test_block_size(&t, dev);
	test_edit_end(&t);
	stele_device_close(dev);
	free(samples);
}

int main(void)
{
	struct stele_device *dev = test_memory(IMAGE_SIZE, 512, 0);
	struct test_edit t;

	plan_lazy();
	make(&t, dev, true);
	stele_txn_set_posix(&t.edit, true);
	is_int(0, stele_txn_publish(&t.edit, 1700000000), "published");
	test_names(&t.image);
	test_damage(&t, dev);
	test_edit_end(&t);
	stele_device_close(dev);
	test_refused();
	test_parts();
	test_moved();
	return done();
}
