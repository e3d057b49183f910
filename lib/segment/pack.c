/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c - payload, padding, tail
 */
#include "lib/segment/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/block.h"
#include "format/crc32c.h"

#define CRC_SIZE  sizeof(le32)
#define WIPE_SIZE (UINT64_C(256) << 10)

static size_t at_most(uint64_t a, size_t b)
{
	return a < b ? (size_t)a : b;
}

/* Return: 0; errno of the stream. *lost: the source failed. */
static int copy_piece(struct stele_packer *packer, int *lost)
{
	uint8_t *data;
	size_t room;
	int64_t got;
	int ret = stele_stream_room(&packer->stream, &data, &room);

	if (ret < 0)
		return ret;
	/* A byte too many is overwritten by what comes next. */
	got = stele_source_reader_read(&packer->reader, data, room);
	if (got < 0) {
		*lost = (int)got;
		return 0;
	}
	packer->crc = stele_crc32c(packer->crc, data, (size_t)got);
	stele_hash_add(packer->hash, data, (size_t)got);
	__atomic_add_fetch(packer->bytes, (uint64_t)got, __ATOMIC_RELAXED);
	return stele_stream_advance(&packer->stream, (size_t)got);
}

/* *done: bytes that went into the stream. */
static int copy_payload(struct stele_packer *packer,
			const struct stele_plan_sample *sample, uint64_t *done,
			int *lost)
{
	struct stele_source_reader *reader = &packer->reader;
	int ret = 0;

	*lost = stele_source_reader_open(reader, &sample->entry);
	while (!ret && !*lost && reader->left) {
		if (__atomic_load_n(packer->stop, __ATOMIC_RELAXED))
			ret = -ECANCELED;
		else
			ret = copy_piece(packer, lost);
	}
	if (!ret && !*lost)
		*lost = stele_source_reader_end(reader);
	stele_source_reader_close(reader);
	*done = sample->entry.data_size - reader->left;
	return ret;
}

static int put_zeros(struct stele_packer *packer, uint64_t size, bool counted)
{
	while (size) {
		uint8_t *data;
		size_t room, n;
		int ret = stele_stream_room(&packer->stream, &data, &room);

		if (ret < 0)
			return ret;
		n = at_most(size, room);
		memset(data, 0, n);
		if (counted)
			packer->crc = stele_crc32c(packer->crc, data, n);
		ret = stele_stream_advance(&packer->stream, n);
		if (ret < 0)
			return ret;
		size -= n;
	}
	return 0;
}

int stele_pack_zeros(struct stele_packer *packer, uint64_t size)
{
	return put_zeros(packer, size, false);
}

static int put_bytes(struct stele_packer *packer, const uint8_t *bytes,
		     size_t size)
{
	while (size) {
		uint8_t *data;
		size_t room, n;
		int ret = stele_stream_room(&packer->stream, &data, &room);

		if (ret < 0)
			return ret;
		n = at_most(size, room);
		memcpy(data, bytes, n);
		ret = stele_stream_advance(&packer->stream, n);
		if (ret < 0)
			return ret;
		bytes += n;
		size -= n;
	}
	return 0;
}

/* Write the tail into packer->tail. Returns where it begins. */
static uint8_t *make_tail(struct stele_packer *packer,
			  const struct stele_plan_sample *sample,
			  uint32_t flags, size_t *size)
{
	const bool gone = flags & STELE_RECORD_VOID;
	static const uint64_t zeros[STELE_FIELD_COUNT_MAX];
	uint8_t *end = packer->tail + sizeof(packer->tail);

	*size = stele_record_put_tail(
		&packer->plan->fields.shape, end,
		gone ? 0 : sample->entry.data_size, sample->entry.key,
		gone ? 0 : (uint32_t)sample->entry.key_size,
		gone ? zeros : packer->reader.record_ends,
		gone ? zeros : packer->reader.scalars, flags);
	return end - *size;
}

/* Checksum and digest are complete with the tail, which goes out. */
static int put_tail(struct stele_packer *packer, uint8_t *tail, size_t size,
		    uint8_t digest[32])
{
	le32 crc;

	packer->crc = stele_crc32c(packer->crc, tail, size - CRC_SIZE);
	stele_hash_add(packer->hash, tail, size - CRC_SIZE);
	stele_hash_end(packer->hash, digest);
	crc = le32_put(packer->crc);
	memcpy(tail + size - CRC_SIZE, &crc, CRC_SIZE);
	return put_bytes(packer, tail, size);
}

static void begin_sums(struct stele_packer *packer, uint64_t number)
{
	packer->crc = stele_record_seed(packer->plan->descriptor.id, number);
	stele_hash_begin(packer->hash, STELE_HASH_LEAF);
}

static void count_zeros(struct stele_packer *packer, uint64_t size)
{
	static const uint8_t zeros[STELE_BLOCK_SIZE];

	while (size) {
		size_t n = at_most(size, sizeof(zeros));

		packer->crc = stele_crc32c(packer->crc, zeros, n);
		size -= n;
	}
}

/* `done` bytes of the slot are in the stream, and have to be taken for zero. */
static int pack_void(struct stele_packer *packer, uint64_t number,
		     const struct stele_plan_sample *sample, uint64_t done,
		     uint8_t digest[32])
{
	size_t tail_size;
	uint8_t *tail = make_tail(packer, sample, STELE_RECORD_VOID,
				  &tail_size);
	uint64_t end = sample->slot_size - tail_size;
	int ret;

	begin_sums(packer, number);
	count_zeros(packer, done);
	ret = put_zeros(packer, end - done, true);
	return ret ? ret : put_tail(packer, tail, tail_size, digest);
}

int stele_pack(struct stele_packer *packer, uint64_t number,
	       uint8_t digest[32], struct stele_void *gone)
{
	struct stele_plan_sample sample;
	uint64_t done;
	size_t tail_size;
	uint8_t *tail;
	int lost, ret;

	stele_plan_sample(packer->plan, number, &sample);
	begin_sums(packer, number);
	ret = copy_payload(packer, &sample, &done, &lost);
	if (ret < 0)
		return ret;
	/* After another's failure, or told to stop: there is nothing more to say. */
	if (lost && __atomic_load_n(packer->stop, __ATOMIC_RELAXED))
		return -ECANCELED;
	if (lost) {
		ret = stele_builder_lost(packer->builder, sample.entry.key,
					 sample.entry.key_size, lost,
					 packer->reader.why);
		if (!ret)
			ret = pack_void(packer, number, &sample, done, digest);
		*gone = (struct stele_void){number, done};
		return ret ? ret : 1;
	}
	tail = make_tail(packer, &sample, 0, &tail_size);
	ret = put_zeros(packer, sample.slot_size - tail_size - done, true);
	return ret ? ret : put_tail(packer, tail, tail_size, digest);
}

int stele_pack_look(struct stele_packer *packer, uint64_t number,
		    struct stele_void *gone)
{
	struct stele_source_reader *reader = &packer->reader;
	struct stele_plan_sample sample;
	int lost;

	stele_plan_sample(packer->plan, number, &sample);
	lost = stele_source_reader_open(reader, &sample.entry);
	stele_source_reader_close(reader);
	if (!lost)
		return 0;
	*gone = (struct stele_void){.number = number};
	lost = stele_builder_lost(packer->builder, sample.entry.key,
				  sample.entry.key_size, lost, reader->why);
	return lost ? lost : 1;
}

/* Zero the bytes [from, to) of blocks that hold others, too. */
static int wipe_piece(struct stele_device *dev, uint8_t *buffer, uint64_t from,
		      uint64_t to)
{
	const uint64_t begin = round_down(from, STELE_BLOCK_SIZE);
	const size_t size = round_up(to, STELE_BLOCK_SIZE) - begin;
	int ret = stele_device_read(dev, buffer, begin, size);

	if (ret < 0)
		return ret;
	memset(buffer + (from - begin), 0, to - from);
	return stele_device_write(dev, buffer, begin, size);
}

int stele_pack_wipe(const struct stele_plan *plan, struct stele_device *dev,
		    const struct stele_void *gone)
{
	uint64_t from = plan->descriptor.offset +
			stele_plan_offset(plan, gone->number);
	const uint64_t end = from + gone->written;
	uint8_t *buffer;
	int ret = 0;

	if (!gone->written)
		return 0;
	buffer = stele_device_alloc(dev, WIPE_SIZE);
	if (!buffer)
		return -ENOMEM;
	while (from < end && !ret) {
		uint64_t to = round_down(from, STELE_BLOCK_SIZE) + WIPE_SIZE;

		if (to > end)
			to = end;
		ret = wipe_piece(dev, buffer, from, to);
		from = to;
	}
	free(buffer);
	return ret;
}
