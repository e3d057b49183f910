/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify-flip.c - one bit of any byte that was written: verify finds it
 *
 * Two images that have between them everything that the format has. Each byte
 * in turn has one bit inverted. A flipped record must never pass its own
 * checksum.
 */
#include "tests/fixture/image.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/snapshot.h"
#include "lib/verify/verify.h"

#define IMAGE_SIZE (UINT64_C(4) << 20)
#define REPORTS_MAX 1u /* a flip damages one thing */

static uint8_t *memory;
static uint8_t *written; /* one for each byte that Stele wrote */
static struct stele_snapshot snapshot; /* of the sound image */

static struct stele_device *begin(struct test_image *t)
{
	struct stele_device *dev;

	dev = test_memory(IMAGE_SIZE, 512, 0);
	/* What is not written stays so: it is no part of the image. */
	memory = stele_device_memory(dev);
	memset(memory, 0xee, IMAGE_SIZE);
	if (test_image_begin(t, dev, IMAGE_SIZE) < 0)
		bail("no image");
	return dev;
}

/* Labels and names, a tree, deleted samples, one of them void. */
static struct stele_device *make_many(void)
{
	static const char *const names[] = {"a", "b", NULL};
	static const uint64_t deleted[] = {1, 7};
	const struct test_ref ref = {0, deleted, 2};
	static struct test_image t;
	struct test_sample *samples = test_samples(128, 40, 8);
	const struct test_segment in = {
		.samples = samples, .count = 128, .labels = true,
		.names = names, .order = STELE_SLOT_ORDER_SOURCE,
	};

	samples[7].gone = true;
	begin(&t);
	if (test_image_segment(&t, &in) < 0 ||
	    test_image_snapshot(&t, "v1", &ref, 1) < 0 ||
	    test_image_commit(&t) < 0)
		bail("no image");
	free(samples);
	return test_image_end(&t);
}

/* Two generations and segments, large granules, a boundary with gaps. */
static struct stele_device *make_few(void)
{
	static struct test_image t;
	struct test_sample *samples = test_samples(5, 2000, 8);
	struct test_segment in = {
		.samples = samples, .count = 3, .granule = 512,
		.boundary = 4096,
	};

	begin(&t);
	if (test_image_segment(&t, &in) < 0 ||
	    test_image_snapshot(&t, "v1", NULL, 0) < 0 ||
	    test_image_commit(&t) < 0)
		bail("no image");
	in = (struct test_segment){
		.samples = samples + 3, .count = 2, .granule = 4096};
	if (test_image_segment(&t, &in) < 0 ||
	    test_image_snapshot(&t, "v2", NULL, 0) < 0 ||
	    test_image_commit(&t) < 0)
		bail("no image");
	free(samples);
	return test_image_end(&t);
}

static void mark(uint64_t offset, uint64_t size)
{
	memset(written + offset, 1, size);
}

/* Everything that the image says is its own. */
static void mark_image(const struct stele_image *image)
{
	static const uint64_t copies[] = STELE_SUPERBLOCK_OFFSETS;
	struct stele_catalog_segment where;
	struct stele_catalog_ref ref;

	for (int i = 0; i < 4; i++)
		mark(copies[i], STELE_BLOCK_SIZE);
	mark(image->sb.catalog_offset, image->sb.catalog_size);
	mark(image->sb.mirror_offset, image->sb.catalog_size);
	for (uint32_t i = 0; i < image->catalog.counts.segments; i++) {
		stele_catalog_segment(&image->catalog, i, &where);
		mark(where.offset, where.size);
	}
	for (uint32_t i = 0; i < image->catalog.counts.refs; i++) {
		stele_catalog_ref(&image->catalog, i, &ref);
		for (uint32_t j = 0; j < STELE_REF_LISTS && ref.lists[j].offset; j++)
			mark(ref.lists[j].offset, STELE_BLOCK_SIZE);
	}
}

/* Return: 0 sound; else damage was found, or the image refused. */
static int verify(struct stele_device *dev, struct stele_verify_report *report)
{
	const struct stele_verify_opts opts = {.size = sizeof(opts), .jobs = 1};
	struct stele_image image;
	int ret;

	memset(report, 0, sizeof(*report));
	ret = stele_image_load(dev, NULL, &image);
	if (ret < 0)
		return ret;
	ret = stele_verify_image(&image, -1, &opts, report);
	image.dev = NULL;
	stele_image_release(&image);
	return ret;
}

/* Does some record pass its checksum although this byte of it is wrong? */
static bool passes(uint64_t offset)
{
	for (uint32_t i = 0; i < snapshot.segment_count; i++) {
		const struct stele_segment *s = &snapshot.segments[i];

		for (uint64_t n = 0; n < s->descriptor.sample_count; n++) {
			struct stele_record record;
			uint64_t start, size;
			uint8_t *slot;

			stele_segment_slot(s, n, &start, &size);
			slot = memory + start;
			if (offset - start >= size)
				continue;
			return stele_record_decode(slot, size, &s->shape,
						   &record, NULL) == 0 &&
			       record.crc == stele_record_crc(s->descriptor.id,
							      n, slot, size);
		}
	}
	return false;
}

static void flip_all(struct stele_device *dev)
{
	uint64_t flips = 0, missed = 0, passed = 0, many = 0;
	struct stele_verify_report report = {.size = sizeof(report)};

	for (uint64_t i = 0; i < IMAGE_SIZE; i++) {
		const uint8_t bit = (uint8_t)(1u << (i * 7 % 8));

		if (!written[i])
			continue;
		memory[i] ^= bit;
		if (verify(dev, &report) == 0 && missed++ < 10)
			diag("byte %" PRIu64 " is missed", i);
		if (report.damaged > REPORTS_MAX && many++ == 0)
			diag("byte %" PRIu64 " has %" PRIu64 " reports", i,
			     report.damaged);
		passed += passes(i);
		memory[i] ^= bit;
		flips++;
	}
	diag("%" PRIu64 " bytes, one flip each", flips);
	is_uint(0, missed, "verify finds each flip");
	is_uint(0, passed, "no flipped record passes its checksum");
	is_uint(0, many, "no flip is reported all over");
	ok(flips > 50000, "that was a whole image");
}

static void check(struct stele_device *dev, uint32_t index, uint64_t samples)
{
	struct stele_verify_report report = {.size = sizeof(report)};
	struct stele_image image;

	if (stele_image_load(dev, NULL, &image) < 0 ||
	    stele_snapshot_load(&image, index, &snapshot) < 0)
		bail("the image does not load");
	memset(written, 0, IMAGE_SIZE);
	mark_image(&image);
	/* All but what was the mirror of an older catalog, which nobody counts on. */
	for (uint64_t i = 0; i < IMAGE_SIZE; i++)
		if (!written[i] && memory[i] != 0xee &&
		    (i < STELE_CATALOG_MIRRORS_OFFSET || i >= STELE_DATA_OFFSET))
			mark(round_down(i, STELE_BLOCK_SIZE), STELE_BLOCK_SIZE);
	is_int(0, verify(dev, &report), "the image is sound");
	is_uint(samples, report.samples, "all its samples were checked");
	flip_all(dev);
	is_int(0, verify(dev, &report), "and is so again");
	stele_snapshot_release(&snapshot);
	stele_image_release(&image);
}

int main(void)
{
	plan_lazy();
	written = calloc(1, IMAGE_SIZE);
	if (!written)
		bail("no memory");
	check(make_many(), 0, 128);
	check(make_few(), 1, 5);
	free(written);
	return done();
}
