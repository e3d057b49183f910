/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.h - a file that is written at the end of a long measurement; what no file replaces
 *
 * It is written to a temporary file and renamed, so that nobody sees half of it, unless the
 * name is that of a device, pipe or link such as /dev/stdout. Failures are printed, with path.
 */
#ifndef STELE_CMD_OUTPUT_H
#define STELE_CMD_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Could it be written? For use before the measurement; creates nothing, and leaves existing
 * files alone. What holds something other than an earlier output, which has `mark` among its
 * first bytes, is not to be replaced. Return: 0; negative errno (said).
 */
int output_check(const char *path, const char *mark);
/*
 * Why a file could not be made or written in that filesystem: in words, which tell a lack of
 * inodes from one of space. `fd`: of any file of it, or a directory; -1: not known.
 */
const char *output_why(int fd, int error);
/*
 * Likewise: what helps is said, if it is want of either, read-only, or too large a file. `place`:
 * what another one is given for.
 */
void output_hint_place(int fd, int error, const char *place);
/* A descriptor of the directory that `path` lies in, for these two; -1. */
int output_directory(const char *path);

/*
 * What is in use, or holds an image, is replaced by no file: see stele_backing_check(). `verb`:
 * what cannot be done with it. The machine is asked once, so that it may be called for each of
 * many files, by any thread. Return: 0; -EEXIST (said).
 */
int output_spare(const char *verb, const char *path);
/* The same of a name in a directory, unsaid: is it one that is not to be replaced? */
bool output_spares(int dir, const char *name);
/* Why the last of this thread is not, and what to do first. */
const char *output_spared_reason(void);
/* `put` returns whether all was written. Return: 0; negative errno (printed). */
int output_write(const char *path, bool (*put)(FILE *to, const void *what),
		 const void *what);

#endif
