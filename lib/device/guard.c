/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.c - is a target in use? The first half of guard.h
 *
 * Asked before the target is opened for writing, because an exclusive open
 * says no more than EBUSY, and nothing at all of swap files, of loop devices
 * or of plain openers. What it cannot see (other mount and process
 * namespaces) the exclusive open still refuses. Only reads /proc and /sys, and
 * for a moment opens other devices over the target's bytes: exclusively, for
 * that is what tells whether somebody else has.
 *
 * An EROFS that begins with the target's first byte is the image itself, a view of it; any
 * other that shares bytes with the target is somebody else's.
 */
#include "lib/device/guard.h"

#include "lib/device/mounts.h"
#include "lib/device/span.h"
#include "lib/device/stack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

/*
 * udevd and blkid open a device for a moment when it appears or was written:
 * an opener is one who is still there after a second.
 */
#define OPENER_TRIES   20
#define OPENER_WAIT_NS 50000000

enum mode {
	GUARD_ALL,
	GUARD_BUT_READERS, /* and views */
	GUARD_VIEWS,	   /* these alone */
};

struct guard {
	const char *path;
	const struct stele_log *log;
	enum mode mode;
	const uint8_t *uuid; /* of the image, if that is known */
	dev_t *held;	     /* devices of which it is known who has them alone */
	size_t held_count;
	struct stele_stack stack;
	struct stele_span span;
};

/* "'/dev/vdb': partition 'vdb1' is ...": which of the nodes it is about. */
static int refuse(const struct guard *guard, const struct stele_stack_node *node,
		  const char *what, const char *by)
{
	const char *kind = node && node->whole ? "disk" : "partition";

	if (!node || node == guard->stack.nodes)
		stele_log_error(guard->log, "'%s' is in use: it is %s%s",
				guard->path, what, by);
	else
		stele_log_error(guard->log, "'%s' is in use: its %s '%s' is %s%s",
				guard->path, kind, node->name, what, by);
	return -EBUSY;
}

/* By another name: what is written to one is read from the other. */
static int refuse_sharing(const struct guard *guard, const struct stat *st, const char *what,
			  const char *by)
{
	char place[PATH_MAX];

	if (S_ISBLK(st->st_mode) && !stele_stack_place(st->st_rdev, place))
		stele_log_error(guard->log, "'%s' is in use: it shares bytes with '%s', "
				"which is %s%s",
				guard->path, strrchr(place, '/') + 1, what, by);
	else
		stele_log_error(guard->log, "'%s' is in use: it is over a file that is %s%s",
				guard->path, what, by);
	return -EBUSY;
}

static int keep_held(struct guard *guard, dev_t number)
{
	dev_t *held = reallocarray(guard->held, guard->held_count + 1, sizeof(*held));

	if (!held)
		return -ENOMEM;
	held[guard->held_count++] = number;
	guard->held = held;
	return 0;
}

/* ---- mounts and swap ------------------------------------------------------- */

bool stele_guard_is_erofs(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISBLK(st.st_mode) && stele_mounts_is_erofs(st.st_rdev);
}

static bool is_erofs(const struct stele_mount *mount)
{
	return !strcmp(mount->type, "erofs");
}

/* "/mnt", and where that is. */
static const char *describe(const struct stele_mount *mount, char text[PATH_MAX + 64])
{
	if (!mount->pid)
		return mount->point;
	snprintf(text, PATH_MAX + 64, "%.*s, as process %.32s sees it", PATH_MAX - 1, mount->point,
		 mount->pid);
	return text;
}

/* `st`: what it is mounted from. */
static int check_mounted(const struct guard *guard, const struct stele_mount *mount,
			 const struct stat *st)
{
	const struct stele_stack_node *node;
	char text[PATH_MAX + 64];
	struct stele_span span;
	bool view;

	/* What has the major number 0 is no device, but a filesystem without one. */
	if (S_ISDIR(st->st_mode) || (S_ISBLK(st->st_mode) && !major(st->st_rdev)))
		return 0;
	stele_span_find(st, &span);
	stele_span_skip(&span, mount->offset);
	view = is_erofs(mount) && stele_span_begins_with(&span, &guard->span);
	if (view ? guard->mode == GUARD_BUT_READERS : guard->mode == GUARD_VIEWS)
		return 0;
	if (stele_stack_is(&guard->stack, st, &node))
		return refuse(guard, node, "mounted on ", describe(mount, text));
	/* Then a file under any loop device is refused, whatever becomes of that. */
	if (guard->mode == GUARD_ALL && !is_erofs(mount) && S_ISREG(guard->stack.target.st_mode))
		return 0;
	if (!stele_span_overlaps(&span, &guard->span))
		return 0;
	return refuse_sharing(guard, st, "mounted on ", describe(mount, text));
}

/* Of the EROFS that begins there. */
static bool read_uuid(const char *path, uint64_t offset, uint8_t uuid[STELE_MOUNT_UUID_SIZE])
{
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	const bool found = fd >= 0 && stele_mounts_file_uuid(fd, offset, uuid);

	if (fd >= 0)
		close(fd);
	return found;
}

/*
 * An EROFS from a file whose name leads elsewhere by now, or nowhere: nothing but the UUID
 * tells of what it is one. `source`: what has the name; if that has the UUID as well, it is
 * taken for a copy, which is what is mounted.
 */
static int check_renamed(const struct guard *guard, const struct stele_mount *mount, int source)
{
	uint8_t mounted[STELE_MOUNT_UUID_SIZE], own[STELE_MOUNT_UUID_SIZE];
	char path[64], text[PATH_MAX + 64];

	if (guard->mode == GUARD_BUT_READERS || !stele_mount_uuid(mount, mounted))
		return 0;
	if (guard->uuid)
		memcpy(own, guard->uuid, sizeof(own));
	else if (!read_uuid(guard->path, 0, own))
		return 0;
	if (memcmp(own, mounted, sizeof(own)))
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", source);
	if (source >= 0 && read_uuid(path, mount->offset, mounted) &&
	    !memcmp(own, mounted, sizeof(own)))
		return 0;
	stele_log_error(guard->log, "'%s' is in use: an image with its UUID is mounted on %s, from "
			"a file that is not '%s' any more", guard->path, describe(mount, text),
			mount->source);
	return -EBUSY;
}

/* It is a file where EROFS is mounted from one; btrfs and its like number themselves. */
static int check_source(const struct guard *guard, const struct stele_mount *mount)
{
	const bool from_file = is_erofs(mount) && !major(mount->number);
	struct stat st;
	int fd, err = 0;

	if (mount->pid && !from_file)
		return 0;
	fd = stele_mount_open_source(mount);
	if (fd >= 0 && !fstat(fd, &st))
		err = check_mounted(guard, mount, &st);
	/* That it is the same says all. */
	if (!err && from_file && (fd < 0 || !stele_stack_same(&st, &guard->stack.target)))
		err = check_renamed(guard, mount, fd);
	if (fd >= 0)
		close(fd);
	return err;
}

static int check_mount(const struct stele_mount *mount, void *user)
{
	const struct stat st = {.st_mode = S_IFBLK, .st_rdev = mount->number};
	struct guard *guard = user;
	int err;

	/* Whoever reads by FUSE learns what has changed, as any reader. */
	if (!strcmp(mount->type, "fuse.stele") && guard->mode != GUARD_ALL)
		return 0;
	if (guard->mode == GUARD_VIEWS && !is_erofs(mount))
		return 0;
	err = major(mount->number) ? keep_held(guard, mount->number) : 0;
	if (!err)
		err = check_mounted(guard, mount, &st);
	return err ? err : check_source(guard, mount);
}

/* One line of /proc/swaps; the heading names no file. */
static int check_swap(struct guard *guard, char *line)
{
	const struct stele_stack_node *node;
	struct stele_span span;
	struct stat st;

	line[strcspn(line, " \t\n")] = '\0';
	stele_mounts_unescape(line);
	if (line[0] != '/' || stat(line, &st))
		return 0;
	if (stele_stack_is(&guard->stack, &st, &node))
		return refuse(guard, node, "swap", "");
	stele_span_find(&st, &span);
	if (S_ISBLK(guard->stack.target.st_mode) && stele_span_overlaps(&span, &guard->span))
		return refuse_sharing(guard, &st, "swap", "");
	return S_ISBLK(st.st_mode) ? keep_held(guard, st.st_rdev) : 0;
}

static int check_swaps(struct guard *guard)
{
	FILE *file = fopen("/proc/swaps", "re");
	size_t size = 0;
	char *line = NULL;
	int err = 0;

	if (!file && errno == ENOENT && !access("/proc/self", F_OK))
		return 0; /* a kernel without swap */
	if (!file)
		return -errno;
	while (!err && getline(&line, &size, file) >= 0)
		err = check_swap(guard, line);
	if (!err && ferror(file))
		err = -EIO;
	free(line);
	fclose(file);
	return err;
}

/* ---- holders --------------------------------------------------------------- */

static int check_holders(struct guard *guard)
{
	char name[STELE_STACK_NAME_SIZE];
	int rc;

	for (size_t i = 0; i < guard->stack.count; i++) {
		const struct stele_stack_node *node = &guard->stack.nodes[i];

		rc = stele_stack_holder(node, name);
		if (rc > 0)
			return refuse(guard, node, "held by ", name);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ---- other devices over the same bytes --------------------------------------- */

static bool is_refused(dev_t number, const char *name)
{
	char path[STELE_STACK_NAME_SIZE + 8], *at;
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/dev/%s", name);
	while ((at = strchr(path, '!'))) /* so sysfs has it */
		*at = '/';
	if (stat(path, &st) || !S_ISBLK(st.st_mode) || st.st_rdev != number)
		return false;
	fd = open(path, O_RDONLY | O_EXCL | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == EBUSY;
	close(fd);
	return false;
}

static bool is_known(const struct guard *guard, const struct stele_stack_node *node)
{
	char name[STELE_STACK_NAME_SIZE];

	for (size_t i = 0; i < guard->held_count; i++)
		if (guard->held[i] == node->number)
			return true;
	return stele_mounts_is_erofs(node->number) || stele_stack_holder(node, name) > 0;
}

/*
 * Open exclusively? A disk is not, where a part of it is that leaves another free, or of which
 * it is known who has it.
 */
static bool is_exclusive(const struct guard *guard, const struct stele_stack_node *nodes,
			 size_t count)
{
	bool refused = is_refused(nodes->number, nodes->name);

	for (size_t i = 1; i < count && refused; i++)
		refused = nodes[i].whole || (is_refused(nodes[i].number, nodes[i].name) &&
					     !is_known(guard, &nodes[i]));
	return refused;
}

static int check_exclusive(const struct guard *guard, const struct stele_stack *other)
{
	const struct timespec wait = {.tv_nsec = OPENER_WAIT_NS};
	char path[STELE_STACK_NAME_SIZE + 8], by[64];

	for (int i = 0; i < OPENER_TRIES; i++) {
		if (i)
			nanosleep(&wait, NULL);
		if (!is_exclusive(guard, other->nodes, other->count))
			return 0;
	}
	snprintf(path, sizeof(path), "/dev/%s", other->nodes->name);
	if (stele_guard_writer(path, by, sizeof(by)))
		stele_log_error(guard->log, "'%s' is in use: it shares bytes with '%s', which %s "
				"is writing to",
				guard->path, other->nodes->name, by);
	else
		stele_log_error(guard->log, "'%s' is in use: it shares bytes with '%s', which "
				"somebody has open exclusively",
				guard->path, other->nodes->name);
	return -EBUSY;
}

/* One that is merely there does no harm. */
static int check_other(const struct guard *guard, dev_t number)
{
	const struct stat st = {.st_mode = S_IFBLK, .st_rdev = number};
	struct stele_stack *other = malloc(sizeof(*other));
	char name[STELE_STACK_NAME_SIZE];
	int rc;

	if (!other)
		return -ENOMEM;
	rc = stele_stack_load(&st, other);
	if (!rc)
		rc = stele_stack_holder(other->nodes, name);
	if (rc > 0)
		rc = refuse_sharing(guard, &st, "held by ", name);
	else if (!rc)
		rc = check_exclusive(guard, other);
	free(other);
	return rc == -ENOENT ? 0 : rc; /* gone in between */
}

/*
 * Is it a loop device over the target, or over the disk or a part of it? One that cannot be
 * written to does not hinder who changes an image.
 */
static bool is_loop_over(const struct guard *guard, dev_t number)
{
	const struct stele_stack_node *node;
	uint64_t read_only;
	struct stat st;

	return stele_stack_backing(number, &st) && stele_stack_is(&guard->stack, &st, &node) &&
	       (guard->mode == GUARD_ALL || stele_stack_attribute(number, "ro", &read_only) ||
		!read_only);
}

/* Of all block devices that have bytes of the target, also itself. */
static int check_device(dev_t number, const struct stele_span *has, void *user)
{
	const struct stat st = {.st_mode = S_IFBLK, .st_rdev = number};
	const struct guard *guard = user;
	const struct stele_stack_node *node = stele_stack_find(&guard->stack, number);
	char place[PATH_MAX];
	bool view;

	if (guard->mode != GUARD_VIEWS && is_loop_over(guard, number))
		return stele_stack_place(number, place) ?
			       0 : refuse(guard, NULL, "under loop device ",
					  strrchr(place, '/') + 1);
	view = stele_span_begins_with(has, &guard->span) && stele_mounts_is_erofs(number);
	/* By mountinfo it would have been found, where that has it. */
	if (view && guard->mode == GUARD_VIEWS)
		return node ? refuse(guard, node, "mounted", " in another mount namespace") :
			      refuse_sharing(guard, &st, "mounted", " in another mount namespace");
	if (node || view || guard->mode == GUARD_VIEWS)
		return 0;
	return check_other(guard, number);
}

/* ---- openers --------------------------------------------------------------- */

/* Without waiting for a file server that does not answer. */
static int stat_quietly(int dir, const char *name, struct stat *st)
{
	struct statx stx;

	if (statx(dir, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
		  STATX_TYPE | STATX_INO, &stx))
		return -errno;
	memset(st, 0, sizeof(*st));
	st->st_mode = stx.stx_mode;
	st->st_ino = stx.stx_ino;
	st->st_dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
	st->st_rdev = makedev(stx.stx_rdev_major, stx.stx_rdev_minor);
	return 0;
}

/* Of a process, the first descriptor that leads to bytes of the target. */
struct opener {
	const struct stele_stack_node *node; /* as of stele_stack_is() */
	struct stat st;
	bool sharing; /* it is something else that has them */
	char by[80];  /* who */
};

/* A disk may be open, as long as a partition that is the target is not. */
static bool leads_to_target(const struct guard *guard, struct opener *opener)
{
	struct stele_span span;

	opener->sharing = false;
	if (stele_stack_is(&guard->stack, &opener->st, &opener->node))
		return !opener->node || !opener->node->whole;
	if (!S_ISREG(opener->st.st_mode) && !S_ISBLK(opener->st.st_mode))
		return false;
	stele_span_find(&opener->st, &span);
	opener->sharing = stele_span_overlaps(&span, &guard->span);
	return opener->sharing;
}

static bool scan_process(const struct guard *guard, int proc, const char *pid,
			 struct opener *opener)
{
	struct dirent *entry;
	bool found = false;
	char path[64];
	DIR *dir;
	int fd;

	snprintf(path, sizeof(path), "%.32s/fd", pid);
	fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) { /* gone, or not ours to see */
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (!found && (entry = readdir(dir)))
		found = !stat_quietly(fd, entry->d_name, &opener->st) &&
			leads_to_target(guard, opener);
	closedir(dir);
	return found;
}

static void process_name(int proc, const char *pid, char *by, size_t size)
{
	char path[64], name[32] = "?";
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "%.32s/comm", pid);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? 0 : read(fd, name, sizeof(name) - 1);
	if (length > 0) {
		name[length] = '\0';
		name[strcspn(name, "\n")] = '\0';
	}
	if (fd >= 0)
		close(fd);
	snprintf(by, size, "%.32s (%s)", pid, name);
}

/* Return: 1: there is one; 0; negative errno. */
static int find_opener(const struct guard *guard, struct opener *opener)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	bool found = false;

	if (!dir)
		return -errno;
	while (!found && (entry = readdir(dir))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (*end || pid <= 0 || pid == getpid())
			continue;
		found = scan_process(guard, dirfd(dir), entry->d_name, opener);
		if (found)
			process_name(dirfd(dir), entry->d_name, opener->by, sizeof(opener->by));
	}
	closedir(dir);
	return found;
}

static int check_openers(const struct guard *guard)
{
	static const char what[] = "open in process ";
	const struct timespec wait = {.tv_nsec = OPENER_WAIT_NS};
	struct opener opener;
	int rc = 0;

	for (int i = 0; i < OPENER_TRIES; i++) {
		if (i)
			nanosleep(&wait, NULL);
		rc = find_opener(guard, &opener);
		if (rc <= 0)
			return rc;
	}
	return opener.sharing ? refuse_sharing(guard, &opener.st, what, opener.by) :
				refuse(guard, opener.node, what, opener.by);
}

static int check(struct guard *guard)
{
	int err = stele_mounts_each(check_mount, guard);

	if (!err && guard->mode != GUARD_VIEWS)
		err = check_swaps(guard);
	if (!err && guard->mode != GUARD_VIEWS)
		err = check_holders(guard);
	if (!err)
		err = stele_span_each(&guard->span, check_device, guard);
	if (!err && guard->mode == GUARD_ALL)
		err = check_openers(guard);
	return err;
}

/*
 * Without them nothing would be found, which is not to say that there is nothing. A file without
 * bytes is under no device: to make one takes no /sys, which sandboxes of builds lack.
 */
static int check_sources(const char *path, bool empty, const struct stele_log *log)
{
	static const char *const sources[] = {"/proc/self", "/sys/dev/block"};

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]) - empty; i++) {
		if (!access(sources[i], F_OK))
			continue;
		stele_log_error(log, "cannot tell whether '%s' is in use without '%s'", path,
				sources[i]);
		return -ENOSYS;
	}
	return 0;
}

/* Of a path that does not exist, too, it is asked first: who makes it guards it again. */
static int guard_target(const char *path, enum mode mode, const uint8_t *uuid,
			const struct stele_log *log)
{
	struct guard *guard;
	struct stat st;
	int err = stat(path, &st) ? -errno : 0;
	const bool empty = err == -ENOENT || (!err && S_ISREG(st.st_mode) && !st.st_size);
	const int missing = check_sources(path, empty && mode == GUARD_ALL, log);

	if (missing || err)
		return missing ? missing : err == -ENOENT ? 0 : err;
	guard = calloc(1, sizeof(*guard));
	if (!guard)
		return -ENOMEM;
	guard->path = path;
	guard->log = log;
	guard->mode = mode;
	guard->uuid = uuid;
	err = stele_stack_load(&st, &guard->stack);
	if (!err) {
		stele_span_find(&st, &guard->span);
		err = check(guard);
	}
	if (err && err != -EBUSY)
		stele_log_error(log, "cannot tell whether '%s' is in use: %s",
				path, strerror(-err));
	free(guard->held);
	free(guard);
	return err;
}

int stele_guard_in_use(const char *path, const struct stele_log *log)
{
	return guard_target(path, GUARD_ALL, NULL, log);
}

int stele_guard_claimed(const char *path, const struct stele_log *log)
{
	return guard_target(path, GUARD_BUT_READERS, NULL, log);
}

int stele_guard_viewed(const char *path, const uint8_t *uuid, const struct stele_log *log)
{
	return guard_target(path, GUARD_VIEWS, uuid, log);
}
