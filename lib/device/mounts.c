/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts.c - see mounts.h
 *
 * /proc/PID/mountinfo says what a process sees: it is read once for each namespace, and root
 * directory within one. Whether there is an EROFS at all, and of which devices, the kernel
 * says in /sys/fs/erofs (since 5.16) for all namespaces, so where there is none, which is the
 * rule, no other process is looked at.
 */
#include "lib/device/mounts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "format/erofs.h"
#include "lib/device/stack.h"

#define EROFS_PLACE "/sys/fs/erofs"
#define PATH_SIZE   64 /* "/proc/PID/mountinfo" */

#ifndef FS_IOC_GETFSUUID /* Linux 6.9 */
struct fsuuid2 {
	__u8 len;
	__u8 uuid[STELE_MOUNT_UUID_SIZE];
};
#define FS_IOC_GETFSUUID _IOR(0x15, 0, struct fsuuid2)
#endif

void stele_mounts_unescape(char *text)
{
	char *out = text;

	for (; *text; out++) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' &&
		    text[2] <= '7' && text[3] >= '0' && text[3] <= '7') {
			*out = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 |
				      (text[3] - '0'));
			text += 4;
		} else {
			*out = *text++;
		}
	}
	*out = '\0';
}

/* ---- one process's ------------------------------------------------------------------ */

static uint64_t parse_offset(const char *options)
{
	static const char name[] = "fsoffset=";
	const char *found = options ? strstr(options, name) : NULL;

	return found ? strtoull(found + strlen(name), NULL, 10) : 0;
}

/*
 * Of a line such as "36 35 98:0 /root /mnt rw shared:1 - ext4 /dev/sda1 rw", which is cut
 * into pieces. False: it is none.
 */
static bool parse(char *line, struct stele_mount *out)
{
	char *rest = strstr(line, " - "), *save, *word = NULL;
	unsigned int high, low;

	if (!rest)
		return false;
	*rest = '\0';
	for (int i = 0; i < 5; i++) {
		word = strtok_r(i ? NULL : line, " ", &save);
		if (!word)
			return false;
		if (i == 2 && sscanf(word, "%u:%u", &high, &low) != 2)
			return false;
	}
	out->number = makedev(high, low);
	out->point = word;
	out->type = strtok_r(rest + strlen(" - "), " \n", &save);
	word = out->type ? strtok_r(NULL, " \n", &save) : NULL;
	if (!word)
		return false;
	stele_mounts_unescape(word);
	out->source = word;
	out->offset = strcmp(out->type, "erofs") ? 0 : parse_offset(strtok_r(NULL, "\n", &save));
	return true;
}

static int each_of(const char *pid, int (*fn)(const struct stele_mount *mount, void *user),
		   void *user)
{
	struct stele_mount mount;
	char path[PATH_SIZE], *line = NULL;
	size_t size = 0;
	int ret = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.32s/mountinfo", pid ? pid : "self");
	file = fopen(path, "re");
	if (!file)
		return pid ? 0 : -errno; /* gone, or not ours to see */
	while (!ret && getline(&line, &size, file) >= 0) {
		mount = (struct stele_mount){.pid = pid};
		if (parse(line, &mount) && (!pid || !strcmp(mount.type, "erofs")))
			ret = fn(&mount, user);
	}
	if (!ret && !pid && ferror(file))
		ret = -EIO;
	free(line);
	fclose(file);
	return ret;
}

/* ---- of all --------------------------------------------------------------------------- */

/* What two processes that see the same mounts have in common. */
struct sight {
	uint64_t namespace, mount, inode;
	dev_t device;
};

static bool find_sight(const char *pid, struct sight *out)
{
	char path[PATH_SIZE];
	struct statx st;

	snprintf(path, sizeof(path), "/proc/%.32s/ns/mnt", pid);
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &st))
		return false;
	memset(out, 0, sizeof(*out));
	out->namespace = st.stx_ino;
	/* Without waiting for a file server that does not answer. */
	snprintf(path, sizeof(path), "/proc/%.32s/root", pid);
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO | STATX_MNT_ID,
		  &st))
		return false;
	out->mount = st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : 0;
	out->inode = st.stx_ino;
	out->device = makedev(st.stx_dev_major, st.stx_dev_minor);
	return true;
}

struct sights {
	struct sight *list;
	size_t count, room;
};

/* Return: 1 it is new; 0; -ENOMEM. */
static int add_sight(struct sights *sights, const struct sight *sight)
{
	for (size_t i = 0; i < sights->count; i++)
		if (!memcmp(&sights->list[i], sight, sizeof(*sight)))
			return 0;
	if (sights->count == sights->room) {
		const size_t room = sights->room ? sights->room * 2 : 16;
		struct sight *list = reallocarray(sights->list, room, sizeof(*list));

		if (!list)
			return -ENOMEM;
		sights->list = list;
		sights->room = room;
	}
	sights->list[sights->count++] = *sight;
	return 1;
}

static bool knows_erofs(void)
{
	FILE *file = fopen("/proc/filesystems", "re");
	char line[128];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, "\terofs\n");
	if (file)
		fclose(file);
	return found;
}

/* Anywhere on this machine, as far as that can be told. */
static bool has_erofs(void)
{
	DIR *dir = opendir(EROFS_PLACE);
	struct dirent *entry;
	bool found = false;

	if (!dir)
		return knows_erofs();
	while (!found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.' && strcmp(entry->d_name, "features");
	closedir(dir);
	return found;
}

static int each_of_others(struct sights *sights,
			  int (*fn)(const struct stele_mount *mount, void *user), void *user)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	struct sight sight;
	int ret = 0;

	if (!dir)
		return -errno;
	while (!ret && (entry = readdir(dir))) {
		char *end;

		if (strtol(entry->d_name, &end, 10) <= 0 || *end ||
		    !find_sight(entry->d_name, &sight))
			continue;
		ret = add_sight(sights, &sight);
		if (ret > 0)
			ret = each_of(entry->d_name, fn, user);
	}
	closedir(dir);
	return ret;
}

int stele_mounts_each(int (*fn)(const struct stele_mount *mount, void *user), void *user)
{
	struct sights sights = {0};
	struct sight own;
	int ret = each_of(NULL, fn, user);

	if (!ret && has_erofs()) {
		if (find_sight("self", &own))
			ret = add_sight(&sights, &own);
		if (ret >= 0)
			ret = each_of_others(&sights, fn, user);
		free(sights.list);
	}
	return ret;
}

/* ---- more of one ------------------------------------------------------------------------ */

/* As that process sees it; symlinks, too. O_PATH: nothing acts on being opened. */
static int open_seen(const struct stele_mount *mount, const char *name)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	char path[PATH_SIZE];
	long root, fd;

	if (name[0] != '/')
		return -ENOENT;
	if (!mount->pid) {
		fd = open(name, O_PATH | O_CLOEXEC);
		return fd < 0 ? -errno : (int)fd;
	}
	snprintf(path, sizeof(path), "/proc/%.32s/root", mount->pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = syscall(SYS_openat2, (int)root, name, &how, sizeof(how));
	if (fd < 0)
		fd = -errno;
	close((int)root);
	return (int)fd;
}

int stele_mount_open_source(const struct stele_mount *mount)
{
	return open_seen(mount, mount->source);
}

bool stele_mount_uuid(const struct stele_mount *mount, uint8_t uuid[STELE_MOUNT_UUID_SIZE])
{
	struct fsuuid2 told = {0};
	char path[PATH_SIZE], *point = strdup(mount->point);
	int at = -1, fd = -1;
	struct stat st;

	if (point) {
		stele_mounts_unescape(point);
		at = open_seen(mount, point);
	}
	/* Something else may be mounted over it. */
	if (at >= 0 && !fstat(at, &st) && st.st_dev == mount->number) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	}
	if (fd >= 0 && ioctl(fd, FS_IOC_GETFSUUID, &told))
		told.len = 0;
	if (told.len == STELE_MOUNT_UUID_SIZE)
		memcpy(uuid, told.uuid, STELE_MOUNT_UUID_SIZE);
	if (fd >= 0)
		close(fd);
	if (at >= 0)
		close(at);
	free(point);
	return told.len == STELE_MOUNT_UUID_SIZE;
}

bool stele_mounts_file_uuid(int fd, uint64_t offset, uint8_t uuid[STELE_MOUNT_UUID_SIZE])
{
	struct stele_disk_erofs_super super;

	if (offset > INT64_MAX - STELE_EROFS_OFFSET ||
	    pread(fd, &super, sizeof(super), (off_t)(offset + STELE_EROFS_OFFSET)) !=
		    sizeof(super) ||
	    le32_get(super.magic) != STELE_EROFS_MAGIC)
		return false;
	memcpy(uuid, super.uuid, STELE_MOUNT_UUID_SIZE);
	return true;
}

static int is_erofs_of(const struct stele_mount *mount, void *user)
{
	return mount->number == *(const dev_t *)user && !strcmp(mount->type, "erofs");
}

bool stele_mounts_is_erofs(dev_t number)
{
	char place[PATH_MAX], path[PATH_MAX];

	if (access(EROFS_PLACE, F_OK))
		return knows_erofs() && stele_mounts_each(is_erofs_of, &number) > 0;
	if (stele_stack_place(number, place))
		return false;
	return snprintf(path, sizeof(path), EROFS_PLACE "/%s", strrchr(place, '/') + 1) <
		       (int)sizeof(path) &&
	       !access(path, F_OK);
}
