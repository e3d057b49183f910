/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classes.h - do two datasets mean the same classes by the numbers of a field?
 */
#ifndef STELE_READ_CLASSES_H
#define STELE_READ_CLASSES_H

#include "lib/read/dataset.h"

/* The field of that name. Return: false: there is none. */
bool stele_field_find(const struct stele_dataset *ds, const char *name, struct stele_field *out);

/*
 * Return: the first class that two fields give different names; -1: none. A number that only
 * one of them has a name for is no difference.
 */
int64_t stele_classes_differ(const struct stele_field *a, const struct stele_field *b);

#endif
