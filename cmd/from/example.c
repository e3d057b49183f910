/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example.c - the few messages of Protocol Buffers that an Example is made of
 *
 *	Example { Features features = 1; }
 *	Features { map<string, Feature> feature = 1; }: of { string key = 1; Feature value = 2; }
 *	Feature { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }: of repeated value = 1
 *
 * Integers and floats may be packed, or not. Field 2 of an Example is what a SequenceExample
 * has, whose lists would get lost.
 */
#include "from/example.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "from/protobuf.h"

/* A list of a feature, while it is put together. */
struct list {
	uint8_t *data; /* owned */
	size_t size, room;
	uint64_t count; /* of strings */
	const uint8_t *bytes; /* the last string */
	size_t bytes_size;
};

/* ---- lists --------------------------------------------------------------------- */

/* Which list of a Feature. */
enum feature {
	FEATURE_NONE,
	FEATURE_BYTES,
	FEATURE_FLOAT,
	FEATURE_INT64,
};

/* Return: 0; -ENOMEM. */
static int add(struct list *list, const void *data, size_t size)
{
	if (size > list->room - list->size) {
		const size_t room = 2 * (list->size + size);
		uint8_t *more = realloc(list->data, room);

		if (!more)
			return -ENOMEM;
		list->data = more;
		list->room = room;
	}
	if (size)
		memcpy(list->data + list->size, data, size);
	list->size += size;
	return 0;
}

/* Return: 0; -ENOMEM; -EBADMSG. */
static int add_integers(struct list *list, const struct protobuf_part *part)
{
	struct protobuf packed = protobuf_inside(part);
	int ret = 0;

	if (part->wire == PROTOBUF_VARINT)
		return add(list, &part->value, sizeof(part->value));
	if (part->wire != PROTOBUF_BYTES)
		return -EBADMSG;
	while (packed.at < packed.end && !ret) {
		const uint64_t value = protobuf_varint(&packed);

		ret = packed.wrong ? -EBADMSG : add(list, &value, sizeof(value));
	}
	return ret;
}

static int add_part(struct list *list, enum feature feature, const struct protobuf_part *part)
{
	if (part->number != 1)
		return 0;
	switch (feature) {
	case FEATURE_INT64:
		return add_integers(list, part);
	case FEATURE_FLOAT:
		if (part->wire != PROTOBUF_32 && (part->wire != PROTOBUF_BYTES || part->size % 4))
			return -EBADMSG;
		return add(list, part->bytes, part->size);
	default:
		if (part->wire != PROTOBUF_BYTES)
			return -EBADMSG;
		list->count++;
		list->bytes = part->bytes;
		list->bytes_size = part->size;
		return 0;
	}
}

/* Return: 0, *feature; -ENOMEM; -EBADMSG. */
static int read_feature(const struct protobuf_part *value, struct list *list, enum feature *feature)
{
	struct protobuf m = protobuf_inside(value);
	struct protobuf_part kind, part;
	int ret = 0;

	*feature = FEATURE_NONE;
	while (!ret && protobuf_next(&m, &kind)) {
		struct protobuf values = protobuf_inside(&kind);

		if (kind.number < FEATURE_BYTES || kind.number > FEATURE_INT64)
			continue;
		if (kind.wire != PROTOBUF_BYTES || (*feature && *feature != kind.number))
			return -EBADMSG;
		*feature = (enum feature)kind.number;
		while (!ret && protobuf_next(&values, &part))
			ret = add_part(list, *feature, &part);
		if (!ret && values.wrong)
			ret = -EBADMSG;
	}
	return ret ? ret : m.wrong ? -EBADMSG : 0;
}

/* ---- features ------------------------------------------------------------------ */

struct taking {
	struct row *row;
	const uint8_t *data; /* of the record */
	uint64_t place;
	bool keys; /* now only the key is taken, or all but it */
};

static int damaged(const struct taking *t, const char *name, int size, const char *what)
{
	return from_damaged(t->row->scan, t->row->record.offset, "feature '%.*s' %s", size, name,
			    what);
}

static int take_key(const struct taking *t, const char *name, int size, enum feature feature,
		    const struct list *list)
{
	if (feature != FEATURE_BYTES || list->count != 1)
		return damaged(t, name, size, "is the key, and not one string");
	row_key(t->row, (const char *)list->bytes, list->bytes_size);
	return 0;
}

static int take_bytes(const struct taking *t, const char *name, int size,
		      const struct list *list)
{
	struct record_value value = {.kind = RECORD_BYTES, .size = list->bytes_size};

	if (list->count > 1)
		return damaged(t, name, size, "has several strings, and a field of bytes one");
	if (!list->count)
		return 0;
	value.place = t->place + (uint64_t)(list->bytes - t->data);
	return row_value(t->row, name, (size_t)size, RECORD_FAMILY_BYTES, &value);
}

/* The elements of a field are of one type in all records. */
static int take_list(const struct taking *t, const char *name, int size, enum feature feature,
		     const struct list *list)
{
	struct from_scan *scan = t->row->scan;
	const enum record_kind kind = feature == FEATURE_INT64 ? RECORD_LIST_I64 :
								 RECORD_LIST_F32;
	const uint32_t dtype = feature == FEATURE_INT64 ? STELE_DTYPE_I64 : STELE_DTYPE_F32;
	struct record_value value = {.kind = list->size ? kind : RECORD_LIST_EMPTY,
				     .size = list->size};
	int field = record_field(&scan->from->fields, name, (size_t)size, RECORD_FAMILY_LIST);
	float real;
	int ret;

	if (field >= 0) {
		struct record_field *known = &scan->from->fields.list[field];

		known->single = true;
		if (known->dtype && list->size && known->dtype != dtype)
			return damaged(t, name, size, "is of another type than before");
	}
	if (list->size && feature == FEATURE_INT64) {
		memcpy(&value.number.i64, list->data, sizeof(value.number.i64));
	} else if (list->size) {
		memcpy(&real, list->data, sizeof(real));
		value.number.f64 = (double)real;
	}
	ret = from_store(scan, t->row->record.offset, &value.place);
	if (!ret)
		ret = from_append(scan, list->data, list->size);
	return ret ? ret : row_value(t->row, name, (size_t)size, RECORD_FAMILY_LIST, &value);
}

static int take_feature(const struct taking *t, const struct protobuf_part *key,
			const struct protobuf_part *value)
{
	const char *name = (const char *)key->bytes;
	const int size = key->size < 100 ? (int)key->size : 100; /* in messages */
	struct list list = {.data = NULL};
	enum feature feature;
	int ret;

	if ((row_role(t->row->scan->from, name, key->size) == ROW_KEY) != t->keys)
		return 0;
	ret = read_feature(value, &list, &feature);
	if (ret == -EBADMSG)
		ret = damaged(t, name, size, "is no Feature");
	else if (!ret && key->size > STELE_NAME_SIZE_MAX)
		ret = damaged(t, name, size, "has a name that no field can have");
	else if (!ret && t->keys)
		ret = take_key(t, name, size, feature, &list);
	else if (!ret && feature == FEATURE_BYTES)
		ret = take_bytes(t, name, size, &list);
	else if (!ret && feature)
		ret = take_list(t, name, size, feature, &list);
	free(list.data);
	return ret;
}

/* ---- records ------------------------------------------------------------------- */

static int take_entry(const struct taking *t, const struct protobuf_part *entry)
{
	struct protobuf_part part, key = {.bytes = t->data}, value = {.bytes = t->data};
	struct protobuf m = protobuf_inside(entry);

	while (protobuf_next(&m, &part)) {
		if (part.wire != PROTOBUF_BYTES)
			m.wrong |= part.number == 1 || part.number == 2;
		else if (part.number == 1)
			key = part;
		else if (part.number == 2)
			value = part;
	}
	return m.wrong ? -EBADMSG : take_feature(t, &key, &value);
}

/* Return: 0; -EBADMSG: not an Example; negative errno (said, if it is not -ENOMEM). */
static int take_features(const struct taking *t, size_t size)
{
	struct protobuf m = {.at = t->data, .end = t->data + size};
	struct protobuf_part features, entry;
	int ret = 0;

	while (!ret && protobuf_next(&m, &features)) {
		struct protobuf map = protobuf_inside(&features);

		if (features.number > 2)
			continue;
		if (features.number != 1 || features.wire != PROTOBUF_BYTES)
			return -EBADMSG;
		while (!ret && protobuf_next(&map, &entry)) {
			if (entry.number == 1 && entry.wire != PROTOBUF_BYTES)
				return -EBADMSG;
			if (entry.number == 1)
				ret = take_entry(t, &entry);
		}
		m.wrong |= map.wrong;
	}
	return ret ? ret : m.wrong ? -EBADMSG : 0;
}

int example_take(struct row *row, const uint8_t *data, size_t size, uint64_t place)
{
	struct taking t = {.row = row, .data = data, .place = place, .keys = true};
	const bool said = row->scan->from->complained;
	int ret = take_features(&t, size);

	t.keys = false;
	if (!ret)
		ret = take_features(&t, size);
	if (ret == -EBADMSG && row->scan->from->complained == said)
		return from_damaged(row->scan, row->record.offset, "the record is no "
				    "tf.train.Example");
	return ret;
}

/* Is an entry of the map a feature with a name? */
static bool is_named(const struct protobuf_part *entry)
{
	struct protobuf m = protobuf_inside(entry);
	struct protobuf_part name, value;

	return entry->number == 1 && entry->wire == PROTOBUF_BYTES && protobuf_next(&m, &name) &&
	       name.number == 1 && name.wire == PROTOBUF_BYTES && name.size &&
	       protobuf_next(&m, &value) && value.number == 2 && value.wire == PROTOBUF_BYTES &&
	       m.at == m.end;
}

bool example_guess(const uint8_t *data, size_t size)
{
	struct protobuf m = {.at = data, .end = data + size};
	struct protobuf_part features, entry;
	struct protobuf map;
	bool named = false;

	if (!protobuf_next(&m, &features) || features.number != 1 ||
	    features.wire != PROTOBUF_BYTES || m.at != m.end)
		return false;
	map = protobuf_inside(&features);
	while (protobuf_next(&map, &entry)) {
		named = is_named(&entry);
		if (!named)
			return false;
	}
	return named && !map.wrong;
}
