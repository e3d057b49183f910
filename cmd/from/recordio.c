/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recordio.c - images and labels of MXNet's RecordIO files
 *
 *	| u32 magic | u32 part << 29 | size | bytes | up to 3 bytes, so that it is whole u32 |
 *	bytes: | u32 count | f32 label | u64 id | u64 id2 | count f32, the labels | data |
 *
 * Where the magic is among aligned bytes, the record is cut into parts there, and the magic is left
 * out: so each magic begins a record or a part, also after damage. The index, x.idx next to x.rec,
 * has a line for each record, in their order: its key, a tab, its offset.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "from/row.h"
#include "text.h"

#define MAGIC	    0xced7230au
#define FRAME_SIZE  8u
#define HEADER_SIZE 24u
#define SIZE_MASK   ((1u << 29) - 1)

enum part {
	PART_WHOLE,
	PART_FIRST,
	PART_MIDDLE,
	PART_LAST,
};

struct reader {
	struct from_scan *scan;
	FILE *index; /* NULL: none */
	char *index_path;
	struct version index_version;
	uint64_t offset; /* of the record */
	struct row row;	 /* its number is that of the record */
	uint8_t *record; /* owned; one that is put together */
	size_t size, room;
};

static uint32_t get32(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint32_t padded(uint32_t size)
{
	return (size + 3) & ~3u;
}

static bool begins_record(const uint8_t *data)
{
	return get32(data) == MAGIC && get32(data + 4) >> 29 <= PART_FIRST;
}

static bool detect(const uint8_t *data, size_t size)
{
	return size >= FRAME_SIZE && begins_record(data);
}

/* ---- the index ----------------------------------------------------------------- */

/* Return: 0; -ENOMEM. */
static int open_index(struct reader *r)
{
	const char *path = r->scan->shard->path;
	const size_t size = strlen(path);
	struct stat st = {0};

	if (size <= 4 || strcmp(path + size - 4, ".rec") != 0)
		return 0;
	if (asprintf(&r->index_path, "%.*s.idx", (int)(size - 4), path) < 0) {
		r->index_path = NULL;
		return -ENOMEM;
	}
	r->index = fopen(r->index_path, "re");
	if (r->index && !fstat(fileno(r->index), &st))
		version_take(&r->index_version, &st);
	return 0;
}

static int wrong_index(struct reader *r)
{
	cmd_message("'%s' has no key of the record at byte %" PRIu64 " of '%s'", r->index_path,
		    r->offset, r->scan->shard->name);
	cmd_hint("keys are ids with --key=id, and numbers where that index is not");
	r->scan->from->complained = true;
	return -EBADMSG;
}

/* Return: 1: a line; 0: the end; -EBADMSG: it is none. */
static int read_line(struct reader *r, uint64_t *key, uint64_t *offset)
{
	char line[128], *end = line;

	if (!fgets(line, sizeof(line), r->index))
		return ferror(r->index) ? -EBADMSG : 0;
	errno = 0;
	if (!isdigit((unsigned char)*end))
		return -EBADMSG;
	*key = strtoull(end, &end, 10);
	if (!isblank((unsigned char)*end))
		return -EBADMSG;
	end += strspn(end, " \t");
	if (!isdigit((unsigned char)*end))
		return -EBADMSG;
	*offset = strtoull(end, &end, 10);
	end += strspn(end, " \t\r");
	if (errno || strcmp(end, "\n") != 0)
		return !errno && !*end && feof(r->index) ? 1 : -EBADMSG;
	return 1;
}

/* Lines of records that were skipped are passed over. Return: 0; -EBADMSG (said). */
static int read_index(struct reader *r, uint64_t *number)
{
	uint64_t offset;

	do {
		if (read_line(r, number, &offset) <= 0)
			return wrong_index(r);
	} while (offset < r->offset);
	return offset == r->offset ? 0 : wrong_index(r);
}

/* Behind the last record: are there any that the index has? Return: 0; negative errno (said). */
static int check_rest(struct reader *r)
{
	const uint64_t end = r->scan->input.offset;
	uint64_t key, offset = 0;
	int ret;

	do
		ret = read_line(r, &key, &offset);
	while (ret > 0 && offset < end);
	return ret ? from_damaged(r->scan, end, "'%s' has more records", r->index_path) : 0;
}

/* ---- records ------------------------------------------------------------------- */

static int damaged(struct reader *r, const char *what)
{
	return from_damaged(r->scan, r->offset, "record %" PRIu64 " %s", r->row.number, what);
}

static int take_label(struct reader *r, const uint8_t *header, uint32_t count)
{
	struct record_value value = {.kind = RECORD_I64};
	float label;

	if (count)
		return row_bytes(&r->row, "label", strlen("label"), RECORD_FAMILY_LIST,
				 RECORD_LIST_F32, header + HEADER_SIZE, (size_t)count * 4);
	memcpy(&label, header + 4, sizeof(label));
	if (label >= -0x1p24f && label <= 0x1p24f && (float)(int32_t)label == label) {
		value.number.i64 = (int32_t)label;
	} else {
		value.kind = RECORD_F64;
		value.number.f64 = (double)label;
	}
	return row_value(&r->row, "label", strlen("label"), RECORD_FAMILY_NUMBER, &value);
}

static int take_id(struct reader *r, const uint8_t *header)
{
	struct record_value value = {.kind = RECORD_I64};
	char text[32];
	uint64_t id;

	memcpy(&id, header + 8, sizeof(id));
	if (row_role(r->scan->from, "id", 2) == ROW_KEY) {
		row_key(&r->row, text, (size_t)snprintf(text, sizeof(text), "%" PRIu64, id));
		return 0;
	}
	if (id > INT64_MAX)
		return damaged(r, "has an id that no i64 is");
	value.number.i64 = (int64_t)id;
	return row_value(&r->row, "id", 2, RECORD_FAMILY_NUMBER, &value);
}

static int take_key(struct reader *r)
{
	uint64_t number = r->row.number;
	char key[FROM_NUMBER_KEY_MAX];
	int ret;

	if (r->scan->from->opts.key)
		return 0;
	ret = r->index ? read_index(r, &number) : 0;
	if (ret)
		return ret;
	ret = from_number_key(r->scan, number, key);
	row_key(&r->row, key, (size_t)ret);
	return 0;
}

/* `data`: `size` bytes, of which the header and labels are there. `place`: of all of them. */
static int take_record(struct reader *r, const uint8_t *data, uint64_t size, uint64_t place)
{
	const uint32_t count = get32(data);
	const uint64_t header = HEADER_SIZE + (uint64_t)count * 4;
	const struct record_value value = {
		.kind = RECORD_BYTES, .place = place + header, .size = size - header};
	int ret;

	row_begin(&r->row, r->offset);
	ret = take_key(r);
	if (!ret)
		ret = row_value(&r->row, "data", strlen("data"), RECORD_FAMILY_BYTES, &value);
	if (!ret)
		ret = take_label(r, data, count);
	if (!ret)
		ret = take_id(r, data);
	if (!ret)
		ret = row_end(&r->row);
	r->row.number -= !ret; /* the caller counts */
	return ret;
}

/* How much of a record has to be there for its header and labels. Return: 0: it has none. */
static size_t header_size(const uint8_t *data, uint64_t size)
{
	const uint64_t whole = HEADER_SIZE + (uint64_t)get32(data) * 4;

	return whole <= size && whole <= FROM_RECORD_SIZE_MAX ? (size_t)whole : 0;
}

#define NO_HEADER "has no header with labels"
#define CUT_SHORT "is cut short"

/* In one part of a plain file: it stays there. Return: 1; 0: damage; negative errno (said). */
static int read_plain(struct reader *r, uint32_t size)
{
	struct input *input = &r->scan->input;
	const uint64_t left = r->scan->shard->size - r->offset;
	size_t header = HEADER_SIZE;
	const uint8_t *data;
	int64_t got;
	int ret;

	if (left < FRAME_SIZE || padded(size) > left - FRAME_SIZE)
		return damaged(r, CUT_SHORT);
	if (size < HEADER_SIZE)
		return damaged(r, NO_HEADER);
	for (unsigned int pass = 0; pass < 2; pass++) {
		got = input_look(input, FRAME_SIZE + header, &data);
		if (got < 0)
			return from_input_failed(r->scan, (int)got);
		if ((size_t)got < FRAME_SIZE + header)
			return damaged(r, CUT_SHORT);
		header = header_size(data + FRAME_SIZE, size);
		if (!header)
			return damaged(r, NO_HEADER);
	}
	ret = take_record(r, data + FRAME_SIZE, size, from_place(r->scan, r->offset + FRAME_SIZE));
	if (!ret)
		input_skip(input, FRAME_SIZE + (uint64_t)padded(size));
	return ret ? ret : 1;
}

static int add(struct reader *r, const void *data, size_t size)
{
	if (size > r->room - r->size) {
		const size_t room = 2 * (r->size + size);
		uint8_t *more = realloc(r->record, room);

		if (!more)
			return -ENOMEM;
		r->record = more;
		r->room = room;
	}
	if (size)
		memcpy(r->record + r->size, data, size);
	r->size += size;
	return 0;
}

/* The frame of the next part, in the window. Return: 1; 0: damage; negative errno (said). */
static int look_part(struct reader *r, enum part *part, uint32_t *size)
{
	const uint8_t *data;
	int64_t got = input_look(&r->scan->input, FRAME_SIZE, &data);

	if (got < 0)
		return from_input_failed(r->scan, (int)got);
	if (got < FRAME_SIZE || get32(data) != MAGIC)
		return damaged(r, CUT_SHORT);
	*part = (enum part)(get32(data + 4) >> 29);
	*size = get32(data + 4) & SIZE_MASK;
	return 1;
}

/* Return: as look_part(). */
static int add_part(struct reader *r, uint32_t size)
{
	static const uint8_t magic[] = {0x0a, 0x23, 0xd7, 0xce};
	const size_t whole = FRAME_SIZE + padded(size);
	const uint8_t *data;
	int64_t got;
	int ret;

	if (size > FROM_RECORD_SIZE_MAX || r->size > FROM_RECORD_SIZE_MAX - size)
		return damaged(r, "is too large for one of several parts");
	got = input_look(&r->scan->input, whole, &data);
	if (got < 0)
		return from_input_failed(r->scan, (int)got);
	if ((size_t)got < whole)
		return damaged(r, CUT_SHORT);
	ret = r->size ? add(r, magic, sizeof(magic)) : 0;
	if (!ret)
		ret = add(r, data + FRAME_SIZE, size);
	input_skip(&r->scan->input, whole);
	return ret ? ret : 1;
}

/* Of several parts, or compressed: put together, and stored. Return: as read_plain(). */
static int read_parts(struct reader *r)
{
	struct from_scan *scan = r->scan;
	enum part part = PART_MIDDLE;
	uint64_t place;
	uint32_t size = 0;
	int ret = 1;

	r->size = 0;
	for (bool first = true; ret > 0 && part != PART_LAST && part != PART_WHOLE; first = false) {
		ret = look_part(r, &part, &size);
		if (ret > 0 && first != (part <= PART_FIRST))
			ret = damaged(r, CUT_SHORT);
		if (ret > 0)
			ret = add_part(r, size);
	}
	if (ret <= 0)
		return ret;
	if (r->size < HEADER_SIZE || !header_size(r->record, r->size))
		return damaged(r, NO_HEADER);
	ret = from_store(scan, r->offset, &place);
	if (!ret)
		ret = from_append(scan, r->record, r->size);
	if (!ret)
		ret = take_record(r, r->record, r->size, place);
	return ret ? ret : 1;
}

/* From what is wrong on: the next record. Return: 1; 0: there is none; negative errno (said). */
static int resume(struct reader *r)
{
	struct input *input = &r->scan->input;
	const uint8_t *data;
	int64_t got;
	int ret;

	do {
		if (input->offset == r->offset && input_look(input, 4, &data) >= 4)
			input_skip(input, 4);
		got = input_look(input, FRAME_SIZE, &data);
		if (got < 0)
			return from_input_failed(r->scan, (int)got);
		if (got >= FRAME_SIZE && begins_record(data))
			return 1;
		ret = got >= 4 ? input_skip(input, 4) : 0;
	} while (got >= FRAME_SIZE && !ret);
	return 0;
}

/* Return: 1: there was one; 0: no more; negative errno (said). */
static int next_record(struct reader *r)
{
	struct input *input = &r->scan->input;
	const uint8_t *data;
	int64_t got = input_look(input, FRAME_SIZE, &data);
	char bytes[TEXT_SIZE];
	int ret;

	r->offset = input->offset;
	if (got <= 0)
		return got < 0 ? from_input_failed(r->scan, (int)got) : 0;
	if (got < FRAME_SIZE)
		return from_damaged(r->scan, r->offset, "%s, too few for a record",
				    text_counted(bytes, (uint64_t)got, "byte"));
	if (!begins_record(data))
		ret = damaged(r, "does not begin with the magic number");
	else if (from_is_plain(r->scan) && get32(data + 4) >> 29 == PART_WHOLE)
		ret = read_plain(r, get32(data + 4) & SIZE_MASK);
	else
		ret = read_parts(r);
	return ret ? ret : resume(r);
}

static int recordio_scan(struct from_scan *scan)
{
	struct reader reader = {.scan = scan, .row = {.scan = scan}};
	int ret = open_index(&reader);

	scan->input.small = from_is_plain(scan);
	if (!ret)
		do
			ret = next_record(&reader);
		while (ret > 0 && ++reader.row.number);
	if (!ret && reader.index)
		ret = check_rest(&reader);
	if (!ret && reader.index && !version_holds(&reader.index_version, fileno(reader.index)))
		ret = from_changed(scan, reader.index_path);
	if (reader.index)
		fclose(reader.index);
	free(reader.index_path);
	free(reader.record);
	return ret;
}

const struct from_format from_recordio = {
	.name = "recordio",
	.detect = detect,
	.scan = recordio_scan,
	.kind = FROM_RECORDS,
	.options = FROM_KEY,
};
