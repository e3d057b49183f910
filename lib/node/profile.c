/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.c - the files of profiles: where they are, load, save
 *
 * Each user has a place of his own; what root measured serves all who have
 * measured nothing themselves.
 */
#include "lib/node/profile.h"

#include "format/crc32c.h"
#include "lib/node/access.h"
#include "lib/node/node_dir.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_SIZE 112u /* of a file: what of the identity a name can hold, its crc32c */

/* ---- places ------------------------------------------------------------------ */

static int put_path(char *path, size_t size, const char *base, const char *rest)
{
	int length = snprintf(path, size, "%s%s", base, rest);

	return length >= 0 && (size_t)length < size ? 0 : -ENAMETOOLONG;
}

/* The user's own. *only: no other place counts. */
static int own_dir(char *path, size_t size, bool *only)
{
	const char *dir = secure_getenv(STELE_STATE_DIR_ENV);

	*only = true;
	if (dir && *dir)
		return put_path(path, size, dir, "");
	if (!geteuid())
		return put_path(path, size, STELE_STATE_DIR_DEFAULT, "");
	*only = false;
	dir = secure_getenv("XDG_STATE_HOME");
	if (dir && *dir == '/')
		return put_path(path, size, dir, "/stele");
	dir = secure_getenv("HOME");
	if (dir && *dir == '/')
		return put_path(path, size, dir, "/.local/state/stele");
	return -ENOENT;
}

bool stele_profile_any(void)
{
	char dir[PATH_MAX];
	bool only;
	int err = own_dir(dir, sizeof(dir), &only);

	return (!err && !access(dir, X_OK)) ||
	       (!only && !access(STELE_STATE_DIR_DEFAULT, X_OK));
}

static int file_in(const char *dir, const char *device, char *path, size_t size)
{
	char name[NAME_SIZE + 16];
	size_t length = 0;

	while (device[length] && length < NAME_SIZE - 10) {
		char c = device[length];

		name[length++] = isalnum((unsigned char)c) || c == '.' ? c : '-';
	}
	if (name[0] == '.') /* never hidden */
		name[0] = '-';
	snprintf(name + length, sizeof(name) - length, "-%08x",
		 stele_crc32c(0, device, strlen(device)));
	if (strlen(dir) + strlen(name) + 2 > size)
		return -ENAMETOOLONG;
	sprintf(path, "%s/%s", dir, name);
	return 0;
}

int stele_profile_file(const char *device, char *path, size_t size)
{
	char dir[PATH_MAX];
	bool only;
	int err = own_dir(dir, sizeof(dir), &only);

	return err ? err : file_in(dir, device, path, size);
}

/* ---- load -------------------------------------------------------------------- */

/*
 * Return: bytes; -ENOENT; -EBADMSG (no file of that kind or length); -EPERM (not ours,
 * nor root's); errno.
 */
static int read_file(const char *path, char text[STELE_PROFILE_SIZE_MAX],
		     const char **why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t size = -EBADMSG;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		size = stele_access_check(fd, why);
	if (size == 0) {
		size = read(fd, text, STELE_PROFILE_SIZE_MAX);
		if (size < 0)
			size = -errno;
		else if (size == STELE_PROFILE_SIZE_MAX)
			size = -EBADMSG;
	}
	close(fd);
	return (int)size;
}

/* What is not as it was when that was measured; NULL: nothing. */
static const char *difference(const struct stele_profile_facts *then,
			      const struct stele_profile_facts *now)
{
	if (strcmp(then->kernel, now->kernel))
		return "kernel";
	if (strcmp(then->scheduler, now->scheduler))
		return "scheduler";
	if (then->max_sectors_kb != now->max_sectors_kb)
		return "max_sectors_kb";
	return then->nr_requests != now->nr_requests ? "nr_requests" : NULL;
}

static int load_file(const char *path, const struct stele_profile_source *source,
		     const struct stele_log *log, struct stele_profile *out)
{
	char text[STELE_PROFILE_SIZE_MAX];
	struct stele_profile_facts facts;
	const char *why = "kind or length", *changed;
	int size = read_file(path, text, &why), err;

	if (size == -ENOENT || size == -ENOTDIR || size == -EACCES)
		return -ENOENT;
	err = size < 0 ? size :
			 stele_profile_decode(text, (size_t)size, out, &facts,
					      &why);
	if (!err && strcmp(out->device, source->device)) {
		err = -EUCLEAN;
		why = "device";
	}
	if (err == -EBADMSG || err == -EUCLEAN || err == -EOPNOTSUPP ||
	    err == -EPERM) {
		stele_log_warning(log, "bad profile '%s': %s; it is ignored",
				  path, why);
		return -ENOENT;
	}
	if (err) {
		stele_log_warning(log, "cannot read profile '%s': %s", path,
				  strerror(-err));
		return -ENOENT;
	}
	changed = difference(&facts, &source->facts);
	if (changed)
		stele_log_info(log, "profile '%s' is ignored: %s is another one now (tune again)",
			       path, changed);
	return changed ? -ENOENT : 0;
}

int stele_profile_load(const struct stele_profile_source *source,
		       const struct stele_log *log, struct stele_profile *out)
{
	char dir[PATH_MAX], path[PATH_MAX + NAME_SIZE + 16];
	bool only;
	int err = own_dir(dir, sizeof(dir), &only);

	if (!err)
		err = file_in(dir, source->device, path, sizeof(path));
	if (!err)
		err = load_file(path, source, log, out);
	if (err && !only) {
		err = file_in(STELE_STATE_DIR_DEFAULT, source->device, path,
			      sizeof(path));
		if (!err)
			err = load_file(path, source, log, out);
	}
	if (err)
		memset(out, 0, sizeof(*out));
	return err ? -ENOENT : 0;
}

/* ---- save -------------------------------------------------------------------- */

/* With all that stand above it. */
static int make_dir(const char *dir)
{
	char path[PATH_MAX];
	int err = 0;

	if (put_path(path, sizeof(path), dir, ""))
		return -ENAMETOOLONG;
	for (char *at = path + 1; *at && !err; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		err = stele_node_dir_make(path);
		*at = '/';
	}
	return err ? err : stele_node_dir_make(path);
}

/* Beside, synced, then renamed over what was there. */
static int write_file(const char *path, const char *text)
{
	char beside[2 * PATH_MAX];
	size_t size = strlen(text);
	int fd, err = 0;
	ssize_t n;

	snprintf(beside, sizeof(beside), "%s.XXXXXX", path);
	fd = mkostemp(beside, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write(fd, text, size);
	if (n != (ssize_t)size)
		err = n < 0 ? -errno : -EIO;
	else if (fchmod(fd, 0644) || fsync(fd))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	if (!err && rename(beside, path))
		err = -errno;
	if (err)
		unlink(beside);
	return err;
}

/* Of the user's own. Return: 0; negative errno (logged). */
static int make_place(char *dir, size_t size, const struct stele_log *log)
{
	bool only;
	int err = own_dir(dir, size, &only);

	if (err) {
		stele_log_error(log, "no place to keep a profile: neither $%s "
				     "nor $HOME is set", STELE_STATE_DIR_ENV);
		return err;
	}
	err = make_dir(dir);
	if (!err && faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS))
		err = -errno;
	if (err)
		stele_log_error(log, "cannot keep a profile in '%s': %s; it can "
				     "be measured without", dir, strerror(-err));
	return err;
}

int stele_profile_check(const struct stele_log *log)
{
	char dir[PATH_MAX];

	return make_place(dir, sizeof(dir), log);
}

int stele_profile_save(const struct stele_profile *profile,
		       const struct stele_profile_source *source,
		       const struct stele_log *log)
{
	char dir[PATH_MAX], path[PATH_MAX + NAME_SIZE + 16] = "";
	char text[STELE_PROFILE_SIZE_MAX];
	int err = make_place(dir, sizeof(dir), log);

	if (err)
		return err;
	stele_profile_encode(profile, &source->facts, text);
	err = file_in(dir, source->device, path, sizeof(path));
	if (!err)
		err = write_file(path, text);
	if (err)
		stele_log_error(log, "cannot save profile '%s': %s", path,
				strerror(-err));
	return err;
}
