/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages.c - explicit huge pages, else transparent ones, else small
 *
 * Explicit ones are reserved when they are mapped, so that later there is no want of
 * them. A control group may forbid to use what could be reserved: that shows with
 * the first page, which is therefore populated at once.
 */
#include "lib/read/pages.h"

#include <errno.h>
#include <sys/mman.h>

#include "format/checked.h"

#ifndef MAP_HUGE_2MB
#define MAP_HUGE_2MB (21 << 26)
#endif
#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

#define PROTECTION (PROT_READ | PROT_WRITE)
#define ANONYMOUS  (MAP_PRIVATE | MAP_ANONYMOUS)

static bool map_explicit(struct stele_pages *pages, uint64_t size)
{
	void *memory;

	size = round_up(size, STELE_HUGE_PAGE_SIZE);
	memory = mmap(NULL, size, PROTECTION,
		      ANONYMOUS | MAP_HUGETLB | MAP_HUGE_2MB, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	if (madvise(memory, STELE_HUGE_PAGE_SIZE, MADV_POPULATE_WRITE)) {
		munmap(memory, size);
		return false;
	}
	*pages = (struct stele_pages){memory, size, STELE_PAGES_EXPLICIT};
	return true;
}

/* Aligned to huge pages, so that they can be used. */
static bool map_aligned(struct stele_pages *pages, uint64_t size)
{
	char *memory, *aligned;
	size_t slack;

	memory = mmap(NULL, size + STELE_HUGE_PAGE_SIZE, PROTECTION, ANONYMOUS,
		      -1, 0);
	if (memory == MAP_FAILED)
		return false;
	slack = -(uintptr_t)memory & (STELE_HUGE_PAGE_SIZE - 1);
	aligned = memory + slack;
	if (slack)
		munmap(memory, slack);
	munmap(aligned + size, STELE_HUGE_PAGE_SIZE - slack);
	*pages = (struct stele_pages){aligned, size, STELE_PAGES_SMALL};
	if (size >= STELE_HUGE_PAGE_SIZE &&
	    !madvise(aligned, size, MADV_HUGEPAGE))
		pages->kind = STELE_PAGES_TRANSPARENT;
	return true;
}

int stele_pages_map(struct stele_pages *pages, uint64_t size)
{
	*pages = (struct stele_pages){0};
	if (size > SIZE_MAX / 2 || !checked_round_up(size, 4096, &size))
		return -ENOMEM;
	if (!(size >= STELE_HUGE_PAGE_SIZE && map_explicit(pages, size)) &&
	    !map_aligned(pages, size))
		return -ENOMEM;
	/*
	 * A child that wrote to a page would leave the parent with a copy; and of pages
	 * that are registered the kernel makes every child one.
	 */
	madvise(pages->memory, pages->size, MADV_DONTFORK);
	return 0;
}

void stele_pages_unmap(struct stele_pages *pages, bool forked)
{
	if (pages->memory && !forked)
		munmap(pages->memory, pages->size);
	*pages = (struct stele_pages){0};
}
