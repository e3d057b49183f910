/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zip_end.c - see zip_end.h
 *
 * Layouts: APPNOTE.TXT 6.3.10 of PKWARE, 4.3.12 (directory) and 4.3.14 to 4.3.16 (its end).
 */
#include "from/zip_end.h"

#include <inttypes.h>
#include <isa-l/crc.h>
#include <stdio.h>
#include <string.h>

#define END_SIZE   22u
#define END64_SIZE (56u + 20u) /* with its locator; between the directory and the end */
#define ENTRY_SIZE 46u

static uint32_t get16(const uint8_t *data)
{
	return data[0] | (uint32_t)data[1] << 8;
}

static uint32_t get32(const uint8_t *data)
{
	return get16(data) | get16(data + 2) << 16;
}

void zip_end_take(struct zip_end *end, const uint8_t *data, size_t size)
{
	const size_t new = size < ZIP_TAIL_SIZE ? size : ZIP_TAIL_SIZE;

	memmove(end->tail, end->tail + new, ZIP_TAIL_SIZE - new);
	memcpy(end->tail + (ZIP_TAIL_SIZE - new), data + (size - new), new);
	end->size = end->size < ZIP_TAIL_SIZE - new ? end->size + new : ZIP_TAIL_SIZE;
}

static uint64_t hash(const void *name, size_t size)
{
	return crc32_gzip_refl(0, name, size);
}

void zip_end_add(struct zip_end *end, const char *name)
{
	end->members++;
	end->names += hash(name, strlen(name));
}

/* Where the record of the end is, whose comment ends the file, or is followed by others. */
static const uint8_t *find_end(const uint8_t *begin, const uint8_t *stop)
{
	for (size_t i = (size_t)(stop - begin) - END_SIZE + 1; i-- > 0;) {
		const uint8_t *at = begin + i;

		if (!memcmp(at, "PK\5\6", 4) && get16(at + 20) <= (size_t)(stop - at) - END_SIZE)
			return at;
	}
	return NULL;
}

static const uint8_t *find_directory(const uint8_t *begin, const uint8_t *end)
{
	const size_t size = get32(end + 12), have = (size_t)(end - begin);

	if (size <= have && !memcmp(end - size, "PK\1\2", 4))
		return end - size;
	if (have >= END64_SIZE && size <= have - END64_SIZE &&
	    !memcmp(end - END64_SIZE - size, "PK\1\2", 4))
		return end - END64_SIZE - size;
	return NULL;
}

/* False: what is there is no directory of `members` entries. */
static bool sum_names(const uint8_t *at, const uint8_t *end, uint32_t members, uint64_t *names)
{
	*names = 0;
	for (uint32_t i = 0; i < members; i++) {
		const size_t left = (size_t)(end - at);
		size_t name, size;

		if (left < ENTRY_SIZE || memcmp(at, "PK\1\2", 4) != 0)
			return false;
		name = get16(at + 28);
		size = ENTRY_SIZE + name + get16(at + 30) + get16(at + 32);
		if (size > left)
			return false;
		*names += hash(at + ENTRY_SIZE, name);
		at += size;
	}
	return true;
}

bool zip_end_check(const struct zip_end *end, char why[ZIP_WHY_SIZE])
{
	const uint8_t *stop = end->tail + ZIP_TAIL_SIZE, *begin = stop - end->size;
	const uint8_t *last = end->size < END_SIZE ? NULL : find_end(begin, stop);
	const uint8_t *directory;
	uint64_t names;

	*why = '\0';
	if (!last) {
		snprintf(why, ZIP_WHY_SIZE, "the end of the zip is missing");
	} else if (get16(last + 10) != (end->members & 0xffff)) {
		snprintf(why, ZIP_WHY_SIZE, "there are %" PRIu32 " members, and the zip says %"
			 PRIu32, end->members, get16(last + 10));
	} else if (get32(last + 12) < ZIP_TAIL_SIZE / 2) {
		directory = find_directory(begin, last);
		if (!directory || !sum_names(directory, last, end->members, &names))
			snprintf(why, ZIP_WHY_SIZE, "the directory of the zip is damaged");
		else if (names != end->names)
			snprintf(why, ZIP_WHY_SIZE, "a member has not the name that the zip's "
				 "directory says");
	}
	return !*why;
}
