/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span.c - see span.h
 */
#include "from/span.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#define SECTOR_SIZE UINT64_C(512) /* of sysfs, whatever the device has */

/* First line of a file that sysfs has of a device, without its newline. */
static bool read_text(dev_t number, const char *name, char *text, size_t size)
{
	char path[96];
	FILE *file;
	bool got;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s", major(number), minor(number),
		 name);
	file = fopen(path, "re");
	if (!file)
		return false;
	got = fgets(text, (int)size, file);
	fclose(file);
	if (got)
		text[strcspn(text, "\n")] = '\0';
	return got;
}

/* In units of `unit` bytes. What cannot be told is `unknown`. */
static uint64_t read_bytes(dev_t number, const char *name, uint64_t unit, uint64_t unknown)
{
	uint64_t value, bytes;
	char text[32];

	if (!read_text(number, name, text, sizeof(text)) || sscanf(text, "%" SCNu64, &value) != 1)
		return unknown;
	return __builtin_mul_overflow(value, unit, &bytes) ? UINT64_MAX : bytes;
}

/* What the device is a part of, and where in it that begins. False: of nothing that is known. */
static bool find_below(dev_t number, struct stat *st, uint64_t *offset)
{
	char backing[PATH_MAX], disk[32];
	unsigned int high, low;

	if (read_text(number, "loop/backing_file", backing, sizeof(backing))) {
		*offset = read_bytes(number, "loop/offset", 1, 0);
		return !stat(backing, st);
	}
	*offset = read_bytes(number, "start", SECTOR_SIZE, UINT64_MAX);
	/* A partition's directory lies within its disk's. */
	if (*offset == UINT64_MAX || !read_text(number, "../dev", disk, sizeof(disk)) ||
	    sscanf(disk, "%u:%u", &high, &low) != 2)
		return false;
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFBLK;
	st->st_rdev = makedev(high, low);
	return true;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

void from_span_find(const struct stat *st, struct from_span *out)
{
	unsigned int i = 0;
	uint64_t offset;

	memset(out, 0, sizeof(*out));
	out->levels[0].st = *st;
	out->levels[0].end = S_ISBLK(st->st_mode) ?
				     read_bytes(st->st_rdev, "size", SECTOR_SIZE, UINT64_MAX) :
				     UINT64_MAX;
	for (; i + 1 < FROM_SPAN_LEVELS_MAX && S_ISBLK(out->levels[i].st.st_mode) &&
	       find_below(out->levels[i].st.st_rdev, &out->levels[i + 1].st, &offset);
	     i++) {
		out->levels[i + 1].begin = add(out->levels[i].begin, offset);
		out->levels[i + 1].end = add(out->levels[i].end, offset);
	}
	out->count = i + 1;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	if (S_ISBLK(a->st_mode) || S_ISBLK(b->st_mode))
		return S_ISBLK(a->st_mode) && S_ISBLK(b->st_mode) && a->st_rdev == b->st_rdev;
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool from_span_overlaps(const struct from_span *a, const struct from_span *b)
{
	for (unsigned int i = 0; i < a->count; i++)
		for (unsigned int k = 0; k < b->count; k++)
			if (is_same(&a->levels[i].st, &b->levels[k].st) &&
			    ((!i && !k) || (a->levels[i].begin < b->levels[k].end &&
					    b->levels[k].begin < a->levels[i].end)))
				return true;
	return false;
}
