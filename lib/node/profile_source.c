/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_source.c - whose profile: what a device calls itself, by sysfs
 *
 * A partition is its disk; a regular file the device that its filesystem lies
 * on, or where sysfs knows none the filesystem; a loop device is "loop" over what it lies on.
 * A disk that tells neither WWID nor serial number goes by its kernel name and size: that
 * may be another one tomorrow, but one that is much alike.
 */
#include "lib/node/profile.h"

#include "lib/device/stack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#define LOOP_LEVELS_MAX 4u
#define ATTRIBUTE_SIZE	256u

static bool attribute(dev_t number, const char *name, char *text, size_t size)
{
	return stele_stack_disk_text(number, name, text, size) &&
	       text[strspn(text, " ")];
}

/* Append words with one blank between them, and no byte that is not plain. */
static void add(char *identity, const char *text)
{
	const size_t max = STELE_PROFILE_DEVICE_SIZE - 1;
	size_t size = strlen(identity);
	bool blank = size > 0;

	for (; *text && size < max; text++) {
		if (*text == ' ') {
			blank = size > 0;
			continue;
		}
		if (blank && size < max - 1)
			identity[size++] = ' ';
		blank = false;
		identity[size++] = *text > ' ' && *text <= '~' ? *text : '?';
	}
	identity[size] = '\0';
}

static bool add_attribute(dev_t number, const char *name, char *identity)
{
	char text[ATTRIBUTE_SIZE];

	if (!attribute(number, name, text, sizeof(text)))
		return false;
	add(identity, text);
	return true;
}

/* Of those that the kernel stacks, and of krbd: one attribute says all. */
static bool identify_virtual(dev_t number, char *identity)
{
	static const struct {
		const char *attribute, *kind;
	} kinds[] = {
		{"dm/uuid", "dm"},
		{"dm/name", "dm"},
		{"md/uuid", "md"},
		{"device/cluster_fsid", "krbd"},
	};
	char text[ATTRIBUTE_SIZE];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!attribute(number, kinds[i].attribute, text, sizeof(text)))
			continue;
		add(identity, kinds[i].kind);
		add(identity, text);
		if (attribute(number, "device/pool_id", text, sizeof(text))) {
			add(identity, "pool");
			add(identity, text);
		}
		return true;
	}
	return false;
}

static void identify_disk(dev_t number, char *identity)
{
	static const char *const names[] = {"wwid", "device/wwid", "serial",
					    "device/serial"};
	char place[PATH_MAX], text[ATTRIBUTE_SIZE], *slash;
	bool found = false, partition;

	add_attribute(number, "device/model", identity);
	for (size_t i = 0; !found && i < sizeof(names) / sizeof(names[0]); i++)
		found = add_attribute(number, names[i], identity);
	if (found)
		return;
	slash = stele_stack_place(number, place) ? NULL : strrchr(place, '/');
	/* A partition's directory lies within its disk's. */
	partition = !stele_stack_text(number, "partition", text, sizeof(text));
	if (slash && partition) {
		*slash = '\0';
		slash = strrchr(place, '/');
	}
	add(identity, "disk");
	add(identity, slash ? slash + 1 : "?");
	add(identity, "of");
	if (!add_attribute(number, partition ? "../size" : "size", identity))
		add(identity, "?");
	add(identity, "sectors");
}

static bool is_known(dev_t number)
{
	char text[32];

	return !stele_stack_text(number, "size", text, sizeof(text));
}

static int identify_file(const struct stat *st, const struct statfs *fs,
			 unsigned int level, char *identity);

static int identify_loop(dev_t number, const char *backing, unsigned int level,
			 char *identity)
{
	char direct[ATTRIBUTE_SIZE];
	struct statfs fs;
	struct stat st;

	add(identity, "loop");
	if (attribute(number, "loop/dio", direct, sizeof(direct)) &&
	    !strcmp(direct, "0"))
		add(identity, "(buffered)");
	if (level >= LOOP_LEVELS_MAX || stat(backing, &st) ||
	    statfs(backing, &fs)) /* gone, or of another mount namespace */
		return 0;
	add(identity, "on");
	return identify_file(&st, &fs, level + 1, identity);
}

static int identify_block(dev_t number, unsigned int level, char *identity)
{
	char backing[4096];

	if (attribute(number, "loop/backing_file", backing, sizeof(backing)))
		return identify_loop(number, backing, level, identity);
	if (!identify_virtual(number, identity))
		identify_disk(number, identity);
	return 0;
}

static int identify_file(const struct stat *st, const struct statfs *fs,
			 unsigned int level, char *identity)
{
	dev_t number = S_ISBLK(st->st_mode) ? st->st_rdev : st->st_dev;
	uint32_t id[2];
	char text[64];

	if (is_known(number))
		return identify_block(number, level, identity);
	if (S_ISBLK(st->st_mode))
		return -ENOENT;
	_Static_assert(sizeof(id) == sizeof(fs->f_fsid), "opaque, two ints");
	memcpy(id, &fs->f_fsid, sizeof(id));
	snprintf(text, sizeof(text), "filesystem %" PRIx64 " %08" PRIx32 "%08" PRIx32,
		 (uint64_t)fs->f_type, id[0], id[1]);
	add(identity, text);
	return 0;
}

static void read_facts(dev_t number, struct stele_profile_facts *facts)
{
	char text[ATTRIBUTE_SIZE];
	const char *begin, *end;

	if (attribute(number, "queue/max_sectors_kb", text, sizeof(text)))
		facts->max_sectors_kb = strtoull(text, NULL, 10);
	if (attribute(number, "queue/nr_requests", text, sizeof(text)))
		facts->nr_requests = strtoull(text, NULL, 10);
	if (!attribute(number, "queue/scheduler", text, sizeof(text)))
		return;
	begin = strchr(text, '['); /* "[none] mq-deadline" */
	begin = begin ? begin + 1 : text;
	end = begin + strcspn(begin, "] ");
	snprintf(facts->scheduler, sizeof(facts->scheduler), "%.*s",
		 (int)(end - begin), begin);
}

static void read_kernel(struct stele_profile_facts *facts)
{
	struct utsname name;

	if (!uname(&name))
		snprintf(facts->kernel, sizeof(facts->kernel), "%.*s",
			 (int)sizeof(facts->kernel) - 1, name.release);
}

static int make_source(const struct stat *st, const struct statfs *fs,
		       struct stele_profile_source *out)
{
	memset(out, 0, sizeof(*out));
	if (!S_ISBLK(st->st_mode) && !S_ISREG(st->st_mode))
		return -ENOENT;
	read_kernel(&out->facts);
	read_facts(S_ISBLK(st->st_mode) ? st->st_rdev : st->st_dev,
		   &out->facts);
	return identify_file(st, fs, 0, out->device);
}

int stele_profile_source_of_path(const char *path,
				 struct stele_profile_source *out)
{
	struct statfs fs;
	struct stat st;

	if (stat(path, &st) || statfs(path, &fs))
		return -errno;
	return make_source(&st, &fs, out);
}

int stele_profile_source_of_device(struct stele_device *dev,
				   struct stele_profile_source *out)
{
	struct stele_storage_id id;
	int fd = stele_device_fd(dev);
	char pool[32];
	struct statfs fs;
	struct stat st;

	if (fd >= 0) {
		if (fstat(fd, &st) || fstatfs(fd, &fs))
			return -errno;
		return make_source(&st, &fs, out);
	}
	memset(out, 0, sizeof(*out));
	if (stele_device_identify(dev, &id))
		return -ENOENT;
	read_kernel(&out->facts);
	snprintf(pool, sizeof(pool), "pool %" PRId64, id.pool);
	add(out->device, "rbd");
	add(out->device, id.cluster);
	add(out->device, pool);
	return 0;
}
