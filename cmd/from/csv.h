/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.h - rows of RFC 4180: a header, then samples, columns with comma, tab or semicolon
 *
 * The separator is the first of these in the header outside quotes. Lines end with LF or
 * CR LF. Lines without anything are passed over.
 */
#ifndef STELE_CMD_FROM_CSV_H
#define STELE_CMD_FROM_CSV_H

#include "from/scan.h"

/* All rows of a shard. Return: 0; negative errno (said). */
int csv_scan(struct from_scan *scan);

#endif
