/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rich.c - samples from numbers: key, bytes, ends and scalars
 */
#include "tests/rich.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct stele_descriptor_field fields[RICH_FIELDS] = {
	{.name = "score", .type = STELE_FIELD_F64},
	{.name = "image", .type = STELE_FIELD_BYTES},
	{.name = "label", .type = STELE_FIELD_I64},
	{.name = "caption", .type = STELE_FIELD_UTF8},
	{.name = "mask", .type = STELE_FIELD_BYTES},
	{.name = "when", .type = STELE_FIELD_I64},
};

static char *label_names[] = {"bird", "a cat", "dog\n", "\xff fish"};
static const struct stele_names names[RICH_FIELDS] = {
	[2] = {label_names, 4},
};

struct state {
	uint64_t sample, size, at;
};

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t size_of(const struct rich *rich, uint64_t sample)
{
	return sample % 11 ? mix(sample) % (rich->size_max + 1) : 0;
}

static int rich_scan(struct stele_source *source,
		     const struct stele_source_sink *sink)
{
	const struct rich *rich = (const struct rich *)source;
	int ret = 0;

	for (uint64_t i = 0; i < rich->count && !ret; i++) {
		char key[64];
		struct stele_source_entry entry = {
			.key = key, .size = size_of(rich, i), .place = i};

		entry.key_size = (size_t)snprintf(
			key, sizeof(key), "%02x/%06u",
			(unsigned int)(mix(i) & 0xff), (unsigned int)i);
		ret = sink->entry(sink->user, &entry);
	}
	return ret;
}

static int rich_open(struct stele_source *source,
		     const struct stele_source_entry *entry,
		     struct stele_source_file *file)
{
	struct state *state = file->state;

	if (!state)
		state = calloc(1, sizeof(*state));
	if (!state)
		return -ENOMEM;
	file->state = state;
	file->source = source;
	*state = (struct state){entry->place, entry->size, 0};
	return 0;
}

static ssize_t rich_read(struct stele_source_file *file, void *data,
			 size_t size)
{
	struct state *state = file->state;
	uint8_t *bytes = data;

	if (size > state->size - state->at)
		size = state->size - state->at;
	for (size_t i = 0; i < size; i++, state->at++)
		bytes[i] = (uint8_t)(mix(state->sample << 32 ^ state->at / 8) >>
				     state->at % 8 * 8);
	return (ssize_t)size;
}

/* Now and then what only bits can tell apart. */
static uint64_t score_of(uint64_t sample)
{
	static const double odd[] = {NAN, INFINITY, -INFINITY, -0.0, 0.0};
	double score = (double)(int64_t)mix(sample) / 1e9;
	uint64_t bits;

	if (sample % 7 == 0)
		score = odd[sample / 7 % 5];
	memcpy(&bits, &score, sizeof(bits));
	return sample % 21 ? bits : bits ^ 1;
}

static void rich_tail(struct stele_source_file *file, uint64_t *ends,
		      uint64_t *scalars)
{
	const struct state *state = file->state;
	const uint64_t size = state->size;

	ends[0] = size ? mix(state->sample + 1) % (size + 1) : 0;
	ends[1] = ends[0] + (size - ends[0]) / 3;
	scalars[0] = score_of(state->sample);
	scalars[1] = state->sample % 5 - 1; /* -1: none of the names */
	scalars[2] = mix(state->sample + 2);
}

static void rich_close(struct stele_source_file *file)
{
	file->source = NULL;
}

static void rich_schema(struct stele_source *source,
			struct stele_source_schema *out)
{
	(void)source;
	*out = (struct stele_source_schema){fields, names, RICH_FIELDS};
}

static void rich_forget(struct stele_source_file *file)
{
	free(file->state);
	file->state = NULL;
}

static void rich_release(struct stele_source *source)
{
	(void)source;
}

static const struct stele_source_ops rich_ops = {
	.scan = rich_scan,
	.open = rich_open,
	.read = rich_read,
	.close = rich_close,
	.release = rich_release,
	.schema = rich_schema,
	.tail = rich_tail,
	.forget = rich_forget,
};

void rich_init(struct rich *rich, uint64_t count, uint64_t size_max)
{
	*rich = (struct rich){
		.source.ops = &rich_ops,
		.count = count,
		.size_max = size_max,
	};
}
