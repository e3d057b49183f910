/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_record.c - a record against the digests section and its columns
 *
 * One report per record: the first error, in the order in
 * which a reader would encounter it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/verify/check_record.h"

/* Blocks that the numbers of one piece of work touch, and one to spare. */
#define DIGEST_BLOCKS 34u
#define COLUMN_BLOCKS 10u

int stele_verify_record_init(struct stele_verify_record *vr,
			     struct stele_segment_check *sc)
{
	const struct stele_segment *segment = &sc->segment;
	uint32_t scalar = 0;
	int ret;

	memset(vr, 0, sizeof(*vr));
	vr->sc = sc;
	stele_payload_check_init(&vr->fields, segment->fields,
				 segment->descriptor.field_count);
	ret = stele_hash_new(&vr->hash);
	if (ret == 0)
		ret = stele_check_window_open(sc, STELE_BLOCK_DIGESTS,
					      STELE_NO_FIELD, DIGEST_BLOCKS,
					      &vr->digests);
	for (uint32_t i = 0; i < segment->descriptor.field_count; i++) {
		if (!stele_field_is_scalar(segment->fields[i].type))
			continue;
		if (ret == 0 || ret == -ENOENT)
			ret = stele_check_window_open(
				sc, STELE_BLOCK_COLUMN, i, COLUMN_BLOCKS,
				&vr->columns[scalar++]);
	}
	return ret == -ENOENT ? 0 : ret;
}

void stele_verify_record_release(struct stele_verify_record *vr)
{
	struct stele_segment_check *sc = vr->sc;

	stele_hash_free(vr->hash);
	stele_check_window_release(&vr->digests);
	for (uint32_t i = 0; i < STELE_FIELD_COUNT_MAX; i++)
		stele_check_window_release(&vr->columns[i]);
	pthread_mutex_lock(&sc->check->lock);
	sc->payload_size += vr->payload_size;
	sc->records_size += vr->records_size;
	sc->records_damaged |= vr->damaged;
	pthread_mutex_unlock(&sc->check->lock);
}

static struct stele_check_entry *entry_of(const struct stele_verify_record *vr)
{
	return &vr->sc->entries[vr->check.number - vr->sc->first];
}

static bool may_be_void(const struct stele_segment_check *sc, uint64_t number)
{
	return sc->void_any || stele_deleted_has(&sc->voids, number, NULL);
}

void stele_verify_record_begin(struct stele_verify_record *vr, uint64_t number,
			       uint64_t slot_size, const void *tail,
			       uint64_t tail_size)
{
	vr->check = (struct stele_record_check){
		.segment = &vr->sc->segment,
		.number = number,
		.slot_size = slot_size,
		.hash = vr->hash,
		.fields = &vr->fields,
	};
	stele_record_check_begin(&vr->check, tail, tail_size);
	if ((vr->check.record.flags & STELE_RECORD_VOID) &&
	    may_be_void(vr->sc, number))
		vr->check.flags |= STELE_RECORD_MAY_BE_VOID;
}

static void hex(const uint8_t *digest, char *text)
{
	for (unsigned int i = 0; i < STELE_DIGEST_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

/* Return: is it the one of the digests section (or is that not known)? */
static bool check_digest(struct stele_verify_record *vr)
{
	const struct stele_disk_block *block = stele_check_window_get(
		&vr->digests, vr->check.number / STELE_DIGESTS_PER_BLOCK);
	char found[2 * STELE_DIGEST_SIZE + 1], expected[sizeof(found)];
	const uint8_t *digest = vr->check.digest;
	const uint8_t *want;

	if (!block)
		return true;
	want = stele_digest_entry(block, vr->check.number);
	if (memcmp(digest, want, STELE_DIGEST_SIZE) == 0)
		return true;
	hex(digest, found);
	hex(want, expected);
	stele_check_bad(vr->sc, vr->check.number, -EBADMSG,
			"sha256 %s, expected %s", found, expected);
	return false;
}

static bool check_scalars(struct stele_verify_record *vr)
{
	const uint64_t index = vr->check.number / STELE_COLUMN_PER_BLOCK;

	for (uint32_t i = 0; i < vr->sc->segment.shape.scalar_count; i++) {
		const struct stele_disk_block *block =
			stele_check_window_get(&vr->columns[i], index);
		const struct stele_disk_column *column;
		uint64_t found, want;

		if (!block)
			continue;
		column = (const void *)block->payload;
		want = le64_get(column->values[vr->check.number %
					       STELE_COLUMN_PER_BLOCK]);
		found = le64_get(vr->check.record.scalars[i]);
		if (found == want)
			continue;
		stele_check_bad(vr->sc, vr->check.number, -EUCLEAN,
				"scalar %" PRIu32 " is 0x%" PRIx64
				", its column says 0x%" PRIx64,
				i, found, want);
		return false;
	}
	return true;
}

/* Return: is the record sound? Otherwise it has been reported. */
static bool judge(struct stele_verify_record *vr)
{
	int ret = stele_record_check_end(&vr->check);

	if (ret < 0) {
		stele_check_bad(vr->sc, vr->check.number, ret, "%s",
				vr->check.why);
		return false;
	}
	return check_digest(vr) && check_scalars(vr);
}

void stele_verify_record_end(struct stele_verify_record *vr)
{
	const struct stele_record *record = &vr->check.record;
	struct stele_check_entry *entry = entry_of(vr);

	if (!judge(vr)) {
		vr->damaged = true;
		entry->size_and_flags = STELE_ENTRY_DAMAGED;
		return;
	}
	vr->payload_size += record->payload_size;
	vr->records_size += record->payload_size + record->key_size +
			    stele_record_tail_fixed(&vr->sc->segment.shape);
	entry->size_and_flags = record->payload_size;
	if (record->flags & STELE_RECORD_VOID)
		entry->size_and_flags |= STELE_ENTRY_VOID;
	entry->key_hash = stele_check_key_hash(record->key, record->key_size);
}

void stele_verify_record_unreadable(struct stele_verify_record *vr,
				    uint64_t number, int error)
{
	vr->check.number = number;
	vr->damaged = true;
	entry_of(vr)->size_and_flags = STELE_ENTRY_DAMAGED;
	stele_check_bad(vr->sc, number, error, "cannot be read");
}
