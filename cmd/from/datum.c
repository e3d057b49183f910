/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datum.c - one message of Protocol Buffers
 *
 *	Datum { int32 channels = 1, height = 2, width = 3; bytes data = 4; int32 label = 5;
 *		repeated float float_data = 6; bool encoded = 7; }
 *
 * Floats may be packed, or not.
 */
#include "from/datum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "from/protobuf.h"

enum part {
	PART_CHANNELS = 1,
	PART_HEIGHT,
	PART_WIDTH,
	PART_DATA,
	PART_LABEL,
	PART_FLOATS,
	PART_ENCODED,
};

/* False: of a type that this part never has. */
static bool take_part(const struct protobuf_part *part, struct datum *out)
{
	if (part->number == PART_DATA) {
		out->data = part->bytes;
		out->data_size = part->size;
		return part->wire == PROTOBUF_BYTES;
	}
	if (part->number == PART_FLOATS) {
		out->floats += part->size / 4;
		return (part->wire == PROTOBUF_BYTES || part->wire == PROTOBUF_32) &&
		       part->size % 4 == 0;
	}
	if (!part->number || part->number > PART_ENCODED)
		return part->number != 0;
	if (part->number == PART_CHANNELS)
		out->channels = (int32_t)part->value;
	if (part->number == PART_HEIGHT)
		out->height = (int32_t)part->value;
	if (part->number == PART_WIDTH)
		out->width = (int32_t)part->value;
	if (part->number == PART_LABEL)
		out->label = (int32_t)part->value;
	out->has_shape |= part->number <= PART_WIDTH;
	out->has_label |= part->number == PART_LABEL;
	return part->wire == PROTOBUF_VARINT;
}

bool datum_parse(const uint8_t *message, size_t size, struct datum *out)
{
	struct protobuf m = {.at = message, .end = message + size};
	struct protobuf_part part;

	memset(out, 0, sizeof(*out));
	out->data = message;
	while (protobuf_next(&m, &part))
		m.wrong |= !take_part(&part, out);
	return !m.wrong;
}

bool datum_guess(const uint8_t *message, size_t size)
{
	struct datum datum;

	return datum_parse(message, size, &datum) && datum.has_shape && datum.has_label &&
	       (datum.data_size || datum.floats);
}

/* ---- rows -------------------------------------------------------------------- */

static int take_integer(struct row *row, const char *name, int32_t number)
{
	const struct record_value value = {.kind = RECORD_I64, .number.i64 = number};

	return row_value(row, name, strlen(name), RECORD_FAMILY_NUMBER, &value);
}

static int take_label(struct row *row, int32_t label)
{
	char text[16];
	int size = snprintf(text, sizeof(text), "%" PRIi32, label);

	return row_class(row, "label", strlen("label"), text, (size_t)size);
}

static int take_floats(struct row *row, const uint8_t *message, size_t size, uint64_t count)
{
	struct record_value value = {.kind = RECORD_LIST_F32, .size = count * sizeof(float)};
	struct protobuf m = {.at = message, .end = message + size};
	struct protobuf_part part;
	int ret = from_store(row->scan, row->record.offset, &value.place);

	while (!ret && protobuf_next(&m, &part))
		if (part.number == PART_FLOATS)
			ret = from_append(row->scan, part.bytes, part.size);
	return ret ? ret : row_value(row, "float_data", strlen("float_data"), RECORD_FAMILY_LIST,
				     &value);
}

int datum_take(struct row *row, const uint8_t *message, size_t size, uint64_t place)
{
	struct record_value data = {.kind = RECORD_BYTES};
	struct datum datum;
	int ret;

	if (!datum_parse(message, size, &datum))
		return from_damaged(row->scan, row->record.offset, "the value is no Datum");
	data.place = place + (uint64_t)(datum.data - message);
	data.size = datum.data_size;
	ret = row_value(row, "data", strlen("data"), RECORD_FAMILY_BYTES, &data);
	if (!ret && datum.has_label)
		ret = take_label(row, datum.label);
	if (!ret && datum.has_shape) {
		ret = take_integer(row, "channels", datum.channels);
		ret = ret ? ret : take_integer(row, "height", datum.height);
		ret = ret ? ret : take_integer(row, "width", datum.width);
	}
	if (!ret && datum.floats)
		ret = take_floats(row, message, size, datum.floats);
	return ret;
}
