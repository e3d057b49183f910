/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping.c - the directory of mappings of this machine: load, publish, search
 *
 * What is there is read anew each time: another process may map or unmap
 * meanwhile. A file that is no sound mapping is passed over; asking for it by
 * name says what is wrong with it.
 */
#include "lib/node/krbd.h"

#include "format/catalog.h"
#include "lib/node/node_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/device/target.h"

const char *stele_mapping_dir(void)
{
	const char *dir = secure_getenv(STELE_RUN_DIR_ENV);

	return dir && *dir ? dir : STELE_RUN_DIR_DEFAULT;
}

static int bad(const char **why, const char *step, int err)
{
	*why = step;
	return err;
}

/* ---- load ------------------------------------------------------------------ */

static int file_path(const char *name, char *path)
{
	int size = snprintf(path, PATH_MAX, "%s/%s", stele_mapping_dir(), name);

	return size < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* The directory of mappings, in which nobody but root or ourselves can write. */
static int check_dir(int dir, const char **why)
{
	int err = stele_access_check(dir, why);

	if (err == -EPERM)
		*why = "others may write to its directory";
	return err;
}

/* A file that nobody but root or ourselves can have put there. */
static int open_file(const char *name, const char **why)
{
	int dir = open(stele_mapping_dir(), O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd, err;

	if (dir < 0)
		return -errno;
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY |
				       O_NOFOLLOW);
	if (fd < 0)
		err = errno == ELOOP ? bad(why, "it is a symbolic link", -EBADMSG) :
				       -errno;
	else
		err = stele_access_check(fd, why);
	if (!err)
		err = check_dir(dir, why);
	close(dir);
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

/* Return: bytes, fewer than STELE_MAPPING_SIZE_MAX; errno. */
static ssize_t read_file(const char *name, char *text, const char **why)
{
	int fd = open_file(name, why);
	ssize_t size = 0, got = 1;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size ||
	    st.st_size >= STELE_MAPPING_SIZE_MAX) {
		close(fd);
		return bad(why, "kind or length", -EBADMSG);
	}
	while (got && size < st.st_size) {
		got = read(fd, text + size, (size_t)(st.st_size - size));
		if (got < 0 && errno != EINTR) {
			size = -errno;
			break;
		}
		size += got > 0 ? got : 0;
	}
	close(fd);
	return size;
}

int stele_mapping_load(const char *name, const struct stele_log *log,
		       struct stele_mapping *out)
{
	char path[PATH_MAX], *text;
	const char *why = "";
	ssize_t size;
	int err;

	memset(out, 0, sizeof(*out));
	if (!stele_name_ok(name, strlen(name)))
		return -EINVAL;
	err = file_path(name, path);
	if (err)
		return err;
	text = malloc(STELE_MAPPING_SIZE_MAX);
	if (!text)
		return -ENOMEM;
	size = read_file(name, text, &why);
	err = size < 0 ? (int)size :
			 stele_mapping_decode(text, (size_t)size, name, out, &why);
	free(text);
	if (err == -EBADMSG || err == -EUCLEAN || err == -EOPNOTSUPP ||
	    err == -EPERM)
		stele_log_error(log, "bad mapping '%s': %s", path, why);
	else if (err && err != -ENOENT)
		stele_log_error(log, "cannot read mapping '%s': %s", path,
				strerror(-err));
	return err;
}

void stele_mapping_release(struct stele_mapping *mapping)
{
	free(mapping->target);
	memset(mapping, 0, sizeof(*mapping));
}

int stele_mapping_check_removable(const char *name, const struct stele_log *log)
{
	const char *dir = stele_mapping_dir();
	char path[PATH_MAX];
	struct stat st;
	int err = file_path(name, path);

	if (err || lstat(path, &st) || !faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) ||
	    errno != EACCES)
		return err;
	if (st.st_uid)
		stele_log_error(log, "only root and user %u, who mapped it, can remove it",
				(unsigned int)st.st_uid);
	else
		stele_log_error(log, "only root, who mapped it, can remove it");
	return -EACCES;
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

static int write_all(int fd, const char *text)
{
	for (size_t size = strlen(text); size;) {
		ssize_t done = write(fd, text, size);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		text += done;
		size -= (size_t)done;
	}
	return 0;
}

/* What is put where others may write is believed by nobody: see open_file(). */
static int make_dir(const char **why)
{
	int err = stele_node_dir_make(stele_mapping_dir());
	int dir = err ? -1 : open(stele_mapping_dir(), O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (!err)
		err = dir < 0 ? -errno : check_dir(dir, why);
	if (dir >= 0)
		close(dir);
	return err;
}

/* By a link, which fails where a rename would replace: of two who map at once one is told. */
static int publish(const char *name, const struct stele_access *access,
		   const char *text, const char **why)
{
	char path[PATH_MAX], beside[PATH_MAX];
	int fd, err = make_dir(why), length;

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
	err = write_all(fd, text);
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
		       const struct stele_log *log)
{
	char *text = malloc(STELE_MAPPING_SIZE_MAX);
	int err = text ? stele_mapping_encode(mapping, text) : -ENOMEM;
	const char *why = NULL;

	if (!err)
		err = publish(mapping->info.name, &mapping->access, text, &why);

	if (err)
		stele_log_error(log, "cannot publish '%s/%s': %s",
				stele_mapping_dir(), mapping->info.name,
				err == -EPERM && why ? why : strerror(-err));
	free(text);
	return err;
}

/* ---- search ---------------------------------------------------------------- */

bool stele_mapping_is_stale(const struct stele_mapping *mapping)
{
	const char *path = mapping->target;
	char node[STELE_KRBD_NODE_SIZE];
	struct stele_identity now;

	if (stele_path_is_rbd(path)) {
		if (!mapping->identity.rdev)
			return false;
		if (stele_krbd_node_of(mapping->identity.rdev, node))
			return true;
		path = node;
	}
	if (stele_identity_of_path(path, &now))
		return true;
	now.storage = mapping->identity.storage;
	return !stele_identity_same(&mapping->identity, &now);
}

static int is_mapping_name(const struct dirent *entry)
{
	return stele_name_ok(entry->d_name, strlen(entry->d_name));
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int stele_mapping_each(int (*fn)(void *user,
				 const struct stele_mapping *mapping),
		       void *user, const struct stele_log *log)
{
	struct stele_mapping mapping;
	struct dirent **entries;
	int rc = 0, count;

	count = scandir(stele_mapping_dir(), &entries, is_mapping_name,
			by_name);
	if (count < 0)
		return errno == ENOENT ? 0 : -errno;
	for (int i = 0; i < count; i++) {
		if (!rc &&
		    !stele_mapping_load(entries[i]->d_name, log, &mapping)) {
			mapping.info.stale = stele_mapping_is_stale(&mapping);
			rc = fn(user, &mapping);
			stele_mapping_release(&mapping);
		}
		free(entries[i]);
	}
	free(entries);
	return rc;
}

struct search {
	struct stele_identity identity;
	char *name;
};

static int compare(void *user, const struct stele_mapping *mapping)
{
	struct search *search = user;

	if (!stele_mapping_is_on(mapping, &search->identity))
		return 0;
	snprintf(search->name, STELE_NAME_SIZE_MAX + 1, "%s",
		 mapping->info.name);
	return 1;
}

int stele_mapping_of(const char *path, char *name)
{
	struct search search = {.name = name};
	int err = stele_identity_of_path(path, &search.identity);

	if (err == -ENOENT || err == -ENOTBLK)
		return 0;
	return err ? err : stele_mapping_each(compare, &search, NULL);
}

/* ---- the target ------------------------------------------------------------ */

static int check_identity(const struct stele_mapping *mapping,
			  struct stele_device *dev, bool head,
			  const struct stele_log *log)
{
	const struct stele_identity *old = &mapping->identity;
	struct stele_identity now;
	int err = stele_identity_of_device(dev, &now);

	/* Of an image its head is not the RBD snapshot that was mapped. */
	if (!err && (head ? stele_storage_same_image(&old->storage, &now.storage) :
			    stele_identity_same(old, &now)))
		return 0;
	stele_log_error(log, "'%s' is not what was mapped as '%s' any more (map it again)",
			mapping->target, mapping->info.name);
	return err ? err : -ESTALE;
}

static int open_krbd(const struct stele_mapping *mapping, const char *backend,
		     const struct stele_log *log, struct stele_device **out)
{
	char node[STELE_KRBD_NODE_SIZE];
	int err = stele_krbd_node_of(mapping->identity.rdev, node);

	return err ? err :
		     stele_device_open_krbd(node, mapping->target,
					    mapping->info.snapshot,
					    &mapping->identity.storage, backend,
					    log, out);
}

int stele_mapping_open_device(const struct stele_mapping *mapping, bool head,
			      const char *backend, const struct stele_log *log,
			      struct stele_device **out)
{
	const struct stele_mapping_info *info = &mapping->info;
	const bool rbd = stele_path_is_rbd(info->target);
	int err;

	if (rbd && mapping->identity.rdev && !head)
		err = open_krbd(mapping, backend, log, out);
	else
		err = stele_device_open(info->target,
					rbd && !head ? info->snapshot : NULL, 0,
					backend, log, out);
	if (err == -ENOENT || err == -ENOTBLK) {
		stele_log_error(log, "'%s', mapped as '%s', is gone",
				info->target, info->name);
		err = -ESTALE;
	}
	if (err)
		return err;
	err = check_identity(mapping, *out, head && rbd, log);
	if (err)
		stele_device_close(*out);
	return err;
}
