/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack.h - the block devices that share bytes with a target, by sysfs
 *
 * Of a disk: itself and its partitions. Of a partition: itself and the disk
 * that it lies on. Of a regular file: none. Also what the kernel stacked upon
 * them: holders (dm, md, ...) and loop devices, which are no holders to sysfs.
 * Read only; works without root, but for loop devices over deleted files.
 */
#ifndef STELE_DEVICE_STACK_H
#define STELE_DEVICE_STACK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define STELE_STACK_NODES_MAX 258 /* 256 partitions, the disk, its parent */
#define STELE_STACK_NAME_SIZE 64  /* "nvme0n1p1", "dm-0": 32 to the kernel */

struct stele_stack_node {
	dev_t number;
	char name[STELE_STACK_NAME_SIZE]; /* of the kernel, as in /sys/block */
	bool whole; /* the disk under a partition that is the target */
};

/* nodes[0] is the target itself, if it is a block device. */
struct stele_stack {
	struct stat target;
	size_t count;
	struct stele_stack_node nodes[STELE_STACK_NODES_MAX];
};

/*
 * Return: 0; -E2BIG (more partitions than a disk can have); -ENOMEM; errno of
 * sysfs.
 */
int stele_stack_load(const struct stat *target, struct stele_stack *out);

/*
 * Is this a node of the disk, or the same regular file? The node, for its
 * name, in *node (NULL: a file).
 */
bool stele_stack_is(const struct stele_stack *stack, const struct stat *st,
		   const struct stele_stack_node **node);
const struct stele_stack_node *stele_stack_find(const struct stele_stack *stack,
					      dev_t number);

/*
 * What is stacked upon a node, if anything: its name, as in /sys/block.
 * Return: 0 nothing; 1 yes; errno.
 */
int stele_stack_holder(const struct stele_stack_node *node, char *name);

/*
 * The file or device under a loop device: type, and dev and inode or rdev of *st are set.
 * False: it is no loop device, or cannot be told.
 */
bool stele_stack_backing(dev_t number, struct stat *st);

/*
 * Call `fn` for each loop device, "loop1", and what is under it, as above, until it returns
 * something. Return: that, or 0.
 */
int stele_stack_each_loop(int (*fn)(const char *name, const struct stat *under, void *user),
			  void *user);

/* The same file, or the same device whatever its nodes are called? */
bool stele_stack_same(const struct stat *a, const struct stat *b);

/* The directory in sysfs: a partition's lies within its disk's. 0 or -errno. */
int stele_stack_place(dev_t number, char place[PATH_MAX]);
/*
 * A number that sysfs says of a block device ("size", "../diskseq"). 0 or
 * -errno.
 */
int stele_stack_attribute(dev_t number, const char *attribute,
			  uint64_t *value);
/* The same of text: its first line, cut to fit. */
int stele_stack_text(dev_t number, const char *attribute, char *text,
		     size_t size);
/* Of a partition that of its disk, where it has none itself. False: none. */
bool stele_stack_disk_text(dev_t number, const char *attribute, char *text,
			   size_t size);

#endif
