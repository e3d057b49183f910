/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_keys.h - keys and sizes of the samples of a batch
 *
 * They are listed by key, so a few are looked up by rank, and many take a walk of all keys of
 * the segment. That is why batches that need them are as large as memory allows.
 */
#ifndef STELE_QUERY_ROW_KEYS_H
#define STELE_QUERY_ROW_KEYS_H

#include "lib/query/scan.h"

#define STELE_ROW_KEYS_MEMORY (UINT64_C(128) << 20) /* bytes of keys */

struct stele_row_key {
	uint64_t size; /* of the sample */
	uint64_t offset; /* of the key, in the text */
	uint32_t key_size; /* 0: not known */
};

/* Zeroed at first. */
struct stele_row_keys {
	struct stele_row_key *rows; /* owned, as many as there is room for */
	size_t capacity;
	char *text;		    /* owned: the keys */
	uint64_t used, room;	    /* bytes of it */
};

/*
 * Of all in the batch; the keys, too, or sizes alone. Return: 0; -EOVERFLOW (more bytes of
 * keys than STELE_ROW_KEYS_MEMORY); -EUCLEAN (one has none; logged); -ECANCELED; -ENOMEM;
 * errors of stele_section_read().
 */
int stele_row_keys_load(struct stele_row_keys *keys, const struct stele_scan *scan,
			bool with_keys);
/* Of a batch of one, whose key the caller knows. Return: 0; -ENOMEM. */
int stele_row_keys_set(struct stele_row_keys *keys, const char *key, size_t key_size,
		       uint64_t size);
void stele_row_keys_release(struct stele_row_keys *keys);

#endif
