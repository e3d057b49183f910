/* SPDX-License-Identifier: Apache-2.0 */
/*
 * features.c - an image of all that the format has, for independent.t
 *
 *	features FILE DIR
 *
 * The builder makes one segment; here are three, two of them with a boundary,
 * class names, void records, deleted samples and three commits. DIR gets what
 * the snapshot "third" holds, each sample in a file, to compare.
 */
#include "tests/fixture/image.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMAGE_SIZE (UINT64_C(8) << 20)

/* More than a block of a column, of digests and of a deleted list. */
#define FIRST  1200u
#define SECOND 40u

static const char *const names[] = {"bird", "cat", "dog", "fish", NULL};

static struct test_sample *samples(uint64_t count, uint64_t size_max,
				   const char *prefix)
{
	struct test_sample *out = test_samples(count, size_max, count);

	for (uint64_t i = 0; i < count; i++) {
		char *key;

		if (asprintf(&key, "%s-%04" PRIu64, prefix, i * 7 % count) < 0)
			bail("no memory");
		out[i].key = key;
	}
	return out;
}

static void release(struct test_sample *samples, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		free((char *)samples[i].key);
	free(samples);
}

static void save(const char *dir, const struct test_sample *sample)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, sample->key);
	file = fopen(path, "w");
	if (!file || fwrite(sample->data, 1, sample->size, file) != sample->size ||
	    fclose(file) != 0)
		sysbail("%s", path);
}

/* Every second ordinal below `until`, as ascending numbers. */
static uint64_t delete_half(const uint64_t *numbers, uint64_t until,
			    uint64_t count, uint64_t *deleted)
{
	bool is_deleted[FIRST] = {false};
	uint64_t n = 0;

	for (uint64_t i = 0; i < until; i += 2)
		is_deleted[numbers[i]] = true;
	for (uint64_t i = 0; i < count; i++)
		if (is_deleted[i])
			deleted[n++] = i;
	return n;
}

static void make(struct stele_device *dev, const char *dir)
{
	static struct test_image t;
	static uint64_t numbers[FIRST], few[FIRST], many[FIRST];
	struct test_sample *first = samples(FIRST, 300, "first");
	struct test_sample *second = samples(SECOND, 30000, "second");
	struct test_sample *third = samples(1, 10, "third");
	const struct test_segment a = {.samples = first, .count = FIRST,
		.granule = 16, .labels = true, .names = names,
		.boundary = 4096, .numbers = numbers};
	const struct test_segment b = {.samples = second, .count = SECOND,
		.granule = 64, .labels = true, .names = names,
		.boundary = 16384};
	const struct test_segment c = {.samples = third,
		.count = 1, .granule = 4096, .labels = true, .names = names,
		.order = STELE_SLOT_ORDER_SOURCE};
	struct test_ref refs[] = {{2, NULL, 0}, {0, many, 0}, {1, NULL, 0}};
	struct test_ref less = {0, few, 0};

	first[0].gone = first[2].gone = true;
	if (test_image_begin(&t, dev, IMAGE_SIZE) < 0 ||
	    test_image_segment(&t, &a) < 0)
		bail("the first segment");
	less.deleted_count = delete_half(numbers, 3, FIRST, few);
	refs[1].deleted_count = delete_half(numbers, FIRST, FIRST, many);
	if (test_image_snapshot(&t, "first", &less, 1) < 0 ||
	    test_image_commit(&t) < 0 || test_image_segment(&t, &b) < 0 ||
	    test_image_segment(&t, &c) < 0 || test_image_commit(&t) < 0 ||
	    test_image_snapshot(&t, "third", refs, 3) < 0 ||
	    test_image_commit(&t) < 0)
		bail("the rest");
	test_image_end(&t);
	for (unsigned int i = 1; i < FIRST; i += 2)
		save(dir, &first[i]);
	for (unsigned int i = 0; i < SECOND; i++)
		save(dir, &second[i]);
	save(dir, &third[0]);
	release(first, FIRST);
	release(second, SECOND);
	release(third, 1);
}

int main(int argc, char **argv)
{
	struct stele_device *dev;

	if (argc != 3)
		return 2;
	dev = test_memory(IMAGE_SIZE, 512, 0);
	make(dev, argv[2]);
	test_memory_save(dev, argv[1]);
	stele_device_close(dev);
	return 0;
}
