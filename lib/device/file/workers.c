/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers.c - kernel threads that stand in where a ring could not go on
 *
 * A request that the kernel would have to split, or that finds no free tag, is given
 * to a worker thread ("iou-wrk-PID"), which costs more than the request. They show
 * among the tasks of the process; a healthy reader has none.
 */
#include "lib/device/device.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define WORKER_NAME "iou-wrk"

static bool is_worker(const char *task)
{
	char path[300], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(name, sizeof(name), file))
		name[0] = '\0';
	fclose(file);
	return !strncmp(name, WORKER_NAME, strlen(WORKER_NAME));
}

unsigned int stele_device_workers(void)
{
	struct dirent *entry;
	unsigned int count = 0;
	DIR *dir = opendir("/proc/self/task");

	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.' && is_worker(entry->d_name);
	closedir(dir);
	return count;
}
