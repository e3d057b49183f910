/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shuffle.h - the shape of an order, from what a program asks for
 */
#ifndef STELE_READ_LOADER_SHUFFLE_H
#define STELE_READ_LOADER_SHUFFLE_H

#include "format/epoch.h"
#include "lib/base/log.h"

/*
 * Zero sizes are the defaults, which stele_loader.h names.
 * Return: 0; -EINVAL (no such kind; a window that is too large: logged).
 */
int stele_shuffle_shape(uint32_t kind, uint64_t block_size, uint32_t block_count,
			const struct stele_log *log,
			struct stele_epoch_shape *out);

#endif
