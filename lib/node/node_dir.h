/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_dir.h - directories of what this machine knows
 */
#ifndef STELE_NODE_DIR_H
#define STELE_NODE_DIR_H

/*
 * One level, unless it is there. What root knows is for all to read, so its umask shuts
 * nobody out; that of a user has the last word on what is his.
 *
 * Return: 0; negative errno.
 */
int stele_node_dir_make(const char *path);

#endif
