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
#include "lib/node/access.h"
#include "lib/node/profile.h"

/*
 * What makes a target the same one: number or inode, size, and what changes
 * when a number or inode is used again. 0 is "not known".
 */
struct stele_identity {
	uint64_t rdev;	   /* st_rdev of a block device, else 0 */
	uint64_t fsdev;	   /* st_dev and st_ino of a regular file, else 0 */
	uint64_t inode;
	uint64_t size;	   /* bytes */
	uint64_t sequence; /* diskseq; of a file its time of birth, ns */
	/* Of RBD; besides it only size counts, and of krbd its block device. */
	struct stele_storage_id storage;
};

/*
 * By stat and sysfs: needs no permission, and does no I/O. 0; -ENOTBLK
 * (neither device nor file); errno.
 */
int stele_identity_of_path(const char *path, struct stele_identity *out);
int stele_identity_of_fd(int fd, struct stele_identity *out);
/* By what the storage says, and by the descriptor where there is one. */
int stele_identity_of_device(struct stele_device *dev,
			     struct stele_identity *out);
/* It may have become larger meanwhile, as what images are appended to does. */
bool stele_identity_same(const struct stele_identity *old,
			 const struct stele_identity *now);
bool stele_storage_same(const struct stele_storage_id *a,
			const struct stele_storage_id *b);
/* The same image of a storage, whatever the shot. */
bool stele_storage_same_image(const struct stele_storage_id *a,
			      const struct stele_storage_id *b);

struct stele_mapping {
	struct stele_mapping_info info; /* target points into `data` */
	struct stele_identity identity;
	struct stele_access access; /* for saving: who may read the target */
	uint64_t generation; /* of the superblock */
	bool was_read_only;  /* the device, before info.read_only made it so */
	bool attached;	     /* its krbd device is there for mappings alone */
	bool has_profile;    /* of the device: what was known when it was mapped */
	struct stele_profile profile;
	struct stele_profile_facts facts; /* that the profile stands on */
	void *data;	     /* the file, mmapped */
	size_t data_size;
	const void *extents; /* in data; see mapping_file.h */
	const uint8_t *bytes;
	uint32_t extent_count;
};

/* $STELE_RUN_DIR or /run/stele. */
const char *stele_mapping_dir(void);

/*
 * Return: 0; -ENOENT; -EINVAL (not a mapping's name); -EBADMSG; -EUCLEAN;
 * -EOPNOTSUPP (of a newer library); -EPERM (somebody else may have written it).
 */
int stele_mapping_load(const char *name, const struct stele_log *log,
		       struct stele_mapping *out);
void stele_mapping_release(struct stele_mapping *mapping);
/* Is what it was made of gone, or another thing now? Of RBD that is not asked. */
bool stele_mapping_is_stale(const struct stele_mapping *mapping);
/* Return: 0; -ENOENT; errno. */
int stele_mapping_remove(const char *name);

/*
 * Calls fn for every sound mapping, by name, until it returns nonzero.
 * Return: what fn returned last; errno of the directory (none: 0).
 */
int stele_mapping_each(int (*fn)(void *user,
				 const struct stele_mapping *mapping),
		       void *user);

/*
 * Is the thing at `path` published under some name? That name in `name` (64
 * bytes). Return: 0 no; 1 yes; errno.
 */
int stele_mapping_of(const char *path, char *name);
/* The same of an image that a storage keeps: of that shot, or (0) of any. */
int stele_mapping_of_storage(const struct stele_storage_id *id, char *name);

/*
 * A device that records the blocking reads that pass. Takes `inner`, also
 * when it fails.
 */
int stele_device_open_recording(struct stele_device *inner,
				struct stele_device **out);
/*
 * Publish what a recording device saw. mapping->info, identity, generation
 * are set by the caller.
 * Return: 0; -EEXIST (the name is taken); -ESTALE (two reads of one place
 * differ); -EFBIG; errno.
 */
int stele_mapping_save(const struct stele_mapping *mapping,
		       struct stele_device *recording,
		       const struct stele_log *log);

/*
 * The real device of a mapping, if it is still the same (else -ESTALE,
 * logged). With `head`, of storage that keeps shots, not the shot.
 */
int stele_mapping_open_device(const struct stele_mapping *mapping, bool head,
			      const char *backend, const struct stele_log *log,
			      struct stele_device **out);
/*
 * The device of a mapping over the real one, as that function opened it. Takes
 * `inner` and the mapping, zeroes *mapping.
 */
int stele_device_wrap_mapped(struct stele_device *inner,
			     struct stele_mapping *mapping,
			     struct stele_device **out);

#endif
