/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shards.h - a directory of archives or record files, whose samples may have been meant
 */
#ifndef STELE_CMD_FROM_SHARDS_H
#define STELE_CMD_FROM_SHARDS_H

#include <limits.h>
#include <stdbool.h>

/* What all files of a directory seem to be that were looked at. */
struct shards {
	const char *format; /* "tar", "Parquet" */
	bool foreign;	    /* that only stele.sources of Python reads */
};

/*
 * Some of the files are looked at, and of each how it begins, also in directories that are
 * named COLUMN=VALUE. False: there are others, or other directories, or what may well be
 * samples as they are, such as .npy or .json files.
 */
bool shards_look(const char *directory, struct shards *out);

/* What is in an environment of LMDB that is no part of it: the first by name, if there is any. */
bool shards_find_beside(const char *environment, char name[NAME_MAX + 1]);

/*
 * A file "*.stele" of a directory, not of those below it, that holds an image other than
 * `target` (may be NULL), which no build takes.
 */
bool shards_find_image(const char *directory, const char *target, char name[NAME_MAX + 1]);

#endif
