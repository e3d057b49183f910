/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access.c - see access.h
 *
 * By owner, group and mode. What an access control list allows besides is not
 * looked at: who has his permission from there alone is left out.
 */
#include "lib/node/access.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUP_READS  0040
#define OTHERS_READ  0004
#define GROUP_SEARCH 0010
#define OTHERS_SEARCH 0001
#define WRITES	     0022 /* group or others */

/* Take away what a directory on the way does not let through. */
static int pass(const char *dir, struct stele_access *access)
{
	struct stat st;

	if (stat(dir, &st))
		return -errno;
	if (st.st_mode & OTHERS_SEARCH)
		return 0;
	access->others &= ~(mode_t)OTHERS_READ;
	if (!(st.st_mode & GROUP_SEARCH) || st.st_gid != access->group)
		access->others = 0;
	return 0;
}

static int pass_all(const char *path, struct stele_access *access)
{
	char dir[PATH_MAX];
	int err = pass("/", access);

	for (const char *at = strchr(path + 1, '/'); at && !err;
	     at = strchr(at + 1, '/')) {
		int size = (int)(at - path);

		if (snprintf(dir, sizeof(dir), "%.*s", size, path) != size ||
		    size >= PATH_MAX)
			return -ENAMETOOLONG;
		err = pass(dir, access);
	}
	return err;
}

void stele_access_of(int fd, const char *path, struct stele_access *out)
{
	struct stat st;

	memset(out, 0, sizeof(*out));
	if (fd < 0 || fstat(fd, &st))
		return;
	out->others = st.st_mode & (GROUP_READS | OTHERS_READ);
	out->group = st.st_gid;
	if (path && pass_all(path, out))
		out->others = 0;
}

int stele_access_grant(int fd, const struct stele_access *access)
{
	mode_t others = access->others & (GROUP_READS | OTHERS_READ);

	if (others & GROUP_READS && fchown(fd, (uid_t)-1, access->group))
		others &= ~(mode_t)GROUP_READS;
	return fchmod(fd, 0600 | others) ? -errno : 0;
}

int stele_access_check(int fd, const char **why)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*why = "it belongs to another user";
	if (st.st_uid && st.st_uid != geteuid())
		return -EPERM;
	*why = "others may write to it";
	return st.st_mode & WRITES ? -EPERM : 0;
}
