/* SPDX-License-Identifier: Apache-2.0 */
/*
 * temp.c - O_TMPFILE where the filesystem has it, else a file that is unlinked at once
 */
#include "lib/base/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *stele_temp_directory(const char *given)
{
	const char *directory = given ? given : getenv("TMPDIR");

	return directory && *directory ? directory : "/var/tmp";
}

int stele_temp_open(const char *directory)
{
	char path[PATH_MAX];
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	if (snprintf(path, sizeof(path), "%s/stele.XXXXXX", directory) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}
