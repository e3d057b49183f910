/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_writer.c - who is it that writes to a target?
 *
 * For a message, after an open has been refused. The lock that writers hold
 * has no owner in /proc/locks; but a process's fdinfo shows it beside the
 * descriptor. What cannot be seen (other users' processes) stays unnamed.
 */
#include "lib/device/guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "lock:	1: OFDLCK  ADVISORY  WRITE -1 fd:00:4711 ..." */
static bool holds_lock(const char *pid, const char *fd)
{
	char path[64], line[256];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.16s/fdinfo/%.16s", pid, fd);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = !strncmp(line, "lock:", 5) && strstr(line, " WRITE ") &&
			(strstr(line, "OFDLCK") || strstr(line, "FLOCK"));
	fclose(file);
	return found;
}

static bool is_writer(const char *pid, const struct stat *target)
{
	struct dirent *entry;
	bool found = false;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		struct stat st;

		if (fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 &&
		    st.st_dev == target->st_dev && st.st_ino == target->st_ino)
			found = holds_lock(pid, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

static void describe(const char *pid, char *by, size_t size)
{
	char path[64], name[32] = "?";
	FILE *file;

	if (strtol(pid, NULL, 10) == getpid()) {
		snprintf(by, size, "this process itself");
		return;
	}
	snprintf(path, sizeof(path), "/proc/%.16s/comm", pid);
	file = fopen(path, "re");
	if (file) {
		if (fgets(name, sizeof(name), file))
			name[strcspn(name, "\n")] = '\0';
		fclose(file);
	}
	snprintf(by, size, "process %.16s (%s)", pid, name);
}

bool stele_guard_writer(const char *path, char *by, size_t size)
{
	struct dirent *entry;
	bool found = false;
	struct stat st;
	DIR *dir;

	if (stat(path, &st))
		return false;
	dir = opendir("/proc");
	while (dir && !found && (entry = readdir(dir))) {
		char *end;

		if (strtol(entry->d_name, &end, 10) <= 0 || *end)
			continue;
		found = is_writer(entry->d_name, &st);
		if (found)
			describe(entry->d_name, by, size);
	}
	if (dir)
		closedir(dir);
	return found;
}
