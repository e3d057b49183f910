/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resident.c - see resident.h
 *
 * A page is in exactly one run while it is present, so there are never more runs than pages
 * that may be present.
 */
#include "lib/view/resident.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

enum state {
	ABSENT, /* as it begins */
	PRESENT,
	POISONED,
};

struct stele_resident_run {
	uint64_t first, count; /* pages */
};

int stele_resident_init(struct stele_resident *r, struct stele_faults *faults,
			uint64_t pages_max)
{
	const uint64_t pages = faults->size / faults->page_size;

	*r = (struct stele_resident){.faults = faults, .pages_max = pages_max};
	pthread_mutex_init(&r->lock, NULL);
	r->capacity = pages_max < pages ? pages_max : pages;
	r->runs = calloc(r->capacity + 1, sizeof(*r->runs));
	if (!r->runs)
		return -ENOMEM;
	/* A byte for 4 KiB of the target is much for large ones: memory only where in use. */
	r->states = mmap(NULL, pages + 1, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (r->states != MAP_FAILED)
		return 0;
	r->states = NULL;
	return -errno;
}

void stele_resident_release(struct stele_resident *r)
{
	if (r->faults)
		pthread_mutex_destroy(&r->lock);
	if (r->states)
		munmap(r->states, r->faults->size / r->faults->page_size + 1);
	free(r->runs);
	*r = (struct stele_resident){0};
}

static void drop_oldest(struct stele_resident *r)
{
	const struct stele_resident_run *run = &r->runs[r->head];
	const size_t page_size = r->faults->page_size;

	stele_faults_drop(r->faults, run->first * page_size, run->count * page_size);
	for (uint64_t i = 0; i < run->count; i++)
		r->states[run->first + i] = ABSENT;
	r->pages -= run->count;
	r->head = (r->head + 1) % r->capacity;
	r->count--;
}

static int fill_run(struct stele_resident *r, uint64_t first, uint64_t count,
		    const char *data)
{
	const size_t page_size = r->faults->page_size;
	int err = 0;

	while (r->count && r->pages + count > r->pages_max)
		drop_oldest(r);
	for (uint64_t page = first; !err && page < first + count; page++) {
		if (r->states[page] != POISONED)
			continue;
		err = stele_faults_heal(r->faults, page * page_size);
		r->states[page] = err ? POISONED : ABSENT;
	}
	if (!err)
		err = stele_faults_fill(r->faults, first * page_size, data,
					count * page_size);
	if (err)
		return err;
	for (uint64_t i = 0; i < count; i++)
		r->states[first + i] = PRESENT;
	r->runs[(r->head + r->count++) % r->capacity] =
		(struct stele_resident_run){first, count};
	r->pages += count;
	return 0;
}

int stele_resident_fill(struct stele_resident *r, uint64_t first, uint64_t count,
			const char *data, const bool *bad)
{
	uint64_t i = 0, end;
	int err = 0;

	pthread_mutex_lock(&r->lock);
	for (; i < count && !err; i = end) {
		end = i;
		while (end < count && !bad[end] && r->states[first + end] != PRESENT)
			end++;
		if (end > i)
			err = fill_run(r, first + i, end - i,
				       data + i * r->faults->page_size);
		else
			end++;
	}
	pthread_mutex_unlock(&r->lock);
	return err;
}

void stele_resident_poison(struct stele_resident *r, uint64_t page)
{
	const uint64_t offset = page * r->faults->page_size;

	pthread_mutex_lock(&r->lock);
	if (r->states[page] == ABSENT && !stele_faults_poison(r->faults, offset))
		r->states[page] = POISONED;
	else
		stele_faults_wake(r->faults, offset);
	pthread_mutex_unlock(&r->lock);
}

void stele_resident_trim(struct stele_resident *r, uint64_t *first, uint64_t *count)
{
	pthread_mutex_lock(&r->lock);
	while (*count && r->states[*first] == PRESENT) {
		++*first;
		--*count;
	}
	while (*count && r->states[*first + *count - 1] == PRESENT)
		--*count;
	pthread_mutex_unlock(&r->lock);
}

bool stele_resident_hold(struct stele_resident *r, uint64_t first, uint64_t count)
{
	uint64_t i = 0;

	pthread_mutex_lock(&r->lock);
	while (i < count && r->states[first + i] == PRESENT)
		i++;
	if (i < count)
		pthread_mutex_unlock(&r->lock);
	return i == count;
}

void stele_resident_let(struct stele_resident *r)
{
	pthread_mutex_unlock(&r->lock);
}
