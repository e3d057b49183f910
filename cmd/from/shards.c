/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shards.c - see shards.h
 */
#include "from/shards.h"

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "from/foreign.h"
#include "from/source.h"

#define LOOKS_MAX 8u /* files; a wrong guess is only a hint that does not help */

/* Files of these hold many samples. */
static const char *const formats[] = {"tar",	    "tfrecord", "recordio",
				      "mindrecord", "ffrecord", "hdf5"};

static bool look_at(const char *directory, const char *name, struct shards *out)
{
	char *path = NULL;

	*out = (struct shards){.format = NULL};
	if (asprintf(&path, "%s/%s", directory, name) < 0)
		return false;
	out->format = foreign_file(path);
	out->foreign = out->format;
	if (!out->format) {
		const char *format = from_guess(path);

		for (size_t i = 0; format && i < sizeof(formats) / sizeof(*formats); i++)
			if (!strcmp(format, formats[i]))
				out->format = formats[i];
	}
	free(path);
	return out->format;
}

bool shards_look(const char *directory, struct shards *out)
{
	DIR *dir = opendir(directory);
	struct shards found;
	struct dirent *entry;
	bool same = dir;

	*out = (struct shards){.format = NULL};
	for (unsigned int i = 0; same && i < LOOKS_MAX && (entry = readdir(dir));) {
		if (*entry->d_name == '.')
			continue;
		i++;
		same = look_at(directory, entry->d_name, &found) &&
		       (!out->format || !strcmp(out->format, found.format));
		*out = found;
	}
	if (dir)
		closedir(dir);
	return same && out->format;
}
