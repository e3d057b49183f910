/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image-regions.c - what lies where: no gap, no overlap, and whose each segment is
 */
#include <errno.h>
#include <stdlib.h>

#include "tests/fixture/image.h"
#include "tests/tap.h"

#define SIZE (UINT64_C(0x200000) + 64 * 4096)

struct seen {
	const struct test_image *image;
	uint64_t end, sizes[STELE_REGION_FREE + 1];
	uint32_t segments, wrong, stop;
};

/* Snapshot "v0" has segment 0, "v1" both. */
static int see(void *user, const struct stele_region *region)
{
	struct seen *seen = user;

	seen->wrong += region->size != sizeof(*region) || region->offset != seen->end ||
		       !region->region_size || region->kind < STELE_REGION_FIXED ||
		       region->kind > STELE_REGION_FREE || region->unused;
	seen->end = region->offset + region->region_size;
	seen->sizes[region->kind] += region->region_size;
	if (region->kind != STELE_REGION_SEGMENT)
		return seen->stop;
	is_uint(seen->segments ? 1 : 2, region->snapshot_count, "segment %u: snapshots",
		seen->segments);
	is_uint(1, region->snapshots[region->snapshot_count - 1], "the last of them");
	is_uint(5, region->sample_count, "its samples");
	seen->segments++;
	return seen->stop;
}

int main(void)
{
	struct test_sample *samples = test_samples(5, 400, 3);
	const struct test_segment in = {.samples = samples, .count = 5};
	const struct test_ref refs[] = {{.segment = 0}, {.segment = 1}};
	struct stele_image_info info = {.size = sizeof(info)};
	struct seen seen = {0};
	uint64_t alone[2], shared[2];
	struct stele_device *dev;
	static struct test_image t;

	plan_lazy();
	if (stele_device_open_memory(SIZE, 512, &dev) < 0 ||
	    test_image_begin(&t, dev, SIZE) < 0 || test_image_segment(&t, &in) < 0 ||
	    test_image_snapshot(&t, "v0", refs, 1) < 0 || test_image_segment(&t, &in) < 0 ||
	    test_image_snapshot(&t, "v1", refs, 2) < 0 || test_image_commit(&t) < 0)
		bail("no image");
	is_int(0, stele_image_regions(&t.image, see, &seen), "regions");
	is_uint(0, seen.wrong, "each begins where the one before ends");
	is_uint(SIZE, seen.end, "the last one where the image does");
	is_uint(2, seen.segments, "segments");
	is_uint(STELE_DATA_OFFSET, seen.sizes[STELE_REGION_FIXED], "superblocks");
	is_uint(t.image.sb.catalog_size, seen.sizes[STELE_REGION_CATALOG], "the catalog");
	is_int(0, stele_image_info(&t.image, &info), "info");
	is_uint(info.free_size + SIZE - info.used_size, seen.sizes[STELE_REGION_FREE],
		"free space");
	is_int(0, stele_image_usage(&t.image, alone, shared, 2), "usage");
	is_uint(seen.sizes[STELE_REGION_SEGMENT], shared[1] + alone[1], "of both segments");
	is_uint(0, alone[0], "the first one is shared");
	is_uint(shared[0], shared[1], "with the second snapshot");
	is_int(0, stele_image_usage(&t.image, alone, shared, 1), "of the first alone");
	is_int(-ERANGE, stele_image_usage(&t.image, alone, shared, 3), "of too many");
	seen = (struct seen){.stop = 7};
	is_int(7, stele_image_regions(&t.image, see, &seen), "ended by its caller");
	is_uint(STELE_DATA_OFFSET, seen.end, "at once");
	stele_device_close(test_image_end(&t));
	free(samples);
	return done();
}
