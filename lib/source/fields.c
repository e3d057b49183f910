/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields.c - check what a source says of its fields, and join class names
 */
#include "lib/source/fields.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/catalog.h"
#include "format/field.h"
#include "format/sections.h"
#include "lib/base/options.h"
#include "lib/image/section.h"

struct taking {
	struct stele_fields *fields;
	const struct stele_base *all; /* NULL: none */
	const struct stele_segment *base; /* the last of these, which has all names; NULL: none */
	const struct stele_log *log;
};

/* ---- fields ---------------------------------------------------------------- */

/* What a directory has, and a source that does not say. */
static int take_default(void *user, const struct stele_schema *base,
			struct stele_schema *out)
{
	static const struct stele_field data = {
		.size = sizeof(data), .name = "data", .type = STELE_TYPE_BYTES};

	(void)user;
	(void)base;
	out->fields = &data;
	out->count = 1;
	return 0;
}

static int wrong(const struct taking *t, uint32_t index, const char *name,
		 const char *what)
{
	char text[STELE_QUOTE_SIZE];

	stele_log_error(t->log, "field %u '%s' of the source: %s", index,
			stele_source_quote(name, strnlen(name,
							 STELE_FIELD_NAME_SIZE),
					   text),
			what);
	return -EINVAL;
}

static int add_field(struct taking *t, const struct stele_field *field)
{
	struct stele_fields *fields = t->fields;
	struct stele_descriptor_field *out = &fields->list[fields->count];
	const char *why;

	if (strnlen(field->name, sizeof(field->name)) == sizeof(field->name) ||
	    !stele_name_ok(field->name, strlen(field->name)))
		return wrong(t, fields->count, field->name,
			     "not a valid name, which is " STELE_NAME_RULE);
	for (uint32_t i = 0; i < fields->count; i++)
		if (!strcmp(fields->list[i].name, field->name))
			return wrong(t, fields->count, field->name,
				     "the name is there twice");
	memcpy(out->name, field->name, strlen(field->name));
	out->type = field->type;
	out->dtype = field->dtype;
	out->rank = field->rank;
	memcpy(out->dims, field->dims, sizeof(out->dims));
	if (field->names_damaged) {
		wrong(t, fields->count, field->name, "its class names are damaged");
		return -EBADMSG;
	}
	why = stele_field_wrong(out);
	if (!why && field->name_count &&
	    (field->type != STELE_TYPE_I64 || !field->names))
		why = "names are for i64 only, and have to be given";
	if (why)
		return wrong(t, fields->count, field->name, why);
	if (stele_field_is_scalar(out->type))
		fields->shape.scalar_count++;
	else
		fields->shape.bytes_count++;
	fields->count++;
	return 0;
}

/* ---- class names ------------------------------------------------------------- */

static int compare_names(const void *a, const void *b, void *user)
{
	const char *const *list = user;
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int order = strcmp(list[x], list[y]);

	return order ? order : (x > y) - (x < y);
}

static int add_name(struct taking *t, struct stele_class_names *names,
		    const char *name)
{
	const size_t size = name ? strnlen(name, STELE_KEY_SIZE_MAX + 1) : 0;

	if (!size || size > STELE_KEY_SIZE_MAX) {
		stele_log_error(t->log, "a class name has %s bytes",
				size ? "more than 4000" : "no");
		return -EINVAL;
	}
	names->stream_size += sizeof(le16) + size;
	if (names->stream_size > STELE_NAMES_SIZE_MAX) {
		stele_log_error(t->log, "class names take more than 16 MiB");
		return -EOVERFLOW;
	}
	names->list[names->count++] = name;
	return 0;
}

/* By their names: which values of the base has the source? Sorted are the base's. */
static int translate(struct taking *t, struct stele_class_names *names,
		     const uint32_t *sorted, const struct stele_field *field)
{
	const uint32_t known = names->count;
	int ret = 0;

	for (uint32_t i = 0; i < field->name_count && !ret; i++) {
		const char *name = field->names[i] ? field->names[i] : "";
		uint32_t low = 0, high = known;

		while (low < high) {
			uint32_t middle = low + (high - low) / 2;

			if (strcmp(names->list[sorted[middle]], name) < 0)
				low = middle + 1;
			else
				high = middle;
		}
		if (low < known && !strcmp(names->list[sorted[low]], name)) {
			names->values[i] = sorted[low];
			continue;
		}
		names->values[i] = names->count;
		ret = add_name(t, names, name);
	}
	return ret;
}

#define NAMED_MAX 3 /* of the new classes: enough to see a typing error by */

static void log_new(const struct taking *t, const struct stele_class_names *names,
		    uint32_t known, const char *field)
{
	const uint32_t count = names->count - known;
	char text[NAMED_MAX * (STELE_QUOTE_SIZE + 4)] = "", more[32] = "", quoted[STELE_QUOTE_SIZE];
	size_t used = 0;

	for (uint32_t i = 0; i < count && i < NAMED_MAX; i++) {
		const char *name = names->list[known + i];

		stele_source_quote(name, strlen(name), quoted);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s'%s'",
					 i ? ", " : "", quoted);
	}
	if (count > NAMED_MAX)
		snprintf(more, sizeof(more), " and %u more", count - NAMED_MAX);
	if (count)
		stele_log_info(t->log, "field '%s' has %u new class%s: %s%s", field, count,
			       count == 1 ? "" : "es", text, more);
}

static int join_names(struct taking *t, struct stele_class_names *names,
		      const struct stele_field *field)
{
	const uint32_t known = names->count;
	uint32_t *sorted = malloc(((size_t)names->count + 1) * sizeof(*sorted));
	int ret;

	names->values = malloc(((size_t)field->name_count + 1) *
			       sizeof(*names->values));
	names->value_count = field->name_count;
	if (!sorted || !names->values) {
		free(sorted);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < names->count; i++)
		sorted[i] = i;
	qsort_r(sorted, names->count, sizeof(*sorted), compare_names,
		names->list);
	ret = translate(t, names, sorted, field);
	free(sorted);
	if (!ret)
		log_new(t, names, known, field->name);
	return ret;
}

/* Return: 1; 0; errors of stele_column_is(). */
static int has_numbers(const struct taking *t, uint32_t index)
{
	const struct stele_snapshot *snapshot = t->all->snapshot;
	int ret = 1;

	for (uint32_t i = 0; i < snapshot->segment_count && ret > 0; i++)
		ret = stele_column_is(t->all->image, &snapshot->segments[i], index, STELE_NO_CLASS);
	return ret < 0 ? ret : !ret;
}

static int take_names(struct taking *t, uint32_t index,
		      const struct stele_field *field)
{
	struct stele_class_names *names = &t->fields->names[index];
	const struct stele_names *known = t->base ? &t->base->names->field[index] :
						    NULL;
	const size_t most = (known ? known->count : 0) +
			    (size_t)field->name_count;
	int ret;

	if (!most)
		return 0;
	ret = known && !known->count ? has_numbers(t, index) : 0;
	if (ret < 0)
		return ret;
	if (ret) {
		stele_log_error(t->log, "field '%s' has numbers in the snapshot, and class names "
				"in the source: they would mean something else", field->name);
		return -EOPNOTSUPP;
	}
	if (most > STELE_NAMES_SIZE_MAX) {
		stele_log_error(t->log, "class names take more than 16 MiB");
		return -EOVERFLOW;
	}
	names->list = malloc(most * sizeof(*names->list));
	if (!names->list)
		return -ENOMEM;
	for (uint32_t i = 0; known && i < known->count && !ret; i++)
		ret = add_name(t, names, known->names[i]);
	if (!ret && known)
		return join_names(t, names, field);
	for (uint32_t i = 0; i < field->name_count && !ret; i++)
		ret = add_name(t, names, field->names[i]);
	return ret;
}

/* ---- all ------------------------------------------------------------------- */

static bool is_same(const struct stele_descriptor_field *x,
		    const struct stele_descriptor_field *y)
{
	struct stele_disk_field a, b;

	stele_field_encode(x, &a);
	stele_field_encode(y, &b);
	return memcmp(&a, &b, sizeof(a)) == 0;
}

static const char *type_text(const struct stele_descriptor_field *field,
			     char text[STELE_FIELD_TYPE_SIZE])
{
	struct stele_field copy = {
		.type = field->type, .dtype = field->dtype, .rank = field->rank,
	};

	memcpy(copy.dims, field->dims, sizeof(copy.dims));
	return stele_field_type(&copy, text);
}

/* Say which field differs from the base's, first of all. Either may have ended. */
static void log_other(const struct taking *t,
		      const struct stele_descriptor_field *is,
		      const struct stele_descriptor_field *was)
{
	static const char what[] = "what is appended has other fields than the snapshot";
	char now[STELE_FIELD_TYPE_SIZE], then[STELE_FIELD_TYPE_SIZE];

	if (!was)
		stele_log_error(t->log, "%s: field '%s' (%s) is not in the snapshot",
				what, is->name, type_text(is, now));
	else if (!is)
		stele_log_error(t->log, "%s: field '%s' (%s) is missing",
				what, was->name, type_text(was, then));
	else if (strcmp(is->name, was->name))
		stele_log_error(t->log, "%s: field '%s' (%s) instead of '%s' (%s)",
				what, is->name, type_text(is, now), was->name,
				type_text(was, then));
	else
		stele_log_error(t->log, "%s: field '%s' is %s instead of %s", what,
				is->name, type_text(is, now), type_text(was, then));
}

static int compare_base(const struct taking *t)
{
	const struct stele_fields *fields = t->fields;
	const struct stele_segment *base = t->base;
	const uint32_t count = base ? base->descriptor.field_count : 0;
	uint32_t i = 0;

	while (i < count && i < fields->count &&
	       is_same(&fields->list[i], &base->fields[i]))
		i++;
	if (!base || (i == count && i == fields->count))
		return 0;
	log_other(t, i < fields->count ? &fields->list[i] : NULL,
		  i < count ? &base->fields[i] : NULL);
	return -EOPNOTSUPP;
}

static int take_schema(struct taking *t, const struct stele_schema *schema)
{
	const char *at = (const char *)schema->fields;
	struct stele_field field;
	int ret = 0;

	if (!at || !schema->count || schema->count > STELE_FIELDS_MAX) {
		stele_log_error(t->log, "the source has %u fields: there are 1 "
				"to %d", schema->count, STELE_FIELDS_MAX);
		return -EINVAL;
	}
	if (schema->reserved) {
		stele_log_error(t->log, "reserved bytes of a schema are not zero");
		return -EINVAL;
	}
	for (uint32_t pass = 0; pass < 2 && !ret; pass++) {
		for (uint32_t i = 0; i < schema->count && !ret; i++) {
			ret = stele_options_copy(at + i * schema->fields->size,
						 &field, sizeof(field), t->log);
			if (!ret)
				ret = pass ? take_names(t, i, &field) :
					     add_field(t, &field);
		}
		if (!ret && !pass)
			ret = compare_base(t);
	}
	return ret;
}

static int ask(struct taking *t, const struct stele_source *source)
{
	struct stele_schema schema = {.size = sizeof(schema)};
	struct stele_schema base = {.size = sizeof(base)};
	struct stele_field *list = NULL;
	int ret;

	if (t->base) {
		base.count = t->base->descriptor.field_count;
		list = calloc(base.count, sizeof(*list));
		if (!list)
			return -ENOMEM;
		for (uint32_t i = 0; i < base.count; i++)
			stele_segment_field(t->base, i, &list[i]);
		base.fields = list;
	}
	if (source->ops.schema)
		ret = source->ops.schema(source->user, list ? &base : NULL,
					 &schema);
	else
		ret = take_default(NULL, NULL, &schema);
	if (!ret)
		ret = take_schema(t, &schema);
	free(list);
	return ret > 0 ? -EINVAL : ret;
}

int stele_fields_take(struct stele_fields *fields,
		      const struct stele_source *source,
		      const struct stele_base *base,
		      const struct stele_log *log)
{
	const struct stele_snapshot *snapshot = base ? base->snapshot : NULL;
	struct taking t = {.fields = fields, .all = base, .log = log};

	if (snapshot && snapshot->segment_count)
		t.base = &snapshot->segments[snapshot->segment_count - 1];

	memset(fields, 0, sizeof(*fields));
	return ask(&t, source);
}

void stele_fields_release(struct stele_fields *fields)
{
	for (uint32_t i = 0; i < fields->count; i++) {
		free(fields->names[i].list);
		free(fields->names[i].values);
	}
	memset(fields, 0, sizeof(*fields));
}

int64_t stele_fields_value(const struct stele_fields *fields, uint32_t field,
			   int64_t value)
{
	const struct stele_class_names *names = &fields->names[field];

	if (names->values && value >= 0 && value < names->value_count)
		return names->values[value];
	return value;
}
