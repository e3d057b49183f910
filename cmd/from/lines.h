/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.h - the lines of a shard, one after the other
 */
#ifndef STELE_CMD_FROM_LINES_H
#define STELE_CMD_FROM_LINES_H

#include "from/scan.h"

struct line {
	const uint8_t *data;
	size_t size;  /* without LF or CR LF at its end */
	size_t whole; /* with them */
	uint64_t offset, number;
};

typedef int (*line_fn)(struct from_scan *scan, const struct line *line, void *user);

/* Of a mark at the begin of UTF-8, as some programs write it, or 0. */
#define LINES_BOM_SIZE 3u
size_t lines_bom_size(const uint8_t *data, size_t size);
/* Before the first line: skip such a mark. Return: 0; -EILSEQ (UTF-16), negative errno (said). */
int lines_begin(struct from_scan *scan);

/* Behind such a mark. Return: 0; what `fn` returned; negative errno (said). */
int lines_scan(struct from_scan *scan, line_fn fn, void *user);

#endif
