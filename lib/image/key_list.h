/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_list.h - from a few numbers to their keys, without walking all keys; and to sizes
 *
 * The keys section maps keys to numbers. The inverse uses the order
 * section: if the source had its samples in key order, as
 * directories do, the ordinal of a number is the rank of its key, and pages can be
 * searched by rank. The result is compared with the number looked
 * up, so another source order is detected, never trusted.
 */
#ifndef STELE_IMAGE_KEY_LIST_H
#define STELE_IMAGE_KEY_LIST_H

#include "lib/image/section.h"

struct stele_key_entry {
	char *key; /* not terminated */
	uint32_t key_size;
	uint64_t number, size;
};

/* Zeroed at first. */
struct stele_key_list {
	struct stele_key_entry *entries; /* owned, with their keys */
	size_t count;
};

/* Pages that a walk has read during one look-up, because it takes many at once. */
#define STELE_KEY_LIST_COST 32u
/* Does this read less than a walk of all keys? */
bool stele_key_list_pays(const struct stele_segment *segment, uint64_t count);
/*
 * Their keys, in byte order. Release in any case.
 * Return: 0; -ENOENT (the source had another order: walk); -ERANGE (numbers);
 * -ENOMEM; errors of stele_section_read().
 */
int stele_key_list_load(const struct stele_image *image,
			const struct stele_segment *segment,
			const uint64_t *numbers, uint64_t count,
			struct stele_key_list *out);
/*
 * Bytes of payload that samples have together: `numbers` strictly ascending. A few are
 * looked up, for more all pages of keys are read, in the order of the device.
 * Return: 0; -EUCLEAN (one is not listed; logged); -ENOMEM; errors of stele_section_read().
 */
int stele_key_list_payload(const struct stele_image *image,
			   const struct stele_segment *segment,
			   const uint64_t *numbers, uint64_t count, uint64_t *size);
/* Idempotent on a zeroed struct. */
void stele_key_list_release(struct stele_key_list *list);

#endif
