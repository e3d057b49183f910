/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_dir.c - see node_dir.h
 */
#include "lib/node/node_dir.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

int stele_node_dir_make(const char *path)
{
	if (mkdir(path, 0755))
		return errno == EEXIST ? 0 : -errno;
	return geteuid() == 0 && chmod(path, 0755) ? -errno : 0;
}
