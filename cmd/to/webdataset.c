/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webdataset.c - the fields of a sample as members of one name
 *
 * A field is KEY.FIELD, and `label` KEY.cls, as WebDataset calls it; a tensor is KEY.FIELD.npy,
 * of a field called npy KEY.npy. Of a key that has an extension, such as the path of a file, that
 * is the name of `data`.
 */
#include "to/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "to/npy.h"

#define NPY_ENDING  ".npy"
#define NUMBER_SIZE 40u
#define MEMBER_MAX  (TAR_PATH_MAX + WEBDATASET_NPY_MAX + 2)

const char *webdataset_dot(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strchr(slash ? slash + 1 : path, '.');
}

static bool has_field(const struct to *to, const char *name)
{
	for (uint32_t i = 0; i < to->field_count; i++)
		if (!strcmp(to->fields[i].name, name))
			return true;
	return false;
}

/* A missing one has no member. Return: its size; 0: there is none. */
static int number_text(const struct stele_field *field, union stele_value value,
		       char text[NUMBER_SIZE])
{
	if (field->type == STELE_TYPE_F64)
		return isnan(value.f64) ? 0 : snprintf(text, NUMBER_SIZE, "%.17g", value.f64);
	return value.i64 == -1 && (field->name_count || !strcmp(field->name, "label") ||
				   !strncmp(field->name, "cls", 3)) ?
		       0 : snprintf(text, NUMBER_SIZE, "%" PRIi64, value.i64);
}

const char *webdataset_npy(const struct stele_field *field, char name[WEBDATASET_NPY_MAX])
{
	const size_t size = strlen(field->name), end = strlen(NPY_ENDING);
	const bool has = !strcmp(field->name, NPY_ENDING + 1) ||
			 (size > end && !strcmp(field->name + size - end, NPY_ENDING));

	snprintf(name, WEBDATASET_NPY_MAX, "%s%s", field->name, has ? "" : NPY_ENDING);
	return name;
}

const char *webdataset_extension(const struct to *to, const struct stele_field *field,
				 char name[WEBDATASET_NPY_MAX])
{
	if (field->type == STELE_TYPE_TENSOR)
		return webdataset_npy(field, name);
	snprintf(name, WEBDATASET_NPY_MAX, "%s",
		 !strcmp(field->name, "label") && !has_field(to, "cls") ? "cls" : field->name);
	return name;
}

static void name_member(const struct to *to, const char *path, const struct stele_field *field,
			char member[MEMBER_MAX])
{
	char name[WEBDATASET_NPY_MAX];
	const char *dot = webdataset_dot(path);

	webdataset_extension(to, field, name);
	if (dot && !strcmp(name, "data"))
		snprintf(member, MEMBER_MAX, "%s", path);
	else
		snprintf(member, MEMBER_MAX, "%.*s.%s",
			 dot ? (int)(dot - path) : (int)strlen(path), path, name);
}

static int put_member(struct to *to, const char *path, const struct stele_field *field,
		      const void *data, uint64_t size)
{
	char member[MEMBER_MAX];

	name_member(to, path, field, member);
	return tar_whole(to->tar, member, data, size, to->time);
}

static int put_tensor(struct to *to, const char *path, const struct stele_field *field,
		      const void *data, uint64_t size)
{
	char member[MEMBER_MAX], head[TO_NPY_HEAD_MAX];
	const size_t head_size = to_npy_head(field, size, head);
	int error;

	name_member(to, path, field, member);
	error = tar_file(to->tar, member, head_size + size, to->time);
	if (!error)
		error = tar_data(to->tar, head, head_size);
	if (!error)
		error = tar_data(to->tar, data, (size_t)size);
	return error ? error : tar_file_end(to->tar);
}

int webdataset_put(struct to *to, const struct to_sample *sample)
{
	const uint8_t *data = sample->data;
	char text[NUMBER_SIZE];
	bool any = false;
	int error = 0;

	for (uint32_t i = 0; i < to->field_count && !error; i++) {
		const struct stele_field *field = &to->fields[i];
		const union stele_value value = sample->values[i];
		const char *word = text;
		uint64_t size;

		if (field->type != STELE_TYPE_I64 && field->type != STELE_TYPE_F64) {
			error = field->type == STELE_TYPE_TENSOR ?
					put_tensor(to, sample->path, field, data, value.size) :
					put_member(to, sample->path, field, data,
						   value.size);
			data += value.size;
			any = true;
			continue;
		}
		size = (uint64_t)number_text(field, value, text);
		if (field->type == STELE_TYPE_I64 && value.i64 >= 0 &&
		    value.i64 < field->name_count) {
			word = field->names[value.i64];
			size = strlen(word);
		}
		if (size)
			error = put_member(to, sample->path, field, word, size);
		any |= size > 0;
	}
	/* Without any member it would not be there. An empty class is none. */
	return any || error ? error : put_member(to, sample->path, &to->fields[0], "", 0);
}
