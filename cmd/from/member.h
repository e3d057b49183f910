/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member.h - a member of a JSON object, as a value of a row
 *
 * It is the parser's, unless the parser could not take it as it is, or its text is wanted.
 */
#ifndef STELE_CMD_FROM_MEMBER_H
#define STELE_CMD_FROM_MEMBER_H

#include <jansson.h>

#include "from/literal.h"
#include "from/row.h"

struct member {
	const char *name;
	size_t size;
	json_t *value;
	const char *text, *end; /* of the value, in the file; NULL: only `value` counts */
	uint64_t offset;	/* of the text, in the shard */
};

/* Return: 0; negative errno (said). */
int member_take(struct row *row, const struct member *m, enum row_role role);
/* The same, of one that has a text. */
int member_take_text(struct row *row, const struct member *m, enum row_role role);
/* Of nothing but numbers? *kind: of which. */
bool member_is_list(json_t *array, enum record_kind *kind);

#endif
