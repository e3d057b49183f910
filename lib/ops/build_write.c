/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build_write.c - begin, slots, sections, commit
 */
#include "lib/ops/build_write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/image/digest.h"
#include "lib/segment/content_id.h"
#include "lib/segment/plan_write.h"

/*
 * A boundary may leave a gap in front of the segment: then the catalog lies
 * there, else behind the segment.
 */
uint64_t stele_build_end(const struct stele_plan *plan, const char *note)
{
	const struct stele_descriptor *d = &plan->descriptor;
	struct stele_catalog_free lies = {d->offset, d->size};
	const struct stele_extents own = {.list = &lies, .count = 1};
	const struct stele_catalog_counts counts = {
		.segments = 1,
		.snapshots = 1,
		.refs = 1,
		.notes_size = note ? (uint32_t)strlen(note) : 0,
	};
	struct stele_catalog_place place;

	if (stele_catalog_find_place(&own, &own, &counts, STELE_IMAGE_SIZE_MAX,
				     &place) < 0)
		return UINT64_MAX; /* more than any target has */
	/* And the catalog of a next generation, with less. */
	return place.high_water + stele_catalog_size_bound(&own, &counts);
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

/*
 * Samples that went away make a deleted list, which the plan knew nothing of:
 * the image may grow by that if the target does.
 */
static int write_deleted(struct stele_edit *edit, struct stele_edit_ref *ref,
			 const struct stele_written *written,
			 struct stele_spill *numbers)
{
	int ret;

	if (!written->void_count)
		return 0;
	ret = stele_spill_grow(numbers,
			       written->void_count * sizeof(uint64_t));
	if (ret < 0)
		return ret;
	stele_written_voids(written, numbers->data);
	return stele_edit_write_deleted(edit, ref, numbers->data,
					written->void_count);
}

static int add_snapshot(struct stele_builder *builder, struct stele_plan *plan,
			const struct stele_written *written,
			struct stele_edit *edit, const char *name)
{
	const char *note = builder->opts.note ? builder->opts.note : "";
	struct stele_edit_ref ref = {.segment_id = plan->descriptor.id};
	struct stele_edit_snapshot snapshot = {
		.time = builder->opts.time,
		.source_time = stele_builder_source_time(builder),
		.sample_count =
			plan->descriptor.sample_count - written->void_count,
		.payload_size = plan->descriptor.payload_size,
		.refs = &ref,
		.ref_count = 1,
		.note = (char *)note,
		.note_size = (uint32_t)strlen(note),
	};
	struct stele_spill numbers;
	int ret;

	snprintf(snapshot.name, sizeof(snapshot.name), "%s", name);
	stele_spill_init(&numbers, &plan->pool);
	ret = write_deleted(edit, &ref, written, &numbers);
	if (!ret)
		ret = hash_snapshot(plan, numbers.data, written->void_count,
				    snapshot.digest);
	if (!ret)
		ret = stele_edit_add_snapshot(edit, &snapshot);
	if (!ret)
		memcpy(builder->report->digest, snapshot.digest,
		       STELE_DIGEST_SIZE);
	stele_spill_release(&numbers);
	return ret;
}

static int write_image(struct stele_builder *builder, struct stele_plan *plan,
		       const struct stele_source *source, struct stele_edit *edit,
		       const char *snapshot, struct stele_written *written)
{
	uint64_t spare; /* see stele_build_end() */
	int ret = stele_plan_write(builder, plan, source, edit, written);

	if (!ret)
		ret = stele_builder_phase(builder, STELE_PHASE_COMMIT, 0, 0);
	if (!ret)
		ret = add_snapshot(builder, plan, written, edit, snapshot);
	if (!ret)
		ret = stele_edit_commit(edit, builder->opts.time);
	if (!ret)
		ret = stele_edit_commit_size(edit, &spare);
	if (!ret)
		builder->report->image_end =
			edit->image->sb.high_water + spare;
	return ret;
}

int stele_build_identify(struct stele_builder *builder, struct stele_plan *plan,
			 const struct stele_source *source)
{
	if (!builder->opts.uuid)
		return 0;
	return stele_content_id(builder, plan, source, &plan->descriptor.id);
}

int stele_build_write(struct stele_builder *builder, struct stele_plan *plan,
		      const struct stele_source *source, struct stele_device *dev,
		      const char *snapshot, uint64_t image_size)
{
	struct stele_superblock sb = {
		.image_size = image_size,
		.create_time = builder->opts.time,
	};
	struct stele_image image = {0};
	struct stele_edit edit = {0};
	struct stele_written written;
	int ret;

	memcpy(sb.uuid, builder->uuid, sizeof(sb.uuid));
	snprintf(sb.label, sizeof(sb.label), "%s", builder->opts.label);
	ret = stele_written_init(&written, plan);
	if (!ret)
		ret = stele_image_begin(dev, &builder->log, &sb, &image);
	if (!ret)
		ret = stele_edit_begin(&image, &edit);
	if (!ret)
		ret = write_image(builder, plan, source, &edit, snapshot,
				  &written);
	stele_edit_release(&edit);
	image.dev = NULL; /* the caller's */
	stele_image_release(&image);
	stele_written_release(&written);
	return ret;
}

int stele_build_on(struct stele_device *dev, const struct stele_source *source,
		   const char *snapshot, const struct stele_build_opts *opts,
		   struct stele_build_report *report)
{
	struct stele_builder builder;
	struct stele_plan plan = {0};
	uint64_t size;
	int ret = stele_builder_init(&builder, opts, report);

	stele_builder_prefer_boundary(&builder, dev->limits.boundary);
	if (!ret)
		ret = stele_builder_for_build(&builder, false);
	if (!ret)
		ret = stele_plan_make(&plan, &builder, source);
	if (!ret)
		ret = stele_device_size(dev, &size);
	if (!ret && size < stele_build_end(&plan, opts ? opts->note : NULL))
		ret = -ENOSPC;
	if (!ret)
		ret = stele_build_identify(&builder, &plan, source);
	if (!ret)
		ret = stele_build_write(&builder, &plan, source, dev, snapshot,
					round_down(size, STELE_BLOCK_SIZE));
	stele_plan_release(&plan);
	stele_builder_release(&builder);
	return ret;
}
