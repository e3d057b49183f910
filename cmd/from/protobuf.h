/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protobuf.h - the wire format of Protocol Buffers: a message is a list of parts
 *
 * Nothing is copied, and nothing outside the message is ever touched.
 */
#ifndef STELE_CMD_FROM_PROTOBUF_H
#define STELE_CMD_FROM_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum protobuf_wire {
	PROTOBUF_VARINT = 0,
	PROTOBUF_64 = 1,
	PROTOBUF_BYTES = 2,
	PROTOBUF_32 = 5,
};

/* What is left of a message. */
struct protobuf {
	const uint8_t *at, *end;
	bool wrong;
};

/* One field of it. */
struct protobuf_part {
	uint64_t number;
	uint32_t wire;
	uint64_t value;	      /* of a varint, or of 32 bits */
	const uint8_t *bytes; /* of others */
	size_t size;
};

/* Sets m->wrong where there is none. */
uint64_t protobuf_varint(struct protobuf *m);
/* False: no more, or m->wrong. */
bool protobuf_next(struct protobuf *m, struct protobuf_part *part);
/* The message that a part is. */
struct protobuf protobuf_inside(const struct protobuf_part *part);

#endif
