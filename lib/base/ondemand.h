/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ondemand.h - a shared library that is loaded where it is needed, into a table of its calls
 *
 * For libraries that most programs do without, and that may not be installed. A table is a
 * struct of pointers to functions, written with a list of its calls: see device/rbd/api.h.
 */
#ifndef STELE_BASE_ONDEMAND_H
#define STELE_BASE_ONDEMAND_H

#include <stddef.h>

#include "lib/base/log.h"

struct stele_ondemand_call {
	const char *name;
	size_t place; /* in the table */
};

/*
 * It stays loaded for good, and the table is filled only if nothing is missing.
 * Return: 0; -EOPNOTSUPP (no library, or one that lacks a function; logged).
 */
int stele_ondemand_load(const char *library, const struct stele_ondemand_call *calls,
			size_t count, void *table, const struct stele_log *log);

#endif
