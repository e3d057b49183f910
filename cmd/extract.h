/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extract.h - read many samples at once, each into its file
 */
#ifndef STELE_CMD_EXTRACT_H
#define STELE_CMD_EXTRACT_H

#include "complaints.h"
#include "labels.h"
#include "stele.h"

struct extract {
	struct stele_dataset *ds;
	int root;	/* directory */
	int field;	/* index of the one to write; -1: all bytes */
	bool replace;	/* existing files */
	bool skip;	/* files that exist with the sample's size */
	bool quiet;
	uint64_t *ids;	/* of what is wanted; NULL: all */
	uint64_t count; /* of what is wanted */
	uint64_t done, bytes, refused, failed, skipped;
	uint64_t seen_bytes; /* written, skipped or failed */
	struct complaints complaints;
	struct labels labels; /* that paths show; to be released */
	int stopped; /* by a failure that all others would share: negative errno */
	bool damaged, too_large; /* a sample; a file of one */
	bool stale; /* the snapshot no longer exists */
};

/*
 * Extract `keys` (NULL-terminated; none: all samples). Failures are printed.
 * Return: enum cmd_status.
 */
int extract_run(struct extract *job, char **keys);

#endif
