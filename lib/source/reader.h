/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.h - one thread's way through samples of a source, none of it believed
 *
 * Values become ends and scalars of a record; sizes are held against the scan
 * and the shapes, texts against UTF-8, while the bytes go by. A sample is as it
 * should be only when stele_source_reader_end() said so.
 *
 *	ret = stele_source_reader_open(&reader, &entry);
 *	while (!ret && reader.left)
 *		got = stele_source_reader_read(&reader, data, size);
 *	ret = stele_source_reader_end(&reader);
 *	stele_source_reader_close(&reader);
 */
#ifndef STELE_SOURCE_READER_H
#define STELE_SOURCE_READER_H

#include "format/field.h"
#include "lib/source/fields.h"

struct stele_source_reader {
	const struct stele_source *source;
	const struct stele_fields *fields;
	void *reader; /* the source's */
	bool made, opened;
	struct stele_payload_check check;

	/* The sample at hand. */
	struct stele_source_entry entry;
	uint64_t left; /* bytes that are still to come */
	bool at_end;   /* the source said so: see ends_short */
	const char *wrong; /* with a field; NULL: nothing so far */
	le64 ends[STELE_FIELD_COUNT_MAX];
	uint64_t record_ends[STELE_FIELD_COUNT_MAX]; /* the same for format/record.h */
	uint64_t scalars[STELE_FIELD_COUNT_MAX];
	/* Which rule it breaks (-EINVAL), "": another error. */
	char why[STELE_FIELD_NAME_SIZE + 128];
};

/* Return: 0; what the source returned. Release in any case. */
int stele_source_reader_init(struct stele_source_reader *reader,
			     const struct stele_source *source,
			     const struct stele_fields *fields);
/* Idempotent on a zeroed struct. */
void stele_source_reader_release(struct stele_source_reader *reader);

/*
 * Return: 0; -EINVAL; what the source returned. The entry is a view, and stays
 * until close. Close in any case.
 */
int stele_source_reader_open(struct stele_source_reader *reader,
			     const struct stele_source_entry *entry);
/*
 * The next bytes, while some are left. It may write one byte more than it says, within
 * `size`: a file then takes a single read, which also shows that it has not grown.
 * Return: their count; -ETXTBSY (it shrank or grew); -EINVAL; the source's errno.
 */
int64_t stele_source_reader_read(struct stele_source_reader *reader, void *data,
				 size_t size);
/* Nothing is left: was that all, and all right? Return: as read, 0 if so. */
int stele_source_reader_end(struct stele_source_reader *reader);
void stele_source_reader_close(struct stele_source_reader *reader);

#endif
