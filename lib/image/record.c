/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - see record.h
 *
 * A slot may lie in memory that others write to (a view): sizes are those of the
 * one copy of the trailer that begin has made, and bound everything that follows.
 */
#include "lib/image/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/crc32c.h"
#include "format/decode.h"
#include "lib/image/deleted.h"

int stele_record_check_begin(struct stele_record_check *c, const void *tail,
			     uint64_t tail_size)
{
	const struct stele_record_shape *shape = &c->segment->shape;
	le32 stored = le32_put(0);

	c->position = 0;
	c->padding_used = c->ended = false;
	c->why = "";
	c->crc = stele_record_seed(c->segment->descriptor.id, c->number);
	c->error = stele_record_decode_tail(tail, tail_size, c->slot_size, shape,
					    &c->record, &c->impossible);
	if (c->error) {
		/* The checksum still tells damage from what was written so. */
		if (tail_size >= STELE_TRAILER_SIZE)
			memcpy(&stored, (const char *)tail + tail_size -
						sizeof(stored), sizeof(stored));
		c->record = (struct stele_record){.crc = le32_get(stored)};
		return c->error;
	}
	c->tail_at = c->slot_size - c->record.key_size -
		     stele_record_tail_fixed(shape);
	c->wrong = NULL;
	if (c->fields && !(c->record.flags & STELE_RECORD_VOID))
		c->wrong = stele_payload_check_begin(c->fields, c->record.ends,
						     c->record.payload_size);
	if (c->hash)
		stele_hash_begin(c->hash, STELE_HASH_LEAF);
	return 0;
}

void stele_record_check_add(struct stele_record_check *c, const uint8_t *data,
			    uint64_t size)
{
	const uint64_t crc_at = c->slot_size - sizeof(le32);
	const uint64_t at = c->position;
	const uint8_t *p;
	uint64_t n;

	c->position += size;
	if (c->flags & STELE_RECORD_UNCHECKED)
		return;
	p = stele_record_part(data, at, size, 0, crc_at, &n);
	c->crc = stele_crc32c(c->crc, p, n);
	if (c->error)
		return;
	p = stele_record_part(data, at, size, c->record.payload_size,
			      c->tail_at, &n);
	c->padding_used |= !bytes_zero(p, n);
	p = stele_record_part(data, at, size, 0, c->record.payload_size, &n);
	if (c->fields && !c->wrong)
		c->wrong = stele_payload_check_add(c->fields, p, n);
	if (!c->hash)
		return;
	stele_hash_add(c->hash, p, n);
	p = stele_record_part(data, at, size, c->tail_at, crc_at, &n);
	stele_hash_add(c->hash, p, n);
}

static bool may_be_void(const struct stele_record_check *c)
{
	return c->flags & STELE_RECORD_MAY_BE_VOID ||
	       stele_deleted_has(&c->segment->deleted, c->number, NULL);
}

/* Beyond the structure of the tail. Empty: nothing is wrong. */
static const char *check_rules(const struct stele_record_check *c)
{
	const struct stele_record *record = &c->record;
	const uint64_t size = record->payload_size + (c->slot_size - c->tail_at);

	if (c->padding_used)
		return "record: padding not zero";
	if (record->flags & STELE_RECORD_VOID)
		return may_be_void(c) ? "" :
					"record: void, but the sample is live";
	if (c->flags & STELE_RECORD_UNCHECKED)
		return "";
	if (stele_slot_size(size, c->segment->descriptor.granule) !=
	    c->slot_size)
		return "record: too small for its slot";
	return "";
}

/* Do the bytes follow the types of their fields? */
static const char *check_fields(struct stele_record_check *c)
{
	if (!c->fields || c->record.flags & STELE_RECORD_VOID)
		return "";
	if (!c->wrong)
		c->wrong = stele_payload_check_end(c->fields);
	if (!c->wrong)
		return "";
	snprintf(c->text, sizeof(c->text), "field '%s' %s",
		 c->fields->fields[c->fields->field].name, c->wrong);
	return c->text;
}

int stele_record_check_end(struct stele_record_check *c)
{
	if (c->hash && !c->error && !c->ended)
		stele_hash_end(c->hash, c->digest);
	c->ended = true;
	if (!(c->flags & STELE_RECORD_UNCHECKED) &&
	    c->slot_size >= STELE_TRAILER_SIZE && c->crc != c->record.crc) {
		snprintf(c->text, sizeof(c->text), "crc32c 0x%08" PRIx32
			 ", expected 0x%08" PRIx32, c->crc, c->record.crc);
		c->why = c->text;
		return -EBADMSG;
	}
	c->why = c->error ? c->impossible : check_rules(c);
	if (!*c->why)
		c->why = check_fields(c);
	return *c->why ? -EUCLEAN : 0;
}

int stele_record_check_slot(struct stele_record_check *c, const void *slot)
{
	if (stele_record_check_begin(c, slot, c->slot_size) == 0)
		c->record.payload = slot;
	stele_record_check_add(c, slot, c->slot_size);
	return stele_record_check_end(c);
}
