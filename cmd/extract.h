/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extract.h - read many samples at once, each into its file
 */
#ifndef STELE_CMD_EXTRACT_H
#define STELE_CMD_EXTRACT_H

#include "stele.h"

struct extract {
	struct stele_dataset *ds;
	int root;	/* directory */
	bool replace;	/* existing files */
	bool quiet;
	uint64_t *ids;	/* of what is wanted; NULL: all */
	uint64_t count; /* of what is wanted */
	uint64_t done, bytes, refused, failed;
	bool damaged;
	bool stale; /* the snapshot no longer exists */
};

/*
 * Extract `keys` (NULL-terminated; none: all samples). Failures are printed.
 * Return: enum cmd_status.
 */
int extract_run(struct extract *job, char **keys);

#endif
