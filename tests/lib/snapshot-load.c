/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot-load.c - a snapshot is what was committed: segments, ids, digest
 */
#include "tests/device/fault.h"
#include "tests/device/memory.h"
#include "tests/fixture/image.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/snapshot.h"

static const char *const class_names[] = {"cat", "dog", "newt\nx", NULL};

static void open_first(struct stele_device *dev, struct stele_image *image,
		       struct stele_snapshot *snapshot)
{
	static struct test_log log;

	test_log_init(&log);
	if (stele_image_load(dev, &log.log, image) < 0 ||
	    stele_snapshot_load(image, 0, snapshot) < 0)
		bail("cannot load the image just made: %s", log.text);
}

/* Does the slot of each live sample hold its bytes? */
static bool slots_match(struct stele_image *image,
			const struct stele_snapshot *snapshot,
			const struct test_segment *in)
{
	const uint8_t *memory = stele_device_memory(image->dev);
	bool same = true;

	for (uint64_t i = 0; i < in->count; i++) {
		const struct stele_segment *segment = &snapshot->segments[0];
		struct stele_record record;
		uint64_t offset, size, id, number;

		stele_segment_slot(segment, in->numbers[i], &offset, &size);
		if (stele_record_decode(memory + offset, size, &segment->shape,
					&record, NULL) < 0)
			return false;
		same &= record.payload_size == in->samples[i].size;
		same &= !memcmp(record.payload, in->samples[i].data,
				record.payload_size);
		same &= record.crc == stele_record_crc(segment->descriptor.id,
						       in->numbers[i],
						       memory + offset, size);
		if (stele_snapshot_id(snapshot, segment, in->numbers[i], &id))
			continue;
		same &= !stele_snapshot_locate(snapshot, id, &segment, &number);
		same &= number == in->numbers[i];
	}
	return same;
}

static void check_shape(uint32_t granule, uint32_t order, uint64_t boundary)
{
	enum { COUNT = 700 };
	static uint64_t numbers[COUNT];
	static const uint64_t deleted[] = {0, 1, 17, 600, 699};
	struct test_sample *samples = test_samples(COUNT, 3000, granule);
	const struct test_segment in = {
		.samples = samples, .count = COUNT, .granule = granule,
		.order = order, .boundary = boundary, .labels = true,
		.names = class_names, .numbers = numbers,
	};
	struct stele_snapshot snapshot;
	struct stele_image image;
	uint64_t id;

	open_first(test_image_simple(&in, deleted, 5, 16u << 20), &image,
		   &snapshot);
	is_uint(COUNT - 5, snapshot.sample_count, "granule %u: live samples",
		granule);
	ok(slots_match(&image, &snapshot, &in), "every record is in its slot");
	is_int(-ENOENT, stele_snapshot_id(&snapshot, snapshot.segments, 17, &id),
	       "a deleted number has no id");
	is_int(-ERANGE,
	       stele_snapshot_id(&snapshot, snapshot.segments, COUNT, &id),
	       "a number too large is out of range");
	is_uint(3, snapshot.segments[0].names->field[1].count, "class names are there");
	is_string("newt\nx", snapshot.segments[0].names->field[1].names[2],
		  "and are right");
	stele_snapshot_release(&snapshot);
	stele_snapshot_release(&snapshot);
	stele_image_release(&image);
	stele_image_release(&image);
	free(samples);
}

/* Ids count through live samples, over segments that are empty or all gone. */
static void check_ids(void)
{
	static struct test_image t;
	struct test_sample *samples = test_samples(6, 100, 1);
	const struct test_segment six = {.samples = samples, .count = 6};
	const struct test_segment none = {.samples = samples, .count = 0};
	static const uint64_t all[] = {0, 1, 2, 3, 4, 5}, some[] = {1, 2, 4};
	const struct test_ref refs[] = {
		{0, all, 6}, {1, NULL, 0}, {2, some, 3}, {3, all, 6}, {4, NULL, 0},
	};
	static const uint64_t want[] = {0, 3, 5, 0, 1, 2, 3, 4, 5};
	const struct stele_segment *segment;
	struct stele_snapshot snapshot;
	struct stele_device *dev;
	struct stele_image image;
	uint64_t number, id;
	bool same = true;

	stele_device_open_memory(8u << 20, 4096, &dev);
	if (test_image_begin(&t, dev, 8u << 20) < 0)
		bail("begin");
	for (int i = 0; i < 5; i++)
		test_image_segment(&t, i == 1 ? &none : &six);
	test_image_snapshot(&t, "mixed", refs, 5);
	is_int(0, test_image_commit(&t), "five segments commit");
	open_first(test_image_end(&t), &image, &snapshot);
	is_uint(9, snapshot.sample_count, "nine live samples");
	for (uint64_t i = 0; i < 9; i++) {
		same &= !stele_snapshot_locate(&snapshot, i, &segment, &number);
		same &= number == want[i];
		same &= segment == &snapshot.segments[i < 3 ? 2 : 4];
		same &= !stele_snapshot_id(&snapshot, segment, number, &id);
		same &= id == i;
	}
	ok(same, "each id has its segment and number, and back");
	is_int(-ERANGE, stele_snapshot_locate(&snapshot, 9, &segment, &number),
	       "an id too large is out of range");
	stele_snapshot_release(&snapshot);
	stele_image_release(&image);
	free(samples);
}

static void check_find(void)
{
	static struct test_image t;
	struct test_sample *samples = test_samples(5, 100, 2);
	const struct test_segment in = {.samples = samples, .count = 5};
	struct stele_catalog_snapshot info;
	struct stele_device *dev;
	struct stele_image image;
	uint32_t index = 7;

	stele_device_open_memory(8u << 20, 512, &dev);
	test_image_begin(&t, dev, 8u << 20);
	test_image_segment(&t, &in);
	test_image_snapshot(&t, "a", NULL, 0);
	test_image_commit(&t);
	is_int(0, stele_snapshot_find(&t.image, NULL, NULL, &index),
	       "the only snapshot needs no name");
	is_uint(0, index, "and is the first");
	test_image_segment(&t, &in);
	test_image_snapshot(&t, "b", NULL, 0);
	test_image_commit(&t);
	dev = test_image_end(&t);
	if (stele_image_load(dev, NULL, &image) < 0)
		bail("load");
	is_int(-EINVAL, stele_snapshot_find(&image, NULL, NULL, &index),
	       "of two, one must be named");
	is_int(0, stele_snapshot_find(&image, "b", NULL, &index), "by name");
	is_uint(1, index, "it is the second");
	stele_catalog_snapshot(&image.catalog, 0, &info);
	is_int(0, stele_snapshot_find(&image, NULL, info.digest, &index),
	       "by digest");
	is_uint(0, index, "it is the first");
	is_int(-ENOENT, stele_snapshot_find(&image, "c", NULL, &index),
	       "a name that is not there");
	info.digest[5] ^= 1;
	is_int(-ENOENT, stele_snapshot_find(&image, NULL, info.digest, &index),
	       "a digest that is not there");
	stele_image_release(&image);
	free(samples);
}

/* Same samples, another device, time and uuid: same digest. */
static void check_digest(void)
{
	struct test_sample *samples = test_samples(300, 500, 3);
	struct test_segment in = {.samples = samples, .count = 300};
	struct stele_snapshot a, b;
	struct stele_image image;

	open_first(test_image_simple(&in, NULL, 0, 0), &image, &a);
	stele_image_release(&image);
	in.id = 77;
	in.granule = 512;
	in.order = STELE_SLOT_ORDER_SOURCE;
	open_first(test_image_simple(&in, NULL, 0, 8u << 20), &image, &b);
	stele_image_release(&image);
	ok(memcmp(a.digest, b.digest, 32) != 0, "another order, another digest");
	stele_snapshot_release(&a);
	in.id = 78;
	open_first(test_image_simple(&in, NULL, 0, 16u << 20), &image, &a);
	stele_image_release(&image);
	is_blob(a.digest, b.digest, 32,
		"same samples in the same order, same digest");
	stele_snapshot_release(&a);
	stele_snapshot_release(&b);
	free(samples);
}

/* Who does not know boundaries must be kept out. */
static void check_boundary_bit(void)
{
	static struct test_image t;
	static struct test_log log;
	struct test_sample *samples = test_samples(20, 500, 5);
	const struct test_segment in = {
		.samples = samples, .count = 20, .boundary = 4096};
	const struct test_ref ref = {0};
	struct stele_snapshot snapshot;
	struct stele_device *dev;
	struct stele_image image;

	test_log_init(&log);
	stele_device_open_memory(8u << 20, 512, &dev);
	test_image_begin(&t, dev, 8u << 20);
	test_image_segment(&t, &in);
	test_image_snapshot(&t, "v1", &ref, 1);
	t.incompat = 0;
	is_int(0, test_image_commit(&t), "a boundary without its bit commits");
	if (stele_image_load(test_image_end(&t), &log.log, &image) < 0)
		bail("load");
	is_int(-EUCLEAN, stele_snapshot_load(&image, 0, &snapshot),
	       "and is refused");
	ok(test_log_has(&log, "without their feature"), "which it says");
	stele_image_release(&image);
	free(samples);
}

/* One copy of the descriptor does. */
static void check_descriptors(void)
{
	struct test_sample *samples = test_samples(20, 500, 4);
	const struct test_segment in = {.samples = samples, .count = 20};
	struct stele_device *dev = test_image_simple(&in, NULL, 0, 0);
	uint8_t *memory = stele_device_memory(dev);
	struct stele_catalog_segment where;
	struct stele_snapshot snapshot;
	struct stele_image image;
	static struct test_log log;
	uint64_t last;

	test_log_init(&log);
	if (stele_image_load(dev, &log.log, &image) < 0)
		bail("load");
	stele_catalog_segment(&image.catalog, 0, &where);
	last = where.offset + where.size - 4096;
	memory[where.offset + 100] ^= 1;
	is_int(0, stele_snapshot_load(&image, 0, &snapshot),
	       "the last copy stands in for the first");
	ok(test_log_has(&log, "2 descriptor of segment"), "with a warning");
	stele_snapshot_release(&snapshot);
	memory[last + 200] ^= 1;
	is_int(-EBADMSG, stele_snapshot_load(&image, 0, &snapshot),
	       "both damaged: refused");
	memory[where.offset + 100] ^= 1;
	is_int(0, stele_snapshot_load(&image, 0, &snapshot),
	       "the first copy alone");
	stele_snapshot_release(&snapshot);
	is_int(-ENOENT, stele_snapshot_load(&image, 1, &snapshot),
	       "no such index");
	stele_image_release(&image);
	free(samples);
}

/* Names of a later segment may only be more than those of the one before. */
static void test_names(void)
{
	static const char *const few[] = {"cat", "dog", NULL};
	static const char *const more[] = {"cat", "dog", "ant", NULL};
	static const char *const other[] = {"cat", "Dog", "ant", NULL};
	static const struct {
		bool labels[2];
		const char *const *names[2];
		int wanted;
		const char *what;
	} all[] = {
		{{true, true}, {few, few}, 0, "the same names"},
		{{true, true}, {few, more}, 0, "a name more"},
		{{true, true}, {NULL, few}, 0, "first none, then some"},
		{{true, true}, {more, few}, -EUCLEAN, "a name less"},
		{{true, true}, {few, other}, -EUCLEAN, "another name"},
		{{true, true}, {few, NULL}, -EUCLEAN, "first some, then none"},
		{{true, false}, {few, NULL}, -EUCLEAN, "a field less"},
		{{false, true}, {NULL, NULL}, -EUCLEAN, "a field more"},
	};
	struct test_sample *samples = test_samples(4, 100, 6);

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		static struct test_image t;
		struct stele_snapshot snapshot;
		struct stele_device *dev;
		struct stele_image image;

		dev = test_memory(8u << 20, 512, 0);
		test_image_begin(&t, dev, 8u << 20);
		for (unsigned int j = 0; j < 2; j++)
			test_image_segment(&t, &(struct test_segment){
				.samples = samples + 2 * j, .count = 2,
				.labels = all[i].labels[j],
				.names = all[i].names[j]});
		test_image_snapshot(&t, "v1", NULL, 0);
		test_image_commit(&t);
		if (stele_image_load(test_image_end(&t), NULL, &image) < 0)
			bail("image does not load");
		is_int(all[i].wanted, stele_snapshot_load(&image, 0, &snapshot),
		       "two segments, %s", all[i].what);
		stele_snapshot_release(&snapshot);
		stele_image_release(&image);
	}
	free(samples);
}

/* ---- what segments have in common ----------------------------------------------- */

#define ALIKE 6u /* segments; the last half has a name more */

static void make_alike(struct stele_device **dev, struct stele_image *image)
{
	static const char *const few[] = {"cat", "dog", NULL};
	static const char *const more[] = {"cat", "dog", "ant", NULL};
	struct test_sample *samples = test_samples(ALIKE, 100, 7);
	static struct test_image t;

	test_image_begin(&t, test_memory(8u << 20, 512, 0), 8u << 20);
	for (unsigned int i = 0; i < ALIKE; i++)
		test_image_segment(&t, &(struct test_segment){
			.samples = samples + i, .count = 1, .labels = true,
			.names = i < ALIKE / 2 ? few : more});
	test_image_snapshot(&t, "v1", NULL, 0);
	test_image_commit(&t);
	free(samples);
	if (stele_device_open_fault(test_image_end(&t), NULL, 0, dev) < 0 ||
	    stele_image_load(*dev, NULL, image) < 0)
		bail("image does not load");
}

/* Descriptors side by side, and the names of one schema once. */
static void test_alike(void)
{
	const struct stele_fault_entry *log;
	struct stele_snapshot snapshot;
	struct stele_device *dev;
	struct stele_image image;
	uint64_t names[2] = {0};
	size_t count = 0, queued = 0, found = 0;

	make_alike(&dev, &image);
	stele_fault_log_clear(dev);
	is_int(0, stele_snapshot_load(&image, 0, &snapshot), "segments alike");
	log = stele_fault_log(dev, &count);
	is_uint(ALIKE + 2, count, "a read for each, and for each schema");
	for (uint32_t i = 0; i < 2; i++) {
		const struct stele_descriptor *d =
			&snapshot.segments[i * ALIKE / 2].descriptor;
		struct stele_section section;

		if (!stele_descriptor_find_section(d, STELE_BLOCK_NAMES, 1,
						   &section))
			names[i] = d->offset + section.offset;
	}
	for (size_t i = 0; i < count; i++) {
		queued += log[i].queued;
		found += !log[i].queued && (log[i].offset == names[0] ||
					    log[i].offset == names[1]);
	}
	is_uint(ALIKE, queued, "descriptors side by side");
	is_uint(2, found, "names of the first of each schema");
	ok(snapshot.segments[0].names == snapshot.segments[2].names &&
	   snapshot.segments[2].names != snapshot.segments[3].names &&
	   snapshot.segments[3].names == snapshot.segments[5].names,
	   "shared where they are the same");
	is_uint(3, snapshot.segments[5].names->field[1].count, "three names");
	is_string("ant", snapshot.segments[5].names->field[1].names[2],
		  "the last one");
	stele_snapshot_release(&snapshot);
	stele_image_release(&image);
}

/* The digest of another segment's schema, and fields that are not those. */
static void test_pretended(void)
{
	static _Alignas(4096) struct stele_disk_block block;
	struct stele_catalog_segment where;
	struct stele_snapshot snapshot;
	struct stele_device *dev;
	struct stele_image image;
	uint64_t offset;

	make_alike(&dev, &image);
	stele_catalog_segment(&image.catalog, 1, &where);
	for (unsigned int i = 0; i < 2; i++) {
		offset = where.offset + i * (where.size - STELE_BLOCK_SIZE);
		if (stele_device_read(dev, &block, offset, sizeof(block)) < 0)
			bail("read");
		block.payload[sizeof(struct stele_disk_descriptor)] ^= 0x20;
		stele_block_seal(&block, STELE_BLOCK_DESCRIPTOR, offset,
				 where.id);
		if (stele_device_write(dev, &block, offset, sizeof(block)) < 0)
			bail("write");
	}
	is_int(-EBADMSG, stele_snapshot_load(&image, 0, &snapshot),
	       "a schema that only claims to be known");
	stele_image_release(&image);
}

int main(void)
{
	plan_lazy();
	test_alike();
	test_pretended();
	check_shape(16, STELE_SLOT_ORDER_SIZE, 0);
	check_shape(64, STELE_SLOT_ORDER_SIZE, 4096);
	check_shape(512, STELE_SLOT_ORDER_SOURCE, 0);
	check_shape(4096, STELE_SLOT_ORDER_SIZE, 65536);
	check_ids();
	check_find();
	check_digest();
	check_boundary_bit();
	check_descriptors();
	test_names();
	return done();
}
