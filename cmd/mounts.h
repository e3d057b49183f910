/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts.h - which files filesystems are mounted from, without a loop device
 *
 * Who replaces such a file leaves its bytes without a name: they are gone with the mount.
 */
#ifndef STELE_CMD_MOUNTS_H
#define STELE_CMD_MOUNTS_H

#include <sys/stat.h>

/*
 * "/mnt", where an EROFS is mounted from this file, in whatever mount namespace; NULL: nowhere, as
 * far as that can be told: of one that was renamed since it cannot. Asked of the system once, so
 * that it may be called for each of many files, by any thread.
 */
const char *mounts_of(const struct stat *st);

#endif
