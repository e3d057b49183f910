/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping_file.c - a mapping's file: decode it, load it, write it
 *
 * Nothing in a file is believed before it was checked. Files are written
 * beside, synced and linked into place, and never changed afterwards: who opens
 * one sees a whole mapping. (Who may write in the directory could cut a file
 * short under a reader; so the directory is not for everybody.)
 */
#include "lib/node/mapping_file.h"

#include "format/catalog.h"
#include "format/crc32c.h"
#include "lib/node/access.h"
#include "lib/node/node_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define CRC_OFFSET offsetof(struct stele_mapping_header, crc)

uint32_t stele_mapping_crc(const void *data, size_t size)
{
	static const uint8_t zero[sizeof(le32)];
	const uint8_t *bytes = data;
	size_t behind = CRC_OFFSET + sizeof(le32);
	uint32_t crc = stele_crc32c(0, bytes, CRC_OFFSET);

	crc = stele_crc32c(crc, zero, sizeof(zero));
	return stele_crc32c(crc, bytes + behind, size - behind);
}

/* ---- decode ---------------------------------------------------------------- */

static int bad(const char **why, const char *step, int err)
{
	*why = step;
	return err;
}

static bool get_name(const uint8_t *field, char *out)
{
	size_t size = strnlen((const char *)field, STELE_NAME_SIZE_MAX + 1);

	if (size > STELE_NAME_SIZE_MAX ||
	    !stele_name_ok((const char *)field, size))
		return false;
	for (size_t i = size; i <= STELE_NAME_SIZE_MAX; i++)
		if (field[i])
			return false;
	memcpy(out, field, STELE_NAME_SIZE_MAX + 1);
	return true;
}

/* Zero-padded, printable, with an end. */
static bool get_text(const uint8_t *field, char *out, size_t size)
{
	size_t length = strnlen((const char *)field, size);

	for (size_t i = 0; i < size; i++)
		if (i < length ? field[i] <= ' ' || field[i] > '~' : field[i])
			return false;
	memcpy(out, field, size);
	return length < size;
}

static bool get_storage(const struct stele_mapping_header *header,
			struct stele_storage_id *out)
{
	out->pool = (int64_t)le64_get(header->pool);
	out->shot = le64_get(header->shot);
	return get_text(header->cluster, out->cluster, sizeof(out->cluster)) &&
	       get_text(header->image, out->image, sizeof(out->image)) &&
	       !*out->cluster == !*out->image && !*out->cluster == !out->shot;
}

static int decode_identity(const struct stele_mapping_header *header,
			   struct stele_identity *out, const char **why)
{
	out->rdev = le64_get(header->rdev);
	out->fsdev = le64_get(header->fsdev);
	out->inode = le64_get(header->inode);
	out->size = le64_get(header->device_size);
	out->sequence = le64_get(header->sequence);
	if (!get_storage(header, &out->storage))
		return bad(why, "identity of the storage", -EUCLEAN);
	if (out->rdev ? out->fsdev || out->inode :
			!out->inode && !*out->storage.cluster)
		return bad(why, "identity", -EUCLEAN);
	if (le32_get(header->flags) & STELE_MAPPING_ATTACHED &&
	    (!out->rdev || !*out->storage.cluster))
		return bad(why, "flags", -EUCLEAN);
	return 0;
}

static int decode_fields(const struct stele_mapping_header *header,
			 const char *name, struct stele_mapping *out,
			 const char **why)
{
	uint32_t flags = le32_get(header->flags);

	if (flags & ~STELE_MAPPING_FLAGS_ALL ||
	    (flags & (STELE_MAPPING_READ_ONLY | STELE_MAPPING_WAS_READ_ONLY)) ==
		    STELE_MAPPING_WAS_READ_ONLY)
		return bad(why, "flags", -EUCLEAN);
	if (!get_name(header->name, out->info.name) ||
	    strcmp(out->info.name, name) != 0)
		return bad(why, "name", -EUCLEAN);
	if (!get_name(header->snapshot, out->info.snapshot))
		return bad(why, "snapshot's name", -EUCLEAN);
	if (!get_text(header->via, out->info.via, sizeof(out->info.via)) ||
	    !*out->info.via)
		return bad(why, "way it is read", -EUCLEAN);
	memcpy(out->info.uuid, header->uuid, sizeof(out->info.uuid));
	memcpy(out->info.digest, header->digest, sizeof(out->info.digest));
	out->info.sample_count = le64_get(header->sample_count);
	out->info.time = (int64_t)le64_get(header->time);
	out->info.read_only = flags & STELE_MAPPING_READ_ONLY;
	out->info.pinned = flags & STELE_MAPPING_PINNED;
	out->was_read_only = flags & STELE_MAPPING_WAS_READ_ONLY;
	out->attached = flags & STELE_MAPPING_ATTACHED;
	out->generation = le64_get(header->generation);
	return decode_identity(header, &out->identity, why);
}

/* Ascending, apart, whole blocks within the target; their sizes' sum. */
static int check_extents(const struct stele_mapping *mapping, uint64_t *sum,
			 const char **why)
{
	const struct stele_mapping_extent *extents = mapping->extents;
	uint64_t limit = mapping->identity.size, end = 0;

	*sum = 0;
	for (uint32_t i = 0; i < mapping->extent_count; i++) {
		uint64_t offset = le64_get(extents[i].offset);
		uint64_t size = le64_get(extents[i].size);

		if (!size || !is_aligned(size, STELE_MAPPING_EXTENT_ALIGN) ||
		    !is_aligned(offset, STELE_MAPPING_EXTENT_ALIGN) ||
		    !range_ok(offset, size, limit ? limit : INT64_MAX))
			return bad(why, "bounds of an extent", -EUCLEAN);
		if (i && offset <= end)
			return bad(why, "order of the extents", -EUCLEAN);
		end = offset + size;
		if (!checked_add(*sum, size, sum))
			return bad(why, "sum of the extents", -EUCLEAN);
	}
	return 0;
}

/* Takes what it takes off *rest. */
static int decode_profile(const struct stele_mapping_header *header,
			  const char *text, uint64_t *rest,
			  struct stele_mapping *out, const char **why)
{
	uint32_t size = le32_get(header->profile_size);
	const char *detail;

	if (!size)
		return 0;
	if (size > *rest ||
	    stele_profile_decode(text, size, &out->profile, &out->facts,
				 &detail))
		return bad(why, "profile", -EUCLEAN);
	*rest -= size;
	out->has_profile = true;
	return 0;
}

/* Target, profile, extents and bytes fill the file exactly. */
static int decode_body(const uint8_t *data, size_t size,
		       struct stele_mapping *out, const char **why)
{
	const struct stele_mapping_header *header = (const void *)data;
	const char *target = (const char *)data + sizeof(*header);
	uint32_t target_size = le32_get(header->target_size);
	uint64_t rest = size - sizeof(*header), table, sum;
	int err;

	if (target_size < 2 || target_size > STELE_MAPPING_TARGET_MAX ||
	    target_size > rest ||
	    (*out->identity.storage.cluster ? !stele_path_has_shots(target) :
					      target[0] != '/') ||
	    strnlen(target, target_size) != target_size - 1)
		return bad(why, "target", -EUCLEAN);
	out->info.target = target;
	rest -= target_size;
	err = decode_profile(header, target + target_size, &rest, out, why);
	if (err)
		return err;
	out->extent_count = le32_get(header->extent_count);
	table = (uint64_t)out->extent_count *
		sizeof(struct stele_mapping_extent);
	if (out->extent_count > STELE_MAPPING_EXTENTS_MAX || table > rest)
		return bad(why, "count of the extents", -EUCLEAN);
	rest -= table;
	out->extents = target + target_size + le32_get(header->profile_size);
	out->bytes = (const uint8_t *)out->extents + table;
	err = check_extents(out, &sum, why);
	if (!err && sum != rest)
		err = bad(why, "sum of the extents", -EUCLEAN);
	return err;
}

int stele_mapping_decode(const void *data, size_t size, const char *name,
			 struct stele_mapping *out, const char **why)
{
	const struct stele_mapping_header *header = data;
	int err;

	memset(out, 0, sizeof(*out));
	if (size < sizeof(*header) || size > STELE_MAPPING_SIZE_MAX)
		return bad(why, "length", -EBADMSG);
	if (memcmp(header->magic, STELE_MAPPING_MAGIC, sizeof(header->magic)))
		return bad(why, "magic", -EBADMSG);
	if (le32_get(header->crc) != stele_mapping_crc(data, size))
		return bad(why, "checksum", -EBADMSG);
	if (le32_get(header->version) != STELE_MAPPING_VERSION)
		return bad(why, "version", -EOPNOTSUPP);
	if (le64_get(header->file_size) != size)
		return bad(why, "size", -EUCLEAN);
	err = decode_fields(header, name, out, why);
	if (!err)
		err = decode_body(data, size, out, why);
	return err;
}

/* ---- load ------------------------------------------------------------------ */

static int file_path(const char *name, char *path)
{
	int size = snprintf(path, PATH_MAX, "%s/%s", stele_mapping_dir(), name);

	return size < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* A file that nobody but root or ourselves can have put there. */
static int open_file(const char *name, const char **why)
{
	int dir = open(stele_mapping_dir(), O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd, err;

	if (dir < 0)
		return -errno;
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	err = fd < 0 ? -errno : stele_access_check(fd, why);
	if (!err) {
		err = stele_access_check(dir, why);
		if (err == -EPERM)
			*why = "others may write to its directory";
	}
	close(dir);
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

/* Of a regular file, whole. */
static int map_file(const char *name, void **data, size_t *size,
		    const char **why)
{
	int fd = open_file(name, why);
	struct stat st;
	int err = 0;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st)) {
		err = -errno;
		goto out;
	}
	if (!S_ISREG(st.st_mode) || !st.st_size ||
	    (uint64_t)st.st_size > STELE_MAPPING_SIZE_MAX) {
		err = -EBADMSG;
		goto out;
	}
	*size = (size_t)st.st_size;
	*data = mmap(NULL, *size, PROT_READ, MAP_SHARED, fd, 0);
	if (*data == MAP_FAILED) {
		*data = NULL;
		err = -errno;
	}
out:
	close(fd);
	return err;
}

int stele_mapping_load(const char *name, const struct stele_log *log,
		       struct stele_mapping *out)
{
	const char *why = "kind or length";
	char path[PATH_MAX];
	void *data = NULL;
	size_t size = 0;
	int err;

	memset(out, 0, sizeof(*out));
	if (!stele_name_ok(name, strlen(name)))
		return -EINVAL;
	err = file_path(name, path);
	if (!err)
		err = map_file(name, &data, &size, &why);
	if (!err)
		err = stele_mapping_decode(data, size, name, out, &why);
	if (!err) {
		out->data = data;
		out->data_size = size;
		return 0;
	}
	if (err == -EBADMSG || err == -EUCLEAN || err == -EOPNOTSUPP ||
	    err == -EPERM)
		stele_log_error(log, "bad mapping '%s': %s", path, why);
	else if (err != -ENOENT)
		stele_log_error(log, "cannot read mapping '%s': %s", path,
				strerror(-err));
	if (data)
		munmap(data, size);
	memset(out, 0, sizeof(*out));
	return err;
}

void stele_mapping_release(struct stele_mapping *mapping)
{
	if (mapping->data)
		munmap(mapping->data, mapping->data_size);
	memset(mapping, 0, sizeof(*mapping));
}

int stele_mapping_remove(const char *name)
{
	char path[PATH_MAX];
	int err = file_path(name, path);

	if (!err && unlink(path))
		err = -errno;
	return err;
}

/* ---- save ------------------------------------------------------------------ */

static void put_header(const struct stele_mapping *mapping, uint64_t file_size,
		       uint32_t target_size, uint32_t profile_size,
		       uint32_t extent_count, struct stele_mapping_header *out)
{
	const struct stele_storage_id *id = &mapping->identity.storage;
	const struct stele_mapping_info *info = &mapping->info;
	uint32_t flags = (mapping->attached ? STELE_MAPPING_ATTACHED : 0) |
			 (info->pinned ? STELE_MAPPING_PINNED : 0);

	if (info->read_only)
		flags |= STELE_MAPPING_READ_ONLY;
	if (info->read_only && mapping->was_read_only)
		flags |= STELE_MAPPING_WAS_READ_ONLY;
	memset(out, 0, sizeof(*out));
	memcpy(out->magic, STELE_MAPPING_MAGIC, sizeof(out->magic));
	out->version = le32_put(STELE_MAPPING_VERSION);
	out->file_size = le64_put(file_size);
	out->rdev = le64_put(mapping->identity.rdev);
	out->fsdev = le64_put(mapping->identity.fsdev);
	out->inode = le64_put(mapping->identity.inode);
	out->device_size = le64_put(mapping->identity.size);
	out->sequence = le64_put(mapping->identity.sequence);
	out->generation = le64_put(mapping->generation);
	out->sample_count = le64_put(info->sample_count);
	out->time = le64_put((uint64_t)info->time);
	out->flags = le32_put(flags);
	out->target_size = le32_put(target_size);
	out->profile_size = le32_put(profile_size);
	out->extent_count = le32_put(extent_count);
	memcpy(out->uuid, info->uuid, sizeof(out->uuid));
	memcpy(out->digest, info->digest, sizeof(out->digest));
	memcpy(out->name, info->name, strnlen(info->name, STELE_NAME_SIZE_MAX));
	memcpy(out->snapshot, info->snapshot,
	       strnlen(info->snapshot, STELE_NAME_SIZE_MAX));
	memcpy(out->via, info->via, strnlen(info->via, sizeof(out->via) - 1));
	memcpy(out->cluster, id->cluster, sizeof(out->cluster));
	memcpy(out->image, id->image, sizeof(out->image));
	out->pool = le64_put((uint64_t)id->pool);
	out->shot = le64_put(id->shot);
}

/* The whole file in memory, so that its checksum comes first. */
static int encode(const struct stele_mapping *mapping,
		  const struct stele_recorded *recorded, uint8_t **data,
		  size_t *size)
{
	size_t target_size = strlen(mapping->info.target) + 1;
	size_t table = recorded->extent_count *
		       sizeof(struct stele_mapping_extent);
	char profile[STELE_PROFILE_SIZE_MAX] = "";
	struct stele_mapping_header *header;
	size_t profile_size;
	uint8_t *at;

	if (mapping->has_profile)
		stele_profile_encode(&mapping->profile, &mapping->facts,
				     profile);
	profile_size = strlen(profile);
	if (target_size > STELE_MAPPING_TARGET_MAX)
		return -ENAMETOOLONG;
	*size = sizeof(*header) + target_size + profile_size + table +
		recorded->bytes_size;
	if (*size > STELE_MAPPING_SIZE_MAX)
		return -EFBIG;
	at = *data = malloc(*size);
	if (!at)
		return -ENOMEM;
	header = (void *)at;
	put_header(mapping, *size, (uint32_t)target_size,
		   (uint32_t)profile_size, recorded->extent_count, header);
	at += sizeof(*header);
	memcpy(at, mapping->info.target, target_size);
	at += target_size;
	memcpy(at, profile, profile_size);
	at += profile_size;
	if (table)
		memcpy(at, recorded->extents, table);
	at += table;
	if (recorded->bytes_size)
		memcpy(at, recorded->bytes, recorded->bytes_size);
	header->crc = le32_put(stele_mapping_crc(*data, *size));
	return 0;
}

static int write_all(int fd, const uint8_t *data, size_t size)
{
	while (size) {
		ssize_t done = write(fd, data, size);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		data += done;
		size -= (size_t)done;
	}
	return 0;
}

/* A link fails where a rename would replace: two who map at once both know. */
static int publish(const char *name, const struct stele_access *access,
		   const uint8_t *data, size_t size)
{
	char path[PATH_MAX], beside[PATH_MAX];
	int fd, err = stele_node_dir_make(stele_mapping_dir()), length;

	if (!err)
		err = file_path(name, path);
	if (err)
		return err;
	/* A dot in front: never the name of a mapping. */
	length = snprintf(beside, sizeof(beside), "%s/.%s.XXXXXX",
			  stele_mapping_dir(), name);
	if (length >= (int)sizeof(beside))
		return -ENAMETOOLONG;
	fd = mkostemp(beside, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = write_all(fd, data, size);
	if (!err)
		err = stele_access_grant(fd, access);
	if (!err && fsync(fd))
		err = -errno;
	close(fd);
	if (!err && link(beside, path))
		err = -errno;
	unlink(beside);
	return err;
}

int stele_mapping_save(const struct stele_mapping *mapping,
		       struct stele_device *recording,
		       const struct stele_log *log)
{
	struct stele_recorded recorded = {0};
	uint8_t *data = NULL;
	size_t size = 0;
	int err = stele_recording_take(recording, &recorded);

	if (!err)
		err = encode(mapping, &recorded, &data, &size);
	if (!err)
		err = publish(mapping->info.name, &mapping->access, data, size);
	if (err)
		stele_log_error(log, "cannot publish '%s/%s': %s",
				stele_mapping_dir(), mapping->info.name,
				stele_strerror(err));
	free(data);
	stele_recorded_release(&recorded);
	return err;
}
