/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webdataset.c - tar archives whose members of one name are the fields of one sample
 *
 * A member's path is cut at the first dot of its last component: what is in front is the
 * key, what follows, in lower case, the field. Members of a sample follow each other. As in
 * the WebDataset library, names without a dot or that begin with one, and __meta__ are no
 * part of any sample.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "from/tar.h"

#define FIELD_SIZE 64u

/* The sample that members are being added to. */
struct grouping {
	char key[STELE_KEY_SIZE_MAX];
	size_t key_size; /* 0: none */
	uint64_t damages; /* of the shard, up to the last member */
	bool lost;	  /* some of it was reported */
	bool unsure;	  /* what was reported may be of this sample, or of the one next to it */
	struct record record;
	char endings[STELE_FIELDS_MAX][FIELD_SIZE]; /* of the members that values are from */
};

#define TEXT_MAX 4096u /* bytes of a class */

/* What fields of these names hold; all others are bytes. */
static enum record_family family_of(const char *name)
{
	static const struct {
		const char *name;
		enum record_family family;
	} known[] = {
		{"cls", RECORD_FAMILY_CLASS}, {"cls2", RECORD_FAMILY_CLASS},
		{"class", RECORD_FAMILY_CLASS}, {"txt", RECORD_FAMILY_TEXT},
		{"text", RECORD_FAMILY_TEXT}, {"transcript", RECORD_FAMILY_TEXT},
		{"json", RECORD_FAMILY_TEXT}, {"jsn", RECORD_FAMILY_TEXT},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(known[i].name, name))
			return known[i].family;
	return RECORD_FAMILY_BYTES;
}

struct parts {
	size_t key_size;
	const char *ending; /* as it is in the path */
	char field[FIELD_SIZE];
};

/* Return: false: no part of a sample. */
static bool split(const char *path, struct parts *parts)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	const char *dot = strchr(base, '.');
	size_t size = 0;

	if (!dot || dot == base || !dot[1])
		return false;
	if (!strncmp(base, "__", 2) && strstr(base + 2, "__"))
		return false;
	parts->key_size = (size_t)(dot - path);
	parts->ending = dot + 1;
	for (dot++; *dot && size < sizeof(parts->field) - 1; dot++)
		parts->field[size++] = (char)tolower((unsigned char)*dot);
	parts->field[size] = '\0';
	return !*dot;
}

/* ---- samples --------------------------------------------------------------- */

/* One of which something may be missing is left out. */
static int end_sample(struct from_scan *scan, struct grouping *g)
{
	const size_t key_size = g->key_size;

	g->key_size = 0;
	if (!key_size || g->lost)
		return 0;
	if (g->unsure)
		return from_damaged(scan, g->record.offset, "sample '%.*s': what is damaged next "
				    "to it may be a part of it", (int)key_size, g->key);
	return from_record(scan, g->key, key_size, &g->record);
}

static int begin_sample(struct from_scan *scan, struct grouping *g,
			const struct tar_member *member, size_t key_size)
{
	const bool unsure = scan->damages - member->lost != g->damages;
	int ret;

	g->unsure |= unsure;
	if (g->key_size == key_size && !memcmp(g->key, member->path, key_size))
		return 0;
	ret = end_sample(scan, g);
	if (ret)
		return ret;
	g->unsure = unsure;
	g->lost = false;
	if (key_size > sizeof(g->key))
		return from_damaged(scan, member->offset, "'%s': key of more than "
				    "%d bytes", member->path, STELE_KEY_SIZE_MAX);
	memcpy(g->key, member->path, key_size);
	g->key_size = key_size;
	g->record.count = 0;
	g->record.offset = member->offset;
	return 0;
}

/* Writers add one, which is not part of the name. */
static size_t without_line_ends(const char *text, size_t size)
{
	while (size && text[size - 1] == '\n') {
		size--;
		size -= size && text[size - 1] == '\r';
	}
	return size;
}

/* An empty one is none. */
static int take_class(struct from_scan *scan, struct tar_member *member,
		      uint32_t field, struct record_value *value, bool *none)
{
	char text[TEXT_MAX], what[1024];
	int64_t got = tar_member_read(scan, member, text, sizeof(text));
	size_t size;
	int ret;

	if (got < 0 || member->lost)
		return (int)got;
	size = without_line_ends(text, (size_t)got);
	*none = !size && (size_t)got == member->size;
	if (*none)
		return 0;
	ret = (size_t)got == member->size ?
		      record_class(&scan->from->fields, field, text, size, value) :
		      -ENAMETOOLONG;
	member->lost = ret != 0;
	if (!ret)
		return 0;
	snprintf(what, sizeof(what), "'%.1000s' has a %svalue", member->path,
		 ret == -EINVAL ? "blank " : "");
	return from_no_class(scan, member->offset, ret, what);
}

static int take_value(struct from_scan *scan, struct tar_member *member, uint32_t field,
		      enum record_family family, struct record_value *value, bool *none)
{
	const bool text = family == RECORD_FAMILY_TEXT;
	int ret;

	*none = false;
	if (family == RECORD_FAMILY_CLASS)
		return take_class(scan, member, field, value, none);
	ret = text ? tar_member_copy(scan, member, true) : tar_member_keep(scan, member);
	*value = (struct record_value){
		.field = field, .kind = text ? RECORD_TEXT : RECORD_BYTES,
		.place = member->place, .size = member->size};
	return ret;
}

static void remove_value(struct grouping *g, uint32_t at)
{
	const uint32_t last = --g->record.count;

	g->record.values[at] = g->record.values[last];
	memmove(g->endings[at], g->endings[last], sizeof(g->endings[at]));
}

/* A later member of the same name stands for the earlier one, as when they are unpacked. */
static int add_value(struct from_scan *scan, struct tar_member *member, struct grouping *g,
		     const struct parts *parts, uint32_t field)
{
	struct record_value value = {0};
	uint32_t at = 0;
	bool none;
	int ret;

	while (at < g->record.count && g->record.values[at].field != field)
		at++;
	if (at < g->record.count && strcmp(g->endings[at], parts->ending) != 0)
		return from_damaged(scan, member->offset, "'%s' would be the field '%s', which "
				    "'.%s' is already", member->path, parts->field, g->endings[at]);
	/* The path is gone after it. */
	strcpy(g->endings[at], parts->ending);
	ret = take_value(scan, member, field, family_of(parts->field), &value, &none);
	if (ret || member->lost)
		return ret;
	scan->from->replaced += at < g->record.count;
	g->record.count += at == g->record.count;
	if (none)
		remove_value(g, at);
	else
		g->record.values[at] = value;
	return 0;
}

static int add_member(struct from_scan *scan, struct tar_member *member, struct grouping *g,
		      const struct parts *parts)
{
	int field;

	if (member->skip)
		return from_damaged(scan, member->offset, "'%s' is %s, which its sample would lack",
				    member->path, member->skip == STELE_SKIP_SYMLINK ?
				    "a symbolic link" : "no regular file");
	field = record_field(&scan->from->fields, parts->field,
			     strlen(parts->field), family_of(parts->field));
	if (field == -EINVAL)
		return from_damaged(scan, member->offset,
				    "'%s': not a valid name of a field", member->path);
	if (field < 0)
		return from_too_many(scan);
	return add_value(scan, member, g, parts, (uint32_t)field);
}

static int take_member(struct from_scan *scan, struct tar_member *member)
{
	struct grouping *g = scan->user;
	struct parts parts;
	uint64_t damages;
	int ret;

	if (!split(member->path, &parts)) {
		g->damages += member->lost;
		return member->lost ? 0 :
				      from_skip(scan, member->skip ? member->skip :
								     STELE_SKIP_NO_SAMPLE,
						member->path, member->path_size);
	}
	ret = begin_sample(scan, g, member, parts.key_size);
	damages = scan->damages;
	if (!ret && g->key_size && !member->lost)
		ret = add_member(scan, member, g, &parts);
	g->lost |= member->lost || scan->damages != damages;
	g->damages = scan->damages;
	return ret;
}

static int webdataset_scan(struct from_scan *scan)
{
	struct grouping grouping = {.damages = scan->damages};
	int ret;

	scan->user = &grouping;
	ret = from_tar_members(scan, take_member);
	grouping.unsure |= scan->damages != grouping.damages;
	return ret ? ret : end_sample(scan, &grouping);
}

const struct from_format from_webdataset = {
	.name = "webdataset",
	.scan = webdataset_scan,
	.kind = FROM_RECORDS,
};
