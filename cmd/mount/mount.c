/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount.c - stele mount: samples as files, by the kernel where that can be
 *
 * The kernel's EROFS is the faster way and needs no process, but a tree of files in the
 * image, root, and a device or file. Of a snapshot that is pinned everything shall be
 * verified, which the kernel does not.
 */
#include "mount/mount.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "parse.h"
#include "snapshots.h"

#define EROFS_OFFSET 1024 /* of its superblock, which begins with the magic */

enum { OPTION_VIA = 256, OPTION_FOREGROUND, OPTION_ALLOW };
enum via { VIA_AUTO, VIA_EROFS, VIA_FUSE };

static const char *const ways[] = {"auto", "erofs", "fuse", NULL};

static const struct option longopts[] = {
	{"allow-other", no_argument, NULL, OPTION_ALLOW},
	{"foreground", no_argument, NULL, OPTION_FOREGROUND},
	{"via", required_argument, NULL, OPTION_VIA},
	{"help", no_argument, NULL, 'h'},
	{0},
};

/* What the target turns out to be. */
struct found {
	char path[4096]; /* of a device or file; "": it is none */
	char snapshot[STELE_NAME_SIZE_MAX + 1]; /* "": a directory for each */
	bool pinned, has_tree, fits;
};

/* ---- the target ------------------------------------------------------------------- */

static void take_mapping(void *user, const struct stele_mapping_info *info)
{
	struct found *found = user;

	if (strcmp(info->name, found->path))
		return;
	found->pinned = info->pinned;
	snprintf(found->snapshot, sizeof(found->snapshot), "%s", info->snapshot);
	/* Of one that the kernel has from RBD, the device is no path of the target. */
	snprintf(found->path, sizeof(found->path), "%s",
		 !strcmp(info->via, "device") || !strcmp(info->via, "file") ? info->target : "");
}

static void find_path(const char *target, struct found *found)
{
	const char *name = cmd_snapshot_of(target);
	char *path = cmd_path_of(target);

	found->pinned = name && !strncmp(name, "sha256:", 7);
	if (path && !cmd_is_rbd(target) && strlen(path) < sizeof(found->path))
		strcpy(found->path, path);
	free(path);
	if (!name && !strchr(target, '/'))
		stele_map_list(take_mapping, found, NULL);
}

/* Open the snapshot once: it is there, and whole. Return: 0; negative errno (said). */
static int check_snapshot(const char *target, struct found *found)
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct cmd_log log = {.target = target};
	struct stele_dataset *ds;
	int error = cmd_open_dataset(&log, 0, &ds);

	if (error)
		return error;
	stele_dataset_info(ds, &info);
	memcpy(found->snapshot, info.snapshot, sizeof(found->snapshot));
	stele_dataset_close(ds);
	return 0;
}

/* Return: 0; negative errno (said). */
static int look_at(const char *target, struct found *found)
{
	struct stele_image_info info = {.size = sizeof(info)};
	struct cmd_log log = {.target = target};
	struct stele_image *image;
	int error = cmd_open_image(&log, &image);

	if (error)
		return error;
	stele_image_info(image, &info);
	stele_image_close(image);
	found->has_tree = info.tree_size;
	found->fits = info.tree_mountable;
	find_path(target, found);
	return cmd_names_snapshot(target) || found->snapshot[0] ? check_snapshot(target, found) :
								  0;
}

/* ---- the directory ----------------------------------------------------------------- */

static bool is_empty(DIR *dir)
{
	const struct dirent *entry;

	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			return false;
	return true;
}

/* False: nothing can be mounted there (said). */
static bool check_dir(const char *name, char path[PATH_MAX])
{
	int error = mount_resolve(name, path);
	char type[32] = "";
	DIR *dir;
	bool empty;

	if (!error)
		mount_type_of(path, type);
	if (!strcmp(type, "erofs") || !strcmp(type, MOUNT_FUSE_TYPE)) {
		cmd_message("cannot mount on '%s': %s is mounted there", name, type);
		cmd_hint("'stele umount %s' unmounts it", name);
		return false;
	}
	dir = error ? NULL : opendir(path);
	if (!dir) {
		error = error ? error : -errno;
		cmd_message("cannot mount on '%s': %s", name, strerror(-error));
		if (error == -ENOENT)
			cmd_hint("make the directory first: 'mkdir -p %s'", name);
		if (error == -EACCES)
			cmd_hint(MOUNT_OWN_DIR);
		if (error == -ENOTDIR && stele_image_detect(path) > 0)
			cmd_hint("TARGET comes first, and then the directory");
		return false;
	}
	empty = is_empty(dir);
	closedir(dir);
	if (!empty) {
		cmd_message("cannot mount on '%s': the directory is not empty", name);
		cmd_hint("its files would be hidden; choose an empty one");
	}
	return empty;
}

/* ---- which way --------------------------------------------------------------------- */

/* Whoever may not read it is told by the kernel. */
static bool shows_erofs(const char *path)
{
	uint32_t magic = htole32(EROFS_SUPER_MAGIC_V1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && pread(fd, &magic, sizeof(magic), EROFS_OFFSET) != (ssize_t)sizeof(magic))
		magic = 0;
	if (fd >= 0)
		close(fd);
	return le32toh(magic) == EROFS_SUPER_MAGIC_V1;
}

/* Why the kernel cannot, as far as that is known without trying; NULL: it may. */
static const char *obstacle(const struct found *found)
{
	if (!found->path[0])
		return "the kernel mounts devices and files only";
	if (!found->has_tree)
		return "the image has no tree of files";
	if (!shows_erofs(found->path))
		return "block 0 does not show its tree of files";
	if (!found->fits)
		return "the blocks of its tree of files are smaller than the device's";
	return NULL;
}

static const char *remedy(const struct found *found, int error)
{
	if (!error && !found->path[0])
		return "use --via=fuse";
	if (!error && found->has_tree && !found->fits)
		return "use --via=fuse; 'stele posix on' says what makes it mountable here";
	if (!error)
		return "'stele posix on' makes it mountable, or use --via=fuse";
	if (error == -EPERM || error == -EACCES)
		return "run it as root, or use --via=fuse";
	if (error == -ENOENT)
		return "run 'stele posix on' once the image is not mounted, or use --via=fuse";
	return "use --via=fuse";
}

static void tell_first_missing(const struct stele_image *image, int dir)
{
	struct stele_snapshot_info info = {.size = sizeof(info)};

	for (uint32_t i = 0; !stele_image_snapshot(image, i, &info); i++) {
		if (info.deleted_time || !faccessat(dir, info.name, F_OK, AT_SYMLINK_NOFOLLOW))
			continue;
		cmd_message("warning: snapshot '%s' is not shown: a writer was interrupted",
			    info.name);
		cmd_hint("unmount it, run 'stele posix on', and mount it again");
		return;
	}
}

/* A writer that was killed behind its commit leaves block 0 with the tree before that. */
static void tell_missing(const struct mounting *mounting)
{
	struct cmd_log log = {.target = mounting->target};
	struct stele_image *image;
	int dir;

	if (mounting->snapshot || cmd_open_image(&log, &image))
		return;
	dir = open(mounting->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0) {
		tell_first_missing(image, dir);
		close(dir);
	}
	stele_image_close(image);
}

static int mount_erofs(const struct mounting *mounting, const struct found *found)
{
	const char *why = obstacle(found);
	char reason[MOUNT_WHY_SIZE];
	int error = 0;

	if (!why) {
		error = mount_kernel(mounting, found->path, reason);
		why = error ? reason : NULL;
	}
	if (!why) {
		tell_missing(mounting);
		return cmd_finish(CMD_OK);
	}
	cmd_message("cannot mount '%s': %s", mounting->target, why);
	cmd_hint("%s", remedy(found, error));
	return cmd_finish(CMD_FAILED);
}

static int mount_auto(const struct mounting *mounting, const struct found *found)
{
	const char *why = obstacle(found);
	char reason[MOUNT_WHY_SIZE], said[MOUNT_WHY_SIZE + 32];

	if (!why && found->pinned)
		why = "the kernel verifies nothing, and the snapshot is pinned";
	if (!why && mount_kernel(mounting, found->path, reason))
		why = reason;
	if (!why) {
		cmd_message("'%s' is mounted via erofs", mounting->dir);
		tell_missing(mounting);
		return cmd_finish(CMD_OK);
	}
	snprintf(said, sizeof(said), "via fuse: %s", why);
	return mount_fuse(mounting, said);
}

#ifndef HAVE_FUSE
int mount_fuse(const struct mounting *mounting, const char *said)
{
	(void)said;
	cmd_message("cannot mount '%s' via fuse: built without libfuse3", mounting->target);
	return cmd_finish(CMD_FAILED);
}
#endif

int cmd_mount(const struct cmd *cmd, int argc, char **argv)
{
	struct found found = {.path = ""};
	char path[PATH_MAX];
	struct mounting mounting = {.path = path};
	uint32_t via = VIA_AUTO;
	int c;

	while ((c = cmd_option(cmd, argc, argv, "h", longopts)) != -1) {
		if (c == OPTION_VIA)
			cmd_option_value(cmd, longopts, c, parse_word(optarg, ways, &via));
		mounting.foreground |= c == OPTION_FOREGROUND;
		mounting.allow_other |= c == OPTION_ALLOW;
	}
	if (argc - optind != 2)
		return cmd_misuse(cmd, "mount needs a TARGET and a DIR");
	if (!*argv[optind + 1])
		return cmd_misuse(cmd, "the name of DIR is empty");
	mounting.target = argv[optind];
	mounting.dir = argv[optind + 1];
	if (!check_dir(mounting.dir, path))
		return cmd_finish(CMD_FAILED);
	c = look_at(mounting.target, &found);
	if (c)
		return cmd_finish(cmd_status_of(c));
	mounting.snapshot = found.snapshot[0] ? found.snapshot : NULL;
	if (via == VIA_EROFS)
		return mount_erofs(&mounting, &found);
	return via == VIA_FUSE ? mount_fuse(&mounting, NULL) : mount_auto(&mounting, &found);
}
