/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lender.c - a loader and its batches, until their last view is gone
 *
 * Whoever drops the last view of a batch may be any thread, with or without the GIL, while
 * the loader belongs to one at a time. So that only pushes the batch on a list, which the
 * thread that has the lock empties. The loader is closed when its object and its last
 * batch are gone; what a batch points to, therefore, outlives it.
 *
 * The library counts a batch as it is taken; here it is counted later, when nothing can
 * keep it from the caller any more. Only a restore goes back, or the loss of the newest.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

/* A batch in the caller's hands, or on its way back. */
struct py_lent {
	struct py_lent *next;
	struct py_lender *lender;
	struct stele_batch batch;
};

struct py_lender *py_lender_new(size_t core_count)
{
	struct py_lender *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->cores = calloc(core_count + 1, sizeof(struct py_core *));
	if (!l->cores) {
		free(l);
		return NULL;
	}
	atomic_init(&l->refs, 1);
	pthread_mutex_init(&l->lock, NULL);
	l->generation = py_generation;
	return l;
}

void py_lender_ref(struct py_lender *l)
{
	atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
}

void py_lender_collect(struct py_lender *l)
{
	struct py_lent *lent = atomic_exchange(&l->returned, NULL);

	while (lent) {
		struct py_lent *next = lent->next;

		stele_loader_release(l->loader, &lent->batch);
		free(lent);
		lent = next;
	}
}

void py_lender_unref(struct py_lender *l)
{
	if (atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) > 1)
		return;
	py_lender_collect(l);
	stele_loader_close(l->loader);
	py_lines_free(l->log.first);
	for (uint32_t i = 0; i < l->core_count; i++)
		py_core_unref(l->cores[i]);
	pthread_mutex_destroy(&l->lock);
	free(l->cores);
	free(l);
}

static void release_block(struct py_block *block)
{
	struct py_lent *lent = block->owner;
	struct py_lender *l = lent->lender;

	atomic_fetch_sub(&l->lent, 1);
	lent->next = atomic_load(&l->returned);
	while (!atomic_compare_exchange_weak(&l->returned, &lent->next, lent))
		;
	py_lender_unref(l);
}

struct py_block *py_lender_lend(struct py_lender *l, struct stele_batch *batch)
{
	struct py_block *block = py_block_new(NULL, batch->count);
	struct py_lent *lent = malloc(sizeof(*lent));

	if (!block || !lent) {
		if (block)
			py_block_unref(block);
		free(lent);
		stele_loader_release(l->loader, batch);
		return NULL;
	}
	*lent = (struct py_lent){.lender = l, .batch = *batch};
	py_lender_ref(l);
	atomic_fetch_add(&l->lent, 1);
	block->release = release_block;
	block->owner = lent;
	block->generation = l->generation;
	for (uint32_t i = 0; i < batch->count; i++)
		block->entries[i] = (struct py_entry){
			.sample = batch->samples[i],
			.block = block,
			.core = l->cores[batch->sources[i]],
		};
	return block;
}

void py_lender_take(struct py_lender *l, struct py_taken *taken)
{
	l->fresh = 0;
	stele_loader_save(l->loader, taken->place);
	pthread_mutex_lock(&py_lock);
	taken->number = ++l->taken;
	pthread_mutex_unlock(&py_lock);
}

void py_lender_count(struct py_lender *l, const struct py_taken *taken)
{
	if (taken->number <= l->counted)
		return;
	l->counted = taken->number;
	memcpy(l->before, l->place, sizeof(l->place));
	memcpy(l->place, taken->place, sizeof(l->place));
}

void py_lender_uncount(const struct py_block *block, uint64_t number)
{
	struct py_lent *lent = block->owner;
	struct py_lender *l = lent->lender;

	pthread_mutex_lock(&py_lock);
	if (number == l->counted)
		memcpy(l->place, l->before, sizeof(l->place));
	pthread_mutex_unlock(&py_lock);
}

void py_lender_place(struct py_lender *l)
{
	struct py_taken all;

	py_lender_take(l, &all);
	pthread_mutex_lock(&py_lock);
	py_lender_count(l, &all);
	pthread_mutex_unlock(&py_lock);
	l->fresh = 1;
}

int py_lender_restore(struct py_lender *l, const uint8_t *state)
{
	int err;

	py_lender_collect(l);
	err = stele_loader_restore(l->loader, state);
	if (!err)
		py_lender_place(l);
	return err;
}
