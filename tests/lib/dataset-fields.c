/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset-fields.c - the fields of a sample, of every type and in any order
 *
 * Schemas that the builder does not write yet: several bytes fields divided by
 * ends, scalars between them. The record is put together by format/, the
 * dataset is a schema and nothing else.
 */
#include <errno.h>
#include <string.h>

#include "lib/read/sample.h"
#include "tests/tap.h"

#define SLOT 256u

static struct stele_descriptor_field fields[] = {
	{.name = "image", .type = STELE_FIELD_BYTES},
	{.name = "label", .type = STELE_FIELD_I64},
	{.name = "caption", .type = STELE_FIELD_UTF8},
	{.name = "score", .type = STELE_FIELD_F64},
	{.name = "empty", .type = STELE_FIELD_BYTES},
	{.name = "mask", .type = STELE_FIELD_TENSOR},
};

struct fixture {
	struct stele_segment segment;
	struct stele_dataset ds;
	struct stele_slot place;
	uint8_t slot[SLOT];
};

static void seal(struct fixture *f)
{
	le32 crc = le32_put(stele_record_crc(42, 7, f->slot, SLOT));

	memcpy(f->slot + SLOT - sizeof(crc), &crc, sizeof(crc));
}

static void init(struct fixture *f)
{
	const uint64_t ends[] = {5, 12, 12};
	const double score = -0.125;
	uint64_t scalars[2] = {(uint64_t)INT64_MIN + 5};

	memset(f, 0, sizeof(*f));
	memcpy(&scalars[1], &score, sizeof(score));
	f->segment.descriptor.id = 42;
	f->segment.descriptor.field_count = 6;
	f->segment.fields = fields;
	f->segment.shape = (struct stele_record_shape){4, 2};
	f->ds.snapshot.segments = &f->segment;
	f->ds.snapshot.segment_count = 1;
	f->place = (struct stele_slot){.id = 3,
				       .segment = &f->segment,
				       .number = 7,
				       .size = SLOT};
	memcpy(f->slot, "pixelcaptionMASK", 16);
	stele_record_put_tail(&f->segment.shape, f->slot + SLOT, 16, "k/1", 3,
			      ends, scalars, 0);
	seal(f);
}

static int decode(struct fixture *f, enum stele_verify verify,
		  struct stele_sample *sample)
{
	return stele_sample_decode(&f->ds, &f->place, f->slot, verify, NULL,
				   STELE_LOG_ERROR, sample);
}

static void is_bytes(const struct stele_sample *sample, uint32_t field,
		     const char *wanted)
{
	const void *data = NULL;
	uint64_t size = 99;

	is_int(0, stele_sample_bytes(sample, field, &data, &size), "%s",
	       fields[field].name);
	is_uint(strlen(wanted), size, "%s: size", fields[field].name);
	ok(data && !memcmp(data, wanted, strlen(wanted)), "%s: bytes",
	   fields[field].name);
}

static void test_types(struct fixture *f)
{
	struct stele_sample sample = {.tag = 5, .buffer = f};
	const void *data;
	uint64_t size;
	int64_t i64;
	double f64;

	is_int(0, decode(f, STELE_VERIFY_CRC, &sample), "decodes");
	ok(sample.id == 3 && sample.tag == 5 && sample.buffer == f, "its own");
	is_bytes(&sample, 0, "pixel");
	is_bytes(&sample, 2, "caption");
	is_bytes(&sample, 4, "");
	is_bytes(&sample, 5, "MASK");
	is_int(0, stele_sample_i64(&sample, 1, &i64), "label");
	is_int(INT64_MIN + 5, i64, "label: value");
	is_int(0, stele_sample_f64(&sample, 3, &f64), "score");
	ok(f64 == -0.125, "score: value");
	is_int(-EINVAL, stele_sample_i64(&sample, 0, &i64), "bytes as i64");
	is_int(-EINVAL, stele_sample_i64(&sample, 3, &i64), "f64 as i64");
	is_int(-EINVAL, stele_sample_f64(&sample, 1, &f64), "i64 as f64");
	is_int(-EINVAL, stele_sample_bytes(&sample, 1, &data, &size),
	       "i64 as bytes");
	is_int(-ERANGE, stele_sample_bytes(&sample, 6, &data, &size), "no field");
	is_int(-ERANGE, stele_sample_i64(&sample, UINT32_MAX, &i64), "nor that");
	sample = (struct stele_sample){.status = -EIO};
	is_int(-ERANGE, stele_sample_f64(&sample, 3, &f64), "of a failed one");
	is_int(-ERANGE, stele_sample_bytes(&sample, 0, &data, &size), "bytes");
}

/* Checksums off: still never a pointer out of the slot. */
static void test_hostile(void)
{
	struct stele_sample sample = {0};
	uint64_t outside = 0, clean = 0;
	struct fixture f;

	for (unsigned int at = SLOT - 100; at < SLOT; at++) {
		for (unsigned int value = 0; value < 256; value++) {
			init(&f);
			f.slot[at] = (uint8_t)value;
			if (decode(&f, STELE_VERIFY_NONE, &sample)) {
				outside += sample.data || sample.tail;
				continue;
			}
			clean++;
			for (uint32_t i = 0; i < 6; i += 2) {
				const void *data;
				uint64_t size;

				stele_sample_bytes(&sample, i, &data, &size);
				outside += !range_ok(
					(uintptr_t)data - (uintptr_t)f.slot,
					size, SLOT);
			}
		}
	}
	is_uint(0, outside, "no byte of the tail leads out of the slot");
	ok(clean > 100, "%ju of them go unseen", (uintmax_t)clean);
	init(&f);
	f.slot[SLOT - 6] = STELE_RECORD_VOID;
	seal(&f);
	is_int(-EUCLEAN, decode(&f, STELE_VERIFY_CRC, &sample), "void");
	init(&f);
	f.place.size = 8;
	is_int(-EUCLEAN, decode(&f, STELE_VERIFY_CRC, &sample), "tiny slot");
	is_int(-EUCLEAN, decode(&f, STELE_VERIFY_NONE, &sample), "unchecked");
}

/* The seed: the same bytes under another number or segment do not pass. */
static void test_seed(struct fixture *f)
{
	struct stele_sample sample = {0};

	f->place.number = 8;
	is_int(-EBADMSG, decode(f, STELE_VERIFY_CRC, &sample), "other number");
	f->place.number = 7;
	f->segment.descriptor.id = 43;
	is_int(-EBADMSG, decode(f, STELE_VERIFY_CRC, &sample), "other segment");
	is_int(0, decode(f, STELE_VERIFY_NONE, &sample), "unchecked");
	f->segment.descriptor.id = 42;
}

int main(void)
{
	struct fixture f;

	plan_lazy();
	init(&f);
	test_types(&f);
	test_seed(&f);
	test_hostile();
	return done();
}
