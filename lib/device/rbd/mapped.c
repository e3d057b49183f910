/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapped.c - what this machine's kernel has mapped of an image
 *
 * A mapping for reading leaves no watch in the cluster, so only this machine can
 * tell. krbd lists its devices in sysfs; other clusters may have pools and
 * images of the same names.
 */
#include "lib/device/rbd/rbd.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DEVICES "/sys/bus/rbd/devices"
#define HEAD	"-" /* as the kernel calls it */

/* Empty where there is none: kernels before 4.18 know no namespaces. */
static void attribute(const char *device, const char *name, char *value,
		      size_t size)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), DEVICES "/%s/%s", device, name);
	file = fopen(path, "re");
	if (!file || !fgets(value, (int)size, file))
		value[0] = '\0';
	value[strcspn(value, "\n")] = '\0';
	if (file)
		fclose(file);
}

static bool is_attribute(const char *device, const char *name, const char *wanted)
{
	char value[512];

	attribute(device, name, value, sizeof(value));
	return !strcmp(value, wanted);
}

static bool is_image(const struct stele_rbd *rbd, const char *device,
		     const char *fsid)
{
	const char *ns = rbd->name.ns ? rbd->name.ns : "";
	char cluster[64];

	attribute(device, "cluster_fsid", cluster, sizeof(cluster));
	return is_attribute(device, "pool", rbd->name.pool) &&
	       is_attribute(device, "name", rbd->name.image) &&
	       is_attribute(device, "pool_ns", ns) &&
	       (!*cluster || !*fsid || !strcmp(cluster, fsid));
}

static int refuse(const struct stele_rbd *rbd, const char *device,
		  const char *snap)
{
	bool head = !strcmp(snap, HEAD);

	stele_log_error(&rbd->base.log,
			"'%s%s%s' is mapped by this machine's kernel as "
			"/dev/rbd%s; unmap it first",
			rbd->path, head ? "" : "@", head ? "" : snap, device);
	return -EBUSY;
}

int stele_rbd_check_mapped(const struct stele_rbd *rbd, const char *snap)
{
	DIR *dir = opendir(DEVICES);
	struct dirent *entry;
	char fsid[64] = "";
	int rc = 0;

	if (!dir)
		return 0; /* a kernel without krbd */
	if (rbd->links && rbd->links->link[0].cluster &&
	    stele_ceph.rados_cluster_fsid(rbd->links->link[0].cluster, fsid,
					  sizeof(fsid)) < 0)
		fsid[0] = '\0';
	while (!rc && (entry = readdir(dir))) {
		char mapped[512];

		if (entry->d_name[0] == '.' ||
		    !is_image(rbd, entry->d_name, fsid))
			continue;
		attribute(entry->d_name, "current_snap", mapped,
			  sizeof(mapped));
		if (!snap || !strcmp(snap, mapped))
			rc = refuse(rbd, entry->d_name, mapped);
	}
	closedir(dir);
	return rc;
}
