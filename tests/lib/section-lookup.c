/* SPDX-License-Identifier: Apache-2.0 */
/*
 * section-lookup.c - keys are found and walked, digests lead to the root
 */
#include "tests/fixture/image.h"
#include "tests/tap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/proof.h"
#include "lib/image/section.h"
#include "tests/device/fault.h"

enum { COUNT = 20000 };

static uint64_t numbers[COUNT];
static struct test_sample *samples;
static struct stele_image image;
static struct stele_snapshot snapshot;
static const struct stele_segment *segment;
static struct test_log messages;

static void check_find(void)
{
	static const char *const absent[] = {
		"a", "class0", "class0/00000000x", "class3/", "zzz", "class1/0000",
	};
	uint64_t number, size, wrong = 0;

	for (uint64_t i = 0; i < COUNT; i++) {
		const char *key = samples[i].key;

		if (stele_segment_find_key(&image, segment, key, strlen(key),
					   &number, &size) < 0 ||
		    number != numbers[i] || size != samples[i].size)
			wrong++;
	}
	is_uint(0, wrong, "each of %d keys has its number and size", COUNT);
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		is_int(-ENOENT,
		       stele_segment_find_key(&image, segment, absent[i],
					      strlen(absent[i]), &number, NULL),
		       "'%s' is not there", absent[i]);
}

/* Walks from `from`; samples are in key order already. */
static void check_walk(const char *from, uint64_t first)
{
	struct stele_keys_walk walk;
	uint64_t i = first;
	bool same = true;
	int ret;

	is_int(0, stele_keys_walk_open(&image, segment, from, strlen(from),
				       &walk),
	       "a walk from '%s'", from);
	while ((ret = stele_keys_walk_next(&walk)) == 1 && i < COUNT) {
		const struct stele_key *key = &walk.cursor.key;

		same &= key->key_size == strlen(samples[i].key) &&
			!memcmp(key->key, samples[i].key, key->key_size) &&
			key->number == numbers[i];
		i++;
	}
	is_int(0, ret, "ends");
	is_int(0, stele_keys_walk_next(&walk), "and stays at its end");
	ok(same && i == COUNT, "sees each key behind once, in order");
	stele_keys_walk_release(&walk);
	stele_keys_walk_release(&walk);
}

/* Seeks by strides of many lengths, to keys that are there and between them. */
static void check_seek(uint64_t stride)
{
	struct stele_keys_walk walk;
	uint64_t wrong = 0;
	int ret = stele_keys_walk_open(&image, segment, "", 0, &walk);

	for (uint64_t i = 0; ret >= 0 && i < COUNT; i += stride) {
		const struct stele_key *key = &walk.cursor.key;
		char text[64];

		/* Behind sample i, or right at it. */
		snprintf(text, sizeof(text), "%s%s", samples[i].key,
			 i % 2 ? "" : "!");
		ret = stele_keys_walk_seek(&walk, text, strlen(text));
		if (i % 2 == 0 && i + 1 == COUNT)
			wrong += ret != 0;
		else
			wrong += ret != 1 ||
				 key->number != numbers[i + (i % 2 == 0)];
	}
	ok(ret >= 0, "seeks by %" PRIu64, stride);
	is_uint(0, wrong, "each comes to the first key not before it");
	is_int(0, stele_keys_walk_seek(&walk, "zzzz", 4), "a seek over the end");
	is_int(0, stele_keys_walk_next(&walk), "stays there");
	stele_keys_walk_release(&walk);
}

/* Each of these was looked up before. */
static void check_later(struct stele_device *dev)
{
	const struct stele_fault_entry *entries;
	uint64_t number, wrong = 0;
	size_t count;

	stele_fault_log_clear(dev);
	for (uint64_t i = 0; i < COUNT; i += 101)
		wrong += stele_segment_find_key(&image, segment, samples[i].key,
						strlen(samples[i].key), &number, NULL) ||
			 number != numbers[i];
	entries = stele_fault_log(dev, &count);
	for (size_t i = 0; i < count; i++)
		wrong += entries[i].size != STELE_BLOCK_SIZE;
	ok(!wrong && count == (COUNT + 100) / 101,
	   "a look-up after others reads one page (%zu)", count);
}

/* Few pages are read to seek, and each page once to walk. Last: wraps the device. */
static void check_pages(void)
{
	struct stele_device *dev, *inner = image.dev;
	struct stele_keys_walk walk;
	const struct stele_fault_entry *entries;
	struct stele_section section;
	uint64_t pages, bytes = 0;
	size_t count;

	stele_descriptor_find_section(&segment->descriptor, STELE_BLOCK_KEYS,
				      STELE_NO_FIELD, &section);
	pages = section.size / STELE_BLOCK_SIZE;
	if (stele_device_open_fault(inner, NULL, 0, &dev) < 0)
		bail("no fault device");
	image.dev = dev;
	stele_keys_walk_open(&image, segment, "", 0, &walk);
	while (stele_keys_walk_next(&walk) == 1)
		continue;
	stele_keys_walk_release(&walk);
	entries = stele_fault_log(dev, &count);
	for (size_t i = 0; i < count; i++)
		bytes += entries[i].size;
	is_uint(section.size, bytes, "a whole walk reads each page once");
	ok(count < pages / 8, "several at a time (%zu reads of %" PRIu64
	   " pages)", count, pages);

	stele_fault_log_clear(dev);
	stele_keys_walk_open(&image, segment, "", 0, &walk);
	stele_keys_walk_seek(&walk, samples[10].key, strlen(samples[10].key));
	stele_fault_log(dev, &count);
	is_uint(1, count, "a seek within the page reads nothing");
	stele_keys_walk_seek(&walk, samples[COUNT - 2].key,
			     strlen(samples[COUNT - 2].key));
	entries = stele_fault_log(dev, &count);
	ok(pages > 60 && count < 20, "a seek to the end reads %zu of %" PRIu64
	   " pages", count, pages);
	stele_keys_walk_release(&walk);
	check_later(dev);
}

static void check_digests(void)
{
	struct stele_proof proof;
	uint8_t digest[32];
	uint64_t wrong = 0;

	if (stele_proof_init(&proof, &image, 0) < 0)
		bail("no proof");
	for (uint64_t i = 0; i < COUNT; i += 61) {
		if (stele_segment_digest(&image, segment, i, digest) < 0 ||
		    stele_proof_check(&proof, segment, i, digest) < 0)
			wrong++;
		digest[i % 32] ^= 4;
		wrong += stele_proof_check(&proof, segment, i, digest) !=
			 -EBADMSG;
	}
	is_uint(0, wrong, "digests lead to the root, changed ones do not");
	is_int(-ERANGE, stele_segment_digest(&image, segment, COUNT, digest),
	       "a digest of no sample");
	is_int(-ERANGE, stele_proof_check(&proof, segment, COUNT, digest),
	       "a check of no sample");
	stele_proof_release(&proof);
}

/* A digest that was changed together with its block's checksum. */
static void check_forged(void)
{
	struct stele_proof proof;
	uint8_t *memory = stele_device_memory(image.dev);
	struct stele_disk_block *block;
	struct stele_section section;
	uint8_t digest[32];
	uint64_t offset;

	stele_descriptor_find_section(&segment->descriptor, STELE_BLOCK_DIGESTS,
				      STELE_NO_FIELD, &section);
	offset = segment->descriptor.offset + section.offset;
	block = (void *)(memory + offset);
	block->payload[3] ^= 1;
	is_int(-EBADMSG, stele_segment_digest(&image, segment, 0, digest),
	       "a damaged block of digests");
	stele_block_seal(block, STELE_BLOCK_DIGESTS, offset,
			 segment->descriptor.id);
	is_int(0, stele_segment_digest(&image, segment, 0, digest),
	       "with its checksum repaired it is read");
	if (stele_proof_init(&proof, &image, 0) < 0)
		bail("no proof");
	is_int(-EBADMSG, stele_proof_check(&proof, segment, 0, digest),
	       "the tree does not take it");
	stele_proof_release(&proof);
	stele_block_seal(block, STELE_BLOCK_DIGESTS, offset,
			 segment->descriptor.id + 1);
	is_int(-EUCLEAN, stele_segment_digest(&image, segment, 0, digest),
	       "a block of another segment");
	stele_block_seal(block, STELE_BLOCK_TREE, offset,
			 segment->descriptor.id);
	is_int(-EUCLEAN, stele_segment_digest(&image, segment, 0, digest),
	       "a block of another type");
}

static void check_empty(void)
{
	const struct test_segment none = {.samples = samples, .count = 0};
	struct stele_device *dev = test_image_simple(&none, NULL, 0, 0);
	struct stele_snapshot empty;
	struct stele_keys_walk walk;
	struct stele_image other;
	uint64_t number;

	if (stele_image_load(dev, NULL, &other) < 0 ||
	    stele_snapshot_load(&other, 0, &empty) < 0)
		bail("an empty image does not load");
	is_int(-ENOENT,
	       stele_segment_find_key(&other, empty.segments, "k", 1, &number,
				      NULL),
	       "no key in an empty segment");
	is_int(0, stele_keys_walk_open(&other, empty.segments, NULL, 0, &walk),
	       "a walk over nothing");
	is_int(0, stele_keys_walk_next(&walk), "is at its end");
	stele_keys_walk_release(&walk);
	stele_snapshot_release(&empty);
	stele_image_release(&other);
}

static void check_reads(void)
{
	struct stele_section section;
	struct stele_disk_block *block;
	uint64_t count;

	stele_descriptor_find_section(&segment->descriptor, STELE_BLOCK_KEYS,
				      STELE_NO_FIELD, &section);
	count = section.size / STELE_BLOCK_SIZE;
	block = stele_device_alloc(image.dev, STELE_BLOCK_SIZE);
	is_int(0, stele_section_read(&image, segment, &section, count - 1, 1,
				     block),
	       "the last block of a section");
	is_int(-ERANGE,
	       stele_section_read(&image, segment, &section, count, 1, block),
	       "a block behind it");
	is_int(-ERANGE,
	       stele_section_read(&image, segment, &section, 1, UINT64_MAX,
				  block),
	       "a count that wraps");
	free(block);
}

int main(void)
{
	struct test_segment in = {.count = COUNT, .numbers = numbers};

	plan_lazy();
	samples = test_samples(COUNT, 300, 9);
	in.samples = samples;
	test_log_init(&messages);
	if (stele_image_load(test_image_simple(&in, NULL, 0, 16u << 20),
			     &messages.log, &image) < 0 ||
	    stele_snapshot_load(&image, 0, &snapshot) < 0)
		bail("no image: %s", messages.text);
	segment = &snapshot.segments[0];
	check_find();
	check_walk("", 0);
	check_walk("class1/", COUNT / 4);
	check_walk(samples[777].key, 777);
	check_walk("class3/00019999", COUNT - 1);
	check_walk("d", COUNT);
	for (uint64_t stride = 1; stride < COUNT; stride = stride * 2 + 1)
		check_seek(stride);
	check_digests();
	check_forged();
	check_reads();
	check_pages();
	check_empty();
	stele_snapshot_release(&snapshot);
	stele_image_release(&image);
	free(samples);
	return done();
}
