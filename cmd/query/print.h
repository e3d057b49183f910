/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.h - rows of a query, as they come
 *
 * Ids, CSV and JSON are for programs: nothing is lost or cut. A table is for people: its
 * columns are as wide as the first rows need, and text is escaped.
 */
#ifndef STELE_CMD_QUERY_PRINT_H
#define STELE_CMD_QUERY_PRINT_H

#include "stele.h"

#include <stdint.h>

enum print_format {
	PRINT_CSV,
	PRINT_IDS, /* the column `id` alone, one a line */
	PRINT_JSON,
	PRINT_TABLE,
};

/*
 * All rows; *rows: how many. Return: 0; negative errno of the query; -ENOENT (no column `id`, or
 * what is no id in it; said).
 */
int print_rows(struct stele_query *query, enum print_format format, uint64_t *rows);

#endif
