/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify-space.c - space that is neither used nor free is reported
 */
#include "tests/fixture/image.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/verify/verify.h"

#define SIZE (UINT64_C(0x200000) + 64 * 4096)

static void keep(void *user, const struct stele_damage *damage)
{
	*(struct stele_damage *)user = *damage;
}

enum way { SOUND, FORGOTTEN, BEHIND };

/* Two commits, so that the first one's catalog is free in the second. */
static void check(enum way way, const char *what, const char *name)
{
	struct test_sample *samples = test_samples(5, 400, 3);
	const struct test_segment in = {.samples = samples, .count = 5};
	struct stele_verify_report report = {.size = sizeof(report)};
	struct stele_damage damage = {0};
	const struct stele_verify_opts opts = {.size = sizeof(opts),
					       .damage = keep,
					       .damage_user = &damage,
					       .jobs = 1};
	struct stele_catalog_draft draft;
	struct stele_device *dev;
	static struct test_image t;

	if (stele_device_open_memory(SIZE, 512, &dev) < 0 ||
	    test_image_begin(&t, dev, SIZE) < 0 ||
	    test_image_segment(&t, &in) < 0 ||
	    test_image_snapshot(&t, "v1", NULL, 0) < 0 ||
	    test_image_commit(&t) < 0)
		bail("no image");
	test_image_draft(&t, &draft);
	is_uint(1, draft.counts.free, "an extent is free");
	if (way == FORGOTTEN)
		draft.counts.free = 0;
	draft.high_water += way == BEHIND ? 4096 : 0;
	is_int(0, stele_image_commit(&t.image, &draft), "commit");
	is_int(way != SOUND, stele_verify_image(&t.image, -1, &opts, &report),
	       "%s", name);
	is_uint(way != SOUND, report.damaged, "so many reports");
	is_string(what, damage.what, "of what");
	is_int(0, stele_verify_image(&t.image, 0, &opts, &report) < 0,
	       "the snapshot alone can be verified");
	stele_device_close(test_image_end(&t));
	free(samples);
}

int main(void)
{
	plan_lazy();
	check(SOUND, NULL, "all is listed");
	check(FORGOTTEN, "catalog", "a free extent is not listed");
	check(BEHIND, "superblock", "the high-water mark is too high");
	return done();
}
