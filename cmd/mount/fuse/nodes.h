/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nodes.h - numbers of files and directories
 *
 * That of a file is made of its snapshot and id, so nothing is kept for it. A directory has
 * a number from when its name is first looked up or listed until the end. Any thread.
 */
#ifndef STELE_CMD_MOUNT_FUSE_NODES_H
#define STELE_CMD_MOUNT_FUSE_NODES_H

#include <pthread.h>

#include "mount/fuse/samples.h"

#define NODE_ROOT      1u /* FUSE_ROOT_ID */
#define NODE_VOLUME_ALL UINT32_MAX

/* A directory of a snapshot, or of all of them. */
struct node {
	uint32_t volume; /* index; NODE_VOLUME_ALL: the root that has them all */
	uint32_t path_size;
	uint64_t number;
	char *path; /* owned; no slash at its end */
};

struct nodes {
	pthread_mutex_t lock;
	struct node **list; /* owned, with what it points to */
	uint64_t count, capacity;
	void *by_path; /* of tsearch(3) */
};

/* Return: 0; -ENOMEM. */
int nodes_init(struct nodes *nodes, uint32_t root_volume);
void nodes_release(struct nodes *nodes);
/* NULL: there is no such directory. */
const struct node *nodes_directory(struct nodes *nodes, uint64_t number);
/* `name` in a directory; its number. 0: no memory, or too long. */
uint64_t nodes_add(struct nodes *nodes, const struct node *parent, const char *name,
		   size_t size);
/* The top of a snapshot. */
uint64_t nodes_add_volume(struct nodes *nodes, uint32_t volume);

/* 0: an id that has none. */
uint64_t node_of_file(uint32_t volume, uint64_t id);
/* False: it is no file. */
bool node_is_file(uint64_t number, uint32_t *volume, uint64_t *id);

#endif
