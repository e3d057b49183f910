/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages.h - memory that devices write to: whole huge pages where they are to be had
 *
 * A sample in huge pages is one address for the device and one TLB entry for the
 * checksum, where 4 KiB pages are hundreds. Nothing is touched here but the first page:
 * the rest costs its page faults when it is used. It is not there in a child after
 * fork(), as transfers into it may be under way.
 */
#ifndef STELE_READ_PAGES_H
#define STELE_READ_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#define STELE_HUGE_PAGE_SIZE (UINT64_C(2) << 20)

enum stele_pages_kind {
	STELE_PAGES_SMALL = 0,
	STELE_PAGES_TRANSPARENT, /* if the kernel likes */
	STELE_PAGES_EXPLICIT,	 /* of the pool that the administrator set aside */
};

struct stele_pages {
	char *memory; /* aligned to 2 MiB; NULL: none */
	uint64_t size;	 /* that were mapped, at least those asked for */
	enum stele_pages_kind kind;
};

/* Zeroed memory. Return: 0; -ENOMEM. */
int stele_pages_map(struct stele_pages *pages, uint64_t size);
/* Idempotent. `forked`: in a child the range may be somebody else's by now. */
void stele_pages_unmap(struct stele_pages *pages, bool forked);

#endif
