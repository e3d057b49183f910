/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stele_mapping.h - snapshots published under a name on this machine; part of stele.h
 *
 * A *mapping* is a small text file in $STELE_RUN_DIR that says which snapshot of which target
 * a name stands for, by its digest, and which device or file the target is. The name is a
 * target for stele_dataset_open() and everything else that reads; opening it fails with
 * -ESTALE once device or snapshot are others. The file is readable by those who may read the
 * target, and refused (-EPERM) if anybody but root and the caller could have written it.
 */
#include "stele.h" /* outside the guard: it includes this one where it belongs */

#ifndef STELE_MAPPING_H
#define STELE_MAPPING_H

#ifdef __cplusplus
extern "C" {
#endif

#define STELE_RUN_DIR_ENV     "STELE_RUN_DIR"
#define STELE_RUN_DIR_DEFAULT "/run/stele"

enum stele_map_flags {
	STELE_MAP_READ_ONLY = 1 << 2, /* set the block device read-only until unmap */
};

/** An RBD snapshot that the kernel is to attach, in the terms of rbd(8). */
struct stele_map_rbd {
	size_t size;
	const char *pool, *pool_namespace, *image, *snapshot;
	const char *conf, *user; /* these and pool_namespace: NULL, if there is none */
};

#define STELE_MAP_REASON_SIZE 256

struct stele_map_opts {
	size_t size;
	stele_log_fn log;
	void *log_user;
	const char *backend;
	/*
	 * How to read an RBD snapshot: "krbd", "librbd"; NULL, "auto": krbd if that works.
	 * A device that the kernel has for this snapshot is used; else attach() is called.
	 */
	const char *via;
	/*
	 * The library runs no programs, and `rbd device map` and `unmap` are ones. attach() has
	 * the kernel attach a snapshot read-only; detach() takes the block device. NULL: not
	 * attached; left attached. Return: 0, or a negative errno with the reason in `why`.
	 */
	int (*attach)(void *user, const struct stele_map_rbd *rbd,
		      char why[STELE_MAP_REASON_SIZE]);
	int (*detach)(void *user, const char *device,
		      char why[STELE_MAP_REASON_SIZE]);
	void *attach_user;
	uint32_t flags; /* enum stele_map_flags */
	uint32_t reserved;
};

struct stele_mapping_info {
	size_t size;
	char name[STELE_NAME_SIZE_MAX + 1];
	char via[16]; /* how it is read: "device", "file", "krbd", "librbd" */
	const char *target; /* path, resolved; valid during the callback, NULL from stele_map() */
	char snapshot[STELE_NAME_SIZE_MAX + 1];
	uint8_t uuid[STELE_UUID_SIZE];
	uint8_t digest[STELE_DIGEST_SIZE];
	uint64_t sample_count;
	int64_t time; /* of the mapping */
	bool read_only;
	bool pinned;  /* by its digest: what is read by this name is verified by it */
	bool stale;   /* the device behind it is gone or another one */
};

/**
 * stele_map() - check a snapshot and publish it under a name on this machine
 * @name: [A-Za-z0-9._-]{1,63}, not beginning with a dot; NULL: the label,
 * else the snapshot's name
 * Return: 0; -EEXIST (the name is taken by another); errors of
 * stele_dataset_open(); errno of the run directory. Mapping the same snapshot
 * under the same name again succeeds and changes nothing.
 */
STELE_API int stele_map(const char *target, const char *name,
			const struct stele_map_opts *opts,
			struct stele_mapping_info *out);
/**
 * Open handles stay valid. A damaged mapping is removed, too (a warning). With the last
 * mapping that needs it, opts->detach() is called for a krbd device that opts->attach()
 * attached; while the device is open, that last name stays (-EBUSY).
 * Return: 0; -ENOENT; -EINVAL (no name of a mapping); -EBUSY; errno of the
 * device that could not be set writable again, or of the run directory.
 */
STELE_API int stele_unmap(const char *name, const struct stele_map_opts *opts);
/**
 * Calls fn (NULL: none) for each sound mapping, by name; the others are logged, through
 * opts->log.
 * Return: count; -EINVAL; errno of the directory.
 */
STELE_API int stele_map_list(void (*fn)(void *user,
				    const struct stele_mapping_info *info),
			 void *user, const struct stele_map_opts *opts);

#ifdef __cplusplus
}
#endif

#endif
