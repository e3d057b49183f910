/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.c - images for tests, see image.h
 */
#include "tests/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/copies.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

static int write_segment(struct test_image *t, const struct test_composed *c)
{
	const uint64_t piece = t->piece ? t->piece : c->d.size;
	uint8_t *aligned;
	int ret = 0;

	if (!range_ok(c->d.offset, c->d.size, t->image.sb.image_size))
		return -ENOSPC;
	aligned = stele_device_alloc(t->image.dev, c->d.size);
	if (!aligned)
		bail("no memory for a test image");
	memcpy(aligned, c->bytes, c->d.size);
	for (uint64_t at = 0; at < c->d.size && ret == 0; at += piece)
		ret = stele_device_write(
			t->image.dev, aligned + at, c->d.offset + at,
			c->d.size - at < piece ? c->d.size - at : piece);
	free(aligned);
	return ret;
}

/* Compose it, and find the payload sizes by number. */
static uint64_t *compose(const struct test_segment *in, uint64_t id,
			 uint64_t offset, struct test_composed *out)
{
	uint64_t *sizes = calloc(in->count + 1, sizeof(*sizes));
	uint64_t *numbers = calloc(in->count + 1, sizeof(*numbers));
	struct test_segment segment = *in;

	if (!sizes || !numbers)
		bail("no memory for a test image");
	if (!segment.numbers)
		segment.numbers = numbers;
	test_segment_compose(&segment, id, offset, out);
	for (uint64_t i = 0; i < in->count; i++)
		if (!in->samples[i].gone)
			sizes[segment.numbers[i]] = in->samples[i].size;
	free(numbers);
	return sizes;
}

int test_image_segment(struct test_image *t, const struct test_segment *segment)
{
	const uint32_t index = t->counts.segments;
	struct stele_digest_part *part = &t->parts[index];
	uint64_t offset = t->image.sb.high_water;
	struct test_composed c;
	uint64_t *sizes;
	int ret;

	if (index == TEST_SEGMENTS_MAX)
		bail("too many segments");
	if (segment->boundary) {
		offset = round_up(offset, segment->boundary);
		t->incompat |= STELE_FEATURE_BOUNDARY;
	}
	sizes = compose(segment,
			segment->id ? segment->id : 0x5e60000u + index + 1,
			offset, &c);
	ret = write_segment(t, &c);
	if (ret == 0) {
		t->sizes[index] = sizes;
		sizes = NULL;
		t->image.sb.high_water = offset + c.d.size;
		t->segments[index] = (struct stele_catalog_segment){
			.id = c.d.id,
			.offset = offset,
			.size = c.d.size,
			.descriptor_size = c.descriptor_size,
			.sample_count = c.d.sample_count};
		memcpy(part->schema_digest, c.d.schema_digest, 32);
		memcpy(part->tree_root, c.d.tree_root, 32);
		part->sample_count = c.d.sample_count;
		t->counts.segments++;
	}
	free(sizes);
	free(c.bytes);
	return ret;
}

static uint64_t live_payload(const struct test_image *t,
			     const struct test_ref *ref)
{
	const uint64_t *sizes = t->sizes[ref->segment];
	uint64_t sum = 0;

	for (uint64_t i = 0; i < t->segments[ref->segment].sample_count; i++)
		sum += sizes[i];
	for (uint64_t i = 0; i < ref->deleted_count; i++)
		sum -= sizes[ref->deleted[i]];
	return sum;
}

static int add_ref(struct test_image *t, const struct test_ref *in,
		   struct stele_catalog_snapshot *snapshot,
		   struct stele_digest_part *part)
{
	struct stele_catalog_ref *ref = &t->refs[t->counts.refs];
	int ret = 0;

	*ref = (struct stele_catalog_ref){.segment = in->segment};
	*part = t->parts[in->segment];
	part->deleted = in->deleted;
	part->deleted_count = in->deleted_count;
	if (in->deleted_count) {
		t->incompat |= STELE_FEATURE_DELETED;
		ret = stele_image_write_deleted(
			&t->image, t->image.sb.high_water, in->deleted,
			in->deleted_count, ref);
	}
	if (ret < 0)
		return ret;
	t->image.sb.high_water += stele_image_deleted_size(in->deleted_count);
	t->counts.refs++;
	snapshot->ref_count++;
	snapshot->sample_count += part->sample_count - in->deleted_count;
	snapshot->payload_size += live_payload(t, in);
	return 0;
}

int test_image_snapshot(struct test_image *t, const char *name,
			const struct test_ref *refs, uint32_t count)
{
	const uint32_t index = t->counts.snapshots;
	struct stele_catalog_snapshot *s = &t->snapshots[index];
	struct stele_digest_part parts[TEST_SEGMENTS_MAX];
	struct stele_hash *hash;
	int ret;

	if (index == TEST_SNAPSHOTS_MAX || stele_hash_new(&hash) < 0)
		bail("too many snapshots");
	memset(s, 0, sizeof(*s));
	strncpy(s->name, name, sizeof(s->name) - 1);
	s->id = index + 1;
	s->parent = index;
	s->time = 1700000000 + index;
	s->first_ref = t->counts.refs;
	if (!refs)
		count = t->counts.segments;
	for (uint32_t i = 0; i < count; i++) {
		const struct test_ref whole = {.segment = i};

		ret = add_ref(t, refs ? &refs[i] : &whole, s, &parts[i]);
		if (ret < 0)
			goto out;
	}
	stele_hash_snapshot(hash, parts, count, s->digest);
	t->counts.snapshots++;
	ret = 0;
out:
	stele_hash_free(hash);
	return ret;
}

/* What the next catalog leaves unused below it. */
static void find_free(struct test_image *t)
{
	struct stele_extents used = {0};
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < t->counts.segments; i++)
		ret = stele_extents_add(&used, t->segments[i].offset,
					t->segments[i].size);
	for (uint32_t i = 0; ret == 0 && i < t->counts.refs; i++)
		ret = stele_extents_add(
			&used, t->refs[i].deleted_offset,
			stele_image_deleted_size(t->refs[i].deleted_count));
	stele_extents_release(&t->free);
	if (ret == 0)
		ret = stele_extents_gaps(&used, t->image.sb.high_water,
					 &t->free);
	stele_extents_release(&used);
	if (ret < 0)
		bail("no memory");
	t->counts.free = t->free.count;
}

/* Since this very commit, if nothing refers to it. */
static void find_unused(struct test_image *t)
{
	for (uint32_t i = 0; i < t->counts.segments; i++) {
		bool used = false;

		for (uint32_t j = 0; j < t->counts.refs; j++)
			used |= t->refs[j].segment == i;
		t->segments[i].unused_since =
			used ? 0 : 1700000100 + t->counts.snapshots;
	}
}

void test_image_draft(struct test_image *t, struct stele_catalog_draft *draft)
{
	find_free(t);
	find_unused(t);
	*draft = (struct stele_catalog_draft){
		.segments = t->segments,
		.snapshots = t->snapshots,
		.refs = t->refs,
		.free = t->free.list,
		.counts = t->counts,
		.next_snapshot_id = t->counts.snapshots + 1,
		.feature_incompat = t->incompat,
		.catalog_offset = t->image.sb.high_water,
		.time = 1700000100 + t->counts.snapshots,
	};
	draft->high_water =
		draft->catalog_offset + stele_image_commit_size(draft);
}

int test_image_commit(struct test_image *t)
{
	struct stele_catalog_draft draft;

	test_image_draft(t, &draft);
	return stele_image_commit(&t->image, &draft);
}

void test_superblock(uint64_t image_size, struct stele_superblock *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned int i = 0; i < STELE_UUID_BYTES; i++)
		out->uuid[i] = (uint8_t)(0xa0 + i);
	strcpy(out->label, "test");
	out->image_size = image_size;
	out->create_time = 1700000000;
}

int test_image_begin(struct test_image *t, struct stele_device *dev,
		     uint64_t image_size)
{
	struct stele_superblock sb;

	memset(t, 0, sizeof(*t));
	test_superblock(image_size, &sb);
	return stele_image_begin(dev, NULL, &sb, &t->image);
}

/* Behind whatever a copy of another generation may lead to. */
static void stay_behind(struct test_image *t)
{
	struct stele_copies copies;

	if (stele_copies_read(t->image.dev, &copies) < 0)
		bail("cannot read superblocks");
	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++)
		if (!copies.copy[i].error &&
		    copies.copy[i].sb.high_water > t->image.sb.high_water)
			t->image.sb.high_water = copies.copy[i].sb.high_water;
}

int test_image_resume(struct test_image *t, struct stele_device *dev)
{
	const struct stele_catalog *catalog = &t->image.catalog;
	int ret;

	memset(t, 0, sizeof(*t));
	ret = stele_image_load(dev, NULL, &t->image);
	if (ret < 0)
		return ret;
	t->counts = catalog->counts;
	if (t->counts.segments > TEST_SEGMENTS_MAX ||
	    t->counts.snapshots > TEST_SNAPSHOTS_MAX)
		bail("too much to go on with");
	stay_behind(t);
	for (uint32_t i = 0; i < t->counts.segments; i++)
		stele_catalog_segment(catalog, i, &t->segments[i]);
	for (uint32_t i = 0; i < t->counts.snapshots; i++)
		stele_catalog_snapshot(catalog, i, &t->snapshots[i]);
	for (uint32_t i = 0; i < t->counts.refs; i++)
		stele_catalog_ref(catalog, i, &t->refs[i]);
	return 0;
}

struct stele_device *test_image_end(struct test_image *t)
{
	struct stele_device *dev = t->image.dev;

	t->image.dev = NULL;
	stele_image_release(&t->image);
	stele_extents_release(&t->free);
	for (uint32_t i = 0; i < TEST_SEGMENTS_MAX; i++)
		free(t->sizes[i]);
	return dev;
}

struct stele_device *test_image_simple(const struct test_segment *segment,
				       const uint64_t *deleted,
				       uint64_t deleted_count, uint64_t size)
{
	const struct test_ref ref = {0, deleted, deleted_count};
	struct stele_device *dev;
	static struct test_image t;

	if (size == 0)
		size = UINT64_C(4) << 20;
	dev = test_memory(size, 512, 0);
	if (test_image_begin(&t, dev, size) < 0 ||
	    test_image_segment(&t, segment) < 0 ||
	    test_image_snapshot(&t, "v1", &ref, 1) < 0 ||
	    test_image_commit(&t) < 0)
		bail("test image: failed");
	return test_image_end(&t);
}
