/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copies.c - see copies.h
 */
#include "tests/copies.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/verify/verify.h"
#include "tests/device/fault.h"
#include "tests/tap.h"

#define KEY_SIZE 32

struct test_log copies_log;

/* ---- the source ------------------------------------------------------------ */

/* Sizes that make every kind of unit: by place in the source. */
static size_t size_of(unsigned int segment, uint64_t i)
{
	static const size_t odd[] = {5,	     3000000, 7,   0,	  5000000, 70000,
				     2100000, 11,     900, 2097152, 13,	   9};

	if (segment == 0)
		return odd[i % 12];
	return segment == 1 ? 100 + i * 3001 % 200000 : i * 37 % 300;
}

static void make_samples(struct copies_source *s, unsigned int segment,
			 uint64_t count)
{
	struct test_sample *samples =
		test_samples(count, segment ? 200000 : 5000000, segment + 1);
	char(*keys)[KEY_SIZE] = calloc(count, KEY_SIZE);

	if (!keys)
		bail("no memory");
	for (uint64_t i = 0; i < count; i++) {
		snprintf(keys[i], KEY_SIZE, "s%u/%ju", segment, (uintmax_t)i);
		samples[i].key = keys[i];
		if (samples[i].size >= size_of(segment, i))
			samples[i].size = size_of(segment, i);
	}
	s->samples[segment] = samples;
	s->keys[segment] = keys;
}

void copies_source(struct copies_source *s, uint32_t logical_block)
{
	static const uint64_t counts[COPIES_SEGMENTS] = {13, 40, 5000};
	static const uint64_t few[] = {1, 5}, more[] = {0, 2, 7};
	static const uint64_t many[] = {3, 77, 4999};
	const struct test_ref two[] = {{0, few, 2}, {1, NULL, 0}};
	const struct test_ref three[] = {{0, few, 2}, {1, more, 3}, {2, many, 3}};
	struct test_image t;
	int ret;

	if (stele_device_open_memory(COPIES_SIZE, logical_block, &s->dev) ||
	    test_image_begin(&t, s->dev, COPIES_SIZE))
		bail("no source");
	for (unsigned int i = 0; i < COPIES_SEGMENTS; i++)
		make_samples(s, i, counts[i]);
	for (unsigned int i = 0; i < COPIES_SEGMENTS; i++) {
		const struct test_segment segment = {
			.samples = s->samples[i],
			.count = counts[i],
			.granule = i ? 64 : 16,
			.order = i == 0 ? STELE_SLOT_ORDER_SOURCE :
					  STELE_SLOT_ORDER_SIZE,
			.boundary = i == 1 ? 131072 : 0,
			.labels = true,
		};

		if (test_image_segment(&t, &segment))
			bail("no segment %u", i);
	}
	ret = test_image_snapshot(&t, "v1", (struct test_ref[]){{0, NULL, 0}},
				  1);
	if (!ret)
		ret = test_image_snapshot(&t, "v2", two, 2);
	if (!ret)
		ret = test_image_snapshot(&t, "v3", three, 3);
	if (!ret) {
		t.snapshots[2].parent = t.snapshots[1].id;
		t.snapshots[2].time = 4711;
		t.snapshots[2].source_time = 4242;
		ret = test_image_commit(&t);
	}
	if (ret)
		bail("no source: %s", strerror(-ret));
	s->dev = test_image_end(&t);
}

void copies_source_drop(struct copies_source *s)
{
	for (unsigned int i = 0; i < COPIES_SEGMENTS; i++) {
		free(s->samples[i]);
		free(s->keys[i]);
	}
	stele_device_close(s->dev);
}

/* ---- copies ---------------------------------------------------------------- */

static int commit(void *user, int64_t time)
{
	return stele_edit_commit(user, time);
}

/* What lib/ops/copy.c does, on devices. */
static int open_target(struct stele_device *dev, struct stele_image *image,
		       struct stele_edit *edit)
{
	struct stele_superblock sb;
	int ret = stele_image_load(dev, &copies_log.log, image);

	if (ret == 0)
		return stele_edit_begin(image, edit);
	if (ret != -EMEDIUMTYPE && ret != -ENODATA)
		return ret;
	test_superblock(COPIES_SIZE, &sb);
	ret = stele_image_begin(dev, &copies_log.log, &sb, image);
	if (ret == 0)
		ret = stele_edit_begin(image, edit);
	return ret < 0 ? ret : stele_edit_commit(edit, COPIES_TIME);
}

int (*copies_progress)(void *user, uint64_t done, uint64_t total);
void *copies_user;

int copies_copy(struct stele_device *from, const char *name,
		struct stele_device *to, unsigned int jobs,
		struct stele_copy_report *report)
{
	struct stele_image source = {0}, target = {0};
	struct stele_snapshot snapshot = {0};
	struct stele_edit edit = {0};
	struct stele_copier copier = {
		.image = &source, .snapshot = &snapshot, .edit = &edit,
		.name = name, .commit = commit, .commit_user = &edit,
		.time = COPIES_TIME, .jobs = jobs, .report = report,
		.progress = copies_progress, .progress_user = copies_user,
	};
	uint32_t index = 0;
	int ret;

	memset(report, 0, sizeof(*report));
	ret = stele_image_load(from, &copies_log.log, &source);
	if (ret == 0)
		ret = stele_snapshot_find(&source, name, NULL, &index);
	if (ret == 0)
		ret = stele_snapshot_load(&source, index, &snapshot);
	if (ret == 0)
		ret = open_target(to, &target, &edit);
	if (ret == 0)
		ret = stele_copier_run(&copier);
	stele_edit_release(&edit);
	stele_snapshot_release(&snapshot);
	source.dev = target.dev = NULL;
	stele_image_release(&source);
	stele_image_release(&target);
	return ret;
}

static void say(void *user, const struct stele_damage *damage)
{
	(void)user;
	diag("%s at %ju: %s", damage->what, (uintmax_t)damage->offset,
	     damage->detail);
}

/* Sound down to the last byte, and the snapshot there with the same digest. */
bool copies_same(struct stele_device *from, struct stele_device *to,
		    const char *name)
{
	const struct stele_verify_opts opts = {
		.size = sizeof(opts), .damage = say, .jobs = 1};
	struct stele_verify_report report = {0};
	struct stele_device *devs[2] = {from, to};
	struct stele_catalog_snapshot info[2];
	uint32_t index;
	int ret = 0;

	for (int i = 0; ret == 0 && i < 2; i++) {
		struct stele_image image;

		ret = stele_image_load(devs[i], &copies_log.log, &image);
		if (ret < 0)
			break;
		ret = stele_snapshot_find(&image, name, NULL, &index);
		if (ret == 0)
			stele_catalog_snapshot(&image.catalog, index, &info[i]);
		if (ret == 0 && i == 1)
			ret = stele_verify_image(&image, -1, &opts, &report);
		image.dev = NULL;
		stele_image_release(&image);
	}
	if (ret)
		diag("'%s': %d", name, ret);
	return ret == 0 && !memcmp(info[0].digest, info[1].digest, 32) &&
	       info[0].time == info[1].time &&
	       info[0].sample_count == info[1].sample_count;
}

bool copies_has(struct stele_device *dev, const char *name)
{
	struct stele_image image;
	uint32_t index;
	int ret = stele_image_load(dev, NULL, &image);

	if (ret < 0)
		return false;
	ret = stele_snapshot_find(&image, name, NULL, &index);
	image.dev = NULL;
	stele_image_release(&image);
	return ret == 0;
}

struct stele_device *copies_target(uint32_t logical_block)
{
	struct stele_device *dev, *fault;

	if (stele_device_open_memory(COPIES_SIZE, logical_block, &dev) ||
	    stele_device_open_fault(dev, NULL, 0, &fault))
		bail("no target");
	return fault;
}

/* Bytes that were written to segments since the log began; each once? */
uint64_t copies_written(struct stele_device *dev, bool *once)
{
	static uint8_t seen[COPIES_SIZE / STELE_BLOCK_SIZE];
	const struct stele_fault_entry *log;
	struct stele_image image;
	struct stele_catalog_segment s;
	uint64_t sum = 0;
	size_t count;

	memset(seen, 0, sizeof(seen));
	log = stele_fault_log(dev, &count);
	for (size_t i = 0; i < count; i++)
		for (uint64_t at = 0; log[i].op == STELE_OP_WRITE &&
				      at < log[i].size; at += STELE_BLOCK_SIZE)
			seen[(log[i].offset + at) / STELE_BLOCK_SIZE]++;
	*once = true;
	if (stele_image_load(dev, NULL, &image))
		return 0;
	for (uint32_t i = 0; i < image.catalog.counts.segments; i++) {
		stele_catalog_segment(&image.catalog, i, &s);
		for (uint64_t at = 0; at < s.size; at += STELE_BLOCK_SIZE) {
			const uint8_t n =
				seen[(s.offset + at) / STELE_BLOCK_SIZE];

			sum += n * STELE_BLOCK_SIZE;
			*once &= n <= 1;
		}
	}
	image.dev = NULL;
	stele_image_release(&image);
	return sum;
}

uint64_t copies_writes(struct stele_device *dev)
{
	const struct stele_fault_entry *log;
	uint64_t writes = 0;
	size_t count;

	log = stele_fault_log(dev, &count);
	while (count-- > 0)
		writes += log[count].op == STELE_OP_WRITE;
	return writes;
}
