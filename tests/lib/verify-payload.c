/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify-payload.c - the payload size of a snapshot is held against its samples
 */
#include <stdlib.h>
#include <string.h>

#include "lib/verify/verify.h"
#include "tests/fixture/image.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#define IMAGE_SIZE (UINT64_C(8) << 20)

static char seen[192];

static void see(void *user, const struct stele_damage *damage)
{
	(void)user;
	strcpy(seen, damage->detail);
}

/* A snapshot of all, and one less some; `wrong` is added to what that one says. */
static int verify(uint64_t wrong, int64_t snapshot)
{
	static const uint64_t deleted[] = {0, 7, 300, 301};
	const struct test_ref ref = {0, deleted, 4};
	struct test_sample *samples = test_samples(302, 900, 7);
	const struct test_segment segment = {.samples = samples, .count = 302};
	const struct stele_verify_opts opts = {.size = sizeof(opts),
					       .damage = see, .jobs = 2};
	struct stele_verify_report report = {.size = sizeof(report)};
	static struct test_image t;
	struct stele_image image;
	int ret;

	seen[0] = '\0';
	if (test_image_begin(&t, test_memory(IMAGE_SIZE, 512, 0), IMAGE_SIZE) ||
	    test_image_segment(&t, &segment) ||
	    test_image_snapshot(&t, "all", NULL, 0) ||
	    test_image_snapshot(&t, "less", &ref, 1))
		bail("no image");
	t.snapshots[1].payload_size += wrong;
	if (test_image_commit(&t) ||
	    stele_image_load(test_image_end(&t), NULL, &image))
		bail("no image");
	ret = stele_verify_image(&image, snapshot, &opts, &report);
	stele_image_release(&image);
	free(samples);
	return ret < 0 ? ret : (int)report.damaged;
}

int main(void)
{
	static const char why[] =
		"snapshot 'less': payload size does not match its samples";

	plan_lazy();
	is_int(0, verify(0, -1), "as it is");
	is_int(1, verify(1, -1), "a byte more");
	is_string(why, seen, "said");
	is_int(1, verify(UINT64_MAX, -1), "a byte less");
	is_string(why, seen, "said");
	is_int(0, verify(1, 0), "no matter to the other snapshot");
	is_int(1, verify(1, 1), "the one alone");
	return done();
}
