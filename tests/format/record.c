/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - a record comes back as it was stored, or not at all
 */
#include <errno.h>
#include <string.h>

#include "tests/fixture/corrupt.h"
#include "tests/fixture/specimen.h"
#include "tests/tap.h"

#define SLOT SPECIMEN_SLOT_SIZE

static void test_round_trip(void)
{
	uint8_t slot[SLOT];
	struct stele_record r;

	specimen_record(slot);
	is_int(0, stele_record_decode(slot, SLOT, &specimen_shape, &r, NULL),
	       "decodes");
	ok(r.payload == slot, "payload begins with the slot");
	is_uint(700, r.payload_size, "payload size");
	is_blob("cat/1.jpg", r.key, 9, "key");
	is_uint(9, r.key_size, "key size");
	is_uint(500, le64_get(r.ends[0]), "end of the first field");
	is_uint(650, le64_get(r.ends[1]), "end of the second field");
	is_uint(7, le64_get(r.scalars[0]), "first scalar");
	is_hex(UINT64_MAX, le64_get(r.scalars[1]), "second scalar");
	is_uint(0, r.flags, "flags");
	is_hex(r.crc,
	       stele_record_crc(SPECIMEN_SEGMENT_ID, SPECIMEN_NUMBER, slot,
				SLOT),
	       "checksum");
}

/* Computed with a bitwise CRC in another language. */
static void test_golden(void)
{
	static const char wanted[] =
		"hello\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
		"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0a/b"
		"\x02\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0"
		"\x07\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff"
		"\x05\0\0\0\0\0\0\0\x03\0\0\0";
	static const uint64_t ends[] = {2, 4}, scalars[] = {7, UINT64_MAX};
	uint8_t slot[96] = "hello";

	is_uint(51,
		stele_record_put_tail(&specimen_shape, slot + 96, 5, "a/b", 3,
				      ends, scalars, 0),
		"tail size");
	is_blob(wanted, slot, 92, "the bytes of a slot");
	is_hex(0x8fdf8c93, stele_record_seed(0x2222, 41), "its seed");
	is_hex(0x6a3d558a, stele_record_crc(0x2222, 41, slot, 96),
	       "its checksum");
}

static void test_seed(void)
{
	uint8_t slot[SLOT];
	struct stele_record r;

	specimen_record(slot);
	stele_record_decode(slot, SLOT, &specimen_shape, &r, NULL);
	ok(r.crc != stele_record_crc(SPECIMEN_SEGMENT_ID, SPECIMEN_NUMBER + 1,
				     slot, SLOT),
	   "a record of another number has another checksum");
	ok(r.crc != stele_record_crc(SPECIMEN_SEGMENT_ID + 1, SPECIMEN_NUMBER,
				     slot, SLOT),
	   "and so of another segment");
}

static void test_sizes(void)
{
	static const struct stele_record_shape none = {0, 0}, one = {1, 0};
	uint64_t size;

	is_uint(16, stele_record_tail_fixed(&none), "tail without fields");
	is_uint(16, stele_record_tail_fixed(&one), "tail with one of bytes");
	is_uint(48, stele_record_tail_fixed(&specimen_shape), "with five");
	ok(stele_record_size(&one, 0, 0, &size) && size == 16, "empty record");
	ok(stele_record_size(&specimen_shape, 700, 9, &size) && size == 757,
	   "record");
	ok(stele_record_size(&one, STELE_PAYLOAD_SIZE_MAX, 4000, &size) &&
		   size == STELE_PAYLOAD_SIZE_MAX + 4016,
	   "largest record");
	ok(!stele_record_size(&one, STELE_PAYLOAD_SIZE_MAX + 1, 0, &size),
	   "payload over the limit");
	ok(!stele_record_size(&one, UINT64_MAX, 0, &size), "absurd payload");
	ok(!stele_record_size(&one, 0, 4001, &size), "key over the limit");
}

static int decode_tail(const void *tail, uint64_t tail_size, uint64_t slot_size)
{
	struct stele_record r;

	return stele_record_decode_tail(tail, tail_size, slot_size,
					&specimen_shape, &r, NULL);
}

static void test_tail(void)
{
	uint8_t slot[SLOT];
	struct stele_record r;

	specimen_record(slot);
	is_int(0,
	       stele_record_decode_tail(slot + SLOT - 57, 57, SLOT,
					&specimen_shape, &r, NULL),
	       "the tail alone");
	ok(r.payload == NULL, "has no payload");
	is_blob("cat/1.jpg", r.key, 9, "but a key");
	is_int(-EUCLEAN, decode_tail(slot + SLOT - 56, 56, SLOT),
	       "less than the key");
	is_int(-EUCLEAN, decode_tail(slot + SLOT - 47, 47, SLOT),
	       "less than what is fixed");
	is_int(-EUCLEAN, decode_tail(slot, SLOT, SLOT - 1),
	       "more than the slot");
	is_int(0, decode_tail(slot + SLOT - 57, 57, 757), "smallest slot");
	is_int(-EUCLEAN, decode_tail(slot + SLOT - 57, 57, 756), "no slot");
	is_int(-EUCLEAN, decode_tail(slot, 0, SLOT), "nothing");
}

/* Limits that no slot of this test is large enough for. */
static void test_limits(void)
{
	uint8_t tail[4100];
	struct stele_disk_trailer trailer = {.key_size = le16_put(4000)};
	uint8_t *p = tail + sizeof(tail) - sizeof(trailer);

	memset(tail, 0, sizeof(tail));
	memset(tail + sizeof(tail) - 48 - 4001, 'k', 4001);
	memcpy(p, &trailer, sizeof(trailer));
	is_int(0, decode_tail(tail, sizeof(tail), 8192), "longest key");
	trailer.key_size = le16_put(4001);
	memcpy(p, &trailer, sizeof(trailer));
	is_int(-EUCLEAN, decode_tail(tail, sizeof(tail), 8192),
	       "key over the limit");
	trailer.key_size = le16_put(1);
	trailer.payload_size = le48_put(STELE_PAYLOAD_SIZE_MAX);
	memcpy(p, &trailer, sizeof(trailer));
	is_int(0, decode_tail(tail, sizeof(tail), STELE_SLOT_SIZE_MAX),
	       "largest payload");
	trailer.payload_size = le48_put(STELE_PAYLOAD_SIZE_MAX + 1);
	memcpy(p, &trailer, sizeof(trailer));
	is_int(-EUCLEAN, decode_tail(tail, sizeof(tail), STELE_SLOT_SIZE_MAX),
	       "payload over the limit");
}

static int decode_shape(const uint8_t *slot, uint32_t bytes, uint32_t scalars,
			const char **why)
{
	const struct stele_record_shape shape = {bytes, scalars};
	struct stele_record r;

	return stele_record_decode(slot, SLOT, &shape, &r, why);
}

static void test_void(void)
{
	static const uint64_t zero[2];
	uint8_t slot[SLOT] = {0};
	const char *why = NULL;

	stele_record_put_tail(&specimen_shape, slot + SLOT, 0, NULL, 0, zero,
			      zero, STELE_RECORD_VOID);
	is_int(0, decode_shape(slot, 3, 2, NULL), "a void");
	slot[SLOT - 16 - 1] = 1;
	is_int(-EUCLEAN, decode_shape(slot, 3, 2, &why), "with a scalar");
	is_string("record: hole but not empty", why, "says why");
	slot[SLOT - 16 - 1] = 0;
	slot[SLOT - 8] = 1;
	is_int(-EUCLEAN, decode_shape(slot, 3, 2, NULL), "with a key");
	slot[SLOT - 8] = 0;
	slot[SLOT - 16] = 1;
	is_int(-EUCLEAN, decode_shape(slot, 3, 2, NULL), "with a payload");
}

static void test_shapes(void)
{
	uint8_t slot[SLOT] = {0};
	const char *why = NULL;

	stele_record_put_tail(&(struct stele_record_shape){1, 0}, slot + SLOT,
			      5, "k", 1, NULL, NULL, 0);
	is_int(0, decode_shape(slot, 1, 0, NULL), "one field of bytes");
	is_int(-EUCLEAN, decode_shape(slot, 0, 0, &why), "payload of none");
	is_string("record: payload without a field", why, "says why");
}

static void repair(uint8_t *bytes)
{
	le32 crc = le32_put(stele_record_crc(SPECIMEN_SEGMENT_ID,
					     SPECIMEN_NUMBER, bytes, SLOT));

	memcpy(bytes + SLOT - sizeof(crc), &crc, sizeof(crc));
}

/* What a reader does: the checksum first. */
static int decode(const uint8_t *bytes, const char **why)
{
	struct stele_record r;
	le32 crc;

	memcpy(&crc, bytes + SLOT - sizeof(crc), sizeof(crc));
	if (le32_get(crc) != stele_record_crc(SPECIMEN_SEGMENT_ID,
					      SPECIMEN_NUMBER, bytes, SLOT)) {
		*why = "checksum";
		return -EBADMSG;
	}
	return stele_record_decode(bytes, SLOT, &specimen_shape, &r, why);
}

#define TRAILER (SLOT - sizeof(struct stele_disk_trailer))
#define ROW(name, text)                                                        \
	CORRUPT_ROW(struct stele_disk_trailer, TRAILER, name, text)
#define VALUE(name, index, text)                                               \
	.field = name, .position = TRAILER - 32 + 8 * (index), .size = 8,      \
	.why = (text)
#define BUT CORRUPT_BUT

static const char fit[] = "record: payload does not fit";
static const char over[] = "record: field end beyond payload";
static const char order[] = "record: field ends not ascending";
static const char nul[] = "record: NUL byte in the key";
static const char key[] = "record: key does not fit";

static const struct corrupt_row rows[] = {
	{.field = "payload", .position = 0, .size = 700},
	{.field = "padding", .position = 700, .size = TRAILER - 41 - 700},
	{.field = "key",
	 .position = TRAILER - 41,
	 .size = 9,
	 BUT({HOW_ZERO, nul})},
	{VALUE("ends[0]", 0, over),
	 BUT({HOW_ZERO, NULL}, {HOW_ADD, NULL}, {HOW_SUB, NULL},
	     {HOW_LOW, NULL}, {HOW_SWAP, order}),
	 .sibling = TRAILER - 24},
	{VALUE("ends[0]", 0, order), CORRUPT_SET(651)},
	{VALUE("ends[0]", 0, NULL), CORRUPT_SET(650)},
	{VALUE("ends[1]", 1, over), BUT({HOW_ZERO, order}, {HOW_ADD, NULL},
					{HOW_SUB, NULL}, {HOW_LOW, NULL})},
	{VALUE("ends[1]", 1, order), CORRUPT_SET(499)},
	{VALUE("ends[1]", 1, NULL), CORRUPT_SET(500)},
	{VALUE("ends[1]", 1, NULL), CORRUPT_SET(700)},
	{VALUE("ends[1]", 1, over), CORRUPT_SET(701)},
	{VALUE("scalars[0]", 2, NULL), .sibling = TRAILER - 8},
	{VALUE("scalars[1]", 3, NULL)},
	{ROW(payload_size, fit), BUT({HOW_ZERO, over}, {HOW_ADD, NULL},
				     {HOW_SUB, NULL}, {HOW_LOW, NULL})},
	{ROW(payload_size, NULL), CORRUPT_SET(650)},
	{ROW(payload_size, over), CORRUPT_SET(649)},
	{ROW(payload_size, NULL), CORRUPT_SET(SLOT - 57)},
	{ROW(payload_size, fit), CORRUPT_SET(SLOT - 56)},
	{ROW(reserved, "record: reserved bytes not zero")},
	{ROW(key_size, key), BUT({HOW_ZERO, "record: no key"}, {HOW_ADD, nul},
				 {HOW_SUB, NULL}, {HOW_LOW, NULL})},
	{ROW(key_size, nul), CORRUPT_SET(SLOT - 700 - 48)},
	{ROW(key_size, fit), CORRUPT_SET(SLOT - 700 - 47)},
	{ROW(key_size, fit), CORRUPT_SET(SLOT - 48)},
	{ROW(key_size, key), CORRUPT_SET(SLOT - 47)},
	{ROW(flags, "record: unknown flags"),
	 BUT({HOW_ADD, "record: hole but not empty"},
	     {HOW_LOW, "record: hole but not empty"})},
};

/* Every range against a byte by byte count. */
static void test_parts(void)
{
	static const uint8_t data[5] = {0};
	unsigned int wrong = 0;

	for (uint64_t from = 0; from < 12; from++) {
		for (uint64_t to = 0; to < 12; to++) {
			uint64_t first = 8, count = 0, size;
			const uint8_t *part =
				stele_record_part(data, 3, 5, from, to, &size);

			for (uint64_t i = 8; i-- > 3;) {
				if (i < from || i >= to)
					continue;
				first = i;
				count++;
			}
			wrong += size != count ||
				 (size && part != data + (first - 3));
		}
	}
	is_uint(0, wrong, "parts of a piece");
}

static void test_corruptions(void)
{
	uint8_t slot[SLOT];
	const struct corrupt_subject subject = {
		"record", slot, SLOT, repair, decode, -EBADMSG, "checksum",
	};

	specimen_record(slot);
	corrupt_run(&subject, CORRUPT_ROWS(rows));
	corrupt_covers(&subject, CORRUPT_ROWS(rows), 0, SLOT - 4,
		       "all but the checksum");
	corrupt_bits(&subject, SLOT);
}

int main(void)
{
	plan_lazy();
	test_round_trip();
	test_golden();
	test_seed();
	test_sizes();
	test_tail();
	test_limits();
	test_void();
	test_shapes();
	test_parts();
	test_corruptions();
	return done();
}
