/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_record.c - is this record what checksum, digest and columns say?
 *
 * One report for a record: the first thing that is wrong, in the order in
 * which a reader would meet it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/crc32c.h"
#include "format/decode.h"
#include "lib/verify/check_record.h"
#include "lib/image/deleted.h"

/* Blocks that the numbers of one piece of work touch, and one to spare. */
#define DIGEST_BLOCKS 34u
#define COLUMN_BLOCKS 10u

int stele_record_check_init(struct stele_record_check *rc,
			    struct stele_segment_check *sc)
{
	const struct stele_segment *segment = &sc->segment;
	uint32_t scalar = 0;
	int ret;

	memset(rc, 0, sizeof(*rc));
	rc->sc = sc;
	ret = stele_hash_new(&rc->hash);
	if (ret == 0)
		ret = stele_check_window_open(sc, STELE_BLOCK_DIGESTS,
					      STELE_NO_FIELD, DIGEST_BLOCKS,
					      &rc->digests);
	for (uint32_t i = 0; i < segment->descriptor.field_count; i++) {
		if (!stele_field_is_scalar(segment->fields[i].type))
			continue;
		if (ret == 0 || ret == -ENOENT)
			ret = stele_check_window_open(
				sc, STELE_BLOCK_COLUMN, i, COLUMN_BLOCKS,
				&rc->columns[scalar++]);
	}
	return ret == -ENOENT ? 0 : ret;
}

void stele_record_check_release(struct stele_record_check *rc)
{
	struct stele_segment_check *sc = rc->sc;

	stele_hash_free(rc->hash);
	stele_check_window_release(&rc->digests);
	for (uint32_t i = 0; i < STELE_FIELD_COUNT_MAX; i++)
		stele_check_window_release(&rc->columns[i]);
	pthread_mutex_lock(&sc->check->lock);
	sc->payload_size += rc->payload_size;
	sc->records_size += rc->records_size;
	sc->records_damaged |= rc->damaged;
	pthread_mutex_unlock(&sc->check->lock);
}

void stele_record_check_begin(struct stele_record_check *rc, uint64_t number,
			      uint64_t slot_size, const void *tail,
			      uint64_t tail_size)
{
	rc->number = number;
	rc->slot_size = slot_size;
	rc->position = 0;
	rc->padded = false;
	rc->crc = stele_record_seed(rc->sc->segment.descriptor.id, number);
	rc->error = stele_record_decode_tail(tail, tail_size, slot_size,
					     &rc->sc->segment.shape,
					     &rc->record, &rc->why);
	stele_hash_begin(rc->hash, STELE_HASH_LEAF);
}

void stele_record_check_add(struct stele_record_check *rc, const uint8_t *data,
			    uint64_t size)
{
	const uint64_t crc_at = rc->slot_size - sizeof(le32);
	const uint64_t at = rc->position;
	const uint8_t *p;
	uint64_t n;

	p = stele_record_part(data, at, size, 0, crc_at, &n);
	rc->crc = stele_crc32c(rc->crc, p, n);
	if (rc->error == 0) {
		uint64_t tail = rc->slot_size - rc->record.key_size -
				stele_record_tail_fixed(&rc->sc->segment.shape);

		p = stele_record_part(data, at, size, 0,
				      rc->record.payload_size, &n);
		stele_hash_add(rc->hash, p, n);
		p = stele_record_part(data, at, size, rc->record.payload_size,
				      tail, &n);
		rc->padded |= !bytes_zero(p, n);
		p = stele_record_part(data, at, size, tail, crc_at, &n);
		stele_hash_add(rc->hash, p, n);
	}
	rc->position += size;
}

static struct stele_check_entry *entry_of(const struct stele_record_check *rc)
{
	return &rc->sc->entries[rc->number - rc->sc->first];
}

static bool may_be_void(const struct stele_segment_check *sc, uint64_t number)
{
	const uint64_t below = stele_deleted_below(sc->void_numbers,
						   sc->void_count, number);

	return sc->void_any || (below < sc->void_count &&
				sc->void_numbers[below] == number);
}

/* What a record must be beyond its structure; NULL: it is. */
static const char *check_rules(const struct stele_record_check *rc,
			       uint64_t record_size)
{
	const struct stele_record *record = &rc->record;

	if (rc->padded)
		return "padding is not zero";
	if (record->flags & STELE_RECORD_VOID) {
		if (!may_be_void(rc->sc, rc->number))
			return "a void record that a snapshot does not leave out";
		return NULL;
	}
	if (record->key_size == 0)
		return "no key";
	if (memchr(record->key, '\0', record->key_size))
		return "a zero byte in the key";
	if (stele_slot_size(record_size, rc->sc->segment.descriptor.granule) !=
	    rc->slot_size)
		return "not the slot size of such a record";
	return NULL;
}

static void hex(const uint8_t *digest, char *text)
{
	for (unsigned int i = 0; i < STELE_DIGEST_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

/* Return: is it the one of the digests section (or is that not known)? */
static bool check_digest(struct stele_record_check *rc)
{
	const struct stele_disk_block *block = stele_check_window_get(
		&rc->digests, rc->number / STELE_DIGESTS_PER_BLOCK);
	char found[2 * STELE_DIGEST_SIZE + 1], expected[sizeof(found)];
	uint8_t digest[STELE_DIGEST_SIZE];
	const uint8_t *want;

	stele_hash_end(rc->hash, digest);
	if (!block)
		return true;
	want = stele_digest_entry(block, rc->number);
	if (memcmp(digest, want, sizeof(digest)) == 0)
		return true;
	hex(digest, found);
	hex(want, expected);
	stele_check_bad(rc->sc, rc->number, -EBADMSG,
			"sha256 %s, expected %s", found, expected);
	return false;
}

static bool check_scalars(struct stele_record_check *rc)
{
	const uint64_t index = rc->number / STELE_COLUMN_PER_BLOCK;

	for (uint32_t i = 0; i < rc->sc->segment.shape.scalar_count; i++) {
		const struct stele_disk_block *block =
			stele_check_window_get(&rc->columns[i], index);
		const struct stele_disk_column *column;
		uint64_t found, want;

		if (!block)
			continue;
		column = (const void *)block->payload;
		want = le64_get(column->values[rc->number %
					       STELE_COLUMN_PER_BLOCK]);
		found = le64_get(rc->record.scalars[i]);
		if (found == want)
			continue;
		stele_check_bad(rc->sc, rc->number, -EUCLEAN,
				"scalar %" PRIu32 " is 0x%" PRIx64
				", its column says 0x%" PRIx64,
				i, found, want);
		return false;
	}
	return true;
}

/* Return: is the record sound? Otherwise it has been reported. */
static bool judge(struct stele_record_check *rc, uint64_t record_size)
{
	const char *why;

	if (rc->crc != rc->record.crc) {
		stele_check_bad(rc->sc, rc->number, -EBADMSG,
				"crc32c 0x%08" PRIx32 ", expected 0x%08" PRIx32,
				rc->crc, rc->record.crc);
		return false;
	}
	why = rc->error ? rc->why : check_rules(rc, record_size);
	if (why) {
		stele_check_bad(rc->sc, rc->number, -EUCLEAN, "%s", why);
		return false;
	}
	return check_digest(rc) && check_scalars(rc);
}

void stele_record_check_end(struct stele_record_check *rc)
{
	const struct stele_record *record = &rc->record;
	const uint64_t record_size =
		record->payload_size + record->key_size +
		stele_record_tail_fixed(&rc->sc->segment.shape);
	struct stele_check_entry *entry = entry_of(rc);

	if (!judge(rc, record_size)) {
		rc->damaged = true;
		entry->size_and_flags = STELE_ENTRY_DAMAGED;
		return;
	}
	rc->payload_size += record->payload_size;
	rc->records_size += record_size;
	entry->size_and_flags = record->payload_size;
	if (record->flags & STELE_RECORD_VOID)
		entry->size_and_flags |= STELE_ENTRY_VOID;
	entry->key_hash = stele_check_key_hash(record->key, record->key_size);
}

void stele_record_check_unreadable(struct stele_record_check *rc,
				   uint64_t number, int error)
{
	rc->number = number;
	rc->damaged = true;
	entry_of(rc)->size_and_flags = STELE_ENTRY_DAMAGED;
	stele_check_bad(rc->sc, number, error, "cannot be read");
}
