/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h - entries of samples.h, by id; all with the lock held
 */
#ifndef STELE_CMD_MOUNT_FUSE_CACHE_H
#define STELE_CMD_MOUNT_FUSE_CACHE_H

#include "mount/fuse/samples.h"

#define CACHE_SIZE  (UINT64_C(128) << 20)
#define SPOOLS_MAX  2u

struct sample_entry *cache_find(const struct samples *samples, uint64_t id);
/* Not ready yet. NULL: no memory. */
struct sample_entry *cache_add(struct samples *samples, uint64_t id);
/* With its sample or spool; others go for it. Wakes who waits. */
void cache_ready(struct samples *samples, struct sample_entry *entry);
/* It was used now. */
void cache_touch(struct samples *samples, struct sample_entry *entry);
/* Nobody uses it, or has it. */
void cache_drop(struct samples *samples, struct sample_entry *entry);

#endif
