/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h - profiles of devices, kept between runs: small text files
 *
 * One file for each *identity* of a device: what it calls itself (model and WWID
 * or serial number), not what the kernel calls it today. With the profile the file holds
 * what a measurement depends on: *facts* about kernel and queue. A profile is valid only
 * while they have not changed.
 *
 * A file is written under another name and renamed into place, and believed only if every
 * line of it is as we would have written it, under a checksum. Nothing here may make an open
 * fail: what is missing, damaged or outdated is treated as absent. Looking a profile up costs
 * a few reads in sysfs, and none of the device.
 */
#ifndef STELE_NODE_PROFILE_H
#define STELE_NODE_PROFILE_H

#include "lib/device/device.h"

#define STELE_PROFILE_VERSION	1u
#define STELE_PROFILE_SIZE_MAX	16384u /* of a file, terminator included */
#define STELE_PROFILE_DEVICE_SIZE sizeof(((struct stele_profile *)0)->device)

struct stele_profile_facts {
	char kernel[72];
	char scheduler[32]; /* "": there is none to ask */
	uint64_t max_sectors_kb, nr_requests; /* 0: the same */
};

struct stele_profile_source {
	char device[128]; /* its identity */
	struct stele_profile_facts facts;
};

/*
 * Whose profile it is, by stat and sysfs; of RBD by what the storage says.
 * Return: 0; -ENOENT (nothing tells it from others); errno.
 */
int stele_profile_source_of_path(const char *path,
				 struct stele_profile_source *out);
int stele_profile_source_of_device(struct stele_device *dev,
				   struct stele_profile_source *out);

/* As text, terminated; `text` has STELE_PROFILE_SIZE_MAX bytes. */
void stele_profile_encode(const struct stele_profile *profile,
			  const struct stele_profile_facts *facts, char *text);
/*
 * `why` names what is wrong. Return: 0; -EBADMSG; -EOPNOTSUPP (another
 * version); -EUCLEAN.
 */
int stele_profile_decode(const char *text, size_t size,
			 struct stele_profile *profile,
			 struct stele_profile_facts *facts, const char **why);

/* Where the profile of that device is written. Return: 0; -ENOENT (no $HOME); -ENAMETOOLONG. */
int stele_profile_file(const char *device, char *path, size_t size);
/* Is there a directory that may hold profiles at all? */
bool stele_profile_any(void);
/* Return: 0; -ENOENT (none that is valid; the reason is logged). */
int stele_profile_load(const struct stele_profile_source *source,
		       const struct stele_log *log, struct stele_profile *out);
/* Is there a directory to save one in, or can it be made? Return: 0; errno (logged). */
int stele_profile_check(const struct stele_log *log);
/* profile->device is source->device. Return: 0; errno (logged). */
int stele_profile_save(const struct stele_profile *profile,
		       const struct stele_profile_source *source,
		       const struct stele_log *log);

#endif
