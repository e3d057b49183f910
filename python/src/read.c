/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - those who want samples: a block is laid out, read, and waited for
 *
 * By the service, with a look for signals now and then; or without it, where that is
 * cheaper: by pointer into a view, and one sample for the only thread that wants any.
 * Whoever stops waiting leaves the block behind, which the service drops when what is in
 * flight of it is done.
 */
#include "py.h"

#include <stdlib.h>

#define PAGE 4096u

/* Bytes that the device fills for one sample. */
static uint64_t read_size(const struct py_core *core,
			  const struct stele_extent *extent)
{
	uint64_t mask = core->info.logical_block - 1;
	uint64_t begin = extent->offset & ~mask;

	return ((extent->offset + extent->slot_size + mask) & ~mask) - begin;
}

/* A block with a place for each sample, page by page. */
static int lay_out(struct py_block *block, const uint64_t *ids)
{
	struct stele_extent extent = {.size = sizeof(extent)};
	size_t total = 0;
	int err = 0;

	for (size_t i = 0; !err && i < block->count; i++) {
		struct py_entry *entry = &block->entries[i];

		*entry = (struct py_entry){.sample.id = ids[i],
					   .block = block,
					   .core = block->core};
		err = stele_dataset_locate(block->core->ds, ids[i], &extent);
		if (err)
			break;
		entry->sample.size = read_size(block->core, &extent);
		if (__builtin_add_overflow(
			    total, (entry->sample.size + PAGE - 1) / PAGE * PAGE,
			    &total) ||
		    total > PTRDIFF_MAX)
			return -ENOMEM;
	}
	if (!err)
		err = py_block_allocate(block, total);
	if (err)
		return err;
	for (size_t i = 0, at = 0; i < block->count; i++) {
		struct stele_sample *to = &block->entries[i].sample;

		to->data = (char *)block->memory + at;
		at += (to->size + PAGE - 1) / PAGE * PAGE;
	}
	return 0;
}

/* Return: whether the block is complete. */
static int wait_slice(struct py_block *block)
{
	const struct timespec until = py_wait_end();

	return sem_clockwait(&block->done, CLOCK_MONOTONIC, &until) == 0;
}

/* By pointer: nothing is queued, nothing waits. */
static struct py_block *look(struct py_core *core, struct py_block *block,
			     const uint64_t *ids)
{
	block->readonly = 1;
	Py_BEGIN_ALLOW_THREADS
	for (size_t i = 0; i < block->count; i++) {
		struct py_entry *entry = &block->entries[i];

		*entry = (struct py_entry){.block = block, .core = core};
		int err = stele_view_sample(core->view, ids[i], &entry->sample);

		entry->sample.id = ids[i];
		entry->sample.status = err;
	}
	Py_END_ALLOW_THREADS
	return block;
}

static void release_direct(struct py_block *block)
{
	stele_sample_release(&block->entries[0].sample);
}

/*
 * One sample for the only thread that wants any: two switches between threads would take
 * ten times as long as reading what is cached.
 */
static void read_direct(struct py_block *block, uint64_t id)
{
	struct py_entry *entry = &block->entries[0];

	*entry = (struct py_entry){.block = block, .core = block->core};
	stele_dataset_read(block->core->ds, id, &entry->sample);
	block->release = release_direct;
	block->memory_size = block->core->info.logical_block + entry->sample.size;
	atomic_fetch_add_explicit(&block->core->held, block->memory_size,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&block->core->direct, 1, memory_order_relaxed);
}

/* Return: whether the block is complete; negative errno. */
static int read_or_queue(struct py_core *core, struct py_block *block,
			 const uint64_t *ids)
{
	int alone = atomic_fetch_add(&core->callers, 1) == 0, ret;

	if (alone && block->count == 1 && core->direct_pays) {
		read_direct(block, ids[0]);
		ret = 1;
	} else {
		ret = lay_out(block, ids);
		if (!ret)
			ret = py_service_queue(core, block);
		if (!ret)
			ret = wait_slice(block);
	}
	return ret;
}

struct py_block *py_read(struct py_core *core, const uint64_t *ids,
				 size_t count)
{
	struct py_block *block = py_block_new(core, count);
	int err, done;

	if (!block) {
		PyErr_NoMemory();
		return NULL;
	}
	if (core->view || !count)
		return look(core, block, ids);
	Py_BEGIN_ALLOW_THREADS
	done = read_or_queue(core, block, ids);
	Py_END_ALLOW_THREADS
	err = done < 0 ? done : 0;
	while (!err && !done) {
		if (PyErr_CheckSignals()) {
			atomic_fetch_sub(&core->callers, 1);
			py_block_unref(block);
			return NULL;
		}
		Py_BEGIN_ALLOW_THREADS
		done = wait_slice(block);
		Py_END_ALLOW_THREADS
	}
	atomic_fetch_sub(&core->callers, 1);
	if (!err)
		return block;
	py_block_unref(block);
	py_raise(err, NULL);
	return NULL;
}
