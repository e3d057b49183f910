/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h - a file that is written at the end of a long measurement
 *
 * It is written beside and renamed, so that nobody sees half of it; unless the name is a
 * device's, a pipe's or a link's, as /dev/stdout is one. What fails is said, by path.
 */
#ifndef STELE_CMD_OUTPUT_H
#define STELE_CMD_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Could it be written? To be asked before the measurement; leaves nothing, and what is
 * there as it is. Return: 0; negative errno (said).
 */
int output_check(const char *path);
/* `put` returns whether the file took all. Return: 0; negative errno (said). */
int output_write(const char *path, bool (*put)(FILE *to, const void *what),
		 const void *what);

#endif
