/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c - the stream of class names of a field
 */
#include "format/sections.h"

#include "format/decode.h"

#define NAME_SIZE_MAX 4000u

int stele_names_next(const struct stele_disk_block *blocks, uint64_t count,
		     uint64_t stream_size, uint64_t *position, char *name)
{
	uint64_t at = *position;
	uint32_t size;
	le16 head;

	if (!range_ok(at, sizeof(head), stream_size) ||
	    !stele_stream_get(blocks, count, at, &head, sizeof(head)))
		return -EUCLEAN;
	at += sizeof(head);
	size = le16_get(head);
	if (size == 0 || size > NAME_SIZE_MAX ||
	    !range_ok(at, size, stream_size) ||
	    !stele_stream_get(blocks, count, at, name, size) ||
	    memchr(name, '\0', size))
		return -EUCLEAN;
	name[size] = '\0';
	*position = at + size;
	return (int)size;
}
