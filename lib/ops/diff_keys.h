/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_keys.h - the keys of two snapshots that may differ, in byte order
 *
 * A segment that both snapshots have (same tree root: the same samples,
 * wherever they lie) is one part; of it only what one of them deleted matters.
 * These few keys are looked up where that reads less than a walk. Of all other
 * segments the keys are walked.
 */
#ifndef STELE_OPS_DIFF_KEYS_H
#define STELE_OPS_DIFF_KEYS_H

#include "lib/image/key_list.h"
#include "lib/image/merge.h"
#include "lib/read/dataset.h"

enum { STELE_DIFF_A, STELE_DIFF_B };

/* A segment, and where the two snapshots have it. */
struct stele_diff_part {
	const struct stele_image *image; /* to read it from */
	const struct stele_segment *segment;
	const struct stele_segment *in[2]; /* NULL: not there */
	struct stele_disk_block **digests; /* the comparison's; NULL at first */
	uint64_t digest_count;
};

struct stele_diff_key {
	struct stele_diff_part *part;
	const char *key; /* valid until the next one is asked for */
	size_t key_size;
	uint64_t number, size;
};

struct stele_diff_found {
	struct stele_diff_part *part;
	const struct stele_key_entry *entry;
};

struct stele_diff_keys {
	const struct stele_dataset *side[2];
	struct stele_diff_part *parts; /* owned, like what follows */
	uint32_t part_count;
	uint64_t same; /* samples that are alive in both, and were not read */

	struct stele_keys_merge merge;
	struct stele_diff_part **walked; /* by index in merge */
	const struct stele_key *walk_key; /* the merge's next; NULL: take one */
	struct stele_diff_part *walk_part;
	bool walk_ended;

	struct stele_key_list *lists;	/* by part */
	struct stele_diff_found *found; /* all of these, by key */
	size_t found_count, found_next;
};

/* Return: 0; -ENOMEM; errors of sections. Release in any case. */
int stele_diff_keys_init(struct stele_diff_keys *keys,
			 const struct stele_dataset *a,
			 const struct stele_dataset *b);
/* 1: *out is set (it may be deleted on either side); 0: at the end; errors. */
int stele_diff_keys_next(struct stele_diff_keys *keys,
			 struct stele_diff_key *out);
void stele_diff_keys_release(struct stele_diff_keys *keys);

#endif
