/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - begin, slots, sections, commit
 */
#include "lib/write/build.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "lib/image/image.h"
#include "lib/write/sections.h"

#define FIRST_GENERATION  UINT64_C(1)
#define FIRST_SNAPSHOT_ID UINT64_C(1)
#define SEGMENT_ID_PREFIX "stele segment"

/* One segment, one snapshot of it. */
struct draft {
	struct stele_catalog_draft catalog;
	struct stele_catalog_segment segment;
	struct stele_catalog_snapshot snapshot;
	struct stele_catalog_ref ref;
};

static void fill_draft(struct draft *draft, const struct stele_plan *plan)
{
	const struct stele_descriptor *d = &plan->descriptor;

	memset(draft, 0, sizeof(*draft));
	draft->segment = (struct stele_catalog_segment){
		.id = d->id,
		.offset = d->offset,
		.size = d->size,
		.descriptor_size = plan->descriptor_size,
		.sample_count = d->sample_count,
	};
	draft->snapshot.id = FIRST_SNAPSHOT_ID;
	draft->snapshot.sample_count = d->sample_count;
	draft->snapshot.ref_count = 1;
	draft->catalog = (struct stele_catalog_draft){
		.segments = &draft->segment,
		.snapshots = &draft->snapshot,
		.refs = &draft->ref,
		.counts = {.segments = 1, .snapshots = 1, .refs = 1},
		.next_snapshot_id = FIRST_SNAPSHOT_ID + 1,
		.feature_incompat = d->boundary ? STELE_FEATURE_BOUNDARY : 0,
	};
}

uint64_t stele_build_end(const struct stele_plan *plan)
{
	struct draft draft;

	fill_draft(&draft, plan);
	return draft.segment.offset + draft.segment.size +
	       stele_image_commit_size(&draft.catalog);
}

/*
 * Seeds all checksums: of another image of the same bytes, or of what this
 * target held before, no record passes.
 */
static int segment_id(const uint8_t uuid[STELE_UUID_SIZE], uint64_t generation,
		      uint64_t *id)
{
	uint8_t digest[EVP_MAX_MD_SIZE];
	uint8_t text[sizeof(SEGMENT_ID_PREFIX) - 1 + STELE_UUID_SIZE +
		     sizeof(le64)];
	uint8_t *p = text;
	le64 number = le64_put(generation);

	memcpy(p, SEGMENT_ID_PREFIX, sizeof(SEGMENT_ID_PREFIX) - 1);
	p += sizeof(SEGMENT_ID_PREFIX) - 1;
	memcpy(p, uuid, STELE_UUID_SIZE);
	memcpy(p + STELE_UUID_SIZE, &number, sizeof(number));
	if (EVP_Digest(text, sizeof(text), digest, NULL, EVP_sha256(), NULL) !=
	    1)
		return -ENOMEM;
	memcpy(&number, digest, sizeof(number));
	*id = le64_get(number);
	if (*id == 0 || *id == STELE_OWNER_ANY)
		*id = 1;
	return 0;
}

/*
 * Samples that went away make a deleted list, which the plan knew nothing of:
 * the image may grow by that if the target does.
 */
static int make_room(struct stele_image *image, const struct draft *draft,
		     uint64_t void_count)
{
	uint64_t end = image->sb.high_water +
		       stele_deleted_blocks(void_count) * STELE_BLOCK_SIZE +
		       stele_image_commit_size(&draft->catalog);
	int ret = 0;

	if (end <= image->sb.image_size)
		return 0;
	ret = stele_device_resize_file(image->dev, end);
	if (ret == -EOPNOTSUPP)
		return 0; /* what does not fit is refused by the writer */
	if (!ret)
		image->sb.image_size = end;
	return ret;
}

static int write_deleted(struct stele_image *image, struct draft *draft,
			 const struct stele_written *written,
			 struct stele_spill *numbers)
{
	const struct stele_void *voids = written->voids.data;
	uint64_t *list;
	int ret;

	if (!written->void_count)
		return 0;
	ret = stele_spill_grow(numbers, written->void_count * sizeof(*list));
	if (!ret)
		ret = make_room(image, draft, written->void_count);
	if (ret < 0)
		return ret;
	list = numbers->data;
	for (uint64_t i = 0; i < written->void_count; i++)
		list[i] = voids[i].number;
	draft->snapshot.sample_count -= written->void_count;
	draft->catalog.feature_incompat |= STELE_FEATURE_DELETED;
	return stele_image_write_deleted(image, list, written->void_count,
					 &draft->ref);
}

static int hash_snapshot(const struct stele_plan *plan,
			 const uint64_t *deleted, uint64_t deleted_count,
			 uint8_t digest[STELE_DIGEST_SIZE])
{
	struct stele_digest_part part = {
		.sample_count = plan->descriptor.sample_count,
		.deleted = deleted,
		.deleted_count = deleted_count,
	};
	struct stele_hash *hash;
	int ret = stele_hash_new(&hash);

	if (ret < 0)
		return ret;
	memcpy(part.schema_digest, plan->descriptor.schema_digest, 32);
	memcpy(part.tree_root, plan->descriptor.tree_root, 32);
	stele_hash_snapshot(hash, &part, 1, digest);
	stele_hash_free(hash);
	return 0;
}

static int commit(struct stele_builder *builder, struct stele_plan *plan,
		  const struct stele_written *written,
		  struct stele_image *image, const char *snapshot)
{
	struct stele_spill numbers;
	struct draft draft;
	int ret = stele_builder_phase(builder, STELE_PHASE_COMMIT, 0, 0);

	if (ret < 0)
		return ret;
	stele_spill_init(&numbers, &plan->pool);
	fill_draft(&draft, plan);
	image->sb.high_water = draft.segment.offset + draft.segment.size;
	ret = write_deleted(image, &draft, written, &numbers);
	if (!ret)
		ret = hash_snapshot(plan, numbers.data, written->void_count,
				    draft.snapshot.digest);
	if (!ret) {
		snprintf(draft.snapshot.name, sizeof(draft.snapshot.name), "%s",
			 snapshot);
		draft.snapshot.time = builder->opts.time;
		draft.catalog.time = builder->opts.time;
		ret = stele_image_commit(image, &draft.catalog);
	}
	if (!ret) {
		memcpy(builder->report->digest, draft.snapshot.digest,
		       STELE_DIGEST_SIZE);
		builder->report->image_end = image->sb.high_water;
	}
	stele_spill_release(&numbers);
	return ret;
}

static int write_image(struct stele_builder *builder, struct stele_plan *plan,
		       struct stele_source *source, struct stele_image *image,
		       const char *snapshot, struct stele_written *written)
{
	struct stele_build_report *report = builder->report;
	struct timespec begin;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	ret = stele_pipeline_run(builder, plan, source, image->dev, written);
	report->write_seconds = stele_seconds_since(&begin);
	if (!ret)
		ret = stele_sections_write(builder, plan, written, image->dev);
	if (!ret)
		ret = commit(builder, plan, written, image, snapshot);
	report->sample_count -= written->void_count;
	report->payload_size = plan->descriptor.payload_size;
	report->padding_size = plan->descriptor.slots_size -
			       plan->descriptor.records_size;
	return ret;
}

int stele_build_write(struct stele_builder *builder, struct stele_plan *plan,
		      struct stele_source *source, struct stele_device *dev,
		      const char *snapshot, uint64_t image_size)
{
	struct stele_superblock sb = {
		.image_size = image_size,
		.create_time = builder->opts.time,
	};
	struct stele_image image = {0};
	struct stele_written written;
	int ret;

	memcpy(sb.uuid, builder->uuid, sizeof(sb.uuid));
	snprintf(sb.label, sizeof(sb.label), "%s", builder->opts.label);
	ret = segment_id(builder->uuid, FIRST_GENERATION, &plan->descriptor.id);
	if (ret < 0)
		return ret;
	ret = stele_written_init(&written, plan);
	if (!ret)
		ret = stele_image_begin(dev, &builder->log, &sb, &image);
	if (!ret)
		ret = write_image(builder, plan, source, &image, snapshot,
				  &written);
	image.dev = NULL; /* the caller's */
	stele_image_release(&image);
	stele_written_release(&written);
	return ret;
}

int stele_build_on(struct stele_device *dev, struct stele_source *source,
		   const char *snapshot, const struct stele_build_opts *opts,
		   struct stele_build_report *report)
{
	struct stele_builder builder;
	struct stele_plan plan = {0};
	uint64_t size;
	int ret = stele_builder_init(&builder, opts, report);

	stele_builder_prefer_boundary(&builder, dev->limits.boundary);
	if (!ret)
		ret = stele_plan_make(&plan, &builder, source);
	if (!ret)
		ret = stele_device_size(dev, &size);
	if (!ret && size < stele_build_end(&plan))
		ret = -ENOSPC;
	if (!ret)
		ret = stele_build_write(&builder, &plan, source, dev, snapshot,
					round_down(size, STELE_BLOCK_SIZE));
	stele_plan_release(&plan);
	stele_builder_release(&builder);
	return ret;
}
