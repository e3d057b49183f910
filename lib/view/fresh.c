/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fresh.c - lists by id that only grow
 *
 * Two threads may add the same sample at once: it is then there twice, and the later
 * one is found. Both are valid, and both stay.
 */
#include "lib/view/fresh.h"

#include <errno.h>
#include <stdlib.h>

struct stele_fresh_entry {
	struct stele_fresh_entry *next;
	struct stele_sample sample;
	void *buffer;
};

bool stele_fresh_find(const struct stele_fresh *fresh, uint64_t id,
		      struct stele_sample *out)
{
	const struct stele_fresh_entry *entry =
		atomic_load(&fresh->buckets[id % STELE_FRESH_BUCKETS]);

	while (entry && entry->sample.id != id)
		entry = entry->next;
	if (entry)
		*out = entry->sample;
	return entry;
}

int stele_fresh_add(struct stele_fresh *fresh, struct stele_sample *sample,
		    uint64_t size)
{
	struct stele_fresh_entry *_Atomic *bucket =
		&fresh->buckets[sample->id % STELE_FRESH_BUCKETS];
	struct stele_fresh_entry *entry;

	if (atomic_fetch_add(&fresh->size, size) + size > STELE_FRESH_SIZE_MAX) {
		atomic_fetch_sub(&fresh->size, size);
		return -ENOBUFS;
	}
	entry = malloc(sizeof(*entry));
	if (!entry) {
		atomic_fetch_sub(&fresh->size, size);
		return -ENOMEM;
	}
	entry->buffer = sample->buffer;
	sample->buffer = NULL;
	entry->sample = *sample;
	entry->next = atomic_load(bucket);
	while (!atomic_compare_exchange_weak(bucket, &entry->next, entry))
		;
	return 0;
}

void stele_fresh_release(struct stele_fresh *fresh)
{
	for (unsigned int i = 0; i < STELE_FRESH_BUCKETS; i++) {
		struct stele_fresh_entry *entry = fresh->buckets[i];

		while (entry) {
			struct stele_fresh_entry *next = entry->next;

			free(entry->buffer);
			free(entry);
			entry = next;
		}
		fresh->buckets[i] = NULL;
	}
}
