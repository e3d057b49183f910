/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.c - fuzz target: any bytes as the file of a profile
 *
 * Bit 0 makes the last line, the checksum, good. What decodes must be what it
 * encodes to, and a reader that starts by it must have a window that makes sense.
 */
#include <inttypes.h>
#include <stdio.h>

#include "format/crc32c.h"
#include "lib/node/profile.h"
#include "lib/read/depth.h"
#include "tests/fuzz/input.h"

#define TAIL_SIZE (sizeof("crc32c = 01234567\n") - 1)
#define DEPTH_MAX 1024u
#define BYTES_MAX (UINT64_C(64) << 20)
#define TIME_STEP UINT64_C(50000000) /* ns: rounds end */

static void seal(char *text, size_t size)
{
	char tail[TAIL_SIZE + 1];

	size -= TAIL_SIZE;
	snprintf(tail, sizeof(tail), "crc32c = %08" PRIx32 "\n",
		 stele_crc32c(0, text, size));
	memcpy(text + size, tail, TAIL_SIZE);
}

/* 64 requests, one by one. */
static void read_by(const struct stele_profile *profile)
{
	const struct stele_depth_config config = {
		.start = profile->depth,
		.depth_max = DEPTH_MAX,
		.bytes_max = BYTES_MAX,
	};
	struct stele_depth *depth = malloc(sizeof(*depth));

	input_assert(depth != NULL);
	stele_depth_init(depth, &config);
	for (uint32_t i = 0; i < 64; i++) {
		uint64_t now = i * TIME_STEP;
		uint32_t size = UINT32_C(1) << (i % 24), window;

		input_assert(stele_depth_admits(depth, size));
		stele_depth_issued(depth, size, now);
		window = stele_depth_window(depth);
		input_assert(window >= 1 && window <= DEPTH_MAX);
		stele_depth_completed(depth, size, now, now + TIME_STEP, 0,
				      false);
		input_assert(!depth->in_flight && !depth->bytes_in_flight);
	}
	free(depth);
}

static void use(const struct stele_profile *profile,
		const struct stele_profile_facts *facts, const char *text,
		size_t size)
{
	char *again = malloc(STELE_PROFILE_SIZE_MAX);

	input_assert(again &&
		     memchr(profile->device, 0, sizeof(profile->device)));
	input_assert(memchr(profile->backend, 0, sizeof(profile->backend)));
	input_assert(memchr(profile->host, 0, sizeof(profile->host)));
	input_assert(memchr(profile->target, 0, sizeof(profile->target)));
	input_assert(profile->point_count <= STELE_PROFILE_POINTS_MAX);
	for (uint32_t i = 0; i < profile->point_count; i++)
		input_assert(stele_profile_depth(profile, profile->points[i].size) >= 1);
	input_assert(memchr(facts->kernel, 0, sizeof(facts->kernel)));
	input_assert(memchr(facts->scheduler, 0, sizeof(facts->scheduler)));
	stele_profile_encode(profile, facts, again);
	input_assert(strlen(again) == size && !memcmp(again, text, size));
	free(again);
	read_by(profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stele_profile profile = {.size = sizeof(profile)};
	struct stele_profile_facts facts;
	const char *why = NULL;
	char *text = input_bytes(data, &size);

	if (!text)
		return 0;
	if ((data[0] & 1) && size >= TAIL_SIZE)
		seal(text, size);
	if (stele_profile_decode(text, size, &profile, &facts, &why) == 0)
		use(&profile, &facts, text, size);
	else
		input_assert(why != NULL);
	free(text);
	return 0;
}
