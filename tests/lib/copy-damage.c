/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy-damage.c - what is wrong in the source is refused, and never published
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/section.h"
#include "tests/fixture/copies.h"
#include "tests/tap.h"

struct damage {
	unsigned int tried, refused, published;
};

/* This bit of the source is wrong, whenever it is read. */
static void try_bit(const struct copies_source *s, uint64_t offset,
		    uint8_t bit, struct damage *damage)
{
	uint8_t *byte = (uint8_t *)stele_device_memory(s->dev) + offset;
	struct stele_device *to = copies_target(512);
	struct stele_copy_report r = {.size = sizeof(r)};
	int ret;

	*byte ^= bit;
	ret = copies_copy(s->dev, "v3", to, 2, &r);
	*byte ^= bit;
	damage->tried++;
	if (ret == -EBADMSG || ret == -EUCLEAN)
		damage->refused++;
	else
		diag("at %ju: %d", (uintmax_t)offset, ret);
	damage->published += copies_has(to, "v3");
	stele_device_close(to);
}

static void check_damage(const struct copies_source *s)
{
	struct damage damage = {0};
	struct stele_image image;

	if (stele_image_load(s->dev, NULL, &image))
		bail("no source");
	for (uint32_t i = 0; i < COPIES_SEGMENTS; i++) {
		struct stele_catalog_segment where;
		uint64_t step, end;

		stele_catalog_segment(&image.catalog, i, &where);
		step = where.size / 5 + 1;
		end = where.offset + where.size - where.descriptor_size;
		for (uint64_t at = where.offset + 2 * where.descriptor_size;
		     at < end; at += step)
			try_bit(s, at, 16, &damage);
		/* The last sections. */
		for (uint64_t b = 1; b < 50; b += 9)
			try_bit(s, end - b * STELE_BLOCK_SIZE + 40, 1, &damage);
	}
	is_uint(damage.tried, damage.refused, "a bit that is wrong in the source: refused");
	is_uint(0, damage.published, "and nothing published");
	image.dev = NULL;
	stele_image_release(&image);
}

/* Checksums made good again: only the digests tell. */
static void check_forged(const struct copies_source *s)
{
	uint8_t *bytes = stele_device_memory(s->dev), saved[4096];
	struct stele_device *to = copies_target(512);
	struct stele_catalog_segment where;
	struct stele_copy_report r = {.size = sizeof(r)};
	struct stele_segment segment;
	struct stele_section section;
	struct stele_image image;
	uint64_t offset, size;
	uint8_t *slot;
	le32 crc;

	if (stele_image_load(s->dev, NULL, &image))
		bail("no source");
	stele_catalog_segment(&image.catalog, 2, &where);
	if (stele_segment_load_bare(&image, &where, &segment))
		bail("no segment");
	stele_segment_slot(&segment, 17, &offset, &size);
	slot = bytes + offset;
	memcpy(saved, slot, size);
	slot[0] ^= 1;
	crc = le32_put(stele_record_crc(where.id, 17, slot, size));
	memcpy(slot + size - 4, &crc, 4);
	is_int(-EBADMSG, copies_copy(s->dev, "v3", to, 2, &r), "a forged sample");
	memcpy(slot, saved, size);
	ok(!copies_has(to, "v3"), "nothing published");
	for (uint32_t type = STELE_BLOCK_DIGESTS; type <= STELE_BLOCK_TREE;
	     type++) {
		struct stele_disk_block *block;

		/* A new target: the old one may have this block whole. */
		stele_device_close(to);
		to = copies_target(512);
		stele_descriptor_find_section(&segment.descriptor, type,
					      STELE_NO_FIELD, &section);
		offset = where.offset + section.offset;
		block = (void *)(bytes + offset);
		memcpy(saved, block, sizeof(*block));
		block->payload[3000] ^= 1;
		stele_block_seal(block, type, offset, where.id);
		is_int(-EBADMSG, copies_copy(s->dev, "v3", to, 2, &r),
		       "a forged block of the %s",
		       type == STELE_BLOCK_TREE ? "tree" : "digests");
		memcpy(block, saved, sizeof(*block));
		ok(!copies_has(to, "v3"), "nothing published");
	}
	is_int(0, copies_copy(s->dev, "v3", to, 2, &r), "without: copied");
	ok(copies_same(s->dev, to, "v3"), "and right");
	stele_segment_release(&segment);
	image.dev = NULL;
	stele_image_release(&image);
	stele_device_close(to);
}

/* Zeros that no digest covers: between payload and key, and behind a slot. */
static void check_padding(const struct copies_source *s)
{
	uint8_t *bytes = stele_device_memory(s->dev);
	struct stele_catalog_segment where;
	struct stele_segment segment;
	struct stele_image image;
	unsigned int tried = 0, refused = 0;

	if (stele_image_load(s->dev, NULL, &image))
		bail("no source");
	stele_catalog_segment(&image.catalog, 0, &where);
	if (stele_segment_load_bare(&image, &where, &segment))
		bail("no segment");
	for (uint64_t n = 0; n < where.sample_count; n++) {
		struct stele_device *to = copies_target(512);
		struct stele_copy_report r = {.size = sizeof(r)};
		struct stele_record record;
		uint64_t offset, size, at;
		const char *why;

		stele_segment_slot(&segment, n, &offset, &size);
		if (stele_record_decode(bytes + offset, size, &segment.shape,
					&record, &why))
			bail("%s", why);
		at = offset + record.payload_size;
		if ((uint8_t *)record.key > bytes + at) {
			bytes[at] ^= 1;
			refused += copies_copy(s->dev, "v1", to, 2, &r) ==
				   -EBADMSG;
			bytes[at] ^= 1;
			tried++;
		}
		stele_device_close(to);
	}
	is_uint(tried, refused, "padding of %u slots of any size: refused",
		tried);
	stele_segment_release(&segment);
	image.dev = NULL;
	stele_image_release(&image);
}

int main(void)
{
	struct copies_source small = {0};

	plan_lazy();
	test_log_init(&copies_log);
	copies_source(&small, 512);
	check_damage(&small);
	check_forged(&small);
	check_padding(&small);
	copies_source_drop(&small);
	return done();
}
