/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.c - one sample: place, checks, fields, and the one-shot read
 *
 * What comes from a device is hostile until its checksum has matched; and with
 * checks off it stays so: the bounds of all parts are checked in any case. What
 * a view shows may change after it was checked: no size is used that was not held
 * against the slot since it was read. A live id is never a void record, whatever a
 * deleted list says.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "format/field.h"
#include "lib/image/proof.h"
#include "lib/image/record.h"
#include "lib/image/stale.h"
#include "lib/read/reader.h"
#include "lib/read/sample.h"

#define NO_SUCH_FIELD UINT32_MAX

int stele_slot_locate(const struct stele_dataset *ds, uint64_t id,
		      struct stele_slot *out)
{
	uint32_t block = ds->image.dev->limits.logical_block;
	uint64_t end;
	int err;

	memset(out, 0, sizeof(*out));
	out->id = id;
	err = stele_snapshot_locate(&ds->snapshot, id, &out->segment,
				    &out->number);
	if (err)
		return err;
	stele_segment_slot(out->segment, out->number, &out->offset,
			   &out->size);
	if (!checked_add(out->offset, out->size, &end) ||
	    !checked_round_up(end, block, &end))
		return -EUCLEAN;
	out->read_offset = round_down(out->offset, block);
	out->read_size = end - out->read_offset;
	return 0;
}

int stele_slot_judge(const struct stele_dataset *ds,
		     const struct stele_slot *slot, int error)
{
	const struct stele_segment *segment = slot->segment;

	if (!segment) /* it has none: out of range */
		return error;
	return stele_image_judge(&ds->image, segment->descriptor.id,
				 segment->descriptor.offset, error);
}

/*
 * What is final is no damage where the snapshot is gone: that is said once, and not of each
 * sample. Return: `err`; -ESTALE.
 */
static int complain(const struct stele_dataset *ds, const struct stele_slot *slot,
		    int err, enum stele_log_level level, const char *why)
{
	if (level == STELE_LOG_ERROR)
		err = stele_slot_judge(ds, slot, err);
	if (err != -ESTALE && *why)
		stele_slot_log_damage(ds, slot, level, why);
	return err;
}

void stele_slot_log_damage(const struct stele_dataset *ds, const struct stele_slot *slot,
			   enum stele_log_level level, const char *why)
{
	stele_log_emit(&ds->image.log, level,
		       "sample %" PRIu64 " at offset %" PRIu64 ", %" PRIu64 " bytes: %s",
		       slot->id, slot->offset, slot->size, why);
}

int stele_sample_decode(const struct stele_dataset *ds,
			const struct stele_slot *slot, const void *data,
			enum stele_verify verify, struct stele_proof *proof,
			enum stele_log_level level,
			struct stele_sample *sample)
{
	struct stele_record_check check;
	const struct stele_record *record = &check.record;
	int err;

	/* One by one: zeroing the rest takes 10 ns of the 70 that a small sample does. */
	check.segment = slot->segment;
	check.number = slot->number;
	check.slot_size = slot->size;
	check.flags = verify == STELE_VERIFY_NONE ? STELE_RECORD_UNCHECKED : 0;
	check.hash = verify == STELE_VERIFY_DIGEST ? proof->hash : NULL;
	check.fields = NULL;
	err = stele_record_check_slot(&check, data);
	if (!err && check.hash)
		err = stele_proof_check(proof, slot->segment, slot->number,
					check.digest);
	if (err) /* only a checksum may be right the next time */
		err = complain(ds, slot, err, err == -EBADMSG ? level : STELE_LOG_ERROR,
			       check.why);

	*sample = (struct stele_sample){
		.id = slot->id,
		.tag = sample->tag,
		.buffer = sample->buffer,
		.status = err,
		.ds = ds,
	};
	if (!err) {
		sample->data = record->payload;
		sample->size = record->payload_size;
		sample->key = record->key;
		sample->key_size = record->key_size;
		/* The ends and scalars follow the key. */
		sample->tail = record->key + record->key_size;
	}
	return err;
}

void stele_slot_log_again(const struct stele_dataset *ds,
			  const struct stele_slot *slot)
{
	stele_log_warning(&ds->image.log,
			  "sample %" PRIu64 " at offset %" PRIu64 ", %" PRIu64
			  " bytes: the checksum matched only when it was read again",
			  slot->id, slot->offset, slot->size);
}

/* ---- fields ---------------------------------------------------------------- */

/* Ordinal of this field among fields of its kind: with bytes, or scalars. */
static uint32_t field_ordinal(const struct stele_segment *segment,
			      uint32_t index)
{
	bool scalar = stele_field_is_scalar(segment->fields[index].type);
	uint32_t ordinal = 0;

	for (uint32_t i = 0; i < index; i++)
		ordinal += stele_field_is_scalar(segment->fields[i].type) == scalar;
	return ordinal;
}

/* The segment whose schema all share; NULL for a sample that failed. */
static const struct stele_segment *schema_of(const struct stele_sample *sample)
{
	if (sample->status || !sample->tail || !sample->ds)
		return NULL;
	return &sample->ds->snapshot.segments[0];
}

static int check_there(const struct stele_sample *sample)
{
	if (!sample->reader)
		return 0;
	if (!stele_reader_is_open(sample->serial)) {
		stele_error_explain(-EOWNERDEAD, "its reader was closed");
		return -EOWNERDEAD;
	}
	return stele_reader_is_forked(sample->reader) ? -EOWNERDEAD : 0;
}

/* A field of another type than is asked for. */
static int other_type(const char *what)
{
	stele_error_explain(-EINVAL, what);
	return -EINVAL;
}

/* Of a view it lies in memory that others may write to: each value is read once. */
static uint64_t tail_value(const struct stele_sample *sample, uint32_t index)
{
	le64 value;

	le_copy_once(&value, (const char *)sample->tail + index * sizeof(value),
		     sizeof(value));
	return le64_get(value);
}

static int sample_bytes(const struct stele_sample *sample, uint32_t field,
			const void **data, uint64_t *size)
{
	const struct stele_segment *segment = schema_of(sample);
	uint64_t begin, end;
	uint32_t ordinal;
	int err;

	if (!segment || field >= segment->descriptor.field_count)
		return -ERANGE;
	if (stele_field_is_scalar(segment->fields[field].type))
		return other_type("it has a number, and no bytes");
	err = check_there(sample);
	if (err)
		return err;
	ordinal = field_ordinal(segment, field);
	begin = ordinal ? tail_value(sample, ordinal - 1) : 0;
	end = ordinal + 1 < segment->shape.bytes_count
		      ? tail_value(sample, ordinal)
		      : sample->size;
	/* They were in order when they were checked. */
	if (begin > end || end > sample->size)
		return -EUCLEAN;
	*data = (const char *)sample->data + begin;
	*size = end - begin;
	return 0;
}

int stele_sample_bytes(const struct stele_sample *sample, uint32_t field,
		       const void **data, uint64_t *size)
{
	return STELE_CALL(sample_bytes(sample, field, data, size),
			  "cannot get field %" PRIu32 " of sample %" PRIu64,
			  field, sample->id);
}

static int shape(const struct stele_sample *sample, uint32_t field,
		 uint64_t dims[STELE_RANK_MAX])
{
	const struct stele_segment *segment = schema_of(sample);
	const struct stele_descriptor_field *of;
	const void *data;
	uint64_t size, whole;
	int err;

	if (!segment || field >= segment->descriptor.field_count)
		return -ERANGE;
	of = &segment->fields[field];
	if (of->type != STELE_FIELD_TENSOR)
		return other_type("it is no tensor");
	err = sample_bytes(sample, field, &data, &size);
	if (err)
		return err;
	for (uint32_t i = 0; i < of->rank; i++)
		dims[i] = of->dims[i];
	whole = stele_tensor_size(of);
	if (of->rank && !of->dims[0]) {
		dims[0] = size / whole;
		whole *= dims[0];
	}
	return size == whole ? (int)of->rank : -EUCLEAN;
}

int stele_sample_shape(const struct stele_sample *sample, uint32_t field,
		       uint64_t dims[STELE_RANK_MAX])
{
	return STELE_CALL(shape(sample, field, dims),
			  "no shape in field %" PRIu32, field);
}

static int scalar_bits(const struct stele_sample *sample, uint32_t field,
		       uint32_t type, uint64_t *bits)
{
	const struct stele_segment *segment = schema_of(sample);
	uint32_t ends;
	int err;

	if (!segment || field >= segment->descriptor.field_count)
		return -ERANGE;
	if (segment->fields[field].type != type)
		return other_type(type == STELE_FIELD_I64 ? "it is no i64" : "it is no f64");
	err = check_there(sample);
	if (err)
		return err;
	ends = segment->shape.bytes_count ? segment->shape.bytes_count - 1 : 0;
	*bits = tail_value(sample, ends + field_ordinal(segment, field));
	return 0;
}

static int sample_i64(const struct stele_sample *sample, uint32_t field,
		      int64_t *value)
{
	uint64_t bits;
	int err = scalar_bits(sample, field, STELE_FIELD_I64, &bits);

	if (!err)
		*value = (int64_t)bits;
	return err;
}

int stele_sample_i64(const struct stele_sample *sample, uint32_t field,
		     int64_t *value)
{
	return STELE_CALL(sample_i64(sample, field, value),
			  "cannot get field %" PRIu32 " of sample %" PRIu64,
			  field, sample->id);
}

static int sample_f64(const struct stele_sample *sample, uint32_t field,
		      double *value)
{
	uint64_t bits;
	int err = scalar_bits(sample, field, STELE_FIELD_F64, &bits);

	if (!err)
		memcpy(value, &bits, sizeof(bits));
	return err;
}

int stele_sample_f64(const struct stele_sample *sample, uint32_t field,
		     double *value)
{
	return STELE_CALL(sample_f64(sample, field, value),
			  "cannot get field %" PRIu32 " of sample %" PRIu64,
			  field, sample->id);
}

/* ---- one-shot read ------------------------------------------------------- */

int stele_sample_read(const struct stele_dataset *ds,
		      const struct stele_slot *slot, enum stele_verify verify,
		      struct stele_proof *proof, enum stele_log_level level,
		      struct stele_sample *sample)
{
	struct stele_device *dev = ds->image.dev;
	char *buffer = NULL;
	int err = -ENOMEM;

	sample->buffer = NULL;
	if (slot->read_size <= PTRDIFF_MAX)
		buffer = stele_device_alloc(dev, slot->read_size);
	if (!buffer)
		return err;
	err = stele_device_read(dev, buffer, slot->read_offset,
				slot->read_size);
	if (!err)
		err = stele_sample_decode(
			ds, slot, buffer + (slot->offset - slot->read_offset),
			verify, proof, level, sample);
	sample->buffer = buffer;
	return err;
}

static int read_checked(struct stele_dataset *ds, const struct stele_slot *slot,
			struct stele_proof *proof, struct stele_sample *sample)
{
	void *bad;
	int err;

	err = stele_sample_read(ds, slot, ds->verify, proof, STELE_LOG_INFO,
				sample);
	if (err != -EBADMSG)
		return err;
	bad = sample->buffer;
	err = stele_sample_read(ds, slot, ds->verify, proof, STELE_LOG_ERROR,
				sample);
	free(bad); /* last: the second one must land in other memory */
	if (!err)
		stele_slot_log_again(ds, slot);
	return err;
}

static int dataset_read(struct stele_dataset *ds, uint64_t id,
			struct stele_sample *sample)
{
	struct stele_proof proof = {0};
	struct stele_slot slot;
	int err;

	memset(sample, 0, sizeof(*sample));
	err = stele_slot_locate(ds, id, &slot);
	if (!err && ds->verify == STELE_VERIFY_DIGEST)
		err = stele_proof_init(&proof, &ds->image, 0);
	if (!err)
		err = read_checked(ds, &slot, &proof, sample);
	stele_proof_release(&proof);
	if (err) {
		stele_sample_release(sample);
		sample->id = id;
		sample->status = err;
	}
	return err;
}

int stele_dataset_read(struct stele_dataset *ds, uint64_t id,
		       struct stele_sample *sample)
{
	return STELE_CALL(dataset_read(ds, id, sample),
			  "cannot read sample %" PRIu64, id);
}

void stele_sample_release(struct stele_sample *sample)
{
	if (!sample)
		return;
	if (!sample->reader)
		free(sample->buffer);
	else if (sample->buffer && stele_reader_is_open(sample->serial))
		stele_reader_release(sample->reader, sample);
	memset(sample, 0, sizeof(*sample));
}
