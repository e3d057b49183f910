/* SPDX-License-Identifier: Apache-2.0 */
/*
 * costly.c - see costly.h
 */
#include "tests/costly.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/image.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

/* ---- a device that counts ------------------------------------------------------ */

struct counting {
	struct stele_device base;
	struct stele_device *inner;
	pthread_mutex_t lock;
	struct costly_count count;
	uint64_t before; /* memory at the last clear */
};

/* Sanitizers have a malloc of their own, of which this knows nothing. */
static uint64_t memory_now(void)
{
	const struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static ssize_t counting_transfer(struct stele_device *dev, enum stele_op op,
				 void *data, uint64_t offset, size_t size)
{
	struct counting *c = (struct counting *)dev;
	const uint64_t now = memory_now();

	pthread_mutex_lock(&c->lock);
	if (op == STELE_OP_READ) {
		c->count.reads++;
		c->count.bytes += size;
	}
	if (now > c->before && now - c->before > c->count.memory)
		c->count.memory = now - c->before;
	pthread_mutex_unlock(&c->lock);
	return c->inner->ops->transfer(c->inner, op, data, offset, size);
}

static int counting_size(struct stele_device *dev, uint64_t *size)
{
	return stele_device_size(((struct counting *)dev)->inner, size);
}

static int counting_queue_open(struct stele_device *dev, unsigned int depth,
			       void *arena, size_t arena_size,
			       struct stele_queue **queue)
{
	struct stele_device *inner = ((struct counting *)dev)->inner;

	return inner->ops->queue_open(inner, depth, arena, arena_size, queue);
}

static void counting_close(struct stele_device *dev)
{
	struct counting *c = (struct counting *)dev;

	stele_device_close(c->inner);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static const struct stele_device_ops counting_ops = {
	.name = "counting",
	.transfer = counting_transfer,
	.size = counting_size,
	.queue_open = counting_queue_open,
	.close = counting_close,
};

struct stele_device *costly_wrap(struct stele_device *inner)
{
	struct counting *c = calloc(1, sizeof(*c));

	if (!c)
		bail("no memory");
	c->base.ops = &counting_ops;
	c->base.limits = inner->limits;
	c->base.writable = inner->writable;
	c->base.fd = -1;
	c->inner = inner;
	pthread_mutex_init(&c->lock, NULL);
	return &c->base;
}

void costly_clear(struct stele_device *dev)
{
	struct counting *c = (struct counting *)dev;

	memset(&c->count, 0, sizeof(c->count));
	c->before = memory_now();
}

struct costly_count costly_count(const struct stele_device *dev)
{
	return ((const struct counting *)dev)->count;
}

void *costly_memory(const struct stele_device *dev)
{
	return stele_device_memory(((const struct counting *)dev)->inner);
}

/* ---- an image ------------------------------------------------------------------ */

struct making {
	const struct costly *how;
	struct stele_image image;
	struct stele_catalog_segment *segments;
	struct stele_catalog_snapshot *snapshots;
	struct stele_catalog_ref *refs, *lists; /* lists: by segment */
	struct stele_digest_part *parts;
	uint64_t *numbers; /* that are deleted */
	uint64_t lost;	   /* their bytes */
	uint64_t payload;  /* of a segment */
	uint64_t end;	   /* of what is used */
	uint32_t ref_count;
};

static void *zeroed(size_t count, size_t size)
{
	void *data = calloc(count + 1, size);

	if (!data)
		bail("no memory");
	return data;
}

/* In source order, so that each is a run: two sizes take turns. */
static void compose(struct making *m, uint32_t index, struct test_composed *out)
{
	const uint32_t count = m->how->samples;
	struct test_sample *samples = zeroed(count, sizeof(*samples));
	char(*keys)[24] = zeroed(count, sizeof(*keys));
	const struct test_segment segment = {
		.samples = samples, .count = count,
		.order = STELE_SLOT_ORDER_SOURCE,
	};

	m->payload = 0;
	for (uint32_t i = 0; i < count; i++) {
		snprintf(keys[i], sizeof(keys[i]), "%08u/%05u", i, index);
		samples[i] = (struct test_sample){
			.key = keys[i], .data = keys[i],
			.size = i % 2 ? 16 : 0,
		};
		m->payload += samples[i].size;
	}
	test_segment_compose(&segment, 0x5e60000u + index, m->end, out);
	free(samples);
	free(keys);
}

static void add_segment(struct making *m, uint32_t index)
{
	struct stele_digest_part *part = &m->parts[index];
	struct test_composed c;
	void *aligned;

	compose(m, index, &c);
	aligned = stele_device_alloc(m->image.dev, c.d.size);
	if (!aligned)
		bail("no memory");
	memcpy(aligned, c.bytes, c.d.size);
	if (stele_device_write(m->image.dev, aligned, m->end, c.d.size) < 0)
		bail("cannot write segment %u", index);
	m->segments[index] = (struct stele_catalog_segment){
		.id = c.d.id, .offset = m->end, .size = c.d.size,
		.descriptor_size = c.descriptor_size,
		.sample_count = c.d.sample_count,
	};
	memcpy(part->schema_digest, c.d.schema_digest, 32);
	memcpy(part->tree_root, c.d.tree_root, 32);
	part->sample_count = c.d.sample_count;
	part->deleted = m->numbers;
	part->deleted_count = m->how->deleted;
	m->end += c.d.size;
	free(aligned);
	free(c.bytes);
}

static void add_list(struct making *m, struct stele_catalog_ref *ref)
{
	if (!m->how->deleted)
		return;
	if (stele_image_write_deleted(&m->image, m->end, m->numbers,
				      m->how->deleted, ref) < 0)
		bail("cannot write a deleted list");
	m->end += stele_image_deleted_size(m->how->deleted);
}

static void add_snapshot(struct making *m, uint32_t index,
			 struct stele_hash *hash)
{
	struct stele_catalog_snapshot *s = &m->snapshots[index];
	const uint32_t count = m->how->growing && index < m->how->segments ?
				       index + 1 :
				       m->how->segments;

	snprintf(s->name, sizeof(s->name), "s%u", index);
	s->id = index + 1;
	s->first_ref = m->ref_count;
	s->ref_count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct stele_catalog_ref *ref = &m->refs[m->ref_count++];

		*ref = m->lists[i];
		if (m->how->list_each)
			add_list(m, ref);
		ref->segment = i;
		s->sample_count += m->how->samples - m->how->deleted;
		s->payload_size += m->payload - m->lost;
	}
	if (index && s->ref_count == s[-1].ref_count)
		memcpy(s->digest, s[-1].digest, sizeof(s->digest));
	else
		stele_hash_snapshot(hash, m->parts, count, s->digest);
}

static void fill(struct making *m)
{
	struct stele_hash *hash;

	if (stele_hash_new(&hash) < 0)
		bail("no hash");
	for (uint32_t i = 0; i < m->how->deleted; i++) {
		m->numbers[i] = i;
		m->lost += i % 2 ? 16 : 0;
	}
	for (uint32_t i = 0; i < m->how->segments; i++)
		add_segment(m, i);
	for (uint32_t i = 0; !m->how->list_each && i < m->how->segments; i++)
		add_list(m, &m->lists[i]);
	for (uint32_t i = 0; i < m->how->snapshots; i++)
		add_snapshot(m, i, hash);
	stele_hash_free(hash);
}

static void commit(struct making *m)
{
	struct stele_catalog_draft draft = {
		.segments = m->segments,
		.snapshots = m->snapshots,
		.refs = m->refs,
		.counts = {.segments = m->how->segments,
			   .snapshots = m->how->snapshots,
			   .refs = m->ref_count},
		.next_snapshot_id = m->how->snapshots + 1,
		.feature_incompat = m->how->deleted ? STELE_FEATURE_DELETED : 0,
		.catalog_offset = m->end,
		.time = 1700000000,
	};

	draft.high_water = m->end + stele_image_commit_size(&draft);
	if (stele_image_commit(&m->image, &draft) < 0)
		bail("cannot commit");
}

struct stele_device *costly_make(const struct costly *how)
{
	const size_t refs = (size_t)how->segments * how->snapshots;
	const uint64_t lists = how->deleted ? how->deleted / 508 + 1 : 0;
	const uint64_t size = how->image_size ? how->image_size : round_up(
		(UINT64_C(8) << 20) +
			how->segments * (UINT64_C(49152) + how->samples * 256) +
			(how->list_each ? refs : how->segments) * lists * 4096 +
			refs * 49 + how->snapshots * UINT64_C(200),
		4096);
	struct making m = {
		.how = how,
		.segments = zeroed(how->segments, sizeof(*m.segments)),
		.snapshots = zeroed(how->snapshots, sizeof(*m.snapshots)),
		.refs = zeroed(refs, sizeof(*m.refs)),
		.lists = zeroed(how->segments, sizeof(*m.lists)),
		.parts = zeroed(how->segments, sizeof(*m.parts)),
		.numbers = zeroed(how->deleted, sizeof(*m.numbers)),
		.end = STELE_DATA_OFFSET,
	};
	struct stele_device *dev = costly_wrap(test_memory(size, 512, 0));
	struct stele_superblock sb;

	test_superblock(size, &sb);
	if (stele_image_begin(dev, NULL, &sb, &m.image) < 0)
		bail("cannot begin");
	fill(&m);
	commit(&m);
	m.image.dev = NULL;
	stele_image_release(&m.image);
	free(m.segments);
	free(m.snapshots);
	free(m.refs);
	free(m.lists);
	free(m.parts);
	free(m.numbers);
	return dev;
}
