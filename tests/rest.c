/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest.c - see rest.h
 *
 * proc(5) knows: a thread that waits for its turn is R, however long the machine
 * keeps it waiting; one that waits for an event is S.
 */
#include "tests/rest.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tap.h"

#define PAUSE_US 100

/* One that has ended meanwhile does nothing either. */
static bool sleeps(const char *thread)
{
	char path[64], line[256] = "";
	const char *state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/stat", thread);
	file = fopen(path, "re");
	if (!file || !fgets(line, sizeof(line), file))
		line[0] = '\0';
	if (file)
		fclose(file);
	state = strrchr(line, ')');
	return !state || state[2] == 'S' || state[2] == 'Z' || state[2] == 'X';
}

static bool others_rest(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	bool rest = true;

	if (!dir)
		sysbail("cannot read /proc/self/task");
	while (rest && (entry = readdir(dir)))
		rest = entry->d_name[0] == '.' ||
		       atoi(entry->d_name) == gettid() || sleeps(entry->d_name);
	closedir(dir);
	return rest;
}

void test_others_rest(void)
{
	while (!others_rest())
		usleep(PAUSE_US);
}
