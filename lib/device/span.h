/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span.h - which bytes of what lies under it a device is
 *
 * A partition is a range of its disk, a loop device one of its file or device, and so on
 * down. Two that have ranges of the same thing in common share these bytes, whatever they
 * are called. What device-mapper, md and filesystems do is not looked into. By sysfs, so
 * far as that can be told: whatever lies under a device that cannot be is unknown.
 */
#ifndef STELE_DEVICE_SPAN_H
#define STELE_DEVICE_SPAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define STELE_SPAN_LEVELS_MAX 10u /* loop devices and partitions over each other */

/* Downwards, from the thing itself, all of it; ends are behind the last byte. */
struct stele_span {
	unsigned int count;
	struct stele_span_level {
		struct stat st; /* type, and dev and inode or rdev */
		uint64_t begin, end;
	} levels[STELE_SPAN_LEVELS_MAX];
};

void stele_span_find(const struct stat *st, struct stele_span *out);

/* Is what is written to one read from the other? A file has all that ever lies in it. */
bool stele_span_overlaps(const struct stele_span *a, const struct stele_span *b);

/* Do both begin with the same byte? */
bool stele_span_begins_with(const struct stele_span *a, const struct stele_span *b);

/* Of it what begins there. */
void stele_span_skip(struct stele_span *span, uint64_t size);

/*
 * Call `fn` for each block device that has bytes of the span, also with its own span, until
 * it returns something.
 * Return: that, or 0; errno of sysfs.
 */
int stele_span_each(const struct stele_span *span,
		    int (*fn)(dev_t number, const struct stele_span *has, void *user), void *user);

#endif
