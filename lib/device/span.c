/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span.c - see span.h
 */
#include "lib/device/span.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "format/checked.h"
#include "lib/device/stack.h"

#define SECTOR_SIZE 512u /* of sysfs, whatever the device has */

static uint64_t size_of(const struct stat *st)
{
	uint64_t sectors, size;

	if (!S_ISBLK(st->st_mode) || stele_stack_attribute(st->st_rdev, "size", &sectors) ||
	    !checked_mul(sectors, SECTOR_SIZE, &size))
		return UINT64_MAX;
	return size;
}

/* What the device is a part of, and where in it that begins. False: of nothing that is known. */
static bool find_below(dev_t number, struct stat *st, uint64_t *offset)
{
	unsigned int high, low;
	char line[32];
	uint64_t start;

	if (stele_stack_backing(number, st)) {
		if (stele_stack_attribute(number, "loop/offset", offset))
			*offset = 0;
		return true;
	}
	/* Its directory lies within its disk's. */
	if (stele_stack_attribute(number, "start", &start) ||
	    stele_stack_text(number, "../dev", line, sizeof(line)) ||
	    sscanf(line, "%u:%u", &high, &low) != 2)
		return false;
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFBLK;
	st->st_rdev = makedev(high, low);
	return checked_mul(start, SECTOR_SIZE, offset);
}

/* What is not to be told reaches to the end of all there is. */
static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return checked_add(a, b, &sum) ? sum : UINT64_MAX;
}

void stele_span_find(const struct stat *st, struct stele_span *out)
{
	struct stele_span_level *level = out->levels;
	uint64_t offset;

	memset(out, 0, sizeof(*out));
	*level = (struct stele_span_level){.st = *st, .end = size_of(st)};
	out->count = 1;
	while (out->count < STELE_SPAN_LEVELS_MAX && S_ISBLK(level->st.st_mode) &&
	       find_below(level->st.st_rdev, &level[1].st, &offset)) {
		level[1].begin = add(level->begin, offset);
		level[1].end = add(level->end, offset);
		level++;
		out->count++;
	}
}

/* Each level of one is compared, for what lies under it may be unknown to the other. */
bool stele_span_overlaps(const struct stele_span *a, const struct stele_span *b)
{
	for (unsigned int i = 0; i < a->count; i++)
		for (unsigned int k = 0; k < b->count; k++) {
			const struct stele_span_level *x = &a->levels[i], *y = &b->levels[k];

			if (stele_stack_same(&x->st, &y->st) &&
			    ((!i && !k) || (x->begin < y->end && y->begin < x->end)))
				return true;
		}
	return false;
}

bool stele_span_begins_with(const struct stele_span *a, const struct stele_span *b)
{
	for (unsigned int i = 0; i < a->count; i++)
		for (unsigned int k = 0; k < b->count; k++)
			if (stele_stack_same(&a->levels[i].st, &b->levels[k].st) &&
			    a->levels[i].begin == b->levels[k].begin)
				return true;
	return false;
}

void stele_span_skip(struct stele_span *span, uint64_t size)
{
	for (unsigned int i = 0; i < span->count; i++)
		span->levels[i].begin = add(span->levels[i].begin, size);
}

int stele_span_each(const struct stele_span *span,
		    int (*fn)(dev_t number, const struct stele_span *has, void *user), void *user)
{
	DIR *dir = opendir("/sys/dev/block");
	struct stat st = {.st_mode = S_IFBLK};
	struct stele_span other;
	unsigned int high, low;
	struct dirent *entry;
	int ret = 0;

	if (!dir)
		return -errno;
	while (!ret && (entry = readdir(dir))) {
		if (sscanf(entry->d_name, "%u:%u", &high, &low) != 2)
			continue;
		st.st_rdev = makedev(high, low);
		stele_span_find(&st, &other);
		if (stele_span_overlaps(span, &other))
			ret = fn(st.st_rdev, &other, user);
	}
	closedir(dir);
	return ret;
}
