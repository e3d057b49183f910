/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - reports that fit the terminal
 */
#ifndef STELE_CMD_LAYOUT_H
#define STELE_CMD_LAYOUT_H

#include <stddef.h>

/*
 * Columns of the terminal behind stdout, or of $COLUMNS if that is none; SIZE_MAX: any number,
 * as for a file or a pipe.
 */
size_t layout_columns(void);
/*
 * What is printed to stdout between the two is held back, then wrapped to these columns. Of one
 * thread; not nested.
 */
void layout_begin(void);
void layout_end(void);

#endif
