/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory.h - private to the directory source: one tree, opened at its top
 *
 * Every path is relative to the top's descriptor, so the source may move or
 * lie deeper than PATH_MAX. Unless symlinks are to be followed, no path goes through
 * one, not even one that took a directory's place after the scan.
 */
#ifndef STELE_SOURCE_DIRECTORY_H
#define STELE_SOURCE_DIRECTORY_H

#include "lib/source/labels.h"

#define STELE_MOVED_NEVER INT64_MIN /* a time, for QUICK */

struct stele_directory {
	struct stele_log log;
	int fd;
	uint64_t avoid_dev, avoid_inode;
	bool follow; /* symlinks */
	const char *const *exclude; /* see struct stele_build_opts; NULL: nothing */
	int64_t turned; /* the link that was opened; seconds, or STELE_MOVED_NEVER: it is none */
	struct stele_labels labels; /* directories since the scan, chosen with the schema */
	struct stele_field fields[STELE_LABELS_FIELDS_MAX];
};

/*
 * Open what lies at `path` (of any length; empty: the top itself). Return: descriptor;
 * negative errno.
 */
int stele_directory_open_below(const struct stele_directory *directory,
			       const char *path, size_t size, int flags);

/* ops->scan */
int stele_directory_scan(void *user, const struct stele_source_sink *sink);

#endif
