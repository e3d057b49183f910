/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content.h - the samples of a set, as functions of its description
 *
 * Size, path and bytes of sample i follow from (description, i) alone, so that a tree, an
 * archive and a database of one set hold the same without reading each other. The bytes are
 * random: nothing below can compress them, or keep two samples as one.
 *
 *	COUNT:SEED:fixed:SIZE
 *	COUNT:SEED:uniform:MIN:MAX
 *	COUNT:SEED:normal:MEAN:DEVIATION	never below a tenth of the mean
 *	COUNT:SEED:split:SIZE/SHARE,...		as fio's bssplit has it
 */
#ifndef STELE_BENCH_CONTENT_H
#define STELE_BENCH_CONTENT_H

#include <stdint.h>

#define CONTENT_PIECES_MAX 16u
#define CONTENT_PATH_SIZE  32u
#define CONTENT_FOLDER	   500u /* samples of one directory */

enum content_kind {
	CONTENT_FIXED,
	CONTENT_UNIFORM,
	CONTENT_NORMAL,
	CONTENT_SPLIT,
};

struct content {
	uint64_t count, seed;
	enum content_kind kind;
	uint64_t a, b; /* the numbers behind the kind */
	unsigned int pieces;
	struct {
		uint64_t size, share;
	} split[CONTENT_PIECES_MAX];
	uint64_t shares;
};

/* A well mixed number from any other; splitmix64's step. */
uint64_t content_mix(uint64_t x);

/* Exits with a message when the text is none. */
void content_parse(const char *text, struct content *out);
uint64_t content_size(const struct content *c, uint64_t i);
uint64_t content_size_max(const struct content *c);
/* Relative, "d0007/s0003712.bin": in the order of i, CONTENT_FOLDER to a directory. */
void content_path(uint64_t i, char path[CONTENT_PATH_SIZE]);
/* @data has room for the size rounded up to 8 bytes. */
void content_fill(const struct content *c, uint64_t i, void *data, uint64_t size);

#endif
