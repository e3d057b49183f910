/* SPDX-License-Identifier: Apache-2.0 */
/*
 * samples.c - samples for test images
 */
#include "tests/image.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

#define KEY_SIZE 48u

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

struct test_sample *test_samples(uint64_t count, uint64_t size_max,
				 uint64_t seed)
{
	const size_t head = count * sizeof(struct test_sample);
	struct test_sample *samples = calloc(1, head + count * KEY_SIZE + size_max + 8);
	char *keys = (char *)samples + head;
	uint8_t *data = (uint8_t *)keys + count * KEY_SIZE;

	if (!samples)
		bail("no memory for test samples");
	for (uint64_t i = 0; i < size_max; i += 8) {
		uint64_t value = next_random(&seed);

		memcpy(data + i, &value, sizeof(value));
	}
	for (uint64_t i = 0; i < count; i++) {
		struct test_sample *s = &samples[i];

		s->key = keys + i * KEY_SIZE;
		snprintf(keys + i * KEY_SIZE, KEY_SIZE,
			 "class%" PRIu64 "/%08" PRIu64,
			 i * 4 / count, i);
		s->size = next_random(&seed) % (size_max + 1);
		s->data = data + next_random(&seed) % (size_max - s->size + 1);
		s->label = (int64_t)(i * 4 / count);
	}
	return samples;
}
