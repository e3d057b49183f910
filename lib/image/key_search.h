/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_search.h - many keys of a snapshot at once, from sections alone
 *
 * A few are looked up one by one; for more, walking all keys reads
 * less. Either way only live samples are found.
 */
#ifndef STELE_IMAGE_KEY_SEARCH_H
#define STELE_IMAGE_KEY_SEARCH_H

#include "lib/image/section.h"

struct stele_key_place {
	const char *key; /* the caller's; not terminated */
	size_t key_size;
	bool found;	  /* if true, the following are set: */
	uint32_t segment; /* index in the snapshot */
	uint64_t number, size;
};

/* For qsort: in byte order of the keys. */
int stele_key_place_compare(const void *a, const void *b);

/*
 * Find `count` keys, strictly ascending. Return: 0 (whether found or not);
 * -ENOMEM; errors of sections.
 */
int stele_snapshot_find_keys(const struct stele_image *image,
			     const struct stele_snapshot *snapshot,
			     struct stele_key_place *places, size_t count);

/* What a segment says of a key. */
struct stele_key_hit {
	int result; /* as stele_segment_find_key(), which would log it */
	uint64_t number;
};

/*
 * Look for one key in each of `count` segments, in all of them at the same time.
 * Return: 0; -ENOMEM; errors of the queue.
 */
int stele_segments_find_key(const struct stele_image *image,
			    const struct stele_segment *segments,
			    uint32_t count, const char *key, size_t key_size,
			    struct stele_key_hit *hits);

#endif
