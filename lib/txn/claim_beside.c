/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_beside.c - a file that is overwritten keeps its content until the new one is durable
 *
 * The image is built in a file of its own in the same directory, which then takes the
 * name of the old one. That stays open, and locked, until then: no other writer comes
 * between; one whom no lock holds off, on another machine, is noticed before. Its readers
 * keep what they have open. If anything fails the new file goes. Other
 * names (hard links) of the old file keep its content; a symlink keeps leading to the name.
 */
#include "lib/txn/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/device/rehearsal.h"
#include "lib/txn/txn.h"

#define TRIES 16

/* A file that something is mounted on, by itself, cannot be given another's place. */
static bool is_mounted_on(const struct stele_claim *claim)
{
	struct statx st;

	return statx(stele_device_fd(claim->dev), "", AT_EMPTY_PATH, STATX_TYPE,
		     &st) == 0 &&
	       (st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

bool stele_claim_wants_beside(const struct stele_claim *claim)
{
	return claim->replace && claim->regular && claim->size &&
	       !claim->dev->dry && !is_mounted_on(claim);
}

static char *name_beside(const char *path)
{
	uint8_t random[STELE_UUID_SIZE];
	char *name;

	if (stele_uuid_random(random) < 0 ||
	    asprintf(&name, "%s.new-%02x%02x%02x%02x", path, random[0],
		     random[1], random[2], random[3]) < 0)
		return NULL;
	return name;
}

/* What a build that was killed has left there, and nobody holds. It may be of use yet. */
static void log_stale(const struct stele_claim *claim)
{
	char *pattern;
	glob_t found = {0};

	if (strpbrk(claim->real, "*?[\\") ||
	    asprintf(&pattern, "%s.new-[0-9a-f]*", claim->real) < 0)
		return;
	if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++) {
			const int fd = open(found.gl_pathv[i],
					    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

			if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
				stele_log_warning(&claim->log,
						  "'%s' was left by an interrupted build of "
						  "'%s': remove it",
						  found.gl_pathv[i], claim->path);
			if (fd >= 0)
				close(fd);
		}
	globfree(&found);
	free(pattern);
}

static int create(struct stele_claim *claim, const char *backend,
		  struct stele_device **dev)
{
	const unsigned int flags = STELE_DEVICE_WRITE | STELE_DEVICE_EXCL |
				   STELE_DEVICE_CREATE;
	int ret = -EEXIST;

	claim->real = realpath(claim->path, NULL);
	if (!claim->real)
		return -errno;
	log_stale(claim);
	if (claim->dry)
		return stele_rehearsal_create(claim->real, 0, 0, &claim->log, dev);
	for (int i = 0; i < TRIES && ret == -EEXIST; i++) {
		free(claim->beside);
		claim->beside = name_beside(claim->real);
		ret = claim->beside ?
			      stele_device_open_file(claim->beside, flags,
						     backend, &claim->log, dev) :
			      -ENOMEM;
	}
	return ret;
}

int stele_claim_begin_beside(struct stele_claim *claim)
{
	struct stele_device *dev;
	int ret = create(claim, claim->backend, &dev);

	if (ret < 0) {
		stele_log_error(&claim->log,
				"cannot create a file beside '%s', to take its place: %s",
				claim->path, strerror(-ret));
		free(claim->beside);
		claim->beside = NULL;
		return ret;
	}
	claim->replaced = claim->dev;
	claim->replaced_seen = claim->seen;
	claim->dev = dev;
	claim->created = true;
	claim->ours = false;
	claim->size = 0;
	return stele_copies_read(dev, &claim->seen);
}

/* Whose it is comes first, because that takes away bits of the mode. */
static int take_mode(const struct stele_claim *claim)
{
	const int fd = stele_device_fd(claim->dev);
	struct stat old, now;

	if (fstat(stele_device_fd(claim->replaced), &old) < 0 ||
	    fstat(fd, &now) < 0)
		return -errno;
	if ((old.st_uid != now.st_uid || old.st_gid != now.st_gid) &&
	    fchown(fd, old.st_uid, old.st_gid) < 0)
		stele_log_warning(&claim->log,
				  "'%s' is from now on a file of another user "
				  "or group: %s", claim->path, strerror(errno));
	return fchmod(fd, old.st_mode & 07777) < 0 ? -errno : 0;
}

static int sync_directory(const char *path)
{
	const char *slash = strrchr(path, '/'); /* there is one */
	char *name = strndup(path, (size_t)(slash - path) + 1);
	int ret = 0, fd;

	if (!name)
		return -ENOMEM;
	fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(name);
	if (fd < 0)
		return 0; /* one that may be written to, but not read */
	if (fsync(fd) < 0 && errno != EINVAL)
		ret = -errno;
	close(fd);
	return ret;
}

/* What was looked at in the beginning is what goes, and it is still there under its name. */
static int check_replaced(const struct stele_claim *claim)
{
	struct stele_copies now;
	struct stat old, named;
	int ret = stele_copies_read(claim->replaced, &now);

	if (ret == 0)
		ret = stele_copies_compare(&claim->replaced_seen, &now);
	if (ret < 0)
		return ret;
	if (fstat(stele_device_fd(claim->replaced), &old) < 0 ||
	    stat(claim->real, &named) < 0)
		return -errno;
	return old.st_dev == named.st_dev && old.st_ino == named.st_ino ?
		       0 : -ESTALE;
}

int stele_claim_finish(struct stele_claim *claim)
{
	int ret;

	if (!claim->beside)
		return 0;
	ret = take_mode(claim);
	if (!ret && fsync(stele_device_fd(claim->dev)) < 0)
		ret = -errno;
	if (!ret)
		ret = check_replaced(claim);
	if (!ret && rename(claim->beside, claim->real) < 0)
		ret = -errno;
	if (ret) {
		stele_log_error(&claim->log, "cannot replace '%s': %s",
				claim->path,
				ret == -ESTALE ? "somebody has changed it "
						 "meanwhile, and keeps it" :
						 strerror(-ret));
		return ret;
	}
	free(claim->beside);
	claim->beside = NULL;
	claim->created = false; /* it has a name that was there before */
	ret = sync_directory(claim->real);
	if (ret)
		stele_log_error(&claim->log,
				"cannot make the new '%s' durable: %s",
				claim->path, strerror(-ret));
	return ret;
}

void stele_claim_release_beside(struct stele_claim *claim)
{
	stele_device_close(claim->replaced);
	claim->replaced = NULL;
	free(claim->beside);
	free(claim->real);
	claim->beside = claim->real = NULL;
}
