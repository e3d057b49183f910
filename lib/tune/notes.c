/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notes.c - what sysfs shows that bounds or slows down a device
 *
 * Only what can be seen is said: a limit of the kernel's queue, of a SCSI or
 * network disk; an IOMMU that translates; a rotating disk; an image so small
 * that caches answer.
 */
#include "lib/tune/tune.h"

#include "lib/device/stack.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define WORKERS_MAX 8u

/* The block device behind all; false: none that sysfs knows. */
static bool disk_of(const struct stele_device *dev, dev_t *number)
{
	char text[32];
	struct stat st;
	int fd = stele_device_fd(dev);

	if (fd < 0 || fstat(fd, &st))
		return false;
	*number = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	return !stele_stack_text(*number, "size", text, sizeof(text));
}

/* "DMA", "DMA-FQ", "identity", ... of the first above it that has one. */
static bool iommu_type(dev_t number, char *type, size_t size)
{
	char place[PATH_MAX], path[PATH_MAX], *slash;
	bool found = false;
	FILE *file;

	if (stele_stack_place(number, place))
		return false;
	while (!found && (slash = strrchr(place, '/')) &&
	       slash - place > (int)strlen("/sys/devices")) {
		if (snprintf(path, sizeof(path), "%s/iommu_group/type", place) >=
		    (int)sizeof(path))
			break;
		file = fopen(path, "re");
		if (file) {
			found = fgets(type, (int)size, file);
			fclose(file);
		}
		*slash = '\0';
	}
	if (found)
		type[strcspn(type, "\n")] = '\0';
	return found;
}

static void note_queue(dev_t number, const struct stele_log *log)
{
	char requests[32], depth[32];
	bool queue = stele_stack_disk_text(number, "queue/nr_requests",
					   requests, sizeof(requests));
	bool device = stele_stack_disk_text(number, "device/queue_depth", depth,
					    sizeof(depth));

	if (queue && device)
		stele_log_info(log, "the kernel queues up to %s requests "
				    "(nr_requests), the device %s (queue_depth)",
			       requests, depth);
	else if (queue)
		stele_log_info(log, "the kernel queues up to %s requests (nr_requests)",
			       requests);
	if (stele_stack_disk_text(number, "device/cluster_fsid", depth,
				  sizeof(depth)))
		stele_log_info(log, "krbd's queue_depth (128 unless given) is set "
				    "when an image is attached");
}

static void note_disk(dev_t number, const struct stele_log *log)
{
	char text[64];

	note_queue(number, log);
	if (stele_stack_disk_text(number, "queue/rotational", text,
				  sizeof(text)) && !strcmp(text, "1"))
		stele_log_info(log, "the kernel takes this for a rotating disk: a windowed "
				    "order may be far faster to read");
	if (iommu_type(number, text, sizeof(text)) && !strncmp(text, "DMA", 3))
		stele_log_warning(log, "an IOMMU translates for this device (%s), which "
				       "costs reads per second ('iommu.passthrough=1' "
				       "on the kernel's command line turns it off)",
				  text);
}

void stele_tune_notes(const struct stele_tune_sweep *sweep)
{
	const struct stele_device *dev = sweep->ds->image.dev;
	const struct stele_log *log = &sweep->log;
	unsigned int workers = stele_device_workers();
	dev_t number;

	if (disk_of(dev, &number))
		note_disk(number, log);
	else
		stele_log_info(log, "up to %u requests are in flight",
			       dev->limits.depth_max);
	if (sweep->profile->slots_size < STELE_TUNE_SIZE_MIN)
		stele_log_warning(log, "the samples take up only %.1f MiB: "
				       "caches may have answered for the device",
				  (double)sweep->profile->slots_size / (1 << 20));
	if (workers > WORKERS_MAX)
		stele_log_warning(log, "%u kernel threads (iou-wrk) wait on behalf of "
				       "io_uring, which costs more than the reads",
				  workers);
}
