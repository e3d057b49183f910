/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts.c - see mounts.h
 *
 * Only EROFS is mounted from files as they are. Where there is any, which the kernel says in
 * /sys/fs/erofs, each mount namespace is looked at, by one process of it: a path is what that
 * process sees.
 */
#include "mounts.h"

#include <dirent.h>
#include <limits.h>
#include <mntent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EROFS_PLACE  "/sys/fs/erofs"
#define STRINGS_SIZE (3 * PATH_MAX) /* of a line: what, where, options */

struct source {
	dev_t device; /* of the file */
	ino_t inode;
	char *point;
};

static struct source *sources;
static size_t source_count;
static ino_t *namespaces; /* that were looked at */
static size_t namespace_count;
static pthread_once_t sources_read = PTHREAD_ONCE_INIT;

static bool has_erofs(void)
{
	DIR *dir = opendir(EROFS_PLACE);
	struct dirent *entry;
	bool found = false;

	while (!found && dir && (entry = readdir(dir)))
		found = entry->d_name[0] != '.' && strcmp(entry->d_name, "features") != 0;
	if (dir)
		closedir(dir);
	return found;
}

/* Is it one that was not looked at? */
static bool is_new(const char *pid)
{
	char path[64];
	struct stat st;
	ino_t *more;

	snprintf(path, sizeof(path), "/proc/%.32s/ns/mnt", pid);
	if (stat(path, &st) < 0)
		return false;
	for (size_t i = 0; i < namespace_count; i++)
		if (namespaces[i] == st.st_ino)
			return false;
	more = realloc(namespaces, (namespace_count + 1) * sizeof(*more));
	if (!more)
		return false;
	namespaces = more;
	namespaces[namespace_count++] = st.st_ino;
	return true;
}

static void add(const char *pid, const struct mntent *entry)
{
	struct source *more, source;
	char path[PATH_MAX + 64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%.32s/root%.*s", pid, PATH_MAX - 1, entry->mnt_fsname);
	if (entry->mnt_fsname[0] != '/' || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	more = realloc(sources, (source_count + 1) * sizeof(*more));
	if (!more)
		return;
	sources = more;
	source = (struct source){st.st_dev, st.st_ino, strdup(entry->mnt_dir)};
	if (source.point)
		sources[source_count++] = source;
}

static void read_mounts(const char *pid)
{
	char path[64], strings[STRINGS_SIZE];
	struct mntent entry;
	FILE *mounts;

	snprintf(path, sizeof(path), "/proc/%.32s/mounts", pid);
	mounts = setmntent(path, "re");
	while (mounts && getmntent_r(mounts, &entry, strings, sizeof(strings)))
		if (!strcmp(entry.mnt_type, "erofs"))
			add(pid, &entry);
	if (mounts)
		endmntent(mounts);
}

static void read_sources(void)
{
	DIR *dir = has_erofs() ? opendir("/proc") : NULL;
	struct dirent *entry;

	if (dir && is_new("self"))
		read_mounts("self");
	while (dir && (entry = readdir(dir))) {
		char *end;

		if (strtol(entry->d_name, &end, 10) > 0 && !*end && is_new(entry->d_name))
			read_mounts(entry->d_name);
	}
	if (dir)
		closedir(dir);
	free(namespaces);
}

const char *mounts_of(const struct stat *st)
{
	pthread_once(&sources_read, read_sources);
	for (size_t i = 0; i < source_count; i++)
		if (sources[i].device == st->st_dev && sources[i].inode == st->st_ino)
			return sources[i].point;
	return NULL;
}
