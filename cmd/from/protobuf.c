/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protobuf.c - see protobuf.h
 */
#include "from/protobuf.h"

uint64_t protobuf_varint(struct protobuf *m)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; m->at < m->end && shift < 64; shift += 7) {
		const uint8_t byte = *m->at++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	m->wrong = true;
	return 0;
}

static void get_bytes(struct protobuf *m, uint64_t size, struct protobuf_part *part)
{
	if (size > (uint64_t)(m->end - m->at)) {
		m->wrong = true;
		return;
	}
	part->bytes = m->at;
	part->size = (size_t)size;
	m->at += size;
}

bool protobuf_next(struct protobuf *m, struct protobuf_part *part)
{
	uint64_t tag;

	if (m->at == m->end || m->wrong)
		return false;
	tag = protobuf_varint(m);
	*part = (struct protobuf_part){.number = tag >> 3, .wire = tag & 7, .bytes = m->at};
	switch (part->wire) {
	case PROTOBUF_VARINT:
		part->value = protobuf_varint(m);
		break;
	case PROTOBUF_64:
		get_bytes(m, 8, part);
		break;
	case PROTOBUF_BYTES:
		get_bytes(m, protobuf_varint(m), part);
		break;
	case PROTOBUF_32:
		get_bytes(m, 4, part);
		break;
	default:
		m->wrong = true;
	}
	return !m->wrong;
}

struct protobuf protobuf_inside(const struct protobuf_part *part)
{
	return (struct protobuf){.at = part->bytes, .end = part->bytes + part->size};
}
