/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.c - a file that is written at the end of a long measurement; what no file replaces
 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cmd.h"
#include "loops.h"
#include "mounts.h"

/* Where the mark of an earlier output is looked for, in bytes. */
#define MARK_WITHIN 512

/* With blocks left it is not for want of them; some that have no inodes count none. */
static bool lacks_inodes(int fd, int error)
{
	struct statvfs fs;

	return error == -ENOSPC && fd >= 0 && !fstatvfs(fd, &fs) && fs.f_files &&
	       !fs.f_ffree && fs.f_bfree;
}

const char *output_why(int fd, int error)
{
	return lacks_inodes(fd, error) ? "its filesystem has no inodes left" : strerror(-error);
}

void output_hint_room(int fd, int error, const char *place)
{
	if (error == -ENOSPC || error == -EDQUOT)
		cmd_hint("%s, or choose another %s",
			 lacks_inodes(fd, error) ? "remove files there" : "make room", place);
}

int output_directory(const char *path)
{
	const char *end = path + strlen(path);
	char *name;
	int fd;

	while (end > path && end[-1] == '/')
		end--;
	while (end > path && end[-1] != '/')
		end--;
	name = end > path ? strndup(path, (size_t)(end - path)) : strdup(".");
	fd = name ? open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	free(name);
	return fd;
}

static int told(const char *path, int err)
{
	if (err == -ENOENT)
		cmd_no_directory(path);
	else if (err)
		cmd_message("cannot write '%s': %s", path, strerror(-err));
	return err;
}

/* Where it is written first. *name: malloc'ed; NULL: in place. */
static int find_beside(const char *path, char **name)
{
	struct stat st;

	*name = NULL;
	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return 0;
	return asprintf(name, "%s.XXXXXX", path) < 0 ? -ENOMEM : 0;
}

/* Under a name that nothing has yet. Return: its descriptor. */
static int make_beside(char *name)
{
	const mode_t mask = umask(0);
	int fd;

	umask(mask);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		fchmod(fd, 0666 & ~mask);
	return fd < 0 ? -errno : fd;
}

/* Not by opening it: that would wake who reads a pipe. */
static int check_existing(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0) /* a link to what will be made */
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0 ? -errno : 0;
}

static int check_new(char *beside)
{
	int fd = make_beside(beside);

	if (fd < 0)
		return fd;
	close(fd);
	unlink(beside);
	return 0;
}

/* The library says so of a disk; no function of it tells. */
static void note_partition(void *user, enum stele_log_level level, const char *line)
{
	bool *found = user;

	(void)level;
	*found |= strstr(line, "an image in the partition") != NULL;
}

/* By its descriptor: a name may hold an '@', or be one that was mapped. */
bool output_holds_image(const char *path)
{
	struct stele_image *image = NULL;
	bool on_partition = false;
	char name[32];
	struct stat st;
	int fd, error;

	if (stat(path, &st) < 0 || !(S_ISREG(st.st_mode) || S_ISBLK(st.st_mode)))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	error = stele_image_open(name, &STELE_OPTS(stele_open_opts, .log = note_partition,
						   .log_user = &on_partition), &image);
	stele_image_close(image);
	close(fd);
	return error == 0 || error == -ENODATA || error == -EINPROGRESS ||
	       error == -EBADMSG || error == -EUCLEAN ||
	       error == -ENOTUNIQ || error == -EOPNOTSUPP || on_partition;
}

static bool is_block_device(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISBLK(st.st_mode);
}

static int spare_backing(const char *verb, const char *path)
{
	struct stat st;
	const bool there = stat(path, &st) == 0;
	const char *loop = there ? loops_over(&st) : NULL;
	const char *point = there && !loop ? mounts_of(&st) : NULL;

	if (point) {
		cmd_message("cannot %s '%s': it is mounted on '%s'", verb, path, point);
		cmd_hint("give the file another name, or unmount it first");
		return -EEXIST;
	}
	if (!loop)
		return 0;
	cmd_message("cannot %s '%s': it is under loop device '%s'", verb, path, loop);
	cmd_hint("give the file another name; one that is not needed is to be unmounted, and "
		 "detached with 'losetup -d', first");
	return -EEXIST;
}

int output_spare(const char *verb, const char *path)
{
	if (!is_block_device(path) && !output_holds_image(path))
		return spare_backing(verb, path);
	cmd_message("cannot %s '%s': " OUTPUT_SPARED, verb, path);
	cmd_hint("give the file another name; an image that is not needed has to be removed "
		 "first");
	return -EEXIST;
}

/* Is it a file with something in it that no earlier output has? */
static bool is_foreign(const char *path, const char *mark)
{
	char head[MARK_WITHIN];
	struct stat st;
	ssize_t got;
	int fd;

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || !st.st_size)
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? -1 : pread(fd, head, sizeof(head), 0);
	if (fd >= 0)
		close(fd);
	return got < 0 || !memmem(head, (size_t)got, mark, strlen(mark));
}

static int spare_foreign(const char *path, const char *mark)
{
	if (!is_foreign(path, mark))
		return 0;
	cmd_message("cannot write '%s': it exists, and holds something else", path);
	cmd_hint("give the output another name, or remove the file first");
	return -EEXIST;
}

int output_check(const char *path, const char *mark)
{
	char *beside;
	int err = find_beside(path, &beside);

	if (!err && (output_spare("write", path) || spare_foreign(path, mark))) {
		free(beside);
		return -EEXIST;
	}
	if (!err)
		err = beside ? check_new(beside) : check_existing(path);
	free(beside);
	return told(path, err);
}

int output_write(const char *path, bool (*put)(FILE *to, const void *what),
		 const void *what)
{
	char *beside;
	FILE *out = NULL;
	int fd, err = find_beside(path, &beside);

	if (err)
		return told(path, err);
	fd = beside ? make_beside(beside) :
		      open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd >= 0)
		out = fdopen(fd, "w");
	if (!out)
		err = fd < 0 && beside ? fd : -errno;
	errno = EIO; /* of a put() that sets none */
	if (out && !put(out, what))
		err = -errno;
	if (out && fclose(out) != 0 && !err)
		err = -errno;
	if (!err && beside && rename(beside, path) < 0)
		err = -errno;
	if (fd >= 0 && !out)
		close(fd);
	if (err && fd >= 0 && beside)
		unlink(beside);
	free(beside);
	return told(path, err);
}
