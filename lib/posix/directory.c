/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory.c - see directory.h
 */
#include "lib/posix/directory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_MIN 16u
#define NAMES_MIN   256u

bool stele_posix_key_ok(const char *key, size_t size)
{
	const char *at = key, *end = key + size;

	for (;;) {
		const char *slash = memchr(at, '/', (size_t)(end - at));

		if (!stele_erofs_name_ok(at, (size_t)((slash ? slash : end) - at)))
			return false;
		if (!slash)
			return true;
		at = slash + 1;
	}
}

/* Room for `count` things of a size. 0; -ENOMEM. */
static int reserve(void **list, uint64_t *capacity, uint64_t count, size_t size,
		   uint64_t least)
{
	uint64_t want = *capacity ? *capacity : least;
	void *larger;

	if (count <= *capacity)
		return 0;
	while (want < count)
		want *= 2;
	larger = realloc(*list, want * size);
	if (!larger)
		return -ENOMEM;
	*list = larger;
	*capacity = want;
	return 0;
}

static int compare(const void *a, const void *b, void *user)
{
	const struct stele_posix_entry *x = a, *y = b;
	const char *names = user;
	const uint32_t size = x->name_size < y->name_size ? x->name_size : y->name_size;
	const int order = memcmp(names + x->name, names + y->name, size);

	if (order)
		return order;
	if (x->name_size != y->name_size)
		return x->name_size < y->name_size ? -1 : 1;
	/* Of one name, the directory comes last. */
	return (x->type > y->type) - (x->type < y->type);
}

int stele_posix_directory_begin(struct stele_posix_directory *directory, uint64_t nid,
				uint64_t parent)
{
	int ret;

	directory->nid = nid;
	directory->count = directory->names_size = 0;
	directory->unsorted = false;
	ret = stele_posix_directory_add(directory, ".", 1, STELE_EROFS_DIRECTORY, nid);
	return ret < 0 ? ret :
			 stele_posix_directory_add(directory, "..", 2,
						   STELE_EROFS_DIRECTORY, parent);
}

int stele_posix_directory_add(struct stele_posix_directory *directory, const char *name,
			      uint32_t name_size, enum stele_erofs_type type, uint64_t nid)
{
	struct stele_posix_entry *entry;
	void *entries = directory->entries, *names = directory->names;
	int ret = reserve(&entries, &directory->capacity, directory->count + 1,
			  sizeof(*entry), ENTRIES_MIN);

	directory->entries = entries;
	if (ret == 0)
		ret = reserve(&names, &directory->names_capacity,
			      directory->names_size + name_size, 1, NAMES_MIN);
	directory->names = names;
	if (ret < 0)
		return ret;
	entry = &directory->entries[directory->count++];
	*entry = (struct stele_posix_entry){nid, directory->names_size, name_size, type};
	memcpy(directory->names + directory->names_size, name, name_size);
	directory->names_size += name_size;
	if (directory->count > 1 && compare(entry - 1, entry, directory->names) >= 0)
		directory->unsorted = true;
	return 0;
}

static bool same_name(const struct stele_posix_directory *directory, uint64_t index)
{
	const struct stele_posix_entry *e = &directory->entries[index];

	return e->name_size == e[1].name_size &&
	       !memcmp(directory->names + e->name, directory->names + e[1].name,
		       e->name_size);
}

uint64_t stele_posix_directory_end(struct stele_posix_directory *directory)
{
	uint64_t kept = 0, count = directory->count;

	if (directory->unsorted)
		qsort_r(directory->entries, count, sizeof(*directory->entries), compare,
			directory->names);
	/* Twice as a directory it cannot be, nor as a file: keys are unique. */
	for (uint64_t i = 0; i < count; i++) {
		const struct stele_posix_entry entry = directory->entries[i];

		if (i + 1 < count && same_name(directory, i))
			continue;
		directory->entries[i] = directory->entries[kept];
		directory->entries[kept++] = entry;
	}
	directory->count = kept;
	return count - kept;
}

/* How many of the entries from `first` on a block takes, at least one. */
static uint32_t fit(const struct stele_posix_directory *directory, uint64_t first,
		    uint32_t block_size, uint32_t *used)
{
	uint32_t count = 0;

	*used = 0;
	for (uint64_t i = first; i < directory->count; i++) {
		uint32_t size = stele_erofs_dirent_size(directory->entries[i].name_size);

		if (size > block_size - *used)
			break;
		*used += size;
		count++;
	}
	return count;
}

uint64_t stele_posix_directory_size(const struct stele_posix_directory *directory,
				    uint32_t block_size)
{
	uint64_t size = 0;
	uint32_t used;

	for (uint64_t i = 0; i < directory->count; size += block_size)
		i += fit(directory, i, block_size, &used);
	return size;
}

/* And count the directories that it leads to. */
static void put_block(const struct stele_posix_directory *directory, uint64_t first,
		      uint32_t count, uint8_t *block, uint32_t *links)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct stele_posix_entry *e = &directory->entries[first + i];
		const struct stele_erofs_dirent entry = {
			.nid = e->nid,
			.type = e->type,
			.name = directory->names + e->name,
			.name_size = e->name_size,
		};

		stele_erofs_dirent_put(block, i, count, at, &entry);
		at += e->name_size;
		*links += e->type == STELE_EROFS_DIRECTORY;
	}
}

int stele_posix_directory_put(const struct stele_posix_directory *directory,
			      uint32_t block_size, struct stele_posix_area *area,
			      struct stele_erofs_inode *inode)
{
	uint32_t count, used = 0;
	int ret = 0;

	*inode = (struct stele_erofs_inode){.type = STELE_EROFS_DIRECTORY, .extended = true};
	for (uint64_t i = 0; i < directory->count; i += count) {
		uint8_t *block = stele_posix_area_take(area, block_size, &ret);

		if (!block)
			return ret;
		if (i == 0)
			inode->block = (uint32_t)(stele_posix_area_at(area, block) / block_size);
		count = fit(directory, i, block_size, &used);
		put_block(directory, i, count, block, &inode->link_count);
		inode->size += i + count < directory->count ? block_size : used;
	}
	return 0;
}

void stele_posix_directory_release(struct stele_posix_directory *directory)
{
	free(directory->entries);
	free(directory->names);
	memset(directory, 0, sizeof(*directory));
}
