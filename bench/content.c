/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content.c - see content.h
 */
#include "bench/content.h"

#include <err.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t content_mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static void parse_split(const char *text, struct content *c)
{
	int used;

	for (const char *at = text; *at; at += used + (at[used] == ',')) {
		if (c->pieces == CONTENT_PIECES_MAX ||
		    sscanf(at, "%" SCNu64 "/%" SCNu64 "%n", &c->split[c->pieces].size,
			   &c->split[c->pieces].share, &used) != 2)
			errx(2, "no sizes: '%s'", text);
		c->shares += c->split[c->pieces++].share;
	}
	if (c->shares == 0)
		errx(2, "no sizes: '%s'", text);
}

void content_parse(const char *text, struct content *out)
{
	char kind[16];
	int used = 0;
	int numbers;

	memset(out, 0, sizeof(*out));
	if (sscanf(text, "%" SCNu64 ":%" SCNu64 ":%15[a-z]:%n", &out->count, &out->seed, kind,
		   &used) != 3 ||
	    used == 0 || out->count == 0)
		errx(2, "no description of a set: '%s'", text);
	if (strcmp(kind, "split") == 0) {
		out->kind = CONTENT_SPLIT;
		parse_split(text + used, out);
		return;
	}
	numbers = sscanf(text + used, "%" SCNu64 ":%" SCNu64, &out->a, &out->b);
	if (strcmp(kind, "fixed") == 0 && numbers == 1)
		out->kind = CONTENT_FIXED;
	else if (strcmp(kind, "uniform") == 0 && numbers == 2 && out->a <= out->b)
		out->kind = CONTENT_UNIFORM;
	else if (strcmp(kind, "normal") == 0 && numbers == 2)
		out->kind = CONTENT_NORMAL;
	else
		errx(2, "no description of a set: '%s'", text);
}

/* Uniform in (0, 1). */
static double unit(uint64_t x)
{
	return ((double)(content_mix(x) >> 11) + 0.5) / 9007199254740992.0;
}

static uint64_t normal_size(const struct content *c, uint64_t x)
{
	double z = sqrt(-2 * log(unit(x))) * cos(2 * M_PI * unit(x + 1));
	double size = (double)c->a + z * (double)c->b;

	return (uint64_t)fmin(fmax(size, (double)c->a / 10), (double)c->a * 3);
}

static uint64_t split_size(const struct content *c, uint64_t x)
{
	uint64_t at = content_mix(x) % c->shares;
	unsigned int i = 0;

	while (at >= c->split[i].share)
		at -= c->split[i++].share;
	return c->split[i].size;
}

uint64_t content_size(const struct content *c, uint64_t i)
{
	const uint64_t x = content_mix(c->seed) + 2 * i;

	switch (c->kind) {
	case CONTENT_UNIFORM:
		return c->a + content_mix(x) % (c->b - c->a + 1);
	case CONTENT_NORMAL:
		return normal_size(c, x);
	case CONTENT_SPLIT:
		return split_size(c, x);
	default:
		return c->a;
	}
}

uint64_t content_size_max(const struct content *c)
{
	uint64_t max = 0;

	for (uint64_t i = 0; i < c->count; i++)
		if (content_size(c, i) > max)
			max = content_size(c, i);
	return max;
}

void content_path(uint64_t i, char path[CONTENT_PATH_SIZE])
{
	snprintf(path, CONTENT_PATH_SIZE, "d%05" PRIu64 "/s%08" PRIu64 ".bin",
		 i / CONTENT_FOLDER % 100000, i % 100000000);
}

void content_fill(const struct content *c, uint64_t i, void *data, uint64_t size)
{
	const uint64_t x = content_mix(content_mix(c->seed) ^ i) << 1;
	uint64_t *words = data;

	for (uint64_t at = 0; at < (size + 7) / 8; at++)
		words[at] = content_mix(x + at * UINT64_C(0x9e3779b97f4a7c15));
}
