/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forge.c - changes an image as somebody would who can compute its checksums
 *
 *	forge payload|keys|order|column|lag FILE
 *	forge size FILE SIZE
 *	forge host FILE NAME
 *
 * payload: a byte of the first sample that has one. keys: the first two keys change
 * places. order: the first two ordinals do. column: a value of the first column is
 * one more. size: the first key says that its sample has SIZE bytes. What is changed is
 * sealed again, so that no checksum tells. lag: the newest superblock's mirror is what a
 * writer that is killed before it writes that leaves. host: who writes an unfinished image
 * does so on a machine of that name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/intent.h"
#include "format/keys.h"
#include "lib/image/copies.h"
#include "lib/image/section.h"
#include "lib/image/snapshot.h"
#include "tests/tap.h"

static struct stele_device *dev;
static struct stele_image image;
static struct stele_snapshot snapshot;
static const struct stele_segment *segment;
static uint64_t new_size;

static uint8_t *read_at(uint64_t offset, uint64_t size)
{
	uint8_t *data = stele_device_alloc(dev, size);

	if (!data || stele_device_read(dev, data, offset, size))
		bail("cannot read %ju bytes", (uintmax_t)size);
	return data;
}

static void write_at(uint8_t *data, uint64_t offset, uint64_t size)
{
	if (stele_device_write(dev, data, offset, size) || stele_device_flush(dev))
		bail("cannot write");
	free(data);
}

static void forge_payload(void)
{
	struct stele_record record;
	uint64_t number = 0, offset, size, begin, end;
	uint8_t *data, *slot;
	le32 crc;

	do {
		stele_segment_slot(segment, number, &offset, &size);
		begin = round_down(offset, STELE_BLOCK_SIZE);
		end = round_up(offset + size, STELE_BLOCK_SIZE);
		data = read_at(begin, end - begin);
		slot = data + (offset - begin);
		if (stele_record_decode(slot, size, &segment->shape, &record,
					NULL) < 0)
			bail("sample %ju is damaged", (uintmax_t)number);
	} while (!record.payload_size && ++number);
	slot[record.payload_size / 2] ^= 1;
	crc = le32_put(stele_record_crc(segment->descriptor.id, number, slot, size));
	memcpy(slot + size - sizeof(crc), &crc, sizeof(crc));
	write_at(data, begin, end - begin);
	printf("%.*s\n", (int)record.key_size, record.key);
}

static void swap_keys(struct stele_disk_block *block)
{
	uint8_t *first = block->payload + 8, number[6];
	le16 rest;
	uint8_t *second;

	memcpy(&rest, first + 2, sizeof(rest));
	second = first + 16 + le16_get(rest);
	memcpy(number, first + 4, sizeof(number));
	memcpy(first + 4, second + 4, sizeof(number));
	memcpy(second + 4, number, sizeof(number));
}

static void set_size(struct stele_disk_block *block)
{
	struct stele_disk_key *first =
		(void *)(block->payload + sizeof(struct stele_disk_keys_page));

	first->size = le48_put(new_size);
}

static void swap_order(struct stele_disk_block *block)
{
	const uint32_t width = stele_order_width(segment->descriptor.sample_count);
	const uint64_t first = stele_order_get(block, width, 0);

	stele_order_put(block, width, 0, stele_order_get(block, width, 1));
	stele_order_put(block, width, 1, first);
}

static void add_one(struct stele_disk_block *block)
{
	struct stele_disk_column *column = (void *)block->payload;

	column->values[0] = le64_put(le64_get(column->values[0]) + 1);
}

static void forge_section(uint32_t type, uint32_t field,
			  void (*change)(struct stele_disk_block *block))
{
	struct stele_section section;
	struct stele_disk_block *block;
	uint64_t offset;

	if (stele_descriptor_find_section(&segment->descriptor, type, field,
					  &section) < 0)
		bail("no such section");
	offset = segment->descriptor.offset + section.offset;
	block = (void *)read_at(offset, STELE_BLOCK_SIZE);
	change(block);
	stele_block_seal(block, type, offset, segment->descriptor.id);
	write_at((void *)block, offset, STELE_BLOCK_SIZE);
}

static void lag(void)
{
	const unsigned int mirror = image.slot + 2;
	struct stele_copies copies;
	uint8_t block[STELE_BLOCK_SIZE] __attribute__((aligned(STELE_BLOCK_SIZE)));

	if (stele_copies_read(dev, &copies) || copies.copy[!image.slot].error ||
	    stele_copies_write(dev, mirror, &copies.copy[!image.slot].sb, block))
		bail("cannot write a mirror");
}

static int forge_host(const char *file, const char *name)
{
	struct stele_intent_record *record = calloc(1, sizeof(*record));
	uint8_t *block;

	if (!record || stele_device_open_file(file, STELE_DEVICE_WRITE, NULL, NULL, &dev))
		bail("cannot open '%s'", file);
	block = read_at(STELE_INTENT_OFFSET, STELE_BLOCK_SIZE);
	if (stele_intent_decode((void *)block, STELE_INTENT_OFFSET, record, NULL))
		bail("nobody writes");
	memset(record->host, 0, sizeof(record->host));
	snprintf(record->host, sizeof(record->host), "%s", name);
	memset(record->boot, 0x5a, sizeof(record->boot));
	memset(record->machine, 0x5a, sizeof(record->machine));
	stele_intent_encode(record, STELE_INTENT_OFFSET, (void *)block);
	write_at(block, STELE_INTENT_OFFSET, STELE_BLOCK_SIZE);
	stele_device_close(dev);
	free(record);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "host"))
		return forge_host(argv[2], argv[3]);
	if (argc == 4 && !strcmp(argv[1], "size"))
		new_size = strtoull(argv[3], NULL, 10);
	else if (argc != 3)
		bail("forge payload|keys|order|column|lag FILE");
	if (stele_device_open_file(argv[2], STELE_DEVICE_WRITE, NULL, NULL, &dev) ||
	    stele_snapshot_open(dev, NULL, "v1", NULL, &image, &snapshot))
		bail("cannot open '%s'", argv[2]);
	segment = &snapshot.segments[0];
	if (!strcmp(argv[1], "payload"))
		forge_payload();
	else if (!strcmp(argv[1], "keys"))
		forge_section(STELE_BLOCK_KEYS, STELE_NO_FIELD, swap_keys);
	else if (!strcmp(argv[1], "size"))
		forge_section(STELE_BLOCK_KEYS, STELE_NO_FIELD, set_size);
	else if (!strcmp(argv[1], "order"))
		forge_section(STELE_BLOCK_ORDER, STELE_NO_FIELD, swap_order);
	else if (!strcmp(argv[1], "column"))
		forge_section(STELE_BLOCK_COLUMN, 1, add_one);
	else if (!strcmp(argv[1], "lag"))
		lag();
	else
		bail("cannot forge '%s'", argv[1]);
	stele_snapshot_release(&snapshot);
	stele_image_release(&image);
	return 0;
}
