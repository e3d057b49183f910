/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.c - what the system counts while a benchmark runs
 *
 * From getrusage(2), /proc/stat and /sys/dev/block/MAJOR:MINOR/stat (Linux,
 * Documentation/block/stat.rst). Where a file is missing its figures stay 0.
 */
#include "machine.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cmd.h"

#define SECTOR_SIZE 512u /* of these counters, whatever the device has */

/* ---- devices --------------------------------------------------------------- */

struct search {
	const char *name; /* of a mapping */
	char *path;	  /* of PATH_MAX bytes */
};

static void match(void *user, const struct stele_mapping_info *info)
{
	struct search *search = user;

	if (info->target && strcmp(info->name, search->name) == 0)
		snprintf(search->path, PATH_MAX, "%s", info->target);
}

/* The name may hold an "@", too. */
bool bench_machine_file(const char *target, char path[PATH_MAX])
{
	struct search search = {.name = target, .path = path};
	char *at;

	path[0] = '\0';
	if (!strchr(target, '/'))
		stele_map_list(match, &search, NULL);
	if (!path[0])
		snprintf(path, PATH_MAX, "%s", target);
	if (cmd_is_rbd(path))
		return false;
	if (access(path, F_OK) == 0)
		return true;
	at = strrchr(path, '@');
	if (!at)
		return false;
	*at = '\0';
	return access(path, F_OK) == 0;
}

static void node_path(char path[PATH_MAX], const struct bench_device *device,
		      const char *file)
{
	snprintf(path, PATH_MAX, "/sys/dev/block/%u:%u/%s", device->major,
		 device->minor, file);
}

static bool device_of(struct bench_device *device, dev_t number)
{
	char path[PATH_MAX], link[PATH_MAX];
	const char *name;
	ssize_t size;

	*device = (struct bench_device){.major = major(number),
					.minor = minor(number)};
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", device->major,
		 device->minor);
	size = readlink(path, link, sizeof(link) - 1);
	if (size < 0)
		return false;
	link[size] = '\0';
	name = strrchr(link, '/');
	snprintf(device->name, sizeof(device->name), "%.63s",
		 name ? name + 1 : link);
	return true;
}

/* The device of the file that a loop device shows. */
static bool below_loop(const struct bench_device *device, dev_t *number)
{
	char path[PATH_MAX], file[PATH_MAX];
	struct stat st;
	bool found;
	FILE *in;

	node_path(path, device, "loop/backing_file");
	in = fopen(path, "r");
	if (!in)
		return false;
	found = fgets(file, sizeof(file), in) != NULL;
	fclose(in);
	if (!found)
		return false;
	file[strcspn(file, "\n")] = '\0';
	if (stat(file, &st) < 0)
		return false;
	*number = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	return true;
}

/* The one device that this one is made of; of several, none is told. */
static bool below_slave(const struct bench_device *device, dev_t *number)
{
	unsigned int major_number, minor_number, count = 0;
	char path[PATH_MAX], node[PATH_MAX + 300];
	struct dirent *entry;
	DIR *dir;
	FILE *in;

	node_path(path, device, "slaves");
	dir = opendir(path);
	if (!dir)
		return false;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(node, sizeof(node), "%s/%s/dev", path, entry->d_name);
		in = fopen(node, "r");
		if (in && fscanf(in, "%u:%u", &major_number, &minor_number) == 2)
			*number = makedev(major_number, minor_number);
		if (in)
			fclose(in);
		count++;
	}
	closedir(dir);
	return count == 1 && *number;
}

void bench_machine_find(struct bench_machine *machine, const char *target)
{
	struct bench_device *device = machine->devices;
	char path[PATH_MAX];
	dev_t number;
	struct stat st;

	machine->device_count = 0;
	if (!bench_machine_file(target, path) || stat(path, &st) < 0)
		return;
	number = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	while (machine->device_count < BENCH_DEVICES_MAX &&
	       device_of(device, number)) {
		machine->device_count++;
		number = 0;
		if (!below_loop(device, &number) && !below_slave(device, &number))
			break;
		device++;
	}
}

static void read_device(struct bench_device *device)
{
	uint64_t reads, merged, sectors;
	char path[PATH_MAX];
	FILE *in;

	device->reads = device->merged = device->bytes = 0;
	node_path(path, device, "stat");
	in = fopen(path, "r");
	if (!in)
		return;
	if (fscanf(in, "%" SCNu64 " %" SCNu64 " %" SCNu64, &reads, &merged,
		   &sectors) == 3) {
		device->reads = reads;
		device->merged = merged;
		device->bytes = sectors * SECTOR_SIZE;
	}
	fclose(in);
}

/* ---- processors -------------------------------------------------------------- */

static double seconds_of(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

static void read_processors(struct bench_machine *machine)
{
	uint64_t user, nice, sys, idle, iowait, irq, softirq, steal;
	double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
	FILE *in = fopen("/proc/stat", "r");

	machine->has_busy = false;
	if (!in)
		return;
	/* What guests use is in user and nice already. */
	if (fscanf(in,
		   "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
		   &user, &nice, &sys, &idle, &iowait, &irq, &softirq,
		   &steal) == 8) {
		machine->busy =
			(double)(user + nice + sys + irq + softirq) * tick;
		machine->steal = (double)steal * tick;
		machine->has_busy = true;
	}
	fclose(in);
}

void bench_machine_read(struct bench_machine *machine)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) == 0) {
		machine->user = seconds_of(&usage.ru_utime);
		machine->system = seconds_of(&usage.ru_stime);
	}
	read_processors(machine);
	for (unsigned int i = 0; i < machine->device_count; i++)
		read_device(&machine->devices[i]);
}

void bench_machine_subtract(struct bench_machine *after,
			    const struct bench_machine *before)
{
	after->user -= before->user;
	after->system -= before->system;
	after->busy -= before->busy;
	after->steal -= before->steal;
	for (unsigned int i = 0; i < after->device_count; i++) {
		after->devices[i].reads -= before->devices[i].reads;
		after->devices[i].merged -= before->devices[i].merged;
		after->devices[i].bytes -= before->devices[i].bytes;
	}
}
