/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regions.c - what lies where on the target, and which snapshots it belongs to
 *
 * All from the catalog, whose tables of segments and of free space are ascending and were
 * checked: they overlap neither each other nor the catalog itself.
 */
#include "lib/image/image.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/error.h"

/* For each segment the snapshots that have it: who[first[i]] up to who[first[i + 1]]. */
struct users {
	uint32_t *first, *who;
};

static void users_release(struct users *users)
{
	free(users->first);
	free(users->who);
}

/* Each of a snapshot's segments. */
typedef void (*ref_fn)(struct users *users, uint32_t snapshot, uint32_t segment);

static void each_ref(const struct stele_catalog *catalog, struct users *users, ref_fn fn)
{
	for (uint32_t i = 0; i < catalog->counts.snapshots; i++) {
		struct stele_catalog_snapshot snapshot;
		struct stele_catalog_ref ref;

		stele_catalog_snapshot(catalog, i, &snapshot);
		for (uint32_t j = 0; j < snapshot.ref_count; j++) {
			stele_catalog_ref(catalog, snapshot.first_ref + j, &ref);
			fn(users, i, ref.segment);
		}
	}
}

/* Two places further on: put() moves the one between to where the segment's end is. */
static void count(struct users *users, uint32_t snapshot, uint32_t segment)
{
	(void)snapshot;
	users->first[segment + 2]++;
}

static void put(struct users *users, uint32_t snapshot, uint32_t segment)
{
	users->who[users->first[segment + 1]++] = snapshot;
}

static int users_load(const struct stele_catalog *catalog, struct users *users)
{
	const size_t segments = catalog->counts.segments;

	users->who = NULL;
	users->first = calloc(segments + 2, sizeof(*users->first));
	if (!users->first)
		return -ENOMEM;
	each_ref(catalog, users, count);
	for (size_t i = 2; i < segments + 2; i++)
		users->first[i] += users->first[i - 1];
	users->who = calloc((size_t)users->first[segments + 1] + 1, sizeof(*users->who));
	if (!users->who)
		return -ENOMEM;
	each_ref(catalog, users, put);
	return 0;
}

static uint32_t users_count(const struct users *users, uint32_t segment)
{
	return users->first[segment + 1] - users->first[segment];
}

static int image_usage(const struct stele_image *image, uint64_t *alone,
		       uint64_t *shared, uint32_t snapshot_count)
{
	const struct stele_catalog *catalog = &image->catalog;
	struct users users;
	int err;

	if (snapshot_count > catalog->counts.snapshots)
		return -ERANGE;
	err = users_load(catalog, &users);
	for (uint32_t i = 0; !err && i < snapshot_count; i++)
		alone[i] = shared[i] = 0;
	for (uint32_t i = 0; !err && i < catalog->counts.segments; i++) {
		uint64_t *const sizes = users_count(&users, i) > 1 ? shared : alone;
		struct stele_catalog_segment segment;

		stele_catalog_segment(catalog, i, &segment);
		for (uint32_t j = users.first[i]; j < users.first[i + 1]; j++)
			if (users.who[j] < snapshot_count)
				sizes[users.who[j]] += segment.size;
	}
	users_release(&users);
	return err;
}

int stele_image_usage(const struct stele_image *image, uint64_t *alone,
		      uint64_t *shared, uint32_t snapshot_count)
{
	return STELE_CALL(image_usage(image, alone, shared, snapshot_count),
			  "cannot tell the usage of %" PRIu32 " snapshots", snapshot_count);
}

struct walk {
	const struct stele_image *image;
	struct users users;
	stele_region_fn fn;
	void *user;
	uint64_t end; /* of what was told */
	uint32_t segment, free; /* the next ones */
};

static int tell(struct walk *walk, struct stele_region *region)
{
	if (!region->region_size)
		return 0;
	region->size = sizeof(*region);
	walk->end = region->offset + region->region_size;
	return walk->fn(walk->user, region);
}

static int tell_until(struct walk *walk, uint64_t end, enum stele_region_kind kind)
{
	struct stele_region region = {.kind = kind,
				      .offset = walk->end,
				      .region_size = end - walk->end};

	return tell(walk, &region);
}

static int tell_segment(struct walk *walk, const struct stele_catalog_segment *segment)
{
	const uint32_t i = walk->segment++;
	const bool tree = stele_catalog_is_tree(segment);
	struct stele_region region = {
		.kind = tree ? STELE_REGION_TREE : STELE_REGION_SEGMENT,
		.snapshot_count = users_count(&walk->users, i),
		.snapshots = walk->users.who + walk->users.first[i],
		.offset = segment->offset,
		.region_size = segment->size,
		.segment_id = tree ? 0 : segment->id,
		.sample_count = segment->sample_count,
		.unused = segment->unused_since,
	};

	return tell(walk, &region);
}

/* The next segment or free extent, and before it what is in neither table. */
static int tell_next(struct walk *walk)
{
	const struct stele_catalog *catalog = &walk->image->catalog;
	struct stele_catalog_segment segment = {.offset = UINT64_MAX};
	struct stele_catalog_free extent = {.offset = UINT64_MAX};
	int ret;

	if (walk->segment < catalog->counts.segments)
		stele_catalog_segment(catalog, walk->segment, &segment);
	if (walk->free < catalog->counts.free)
		stele_catalog_free(catalog, walk->free, &extent);
	ret = tell_until(walk, segment.offset < extent.offset ? segment.offset : extent.offset,
			 STELE_REGION_CATALOG);
	if (ret)
		return ret;
	if (segment.offset < extent.offset)
		return tell_segment(walk, &segment);
	walk->free++;
	return tell_until(walk, extent.offset + extent.size, STELE_REGION_FREE);
}

static int tell_all(struct walk *walk)
{
	const struct stele_image *image = walk->image;
	const struct stele_catalog_counts *counts = &image->catalog.counts;
	int ret = tell_until(walk, STELE_DATA_OFFSET, STELE_REGION_FIXED);

	while (!ret && (walk->segment < counts->segments || walk->free < counts->free))
		ret = tell_next(walk);
	if (!ret)
		ret = tell_until(walk, image->sb.high_water, STELE_REGION_CATALOG);
	if (!ret)
		ret = tell_until(walk, image->sb.image_size, STELE_REGION_FREE);
	return ret;
}

static int image_regions(const struct stele_image *image, stele_region_fn fn, void *user)
{
	struct walk walk = {.image = image, .fn = fn, .user = user};
	int ret = users_load(&image->catalog, &walk.users);

	if (!ret)
		ret = tell_all(&walk);
	users_release(&walk.users);
	return ret;
}

int stele_image_regions(const struct stele_image *image, stele_region_fn fn, void *user)
{
	return STELE_CALL(image_regions(image, fn, user), "cannot list what lies in the image");
}
