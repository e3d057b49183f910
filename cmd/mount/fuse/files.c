/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.c - see files.h; names, attributes and bytes
 */
#include "mount/fuse/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FOREVER	   (365.25 * 24 * 3600) /* s */
#define BLOCK_SIZE 4096u

static struct files *files_of(fuse_req_t req)
{
	return fuse.fuse_req_userdata(req);
}

int files_errno(int error)
{
	return error == -EBADMSG || error == -EUCLEAN ? EIO : -error;
}

int files_find(struct files *files, fuse_ino_t number, struct volume **volume, uint64_t *id)
{
	uint32_t index;

	if (!node_is_file(number, &index, id))
		return -EISDIR;
	return volumes_use(&files->volumes, index, volume);
}

static void fill(uint64_t number, mode_t mode, uint64_t size, int64_t time,
		 struct fuse_entry_param *out)
{
	*out = (struct fuse_entry_param){
		.ino = number,
		.attr_timeout = FOREVER,
		.entry_timeout = FOREVER,
		.attr = {
			.st_ino = number,
			.st_mode = mode,
			.st_nlink = 1, /* of a directory: find(1) is not to count */
			.st_size = (off_t)size,
			.st_blocks = (blkcnt_t)((size + 511) / 512),
			.st_blksize = BLOCK_SIZE,
			.st_uid = getuid(),
			.st_gid = getgid(),
			.st_mtim.tv_sec = time,
			.st_ctim.tv_sec = time,
			.st_atim.tv_sec = time,
		},
	};
}

void files_fill_file(const struct files *files, uint32_t volume, uint64_t id, uint64_t size,
		     struct fuse_entry_param *out)
{
	fill(node_of_file(volume, id), S_IFREG | 0444, size, files->volumes.create_time, out);
}

void files_fill_directory(const struct files *files, uint64_t number, uint32_t volume,
			  struct fuse_entry_param *out)
{
	fill(number, S_IFDIR | 0555, BLOCK_SIZE,
	     volume == NODE_VOLUME_ALL ? files->volumes.create_time :
					 files->volumes.list[volume].time,
	     out);
}

static void init(void *user, struct fuse_conn_info *conn)
{
	(void)user;
	conn->want |= conn->capable & FUSE_CAP_SPLICE_WRITE;
	/* A lookup reads blocks of keys, 2 ms of them; with its name an entry costs nothing. */
	conn->want &= ~(unsigned int)FUSE_CAP_READDIRPLUS_AUTO;
	conn->max_background = 64;
}

/* ---- names ----------------------------------------------------------------------------- */

static int look_up_volume(struct files *files, const char *name, struct fuse_entry_param *out)
{
	for (uint32_t i = 0; i < files->volumes.count; i++) {
		uint64_t number;

		if (strcmp(files->volumes.list[i].name, name) != 0)
			continue;
		number = nodes_add_volume(&files->nodes, i);
		files_fill_directory(files, number, i, out);
		return number ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

static int look_up(struct files *files, const struct node *parent, const char *name,
		   struct fuse_entry_param *out)
{
	const size_t size = strlen(name);
	const size_t base = parent->path_size ? parent->path_size + 1 : 0;
	struct stele_directory_entry entry;
	char path[STELE_KEY_SIZE_MAX];
	struct volume *volume;
	uint64_t number;
	int error;

	if (parent->volume == NODE_VOLUME_ALL)
		return look_up_volume(files, name, out);
	if (base + size > sizeof(path))
		return -ENAMETOOLONG;
	memcpy(path, parent->path, parent->path_size);
	if (base)
		path[base - 1] = '/';
	memcpy(path + base, name, size);
	error = volumes_use(&files->volumes, parent->volume, &volume);
	if (!error)
		error = stele_directory_lookup(volume->ds, path, base + size, &entry);
	if (error)
		return error;
	if (!entry.is_directory) {
		files_fill_file(files, parent->volume, entry.id, entry.size, out);
		return out->ino ? 0 : -EOVERFLOW;
	}
	number = nodes_add(&files->nodes, parent, name, size);
	files_fill_directory(files, number, parent->volume, out);
	return number ? 0 : -ENOMEM;
}

static void op_lookup(fuse_req_t req, fuse_ino_t number, const char *name)
{
	struct files *files = files_of(req);
	const struct node *parent = nodes_directory(&files->nodes, number);
	struct fuse_entry_param entry;
	int error = parent ? look_up(files, parent, name, &entry) : -ESTALE;

	if (error == -ENOENT) { /* for good, too */
		entry = (struct fuse_entry_param){.entry_timeout = FOREVER};
		error = 0;
	}
	if (error)
		fuse.fuse_reply_err(req, files_errno(error));
	else
		fuse.fuse_reply_entry(req, &entry);
}

/* The kernel has forgotten: by way of the key, without the sample. */
static int find_size(struct volume *volume, uint64_t id, uint64_t *size)
{
	struct stele_directory_entry entry = {.size = 0};
	char key[STELE_KEY_SIZE_MAX];
	size_t key_size;
	int error = stele_dataset_key(volume->ds, id, key, &key_size);

	if (!error)
		error = stele_directory_lookup(volume->ds, key, key_size, &entry);
	*size = entry.size;
	return error;
}

static void op_getattr(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *info)
{
	struct files *files = files_of(req);
	const struct node *node = nodes_directory(&files->nodes, number);
	struct fuse_entry_param entry;
	struct volume *volume;
	uint64_t id, size;
	int error = 0;

	(void)info;
	if (node) {
		files_fill_directory(files, number, node->volume, &entry);
	} else {
		error = files_find(files, number, &volume, &id);
		if (!error)
			error = find_size(volume, id, &size);
		if (!error)
			files_fill_file(files, (uint32_t)(volume - files->volumes.list), id,
					size, &entry);
	}
	if (error)
		fuse.fuse_reply_err(req, files_errno(error));
	else
		fuse.fuse_reply_attr(req, &entry.attr, FOREVER);
}

static void op_statfs(fuse_req_t req, fuse_ino_t number)
{
	const struct volumes *volumes = &files_of(req)->volumes;
	struct statvfs stat = {
		.f_bsize = BLOCK_SIZE, .f_frsize = BLOCK_SIZE, .f_namemax = 255,
	};

	(void)number;
	for (uint32_t i = 0; i < volumes->count; i++) {
		stat.f_blocks += (volumes->list[i].payload_size + BLOCK_SIZE - 1) / BLOCK_SIZE;
		stat.f_files += volumes->list[i].sample_count;
	}
	fuse.fuse_reply_statfs(req, &stat);
}

/* ---- bytes ------------------------------------------------------------------------------ */

/* The kernel asks no more, and keeps what it has read. */
static void op_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *info)
{
	(void)number;
	(void)info;
	fuse.fuse_reply_err(req, ENOSYS);
}

static void reply_spooled(fuse_req_t req, const struct store *spool, size_t size, off_t offset)
{
	char *buffer = malloc(size ? size : 1);
	int64_t got = buffer ? store_read(spool, (uint64_t)offset, buffer, size) : -ENOMEM;

	if (got < 0)
		fuse.fuse_reply_err(req, (int)-got);
	else
		fuse.fuse_reply_buf(req, buffer, (size_t)got);
	free(buffer);
}

static void op_read(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset,
		    struct fuse_file_info *info)
{
	struct sample_entry *entry;
	struct volume *volume;
	uint64_t id, left;
	int error = files_find(files_of(req), number, &volume, &id);

	(void)info;
	if (!error)
		error = samples_get(&volume->samples, id, fuse.fuse_req_ctx(req)->pid, &entry);
	if (error) {
		fuse.fuse_reply_err(req, files_errno(error));
		return;
	}
	left = (uint64_t)offset < entry->sample.size ?
		       entry->sample.size - (uint64_t)offset : 0;
	size = size < left ? size : (size_t)left;
	if (entry->spool.fd >= 0)
		reply_spooled(req, &entry->spool, size, offset);
	else
		fuse.fuse_reply_buf(req, size ? (const char *)entry->sample.data + offset : NULL,
				    size);
	samples_put(&volume->samples, entry);
}

const struct fuse_lowlevel_ops files_ops = {
	.init = init,
	.lookup = op_lookup,
	.getattr = op_getattr,
	.statfs = op_statfs,
	.open = op_open,
	.read = op_read,
	.opendir = listing_open,
	.readdir = listing_read,
	.readdirplus = listing_read_plus,
	.releasedir = listing_close,
	.getxattr = xattr_get,
	.listxattr = xattr_list,
};
