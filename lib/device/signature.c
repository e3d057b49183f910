/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signature.c - what a target carries, by libblkid; the second half of guard.h
 *
 * blkid_do_probe() is called until it says "no more": the one-answer functions
 * hide what they find ambiguous, and their codes differ between versions
 * (2.38: -2, 2.39 on: -1; below, it is an errno). Any negative answer is a refusal,
 * forced or not: what cannot be read cannot be erased for certain, either.
 *
 * libblkid reads and writes through the page cache, with buffers that
 * O_DIRECT would not take, so it gets a descriptor of its own to the same
 * inode. Its pages are dropped afterwards: what is built upon the target
 * passes them by, and a buffered viewer must not be shown them.
 */
#include "lib/device/guard.h"

#include "format/checked.h"
#include "format/erofs.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTOR_SIZE 512u /* of libblkid, whatever the device has */
#define WIPE_SIZE STELE_GUARD_WIPE_SIZE
#define ENDS_SIZE (UINT64_C(4) << 20)	/* of either end, where no descriptor is */
/* More signatures than anything can carry: what is found still is not erased. */
#define SIGNATURES_MAX 1024

struct prober {
	int fd;
	blkid_probe probe;
	const struct stele_log *log;
};

static void prober_close(struct prober *prober)
{
	blkid_free_probe(prober->probe);
	if (prober->fd >= 0) {
		posix_fadvise(prober->fd, 0, 0, POSIX_FADV_DONTNEED);
		close(prober->fd);
	}
}

/* [offset, end) of the device, which are whole blocks of it, into the copy. */
static int copy_range(struct stele_device *dev, int fd, uint64_t offset,
		      uint64_t end)
{
	char *data;
	int err = 0;

	data = stele_device_alloc(dev, ENDS_SIZE);
	if (!data)
		return -ENOMEM;
	for (uint64_t size; !err && offset < end; offset += size) {
		size = end - offset < ENDS_SIZE ? end - offset : ENDS_SIZE;
		err = stele_device_read(dev, data, offset, (size_t)size);
		if (!err && pwrite(fd, data, (size_t)size, (off_t)offset) !=
				    (ssize_t)size)
			err = -EIO;
	}
	free(data);
	return err;
}

/* For libblkid: a sparse file in memory, with both ends of the device. */
static int copy_ends(struct stele_device *dev)
{
	uint64_t size, back;
	int fd = -1, err = stele_device_size(dev, &size);

	if (!err) {
		fd = memfd_create("stele", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, (off_t)size))
			err = -errno;
	}
	size = err ? 0 : round_down(size, dev->limits.logical_block);
	back = size < 2 * ENDS_SIZE ? 0 : size - ENDS_SIZE;
	if (!err && back)
		err = copy_range(dev, fd, 0, ENDS_SIZE);
	if (!err)
		err = copy_range(dev, fd, round_down(back, dev->limits.logical_block),
				 size);
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

static int prober_open(struct stele_device *dev, int flags,
		       const struct stele_log *log, struct prober *prober)
{
	char path[32];
	int fd = stele_device_fd(dev);

	*prober = (struct prober){.fd = -1, .log = log};
	if (dev->dry && flags != O_RDONLY)
		return -EROFS;
	if (fd >= 0) {
		/* Through /proc: the same inode, whatever became of the path. */
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		prober->fd = open(path, flags | O_CLOEXEC);
		if (prober->fd < 0)
			return -errno;
	} else if (flags == O_RDONLY && dev->ops->data) {
		prober->fd = copy_ends(dev);
		if (prober->fd < 0)
			return prober->fd;
	} else {
		return fd;
	}
	prober->probe = blkid_new_probe();
	if (!prober->probe)
		return -ENOMEM;
	if (blkid_probe_set_device(prober->probe, prober->fd, 0, 0) ||
	    blkid_probe_enable_superblocks(prober->probe, 1) ||
	    blkid_probe_set_superblocks_flags(
		    prober->probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_LABEL |
					   BLKID_SUBLKS_UUID |
					   BLKID_SUBLKS_USAGE |
					   BLKID_SUBLKS_MAGIC |
					   BLKID_SUBLKS_BADCSUM) ||
	    blkid_probe_enable_partitions(prober->probe, 1) ||
	    blkid_probe_set_partitions_flags(
		    prober->probe, BLKID_PARTS_MAGIC | BLKID_PARTS_FORCE_GPT)) {
		stele_log_error(log, "libblkid cannot probe the target");
		return -EIO;
	}
	return 0;
}

/* Looks for the next one. 1: found; 0: no more; negative: libblkid failed. */
static int prober_next(struct prober *prober)
{
	int rc = blkid_do_probe(prober->probe);

	if (rc >= 0)
		return rc == 0;
	rc = rc < -2 ? rc : -EIO;
	stele_log_error(prober->log, "libblkid cannot tell what the target carries: %s",
			stele_strerror(rc));
	return rc;
}

static const char *prober_value(struct prober *prober, const char *name, const char *fallback)
{
	const char *value;

	return blkid_probe_lookup_value(prober->probe, name, &value, NULL) ? fallback : value;
}

/*
 * Is it a partition table that was found (its type), or a superblock (NULL)? Values of the last
 * superblock that libblkid knows, EROFS, are still there when it has gone on to the former.
 */
static const char *prober_table(struct prober *prober)
{
	return prober_value(prober, "PTTYPE", NULL);
}

static const char *prober_offset(struct prober *prober)
{
	return prober_value(prober, prober_table(prober) ? "PTMAGIC_OFFSET" : "SBMAGIC_OFFSET",
			    NULL);
}

/* A label may hold anything, a message is one line of text. */
static const char *printable(const char *text, char *out, size_t size)
{
	snprintf(out, size, "%s", text);
	for (char *c = out; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return out;
}

/* "the target carries ext4 (filesystem), label 'x', uuid '...', at byte 1080" */
static void log_found(struct prober *prober, enum stele_log_level level)
{
	char buffer[256];

	const char *table = prober_table(prober);
	const char *type = table ? table : prober_value(prober, "TYPE", "?");
	const char *usage = table ? "partition table" : prober_value(prober, "USAGE", "?");
	const char *label = table ? NULL : prober_value(prober, "LABEL", NULL);
	const char *uuid = prober_value(prober, table ? "PTUUID" : "UUID", NULL);
	const char *offset = prober_offset(prober);

	label = label ? printable(label, buffer, sizeof(buffer)) : NULL;
	stele_log_emit(prober->log, level, "the target carries %s (%s)%s%s%s%s%s%s, at byte %s",
		       type, usage, label ? ", label '" : "",
		       label ? label : "", label ? "'" : "",
		       uuid ? ", uuid '" : "", uuid ? uuid : "",
		       uuid ? "'" : "", offset ? offset : "?");
}

/* Nothing but hole: a new file, or one that truncate(1) made. */
static int file_is_empty(int fd, const struct stele_log *log)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || !st.st_size)
		return 0;
	if (lseek(fd, 0, SEEK_DATA) < 0 && errno == ENXIO)
		return 0;
	stele_log_error(log, "the target is a file of %" PRId64
			" bytes that is not empty", (int64_t)st.st_size);
	return -EEXIST;
}

/* Storage that knows what was written: of an image that is new, nothing. */
static int image_is_empty(struct stele_device *dev, const struct stele_log *log)
{
	uint64_t bytes;
	int err = dev->ops->data(dev, &bytes);

	if (err || !bytes)
		return err;
	stele_log_error(log, "the target is an image with %" PRIu64
			" bytes of data", bytes);
	return -EEXIST;
}

/* The EROFS that the image of this UUID is, too (NULL: no image)? */
static bool is_own(struct prober *prober, const uint8_t *uuid)
{
	const char *type = prober_value(prober, "TYPE", "");
	struct stele_disk_erofs_front front;

	return uuid && !prober_table(prober) && !strcmp(type, "erofs") &&
	       pread(prober->fd, &front, sizeof(front), STELE_EROFS_OFFSET) ==
		       (ssize_t)sizeof(front) &&
	       stele_erofs_front_is_of(&front, uuid);
}

int stele_guard_signatures(struct stele_device *dev, const uint8_t *uuid,
			   const struct stele_log *log)
{
	struct prober prober;
	unsigned int found = 0, seen = 0;
	int rc = prober_open(dev, O_RDONLY, log, &prober);

	while (!rc && (rc = prober_next(&prober)) > 0) {
		rc = seen++ < SIGNATURES_MAX ? 0 : -EEXIST;
		if (is_own(&prober, uuid))
			continue;
		log_found(&prober, STELE_LOG_ERROR);
		found++;
	}
	if (!rc && found)
		rc = -EEXIST;
	if (!rc)
		rc = dev->ops->data ? image_is_empty(dev, log) :
				      file_is_empty(prober.fd, log);
	prober_close(&prober);
	return rc;
}

unsigned int stele_guard_partitions(struct stele_device *dev, uint64_t *begins,
				    unsigned int most, char table[STELE_GUARD_TABLE_SIZE])
{
	blkid_partlist list = NULL;
	blkid_parttable found;
	struct prober prober;
	int count = 0;

	*table = '\0';
	if (prober_open(dev, O_RDONLY, NULL, &prober) == 0)
		list = blkid_probe_get_partitions(prober.probe);
	found = list ? blkid_partlist_get_table(list) : NULL;
	if (found)
		snprintf(table, STELE_GUARD_TABLE_SIZE, "%s", blkid_parttable_get_type(found));
	if (found)
		count = blkid_partlist_numof_partitions(list);
	if (count < 0 || (unsigned int)count > most)
		count = count < 0 ? 0 : (int)most;
	for (int i = 0; i < count; i++) {
		const blkid_loff_t start = blkid_partition_get_start(
			blkid_partlist_get_partition(list, i));

		if (start < 0 || !checked_mul((uint64_t)start, SECTOR_SIZE, &begins[i]))
			begins[i] = UINT64_MAX;
	}
	prober_close(&prober);
	return (unsigned int)count;
}

static bool lies_below(struct prober *prober, uint64_t end)
{
	const char *offset = prober_offset(prober);

	return offset && strtoull(offset, NULL, 10) < end;
}

int stele_guard_overlaid(struct stele_device *dev, uint64_t end, const uint8_t *uuid,
			 const struct stele_log *log)
{
	static const struct stele_log quiet;
	unsigned int found = 0, seen = 0;
	struct prober prober;
	int rc;

	if (dev->ops->data || stele_device_fd(dev) < 0)
		return 0; /* nothing else reaches that storage by the same path */
	rc = prober_open(dev, O_RDONLY, &quiet, &prober);
	while (!rc && seen++ < SIGNATURES_MAX && prober_next(&prober) > 0) {
		if (!lies_below(&prober, end) || is_own(&prober, uuid))
			continue;
		prober.log = log;
		log_found(&prober, STELE_LOG_ERROR);
		prober.log = &quiet;
		found++;
	}
	prober_close(&prober);
	return found ? -EEXIST : 0;
}

/* ---- wipe ------------------------------------------------------------------ */

/* Erases a magic at a time, and looks again from there. */
static int wipe_found(struct stele_device *dev, const struct stele_log *log)
{
	struct prober prober;
	unsigned int found = 0;
	int rc = prober_open(dev, O_RDWR, log, &prober);

	while (!rc && (rc = prober_next(&prober)) > 0) {
		log_found(&prober, STELE_LOG_INFO);
		rc = stele_device_may_erase(dev);
		if (!rc && ++found == SIGNATURES_MAX)
			rc = -EEXIST;
		else if (!rc && blkid_do_wipe(prober.probe, 0))
			rc = -EIO;
	}
	if (rc == -EIO)
		stele_log_error(log, "cannot erase what the target carries");
	prober_close(&prober);
	return rc;
}

/* Zero [offset, end) of whole blocks. */
static int zero_range(struct stele_device *dev, void *zeros, uint64_t offset,
		      uint64_t end)
{
	int err = 0;

	while (!err && offset < end) {
		uint64_t size = end - offset < WIPE_SIZE ? end - offset :
							   WIPE_SIZE;

		err = stele_device_write(dev, zeros, offset, (size_t)size);
		offset += size;
	}
	return err;
}

/* A last block that is not whole (only files have one) is left to the probes. */
static int zero_ends(struct stele_device *dev, uint64_t spare,
		     uint64_t spare_end)
{
	uint32_t block = dev->limits.logical_block;
	uint64_t size, front, back;
	void *zeros;
	int err = stele_device_size(dev, &size);

	if (err)
		return err;
	zeros = stele_device_alloc(dev, WIPE_SIZE);
	if (!zeros)
		return -ENOMEM;
	memset(zeros, 0, WIPE_SIZE);
	size = round_down(size, block);
	front = size < WIPE_SIZE ? size : WIPE_SIZE;
	back = size < 2 * WIPE_SIZE ? front : size - WIPE_SIZE;
	err = zero_range(dev, zeros, 0, front < spare ? front : spare);
	if (!err)
		err = zero_range(dev, zeros, spare_end, front);
	if (!err)
		err = zero_range(dev, zeros, back > spare_end ? back : spare_end,
				 size);
	free(zeros);
	return err;
}

int stele_guard_wipe(struct stele_device *dev, uint64_t spare,
		     uint64_t spare_end, const struct stele_log *log)
{
	struct prober prober;
	int rc = dev->dry ? 0 : wipe_found(dev, log);

	if (!rc)
		rc = zero_ends(dev, spare, spare_end);
	if (!rc)
		rc = stele_device_flush(dev);
	if (rc || dev->dry)
		return rc;
	/* A new prober: the old one keeps what it read. */
	rc = prober_open(dev, O_RDONLY, log, &prober);
	if (!rc)
		rc = prober_next(&prober);
	if (rc > 0) {
		log_found(&prober, STELE_LOG_ERROR);
		rc = -EEXIST;
	}
	prober_close(&prober);
	return rc;
}
