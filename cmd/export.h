/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.h - all samples of a snapshot, in key order, in one of the formats of to/format.h, or tar
 */
#ifndef STELE_CMD_EXPORT_H
#define STELE_CMD_EXPORT_H

#include <stdbool.h>

#include "complaints.h"
#include "labels.h"
#include "stele.h"
#include "to/file.h"
#include "to/format.h"

struct export {
	struct stele_dataset *ds;
	const char *prefix; /* of each path */
	const char *field;  /* see struct to */
	struct to_file file; /* open */
	enum to_format format;
	bool quiet;
	uint64_t done, bytes, refused; /* samples; of these, as written; left out */
	uint64_t unfit; /* of those left out: with keys that are no paths of files */
	struct complaints complaints;  /* of those left out */
	struct labels labels;	       /* that paths show; to be released */
	int write_error;	       /* negative errno */
};

/*
 * Write the file. The first sample that cannot be read aborts it.
 * Return: 0; negative errno of reading (said), or job->write_error; -EINTR (a
 * signal).
 */
int export_run(struct export *job);

#endif
