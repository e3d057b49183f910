/* SPDX-License-Identifier: Apache-2.0 */
/*
 * temp.h - temporary files that nobody can find, and that are gone when they are closed
 */
#ifndef STELE_BASE_TEMP_H
#define STELE_BASE_TEMP_H

/* Where they lie: `given`, unless NULL; else $TMPDIR, else /var/tmp. */
const char *stele_temp_directory(const char *given);
/* Return: a descriptor to read and write, without a name; negative errno. */
int stele_temp_open(const char *directory);

#endif
