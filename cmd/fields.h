/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields.h - fields and their values, as text and as JSON
 */
#ifndef STELE_CMD_FIELDS_H
#define STELE_CMD_FIELDS_H

#include <jansson.h>
#include <stdbool.h>

#include "labels.h"
#include "stele.h"

json_t *field_json(const struct stele_field *field);

/* i64 or f64, not bytes of whatever kind? */
bool field_is_number(const struct stele_field *field);
/*
 * The field that an option names, by index. Those that are read as `bytes` are no numbers.
 * Return: index; -EINVAL: there is none (said, with those that there are).
 */
int field_find(const struct stele_dataset *ds, const char *name, bool bytes);
/* 'a', 'b': all fields, or those of bytes, text and tensors. Owned; NULL: no memory. */
char *fields_list(const struct stele_dataset *ds, bool bytes);
/* `what` each sample becomes: warn if that has several fields. Return: was there a warning? */
bool fields_warn_joined(const struct stele_dataset *ds, const char *what);
/*
 * `what` each sample becomes: warn of the numbers that are left out, and say what writes them.
 * Classes that paths seem to show go to `labels`, for a look at each sample.
 */
void fields_warn_left(struct stele_dataset *ds, const char *what, struct labels *labels);
/* What writes tensors, with all other fields, or one field. */
void fields_hint_tensors(const struct stele_dataset *ds);
/* As fields_warn_left(), when all are written, of those that paths did not show. */
void fields_warn_unlike(const struct stele_dataset *ds, const struct labels *labels);

/* ` name=value` for each field of a sample: sizes of bytes, shapes of tensors. */
void fields_print(const struct stele_sample *sample);
/* The same as an object: texts whole, what is no number in words. */
json_t *fields_json(const struct stele_sample *sample);

/*
 * One field to stdout: bytes as they are, a scalar in a line of its own.
 * Return: 0; what the accessor returned.
 */
int field_write(const struct stele_sample *sample, uint32_t index);

#endif
