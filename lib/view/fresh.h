/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fresh.h - samples of a view that were read around the page cache
 *
 * Cached pages may be older than the target, and stay while anybody has them
 * mapped: such samples get their own memory until the view is closed. Any thread;
 * entries are only added, by one atomic exchange, so that a forked child finds them intact.
 */
#ifndef STELE_VIEW_FRESH_H
#define STELE_VIEW_FRESH_H

#include <stdatomic.h>

#include "lib/stele.h"

/* Bytes of all of a view together: who needs more had better not read through a cache. */
#define STELE_FRESH_SIZE_MAX (UINT64_C(256) << 20)

#define STELE_FRESH_BUCKETS 256u

struct stele_fresh_entry;

struct stele_fresh {
	struct stele_fresh_entry *_Atomic buckets[STELE_FRESH_BUCKETS];
	_Atomic uint64_t size;
};

/* *out, its buffer NULL, if the sample is there. */
bool stele_fresh_find(const struct stele_fresh *fresh, uint64_t id,
		      struct stele_sample *out);
/*
 * Keep `sample`, whose buffer has `size` bytes; that is theirs then, and NULL in *sample.
 * Return: 0; -ENOBUFS (over the limit); -ENOMEM.
 */
int stele_fresh_add(struct stele_fresh *fresh, struct stele_sample *sample,
		    uint64_t size);
void stele_fresh_release(struct stele_fresh *fresh);

#endif
