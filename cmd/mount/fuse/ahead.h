/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.h - samples that a process will ask for next, read before it does
 */
#ifndef STELE_CMD_MOUNT_FUSE_AHEAD_H
#define STELE_CMD_MOUNT_FUSE_AHEAD_H

#include "mount/fuse/samples.h"

#define AHEAD_SIZE (UINT64_C(32) << 20) /* that nobody has asked for yet */

/*
 * A process has asked for this sample. `hit`: it had been read ahead. With the lock held.
 */
void ahead_note(struct samples *samples, pid_t pid, const struct stele_sample *sample,
		bool hit);
/* End the thread, if there is one. */
void ahead_stop(struct samples *samples);

#endif
