/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.c - what fields and keys a format can have
 */
#include "to/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cmd.h"
#include "columns.h"
#include "fields.h"
#include "from/record.h"
#include "parse.h"
#include "text.h"
#include "to/npy.h"
#include "tree.h"

const char *const to_words[] = {
	[TO_TAR] = "tar", [TO_WEBDATASET] = "webdataset", [TO_TFRECORD] = "tfrecord",
#ifdef HAVE_LMDB
	[TO_LMDB] = "lmdb",
#endif
	NULL};

const char *to_parse(const char *text, enum to_format *format)
{
	uint32_t word = 0;
	const char *wanted = parse_word(text, to_words, &word);

	*format = (enum to_format)word;
	return wanted;
}

/* ---- fields ------------------------------------------------------------------ */

/* As an .npy file. */
static const char *tensor_refusal(const struct to *to, const struct stele_field *field)
{
	char name[WEBDATASET_NPY_MAX];

	if (!to_npy_has(field))
		return "is a tensor of a type that NumPy does not have";
	webdataset_npy(field, name);
	for (uint32_t i = 0; i < to->field_count; i++)
		if (&to->fields[i] != field && !strcmp(to->fields[i].name, name))
			return "is a tensor, and another field has the name of its .npy file";
	return NULL;
}

/* Its members have the extensions of keys: see name_refusal(). */
static bool is_data(const struct stele_field *field)
{
	return !strcmp(field->name, "data") && field->type != STELE_TYPE_TENSOR;
}

static const char *member_refusal(const struct to *to, const struct stele_field *field)
{
	char name[WEBDATASET_NPY_MAX], other[WEBDATASET_NPY_MAX];

	webdataset_extension(to, field, name);
	for (uint32_t i = 0; i < to->field_count && !is_data(field); i++)
		if (&to->fields[i] != field && !is_data(&to->fields[i]) &&
		    !strcasecmp(webdataset_extension(to, &to->fields[i], other), name))
			return "has the extension of another field, as WebDataset ignores case";
	return NULL;
}

static const char *field_refusal(const struct to *to, const struct stele_field *field)
{
	const bool tensor = field->type == STELE_TYPE_TENSOR;
	const char *why;

	switch (to->format) {
	case TO_WEBDATASET:
		why = tensor ? tensor_refusal(to, field) : NULL;
		return why ? why : member_refusal(to, field);
	case TO_EXAMPLE:
		if (!strcmp(field->name, "key"))
			return "has the name of the key";
		return tensor && field->dtype != STELE_DTYPE_F32 &&
				       field->dtype != STELE_DTYPE_I64 ?
			       "is a tensor of neither f32 nor i64, which Example needs" : NULL;
	default:
		return NULL; /* see take_field() */
	}
}

/* All of them, where one has to be chosen. */
static int refuse_fields(const struct to *to, const struct stele_dataset *ds)
{
	char *names = fields_list(ds, false);

	cmd_message("a %s has only bytes, but samples have the fields %s (--field takes one%s)",
		    to->format == TO_LMDB ? "value" : "record", names ? names : "",
		    to->format == TO_LMDB ? "" : ", --example all");
	free(names);
	return -EOPNOTSUPP;
}

/* What records of bytes are. */
static int take_field(struct to *to, const struct stele_dataset *ds)
{
	int index;

	if (!to->field_count) /* nor samples */
		return 0;
	if (!to->field && to->field_count > 1)
		return refuse_fields(to, ds);
	index = field_find(ds, to->field ? to->field : to->fields[0].name, true);
	to->taken = index < 0 ? 0 : (uint32_t)index;
	return index < 0 ? index : 0;
}

static int read_fields(struct to *to, const struct stele_dataset *ds, uint32_t count)
{
	to->field_count = count;
	for (uint32_t i = 0; i < count; i++) {
		to->fields[i].size = sizeof(to->fields[i]);
		if (stele_dataset_field(ds, i, &to->fields[i]))
			return -EOPNOTSUPP;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct stele_field *field = &to->fields[i];
		const char *why;

		if (field->names_damaged && to->format == TO_WEBDATASET) {
			cmd_log_error(stele_dataset_class_name(ds, i, 0, &why), NULL);
			return -EBADMSG;
		}
		why = field_refusal(to, field);
		if (!why)
			continue;
		cmd_message("field '%s' %s", field->name, why);
		fields_hint_tensors(ds);
		return -EOPNOTSUPP;
	}
	return to->format == TO_WEBDATASET || to->format == TO_EXAMPLE ? 0 : take_field(to, ds);
}

/* Who reads an Example expects integers there. */
static void warn_classes(const struct to *to)
{
	for (uint32_t i = 0; i < to->field_count; i++)
		if (to->fields[i].name_count)
			cmd_message("warning: field '%s' has classes, of which an Example gets the "
				    "numbers without the names, which 'stele info' lists",
				    to->fields[i].name);
}

static void warn_odd(const char *class, const struct stele_field *field)
{
	char *name = text_escape(class, strlen(class));

	cmd_message("warning: class '%s' of field '%s' has a name that is blank, or ends in a line "
		    "feed, which readers refuse or cut off", name ? name : "?", field->name);
	free(name);
}

/* What 'stele build --from=webdataset' takes otherwise, of the classes that samples have. */
static void warn_names(const struct stele_field *field, const uint64_t *counts)
{
	uint32_t names = 0, numbers = 0;
	const char *odd = NULL;

	for (uint32_t i = 0; i < field->name_count; i++) {
		const char *name = field->names[i];
		const enum record_class_is is = record_class_is(name);

		names += counts[i] > 0;
		numbers += counts[i] && is == RECORD_CLASS_IS_NUMBER;
		if (counts[i] && (is == RECORD_CLASS_IS_BLANK || name[strlen(name) - 1] == '\n'))
			odd = name;
	}
	if (numbers && numbers == names)
		cmd_message("warning: all classes of field '%s' have numbers as names, which "
			    "readers take for the classes themselves", field->name);
	if (odd)
		warn_odd(odd, field);
}

/* Whatever is wrong with the column is said where it is exported. */
static void look_at_names(struct stele_dataset *ds, uint32_t index,
			  const struct stele_field *field)
{
	uint64_t *counts = calloc(field->name_count + 1u, sizeof(*counts));

	if (counts && field->name_count && !columns_count(ds, index, field, counts))
		warn_names(field, counts);
	free(counts);
}

int to_open(struct to *to, struct stele_dataset *ds)
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	int error;

	stele_dataset_info(ds, &info);
	to->time = info.time;
	if (to->format == TO_TAR && !to->field)
		return 0;
	error = read_fields(to, ds, info.field_count);
	if (!error && to->format == TO_EXAMPLE && !to->quiet)
		warn_classes(to);
	for (uint32_t i = 0; i < to->field_count && !error && !to->quiet; i++)
		if (to->format == TO_WEBDATASET)
			look_at_names(ds, i, &to->fields[i]);
	return !error && to->format == TO_LMDB ? lmdb_begin(to, ds) : error;
}

void to_release(struct to *to)
{
	lmdb_drop(to->lmdb);
	to->lmdb = NULL;
	free(to->out);
	free(to->buffer);
	to->out = to->buffer = NULL;
}

int to_values(const struct to *to, const struct stele_sample *sample, union stele_value *values)
{
	const void *data;
	int error = 0;

	for (uint32_t i = 0; i < to->field_count && !error; i++) {
		if (to->fields[i].type == STELE_TYPE_I64)
			error = stele_sample_i64(sample, i, &values[i].i64);
		else if (to->fields[i].type == STELE_TYPE_F64)
			error = stele_sample_f64(sample, i, &values[i].f64);
		else
			error = stele_sample_bytes(sample, i, &data, &values[i].size);
	}
	return error;
}

/* ---- keys -------------------------------------------------------------------- */

/* Readers take extensions for the same that differ in case alone. */
static bool is_member(const struct to *to, const char *extension)
{
	char name[WEBDATASET_NPY_MAX];

	for (uint32_t i = 0; i < to->field_count; i++)
		if (!is_data(&to->fields[i]) &&
		    !strcasecmp(webdataset_extension(to, &to->fields[i], name), extension))
			return true;
	return false;
}

/* The name up to the dot. Keys between two that begin with it begin with it, too. */
static bool is_named(struct to *to, const char *name, size_t size)
{
	size_t same = 0;

	while (same < size && to->last[same] == name[same])
		same++;
	memset(to->named + same + 1, 0, sizeof(to->named) - same - 1);
	return to->named[size];
}

/* Is there one that has the extension of each key? */
static bool has_data(const struct to *to)
{
	for (uint32_t i = 0; i < to->field_count; i++)
		if (is_data(&to->fields[i]))
			return true;
	return false;
}

static const char *name_refusal(struct to *to, const char *key, size_t size)
{
	char name[STELE_KEY_SIZE_MAX + 1];
	const char *base, *dot;
	size_t length;

	memcpy(name, key, size);
	name[size] = '\0';
	base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	if (*base == '.' || (!strncmp(base, "__", 2) && strstr(base + 2, "__")))
		return "WebDataset ignores such names";
	dot = webdataset_dot(name);
	if (dot && (!has_data(to) || !dot[1]))
		return "WebDataset cuts keys at a dot";
	if (has_data(to) && is_member(to, dot ? dot + 1 : "data"))
		return "another field has the name of its extension";
	length = dot ? (size_t)(dot - name) : size;
	if (is_named(to, name, length))
		return "a sample before it has the same name up to the dot";
	strcpy(to->last, name);
	to->named[length] = true;
	return NULL;
}

const char *to_refusal(struct to *to, const char *key, size_t size)
{
	const char *why = to->format == TO_TAR || to->format == TO_WEBDATASET ?
				  tree_refusal(key, size) : NULL;

	return !why && to->format == TO_WEBDATASET ? name_refusal(to, key, size) : why;
}

const uint8_t *to_bytes(const struct to *to, const struct to_sample *sample, uint64_t *size)
{
	const uint8_t *data = sample->data;

	for (uint32_t i = 0; i < to->taken; i++)
		if (!field_is_number(&to->fields[i]))
			data += sample->values[i].size;
	*size = to->field_count ? sample->values[to->taken].size : sample->size;
	return data;
}

static int tar_put(const struct to *to, const struct to_sample *sample)
{
	uint64_t size;
	const uint8_t *data = to_bytes(to, sample, &size);

	return tar_whole(to->tar, sample->path, data, (size_t)size, to->time);
}

int to_put(struct to *to, const struct to_sample *sample)
{
	uint64_t size = sample->size;

	if (to->field)
		to_bytes(to, sample, &size);
	to->bytes += size;
	switch (to->format) {
	case TO_TAR:
		return tar_put(to, sample);
	case TO_WEBDATASET:
		return webdataset_put(to, sample);
	case TO_LMDB:
		return lmdb_put(to->lmdb, to, sample);
	default:
		return tfrecord_put(to, sample);
	}
}

uint64_t to_size(const struct to *to)
{
	return to->tar ? tar_size(to->tar) : to->size;
}

int to_end(struct to *to)
{
	to->size = 0;
	if (to->lmdb)
		return lmdb_end(to->lmdb);
	return to->tar ? tar_end(to->tar) : tfrecord_end(to);
}
