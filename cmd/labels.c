/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels.c - classes of samples, held against the directories of their keys
 */
#include "labels.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "text.h"

/* ---- one sample ------------------------------------------------------------------ */

/* Is the class one of the directories that the key begins with, or several in a row? */
static bool is_below(const char *key, size_t size, const char *class)
{
	const size_t length = strlen(class);

	for (size_t at = 0; length && at + length < size; at++)
		if ((!at || key[at - 1] == '/') && key[at + length] == '/' &&
		    !memcmp(key + at, class, length))
			return true;
	return false;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Is one of its directories a class? */
static bool has_class(const struct label *label, const char *key, size_t size)
{
	char name[STELE_KEY_SIZE_MAX + 1];
	const char *wanted = name, *slash;

	for (; (slash = memchr(key, '/', size)) != NULL; key = slash + 1) {
		const size_t length = (size_t)(slash - key);

		memcpy(name, key, length);
		name[length] = '\0';
		if (bsearch(&wanted, label->sorted, label->field.name_count,
			    sizeof(*label->sorted), compare_names))
			return true;
		size -= length + 1;
	}
	return false;
}

static bool is_shown(const struct label *label, int64_t value, const char *key, size_t size)
{
	if (value >= 0 && value < label->field.name_count)
		return is_below(key, size, label->field.names[value]);
	return !has_class(label, key, size);
}

/* ---- fields ---------------------------------------------------------------------- */

/* By the first sample, the last one, and one between. Of none of the classes there is no word. */
static int looks_shown(const struct label *label, struct stele_dataset *ds)
{
	const uint64_t count = stele_dataset_count(ds);
	const uint64_t ids[] = {0, count / 2, count - 1};
	char key[STELE_KEY_SIZE_MAX];
	int64_t value;
	size_t size;
	int error;

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		error = stele_dataset_column(ds, label->index, ids[i], 1, &value);
		if (!error)
			error = stele_dataset_key(ds, ids[i], key, &size);
		if (error || !is_shown(label, value, key, size))
			return error;
	}
	return 1;
}

int labels_add(struct labels *labels, struct stele_dataset *ds, uint32_t index,
	       const struct stele_field *field)
{
	struct label *label = &labels->list[labels->count];
	int shown;

	if (field->names_damaged)
		return -EBADMSG;
	if (field->type != STELE_TYPE_I64 || !field->name_count || !stele_dataset_count(ds))
		return 0;
	*label = (struct label){.index = index, .field = *field};
	label->sorted = malloc(field->name_count * sizeof(*label->sorted));
	if (!label->sorted)
		return -ENOMEM;
	memcpy(label->sorted, field->names, field->name_count * sizeof(*label->sorted));
	qsort(label->sorted, field->name_count, sizeof(*label->sorted), compare_names);
	shown = looks_shown(label, ds);
	if (shown == 1)
		labels->count++;
	else
		free(label->sorted);
	return shown;
}

/* ---- all of them ------------------------------------------------------------------- */

static void check(struct label *label, int64_t value, const char *key, size_t size)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	if (is_shown(label, value, key, size))
		return;
	pthread_mutex_lock(&lock);
	if (!label->unlike++)
		label->first = text_escape(key, size);
	pthread_mutex_unlock(&lock);
}

void labels_check(struct labels *labels, const struct stele_sample *sample)
{
	int64_t value;

	for (uint32_t i = 0; i < labels->count; i++) {
		struct label *label = &labels->list[i];

		if (!stele_sample_i64(sample, label->index, &value))
			check(label, value, sample->key, sample->key_size);
	}
}

void labels_check_key(struct labels *labels, struct stele_dataset *ds, uint64_t id,
		      const char *key, size_t key_size)
{
	int64_t value;

	for (uint32_t i = 0; i < labels->count; i++) {
		struct label *label = &labels->list[i];

		if (!stele_dataset_column(ds, label->index, id, 1, &value))
			check(label, value, key, key_size);
	}
}

bool labels_warn(const struct labels *labels)
{
	bool any = false;

	for (uint32_t i = 0; i < labels->count; i++) {
		const struct label *label = &labels->list[i];
		char count[TEXT_SIZE];

		if (!label->unlike)
			continue;
		cmd_message("warning: '%s' of %s, such as '%s', is not what directories show, and "
			    "is not written", label->field.name,
			    text_counted(count, label->unlike, "sample"),
			    label->first ? label->first : "?");
		any = true;
	}
	return any;
}

void labels_release(struct labels *labels)
{
	for (uint32_t i = 0; i < labels->count; i++) {
		free(labels->list[i].sorted);
		free(labels->list[i].first);
	}
	labels->count = 0;
}
