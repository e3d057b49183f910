/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intent.c - the block in which a writer announces what it is about to do
 *
 * Decisions depend on what another machine wrote here, so
 * each field is checked like those of a catalog.
 */
#include "format/intent.h"

#include "format/decode.h"
#include "format/superblock.h"

void stele_intent_encode(const struct stele_intent_record *record,
			 uint64_t offset, struct stele_disk_intent *out)
{
	const uint32_t count = record->own_count + record->other_count;

	memset(out, 0, sizeof(*out));
	memcpy(out->nonce, record->nonce, sizeof(out->nonce));
	memcpy(out->boot, record->boot, sizeof(out->boot));
	memcpy(out->machine, record->machine, sizeof(out->machine));
	out->namespace = le64_put(record->namespace);
	out->process = le64_put(record->process);
	out->start = le64_put(record->start);
	text_put(out->host, sizeof(out->host), record->host);
	out->own_count = le32_put(record->own_count);
	out->other_count = le32_put(record->other_count);
	out->since = le64_put((uint64_t)record->since);
	for (uint32_t i = 0; i < count; i++) {
		out->extents[i].offset = le64_put(record->extents[i].offset);
		out->extents[i].size = le64_put(record->extents[i].size);
	}
	stele_block_seal((struct stele_disk_block *)out, STELE_BLOCK_INTENT,
			 offset, record->generation);
}

static int extents_read(const struct stele_disk_intent *disk,
			struct stele_intent_record *out, const char **why)
{
	out->own_count = le32_get(disk->own_count);
	out->other_count = le32_get(disk->other_count);
	out->since = (int64_t)le64_get(disk->since);
	if (out->own_count > STELE_INTENT_EXTENTS_MAX ||
	    out->other_count > STELE_INTENT_EXTENTS_MAX - out->own_count)
		return unclean(why, "intent: too many extents");
	if (out->since < 0 || (out->since && !out->other_count))
		return unclean(why, "intent: time out of range");
	for (uint32_t i = 0; i < out->own_count + out->other_count; i++) {
		struct stele_catalog_free *e = &out->extents[i];

		e->offset = le64_get(disk->extents[i].offset);
		e->size = le64_get(disk->extents[i].size);
		if (e->size == 0 || e->offset < STELE_DATA_OFFSET ||
		    !is_aligned(e->offset, STELE_BLOCK_SIZE) ||
		    !is_aligned(e->size, STELE_BLOCK_SIZE) ||
		    !range_ok(e->offset, e->size, STELE_IMAGE_SIZE_MAX))
			return unclean(why, "intent: extent out of range");
	}
	return 0;
}

int stele_intent_decode(const struct stele_disk_intent *disk, uint64_t offset,
			struct stele_intent_record *out, const char **why)
{
	const struct stele_disk_block *block = (const void *)disk;
	int ret = stele_block_check(block, STELE_BLOCK_INTENT,
				    offset, STELE_OWNER_ANY, why);

	if (ret < 0)
		return ret;
	memset(out, 0, sizeof(*out));
	out->generation = le64_get(block->owner);
	memcpy(out->nonce, disk->nonce, sizeof(out->nonce));
	memcpy(out->boot, disk->boot, sizeof(out->boot));
	memcpy(out->machine, disk->machine, sizeof(out->machine));
	out->namespace = le64_get(disk->namespace);
	out->process = le64_get(disk->process);
	out->start = le64_get(disk->start);
	memcpy(out->host, disk->host, sizeof(out->host));
	if (out->generation == 0 || out->generation == UINT64_MAX)
		return unclean(why, "intent: generation out of range");
	if (!text_ok(disk->host, sizeof(disk->host)))
		return unclean(why, "intent: host is not text");
	if (!bytes_zero(disk->reserved1, sizeof(disk->reserved1)))
		return unclean(why, "intent: reserved bytes set");
	return extents_read(disk, out, why);
}
