/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping.c - the directory of mappings of this machine
 *
 * What is there is read anew each time: another process may map or unmap
 * meanwhile. A file that is no sound mapping is passed over; asking for it by
 * name says what is wrong with it.
 */
#include "lib/node/krbd.h"

#include "format/catalog.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *stele_mapping_dir(void)
{
	const char *dir = secure_getenv(STELE_RUN_DIR_ENV);

	return dir && *dir ? dir : STELE_RUN_DIR_DEFAULT;
}

bool stele_mapping_is_stale(const struct stele_mapping *mapping)
{
	const char *path = mapping->info.target;
	char node[STELE_KRBD_NODE_SIZE];
	struct stele_identity now;

	if (stele_path_has_shots(path)) {
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
		       void *user)
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
		    !stele_mapping_load(entries[i]->d_name, NULL, &mapping)) {
			mapping.info.stale = stele_mapping_is_stale(&mapping);
			rc = fn(user, &mapping);
			stele_mapping_release(&mapping);
		}
		free(entries[i]);
	}
	free(entries);
	return rc;
}

struct storage_search {
	const struct stele_storage_id *id;
	char *name;
};

static int compare_storage(void *user, const struct stele_mapping *mapping)
{
	const struct stele_storage_id *there = &mapping->identity.storage;
	struct storage_search *search = user;

	if (!stele_storage_same_image(there, search->id) ||
	    (search->id->shot && search->id->shot != there->shot))
		return 0;
	snprintf(search->name, STELE_NAME_SIZE_MAX + 1, "%s",
		 mapping->info.name);
	return 1;
}

int stele_mapping_of_storage(const struct stele_storage_id *id, char *name)
{
	struct storage_search search = {id, name};

	return stele_mapping_each(compare_storage, &search);
}

struct search {
	struct stele_identity identity;
	char *name;
};

static int compare(void *user, const struct stele_mapping *mapping)
{
	struct search *search = user;

	if (!stele_identity_same(&mapping->identity, &search->identity))
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
	return err ? err : stele_mapping_each(compare, &search);
}
