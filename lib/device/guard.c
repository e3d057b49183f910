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
 */
#include "lib/device/guard.h"
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

/* Mounts as EROFS are readers. */
enum mode {
	GUARD_ALL,
	GUARD_BUT_READERS,
	GUARD_VIEWS, /* these alone */
};

struct guard {
	const char *path;
	const struct stele_log *log;
	enum mode mode;
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

/*
 * Refused if it is the target or a part of it or, where `sharing` counts, has bytes of the
 * target by another name: what is written to one is read from the other.
 */
static int refuse_if(const struct guard *guard, const struct stat *st, bool sharing,
		     const char *what, const char *by)
{
	const struct stele_stack_node *node;
	struct stele_span span;
	char place[PATH_MAX];

	if (stele_stack_is(&guard->stack, st, &node))
		return refuse(guard, node, what, by);
	/* What has the major number 0 is no device, but a filesystem without one. */
	if (!sharing || (S_ISBLK(st->st_mode) && !major(st->st_rdev)))
		return 0;
	stele_span_find(st, &span);
	if (!stele_span_overlaps(&span, &guard->span))
		return 0;
	if (S_ISBLK(st->st_mode) && !stele_stack_place(st->st_rdev, place))
		stele_log_error(guard->log, "'%s' is in use: it shares bytes with '%s', "
				"which is %s%s",
				guard->path, strrchr(place, '/') + 1, what, by);
	else
		stele_log_error(guard->log, "'%s' is in use: it is over a file that is %s%s",
				guard->path, what, by);
	return -EBUSY;
}

/* Undo the kernel's "\040" in place. */
static void unescape(char *text)
{
	char *out = text;

	for (; *text; out++) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' &&
		    text[2] >= '0' && text[2] <= '7' && text[3] >= '0' &&
		    text[3] <= '7') {
			*out = (char)((text[1] - '0') << 6 |
				      (text[2] - '0') << 3 | (text[3] - '0'));
			text += 4;
		} else {
			*out = *text++;
		}
	}
	*out = '\0';
}

/* ---- mounts and swap ------------------------------------------------------- */

/* Of a line of mountinfo, as below: its device and type. */
static bool parse_mount(const char *line, dev_t *number, char type[32])
{
	const char *rest = strstr(line, " - ");
	unsigned int high, low;

	if (!rest || sscanf(line, "%*s %*s %u:%u", &high, &low) != 2 ||
	    sscanf(rest, " - %31s", type) != 1)
		return false;
	*number = makedev(high, low);
	return true;
}

bool stele_guard_is_erofs(const char *path)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, type[32];
	bool found = false;
	size_t size = 0;
	struct stat st;
	dev_t number;

	if (file && !stat(path, &st) && S_ISBLK(st.st_mode))
		while (!found && getline(&line, &size, file) >= 0)
			found = parse_mount(line, &number, type) &&
				number == st.st_rdev && !strcmp(type, "erofs");
	free(line);
	if (file)
		fclose(file);
	return found;
}

/*
 * One line of mountinfo: "36 35 98:0 /root /mnt rw shared:1 - ext4 /dev/sda1 rw".
 * btrfs and its like number themselves, so the source is asked, too; it is a file where
 * EROFS is mounted from one. The mount point stays escaped: it goes into one line of text.
 */
static int check_mount(struct guard *guard, char *line)
{
	char *save, *word, *point = NULL;
	unsigned int high = 0, low = 0;
	bool view, sharing;
	struct stat st;
	int err;

	for (int i = 0; i < 5; i++) {
		word = strtok_r(i ? NULL : line, " \n", &save);
		if (!word)
			return 0;
		if (i == 2 && sscanf(word, "%u:%u", &high, &low) != 2)
			return 0;
		point = word;
	}
	while (word && strcmp(word, "-"))
		word = strtok_r(NULL, " \n", &save);
	word = strtok_r(NULL, " \n", &save); /* type of the filesystem */
	/* Whoever reads by FUSE learns what has changed, as any reader. */
	if (word && !strcmp(word, "fuse.stele") && guard->mode != GUARD_ALL)
		return 0;
	view = word && !strcmp(word, "erofs");
	if (view ? guard->mode == GUARD_BUT_READERS : guard->mode == GUARD_VIEWS)
		return 0;
	/* A file under a loop device is refused anyway, but of those that view it. */
	sharing = view || S_ISBLK(guard->stack.target.st_mode);
	st = (struct stat){.st_mode = S_IFBLK, .st_rdev = makedev(high, low)};
	err = refuse_if(guard, &st, sharing, "mounted on ", point);
	word = strtok_r(NULL, " \n", &save);
	if (err || !word)
		return err;
	unescape(word);
	if (word[0] != '/' || stat(word, &st) || S_ISDIR(st.st_mode))
		return 0;
	return refuse_if(guard, &st, sharing, "mounted on ", point);
}

/* One line of /proc/swaps; the heading names no file. */
static int check_swap(struct guard *guard, char *line)
{
	struct stat st;

	line[strcspn(line, " \t\n")] = '\0';
	unescape(line);
	if (line[0] != '/' || stat(line, &st))
		return 0;
	return refuse_if(guard, &st, S_ISBLK(guard->stack.target.st_mode), "swap", "");
}

static int each_line(struct guard *guard, const char *path,
		     int (*check)(struct guard *guard, char *line))
{
	FILE *file = fopen(path, "re");
	size_t size = 0;
	char *line = NULL;
	int err = 0;

	if (!file && errno == ENOENT && !access("/proc/self", F_OK))
		return 0; /* a kernel without swap */
	if (!file) {
		err = -errno;
		stele_log_error(guard->log, "cannot open '%s': %s", path,
				strerror(errno));
		return err;
	}
	while (!err && getline(&line, &size, file) >= 0)
		err = check(guard, line);
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
	rc = stele_stack_loop(&guard->stack, guard->mode != GUARD_ALL, name);
	if (rc > 0)
		return refuse(guard, NULL, "under loop device ", name);
	return rc;
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

/* Open exclusively? A disk is not, where a part of it is that leaves another free. */
static bool is_exclusive(const struct stele_stack_node *nodes, size_t count)
{
	bool refused = is_refused(nodes->number, nodes->name);

	for (size_t i = 1; i < count && refused; i++)
		refused = nodes[i].whole || is_refused(nodes[i].number, nodes[i].name);
	return refused;
}

static int check_exclusive(struct guard *guard, const struct stele_stack *other)
{
	const struct timespec wait = {.tv_nsec = OPENER_WAIT_NS};

	for (int i = 0; i < OPENER_TRIES; i++) {
		if (i)
			nanosleep(&wait, NULL);
		if (!is_exclusive(other->nodes, other->count))
			return 0;
	}
	stele_log_error(guard->log, "'%s' is in use: it shares bytes with '%s', which somebody "
			"has open exclusively",
			guard->path, other->nodes->name);
	return -EBUSY;
}

/*
 * One that is merely there does no harm. Two that change an image through both of them see each
 * other's intents, so openers count only where all is overwritten.
 */
static int check_other(dev_t number, void *user)
{
	const struct stat st = {.st_mode = S_IFBLK, .st_rdev = number};
	struct guard *guard = user;
	struct stele_stack *other;
	char name[STELE_STACK_NAME_SIZE];
	int rc;

	if (stele_stack_find(&guard->stack, number))
		return 0;
	other = malloc(sizeof(*other));
	if (!other)
		return -ENOMEM;
	rc = stele_stack_load(&st, other);
	if (!rc)
		rc = stele_stack_holder(other->nodes, name);
	if (rc > 0) {
		stele_log_error(guard->log, "'%s' is in use: it shares bytes with '%s', which "
				"is held by %s",
				guard->path, other->nodes->name, name);
		rc = -EBUSY;
	}
	if (!rc && guard->mode == GUARD_ALL)
		rc = check_exclusive(guard, other);
	free(other);
	return rc == -ENOENT ? 0 : rc; /* gone in between */
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

/* The first descriptor of a process that leads to the target. 0 none, 1 found. */
static int scan_process(struct guard *guard, int proc, const char *pid,
			const struct stele_stack_node **node)
{
	struct dirent *entry;
	char path[64];
	int fd, found = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%.32s/fd", pid);
	fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) { /* gone, or not ours to see */
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while (!found && (entry = readdir(dir))) {
		struct stat st;

		if (stat_quietly(fd, entry->d_name, &st))
			continue;
		found = stele_stack_is(&guard->stack, &st, node) &&
			!(*node && (*node)->whole);
	}
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

/* 1: there is one; `by` says who. */
static int find_opener(struct guard *guard,
		       const struct stele_stack_node **node, char *by,
		       size_t size)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int found = 0;

	if (!dir)
		return -errno;
	while (!found && (entry = readdir(dir))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (*end || pid <= 0 || pid == getpid())
			continue;
		found = scan_process(guard, dirfd(dir), entry->d_name, node);
		if (found)
			process_name(dirfd(dir), entry->d_name, by, size);
	}
	closedir(dir);
	return found;
}

static int check_openers(struct guard *guard)
{
	const struct timespec wait = {.tv_nsec = OPENER_WAIT_NS};
	const struct stele_stack_node *node = NULL;
	char by[80];
	int rc = 0;

	for (int i = 0; i < OPENER_TRIES; i++) {
		if (i)
			nanosleep(&wait, NULL);
		rc = find_opener(guard, &node, by, sizeof(by));
		if (rc <= 0)
			return rc;
	}
	return refuse(guard, node, "open in process ", by);
}

static int guard_target(const char *path, enum mode mode, const struct stele_log *log)
{
	struct guard *guard;
	struct stat st;
	int err;

	if (stat(path, &st))
		return errno == ENOENT ? 0 : -errno;
	guard = calloc(1, sizeof(*guard));
	if (!guard)
		return -ENOMEM;
	guard->path = path;
	guard->log = log;
	guard->mode = mode;
	err = stele_stack_load(&st, &guard->stack);
	if (err)
		goto out;
	stele_span_find(&st, &guard->span);
	err = each_line(guard, "/proc/self/mountinfo", check_mount);
	if (err || mode == GUARD_VIEWS)
		goto out;
	err = each_line(guard, "/proc/swaps", check_swap);
	if (err)
		goto out;
	err = check_holders(guard);
	if (!err && S_ISBLK(st.st_mode))
		err = stele_span_each(&guard->span, check_other, guard);
	if (err || mode != GUARD_ALL)
		goto out;
	err = check_openers(guard);
out:
	if (err && err != -EBUSY)
		stele_log_error(log, "cannot tell whether '%s' is in use: %s",
				path, strerror(-err));
	free(guard);
	return err;
}

int stele_guard_in_use(const char *path, const struct stele_log *log)
{
	return guard_target(path, GUARD_ALL, log);
}

int stele_guard_claimed(const char *path, const struct stele_log *log)
{
	return guard_target(path, GUARD_BUT_READERS, log);
}

int stele_guard_viewed(const char *path, const struct stele_log *log)
{
	return guard_target(path, GUARD_VIEWS, log);
}
