/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.h - what must be known of a target before it is overwritten
 *
 * Refusals name what was found, through the log. Nothing here writes but
 * stele_guard_wipe(). Order of use: in_use by path; open the device with
 * STELE_DEVICE_EXCL; signatures; only then, and if told to, wipe.
 */
#ifndef STELE_DEVICE_GUARD_H
#define STELE_DEVICE_GUARD_H

#include "lib/device/device.h"

/*
 * Is the target mounted (it or a partition of it), swap, held (dm, md, loop
 * over it), or open in another process? Or is another device over the same
 * bytes (a loop device over the same file, its partitions) mounted, swap, held
 * or open exclusively? A path that does not exist is not, and neither it nor a file without
 * bytes takes /sys to tell.
 * Never overridden by force.
 * Return: 0; -EBUSY (logged: by what, where); -ENOSYS (logged: /proc or /sys is not there);
 * errno.
 */
int stele_guard_in_use(const char *path, const struct stele_log *log);

/*
 * The same without those who only read: plain openers, read-only loop devices, and mounts of
 * the image as EROFS, by whatever device: those that begin where it begins. For who changes an
 * image beside its readers.
 */
int stele_guard_claimed(const char *path, const struct stele_log *log);

/*
 * Is the image on the target mounted as EROFS: the target, another device over its bytes, or
 * what was mounted from a file that has another name by now, which its UUID tells? For who is
 * to free what a mount may show. Return: as above.
 */
int stele_guard_viewed(const char *path, const uint8_t *uuid, const struct stele_log *log);

/* Is this block device mounted as EROFS, by anybody? False also if that cannot be seen. */
bool stele_guard_is_erofs(const char *path);

/*
 * "process 4711 (stele)", or "this process itself": who holds the lock of a writer on it, as
 * far as that can be seen. False: unknown, or nobody any more.
 */
bool stele_guard_writer(const char *path, char *by, size_t size);

/*
 * Does the target carry a signature known to libblkid, or a partition table?
 * Every one found is logged (type, label, uuid, offset). Any failure to probe
 * is an error, which no force is meant to override. A regular file that is not
 * empty and carries nothing known is refused all the same: somebody wrote it. Of an
 * image of ours, whose UUID this is (NULL: none), the EROFS that it is, too, does
 * not count; here and below.
 * Return: 0; -EEXIST; errno.
 */
int stele_guard_signatures(struct stele_device *dev, const uint8_t *uuid,
			   const struct stele_log *log);

/*
 * Has somebody made something else of the target of an image since? Only what has its
 * magic below `end` counts: behind that lie samples, which may look like anything. What
 * cannot be probed is no refusal. Return: 0; -EEXIST (each one found is logged).
 */
int stele_guard_overlaid(struct stele_device *dev, uint64_t end, const uint8_t *uuid,
			 const struct stele_log *log);

/*
 * Where the partitions of its partition table begin, in bytes. *table: its type; lasts.
 * Return: how many, of `most` at most; 0: it has none, or that cannot be told.
 */
#define STELE_GUARD_TABLE_SIZE 16u
unsigned int stele_guard_partitions(struct stele_device *dev, uint64_t *begins,
				    unsigned int most, char table[STELE_GUARD_TABLE_SIZE]);

/*
 * Erase every signature found, then the first 128 KiB but for [spare, spare_end), which
 * are whole blocks, and the last 128 KiB, flush, and probe again: nothing may be left. The
 * mirrors of an own image's superblocks, at 1 MiB, stay: have them say "unfinished" first.
 * Return: 0; -EEXIST (something is left); errno.
 */
int stele_guard_wipe(struct stele_device *dev, uint64_t spare,
		     uint64_t spare_end, const struct stele_log *log);
#define STELE_GUARD_WIPE_SIZE (UINT64_C(128) << 10)

#endif
