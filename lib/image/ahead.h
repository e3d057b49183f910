/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.h - the next range of a device is read while the caller uses the one before
 *
 * One read at a time, by a thread of its own rather than a queue: a cursor may go from
 * thread to thread, and a ring with a read in flight may not. It only reads: checks are up to
 * the caller, who reads again what failed. A forked child has no such thread, and does without.
 */
#ifndef STELE_IMAGE_AHEAD_H
#define STELE_IMAGE_AHEAD_H

#include "lib/device/device.h"

struct stele_ahead;

/* For ranges of up to `size_max` bytes. NULL: no memory, or no thread. */
struct stele_ahead *stele_ahead_open(struct stele_device *dev, size_t size_max);
/* Begin to read a range; one that was asked for before and not taken is dropped. */
void stele_ahead_ask(struct stele_ahead *ahead, uint64_t offset, size_t size);
/*
 * Wait for a range, and exchange the memory that it is in for *memory, also of `size_max` bytes.
 * Return: 0; -EAGAIN (it was not asked for); errors of the read.
 */
int stele_ahead_take(struct stele_ahead *ahead, uint64_t offset, size_t size,
		     void **memory);
/* Waits for a read that has begun. NULL is fine. */
void stele_ahead_close(struct stele_ahead *ahead);

#endif
