/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrays.h - samples that are the rows of arrays, one field of each
 *
 * A format finds arrays of as many rows each, in the shard or copied to the store, and their rows
 * are taken when it has found all: a row of numbers is a tensor, one number a number; text is text.
 */
#ifndef STELE_CMD_FROM_ARRAYS_H
#define STELE_CMD_FROM_ARRAYS_H

#include "from/npy.h"
#include "from/row.h"
#include "text.h"

/* What else there is to do of an array that no field can be. */
#define ARRAYS_OTHERS "--arrays takes others"

struct archive;
struct zip_end;

struct array {
	char name[STELE_NAME_SIZE_MAX + 1];
	struct npy npy;
	bool varies; /* rows have a u64 in front, their size; npy.row_size is of an element */
	uint64_t place, data_size;
	uint64_t at, size; /* of the row at hand, in the data */
	uint8_t *window;   /* owned; bytes that were looked at last */
	size_t room;
	uint64_t begin, end; /* of the window, in the data */
};

struct arrays {
	struct from_scan *scan;
	uint64_t damages; /* of the shard, before it was scanned */
	struct archive *zip;  /* of a format */
	struct zip_end *zip_end;
	uint8_t *buffer;      /* 64 KiB */
	struct array list[STELE_FIELDS_MAX];
	uint32_t count;
	char names[TEXT_LIST_SIZE]; /* of all that there are, chosen or not */
	uint64_t rows;
	struct row row;
};

/*
 * Does `list`, of --arrays, take this array, or a group that it is in? NULL takes all. `chosen`
 * collects a bit for each name of the list. Return: its name, in that group; NULL: no.
 */
const char *arrays_choose(const char *list, const char *name, uint64_t *chosen);
/*
 * Is there any, and each of the list, if all is sound so far? Return: 0, also if that is damage;
 * negative errno (said).
 */
int arrays_found(struct arrays *arrays, uint64_t chosen);

/* May that be the next one? Return: 1; 0: damage that is skipped; negative errno (said). */
int arrays_check(struct arrays *arrays, const struct array *array);
/* The next in the list is complete; data_size is set if it varies. */
void arrays_add(struct arrays *arrays);

/* Find arrays by fn(), and take their rows, unless one is damaged. Return: 0; errno (said). */
int arrays_scan(struct from_scan *scan, int (*fn)(struct arrays *arrays));

#endif
