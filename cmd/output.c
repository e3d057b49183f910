/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.c - a file that is written at the end of a long measurement; what no file replaces
 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cmd.h"
#include "remedy.h"

/* Where the mark of an earlier output is looked for, in bytes. */
#define MARK_WITHIN 512

/* With blocks left it is not for want of them; some count no inodes, or no blocks. */
static bool lacks_inodes(int fd, int error)
{
	struct statvfs fs;

	return error == -ENOSPC && fd >= 0 && !fstatvfs(fd, &fs) && fs.f_files &&
	       !fs.f_ffree && (fs.f_bfree || !fs.f_blocks);
}

const char *output_why(int fd, int error)
{
	return lacks_inodes(fd, error) ? "its filesystem has no inodes left" : strerror(-error);
}

void output_hint_place(int fd, int error, const char *place)
{
	if (error == -ENOSPC || error == -EDQUOT)
		cmd_hint("%s, or choose another %s",
			 lacks_inodes(fd, error) ? "remove files there" : "make room", place);
	else if (error == -EROFS)
		cmd_hint("choose another %s, or mount its filesystem with 'mount -o remount,rw'",
			 place);
	else if (error == -EFBIG)
		remedy_file_limit();
	else if (error == -EACCES)
		cmd_hint("choose a %s of your own, or run it as a user who may write there", place);
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

/* ---- what no file replaces -------------------------------------------------- */

static struct stele_backing *backing;
static int backing_error;
static pthread_once_t backing_opened = PTHREAD_ONCE_INIT;

/* The last file of this thread that is spared. */
static _Thread_local struct {
	int error;
	char why[256]; /* in the library's words */
} spared;

static void note_why(void *user, enum stele_log_level level, const char *line)
{
	(void)user;
	if (level == STELE_LOG_ERROR)
		snprintf(spared.why, sizeof(spared.why), "%s", line);
}

static void open_backing(void)
{
	backing_error = stele_backing_open(&STELE_OPTS(stele_backing_opts, .log = note_why),
					   &backing);
}

static bool is_spared(int dir, const char *path, int flags)
{
	pthread_once(&backing_opened, open_backing);
	spared.why[0] = '\0';
	spared.error = backing_error ? backing_error :
				       stele_backing_check(backing, dir, path, flags);
	if (spared.error && !*spared.why)
		snprintf(spared.why, sizeof(spared.why), "%s", strerror(-spared.error));
	return spared.error;
}

bool output_spares(int dir, const char *name)
{
	return is_spared(dir, name, AT_SYMLINK_NOFOLLOW);
}

const char *output_spared_reason(void)
{
	static _Thread_local char reason[sizeof(spared.why) + 80];
	const char *first = spared.error == -EEXIST  ? " (remove it first, if it is not needed)" :
			    spared.error == -ETXTBSY ? " (detach that first, with 'losetup -d')" :
			    spared.error == -EBUSY   ? " (unmount it first)" :
						       "";

	snprintf(reason, sizeof(reason), "%s%s", spared.why, first);
	return reason;
}

static const char *spared_hint(void)
{
	switch (spared.error) {
	case -EEXIST:
		return "give the file another name; an image that is not needed has to be "
		       "removed first";
	case -ETXTBSY:
		return "give the file another name; one that is not needed is to be unmounted, and "
		       "detached with 'losetup -d', first";
	case -EBUSY:
		return "give the file another name, or unmount it first";
	default:
		return "give the file another name";
	}
}

int output_spare(const char *verb, const char *path)
{
	if (!is_spared(AT_FDCWD, path, 0))
		return 0;
	cmd_message("cannot %s '%s': %s", verb, path, spared.why);
	cmd_hint("%s", spared_hint());
	return -EEXIST;
}

/* ---- what is written ---------------------------------------------------------- */

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
