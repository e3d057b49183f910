/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset-fields.c - the fields of a sample, of every type and in any order
 *
 * Schemas that the builder does not write yet: several bytes fields divided by
 * ends, scalars between them. The record is put together by format/, the
 * dataset is a schema and a device without an image. In a view its bytes may change at any time,
 * before a sample is made of them and after: no pointer leads out of the slot.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/read/sample.h"
#include "tests/device/memory.h"
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

static struct stele_device *dev; /* has nothing, and does not say that anything is gone */

static void init(struct fixture *f)
{
	const uint64_t ends[] = {5, 12, 12};
	const double score = -0.125;
	uint64_t scalars[2] = {(uint64_t)INT64_MIN + 5};

	memset(f, 0, sizeof(*f));
	memcpy(&scalars[1], &score, sizeof(score));
	f->ds.image.dev = dev;
	f->segment.descriptor.id = 42;
	f->segment.descriptor.granule = SLOT;
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

/* ---- bytes that change --------------------------------------------------------- */

static bool is_within(const struct stele_sample *sample, const uint8_t *slot)
{
	bool within = range_ok((uintptr_t)sample->data - (uintptr_t)slot,
			       sample->size, SLOT) &&
		      range_ok((uintptr_t)sample->key - (uintptr_t)slot,
			       sample->key_size, SLOT);

	for (uint32_t i = 0; i < 6; i++) {
		const void *data;
		uint64_t size;

		if (!stele_sample_bytes(sample, i, &data, &size) &&
		    !range_ok((uintptr_t)data - (uintptr_t)sample->data, size,
			      sample->size))
			within = false;
	}
	return within;
}

/* After they were found to be right. */
static void test_changed(struct fixture *f)
{
	static const uint64_t bad[] = {0, 4, 17, SLOT, UINT32_MAX, UINT64_MAX - 7};
	const uint32_t ends = SLOT - stele_record_tail_fixed(&f->segment.shape);
	unsigned int wrong = 0, refused = 0;
	struct stele_sample sample = {0};
	const void *data;
	uint64_t size;

	for (uint32_t end = 0; end < 3; end++) {
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			const le64 value = le64_put(bad[i]);

			init(f);
			if (decode(f, STELE_VERIFY_CRC, &sample))
				bail("a good record");
			memcpy(f->slot + ends + end * sizeof(value), &value,
			       sizeof(value));
			wrong += !is_within(&sample, f->slot);
			for (uint32_t field = 0; field < 6; field++)
				refused += stele_sample_bytes(&sample, field,
							      &data, &size) ==
					   -EUCLEAN;
		}
	}
	is_uint(0, wrong, "ends that change lead nowhere else");
	ok(refused > 10, "it is said");
}

struct scribe {
	pthread_t thread;
	uint8_t *slot; /* the same memory, elsewhere */
	atomic_bool stop;
};

/* Trailer and ends, right and wrong by turns. */
static void *scribble(void *arg)
{
	struct scribe *s = arg;
	static struct fixture good;
	uint8_t bad[SLOT];

	init(&good);
	memset(bad, 0xff, sizeof(bad));
	memset(bad + SLOT - 10, 0, 6); /* reserved bytes and flags: looked at first */
	bad[SLOT - 8] = 0xa0; /* a key of 160 bytes */
	while (!atomic_load_explicit(&s->stop, memory_order_relaxed))
		for (uint32_t at = SLOT - 64; at < SLOT; at += 8) {
			memcpy(s->slot + at, bad + at, 8);
			memcpy(s->slot + at, good.slot + at, 8);
		}
	return NULL;
}

static void test_scribe(struct fixture *f)
{
	int fd = memfd_create("slot", MFD_CLOEXEC);
	struct scribe s = {0};
	struct stele_sample sample = {0};
	uint64_t wrong = 0, taken = 0;
	const uint8_t *slot;

	if (fd < 0 || ftruncate(fd, 4096))
		sysbail("memfd");
	slot = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	s.slot = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (slot == MAP_FAILED || s.slot == MAP_FAILED)
		sysbail("mmap");
	init(f);
	memcpy(s.slot, f->slot, SLOT);
	if (pthread_create(&s.thread, NULL, scribble, &s))
		bail("no thread");
	for (unsigned int i = 0; i < 200000; i++) {
		if (stele_sample_decode(&f->ds, &f->place, slot,
					STELE_VERIFY_NONE, NULL,
					STELE_LOG_ERROR, &sample))
			continue;
		taken++;
		wrong += !is_within(&sample, slot);
	}
	atomic_store(&s.stop, true);
	pthread_join(s.thread, NULL);
	is_uint(0, wrong, "nor do they while another thread writes");
	diag("%ju of 200000 were taken", (uintmax_t)taken);
	munmap((void *)(uintptr_t)slot, 4096);
	munmap(s.slot, 4096);
	close(fd);
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
	f->segment.descriptor.granule = SLOT;
}

int main(void)
{
	struct fixture f;

	plan_lazy();
	dev = test_memory(UINT64_C(1) << 20, 512, 0);
	dev->revocable = true;
	init(&f);
	test_types(&f);
	test_seed(&f);
	test_hostile();
	test_changed(&f);
	test_scribe(&f);
	stele_device_close(dev);
	return done();
}
