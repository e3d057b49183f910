/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uring_memory.c - memory that the kernel has pinned for a ring
 *
 * The arena is cut into slabs of a huge page, no more than a table can hold, and each
 * is registered when a transfer first uses it: a reader that takes ten samples does
 * not wait for gigabytes to be pinned. Regions that are attached later are registered
 * at once, cut only where the kernel allows no longer entry. Where it has no tables
 * that can be added to (before Linux 5.19), the arena is registered whole and nothing
 * can be attached. What a limit forbids is told once, and transferred without.
 */
#include "lib/device/file/uring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/* A table has this many entries at most, each of this many bytes. */
#define ENTRIES_MAX (1u << 14)
#define ENTRY_MAX   ((size_t)1 << 30)

#define SLAB_SHIFT_MIN 21u
#define SLAB_COUNT_MAX (ENTRIES_MAX - STELE_QUEUE_REGIONS_MAX)

enum slab { SLAB_UNUSED, SLAB_REGISTERED, SLAB_REFUSED };

static struct iovec slab_at(const struct stele_uring_memory *memory,
			    unsigned int i)
{
	size_t slab = (size_t)1 << memory->slab_shift;
	size_t start = i * slab, left = memory->arena_size - start;

	return (struct iovec){
		.iov_base = memory->arena + start,
		.iov_len = left < slab ? left : slab,
	};
}

static void tell_refused(const struct stele_uring *queue, size_t size, int rc)
{
	stele_log_info(&queue->file->base.log,
		       "cannot register %zu bytes of memory: %s", size,
		       strerror(-rc));
}

/* ---- open and close -------------------------------------------------------- */

/* Before Linux 5.19. */
static int register_whole(struct stele_uring *queue)
{
	struct stele_uring_memory *memory = &queue->memory;
	struct iovec *slabs = calloc(memory->slab_count, sizeof(*slabs));
	int rc;

	if (!slabs)
		return -ENOMEM;
	for (unsigned int i = 0; i < memory->slab_count; i++)
		slabs[i] = slab_at(memory, i);
	rc = io_uring_register_buffers(&queue->ring, slabs, memory->slab_count);
	free(slabs);
	return rc;
}

void stele_uring_memory_init(struct stele_uring *queue, void *arena,
			     size_t arena_size)
{
	struct stele_uring_memory *memory = &queue->memory;
	int rc = 0;

	memory->arena = arena;
	memory->arena_size = arena ? arena_size : 0;
	memory->slab_shift = SLAB_SHIFT_MIN;
	while (memory->arena_size >> memory->slab_shift >= SLAB_COUNT_MAX)
		memory->slab_shift++;
	if (memory->arena_size)
		memory->slab_count = (unsigned int)((memory->arena_size - 1) >>
						    memory->slab_shift) +
				     1;
	if (!io_uring_register_buffers_sparse(
		    &queue->ring,
		    memory->slab_count + STELE_QUEUE_REGIONS_MAX)) {
		memory->table = true;
		memory->slabs = calloc(memory->slab_count + 1, 1);
		if (!memory->slabs)
			memory->arena_size = 0;
	} else if (memory->arena_size) {
		rc = register_whole(queue);
	}
	if (rc) {
		tell_refused(queue, memory->arena_size, rc);
		memory->arena_size = 0;
	}
}

void stele_uring_memory_release(struct stele_uring *queue)
{
	free(queue->memory.slabs);
	queue->memory.slabs = NULL;
}

/* ---- finding --------------------------------------------------------------- */

static int add_entry(struct stele_uring *queue, unsigned int place,
		     const struct iovec *entry)
{
	int rc = io_uring_register_buffers_update_tag(&queue->ring, place,
						      entry, NULL, 1);

	return rc == 1 ? 0 : rc < 0 ? rc : -ENOMEM;
}

/* What one slab is refused, the others would be too. */
static bool use_slab(struct stele_uring *queue, unsigned int i)
{
	struct stele_uring_memory *memory = &queue->memory;
	struct iovec entry = slab_at(memory, i);
	int rc = add_entry(queue, i, &entry);

	memory->slabs[i] = rc ? SLAB_REFUSED : SLAB_REGISTERED;
	if (!rc)
		return true;
	tell_refused(queue, memory->arena_size, rc);
	for (unsigned int j = 0; j < memory->slab_count; j++)
		if (memory->slabs[j] == SLAB_UNUSED)
			memory->slabs[j] = SLAB_REFUSED;
	return false;
}

/* Does this hold all of it? Where does it begin there? */
static bool holds(const char *start, size_t size, const void *data,
		  size_t count, size_t *at)
{
	*at = (uintptr_t)data - (uintptr_t)start;
	return (uintptr_t)data >= (uintptr_t)start && *at < size &&
	       count <= size - *at;
}

static int find_region(const struct stele_uring_memory *memory,
		       const void *data, size_t size)
{
	size_t at;

	for (unsigned int i = 0; i < memory->region_count; i++)
		if (holds(memory->regions[i].start, memory->regions[i].size,
			  data, size, &at))
			return (int)(memory->slab_count + i);
	return -1;
}

int stele_uring_memory_find(struct stele_uring *queue, void *data, size_t size)
{
	struct stele_uring_memory *memory = &queue->memory;
	unsigned int slab;
	size_t at;

	if (!holds(memory->arena, memory->arena_size, data, size, &at))
		return find_region(memory, data, size);
	slab = (unsigned int)(at >> memory->slab_shift);
	if ((at + size - 1) >> memory->slab_shift != slab)
		return -1;
	if (!memory->slabs || memory->slabs[slab] == SLAB_REGISTERED)
		return (int)slab;
	if (memory->slabs[slab] == SLAB_UNUSED && use_slab(queue, slab))
		return (int)slab;
	return -1;
}

/* ---- regions --------------------------------------------------------------- */

/*
 * Nothing uses it yet. Were it left in the table, other memory that comes to lie at
 * its address would be taken for it.
 */
static void forget_regions(struct stele_uring *queue, unsigned int count)
{
	struct stele_uring_memory *memory = &queue->memory;
	const struct iovec none = {0};

	while (memory->region_count > count) {
		memory->region_count--;
		add_entry(queue, memory->slab_count + memory->region_count,
			  &none);
	}
}

int stele_uring_memory_attach(struct stele_queue *base, void *data, size_t size)
{
	struct stele_uring *queue = (struct stele_uring *)base;
	struct stele_uring_memory *memory = &queue->memory;
	unsigned int before = memory->region_count;
	char *start = data;
	int rc = 0;

	if (!memory->table)
		return -EOPNOTSUPP;
	if ((size - 1) / ENTRY_MAX >= STELE_QUEUE_REGIONS_MAX - before)
		return -ENOSPC;
	while (!rc && size) {
		unsigned int i = memory->region_count;
		struct iovec entry = {
			.iov_base = start,
			.iov_len = size < ENTRY_MAX ? size : ENTRY_MAX,
		};

		rc = add_entry(queue, memory->slab_count + i, &entry);
		if (rc)
			break;
		memory->regions[i] =
			(struct stele_uring_region){.start = start,
						    .size = entry.iov_len};
		memory->region_count++;
		start += entry.iov_len;
		size -= entry.iov_len;
	}
	if (rc)
		forget_regions(queue, before);
	return rc;
}
