/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact_write.c - a snapshot as source, its image as target
 */
#include "lib/ops/compact_write.h"

#include <stdlib.h>
#include <string.h>

#include "lib/image/digest.h"
#include "lib/image/record_stream.h"

/* Of the memory, for reading; what is left is for the plan and for writing. */
#define READING_SHARE 4u
/* More for one thread would only wait in the block layer. */
#define READING_MAX (UINT64_C(8) << 20)

/* Takes it from the builder's. Bytes for each thread. */
static uint64_t share_memory(struct stele_builder *builder)
{
	const uint64_t share = builder->opts.memory_size / READING_SHARE;
	uint64_t each = share / builder->opts.jobs;

	builder->opts.memory_size -= share;
	if (each > READING_MAX)
		return READING_MAX;
	return each < STELE_RECORD_MEMORY_MIN ? STELE_RECORD_MEMORY_MIN : each;
}

int stele_compact_prepare(struct stele_compact *compact,
			  struct stele_builder *builder,
			  struct stele_image *image, uint32_t index)
{
	uint64_t memory = share_memory(builder);
	int ret;

	*compact = (struct stele_compact){.builder = builder, .image = image};
	ret = stele_snapshot_load(image, index, &compact->snapshot);
	if (!ret)
		ret = stele_source_open_snapshot(image, &compact->snapshot,
						 memory, &builder->log,
						 &compact->source);
	if (!ret)
		ret = stele_plan_make(&compact->plan, builder, &compact->source);
	return ret;
}

void stele_compact_release(struct stele_compact *compact)
{
	stele_written_release(&compact->written);
	stele_plan_release(&compact->plan);
	stele_source_close(&compact->source);
	stele_snapshot_release(&compact->snapshot);
	memset(compact, 0, sizeof(*compact));
}

static int hash_snapshot(const struct stele_descriptor *d, uint8_t digest[32])
{
	struct stele_digest_part part = {.sample_count = d->sample_count};
	struct stele_hash *hash;
	int ret = stele_hash_new(&hash);

	if (ret < 0)
		return ret;
	memcpy(part.schema_digest, d->schema_digest, 32);
	memcpy(part.tree_root, d->tree_root, 32);
	stele_hash_snapshot(hash, &part, 1, digest);
	stele_hash_free(hash);
	return 0;
}

static int add_snapshot(const struct stele_compact *compact,
			struct stele_edit *edit, const char *name)
{
	const struct stele_build_opts *opts = &compact->builder->opts;
	const struct stele_descriptor *d = &compact->plan.descriptor;
	struct stele_edit_ref ref = {.segment_id = d->id};
	struct stele_edit_snapshot snapshot = {
		.parent = compact->snapshot.info.id,
		.time = opts->time,
		.source_time = compact->snapshot.info.source_time,
		.sample_count = d->sample_count,
		.payload_size = d->payload_size,
		.refs = &ref, /* is copied, as the note */
		.ref_count = 1,
		.note = (char *)opts->note,
		.note_size = opts->note ? (uint32_t)strlen(opts->note) : 0,
	};
	int ret = hash_snapshot(d, snapshot.digest);

	if (ret < 0)
		return ret;
	strncpy(snapshot.name, name, sizeof(snapshot.name) - 1);
	memcpy(compact->builder->report->digest, snapshot.digest,
	       sizeof(snapshot.digest));
	return stele_edit_add_snapshot(edit, &snapshot);
}

int stele_compact_write(struct stele_compact *compact, struct stele_edit *edit,
			const char *name)
{
	int ret = stele_written_init(&compact->written, &compact->plan);

	if (!ret)
		ret = stele_plan_write(compact->builder, &compact->plan,
				       &compact->source, edit,
				       &compact->written);
	if (!ret)
		ret = stele_builder_phase(compact->builder, STELE_PHASE_COMMIT,
					  0, 0);
	return ret ? ret : add_snapshot(compact, edit, name);
}
