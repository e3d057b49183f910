/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.c - open, walk and verify an image that was tampered with
 *
 * The input is a list of changes to a small valid image. The first byte says what is made good
 * afterwards: bit 0 the checksums of records, bit 1 those of blocks, bit 2 that of
 * the catalog in the superblocks; so that the change gets past them and
 * meets what stands behind; bit 3 takes the other image, of many snapshots that share all
 * they have. Each change is five bytes: place (three, little-endian, modulo
 * what the image occupies), kind (set, add, xor, copy 8 bytes from elsewhere), value.
 *
 * Whatever the image says, what it costs is bounded by its size; and who opened it by the
 * valid image's digest is handed out what that holds, or nothing, whichever checksums
 * were made good.
 */
#include <stdlib.h>
#include <string.h>

#include "format/crc32c.h"
#include "lib/image/proof.h"
#include "lib/image/section.h"
#include "lib/verify/verify.h"
#include "tests/fixture/costly.h"
#include "tests/fuzz/input.h"
#include "tests/fixture/image.h"
#include "tests/tap.h"

#define IMAGE_SIZE  (UINT64_C(0x200000) + 48 * 4096)
#define CHANGES_MAX 64u
/* Of what lies behind the superblocks; and memory, which checks in pieces need, too. */
#define READ_TIMES  12u
/* Before damage is told, all superblocks are read again: has somebody committed meanwhile? */
#define READ_DAMAGE (6u * STELE_BLOCK_SIZE)
#define MEMORY_MAX  (UINT64_C(32) << 20)

/* What is restored before each run: superblocks, mirrors, data. */
static const struct {
	uint64_t offset, size;
} areas[] = {
	{0x1000, 0x2000},
	{0x100000, 0x2000},
	{0x200000, IMAGE_SIZE - 0x200000},
};
#define AREAS_SIZE (0x4000 + (IMAGE_SIZE - 0x200000))

struct listed_key {
	char *key;
	uint32_t key_size;
	uint64_t number, size;
};

static struct base {
	struct stele_device *dev; /* counts */
	struct listed_key *keys[TEST_SEGMENTS_MAX]; /* of the layout's segments */
	uint8_t *memory, *valid;
	struct stele_superblock sb; /* of the valid image, newest */
	struct stele_snapshot layout;
} bases[2];
/* Of the one at hand. */
static struct stele_device *dev;
static uint8_t *memory, *valid;
static struct stele_superblock sb;
static struct stele_snapshot layout;
static struct listed_key *const *keys;

static struct stele_device *make_small(void)
{
	static const char *const names[] = {"a", "b", NULL};
	static const uint64_t deleted[] = {1, 4};
	const struct test_ref refs[] = {{0, deleted, 2}, {1, NULL, 0}};
	static struct test_image t;
	struct test_sample *samples = test_samples(140, 60, 1);
	struct test_segment in = {
		.samples = samples, .count = 130, .labels = true,
		.names = names,
	};
	struct stele_device *made;

	if (stele_device_open_memory(IMAGE_SIZE, 512, &made) < 0 ||
	    test_image_begin(&t, made, IMAGE_SIZE) < 0 ||
	    test_image_segment(&t, &in) < 0 ||
	    test_image_snapshot(&t, "one", refs, 1) < 0 ||
	    test_image_commit(&t) < 0)
		bail("no image");
	in.samples = samples + 130;
	in.count = 10;
	in.granule = 64;
	in.boundary = 4096;
	if (test_image_segment(&t, &in) < 0 ||
	    test_image_snapshot(&t, "two", refs, 2) < 0 ||
	    test_image_commit(&t) < 0)
		bail("no image");
	free(samples);
	return costly_wrap(test_image_end(&t));
}

static struct stele_device *make_shared(void)
{
	const struct costly how = {
		.segments = 2, .snapshots = 100, .samples = 12, .deleted = 10,
		.image_size = IMAGE_SIZE,
	};

	return costly_make(&how);
}

static struct listed_key *list_keys(const struct stele_image *image,
				    const struct stele_segment *segment)
{
	struct listed_key *list = calloc(segment->descriptor.sample_count + 1,
					 sizeof(*list));
	struct stele_keys_walk walk;
	uint64_t i = 0;

	if (!list || stele_keys_walk_open(image, segment, NULL, 0, &walk) < 0)
		bail("no keys");
	while (stele_keys_walk_next(&walk) == 1) {
		const struct stele_key *key = &walk.cursor.key;

		list[i] = (struct listed_key){
			.key = strndup(key->key, key->key_size),
			.key_size = key->key_size,
			.number = key->number,
			.size = key->size,
		};
		i++;
	}
	stele_keys_walk_release(&walk);
	return list;
}

static void make_base(struct base *base, struct stele_device *made)
{
	struct stele_image image;

	base->dev = made;
	base->memory = costly_memory(made);
	base->valid = malloc(IMAGE_SIZE);
	if (!base->valid || stele_image_load(made, NULL, &image) < 0 ||
	    stele_snapshot_load(&image, 1, &base->layout) < 0)
		bail("no image");
	memcpy(base->valid, base->memory, IMAGE_SIZE);
	base->sb = image.sb;
	for (uint32_t i = 0; i < base->layout.segment_count; i++)
		base->keys[i] = list_keys(&image, &base->layout.segments[i]);
	image.dev = NULL;
	stele_image_release(&image);
}

static void take_base(const struct base *base)
{
	dev = base->dev;
	memory = base->memory;
	valid = base->valid;
	sb = base->sb;
	layout = base->layout;
	keys = base->keys;
}

/* Place n of all that the image occupies. */
static uint8_t *place(uint64_t n)
{
	n %= AREAS_SIZE - 8;
	for (size_t i = 0; i < 3; i++) {
		if (n < areas[i].size)
			return memory + areas[i].offset + n;
		n -= areas[i].size;
	}
	return memory + areas[0].offset;
}

static void change(const uint8_t *c)
{
	uint64_t n = c[0] | (uint64_t)c[1] << 8 | (uint64_t)c[2] << 16;
	uint8_t *p = place(n);

	switch (c[3] % 4) {
	case 0:
		*p = c[4];
		break;
	case 1:
		*p = (uint8_t)(*p + c[4]);
		break;
	case 2:
		*p ^= c[4];
		break;
	default:
		memmove(p, place(n + UINT64_C(509) * c[4]), 8);
	}
}

/* ---- checksums from the bottom up ------------------------------------------- */

static void repair_records(void)
{
	for (uint32_t i = 0; i < layout.segment_count; i++) {
		const struct stele_segment *s = &layout.segments[i];

		for (uint64_t n = 0; n < s->descriptor.sample_count; n++) {
			uint64_t offset, size;
			le32 crc;

			stele_segment_slot(s, n, &offset, &size);
			crc = le32_put(stele_record_crc(s->descriptor.id, n,
							memory + offset, size));
			memcpy(memory + offset + size - sizeof(crc), &crc,
			       sizeof(crc));
		}
	}
}

static void repair_block(uint64_t offset)
{
	struct stele_disk_block *block = (void *)(memory + offset);

	/* Where there was a block, and not a slot. */
	if (memcmp(valid + offset, STELE_BLOCK_MAGIC, 8) == 0)
		block->crc = le32_put(stele_block_crc(block));
}

static void repair(uint8_t what)
{
	static const uint64_t copies[] = STELE_SUPERBLOCK_OFFSETS;
	const uint64_t catalog = sb.catalog_offset;

	if (what & 1)
		repair_records();
	for (uint64_t at = 0x200000; (what & 2) && at < IMAGE_SIZE; at += 4096)
		repair_block(at);
	for (unsigned int i = 0; (what & 4) && i < 4; i += 2) {
		struct stele_disk_superblock *copy =
			(void *)(memory + copies[i]);

		copy->catalog_crc = le32_put(stele_crc32c(
			0, memory + catalog, sb.catalog_size));
	}
	for (unsigned int i = 0; (what & 2) && i < 4; i++)
		repair_block(copies[i]);
}

/* ---- all that a reader does ---------------------------------------------------- */

static void read_sample(const struct stele_image *image,
			const struct stele_snapshot *snapshot,
			struct stele_proof *proof, uint64_t id)
{
	const struct stele_segment *segment;
	uint64_t number, offset, size, back;
	struct stele_record record;
	uint8_t digest[32];

	if (stele_snapshot_locate(snapshot, id, &segment, &number) < 0)
		return;
	input_assert(stele_snapshot_id(snapshot, segment, number, &back) == 0);
	input_assert(back == id);
	stele_segment_slot(segment, number, &offset, &size);
	input_assert(range_ok(offset, size, IMAGE_SIZE));
	if (stele_record_decode(memory + offset, size, &segment->shape, &record,
				NULL) < 0)
		return;
	input_touch(record.payload, record.payload_size);
	input_touch(record.key, record.key_size);
	input_touch(record.scalars, segment->shape.scalar_count * 8);
	test_hash_record(proof->hash, memory + offset, size, &record, digest);
	stele_proof_check(proof, segment, number, digest);
	stele_segment_find_key(image, segment, record.key, record.key_size,
			       &number, &size);
}

static void walk_keys(const struct stele_image *image,
		      const struct stele_segment *segment)
{
	struct stele_keys_walk walk;

	if (stele_keys_walk_open(image, segment, "class1", 6, &walk) < 0)
		return;
	while (stele_keys_walk_next(&walk) == 1)
		input_touch(walk.cursor.key.key, walk.cursor.key.key_size);
	stele_keys_walk_release(&walk);
}

static void read_snapshot(struct stele_image *image, uint32_t index)
{
	struct stele_snapshot snapshot;
	struct stele_proof proof;

	if (stele_snapshot_load(image, index, &snapshot) < 0)
		return;
	if (stele_proof_init(&proof, image, 0) < 0)
		bail("no proof");
	for (uint64_t id = 0; id < snapshot.sample_count; id += 13)
		read_sample(image, &snapshot, &proof, id);
	stele_proof_release(&proof);
	for (uint32_t i = 0; i < snapshot.segment_count; i++)
		walk_keys(image, &snapshot.segments[i]);
	stele_snapshot_release(&snapshot);
}

/* ---- all that a pin is of ---------------------------------------------------- */

static void check_pinned_sample(const struct stele_snapshot *snapshot,
				struct stele_proof *proof, uint64_t id)
{
	const struct stele_segment *segment, *was;
	struct stele_record record, wanted;
	uint64_t number, offset, size;
	uint8_t digest[32];

	if (stele_snapshot_locate(snapshot, id, &segment, &number) < 0)
		return;
	stele_segment_slot(segment, number, &offset, &size);
	if (stele_record_decode(memory + offset, size, &segment->shape, &record,
				NULL) < 0)
		return;
	test_hash_record(proof->hash, memory + offset, size, &record, digest);
	if (stele_proof_check(proof, segment, number, digest) < 0)
		return;
	input_assert(stele_snapshot_locate(&layout, id, &was, &number) == 0);
	stele_segment_slot(was, number, &offset, &size);
	input_assert(stele_record_decode(valid + offset, size, &was->shape,
					 &wanted, NULL) == 0);
	input_assert(record.payload_size == wanted.payload_size &&
		     record.key_size == wanted.key_size);
	input_assert(!memcmp(record.payload, wanted.payload,
			     record.payload_size));
	input_assert(!memcmp(record.key, wanted.key, record.key_size));
	input_assert(!memcmp(record.scalars, wanted.scalars,
			     was->shape.scalar_count * sizeof(le64)));
}

static void check_pinned_keys(const struct stele_image *image,
			      const struct stele_segment *segment,
			      const struct listed_key *wanted)
{
	struct stele_keys_walk walk;
	int ret;

	if (stele_keys_walk_open(image, segment, NULL, 0, &walk) < 0)
		return;
	for (; (ret = stele_keys_walk_next(&walk)) == 1; wanted++) {
		const struct stele_key *key = &walk.cursor.key;

		input_assert(wanted->key &&
			     key->key_size == wanted->key_size &&
			     !memcmp(key->key, wanted->key, key->key_size));
		input_assert(key->number == wanted->number &&
			     key->size == wanted->size);
	}
	input_assert(ret < 0 || !wanted->key);
	stele_keys_walk_release(&walk);
}

static void check_pin(void)
{
	struct stele_snapshot snapshot;
	struct stele_proof proof;
	struct stele_image image;

	if (stele_snapshot_open(dev, NULL, NULL, layout.digest, &image,
				&snapshot) < 0)
		return;
	if (stele_proof_init(&proof, &image, 0) < 0 ||
	    stele_prover_new(&image, &image.prover) < 0)
		bail("no proof");
	for (uint64_t id = 0; id < snapshot.sample_count; id += 3)
		check_pinned_sample(&snapshot, &proof, id);
	input_assert(snapshot.segment_count == layout.segment_count);
	for (uint32_t i = 0; i < snapshot.segment_count; i++)
		check_pinned_keys(&image, &snapshot.segments[i], keys[i]);
	stele_proof_release(&proof);
	stele_snapshot_release(&snapshot);
	image.dev = NULL;
	stele_image_release(&image);
}

static void touch_damage(void *user, const struct stele_damage *damage)
{
	(void)user;
	input_touch(damage->what, strlen(damage->what));
	input_touch(damage->detail, strlen(damage->detail));
	input_touch(damage->key, damage->key ? damage->key_size : 0);
}

/* Since the last clear. */
static void check_cost(uint64_t damaged)
{
	const struct costly_count count = costly_count(dev);

	input_assert(count.bytes <=
		     READ_TIMES * (IMAGE_SIZE - 0x200000) + damaged * READ_DAMAGE);
	input_assert(count.memory <= MEMORY_MAX);
}

static void list_image(const struct stele_image *image)
{
	struct stele_snapshot_info info = {.size = sizeof(info)};

	costly_clear(dev);
	for (uint32_t i = 0; i < image->catalog.counts.snapshots; i++)
		stele_image_snapshot(image, i, &info);
	input_assert(costly_count(dev).reads == 0);
}

static void read_image(bool changed)
{
	const struct stele_verify_opts opts = {
		.size = sizeof(opts), .jobs = 1, .damage = touch_damage,
	};
	struct stele_verify_report report = {.size = sizeof(report)};
	struct stele_image image;
	int ret;

	ret = stele_image_load(dev, NULL, &image);
	input_assert(changed || ret == 0);
	if (ret < 0)
		return;
	list_image(&image);
	for (uint32_t i = 0; i < image.catalog.counts.snapshots && i < 8; i++)
		read_snapshot(&image, i);
	costly_clear(dev);
	ret = stele_verify_image(&image, -1, &opts, &report);
	input_assert(changed || ret == 0);
	check_cost(report.damaged);
	image.dev = NULL;
	stele_image_release(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!bases[0].dev) {
		make_base(&bases[0], make_small());
		make_base(&bases[1], make_shared());
	}
	take_base(&bases[size && data[0] & 8]);
	for (size_t i = 0; i < 3; i++)
		memcpy(memory + areas[i].offset, valid + areas[i].offset,
		       areas[i].size);
	for (size_t i = 1; i + 5 <= size && i / 5 < CHANGES_MAX; i += 5)
		change(data + i);
	if (size)
		repair(data[0]);
	read_image(memcmp(memory, valid, IMAGE_SIZE) != 0);
	check_pin();
	return 0;
}
