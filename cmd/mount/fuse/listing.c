/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listing.c - directories, as they are read
 *
 * Names come from the keys as the kernel asks for them; none is kept but the next one. Offsets
 * count entries. One that is not where the listing stands begins anew, and skips.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mount/fuse/files.h"

#define NAME_SIZE 256u

/* One that is open. */
struct listing {
	pthread_mutex_t lock;
	struct files *files;
	const struct node *node;
	struct stele_directory *names; /* NULL: not begun, or the root of volumes */
	off_t offset; /* of the next entry */
	bool held;
	char name[NAME_SIZE];
	struct fuse_entry_param entry; /* ino 0: . and .. */
};

static struct listing *listing_of(const struct fuse_file_info *info)
{
	return (struct listing *)(uintptr_t)info->fh;
}

void listing_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *info)
{
	struct files *files = fuse.fuse_req_userdata(req);
	struct listing *l = calloc(1, sizeof(*l));

	if (!l) {
		fuse.fuse_reply_err(req, ENOMEM);
		return;
	}
	pthread_mutex_init(&l->lock, NULL);
	l->files = files;
	l->node = nodes_directory(&files->nodes, number);
	info->fh = (uint64_t)(uintptr_t)l;
	info->cache_readdir = 1;
	info->keep_cache = 1;
	fuse.fuse_reply_open(req, info);
}

void listing_close(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *info)
{
	struct listing *l = listing_of(info);

	(void)number;
	stele_directory_close(l->names);
	pthread_mutex_destroy(&l->lock);
	free(l);
	fuse.fuse_reply_err(req, 0);
}

/* ---- the next entry --------------------------------------------------------------------- */

static int take_dots(struct listing *l)
{
	strcpy(l->name, l->offset ? ".." : ".");
	l->entry = (struct fuse_entry_param){
		.attr = {.st_mode = S_IFDIR | 0555, .st_ino = l->node->number},
	};
	return 1;
}

static int take_volume(struct listing *l)
{
	const uint64_t index = (uint64_t)l->offset - 2;
	uint64_t number;

	if (index >= l->files->volumes.count)
		return 0;
	strcpy(l->name, l->files->volumes.list[index].name);
	number = nodes_add_volume(&l->files->nodes, (uint32_t)index);
	files_fill_directory(l->files, number, (uint32_t)index, &l->entry);
	return number ? 1 : -ENOMEM;
}

static int take_name(struct listing *l)
{
	struct stele_directory_entry entry;
	struct volume *volume;
	uint64_t number;
	int ret = 0;

	if (!l->names) {
		ret = volumes_use(&l->files->volumes, l->node->volume, &volume);
		if (!ret)
			ret = stele_directory_open(volume->ds, l->node->path,
						   l->node->path_size, &l->names);
	}
	if (!ret)
		ret = stele_directory_next(l->names, &entry);
	if (ret <= 0)
		return ret;
	memcpy(l->name, entry.name, entry.name_size);
	l->name[entry.name_size] = '\0';
	if (!entry.is_directory) {
		files_fill_file(l->files, l->node->volume, entry.id, entry.size, &l->entry);
		return l->entry.ino ? 1 : -EOVERFLOW;
	}
	number = nodes_add(&l->files->nodes, l->node, entry.name, entry.name_size);
	files_fill_directory(l->files, number, l->node->volume, &l->entry);
	return number ? 1 : -ENOMEM;
}

/* Return: 1; 0: at the end; negative errno. */
static int take(struct listing *l)
{
	int ret = 1;

	if (l->held)
		return 1;
	if (l->offset < 2)
		ret = take_dots(l);
	else if (l->node->volume == NODE_VOLUME_ALL)
		ret = take_volume(l);
	else
		ret = take_name(l);
	l->held = ret > 0;
	return ret;
}

static int go_to(struct listing *l, off_t offset)
{
	int ret = 1;

	if (offset == l->offset)
		return 1;
	if (offset < l->offset) {
		stele_directory_close(l->names);
		l->names = NULL;
		l->offset = 0;
		l->held = false;
	}
	while (l->offset < offset && (ret = take(l)) > 0) {
		l->held = false;
		l->offset++;
	}
	return ret;
}

/* ---- to the kernel ------------------------------------------------------------------------ */

static size_t add(fuse_req_t req, const struct listing *l, bool plus, char *buffer,
		  size_t size)
{
	return plus ? fuse.fuse_add_direntry_plus(req, buffer, size, l->name, &l->entry,
						  l->offset + 1) :
		      fuse.fuse_add_direntry(req, buffer, size, l->name, &l->entry.attr,
					     l->offset + 1);
}

/* Return: bytes; negative errno. */
static ssize_t read_some(fuse_req_t req, struct listing *l, bool plus, off_t offset,
			 char *buffer, size_t size)
{
	size_t used = 0, got;
	int ret = l->node ? go_to(l, offset) : -ESTALE;

	while (ret > 0 && (ret = take(l)) > 0) {
		got = add(req, l, plus, buffer + used, size - used);
		if (got > size - used)
			break;
		used += got;
		l->held = false;
		l->offset++;
	}
	return ret < 0 && !used ? ret : (ssize_t)used;
}

static void answer(fuse_req_t req, bool plus, size_t size, off_t offset,
		   struct fuse_file_info *info)
{
	struct listing *l = listing_of(info);
	char *buffer = malloc(size);
	ssize_t got = -ENOMEM;

	pthread_mutex_lock(&l->lock);
	if (buffer)
		got = read_some(req, l, plus, offset, buffer, size);
	pthread_mutex_unlock(&l->lock);
	if (got < 0)
		fuse.fuse_reply_err(req, files_errno((int)got));
	else
		fuse.fuse_reply_buf(req, buffer, (size_t)got);
	free(buffer);
}

void listing_read(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset,
		  struct fuse_file_info *info)
{
	(void)number;
	answer(req, false, size, offset, info);
}

void listing_read_plus(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset,
		       struct fuse_file_info *info)
{
	(void)number;
	answer(req, true, size, offset, info);
}
