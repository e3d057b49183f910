/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - samples with fields, as they are found one by one
 *
 * What fields there are, and of which type, is known when all is scanned. Until then a field
 * has a number, in the order in which fields were first seen, and a sample is a list of
 * numbers and values in an index, a store of its own. Kinds of values that can become one
 * type are a family: texts of a table are numbers if all of them are.
 *
 * Of a field that a sample lacks, bytes, text and lists are empty, and an f64 is NaN; so
 * numbers of which some are missing are f64, except classes, of which a missing one is -1.
 * Integers beyond i64 make the field a tensor of u64, without dimensions, or f64.
 */
#ifndef STELE_CMD_FROM_RECORD_H
#define STELE_CMD_FROM_RECORD_H

#include "stele.h"

#include <stdbool.h>

struct store;

enum record_family {
	RECORD_FAMILY_BYTES,
	RECORD_FAMILY_TEXT,
	RECORD_FAMILY_JSON,
	RECORD_FAMILY_NUMBER,
	RECORD_FAMILY_CELL,
	RECORD_FAMILY_CLASS,
	RECORD_FAMILY_LIST,
	RECORD_FAMILY_EMPTY, /* lists without elements: of numbers or JSON, as others are */
	RECORD_FAMILY_ROW,
};

/* What a value has: `place` and `size` of its bytes, or `number`. */
enum record_kind {
	RECORD_BYTES,
	RECORD_FILE, /* bytes of a file: `place` and `size` of its path, number: its size */
	RECORD_TEXT, /* UTF-8, and so are the next four */
	RECORD_JSON,
	RECORD_CELL,
	RECORD_CELL_I64, /* and the number that it is */
	RECORD_CELL_F64,
	RECORD_I64,
	RECORD_U64, /* that is no i64 */
	RECORD_F64,
	RECORD_CLASS,	  /* `place`: number of its name */
	RECORD_CLASS_I64, /* and the number that this is */
	RECORD_CLASS_F64,
	RECORD_LIST_EMPTY, /* of whatever; at `place` is how JSON writes it, of `number` bytes */
	RECORD_LIST_I64,   /* the number is the first element */
	RECORD_LIST_U64,   /* some are no i64 */
	RECORD_LIST_F32,
	RECORD_LIST_F64,
	RECORD_ROW, /* of the shape that the field has */
};

struct record_value {
	uint32_t field;
	uint32_t kind;
	uint64_t place, size;
	union {
		int64_t i64;
		uint64_t u64;
		double f64;
	} number;
};

struct record {
	uint64_t offset;  /* in its shard, for messages */
	int64_t changed;  /* of a file that it names; seconds; 0: none */
	uint32_t count;
	struct record_value values[STELE_FIELDS_MAX];
};

/* Bytes of a sample that lie behind each other. */
struct record_piece {
	uint64_t place, size;
	uint64_t path_size; /* a file, whose path is at `place` */
	bool held;	    /* there are none: they are those of `number` */
	bool converts;	    /* from i64 to f64 */
	bool is_unsigned;   /* from u64 */
	uint64_t number;
};

struct record_field {
	struct stele_field field; /* of a ROW its shape, of all the type in the end */
	uint32_t family;
	bool single;	/* lists of one element each are numbers */
	uint64_t count; /* of samples that have it */
	uint32_t tables;     /* whose headers have it */
	const char *lacking; /* the first whose header lacks it; NULL: none */
	bool texts, reals; /* were seen among numbers */
	bool negative;	   /* so were integers below 0 */
	bool huge;	   /* beyond i64 */
	bool large;	   /* that no f64 is */
	uint64_t large_at; /* the origin of the first of these */
	uint32_t dtype;	   /* of a list; 0: all were empty */
	uint64_t least, most; /* elements of lists */
	char **names; /* owned; of classes, in the order in which they came */
	bool *named;  /* owned; those that a sample has: what was left out has none */
	uint32_t name_count;
	void *known; /* tree of them */
	uint64_t names_size;
	bool names_lost; /* numbers, when there were too many */
	uint32_t *ranks; /* owned, since the schema: by name */
	char **sorted;	 /* owned; of field.names */
};

struct record_fields {
	struct record_field list[STELE_FIELDS_MAX];
	uint32_t count;
	uint64_t samples;
	struct stele_field schema[STELE_FIELDS_MAX];
	uint32_t schema_count;
	uint32_t index[STELE_FIELDS_MAX]; /* in the schema, by number */
};

/*
 * The field of that name, which is new or of the family. Return: its number; -EOVERFLOW
 * (too many), -EINVAL: not a valid name, -EPROTOTYPE: it is of another one.
 */
int record_field(struct record_fields *fields, const char *name, size_t size,
		 enum record_family family);
/* NULL: there is none of that name yet. */
const struct record_field *record_find(const struct record_fields *fields, const char *name,
				       size_t size);
void record_fields_release(struct record_fields *fields);

/* 0: no number, 1: *i64, as it would be printed; 2: *f64. */
int record_number(const char *text, size_t size, int64_t *i64, double *f64);
/* An integer that no f64 is? */
bool record_is_large(int64_t value);
bool record_is_large_u64(uint64_t value);
void record_note_large(struct record_field *field, uint64_t origin);
/*
 * The class that a text names: a number, or a name. Return: 0; -ENOMEM; it cannot be a name:
 * -EINVAL (it is blank), -EILSEQ (a NUL byte), -ENAMETOOLONG (over STELE_KEY_SIZE_MAX); -EOVERFLOW
 * (more names than an image holds).
 */
int record_class(struct record_fields *fields, uint32_t field, const char *text,
		 size_t size, struct record_value *out);

/* What record_class() takes a name for. */
enum record_class_is { RECORD_CLASS_IS_NAME, RECORD_CLASS_IS_NUMBER, RECORD_CLASS_IS_BLANK };
enum record_class_is record_class_is(const char *name);

/* Names that samples have get the numbers of a sorted list. Return: 0; -ENOMEM. */
int record_sort_names(struct record_field *field);
void record_names_release(struct record_field *field);

/* "a number", "text": what the family of that field is. */
const char *record_family_words(enum record_family family);

/* Is there a value of the field yet? */
bool record_has(const struct record *record, uint32_t field);
/* A sample has that value of the field: what follows for its type? */
void record_see(struct record_field *field, const struct record_value *value, uint64_t origin);
/* Append it to the index. Return: 0; errors of the store. */
int record_append(struct store *index, const struct record *record, const char *key,
		  size_t key_size, uint64_t origin);
/* The same, of one more sample. */
int record_keep(struct store *index, struct record_fields *fields,
		const struct record *record, const char *key, size_t key_size,
		uint64_t origin);

/*
 * When there are no more: types from what was seen. Return: 0; of *field -ENOMEM; -ERANGE: it has
 * integers that no f64 is, while it has to be f64; -EOVERFLOW: more names than an image holds.
 */
int record_resolve(struct record_fields *fields, const struct record_field **field);

/*
 * Two classes whose names differ only in blanks at either end, the second one of a resolved field,
 * the first of the same or new to the base, if there is one. Return: 1; 0: there are none; -ENOMEM.
 */
int record_alike(const struct record_field *field, const struct stele_field *base,
		 const char *alike[2]);

/* A sample of the index. */
struct record_entry {
	struct record record;
	uint64_t origin;
	uint64_t data_size; /* of all its bytes */
	uint64_t next;	    /* offset of the one behind it */
	uint32_t key_size;
	char key[STELE_KEY_SIZE_MAX];
};

/* Return: 0; errno of reading. */
int record_load(const struct store *index, const struct record_fields *fields,
		uint64_t offset, struct record_entry *out);
/* For open() and read(): values by the schema, and where the bytes are, in its order. */
void record_values(const struct record_fields *fields, const struct record *record,
		   union stele_value *values, struct record_piece pieces[STELE_FIELDS_MAX]);
/*
 * As the source's schema(). `lacks`: samples may all lack a field that the base has. Return: 0;
 * -ENOMEM; -EOVERFLOW; of the field *name -ENOENT: it is in the base, but in no sample;
 * -EOPNOTSUPP: it has numbers, but the base class names.
 */
int record_schema(struct record_fields *fields, const struct stele_schema *base, bool lacks,
		  struct stele_schema *out, const char **name);

#endif
