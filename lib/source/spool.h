/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.h - samples that a program hands over one by one, kept until they are a source
 *
 * A segment is laid out by size, so all sizes are known before the first byte is written.
 * Until then samples lie in memory, as many as fit, then in a file without a name, all but
 * the last piece: written in large pieces, read again sample by sample. Of a put that
 * failed nothing is left, and a full filesystem keeps nobody from reading those before it.
 * One thread puts; while none does, what is in it is read by any number.
 */
#ifndef STELE_SOURCE_SPOOL_H
#define STELE_SOURCE_SPOOL_H

#include "lib/source/fields.h"

struct stele_spool {
	struct stele_source source; /* of what is in it; closed with it */
	struct stele_fields fields; /* as they were last given */
	struct stele_schema schema; /* its own copy */
	struct stele_log log;
	char *directory; /* owned */
	uint64_t memory; /* that samples may take, then its buffer's */
	uint64_t count;
	uint64_t before; /* that were in it, and are no more */

	uint8_t *data;	 /* from `begin` on; `room` bytes */
	uint64_t begin;	 /* bytes that are in the file */
	uint64_t size;	 /* of all samples */
	uint64_t room;
	int fd;		 /* -1: all are in memory */
};

/*
 * `base`: whose fields it must have, or NULL; `directory`: of its file, NULL: the default;
 * `memory`: bytes, not 0. Return: 0; -ENOMEM; errors of stele_fields_take().
 */
int stele_spool_new(const struct stele_schema *schema,
		    const struct stele_base *base, uint64_t memory,
		    const char *directory, const struct stele_log *log,
		    struct stele_spool **out);
/*
 * Return: 0; -EINVAL, -ENAMETOOLONG, -EFBIG (not a sample of these fields); errno of the
 * file; all logged.
 */
int stele_spool_put(struct stele_spool *spool, const char *key, size_t key_size,
		    const struct stele_txn_value *values, uint32_t count);
/* Nothing is in it; the schema stays. */
void stele_spool_empty(struct stele_spool *spool);
/* NULL is fine. */
void stele_spool_free(struct stele_spool *spool);

#endif
