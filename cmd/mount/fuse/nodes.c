/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nodes.c - see nodes.h
 */
#include "mount/fuse/nodes.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Files are odd, directories even but for the root. */
#define ID_BITS	    40
#define VOLUME_BITS 22

static int compare(const void *a, const void *b)
{
	const struct node *x = a, *y = b;
	const size_t least = x->path_size < y->path_size ? x->path_size : y->path_size;
	int order;

	if (x->volume != y->volume)
		return x->volume < y->volume ? -1 : 1;
	order = memcmp(x->path, y->path, least);
	return order ? order : (x->path_size > y->path_size) - (x->path_size < y->path_size);
}

static int make_room(struct nodes *nodes)
{
	const uint64_t capacity = nodes->capacity ? 2 * nodes->capacity : 64;
	struct node **list;

	if (nodes->count < nodes->capacity)
		return 0;
	list = realloc(nodes->list, capacity * sizeof(*list));
	if (!list)
		return -ENOMEM;
	nodes->list = list;
	nodes->capacity = capacity;
	return 0;
}

/* Takes the path. With the lock held. */
static uint64_t add(struct nodes *nodes, uint32_t volume, char *path, size_t size)
{
	struct node *node = calloc(1, sizeof(*node)), **known = NULL;

	if (node && path && make_room(nodes) == 0) {
		node->volume = volume;
		node->path = path;
		node->path_size = (uint32_t)size;
		node->number = nodes->count ? 2 * nodes->count : NODE_ROOT;
		known = tsearch(node, &nodes->by_path, compare);
	}
	if (known && *known == node) {
		nodes->list[nodes->count++] = node;
		return node->number;
	}
	free(path);
	free(node);
	return known ? (*known)->number : 0;
}

static uint64_t add_locked(struct nodes *nodes, uint32_t volume, char *path, size_t size)
{
	uint64_t number;

	pthread_mutex_lock(&nodes->lock);
	number = add(nodes, volume, path, size);
	pthread_mutex_unlock(&nodes->lock);
	return number;
}

int nodes_init(struct nodes *nodes, uint32_t root_volume)
{
	*nodes = (struct nodes){0};
	pthread_mutex_init(&nodes->lock, NULL);
	return add(nodes, root_volume, strdup(""), 0) ? 0 : -ENOMEM;
}

static void leave(void *node)
{
	(void)node;
}

void nodes_release(struct nodes *nodes)
{
	tdestroy(nodes->by_path, leave);
	for (uint64_t i = 0; i < nodes->count; i++) {
		free(nodes->list[i]->path);
		free(nodes->list[i]);
	}
	free(nodes->list);
	pthread_mutex_destroy(&nodes->lock);
}

const struct node *nodes_directory(struct nodes *nodes, uint64_t number)
{
	const uint64_t index = number == NODE_ROOT ? 0 : number / 2;
	const struct node *node = NULL;

	pthread_mutex_lock(&nodes->lock);
	if ((number == NODE_ROOT || number % 2 == 0) && index < nodes->count)
		node = nodes->list[index];
	pthread_mutex_unlock(&nodes->lock);
	return node;
}

uint64_t nodes_add(struct nodes *nodes, const struct node *parent, const char *name,
		   size_t size)
{
	const size_t base = parent->path_size ? parent->path_size + 1 : 0;
	char *path;

	if (base + size > STELE_KEY_SIZE_MAX)
		return 0;
	path = malloc(base + size + 1);
	if (path) {
		memcpy(path, parent->path, parent->path_size);
		if (base)
			path[base - 1] = '/';
		memcpy(path + base, name, size);
		path[base + size] = '\0';
	}
	return add_locked(nodes, parent->volume, path, base + size);
}

uint64_t nodes_add_volume(struct nodes *nodes, uint32_t volume)
{
	return add_locked(nodes, volume, strdup(""), 0);
}

uint64_t node_of_file(uint32_t volume, uint64_t id)
{
	if (id >> ID_BITS || volume + UINT64_C(1) >= UINT64_C(1) << VOLUME_BITS)
		return 0;
	return ((volume + UINT64_C(1)) << ID_BITS | id) << 1 | 1;
}

bool node_is_file(uint64_t number, uint32_t *volume, uint64_t *id)
{
	if (number == NODE_ROOT || number % 2 == 0 || !(number >> (ID_BITS + 1)))
		return false;
	*volume = (uint32_t)((number >> (ID_BITS + 1)) - 1);
	*id = (number >> 1) & ((UINT64_C(1) << ID_BITS) - 1);
	return true;
}
