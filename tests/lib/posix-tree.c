/* SPDX-License-Identifier: Apache-2.0 */
/*
 * posix-tree.c - which samples become files, and that damage of a tree is found
 */
#include <errno.h>
#include <string.h>

#include "lib/posix/front.h"
#include "lib/posix/shown.h"
#include "lib/posix/tree.h"
#include "lib/txn/posix.h"
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
		.name = "v1", .refs = &ref, .ref_count = 1,
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
	struct stele_posix_tree tree;

	is_int(0, plan_tree(image, &tree), "planned");
	is_uint(LEFT_OUT, tree.left_out, "so many samples cannot be files");
	is_uint(COUNT - LEFT_OUT, tree.file_count, "the others are");
	is_uint(5, tree.directory_count, "v1, a, b, b/c, dir");
	is_string("../up", tree.first_left_out, "the first one is told");
	is_uint(9, tree.block_bits, "blocks of 512");
	stele_posix_tree_release(&tree);
}

/* Any byte of the tree, and of block 0. */
static void test_damage(struct test_edit *t, struct stele_device *dev)
{
	struct stele_disk_erofs_front front;
	struct stele_catalog_segment tree;
	uint8_t *bytes = stele_device_memory(dev);
	unsigned int missed = 0;
	uint64_t differs;

	ok(stele_posix_find(&t->image, &tree), "there is a tree");
	is_int(0, stele_posix_check(&t->image, &differs), "it is what the samples make");
	for (uint64_t at = tree.offset; at < tree.offset + tree.size; at += 97) {
		bytes[at] ^= 4;
		missed += stele_posix_check(&t->image, &differs) != -EUCLEAN ||
			  differs != round_down(at, 4096);
		bytes[at] ^= 4;
	}
	is_uint(0, missed, "each byte that differs is found");
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
	return done();
}
