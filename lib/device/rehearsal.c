/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rehearsal.c - see rehearsal.h
 *
 * Pieces that were written are kept by offset, and say where in the unnamed file they
 * lie; what none covers is the target's, up to the smallest size that it was given
 * here, and zero behind. Its RBD snapshots are a list of its own. One lock around all.
 */
#include "lib/device/rehearsal.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "format/checked.h"
#include "format/superblock.h"
#include "lib/base/temp.h"
#include "lib/device/backend.h"
#include "lib/device/name.h"
#include "lib/device/snaps.h"
#include "lib/device/target.h"

#define ALIGN_MIN 4096u
#define DEPTH_MAX 128u
#define BLOCK 4096u

struct piece {
	uint64_t offset, size;
	uint64_t at; /* in the unnamed file */
};

struct pieces {
	struct piece *list; /* owned; ascending, never overlapping */
	size_t count, capacity;
};

struct rehearsal {
	struct stele_device base;
	struct stele_device *target; /* NULL: to be created */
	bool borrowed; /* the target is the caller's; else owned */
	pthread_mutex_t lock;
	int file;	 /* unnamed */
	uint64_t file_end;
	struct pieces written;
	uint64_t size;
	uint64_t target_end; /* from there on, nothing is the target's */
	int space;	 /* descriptor of the filesystem, of a regular file; else -1 */
	struct pieces held; /* holes of that file that would be filled */
	uint64_t held_size;
	struct stele_rbd_snaps snaps;
};

/* ---- pieces ------------------------------------------------------------------ */

/* The first one that ends behind `offset`. */
static size_t find(const struct pieces *pieces, uint64_t offset)
{
	size_t from = 0, to = pieces->count;

	while (from < to) {
		const size_t middle = from + (to - from) / 2;
		const struct piece *p = &pieces->list[middle];

		if (p->offset + p->size > offset)
			to = middle;
		else
			from = middle + 1;
	}
	return from;
}

/* NULL: it is none's, and *size is no more than what is before the next. */
static const struct piece *look(const struct pieces *pieces, uint64_t offset,
				size_t *size)
{
	const size_t i = find(pieces, offset);
	const struct piece *p = &pieces->list[i];
	uint64_t end;

	if (i == pieces->count)
		return NULL;
	end = p->offset > offset ? p->offset : p->offset + p->size;
	if (*size > end - offset)
		*size = end - offset;
	return p->offset > offset ? NULL : p;
}

/* What none covers. */
static int insert(struct pieces *pieces, const struct piece *piece)
{
	const size_t i = find(pieces, piece->offset);
	struct piece *before = i ? &pieces->list[i - 1] : NULL, *larger;

	if (before && before->offset + before->size == piece->offset &&
	    before->at + before->size == piece->at) {
		before->size += piece->size;
		return 0;
	}
	if (pieces->count == pieces->capacity) {
		larger = reallocarray(pieces->list, 2 * pieces->capacity + 16,
				      sizeof(*larger));
		if (!larger)
			return -ENOMEM;
		pieces->list = larger;
		pieces->capacity = 2 * pieces->capacity + 16;
	}
	memmove(&pieces->list[i + 1], &pieces->list[i],
		(pieces->count++ - i) * sizeof(*piece));
	pieces->list[i] = *piece;
	return 0;
}

static void cut(struct pieces *pieces, uint64_t end)
{
	struct piece *last;

	while (pieces->count) {
		last = &pieces->list[pieces->count - 1];
		if (last->offset < end) {
			if (last->size > end - last->offset)
				last->size = end - last->offset;
			return;
		}
		pieces->count--;
	}
}

/* ---- transfers --------------------------------------------------------------- */

static ssize_t raw(ssize_t res)
{
	return res < 0 ? -errno : res;
}

static ssize_t read_target(struct rehearsal *r, void *data, uint64_t offset,
			   size_t size)
{
	const uint64_t left = r->target_end > offset ? r->target_end - offset : 0;
	ssize_t res = 0;

	if (left)
		res = r->target->ops->transfer(r->target, STELE_OP_READ, data,
					       offset, size);
	if (res < 0 || ((size_t)res < size && (uint64_t)res < left))
		return res;
	/* Zeros follow upon its end. */
	if ((uint64_t)res > left)
		res = (ssize_t)left;
	memset((char *)data + res, 0, size - (size_t)res);
	return (ssize_t)size;
}

static ssize_t read_piece(struct rehearsal *r, void *data, uint64_t offset,
			  size_t size)
{
	const struct piece *piece;

	if (offset >= r->size)
		return 0;
	if (size > r->size - offset)
		size = r->size - offset;
	piece = look(&r->written, offset, &size);
	if (!piece)
		return read_target(r, data, offset, size);
	return raw(pread(r->file, data, size,
			 (off_t)(piece->at + (offset - piece->offset))));
}

static ssize_t write_piece(struct rehearsal *r, const void *data,
			   uint64_t offset, size_t size)
{
	const uint64_t end = round_down(r->size, r->base.limits.logical_block);
	const struct piece *piece;
	ssize_t res;

	if (offset >= end)
		return -ENOSPC;
	if (size > end - offset)
		size = end - offset;
	piece = look(&r->written, offset, &size);
	if (piece)
		return raw(pwrite(r->file, data, size,
				  (off_t)(piece->at + (offset - piece->offset))));
	res = pwrite(r->file, data, size, (off_t)r->file_end);
	if (res <= 0)
		return raw(res);
	if (insert(&r->written, &(struct piece){offset, (uint64_t)res,
						r->file_end}))
		return -ENOMEM;
	r->file_end += (uint64_t)res;
	return res;
}

static ssize_t transfer(struct stele_device *dev, enum stele_op op, void *data,
			uint64_t offset, size_t size)
{
	struct rehearsal *r = (struct rehearsal *)dev;
	ssize_t res = 0; /* of a flush or discard */

	pthread_mutex_lock(&r->lock);
	if (op == STELE_OP_READ)
		res = read_piece(r, data, offset, size);
	else if (op == STELE_OP_WRITE)
		res = write_piece(r, data, offset, size);
	pthread_mutex_unlock(&r->lock);
	return res;
}

static int get_size(struct stele_device *dev, uint64_t *size)
{
	*size = ((struct rehearsal *)dev)->size;
	return 0;
}

static int resize(struct stele_device *dev, uint64_t size)
{
	struct rehearsal *r = (struct rehearsal *)dev;

	if (r->space >= 0 && size > r->size && stele_reserve_check_size(r->space, size, &dev->log))
		return -EFBIG;
	pthread_mutex_lock(&r->lock);
	r->size = size;
	if (r->target_end > size)
		r->target_end = size;
	cut(&r->written, size);
	pthread_mutex_unlock(&r->lock);
	return 0;
}

/* ---- room in a filesystem ------------------------------------------------------ */

/* How much of it was not asked for before; with `take` it is from now on. */
static int64_t hold(struct rehearsal *r, const struct stele_hole *hole, bool take)
{
	const uint64_t end = hole->offset + hole->size;
	int64_t more = 0;
	size_t part;

	for (uint64_t at = hole->offset; at < end; at += part) {
		part = end - at;
		if (look(&r->held, at, &part))
			continue;
		if (take && insert(&r->held, &(struct piece){at, part, at}))
			return -ENOMEM;
		more += (int64_t)part;
	}
	return more;
}

/* Who is refused looks for another place: that one is not held. */
static int hold_all(struct rehearsal *r, const struct stele_reserved *holes)
{
	uint64_t left, more = 0;
	int64_t got = 0;
	int ret = stele_reserve_free(r->space, &left);

	for (size_t i = 0; i < holes->count; i++)
		more += (uint64_t)hold(r, &holes->list[i], false);
	if (ret == 0 && r->held_size + more > left)
		ret = -ENOSPC;
	for (size_t i = 0; ret == 0 && got >= 0 && i < holes->count; i++)
		got = hold(r, &holes->list[i], true);
	if (ret == 0 && got >= 0)
		r->held_size += more;
	return ret ? ret : got < 0 ? (int)got : 0;
}

static int reserve(struct stele_device *dev, uint64_t offset, uint64_t size)
{
	struct rehearsal *r = (struct rehearsal *)dev;
	struct stele_hole all = {offset, size};
	struct stele_reserved holes = {.list = &all, .count = 1};
	int ret;

	if (r->space < 0)
		return -EOPNOTSUPP;
	if (!r->target)
		return hold_all(r, &holes);
	holes = (struct stele_reserved){0};
	ret = stele_reserve_look(&holes, r->base.fd, offset, size);
	if (ret != -ENOMEM) /* else it is not known */
		ret = hold_all(r, &holes);
	stele_reserved_release(&holes);
	return ret;
}

/* As file.c does it: by the last block, which has to have room. */
static int grow(struct stele_device *dev, uint64_t size)
{
	const uint64_t last = round_down(size - 1, STELE_GROW_BLOCK);
	int ret = reserve(dev, last, size - last);

	return ret && ret != -EOPNOTSUPP ? ret : resize(dev, size);
}

/* ---- RBD snapshots ------------------------------------------------------------- */

static int snaps_list(struct stele_device *dev, struct stele_rbd_snaps *out)
{
	return stele_rbd_snaps_copy(out, &((struct rehearsal *)dev)->snaps);
}

static int snap_make(struct stele_device *dev, const char *name)
{
	return stele_rbd_snaps_add(&((struct rehearsal *)dev)->snaps, name, 0, false);
}

static int snap_protect(struct stele_device *dev, const char *name, bool wanted)
{
	return stele_rbd_snaps_protect(&((struct rehearsal *)dev)->snaps, name, wanted);
}

static int snap_rename(struct stele_device *dev, const char *from, const char *to)
{
	return stele_rbd_snaps_rename(&((struct rehearsal *)dev)->snaps, from, to);
}

static int snap_remove(struct stele_device *dev, const char *name)
{
	return stele_rbd_snaps_remove(&((struct rehearsal *)dev)->snaps, name);
}

static const struct stele_rbd_snap_ops snap_ops = {
	.list = snaps_list,
	.make = snap_make,
	.protect = snap_protect,
	.rename = snap_rename,
	.remove = snap_remove,
};

/* ---- open ---------------------------------------------------------------------- */

static void close_rehearsal(struct stele_device *dev)
{
	struct rehearsal *r = (struct rehearsal *)dev;

	stele_rbd_snaps_release(&r->snaps);
	free(r->held.list);
	free(r->written.list);
	if (r->space >= 0 && r->space != r->base.fd)
		close(r->space);
	if (r->file >= 0)
		close(r->file);
	if (!r->borrowed)
		stele_device_close(r->target);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static int identify(struct stele_device *dev, struct stele_storage_id *id)
{
	struct stele_device *target = ((struct rehearsal *)dev)->target;

	return target ? stele_device_identify(target, id) : -EOPNOTSUPP;
}

#define OPS                                            \
	.name = "dry run", .transfer = transfer,       \
	.size = get_size, .resize = resize,            \
	.grow = grow,                                  \
	.queue_open = stele_threads_open_queue,        \
	.close = close_rehearsal, .identify = identify, \
	.reserve = reserve

static const struct stele_device_ops ops = {OPS};
static const struct stele_device_ops ops_with_snaps = {OPS, .snaps = &snap_ops};

static struct rehearsal *new_rehearsal(const struct stele_limits *limits,
				       bool rbd, const struct stele_log *log)
{
	struct rehearsal *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	pthread_mutex_init(&r->lock, NULL);
	r->space = -1;
	r->base = (struct stele_device){
		.ops = rbd ? &ops_with_snaps : &ops,
		.limits = *limits,
		.writable = true,
		.dry = true,
		.fence_mode = rbd ? STELE_FENCE_RBD_LOCK : STELE_FENCE_LOCAL,
		.fd = -1,
	};
	if (log)
		r->base.log = *log;
	r->file = stele_temp_open(stele_temp_directory(NULL));
	/* A real run makes no such file: that it cannot be made is no reason to refuse one. */
	if (r->file < 0)
		r->file = memfd_create("stele", MFD_CLOEXEC);
	return r;
}

/* Takes it. `ret`: of what went before. */
static int finish(struct rehearsal *r, int ret, struct stele_device **out)
{
	if (ret == 0 && r->file < 0)
		ret = r->file;
	if (ret < 0)
		close_rehearsal(&r->base);
	else
		*out = &r->base;
	return ret;
}

int stele_rehearsal_over(struct stele_device *target, struct stele_device **out)
{
	const struct stele_rbd_snap_ops *snaps = stele_device_snaps(target);
	struct rehearsal *r = new_rehearsal(&target->limits, snaps, &target->log);
	struct stat st;
	int ret;

	if (!r)
		return -ENOMEM;
	r->target = target;
	r->borrowed = true;
	r->base.fd = target->fd;
	r->base.named = target->named;
	r->base.resizable = snaps || (target->fd >= 0 && !fstat(target->fd, &st) &&
				      S_ISREG(st.st_mode));
	if (r->base.resizable && !snaps)
		r->space = target->fd;
	ret = stele_device_size(target, &r->size);
	r->target_end = r->size;
	if (ret == 0 && snaps)
		ret = snaps->list(target, &r->snaps);
	return finish(r, ret, out);
}

int stele_rehearsal_open(struct stele_device *target, struct stele_device **out)
{
	int ret = target->writable ? -EINVAL : stele_rehearsal_over(target, out);

	if (ret < 0)
		stele_device_close(target);
	else
		((struct rehearsal *)*out)->borrowed = false;
	return ret;
}

/* Where only the kernel makes files root may write all the same: what open(2) says there. */
static int check_filesystem(int fd, const char *path)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return 0;
	if (fs.f_type == PROC_SUPER_MAGIC)
		return -ENOENT;
	if (fs.f_type == SYSFS_MAGIC)
		return -EACCES;
	/* Some filesystems that have no inodes count none. */
	return fs.f_files && !fs.f_ffree ? stele_file_explain(path, -ENOSPC) : 0;
}

/* May a file be created there? */
static int open_parent(const char *path)
{
	char *copy = strdup(path), *parent;
	int fd, error;

	if (!copy)
		return -ENOMEM;
	parent = dirname(copy);
	fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || faccessat(AT_FDCWD, parent, W_OK | X_OK, AT_EACCESS))
		error = -errno;
	else
		error = check_filesystem(fd, path);
	if (error && fd >= 0)
		close(fd);
	free(copy);
	return error ? error : fd;
}

int stele_rehearsal_create(const char *path, uint64_t size, uint32_t object_size,
			   const struct stele_log *log, struct stele_device **out)
{
	const bool rbd = path && stele_path_is_rbd(path);
	const struct stele_limits limits = {
		.logical_block = BLOCK,
		.memory_align = ALIGN_MIN,
		.transfer_max = STELE_FILE_TRANSFER_SIZE_MAX,
		.depth_max = DEPTH_MAX,
		.boundary = rbd ? object_size : 0,
	};
	struct rehearsal *r = new_rehearsal(&limits, rbd, log);
	int ret = 0;

	if (!r)
		return -ENOMEM;
	r->base.resizable = true;
	r->size = size;
	if (path && !rbd) {
		ret = stele_file_check_directory(path);
		if (!ret)
			ret = open_parent(path);
		r->space = ret < 0 ? -1 : ret;
	}
	return finish(r, ret < 0 ? ret : 0, out);
}
