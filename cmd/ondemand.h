/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ondemand.h - a shared library that is loaded where it is needed, into a table of its calls
 *
 * For libraries that most commands do without, and that may not be installed. A table is a
 * struct of pointers to functions, written with a list of its calls: see libarchive.h.
 */
#ifndef STELE_CMD_ONDEMAND_H
#define STELE_CMD_ONDEMAND_H

#include <stdbool.h>
#include <stddef.h>

struct ondemand_call {
	const char *name;
	size_t place; /* in the table */
};

/* Stays for good. False: missing or incomplete (said). */
bool ondemand_load(const char *library, const struct ondemand_call *calls, size_t count,
		   void *table);

#endif
