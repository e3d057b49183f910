/* SPDX-License-Identifier: Apache-2.0 */
/*
 * corrupt.h - the table of corruptions: field x mutation x checksum
 *
 * A row names a field and says what a decoder answers when the field is
 * damaged and the checksum is made good again. Without that the answer is
 * always the checksum's. Rows must cover every byte of their structure:
 * a field that nobody thought of is a failed test.
 */
#ifndef STELE_TESTS_CORRUPT_H
#define STELE_TESTS_CORRUPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum corrupt_how {
	HOW_ALL,  /* in a row's exceptions: end of the list */
	HOW_ZERO, /* all bits 0 */
	HOW_ONES,
	HOW_ADD, /* 1, as a number; of fields up to 8 bytes */
	HOW_SUB,
	HOW_LOW,    /* flip the lowest bit of the first byte */
	HOW_HIGH,   /* flip the highest bit of the last byte */
	HOW_RANDOM, /* other bytes, always the same ones */
	HOW_SWAP,   /* with the sibling, if the row has one */
	HOW_SET,    /* to `value`, if the row is for that alone */
	HOW_COUNT,
};

/* NULL: the decoder accepts it. Texts are those of the decoder. */
struct corrupt_answer {
	enum corrupt_how how;
	const char *why;
};

struct corrupt_row {
	const char *field;
	size_t position, size; /* bytes of the specimen */
	const char *why;       /* for all mutations but these */
	struct corrupt_answer but[7];
	size_t sibling; /* position of a field to swap with; 0: none */
	int error;      /* 0: -EUCLEAN where there is a why */
	bool set;       /* only set it to `value` */
	uint64_t value;
};

/* The beginning of a row for a member of a struct that lies at `base`. */
#define CORRUPT_ROW(type, base, member, text)                                  \
	.field = #member, .position = (base) + offsetof(type, member),         \
	.size = sizeof(((type *)0)->member), .why = (text)

#define CORRUPT_BUT(...)    .but = {__VA_ARGS__}
#define CORRUPT_SET(v)      .set = true, .value = (v)
#define CORRUPT_ROWS(array) (array), sizeof(array) / sizeof((array)[0])

struct corrupt_subject {
	const char *name;
	const uint8_t *bytes; /* the specimen, at most 4096 bytes */
	size_t size;
	/* Make the checksums good again. */
	void (*repair)(uint8_t *bytes);
	int (*decode)(const uint8_t *bytes, const char **why);
	int error; /* the answer to a wrong checksum */
	const char *why;
};

/* The repair() of what is one block. */
void corrupt_repair_block(uint8_t *bytes);

/* One TAP line for each row. */
void corrupt_run(const struct corrupt_subject *subject,
		 const struct corrupt_row *rows, size_t count);
/* Is each byte of [from, to) within a row? */
void corrupt_covers(const struct corrupt_subject *subject,
		    const struct corrupt_row *rows, size_t count, size_t from,
		    size_t to, const char *what);
/* Flip each bit of the first `size` bytes by itself: all must be refused. */
void corrupt_bits(const struct corrupt_subject *subject, size_t size);

#endif
