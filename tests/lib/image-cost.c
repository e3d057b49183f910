/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image-cost.c - no image costs more than its size says
 *
 * What is listed, opened and verified is read a bounded number of times, and memory
 * is bounded by what lies on the target, however often snapshots refer to it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/crc32c.h"
#include "lib/image/snapshot.h"
#include "lib/verify/verify.h"
#include "tests/fixture/corrupt.h"
#include "tests/fixture/costly.h"
#include "tests/fixture/image.h"
#include "tests/tap.h"

#define MEMORY_MAX (UINT64_C(64) << 20)

static const struct {
	const char *what;
	struct costly how;
} images[] = {
	{"many snapshots of many runs",
	 {.segments = 1, .snapshots = 2000, .samples = 3000}},
	{"many snapshots of many segments",
	 {.segments = 200, .snapshots = 200, .samples = 3, .growing = true}},
	{"one snapshot of many segments",
	 {.segments = 1000, .snapshots = 1, .samples = 2}},
	{"a long list in many snapshots",
	 {.segments = 1, .snapshots = 2000, .samples = 3000, .deleted = 2990}},
	{"lists in many references",
	 {.segments = 100, .snapshots = 100, .samples = 20, .deleted = 15}},
	{"a list for each reference",
	 {.segments = 40, .snapshots = 40, .samples = 20, .deleted = 15,
	  .list_each = true}},
};

static struct stele_device *dev;
static struct stele_image image;

/* Without slots: what is read is all metadata. */
static void check(const char *what, const char *how, uint64_t reads_max,
		  uint64_t bytes_max)
{
	const struct costly_count count = costly_count(dev);

	ok(count.reads <= reads_max, "%s, %s: %ju reads, at most %ju", what,
	   how, (uintmax_t)count.reads, (uintmax_t)reads_max);
	ok(count.bytes <= bytes_max, "%s, %s: %ju bytes, at most %ju", what,
	   how, (uintmax_t)count.bytes, (uintmax_t)bytes_max);
	ok(count.memory <= MEMORY_MAX + 4 * image.sb.high_water,
	   "%s, %s: %ju bytes of memory", what, how, (uintmax_t)count.memory);
}

static void check_list(const char *what)
{
	struct stele_snapshot_info info = {.size = sizeof(info)};
	unsigned int failed = 0;

	costly_clear(dev);
	for (uint32_t i = 0; i < image.catalog.counts.snapshots; i++)
		failed += stele_image_snapshot(&image, i, &info) != 0;
	is_uint(0, failed, "%s: all are listed", what);
	check(what, "list", 0, 0);
}

static void check_open(const char *what)
{
	const uint32_t last = image.catalog.counts.snapshots - 1;
	struct stele_snapshot snapshot;

	costly_clear(dev);
	is_int(0, stele_snapshot_load(&image, last, &snapshot), "%s: opens",
	       what);
	check(what, "open", 4 * (uint64_t)snapshot.segment_count + 4,
	      image.sb.high_water);
	stele_snapshot_release(&snapshot);
}

static void check_verify(const char *what)
{
	const struct stele_verify_opts opts = {.size = sizeof(opts), .jobs = 1};
	const uint64_t blocks = image.sb.high_water / STELE_BLOCK_SIZE;
	struct stele_verify_report report = {.size = sizeof(report)};

	costly_clear(dev);
	is_int(0, stele_verify_image(&image, -1, &opts, &report), "%s: sound",
	       what);
	is_uint(image.catalog.counts.snapshots, report.snapshots,
		"%s: all snapshots", what);
	check(what, "verify", 4 * blocks, 6 * image.sb.high_water);
}

static void check_image(const char *what, const struct costly *how)
{
	dev = costly_make(how);
	costly_clear(dev);
	if (stele_image_load(dev, NULL, &image) < 0)
		bail("%s: cannot be loaded", what);
	check(what, "load", 16, image.sb.high_water);
	check_list(what);
	check_open(what);
	check_verify(what);
	stele_image_release(&image);
}

/* ---- lists that would be copied for each reference ------------------------------ */

static const struct {
	const char *what;
	uint32_t segment;
	uint64_t offset, count; /* of words */
	int error;
	bool second; /* behind its own */
} forged[] = {
	/* Lists of 300 words take two blocks; that of reference 0 is at 0. */
	{"the same list", 0, 0, 300, 0, false},
	{"the list of another segment", 1, 0, 300, -EUCLEAN, false},
	{"its beginning", 0, 0, 299, -EUCLEAN, false},
	{"its first block", 0, 0, 254, -EUCLEAN, false},
	{"its end", 0, 4096, 46, -EUCLEAN, false},
	{"from its end on", 0, 4096, 300, -EUCLEAN, false},
	{"as a second list", 0, 0, 300, -EUCLEAN, true},
};

/* What reference 2, of snapshot 1, shall say; checksums repaired. */
static void forge(const struct stele_superblock *sb, uint8_t *memory,
		  size_t index)
{
	static const uint64_t copies[] = STELE_SUPERBLOCK_OFFSETS;
	uint8_t *catalog = memory + sb->catalog_offset;
	uint8_t *refs = catalog + STELE_BLOCK_HEADER_SIZE + 64 + 2 * 64 +
			2 * 192;
	struct stele_disk_ref ref, first;

	memcpy(&first, refs, sizeof(first));
	memcpy(&ref, refs + 2 * sizeof(ref), sizeof(ref));
	if (forged[index].segment) /* swap the two */
		memcpy(&ref, refs + 3 * sizeof(ref), sizeof(ref));
	ref.lists[forged[index].second].owner = first.lists[0].owner;
	ref.lists[forged[index].second].offset = le64_put(
		le64_get(first.lists[0].offset) + forged[index].offset);
	ref.lists[forged[index].second].count = le64_put(forged[index].count);
	memcpy(refs + (2 + forged[index].segment) * sizeof(ref), &ref,
	       sizeof(ref));
	corrupt_repair_block(catalog);
	memset(memory + sb->mirror_offset, 0, sb->catalog_size);
	for (size_t i = 0; i < 4; i++) {
		struct stele_disk_superblock *copy =
			(void *)(memory + copies[i]);

		copy->catalog_crc = le32_put(
			stele_crc32c(0, catalog, sb->catalog_size));
		corrupt_repair_block(memory + copies[i]);
	}
}

static void check_forged(size_t index)
{
	const struct costly how = {.segments = 2, .snapshots = 2,
				   .samples = 300 * 64, .deleted = 300 * 64 - 9,
				   .list_each = true};
	struct stele_superblock sb;
	struct test_log log;
	int ret;

	dev = costly_make(&how);
	if (stele_image_load(dev, NULL, &image) < 0)
		bail("cannot load");
	sb = image.sb;
	image.dev = NULL;
	stele_image_release(&image);
	forge(&sb, costly_memory(dev), index);
	test_log_init(&log);
	ret = stele_image_load(dev, &log.log, &image);
	is_int(forged[index].error, ret, "two lists: %s", forged[index].what);
	if (forged[index].error)
		ok(test_log_has(&log, "deleted lists overlap"), "said");
	if (ret == 0)
		stele_image_release(&image);
	else
		stele_device_close(dev);
}

int main(void)
{
	plan_lazy();
	for (size_t i = 0; i < sizeof(images) / sizeof(images[0]); i++)
		check_image(images[i].what, &images[i].how);
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++)
		check_forged(i);
	return done();
}
