/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping.h - names for snapshots on this machine: files under /run/stele
 *
 * A mapping is a small text file that says which snapshot of which target a
 * name stands for, by its digest, and which device or file the target was.
 * Opening the name opens the target, and fails with -ESTALE if either is
 * another one now.
 *
 * Files are written beside, then linked into place, and never changed after
 * that: a reader sees a whole mapping or none.
 */
#ifndef STELE_NODE_MAPPING_H
#define STELE_NODE_MAPPING_H

#include "lib/device/device.h"
#include "lib/node/access.h"

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
/* By what the storage says, and by the descriptor where there is one. */
int stele_identity_of_device(struct stele_device *dev,
			     struct stele_identity *out);
/* It may have become larger meanwhile, as what images are appended to does. */
bool stele_identity_same(const struct stele_identity *old,
			 const struct stele_identity *now);
bool stele_storage_same(const struct stele_storage_id *a,
			const struct stele_storage_id *b);
/* The same image of a storage, whatever the RBD snapshot. */
bool stele_storage_same_image(const struct stele_storage_id *a,
			      const struct stele_storage_id *b);

struct stele_mapping {
	struct stele_mapping_info info; /* info.target is `target` */
	struct stele_identity identity;
	struct stele_access access; /* for saving: who may read the target */
	bool was_read_only; /* the device, before info.read_only made it so */
	bool attached;	    /* its krbd device is there for mappings alone */
	char *target;	    /* owned; NULL: nothing was loaded */
};

/* Of a file, and a byte more; each byte of a target, up to PATH_MAX, may be escaped. */
#define STELE_MAPPING_VERSION  1u
#define STELE_MAPPING_SIZE_MAX (20u << 10)

/*
 * As text, terminated; `text` has STELE_MAPPING_SIZE_MAX bytes. One "key = value" a line, in
 * a fixed order; what is 0, empty or "no" is left out. Return: 0; -ENAMETOOLONG.
 */
int stele_mapping_encode(const struct stele_mapping *mapping, char *text);
/*
 * Read text[0..size) as the mapping `name`. It has to be exactly what encoding the
 * result would give: unknown, repeated or misplaced keys are refused. `why` names what
 * is wrong. Return: 0; -EBADMSG; -EOPNOTSUPP (another version); -EUCLEAN; -ENOMEM.
 */
int stele_mapping_decode(const char *text, size_t size, const char *name,
			 struct stele_mapping *out, const char **why);

/* $STELE_RUN_DIR or /run/stele. */
const char *stele_mapping_dir(void);

/*
 * Symbolic links are not followed.
 * Return: 0; -ENOENT; -EINVAL (not a valid name); -EBADMSG; -EUCLEAN;
 * -EOPNOTSUPP (another version); -EPERM (others could have written it).
 */
int stele_mapping_load(const char *name, const struct stele_log *log,
		       struct stele_mapping *out);
void stele_mapping_release(struct stele_mapping *mapping);
/* Is what it was made of gone, or another thing now? Of RBD that is not asked. */
bool stele_mapping_is_stale(const struct stele_mapping *mapping);
/*
 * Would writing to `target` change what was mapped? Also if one is a loop device over the
 * other, or both over a third. `mapping` as stele_mapping_each() gives it.
 */
bool stele_mapping_is_on(const struct stele_mapping *mapping,
			 const struct stele_identity *target);
/* Return: 0, also if there is none; -EACCES (the directory is another user's; logged). */
int stele_mapping_check_removable(const char *name, const struct stele_log *log);
/* Return: 0; -ENOENT; errno. */
int stele_mapping_remove(const char *name);

/*
 * Calls fn for every sound mapping, by name, until it returns nonzero. Others are logged.
 * Return: what fn returned last; errno of the directory (none: 0).
 */
int stele_mapping_each(int (*fn)(void *user,
				 const struct stele_mapping *mapping),
		       void *user, const struct stele_log *log);

/*
 * Is the thing at `path` published under some name? That name in `name` (64
 * bytes). Return: 0 no; 1 yes; errno.
 */
int stele_mapping_of(const char *path, char *name);

/*
 * Publish mapping->info, identity, access and flags under info.name.
 * Return: 0; -EEXIST (the name is taken); errno (logged).
 */
int stele_mapping_save(const struct stele_mapping *mapping,
		       const struct stele_log *log);

/*
 * Open the device of a mapping, if it is still the same (else -ESTALE, logged).
 * With `head`, on RBD, the image itself instead of its RBD snapshot.
 */
int stele_mapping_open_device(const struct stele_mapping *mapping, bool head,
			      const char *backend, const struct stele_log *log,
			      struct stele_device **out);

#endif
