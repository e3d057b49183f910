/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - one sample, piece by piece
 *
 * What fits twice into the memory that is allowed is read as a whole, and read
 * once more if its checksum does not match: then every piece is right. Of a
 * larger sample that cannot be promised.
 */
#include <errno.h>
#include <inttypes.h>

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
	if (ret < 0 && *stream->check.why)
		stele_log_error(&ds->image.log,
				"sample %" PRIu64 " at offset %" PRIu64
				", %" PRIu64 " bytes: %s",
				slot->id, slot->offset, slot->size,
				stream->check.why);
	if (ret == 0 && proof->hash)
		ret = stele_proof_check(proof, slot->segment, slot->number,
					stream->check.digest);
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
	if (ret < 0)
		ret = stele_slot_judge(ds, &slot, ret);
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
