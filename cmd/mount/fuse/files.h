/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - the requests of the kernel, answered
 *
 * Nothing ever changes, so the kernel may keep names, attributes and bytes as long as it
 * likes, and there is nothing to open. Any thread.
 */
#ifndef STELE_CMD_MOUNT_FUSE_FILES_H
#define STELE_CMD_MOUNT_FUSE_FILES_H

#include "mount/fuse/api.h"
#include "mount/fuse/nodes.h"
#include "mount/fuse/volumes.h"

struct files {
	struct volumes volumes;
	struct nodes nodes;
};

extern const struct fuse_lowlevel_ops files_ops; /* userdata: struct files */

/* A negative errno, as programs should see it. Return: a positive one. */
int files_errno(int error);
/* The volume of a file, open. Return: 0; negative errno. */
int files_find(struct files *files, fuse_ino_t number, struct volume **volume, uint64_t *id);
/* What the kernel is told of a file, or of a directory. */
void files_fill_file(const struct files *files, uint32_t volume, uint64_t id, uint64_t size,
		     struct fuse_entry_param *out);
void files_fill_directory(const struct files *files, uint64_t number, uint32_t volume,
			  struct fuse_entry_param *out);

/* listing.c */
void listing_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *info);
void listing_read(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset,
		  struct fuse_file_info *info);
void listing_read_plus(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset,
		       struct fuse_file_info *info);
void listing_close(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *info);

/* xattr.c */
void xattr_get(fuse_req_t req, fuse_ino_t number, const char *name, size_t size);
void xattr_list(fuse_req_t req, fuse_ino_t number, size_t size);

#endif
