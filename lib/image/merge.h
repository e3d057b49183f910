/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h - the keys of several segments in byte order, from sections alone
 *
 * A heap of walks that have a key, the smallest on top; among equal keys, that
 * of the segment added first. The walk on top is advanced only by the
 * next call, so that its key stays valid until then.
 */
#ifndef STELE_IMAGE_MERGE_H
#define STELE_IMAGE_MERGE_H

#include "lib/image/section.h"

struct stele_keys_merge {
	struct stele_keys_walk *walks; /* owned */
	uint32_t *heap;		       /* owned: indices of walks */
	uint32_t count, capacity;      /* of walks */
	uint32_t heap_size;
	bool taken; /* the caller holds the key on top */
};

/* Room for `capacity` segments. Return: 0; -ENOMEM. Release in any case. */
int stele_keys_merge_init(struct stele_keys_merge *merge, uint32_t capacity);
/* Idempotent on a zeroed struct. */
void stele_keys_merge_release(struct stele_keys_merge *merge);
/*
 * Add a segment, starting at its first key >= `from`; all before the first next.
 * Image and segment must outlive the merge. Return: 0; errors of a walk.
 */
int stele_keys_merge_add(struct stele_keys_merge *merge,
			 const struct stele_image *image,
			 const struct stele_segment *segment, const char *from,
			 size_t from_size);
/*
 * Return: 1 (`key`, of the segment added as `index`-th); 0 at the end;
 * errors of a walk.
 */
int stele_keys_merge_next(struct stele_keys_merge *merge, uint32_t *index,
			  const struct stele_key **key);
/*
 * Go on at the first key >= `key` that was not handed out; never back. Return: 0; errors of a
 * walk.
 */
int stele_keys_merge_seek(struct stele_keys_merge *merge, const char *key, size_t key_size);
/* Its id, as stele_snapshot_id(). */
int stele_keys_merge_id(const struct stele_keys_merge *merge, uint32_t index,
			const struct stele_key *key, uint64_t *id);

#endif
