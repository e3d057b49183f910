/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify-lacks.c - a segment without a section that it must have
 *
 * Every checksum is right: what the descriptor does not mention is missing all
 * the same, though the samples can be read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/segment.h"
#include "lib/image/snapshot.h"
#include "lib/verify/verify.h"
#include "tests/fixture/image.h"
#include "tests/tap.h"

#define SECTION_SIZE 40 /* of a reference: stele-format(5) */

static char seen[256];

static void on_damage(void *user, const struct stele_damage *damage)
{
	size_t at = strlen(seen);

	(void)user;
	if (damage->error == -EUCLEAN &&
	    (!strcmp(damage->what, "descriptor") ||
	     !strcmp(damage->what, "filter of keys")))
		snprintf(seen + at, sizeof(seen) - at, "%s; ", damage->detail);
}

/* Both copies forget their last section. */
static void forget_last(uint8_t *memory,
			const struct stele_catalog_segment *where)
{
	const uint64_t offsets[] = {
		where->offset,
		where->offset + where->size - where->descriptor_size};

	for (int i = 0; i < 2; i++) {
		struct stele_disk_block *block =
			(struct stele_disk_block *)(memory + offsets[i]);
		struct stele_disk_descriptor *d =
			(struct stele_disk_descriptor *)block->payload;
		uint64_t size = le64_get(d->stream_size) - SECTION_SIZE;

		d->stream_size = le64_put(size);
		d->section_count = le32_put(le32_get(d->section_count) - 1);
		memset(block->payload + size, 0, SECTION_SIZE);
		stele_block_seal(block, STELE_BLOCK_DESCRIPTOR, offsets[i],
				 where->id);
	}
}

/* A filter that lacks a bit would hide a key. */
static void test_filter(void)
{
	struct test_sample *samples = test_samples(20, 500, 2);
	const struct test_segment in = {
		.samples = samples, .count = 20, .filter = true};
	struct stele_device *dev = test_image_simple(&in, NULL, 0, 0);
	const struct stele_verify_opts opts = {
		.size = sizeof(opts), .damage = on_damage, .jobs = 1};
	uint8_t *memory = stele_device_memory(dev);
	struct stele_verify_report report = {.size = sizeof(report)};
	struct stele_catalog_segment where;
	struct stele_image image;

	if (stele_image_load(dev, NULL, &image) < 0)
		bail("load");
	stele_catalog_segment(&image.catalog, 0, &where);
	is_int(0, stele_verify_image(&image, -1, &opts, &report),
	       "a filter: sound");
	for (int i = 0; i < 2; i++) {
		const uint64_t offset =
			where.offset + (uint64_t)i * (where.size - STELE_BLOCK_SIZE);
		struct stele_disk_block *block =
			(struct stele_disk_block *)(memory + offset);
		struct stele_disk_descriptor *d =
			(struct stele_disk_descriptor *)block->payload;
		uint8_t *last = block->payload + le64_get(d->stream_size) - 1;

		while (!*last)
			last--;
		*last &= (uint8_t)(*last - 1);
		stele_block_seal(block, STELE_BLOCK_DESCRIPTOR, offset,
				 where.id);
	}
	seen[0] = '\0';
	is_int(1, stele_verify_image(&image, -1, &opts, &report),
	       "a bit of it is missing");
	is_string("does not match the keys; ", seen, "which is said");
	stele_image_release(&image);
	free(samples);
}

int main(void)
{
	static const char *const names[] = {"'tree'", "'digests'", "'order'",
					    "'keys'"};
	struct test_sample *samples = test_samples(20, 500, 1);
	const struct test_segment in = {.samples = samples, .count = 20};
	struct stele_device *dev = test_image_simple(&in, NULL, 0, 0);
	const struct stele_verify_opts opts = {
		.size = sizeof(opts), .damage = on_damage, .jobs = 1};
	struct stele_catalog_segment where;
	struct stele_verify_report report = {.size = sizeof(report)};
	struct stele_snapshot snapshot;
	struct stele_image image;

	plan_lazy();
	test_filter();
	seen[0] = '\0';
	if (stele_image_load(dev, NULL, &image) < 0)
		bail("load");
	stele_catalog_segment(&image.catalog, 0, &where);
	memset(&report, 0, sizeof(report));
	is_int(0, stele_verify_image(&image, -1, &opts, &report), "sound");
	for (int i = 0; i < 4; i++) {
		forget_last(stele_device_memory(dev), &where);
		is_int(0, stele_snapshot_load(&image, 0, &snapshot),
		       "%s missing: samples can be read", names[i]);
		stele_snapshot_release(&snapshot);
		seen[0] = '\0';
		memset(&report, 0, sizeof(report));
		is_int(1, stele_verify_image(&image, -1, &opts, &report),
		       "it is damage");
		ok(strstr(seen, "no section") && strstr(seen, names[i]),
		   "said so: %s", seen);
	}
	stele_image_release(&image);
	free(samples);
	return done();
}
