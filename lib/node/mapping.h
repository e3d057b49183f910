/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping.h - what one machine knows of an image: files under /run/stele
 *
 * A mapping is the log of what opening a snapshot reads. `stele map` opens it
 * through a *recording* device and publishes target, identity and those bytes
 * in one small file; opening the name runs the same code over a *mapped*
 * device, which answers blocking reads out of that file (shared by all
 * processes through the page cache) and hands everything else to the real
 * device. So there is one way to open, and a mapped open does no device I/O.
 *
 * Files are written beside and renamed into place; a reader sees a whole
 * mapping or none. All numbers little-endian; a crc32c covers the file.
 */
#ifndef STELE_NODE_MAPPING_H
#define STELE_NODE_MAPPING_H

#include "lib/device/device.h"

struct stele_mapping {
	struct stele_mapping_info info; /* target points into `data` */
	uint64_t device_rdev;		/* st_rdev of a block device, else 0 */
	uint64_t device_inode;		/* st_dev and st_ino of a regular file */
	uint64_t device_fsdev;
	uint64_t device_size;
	uint64_t generation;  /* of the superblock */
	void *data;	      /* the file, mmapped */
	size_t data_size;
};

/* $STELE_RUN_DIR or /run/stele. */
const char *stele_mapping_dir(void);

/* Return: 0; -ENOENT; -EINVAL (not a mapping's name); -EBADMSG; -EUCLEAN. */
int stele_mapping_load(const char *name, const struct stele_log *log,
		       struct stele_mapping *out);
void stele_mapping_release(struct stele_mapping *mapping);

/* A device that records the blocking reads that pass. Takes `inner`. */
int stele_device_open_recording(struct stele_device *inner,
				struct stele_device **out);
/* Publish what a recording device saw. mapping->info and identity are set by the caller. */
int stele_mapping_save(const struct stele_mapping *mapping,
		       struct stele_device *recording,
		       const struct stele_log *log);

/*
 * The device of a mapping: opens the real one and checks that it is still the
 * same (-ESTALE). Takes the mapping, zeroes *mapping.
 */
int stele_device_open_mapped(struct stele_mapping *mapping, const char *backend,
			     const struct stele_log *log,
			     struct stele_device **out);

/* Is the thing at `path` published under some name? That name in `name` (64 bytes). Return: 0 no; 1 yes; errno. */
int stele_mapping_of(const char *path, char *name);

#endif
