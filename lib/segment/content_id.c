/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content_id.c - see content_id.h
 *
 * Threads take samples by ordinal and leave the SHA-256 of each at its place; those
 * are hashed in their order, so that threads do not show.
 */
#include "lib/segment/content_id.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/workers.h"
#include "lib/image/digest.h"
#include "lib/source/reader.h"

#define READ_SIZE (256u << 10)
#define ID_PREFIX 's' /* no digest of stele-format(5) begins so */

struct reading {
	struct stele_builder *builder;
	const struct stele_plan *plan;
	const struct stele_source *source;
	uint8_t *digests;
	_Atomic uint64_t next; /* ordinal */
	_Atomic uint64_t bytes;
	_Atomic int error;     /* all stop */
};

static void add_le64(struct stele_hash *hash, uint64_t value)
{
	const le64 v = le64_put(value);

	stele_hash_add(hash, &v, sizeof(v));
}

/* What cannot be read now will be lost, or end the build, when it is to be written. */
static void hash_sample(struct reading *r, struct stele_hash *hash,
			struct stele_source_reader *reader, uint8_t *buffer,
			uint64_t ordinal)
{
	const struct stele_record_shape *shape = &r->plan->fields.shape;
	struct stele_source_entry entry;
	int64_t got = 0;

	stele_table_get(&r->plan->table, ordinal, &entry);
	stele_hash_begin(hash, ID_PREFIX);
	if (stele_source_reader_open(reader, &entry) == 0) {
		for (uint32_t i = 0; i + 1 < shape->bytes_count; i++)
			add_le64(hash, reader->record_ends[i]);
		for (uint32_t i = 0; i < shape->scalar_count; i++)
			add_le64(hash, reader->scalars[i]);
		while (!atomic_load(&r->error) && reader->left && got >= 0) {
			got = stele_source_reader_read(reader, buffer,
						       READ_SIZE);
			if (got > 0) {
				stele_hash_add(hash, buffer, (size_t)got);
				atomic_fetch_add(&r->bytes, (uint64_t)got);
			}
		}
	}
	stele_source_reader_close(reader);
	stele_hash_end(hash, r->digests + ordinal * STELE_DIGEST_SIZE);
}

static int work(void *user, unsigned int index)
{
	struct reading *r = user;
	struct stele_source_reader reader = {0};
	struct stele_hash *hash = NULL;
	uint8_t *buffer = malloc(READ_SIZE);
	int ret = buffer ? stele_hash_new(&hash) : -ENOMEM;
	uint64_t ordinal;

	(void)index;
	if (!ret)
		ret = stele_source_reader_init(&reader, r->source,
					       &r->plan->fields);
	if (ret < 0)
		atomic_store(&r->error, ret);
	while (!atomic_load(&r->error) &&
	       (ordinal = atomic_fetch_add(&r->next, 1)) < r->plan->table.count)
		hash_sample(r, hash, &reader, buffer, ordinal);
	stele_source_reader_release(&reader);
	stele_hash_free(hash);
	free(buffer);
	return 0;
}

static void tick(void *user)
{
	struct reading *r = user;
	int ret;

	r->builder->progress.bytes_done = atomic_load(&r->bytes);
	ret = stele_builder_tick(r->builder);
	if (ret < 0)
		atomic_store(&r->error, ret);
}

static void add_fields(struct stele_hash *hash,
		       const struct stele_fields *fields)
{
	add_le64(hash, fields->count);
	for (uint32_t i = 0; i < fields->count; i++) {
		const struct stele_class_names *names = &fields->names[i];
		struct stele_disk_field disk;

		stele_field_encode(&fields->list[i], &disk);
		stele_hash_add(hash, &disk, sizeof(disk));
		add_le64(hash, names->count);
		for (uint32_t j = 0; j < names->count; j++)
			stele_hash_add(hash, names->list[j],
				       strlen(names->list[j]) + 1);
	}
}

static uint64_t combine(const struct reading *r, struct stele_hash *hash)
{
	const struct stele_descriptor *d = &r->plan->descriptor;
	uint8_t digest[STELE_DIGEST_SIZE];
	le64 id;

	stele_hash_begin(hash, ID_PREFIX);
	stele_hash_add(hash, r->builder->uuid, sizeof(r->builder->uuid));
	add_le64(hash, d->granule);
	add_le64(hash, d->boundary);
	add_le64(hash, d->order);
	add_fields(hash, &r->plan->fields);
	for (uint64_t i = 0; i < r->plan->table.count; i++) {
		struct stele_source_entry entry;

		stele_table_get(&r->plan->table, i, &entry);
		add_le64(hash, entry.key_size);
		stele_hash_add(hash, entry.key, entry.key_size);
		add_le64(hash, entry.data_size);
		stele_hash_add(hash, r->digests + i * STELE_DIGEST_SIZE,
			       STELE_DIGEST_SIZE);
	}
	stele_hash_end(hash, digest);
	memcpy(&id, digest, sizeof(id));
	return le64_get(id);
}

int stele_content_id(struct stele_builder *builder, struct stele_plan *plan,
		     const struct stele_source *source, uint64_t *id)
{
	struct reading r = {
		.builder = builder, .plan = plan, .source = source};
	struct stele_hash *hash = NULL;
	struct stele_spill digests;
	int ret = stele_hash_new(&hash);

	stele_spill_init(&digests, &plan->pool);
	if (!ret)
		ret = stele_builder_phase(builder, STELE_PHASE_HASH, 0,
					  plan->table.payload_size);
	if (!ret)
		ret = stele_spill_grow(&digests,
				       plan->table.count * STELE_DIGEST_SIZE);
	r.digests = digests.data;
	if (!ret)
		ret = stele_workers_run("stele-hash", builder->opts.jobs, work,
					tick, &r);
	if (!ret)
		ret = atomic_load(&r.error);
	if (!ret) {
		*id = combine(&r, hash);
		if (*id == 0 || *id == STELE_OWNER_ANY)
			*id = 1;
	}
	stele_spill_release(&digests);
	stele_hash_free(hash);
	return ret;
}
