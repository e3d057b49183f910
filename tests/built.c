/* SPDX-License-Identifier: Apache-2.0 */
/*
 * built.c - reads an image back, and compares it with its source
 */
#include "tests/built.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/digest.h"
#include "lib/image/proof.h"
#include "lib/image/section.h"
#include "tests/image.h"
#include "tests/tap.h"

struct built {
	struct stele_device *dev;
	const struct fake *fake;
	const char *const *gone;
	struct stele_image image;
	struct stele_snapshot snapshot;
	const struct stele_segment *segment;
	struct stele_proof proof;
	uint64_t *sorted; /* indexes of files, in key order */
	uint64_t *numbers; /* by file index */
};

static bool is_gone(const struct built *b, const char *key)
{
	for (const char *const *p = b->gone; p && *p; p++)
		if (!strcmp(*p, key))
			return true;
	return false;
}

static const struct fake_file *file_of(const struct built *b, const char *key,
				       size_t size)
{
	for (size_t i = 0; i < b->fake->count; i++)
		if (strlen(b->fake->files[i].key) == size &&
		    !memcmp(b->fake->files[i].key, key, size))
			return &b->fake->files[i];
	return NULL;
}

static void *read_slot(const struct built *b, uint64_t number, void **buffer,
		       uint64_t *slot_size)
{
	uint64_t offset, begin, size;

	stele_segment_slot(b->segment, number, &offset, slot_size);
	begin = round_down(offset, 4096);
	size = round_up(offset + *slot_size, 4096) - begin;
	*buffer = stele_device_alloc(b->dev, size);
	if (!*buffer || stele_device_read(b->dev, *buffer, begin, size) < 0)
		bail("cannot read slot %" PRIu64, number);
	return (char *)*buffer + (offset - begin);
}

static bool payload_ok(const struct fake_file *file,
		       const struct stele_record *record)
{
	if (!file || file->size != record->payload_size)
		return false;
	for (uint64_t i = 0; i < record->payload_size; i += 1 + i / 64)
		if (record->payload[i] !=
		    fake_byte(file->key, strlen(file->key), i))
			return false;
	return true;
}

static int64_t label_of(const struct built *b, const struct fake_file *file)
{
	const struct stele_names *names;
	size_t size = strcspn(file->key, "/");

	if (b->segment->descriptor.field_count < 2)
		return 0;
	names = &b->segment->names[1];
	for (uint32_t i = 0; i < names->count; i++)
		if (file->key[size] && strlen(names->names[i]) == size &&
		    !memcmp(names->names[i], file->key, size))
			return i;
	return -1;
}

static bool padding_ok(const uint8_t *slot, uint64_t slot_size,
		       const struct stele_record *record)
{
	uint64_t end = (uint64_t)((const uint8_t *)record->key - slot);

	for (uint64_t i = record->payload_size; i < end; i++)
		if (slot[i])
			return false;
	return end < slot_size;
}

static bool record_ok(struct built *b, uint64_t number)
{
	const uint64_t id = b->segment->descriptor.id;
	const struct fake_file *file;
	struct stele_record record;
	uint8_t digest[32];
	uint64_t slot_size, snapshot_id;
	void *buffer;
	const uint8_t *slot = read_slot(b, number, &buffer, &slot_size);
	int live = stele_snapshot_id(&b->snapshot, b->segment, number,
				     &snapshot_id);
	bool good;

	good = stele_record_decode(slot, slot_size, &b->segment->shape, &record,
				   NULL) == 0 &&
	       record.crc == stele_record_crc(id, number, slot, slot_size) &&
	       padding_ok(slot, slot_size, &record);
	test_hash_record(b->proof.hash, slot, slot_size, &record, digest);
	good = good && stele_proof_check(&b->proof, b->segment, number,
					 digest) == 0;
	if (good && record.flags & STELE_RECORD_VOID) {
		good = live == -ENOENT && record.payload_size == 0 &&
		       record.key_size == 0;
	} else if (good) {
		file = file_of(b, record.key, record.key_size);
		good = live == 0 && payload_ok(file, &record) &&
		       !is_gone(b, file->key) &&
		       (b->segment->shape.scalar_count == 0 ||
			(int64_t)le64_get(record.scalars[0]) ==
				label_of(b, file));
	}
	if (!good)
		diag("record %" PRIu64 ": flags %x, live %d", number,
		     record.flags, live);
	free(buffer);
	return good;
}

static void check_records(struct built *b, const char *what)
{
	uint64_t count = b->segment->descriptor.sample_count, bad = 0;

	for (uint64_t i = 0; i < count && bad < 5; i++)
		bad += !record_ok(b, i);
	is_uint(0, bad, "%s: records", what);
}

static void check_keys(struct built *b, const char *what)
{
	struct stele_keys_walk walk;
	uint64_t bad = 0, seen = 0;
	int ret;

	for (size_t i = 0; i < b->fake->count; i++) {
		const struct fake_file *file = &b->fake->files[i];
		uint64_t size = 0;

		bad += stele_segment_find_key(&b->image, b->segment, file->key,
					      strlen(file->key),
					      &b->numbers[i], &size) != 0 ||
		       size != file->size;
	}
	is_uint(0, bad, "%s: keys are found", what);
	ret = stele_keys_walk_open(&b->image, b->segment, "", 0, &walk);
	while (ret == 0 && (ret = stele_keys_walk_next(&walk)) == 1) {
		seen++;
		ret = 0;
	}
	stele_keys_walk_release(&walk);
	ok(ret == 0 && seen == b->fake->count, "%s: keys are all", what);
}

static const struct fake *sorting;

static int compare(const void *a, const void *b)
{
	const char *x = sorting->files[*(const uint64_t *)a].key;
	const char *y = sorting->files[*(const uint64_t *)b].key;

	return stele_key_compare(x, strlen(x), y, strlen(y));
}

static uint64_t order_get(struct built *b, const struct stele_section *section,
			  uint64_t array, uint64_t index)
{
	const uint64_t count = b->segment->descriptor.sample_count;
	const uint32_t width = stele_order_width(count);
	const uint32_t per_block = stele_order_per_block(width);
	struct stele_disk_block *block = stele_device_alloc(b->dev, 4096);
	uint64_t value;

	if (stele_section_read(&b->image, b->segment, section,
			       array * stele_order_blocks(count) +
				       index / per_block,
			       1, block) < 0)
		bail("cannot read order");
	value = stele_order_get(block, width, (uint32_t)(index % per_block));
	free(block);
	return value;
}

static void check_order(struct built *b, const char *what)
{
	struct stele_section section;
	uint64_t bad = 0;

	if (stele_descriptor_find_section(&b->segment->descriptor,
					  STELE_BLOCK_ORDER, STELE_NO_FIELD,
					  &section) < 0)
		bail("no order section");
	sorting = b->fake;
	for (uint64_t i = 0; i < b->fake->count; i++)
		b->sorted[i] = i;
	qsort(b->sorted, b->fake->count, sizeof(*b->sorted), compare);
	for (uint64_t i = 0; i < b->fake->count; i++) {
		uint64_t number = b->numbers[b->sorted[i]];

		bad += order_get(b, &section, 0, i) != number;
		bad += order_get(b, &section, 1, number) != i;
	}
	is_uint(0, bad, "%s: order, both ways", what);
}

static int64_t column_get(struct built *b, const struct stele_section *section,
			  uint64_t number)
{
	struct stele_disk_block *block = stele_device_alloc(b->dev, 4096);
	const struct stele_disk_column *column;
	int64_t value;

	if (stele_section_read(&b->image, b->segment, section,
			       number / STELE_COLUMN_PER_BLOCK, 1, block) < 0)
		bail("cannot read column");
	column = (const struct stele_disk_column *)block->payload;
	value = (int64_t)le64_get(
		column->values[number % STELE_COLUMN_PER_BLOCK]);
	if (value < (int64_t)le64_get(column->min) ||
	    value > (int64_t)le64_get(column->max))
		value = INT64_MIN;
	free(block);
	return value;
}

static void check_column(struct built *b, const char *what)
{
	struct stele_section section;
	uint64_t bad = 0;

	if (b->segment->descriptor.field_count < 2)
		return;
	if (stele_descriptor_find_section(&b->segment->descriptor,
					  STELE_BLOCK_COLUMN, 1, &section) < 0)
		bail("no column");
	for (uint64_t i = 0; i < b->fake->count; i++) {
		const struct fake_file *file = &b->fake->files[i];

		bad += column_get(b, &section, b->numbers[i]) !=
		       (is_gone(b, file->key) ? 0 : label_of(b, file));
	}
	is_uint(0, bad, "%s: labels", what);
}

static void check_sums(struct built *b, const char *what)
{
	const struct stele_descriptor *d = &b->segment->descriptor;
	uint64_t payload = 0, records = 0, live = 0;

	for (size_t i = 0; i < b->fake->count; i++) {
		const struct fake_file *file = &b->fake->files[i];

		records += stele_record_tail_fixed(&b->segment->shape);
		if (is_gone(b, file->key))
			continue;
		payload += file->size;
		records += file->size + strlen(file->key);
		live++;
	}
	is_uint(payload, d->payload_size, "%s: sum of payloads", what);
	is_uint(records, d->records_size, "%s: sum of records", what);
	is_uint(live, b->snapshot.sample_count, "%s: live samples", what);
}

void built_check(struct stele_device *dev, const struct fake *fake,
		 const char *const *gone, const char *what)
{
	struct built b = {.dev = dev, .fake = fake, .gone = gone};
	int ret = stele_image_load(dev, NULL, &b.image);

	if (ret == 0)
		ret = stele_snapshot_load(&b.image, 0, &b.snapshot);
	if (!is_int(0, ret, "%s: snapshot loads", what)) {
		b.image.dev = NULL;
		stele_image_release(&b.image);
		return;
	}
	b.segment = &b.snapshot.segments[0];
	b.sorted = calloc(fake->count + 1, sizeof(*b.sorted));
	b.numbers = calloc(fake->count + 1, sizeof(*b.numbers));
	if (!b.sorted || !b.numbers ||
	    stele_proof_init(&b.proof, &b.image, 0) < 0)
		bail("no memory");
	check_sums(&b, what);
	if (fake->count) {
		check_records(&b, what);
		check_keys(&b, what);
		check_order(&b, what);
		check_column(&b, what);
	}
	stele_proof_release(&b.proof);
	free(b.numbers);
	free(b.sorted);
	stele_snapshot_release(&b.snapshot);
	b.image.dev = NULL;
	stele_image_release(&b.image);
}
