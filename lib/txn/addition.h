/* SPDX-License-Identifier: Apache-2.0 */
/*
 * addition.h - a snapshot that a transaction puts together; the only way to add one
 *
 * It begins with a base, or empty; segments come behind those that it has, samples are
 * deleted. At its end the deleted lists that changed are written, the digest is computed,
 * and the snapshot is in the transaction's catalog. A segment whose last sample was deleted
 * here is left out, so that gc may have it; except the last one, whose fields are all that
 * is known then.
 *
 * What it refers to is not unused, though no snapshot has it: gc spares the segments, and a
 * deleted list whose snapshot has gone meanwhile is written again.
 */
#ifndef STELE_TXN_ADDITION_H
#define STELE_TXN_ADDITION_H

#include "lib/image/snapshot.h"
#include "lib/txn/txn.h"

struct stele_addition_part {
	struct stele_txn_ref ref;
	bool changed; /* its deleted list is to be written */
	uint64_t base_first, base_count; /* ids that the base has in it; 0: none */
	struct stele_deleted base_deleted; /* owned: as in the base, if `replaced` */
	bool replaced; /* the segment's own are others by now */
};

struct stele_addition {
	struct stele_txn *txn;
	struct stele_snapshot snapshot; /* as it is so far; info: the base's */
	struct stele_addition_part *parts; /* by segment */
	uint32_t capacity;
	/* Of the snapshot: the caller's to set, begin takes them from the base. */
	uint64_t parent, payload_size;
	int64_t source_time;
	int64_t time;
	const char *note; /* NULL: none */
	uint32_t note_size;
	const uint8_t *expected; /* digest that it must have; NULL: any */
	bool torn; /* a change of it has failed half-way */
};

/*
 * It becomes txn->work, in place of another one, which stays after an error. `base`: of the
 * transaction, committed or not; NULL: nothing. Return: 0; errors of stele_snapshot_load().
 */
int stele_addition_begin(struct stele_txn *txn,
			 const struct stele_txn_snapshot *base);
/* A segment that the transaction has: by its descriptor, whose blocks stay the caller's. */
int stele_addition_append(struct stele_addition *addition,
			  const struct stele_descriptor *descriptor);
/* Have all segments loaded as a reader would: those that were appended are not yet. */
int stele_addition_load(struct stele_addition *addition);
/*
 * Delete samples of a segment: `numbers` strictly ascending, none deleted yet, of so many
 * bytes of payload. Return: 0; -EUCLEAN (the base has fewer bytes; logged); -ENOMEM.
 */
int stele_addition_delete(struct stele_addition *addition, uint32_t segment,
			  const uint64_t *numbers, uint64_t count,
			  uint64_t payload_size);
/*
 * Where the sample of the base is that has this id there, whatever was deleted or appended
 * since. Return: 0; -ERANGE (it has no such id); -ENOENT (deleted since).
 */
int stele_addition_locate(const struct stele_addition *addition, uint64_t id,
			  uint32_t *segment, uint64_t *number);
/* Is it not what it began with any more? */
bool stele_addition_changed(const struct stele_addition *addition);
/* Is the segment one of those that it has so far? NULL: has none. */
bool stele_addition_refers(const struct stele_addition *addition, uint64_t segment_id);
/*
 * Into the catalog, under a name, with its digest; a dry one's is zero. It is then done.
 * Return: 0; -EBADMSG (not the expected digest; logged); errors of
 * stele_txn_write_deleted(), stele_txn_add_snapshot().
 */
int stele_addition_end(struct stele_addition *addition, const char *name);
/* Give txn->work up, if there is one. */
void stele_addition_free(struct stele_txn *txn);
/* Take txn->work from the transaction; free it before that ends. */
struct stele_addition *stele_addition_take(struct stele_txn *txn);
void stele_addition_discard(struct stele_addition *addition);

#endif
