/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels.c - which directories are classes, and which are splits
 *
 * Left to itself: SPLIT/CLASS/... if directories at the top have the names of splits, or those
 * in the only one there, which an archive has around all; else CLASS/..., if most files lie
 * in directories at all. Files outside of all classes take no label from the others: theirs
 * is STELE_NO_CLASS, and a warning says how many there are.
 */
#include "lib/source/labels.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/keys.h"
#include "format/sections.h"

#define TOP_LEVEL 1u /* of classes, or of splits with classes below them */

enum split_kind { SPLIT_NONE, SPLIT_TRAIN, SPLIT_VAL, SPLIT_TEST };

static enum split_kind split_kind(const char *name)
{
	static const struct {
		const char *name;
		enum split_kind kind;
	} names[] = {
		{"train", SPLIT_TRAIN}, {"training", SPLIT_TRAIN},
		{"val", SPLIT_VAL},	{"valid", SPLIT_VAL},
		{"validation", SPLIT_VAL}, {"test", SPLIT_TEST},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcasecmp(name, names[i].name))
			return names[i].kind;
	return SPLIT_NONE;
}

/* ---- recording ------------------------------------------------------------- */

/* That splits hold directories shows one level below them. */
static bool may_be_class_in_split(const struct stele_label_dir *parent, uint32_t level)
{
	return level <= TOP_LEVEL + 1 ||
	       (level == TOP_LEVEL + 2 && parent && parent->level == TOP_LEVEL + 1 &&
		split_kind(parent->name) != SPLIT_NONE);
}

static bool is_recorded(const struct stele_labels *labels, const struct stele_label_dir *parent,
			uint32_t level)
{
	if (labels->from == STELE_LABEL_FROM_NONE)
		return false;
	return labels->from == STELE_LABEL_FROM_PARENT || level == labels->from ||
	       may_be_class_in_split(parent, level);
}

int stele_labels_record(struct stele_labels *labels,
			struct stele_label_dir *parent, uint32_t level,
			const char *name, struct stele_label_dir **dir)
{
	*dir = parent;
	if (!is_recorded(labels, parent, level))
		return 0;
	*dir = calloc(1, sizeof(**dir) + strlen(name) + 1);
	if (!*dir)
		return -ENOMEM;
	strcpy((*dir)->name, name);
	(*dir)->parent = parent;
	(*dir)->level = level;
	(*dir)->next = labels->dirs;
	labels->dirs = *dir;
	return 0;
}

/* What comes in any order leaves the same message; without memory it has no example. */
static void keep_first(char **first, const char *key, size_t key_size)
{
	char *copy;

	if (*first && stele_key_compare(*first, strlen(*first), key, key_size) <= 0)
		return;
	copy = strndup(key, key_size);
	if (!copy)
		return;
	free(*first);
	*first = copy;
}

void stele_labels_count(struct stele_labels *labels, struct stele_label_dir *dir,
			const char *key, size_t key_size)
{
	keep_first(dir ? &dir->first : &labels->first_at_top, key, key_size);
	if (dir)
		dir->samples++;
	else
		labels->at_top++;
}

/* ---- splits ------------------------------------------------------------------ */

/* Is it in a directory where splits are, with the name of one, or such a one itself? */
static bool in_split(const struct stele_labels *labels, const struct stele_label_dir *dir)
{
	while (dir && dir->level > labels->split_level)
		dir = dir->parent;
	return dir && dir->level == labels->split_level && split_kind(dir->name) != SPLIT_NONE;
}

/* What the directories look like that may be splits. */
struct tops {
	unsigned int count; /* with samples */
	bool others;	    /* of them are without the name of a split */
	bool classes;	    /* with the name of a split, and directories with samples */
	unsigned int kinds; /* of splits: bits */
};

/* A directory comes before its parent, so that what it holds is known by then. */
static struct tops look(struct stele_labels *labels)
{
	struct tops tops = {0};

	for (struct stele_label_dir *d = labels->dirs; d; d = d->next) {
		d->used |= d->samples > 0;
		if (!d->used)
			continue;
		if (d->parent)
			d->parent->used = true;
		if (d->level > labels->split_level) {
			tops.classes |= in_split(labels, d);
		} else if (d->level == labels->split_level) {
			tops.count++;
			if (in_split(labels, d))
				tops.kinds |= 1u << split_kind(d->name);
			else
				tops.others = true;
		}
	}
	return tops;
}

static bool has_splits(const struct tops *tops)
{
	const bool several = (tops->kinds & (tops->kinds - 1)) != 0;

	return tops->kinds && (!tops->others || several);
}

/* One directory at the top that is no split may have all of them in it. */
static struct tops find_splits(struct stele_labels *labels)
{
	struct tops tops, below;

	labels->split_level = TOP_LEVEL;
	tops = look(labels);
	if (tops.count != 1 || tops.kinds)
		return tops;
	labels->split_level = TOP_LEVEL + 1;
	below = look(labels);
	if (has_splits(&below) && below.classes)
		return below;
	labels->split_level = TOP_LEVEL;
	return tops;
}

/* ---- choice ------------------------------------------------------------------ */

static bool base_has(const struct stele_schema *base, const char *name)
{
	const char *at = (const char *)base->fields;

	for (uint32_t i = 0; at && i < base->count; i++) {
		const struct stele_field *field =
			(const void *)(at + i * base->fields->size);

		if (!strcmp(field->name, name))
			return true;
	}
	return false;
}

static int refuse(const struct stele_log *log, const char *why)
{
	stele_log_error(log, "labels would mean something else than in the "
			     "snapshot that is appended to: %s; say where they "
			     "are to come from", why);
	return -EOPNOTSUPP;
}

/* Samples at the top are of no class, if directories are classes. */
static bool is_mostly_below_top(const struct stele_labels *labels)
{
	uint64_t count = 0;

	for (const struct stele_label_dir *d = labels->dirs; d; d = d->next)
		count += d->samples;
	return count > labels->at_top;
}

/* New samples have the fields of the base, and values that mean the same. */
static int follow_base(struct stele_labels *labels, const struct tops *tops,
		       const struct stele_schema *base,
		       const struct stele_log *log)
{
	const bool told = labels->from != STELE_LABEL_FROM_AUTO;
	const bool splits = has_splits(tops);

	if (told && labels->from != STELE_LABEL_FROM_NONE &&
	    !base_has(base, "label")) {
		stele_log_error(log, "the snapshot that is appended to has no "
				     "labels");
		return -EOPNOTSUPP;
	}
	labels->has_label = base_has(base, "label");
	/* One without labels is no split of a directory. */
	labels->has_split = labels->has_label && base_has(base, "split");
	if (!told && !labels->has_label &&
	    ((splits && tops->classes) || is_mostly_below_top(labels)))
		stele_log_warning(log, "no labels from directories, as the snapshot that is "
				  "appended to has none");
	if (told || !labels->has_label)
		return 0;
	if (splits && tops->classes && !labels->has_split)
		return refuse(log, "the source has splits");
	/* Of what an image has without that directory, each sample would have another key. */
	if (labels->split_level > TOP_LEVEL)
		return refuse(log, "the source has splits in its only directory");
	if (labels->has_split && (tops->count || labels->at_top) && !splits)
		return refuse(log, "the source has no splits");
	if (labels->has_split)
		labels->level = labels->split_level + 1;
	return 0;
}

static bool has_several_directories(const struct stele_labels *labels)
{
	unsigned int count = 0;

	for (const struct stele_label_dir *d = labels->dirs; d && count < 2; d = d->next)
		count += d->samples > 0;
	return count > 1;
}

static void look_for_fields(struct stele_labels *labels, const struct tops *tops,
			    const struct stele_log *log)
{
	switch (labels->from) {
	case STELE_LABEL_FROM_NONE:
		return;
	case STELE_LABEL_FROM_AUTO:
		labels->has_split = has_splits(tops) && tops->classes;
		labels->has_label = labels->has_split || is_mostly_below_top(labels);
		if (labels->has_split)
			labels->level = labels->split_level + 1;
		if (!labels->has_label && has_several_directories(labels))
			stele_log_warning(log, "no labels from directories, as no more samples lie "
					  "in them than beside them");
		if (labels->has_label && has_splits(tops) && !tops->classes)
			stele_log_warning(log, "what could be splits are classes, as no "
					  "directories lie in them");
		if (labels->has_label && !labels->has_split && tops->classes)
			stele_log_warning(log, "what could be splits are classes, as there are "
					  "other directories beside them");
		return;
	default:
		labels->has_split = labels->from != labels->split_level && has_splits(tops) &&
				    tops->classes;
		labels->has_label = true;
	}
}

/* The class that the samples of a directory belong to; NULL: none, as of "a//1" between slashes. */
static const struct stele_label_dir *class_of(const struct stele_labels *labels,
					      const struct stele_label_dir *dir)
{
	if (labels->from == STELE_LABEL_FROM_AUTO && labels->has_split && !in_split(labels, dir))
		return NULL;
	if (labels->level == STELE_LABEL_FROM_PARENT)
		return *dir->name ? dir : NULL;
	while (dir && dir->level > labels->level)
		dir = dir->parent;
	return dir && dir->level == labels->level && *dir->name ? dir : NULL;
}

static const char *earlier(const char *a, const char *b)
{
	if (!a || !b)
		return a ? a : b;
	return stele_key_compare(a, strlen(a), b, strlen(b)) <= 0 ? a : b;
}

static bool has_class(const struct stele_labels *labels, const struct stele_label_dir *dir)
{
	return class_of(labels, dir);
}

/* *first: the key of one; NULL: it is not known. */
static uint64_t count_without(const struct stele_labels *labels, const char **first,
			      bool (*has)(const struct stele_labels *,
					  const struct stele_label_dir *))
{
	uint64_t count = labels->at_top;

	*first = labels->first_at_top;
	for (const struct stele_label_dir *d = labels->dirs; d; d = d->next) {
		if (!d->samples || has(labels, d))
			continue;
		count += d->samples;
		*first = earlier(*first, d->first);
	}
	return count;
}

/* ---- names --------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_class(const struct stele_labels *labels,
		     const struct stele_label_dir *dir)
{
	return (labels->level == STELE_LABEL_FROM_PARENT ? dir->samples > 0 :
						       dir->used) &&
	       class_of(labels, dir) == dir;
}

static bool is_split(const struct stele_labels *labels,
		     const struct stele_label_dir *dir)
{
	return dir->used && dir->level == labels->split_level && in_split(labels, dir);
}

/* Sort, and keep one of each. Return: 0; -EOVERFLOW. */
static int settle(struct stele_label_names *names, uint32_t count)
{
	uint64_t size = 0;

	names->count = 0;
	qsort(names->list, count, sizeof(*names->list), compare_names);
	for (uint32_t i = 0; i < count; i++) {
		if (i && !strcmp(names->list[names->count - 1], names->list[i]))
			continue;
		size += sizeof(le16) + strlen(names->list[i]);
		if (size > STELE_NAMES_SIZE_MAX)
			return -EOVERFLOW;
		names->list[names->count++] = names->list[i];
	}
	return 0;
}

static int find_names(const struct stele_labels *labels,
		      struct stele_label_names *names,
		      bool (*wanted)(const struct stele_labels *,
				     const struct stele_label_dir *))
{
	uint64_t count = 0;

	free(names->list);
	*names = (struct stele_label_names){0};
	for (const struct stele_label_dir *d = labels->dirs; d; d = d->next)
		count += wanted(labels, d);
	if (count > UINT32_MAX)
		return -EOVERFLOW;
	names->list = malloc(((size_t)count + 1) * sizeof(*names->list));
	if (!names->list)
		return -ENOMEM;
	count = 0;
	for (const struct stele_label_dir *d = labels->dirs; d; d = d->next)
		if (wanted(labels, d))
			names->list[count++] = d->name;
	return settle(names, (uint32_t)count);
}

static int find_all_names(struct stele_labels *labels)
{
	int ret = find_names(labels, &labels->classes, is_class);

	if (!ret && labels->has_split)
		ret = find_names(labels, &labels->splits, is_split);
	return ret;
}

static void warn_of(const struct stele_labels *labels, const struct stele_log *log,
		    const char *field, const char *outside,
		    bool (*has)(const struct stele_labels *, const struct stele_label_dir *))
{
	const char *first;
	const uint64_t count = count_without(labels, &first, has);
	char text[STELE_QUOTE_SIZE];

	if (!count)
		return;
	stele_source_quote(first ? first : "", first ? strlen(first) : 0, text);
	stele_log_warning(log, "%s %" PRIi64 " for %" PRIu64 " sample%s outside of all %s "
			  "directories, such as '%s'", field, STELE_NO_CLASS, count,
			  count == 1 ? "" : "s", outside, text);
}

static void warn(const struct stele_labels *labels, const struct stele_log *log)
{
	if (labels->from == STELE_LABEL_FROM_NONE)
		return;
	warn_of(labels, log, "label", "class", has_class);
	/* By default what is in no split is of no class, either. */
	if (labels->has_split && labels->from != STELE_LABEL_FROM_AUTO)
		warn_of(labels, log, "split", "split", in_split);
}

static bool has_directories_in_class(const struct stele_labels *labels)
{
	const struct stele_label_dir *d = labels->dirs;

	while (d && !(d->samples && d->level > TOP_LEVEL))
		d = d->next;
	return d;
}

/* As of an archive of a directory that has those of classes: hardly what was meant. */
static void warn_alone(const struct stele_labels *labels, const struct stele_log *log)
{
	char text[STELE_QUOTE_SIZE];

	if (labels->from != STELE_LABEL_FROM_AUTO || labels->has_split ||
	    labels->classes.count != 1 || !has_directories_in_class(labels))
		return;
	stele_source_quote(labels->classes.list[0], strlen(labels->classes.list[0]), text);
	stele_log_warning(log, "label has one class, '%s': all directories lie in that one", text);
}

/* Which fields there are, and their names. */
static int choose(struct stele_labels *labels, const struct stele_schema *base,
		  const struct stele_log *log)
{
	const bool must = base || labels->from != STELE_LABEL_FROM_AUTO;
	const struct tops tops = find_splits(labels);
	int ret = 0;

	labels->has_label = labels->has_split = false;
	labels->level = labels->from == STELE_LABEL_FROM_AUTO ? TOP_LEVEL : labels->from;
	if (base)
		ret = follow_base(labels, &tops, base, log);
	else
		look_for_fields(labels, &tops, log);
	if (ret || !labels->has_label)
		return ret;
	ret = find_all_names(labels);
	if (ret == -EOVERFLOW) {
		stele_log_emit(log, must ? STELE_LOG_ERROR : STELE_LOG_WARNING,
			       "too many directories for labels");
		labels->has_label = labels->has_split = false;
		return must ? ret : 0;
	}
	if (ret)
		return ret;
	warn(labels, log);
	if (!base)
		warn_alone(labels, log);
	return 0;
}

/* ---- values -------------------------------------------------------------------- */

/* The directory at this level, or the innermost one. Return: its size; 0: none. */
static size_t directory_of(const char *key, size_t key_size, uint32_t level,
			   const char **name)
{
	const char *slash, *last = NULL, *at = key;
	size_t left = key_size, size = 0;

	for (uint32_t i = 1; (slash = memchr(at, '/', left)); i++) {
		last = at;
		size = (size_t)(slash - at);
		left -= size + 1;
		at = slash + 1;
		if (i == level)
			break;
	}
	*name = last;
	return slash || level == STELE_LABEL_FROM_PARENT ? size : 0;
}

static int64_t value_of(const struct stele_label_names *names, const char *name,
			size_t size)
{
	uint32_t low = 0, high = size ? names->count : 0;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		const char *known = names->list[middle];
		const int order = stele_key_compare(known, strlen(known), name,
						    size);

		if (order == 0)
			return middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return STELE_NO_CLASS;
}

static int64_t split_of(const struct stele_labels *labels, const char *key,
			size_t key_size)
{
	const char *name;
	const size_t size = directory_of(key, key_size, labels->split_level, &name);

	return value_of(&labels->splits, name, size);
}

static int64_t label_of(const struct stele_labels *labels, const char *key,
			size_t key_size)
{
	const char *name;
	const size_t size = directory_of(key, key_size, labels->level, &name);

	if (labels->from == STELE_LABEL_FROM_AUTO && labels->has_split &&
	    split_of(labels, key, key_size) == STELE_NO_CLASS)
		return STELE_NO_CLASS;
	return value_of(&labels->classes, name, size);
}

/* ---- fields -------------------------------------------------------------------- */

static struct stele_field class_field(const char *name,
				      const struct stele_label_names *names)
{
	struct stele_field field = {
		.size = sizeof(field), .type = STELE_TYPE_I64,
		.name_count = names->count, .names = names->list};

	strcpy(field.name, name);
	return field;
}

int stele_labels_schema(struct stele_labels *labels, struct stele_field *fields,
			const struct stele_schema *base,
			const struct stele_log *log, struct stele_schema *out)
{
	int ret = choose(labels, base, log);

	out->fields = fields;
	out->count = 1;
	fields[0] = (struct stele_field){.size = sizeof(*fields), .name = "data",
					 .type = STELE_TYPE_BYTES};
	if (labels->has_label)
		fields[out->count++] = class_field("label", &labels->classes);
	if (labels->has_split)
		fields[out->count++] = class_field("split", &labels->splits);
	return ret;
}

int64_t stele_labels_label(const struct stele_labels *labels,
			   const struct stele_source_entry *entry)
{
	return label_of(labels, entry->key, entry->key_size);
}

void stele_labels_values(const struct stele_labels *labels,
			 const struct stele_source_entry *entry,
			 union stele_value *values)
{
	if (labels->has_label)
		values[1].i64 = stele_labels_label(labels, entry);
	if (labels->has_split)
		values[2].i64 = split_of(labels, entry->key, entry->key_size);
}

void stele_labels_release(struct stele_labels *labels)
{
	while (labels->dirs) {
		struct stele_label_dir *dir = labels->dirs;

		labels->dirs = dir->next;
		free(dir->first);
		free(dir);
	}
	free(labels->first_at_top);
	free(labels->classes.list);
	free(labels->splits.list);
	memset(labels, 0, sizeof(*labels));
}
