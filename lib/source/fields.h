/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields.h - the fields that a segment gets: those of a source, held against a base
 *
 * A source that is appended must have the fields of its base. Names of classes
 * may differ: those of the base keep their values, new ones come behind them in
 * the order of the source, and what the source says is translated by name. Where the
 * base has none, its values are numbers, unless all are STELE_NO_CLASS.
 *
 * Names are the source's and the base's; both must outlive this.
 */
#ifndef STELE_SOURCE_FIELDS_H
#define STELE_SOURCE_FIELDS_H

#include "lib/image/base.h"
#include "lib/source/source.h"

/* Of the values 0, 1, ... of an i64 field. */
struct stele_class_names {
	const char **list; /* owned, not what it points to */
	uint32_t count;
	uint64_t stream_size; /* of the NAMES section */
	uint32_t *values; /* owned: by the source's value; NULL: the same */
	uint32_t value_count;
};

struct stele_fields {
	uint32_t count;
	struct stele_record_shape shape;
	struct stele_descriptor_field list[STELE_FIELD_COUNT_MAX];
	struct stele_class_names names[STELE_FIELD_COUNT_MAX];
};

/*
 * After the scan. `base`: what is appended to, or NULL.
 * Release in any case. Return: 0; -EINVAL, -EOPNOTSUPP, -EOVERFLOW (names)
 * (logged); -ENOMEM; what the source returned; errors of stele_column_is().
 */
int stele_fields_take(struct stele_fields *fields,
		      const struct stele_source *source,
		      const struct stele_base *base,
		      const struct stele_log *log);
/* Idempotent on a zeroed struct. */
void stele_fields_release(struct stele_fields *fields);

/* What the segment says for a value of the source. */
int64_t stele_fields_value(const struct stele_fields *fields, uint32_t field,
			   int64_t value);

#endif
