/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify-fields.c - verify reports texts that are none, and tensors of no whole rows
 *
 * In small records and in one that is larger than a buffer, whose text is cut where pieces
 * meet; readers still read them, and a tensor without its feature is refused.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/snapshot.h"
#include "lib/verify/verify.h"
#include "tests/fixture/image.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#define IMAGE_SIZE (UINT64_C(32) << 20)
#define LARGE	   (UINT64_C(9) << 20)

static char seen[192];
static uint8_t large[LARGE];

static void see(void *user, const struct stele_damage *damage)
{
	(void)user;
	snprintf(seen, sizeof(seen), "%s", damage->detail);
}

/* Two samples; the second one is to be found wrong, if one is. */
static int verify(uint32_t type, const void *data, uint64_t size,
		  uint64_t incompat)
{
	const struct test_sample samples[] = {
		{.key = "good", .data = (const uint8_t *)"goodtext", .size = 8},
		{.key = "other", .data = data, .size = size},
	};
	const struct test_segment segment = {
		.samples = samples, .count = 2, .type = type};
	const struct stele_verify_opts opts = {.size = sizeof(opts),
					       .damage = see};
	struct stele_verify_report report = {.size = sizeof(report)};
	static struct test_image t;
	struct stele_image image;
	int ret;

	seen[0] = '\0';
	if (test_image_begin(&t, test_memory(IMAGE_SIZE, 512, 0), IMAGE_SIZE))
		bail("no image");
	t.incompat |= incompat;
	if (test_image_segment(&t, &segment) ||
	    test_image_snapshot(&t, "v1", NULL, 0) || test_image_commit(&t) ||
	    stele_image_load(test_image_end(&t), NULL, &image))
		bail("no image");
	ret = stele_verify_image(&image, -1, &opts, &report);
	stele_image_release(&image);
	return ret < 0 ? ret : (int)report.damaged;
}

int main(void)
{
	static const char text[] = "field 'data' is not valid UTF-8";
	const uint64_t tensor = STELE_FEATURE_TENSOR;

	plan_lazy();
	is_int(0, verify(STELE_FIELD_UTF8, "r\xc3\xa9sum", 6, 0), "a text");
	is_int(0, verify(STELE_FIELD_UTF8, "", 0, 0), "an empty one");
	is_int(1, verify(STELE_FIELD_UTF8, "r\xe9sum\xe9", 6, 0), "no text");
	is_string(text, seen, "is said");
	is_int(1, verify(STELE_FIELD_UTF8, "r\xc3", 2, 0), "a text cut off");
	is_string(text, seen, "is said");
	is_int(0, verify(STELE_FIELD_BYTES, "r\xe9sum\xe9", 6, 0), "bytes");
	for (uint64_t i = 0; i < LARGE; i++)
		large[i] = i % 3 ? i % 3 == 1 ? 0x82 : 0xac : 0xe2;
	is_int(0, verify(STELE_FIELD_UTF8, large, LARGE, 0), "a large text");
	large[LARGE - 100] = 'x';
	is_int(1, verify(STELE_FIELD_UTF8, large, LARGE, 0), "one bad byte");
	is_string(text, seen, "is said");
	is_int(0, verify(STELE_FIELD_TENSOR, "123456", 6, tensor), "a tensor");
	is_int(1, verify(STELE_FIELD_TENSOR, "12345", 5, tensor), "half a row");
	is_string("field 'data' has a size that does not fit its shape", seen,
		  "is said");
	ok(verify(STELE_FIELD_TENSOR, "123456", 6, 0) != 0,
	   "a tensor without its feature is damage");
	return done();
}
