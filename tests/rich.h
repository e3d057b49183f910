/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rich.h - a source whose samples have fields of every type that is written
 *
 * In memory, made from a seed: three fields with bytes, scalars of both types
 * between them, names for one. What a directory cannot be, and an image may.
 */
#ifndef STELE_TESTS_RICH_H
#define STELE_TESTS_RICH_H

#include "lib/source/source.h"

#define RICH_FIELDS  6u
#define RICH_BYTES   3u
#define RICH_SCALARS 3u

struct rich {
	struct stele_source source;
	uint64_t count;
	uint64_t size_max; /* of all of a sample's bytes */
};

void rich_init(struct rich *rich, uint64_t count, uint64_t size_max);

#endif
