/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access.h - who may read what this machine knows, and whom it believes
 *
 * What is known of a target is part of what the target holds: it is for those to read
 * who may read that. And what somebody else may have written says what he likes.
 */
#ifndef STELE_NODE_ACCESS_H
#define STELE_NODE_ACCESS_H

#include <sys/types.h>

/* Of a file that the caller writes; zeroed: nobody else may read it. */
struct stele_access {
	mode_t others; /* of 0044 */
	gid_t group;   /* if 0040 */
};

/*
 * As the open target has it (fd < 0: not known, so nobody), if it is reached by
 * `path`, an absolute one. NULL: by a path that everybody may search.
 */
void stele_access_of(int fd, const char *path, struct stele_access *out);
/*
 * Let them read a file of ours; a group that is not ours to give cannot. Return: 0;
 * errno.
 */
int stele_access_grant(int fd, const struct stele_access *access);
/*
 * Can only root, or we, have written what lies in this file or directory? Return: 0;
 * -EPERM (`why`); errno.
 */
int stele_access_check(int fd, const char **why);

#endif
