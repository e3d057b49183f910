/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.c - memory of samples that were read together, and the pool it returns to
 *
 * A block holds a reference for each Sample and each view that exists, and goes back when
 * the last one is gone. Fresh memory costs a page fault for every 4 KiB, more than reading
 * does, so the pool keeps up to POOL_MAX bytes of it, by size in quarters of a doubling.
 */
#include "core.h"

#include <errno.h>
#include <stdlib.h>

#define PAGE	 4096u
#define POOL_MAX (64u << 20)
#define CLASSES	 256

struct piece {
	struct piece *next;
};

static struct piece *pool[CLASSES]; /* these two under py_lock */
static size_t pooled;

/* Round up to a size of the pool, at least a page. Return: its class. */
static unsigned int size_class(size_t *size)
{
	unsigned int shift, quarter;

	if (*size < 4 * PAGE) {
		*size = (*size + PAGE - 1) / PAGE * PAGE;
		if (!*size)
			*size = PAGE;
		return (unsigned int)(*size / PAGE) - 1;
	}
	shift = 63 - (unsigned int)__builtin_clzl(*size - 1);
	quarter = shift - 2;
	*size = (((*size - 1) >> quarter) + 1) << quarter;
	return shift * 4 + (unsigned int)((*size - 1) >> quarter & 3);
}

static void *memory_take(size_t *size)
{
	unsigned int class = size_class(size);
	struct piece *piece;
	void *fresh;

	pthread_mutex_lock(&py_lock);
	piece = pool[class];
	if (piece) {
		pool[class] = piece->next;
		pooled -= *size;
	}
	pthread_mutex_unlock(&py_lock);
	if (piece)
		return piece;
	return posix_memalign(&fresh, PAGE, *size) ? NULL : fresh;
}

static void memory_give(void *memory, size_t size)
{
	size_t rounded = size;
	unsigned int class = size_class(&rounded);
	struct piece *piece = memory;

	pthread_mutex_lock(&py_lock);
	if (size <= POOL_MAX - pooled) {
		piece->next = pool[class];
		pool[class] = piece;
		pooled += size;
		piece = NULL;
	}
	pthread_mutex_unlock(&py_lock);
	free(piece);
}

struct py_block *py_block_new(struct py_core *core, size_t count)
{
	struct py_block *block;
	size_t size;

	if (__builtin_mul_overflow(count, sizeof(*block->entries), &size) ||
	    __builtin_add_overflow(size, sizeof(*block), &size))
		return NULL;
	block = malloc(size);
	if (!block)
		return NULL;
	*block = (struct py_block){.core = core ? py_core_ref(core) : NULL,
				   .missing = count,
				   .count = count};
	atomic_init(&block->refs, 1);
	sem_init(&block->done, 0, 0);
	if (core)
		atomic_fetch_add_explicit(&core->blocks, 1, memory_order_relaxed);
	return block;
}

int py_block_allocate(struct py_block *block, size_t size)
{
	block->memory = memory_take(&size);
	if (!block->memory)
		return -ENOMEM;
	block->memory_size = size;
	atomic_fetch_add_explicit(&block->core->held, size, memory_order_relaxed);
	return 0;
}

void py_block_ref(struct py_block *block, size_t count)
{
	atomic_fetch_add_explicit(&block->refs, count, memory_order_relaxed);
}

void py_block_unref(struct py_block *block)
{
	struct py_core *core = block->core;

	if (atomic_fetch_sub_explicit(&block->refs, 1, memory_order_acq_rel) > 1)
		return;
	if (block->memory_size)
		atomic_fetch_sub_explicit(&core->held, block->memory_size,
					  memory_order_relaxed);
	if (block->memory)
		memory_give(block->memory, block->memory_size);
	if (core)
		atomic_fetch_sub_explicit(&core->blocks, 1, memory_order_relaxed);
	if (block->release)
		block->release(block);
	sem_destroy(&block->done);
	free(block);
	py_core_unref(core);
}

int py_block_is_last(const struct py_block *block)
{
	return atomic_load_explicit(&block->refs, memory_order_relaxed) == 1;
}
