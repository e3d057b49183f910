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
#include <sys/stat.h>

#include "cmd.h"
#include "from/foreign.h"
#include "from/source.h"

#define LOOKS_MAX 8u /* files; a wrong guess is only a hint that does not help */
#define DEPTH_MAX 4u /* directories COLUMN=VALUE in each other */

/* Files of these hold many samples. */
static const char *const formats[] = {"tar",	    "tfrecord", "recordio",
				      "mindrecord", "ffrecord", "hdf5"};

static bool look_in(const char *directory, unsigned int depth, struct shards *out);

/* Of Parquet, directories may be columns, named COLUMN=VALUE; stele.sources reads those, too. */
static bool look_at(const char *directory, const char *name, unsigned int depth,
		    struct shards *out)
{
	char *path = NULL;

	*out = (struct shards){.format = NULL};
	if (asprintf(&path, "%s/%s", directory, name) < 0)
		return false;
	out->format = foreign_file(path);
	if (!out->format && depth && strchr(name, '=') &&
	    !(look_in(path, depth - 1, out) && out->foreign))
		out->format = NULL;
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

static bool look_in(const char *directory, unsigned int depth, struct shards *out)
{
	DIR *dir = opendir(directory);
	struct shards found;
	struct dirent *entry;
	bool same = dir;

	*out = (struct shards){.format = NULL};
	for (unsigned int i = 0; same && i < LOOKS_MAX && (entry = readdir(dir));) {
		if (*entry->d_name == '.' || *entry->d_name == '_') /* "_SUCCESS" */
			continue;
		i++;
		same = look_at(directory, entry->d_name, depth, &found) &&
		       (!out->format || !strcmp(out->format, found.format));
		*out = found;
	}
	if (dir)
		closedir(dir);
	return same && out->format;
}

bool shards_look(const char *directory, struct shards *out)
{
	return look_in(directory, DEPTH_MAX, out);
}

static bool is_image(const char *directory, const char *name, const struct stat *target)
{
	const char *end = strrchr(name, '.');
	char *path = NULL;
	struct stat st;
	bool found;

	if (!end || strcmp(end, ".stele") || asprintf(&path, "%s/%s", directory, name) < 0)
		return false;
	found = !lstat(path, &st) && S_ISREG(st.st_mode) &&
		(st.st_ino != target->st_ino || st.st_dev != target->st_dev) &&
		stele_image_detect(path) > 0;
	free(path);
	return found;
}

bool shards_find_beside(const char *environment, char name[NAME_MAX + 1])
{
	DIR *dir = opendir(environment);
	struct dirent *entry;

	*name = '\0';
	while (dir && (entry = readdir(dir))) {
		if (*entry->d_name == '.' || !strcmp(entry->d_name, "data.mdb") ||
		    !strcmp(entry->d_name, "lock.mdb"))
			continue;
		if (!*name || strcmp(entry->d_name, name) < 0)
			snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	return *name;
}

bool shards_find_image(const char *directory, const char *target, char name[NAME_MAX + 1])
{
	char *path = target ? cmd_path_of(target) : NULL;
	DIR *dir = opendir(directory);
	struct stat st = {0};
	struct dirent *entry;
	bool found = false;

	if (path && stat(path, &st))
		st.st_ino = 0;
	while (dir && !found && (entry = readdir(dir))) {
		found = is_image(directory, entry->d_name, &st);
		if (found)
			snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	free(path);
	return found;
}
