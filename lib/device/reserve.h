/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve.h - blocks of a filesystem, allocated ahead and given back
 *
 * For file.c and rehearsal.c: see stele_device_reserve_file().
 */
#ifndef STELE_DEVICE_RESERVE_H
#define STELE_DEVICE_RESERVE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/device/device.h"

/* Of a file that grows the last one is allocated: what a filesystem has at least, mostly. */
#define STELE_GROW_BLOCK UINT64_C(4096)

struct stele_hole {
	uint64_t offset, size;
};

/* What were holes before. Zeroed: nothing. */
struct stele_reserved {
	struct stele_hole *list; /* owned */
	size_t count;
};

/* Note the holes only. 0; -ENOMEM; errno: none were noted. */
int stele_reserve_look(struct stele_reserved *reserved, int fd, uint64_t offset,
		       uint64_t size);
/* Allocate; the size of the file stays. 0; errno of fallocate(2); -ENOMEM. */
int stele_reserve(struct stele_reserved *reserved, int fd, uint64_t offset,
		  uint64_t size);
/*
 * Make those that begin at `from` or behind holes again, and the file no larger than
 * `size`, as long as the permit is given. 0; errno.
 */
int stele_unreserve(struct stele_reserved *reserved, int fd, uint64_t from,
		    uint64_t size, struct stele_permit *permit);
/*
 * Bytes that this process may still allocate on the filesystem of `fd`, but for what that
 * keeps for its own use; UINT64_MAX: it does not say, as ramfs. 0; errno.
 */
int stele_reserve_free(int fd, uint64_t *bytes);
/*
 * Can a file have that many bytes, by its filesystem and the limit of this process? `fd`: it,
 * or the directory where it is to be made. Nothing is written. Return: 0 (also where it cannot
 * be told); -EFBIG (logged, with what it can have).
 */
int stele_reserve_check_size(int fd, uint64_t size, const struct stele_log *log);
/* Idempotent on a zeroed struct. */
void stele_reserved_release(struct stele_reserved *reserved);

#endif
