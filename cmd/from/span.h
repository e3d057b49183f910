/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span.h - which bytes of what lies under it a file or device is
 *
 * A partition is a range of its disk, a loop device one of its file or device, and so on
 * down: by sysfs, so far as that can be told. The library knows the same of targets; but
 * what the sources are is known to this program alone.
 */
#ifndef STELE_CMD_FROM_SPAN_H
#define STELE_CMD_FROM_SPAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define FROM_SPAN_LEVELS_MAX 10u

/* Downwards, from the thing itself, all of it; ends are behind the last byte. */
struct from_span {
	unsigned int count; /* 0: nothing */
	struct {
		struct stat st; /* type, and dev and inode or rdev */
		uint64_t begin, end;
	} levels[FROM_SPAN_LEVELS_MAX];
};

void from_span_find(const struct stat *st, struct from_span *out);
/* Is what is written to one read from the other? */
bool from_span_overlaps(const struct from_span *a, const struct from_span *b);

#endif
