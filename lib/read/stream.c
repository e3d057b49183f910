/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - one sample, piece by piece, or a part of it
 *
 * What fits twice into the memory that is allowed is read as a whole, and read
 * once more if its checksum does not match: then every piece is right. Of a
 * larger sample that cannot be promised.
 *
 * A checksum is of a whole record: a part is checked by reading all of it, and only
 * that part is kept. Unless nothing is to be checked: then no other blocks are read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"

#include "lib/image/proof.h"
#include "lib/image/record_stream.h"
#include "lib/read/sample.h"

#define MEMORY_SIZE (UINT64_C(8) << 20)
#define WHOLE_SIZE  (MEMORY_SIZE / 2)

static int stream_whole(struct stele_dataset *ds, uint64_t id,
			stele_stream_fn fn, void *user)
{
	struct stele_sample sample;
	int ret = stele_dataset_read(ds, id, &sample);

	if (ret == 0 && sample.size)
		ret = fn(user, sample.data, sample.size);
	stele_sample_release(&sample);
	return ret;
}

static int stream_pieces(struct stele_dataset *ds, const struct stele_slot *slot,
			 struct stele_record_stream *stream,
			 struct stele_proof *proof, stele_stream_fn fn,
			 void *user)
{
	const void *data;
	size_t size;
	int ret;

	ret = stele_record_stream_begin(stream, slot->segment, slot->number,
					ds->verify == STELE_VERIFY_NONE ?
						STELE_RECORD_UNCHECKED : 0,
					proof->hash);
	while (ret == 0 &&
	       (ret = stele_record_stream_next(stream, &data, &size)) > 0) {
		ret = fn(user, data, size);
		if (ret)
			return ret;
	}
	if (ret == 0 && proof->hash)
		ret = stele_proof_check(proof, slot->segment, slot->number,
					stream->check.digest);
	ret = stele_slot_judge(ds, slot, ret);
	if (ret < 0 && ret != -ESTALE && *stream->check.why)
		stele_slot_log_damage(ds, slot, STELE_LOG_ERROR, stream->check.why);
	return ret;
}

static int dataset_stream(struct stele_dataset *ds, uint64_t id,
			  stele_stream_fn fn, void *user)
{
	struct stele_record_stream stream = {0};
	struct stele_proof proof = {0}; /* has no hash: not asked for */
	struct stele_slot slot;
	int ret;

	ret = stele_slot_locate(ds, id, &slot);
	if (ret < 0)
		return ret;
	if (slot.read_size <= WHOLE_SIZE)
		return stream_whole(ds, id, fn, user);
	if (ds->verify == STELE_VERIFY_DIGEST)
		ret = stele_proof_init(&proof, &ds->image, 0);
	if (ret == 0)
		ret = stele_record_stream_open(&stream, ds->image.dev,
					       MEMORY_SIZE);
	if (ret == 0)
		ret = stream_pieces(ds, &slot, &stream, &proof, fn, user);
	stele_record_stream_close(&stream);
	stele_proof_release(&proof);
	return ret;
}

int stele_dataset_stream(struct stele_dataset *ds, uint64_t id,
			 stele_stream_fn fn, void *user)
{
	return STELE_CALL(dataset_stream(ds, id, fn, user),
			  "cannot read sample %" PRIu64, id);
}

/* ---- a part ------------------------------------------------------------------ */

struct part {
	uint8_t *to;
	uint64_t offset, size; /* that are wanted */
	uint64_t at, got;      /* bytes that went by; of these, wanted */
};

static int keep_part(void *user, const void *data, size_t size)
{
	struct part *part = user;
	const uint64_t begin = part->offset > part->at ?
				       part->offset - part->at : 0;
	const uint64_t left = part->size - part->got;

	if (begin < size && left) {
		const uint64_t count = size - begin < left ? size - begin : left;

		memcpy(part->to + part->got, (const uint8_t *)data + begin, count);
		part->got += count;
	}
	part->at += size;
	return 0;
}

/* Bytes of the sample, by the record's end. Return: 0; -EBADMSG; -EUCLEAN; errno. */
static int payload_of(struct stele_dataset *ds, const struct stele_slot *slot,
		      uint64_t *size)
{
	const uint64_t tail = slot->size < STELE_RECORD_TAIL_MAX ?
				      slot->size : STELE_RECORD_TAIL_MAX;
	const uint32_t block = ds->image.dev->limits.logical_block;
	const uint64_t tail_offset = slot->offset + slot->size - tail;
	const uint64_t begin = round_down(tail_offset, block);
	const uint64_t end = slot->read_offset + slot->read_size;
	uint8_t *memory = stele_device_alloc(ds->image.dev, end - begin);
	struct stele_record record;
	const char *why;
	int ret;

	if (!memory)
		return -ENOMEM;
	ret = stele_device_read(ds->image.dev, memory, begin, end - begin);
	if (ret == 0)
		ret = stele_record_decode_tail(memory + (tail_offset - begin),
					       tail, slot->size,
					       &slot->segment->shape, &record,
					       &why);
	if (ret == 0)
		*size = record.payload_size;
	free(memory);
	return ret;
}

/* Whole blocks go through memory of our own: the caller's need not be aligned. */
static int read_blocks(struct stele_dataset *ds, uint64_t offset, uint64_t size,
		       uint8_t *to)
{
	const uint32_t block = ds->image.dev->limits.logical_block;
	const uint64_t room = WHOLE_SIZE;
	uint8_t *memory = stele_device_alloc(ds->image.dev, room);
	int ret = memory ? 0 : -ENOMEM;

	while (!ret && size) {
		const uint64_t begin = round_down(offset, block);
		const uint64_t most = room - (offset - begin);
		const uint64_t count = size < most ? size : most;

		ret = stele_device_read(ds->image.dev, memory, begin,
					round_up(offset + count, block) - begin);
		if (!ret)
			memcpy(to, memory + (offset - begin), count);
		to += count;
		offset += count;
		size -= count;
	}
	free(memory);
	return ret;
}

static int read_unchecked(struct stele_dataset *ds, uint64_t id,
			  struct part *part)
{
	struct stele_slot slot;
	uint64_t size;
	int ret = stele_slot_locate(ds, id, &slot);

	if (ret < 0)
		return ret;
	ret = payload_of(ds, &slot, &size);
	if (!ret && part->offset < size) {
		size -= part->offset;
		part->got = part->size < size ? part->size : size;
		ret = read_blocks(ds, slot.offset + part->offset, part->got,
				  part->to);
	}
	return ret < 0 ? stele_slot_judge(ds, &slot, ret) : 0;
}

static int read_range(struct stele_dataset *ds, uint64_t id, uint64_t offset,
		      uint64_t size, void *buffer, uint64_t *got)
{
	struct part part = {.to = buffer, .offset = offset, .size = size};
	int ret;

	*got = 0;
	if (size && !buffer)
		return -EINVAL;
	ret = ds->verify == STELE_VERIFY_NONE ?
		      read_unchecked(ds, id, &part) :
		      dataset_stream(ds, id, keep_part, &part);
	if (!ret)
		*got = part.got;
	return ret;
}

int stele_dataset_read_range(struct stele_dataset *ds, uint64_t id,
			     uint64_t offset, uint64_t size, void *buffer,
			     uint64_t *got)
{
	return STELE_CALL(read_range(ds, id, offset, size, buffer, got),
			  "cannot read %" PRIu64 " bytes at %" PRIu64
			  " of sample %" PRIu64, size, offset, id);
}
