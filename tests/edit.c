/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit.c - see edit.h
 */
#include "tests/edit.h"

#include <stdlib.h>
#include <string.h>

#include "lib/image/digest.h"
#include "lib/image/snapshot.h"
#include "tests/tap.h"

int test_edit_create(struct test_edit *t, struct stele_device *dev,
		     uint64_t image_size)
{
	struct stele_superblock sb;
	int ret;

	memset(t, 0, sizeof(*t));
	test_superblock(image_size, &sb);
	ret = stele_image_begin(dev, NULL, &sb, &t->image);
	return ret < 0 ? ret : stele_edit_begin(&t->image, &t->edit);
}

int test_edit_load(struct test_edit *t, struct stele_device *dev)
{
	int ret;

	memset(t, 0, sizeof(*t));
	ret = stele_image_load(dev, NULL, &t->image);
	return ret < 0 ? ret : stele_edit_begin(&t->image, &t->edit);
}

void test_edit_end(struct test_edit *t)
{
	if (t->edit.image)
		stele_edit_release(&t->edit);
	t->image.dev = NULL;
	stele_image_release(&t->image);
}

static int write_pieces(struct test_edit *t, const struct test_composed *c)
{
	const uint64_t piece = t->piece ? t->piece : c->d.size;
	uint8_t *data = stele_device_alloc(t->image.dev, c->d.size);
	int ret = 0;

	if (!data)
		bail("no memory");
	memcpy(data, c->bytes, c->d.size);
	for (uint64_t at = 0; ret == 0 && at < c->d.size; at += piece)
		ret = stele_device_write(
			t->image.dev, data + at, c->d.offset + at,
			c->d.size - at < piece ? c->d.size - at : piece);
	free(data);
	return ret;
}

int test_edit_segment(struct test_edit *t, const struct test_sample *samples,
		      uint64_t count, uint64_t *id)
{
	const struct test_segment in = {.samples = samples, .count = count};
	struct stele_catalog_segment segment;
	struct test_composed c;
	uint64_t offset;
	int ret;

	/* The same in each run; no two histories of a test meet. */
	*id = (t->image.generation_max + 1) * UINT64_C(0x9e3779b97f4a7c15);
	test_segment_compose(&in, *id, STELE_DATA_OFFSET, &c);
	free(c.bytes);
	ret = stele_edit_allocate(&t->edit, c.d.size, 0, &offset);
	if (ret < 0)
		return ret;
	test_segment_compose(&in, *id, offset, &c);
	ret = write_pieces(t, &c);
	segment = (struct stele_catalog_segment){
		.id = *id,
		.offset = offset,
		.size = c.d.size,
		.descriptor_size = c.descriptor_size,
		.sample_count = c.d.sample_count,
	};
	free(c.bytes);
	return ret < 0 ? ret : stele_edit_add_segment(&t->edit, &segment);
}

/* The payload of one sample, by its trailer. */
static int subtract(struct test_edit *t, const struct stele_segment *segment,
		    uint64_t number, uint64_t *payload)
{
	struct stele_disk_trailer trailer;
	struct stele_disk_block *blocks;
	uint64_t offset, size, at;
	int ret;

	stele_segment_slot(segment, number, &offset, &size);
	at = offset + size - sizeof(trailer);
	blocks = stele_device_alloc(t->image.dev, 2 * STELE_BLOCK_SIZE);
	if (!blocks)
		bail("no memory");
	ret = stele_device_read(t->image.dev, blocks,
				round_down(at, STELE_BLOCK_SIZE),
				2 * STELE_BLOCK_SIZE);
	memcpy(&trailer, (uint8_t *)blocks + at % STELE_BLOCK_SIZE,
	       sizeof(trailer));
	free(blocks);
	if (ret == 0)
		*payload -= le48_get(trailer.payload_size);
	return ret;
}

/* What goes into digest and sum, from the segment as it lies there. */
static int read_part(struct test_edit *t, uint64_t id,
		     struct stele_digest_part *part, uint64_t *payload)
{
	const struct stele_catalog_segment *where =
		stele_edit_segment(&t->edit, id);
	struct stele_segment segment;
	int ret;

	if (!where)
		bail("no such segment");
	ret = stele_segment_load(&t->image, where, NULL, &segment);
	if (ret < 0)
		return ret;
	memcpy(part->schema_digest, segment.descriptor.schema_digest, 32);
	memcpy(part->tree_root, segment.descriptor.tree_root, 32);
	part->sample_count = segment.descriptor.sample_count;
	*payload = segment.descriptor.payload_size;
	for (uint64_t i = 0; i < part->deleted_count && ret == 0; i++)
		ret = subtract(t, &segment, part->deleted[i], payload);
	stele_segment_release(&segment);
	return ret;
}

int test_edit_snapshot(struct test_edit *t, const char *name,
		       const uint64_t *ids, uint32_t count,
		       const uint64_t *deleted, uint64_t deleted_count)
{
	struct stele_edit_ref *refs = calloc(count + 1, sizeof(*refs));
	struct stele_digest_part *parts = calloc(count + 1, sizeof(*parts));
	struct stele_edit_snapshot snapshot = {
		.refs = refs, .ref_count = count, .time = 1700000000};
	struct stele_hash *hash;
	int ret = 0;

	if (!refs || !parts || stele_hash_new(&hash) < 0)
		bail("no memory");
	strncpy(snapshot.name, name, sizeof(snapshot.name) - 1);
	for (uint32_t i = 0; ret == 0 && i < count; i++) {
		uint64_t payload = 0;

		refs[i].segment_id = ids[i];
		if (i + 1 == count) {
			parts[i].deleted = deleted;
			parts[i].deleted_count = deleted_count;
			ret = stele_edit_write_deleted(&t->edit, &refs[i],
						       deleted, deleted_count);
		}
		if (ret == 0)
			ret = read_part(t, ids[i], &parts[i], &payload);
		snapshot.payload_size += payload;
		snapshot.sample_count +=
			parts[i].sample_count - parts[i].deleted_count;
	}
	if (ret == 0) {
		stele_hash_snapshot(hash, parts, count, snapshot.digest);
		ret = stele_edit_add_snapshot(&t->edit, &snapshot);
	}
	stele_hash_free(hash);
	free(refs);
	free(parts);
	return ret;
}

void test_edit_collect(struct test_edit *t)
{
	for (uint32_t i = t->edit.segment_count; i-- > 0;)
		stele_edit_drop_segment(&t->edit, t->edit.segments[i].id);
}
