/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign.h - formats that only the Python package reads: who names one to the command is told
 */
#ifndef STELE_CMD_FROM_FOREIGN_H
#define STELE_CMD_FROM_FOREIGN_H

/* What a file is, by its name or how it begins. NULL: none of them, or it cannot be read. */
const char *foreign_file(const char *path);
/* What a directory is, whose shards would become samples. NULL as above. */
const char *foreign_directory(const char *path);

#endif
