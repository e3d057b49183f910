/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_slots.c - slots: read, check, write
 *
 * A slot is held against its checksum, its digest and its structure, what lies
 * between slots must be zero. The same checks tell whether a unit is on the target
 * already. Blocks that a unit shares with its neighbours are put together by
 * edge.h; each unit brings its own bytes, also when it is not sent.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/decode.h"
#include "lib/image/key_list.h"
#include "lib/image/stale.h"
#include "lib/segment/copy_worker.h"

/* Of a unit, to see quickly that nothing is there. */
#define PEEK_SIZE (UINT64_C(64) << 10)
#define NAME_SIZE 256 /* of a sample in a message; keys may be longer */

/* ---- digests --------------------------------------------------------------- */

/* Those of all slots of a unit: the first block's is that of unit->first. */
static int read_digests(struct stele_copy_worker *w,
			const struct stele_copy_unit *unit)
{
	const struct stele_segment *segment = w->copy->segment;
	const uint64_t first = unit->first / STELE_DIGESTS_PER_BLOCK;
	const uint64_t last =
		(unit->first + unit->count - 1) / STELE_DIGESTS_PER_BLOCK;
	struct stele_section section;

	if (stele_descriptor_find_section(&segment->descriptor,
					  STELE_BLOCK_DIGESTS, STELE_NO_FIELD,
					  &section) < 0)
		return stele_copy_complain(w, &w->from, -EUCLEAN, unit->offset,
					   "descriptor", "no digests");
	return stele_section_read(w->copy->image, segment, &section, first,
				  last + 1 - first, w->digests);
}

static struct stele_record_check check_of(const struct stele_copy_worker *w,
					  uint64_t number)
{
	return (struct stele_record_check){
		.segment = w->copy->segment,
		.number = number,
		.hash = w->hash,
	};
}

/* Is this one of those that are looked at? */
static bool is_wanted(const struct stele_copy_worker *w, uint64_t number)
{
	return !w->copy->only || stele_deleted_has(w->copy->only, number, NULL);
}

/* By its key, if that can be read. */
static int complain(struct stele_copy_worker *w, const struct stele_copy_side *side,
		    int error, uint64_t number, uint64_t offset, const char *why)
{
	struct stele_key_list keys = {0};
	char what[NAME_SIZE];

	snprintf(what, sizeof(what), "sample #%" PRIu64, number);
	if (!side->is_source)
		w->damaged = number;
	if (side->is_source)
		error = stele_image_judge(w->copy->image, w->copy->segment->descriptor.id,
					  w->copy->segment->descriptor.offset, error);
	if (side->is_source && error != -ESTALE &&
	    !stele_key_list_load(w->copy->image, w->copy->segment, &number, 1, &keys) &&
	    keys.count)
		snprintf(what, sizeof(what), "sample '%.*s'",
			 (int)keys.entries[0].key_size, keys.entries[0].key);
	stele_key_list_release(&keys);
	return stele_copy_complain(w, side, error, offset, what, why);
}

/*
 * `ret`: of the record; then its digest and what follows the slot are checked as
 * well. Return: 0; -EBADMSG, -EUCLEAN (logged).
 */
static int judge(struct stele_copy_worker *w,
		 const struct stele_copy_side *side,
		 const struct stele_copy_unit *unit,
		 const struct stele_record_check *check, int ret,
		 bool gap_is_zero, uint64_t offset)
{
	const uint64_t block = check->number / STELE_DIGESTS_PER_BLOCK -
			       unit->first / STELE_DIGESTS_PER_BLOCK;
	const char *why = check->why;

	if (ret == 0 && memcmp(check->digest,
			       stele_digest_entry(&w->digests[block],
						  check->number),
			       STELE_DIGEST_SIZE)) {
		why = "SHA-256 differs from the digests section";
		ret = -EBADMSG;
	}
	if (ret == 0 && !gap_is_zero) {
		why = "nonzero bytes after the record";
		ret = -EUCLEAN;
	}
	return ret ? complain(w, side, ret, check->number, offset, why) : 0;
}

/* ---- slots in memory ------------------------------------------------------- */

/*
 * Those slots of a unit that lie whole within the `size` bytes of the segment
 * that w->buffer holds, which begin with the unit's first block; with all of
 * them, what lies between them. Return: 0; -EBADMSG, -EUCLEAN (logged).
 */
static int check_slots(struct stele_copy_worker *w,
		       const struct stele_copy_side *side,
		       const struct stele_copy_unit *unit, uint64_t size)
{
	const uint64_t base = round_down(unit->offset, STELE_BLOCK_SIZE);
	int ret = 0;

	for (uint64_t i = 0; ret == 0 && i < unit->count; i++) {
		const uint64_t number = unit->first + i;
		struct stele_record_check check = check_of(w, number);
		uint64_t unused, end, next;
		uint64_t offset = stele_copy_slot(w->copy->segment, number,
						  &check.slot_size);

		end = offset + check.slot_size;
		next = stele_copy_slot(w->copy->segment, number + 1, &unused);
		if (next - base > size)
			break;
		if (!is_wanted(w, number))
			continue;
		ret = stele_record_check_slot(&check,
					      w->buffer + (offset - base));
		ret = judge(w, side, unit, &check, ret,
			    bytes_zero(w->buffer + (end - base), next - end),
			    offset);
	}
	return ret;
}

/* ---- slots in pieces ------------------------------------------------------- */

/* One slot while its bytes come by. */
struct passing {
	uint64_t offset; /* of the slot, from the segment's start */
	uint64_t next;	 /* where the one behind it begins */
	struct stele_record_check check;
	bool dirty; /* what lies behind it is not zero */
};

/* The tail tells where the parts are; if it is impossible, the end says so. */
static int begin_slot(struct stele_copy_worker *w,
		      const struct stele_copy_side *side, uint64_t number,
		      struct passing *p)
{
	uint64_t unused, end, start, size;
	int ret;

	p->check = check_of(w, number);
	p->offset = stele_copy_slot(w->copy->segment, number,
				    &p->check.slot_size);
	p->next = stele_copy_slot(w->copy->segment, number + 1, &unused);
	p->dirty = false;
	size = p->check.slot_size < STELE_RECORD_TAIL_MAX ?
		       p->check.slot_size : STELE_RECORD_TAIL_MAX;
	end = p->offset + p->check.slot_size;
	start = round_down(end - size, STELE_BLOCK_SIZE);
	ret = stele_copy_transfer(w, side, STELE_OP_READ, w->tail, start,
				  round_up(end, STELE_BLOCK_SIZE) - start);
	if (ret == 0)
		stele_record_check_begin(&p->check,
					 w->tail + (end - size - start), size);
	return ret;
}

static void pass_bytes(struct stele_copy_worker *w, struct passing *p,
		       uint64_t at, uint64_t size)
{
	const uint64_t end = p->offset + p->check.slot_size;
	const uint8_t *data;
	uint64_t n;

	data = stele_record_part(w->buffer, at, size,
				 p->offset + p->check.position, end, &n);
	stele_record_check_add(&p->check, data, n);
	data = stele_record_part(w->buffer, at, size, end, p->next, &n);
	p->dirty |= !bytes_zero(data, n);
}

/* ---- writing --------------------------------------------------------------- */

/* Bytes [from, to) of the segment; data[0] is the first one of from's block. */
static int put(struct stele_copy_worker *w, uint8_t *data, uint64_t from,
	       uint64_t to)
{
	const uint64_t base = round_down(from, STELE_BLOCK_SIZE);
	const uint64_t first = round_up(from, STELE_BLOCK_SIZE);
	const uint64_t last = round_down(to, STELE_BLOCK_SIZE);
	const uint64_t head = first < to ? first : to;
	int ret;

	ret = stele_edges_put(w->edges, w->to.base + from, data + (from - base),
			      head - from, false);
	if (ret == 0 && first < last)
		ret = stele_copy_transfer(w, &w->to, STELE_OP_WRITE,
					  data + (first - base), first,
					  last - first);
	if (ret == 0 && first <= last)
		ret = stele_edges_put(w->edges, w->to.base + last,
				      data + (last - base), to - last, false);
	return ret;
}

/* Keep what of these bytes of the target belongs to blocks that others share. */
static void keep_ends(struct stele_copy_worker *w,
		      const struct stele_copy_unit *unit, uint64_t at,
		      uint64_t size)
{
	const uint64_t blocks[2] = {
		round_down(unit->offset, STELE_BLOCK_SIZE),
		round_down(unit->offset + unit->size, STELE_BLOCK_SIZE)};

	for (int i = 0; i < 2; i++)
		if (blocks[i] >= at && blocks[i] < at + size)
			memcpy(w->ends[i], w->buffer + (blocks[i] - at),
			       STELE_BLOCK_SIZE);
}

static int put_ends(struct stele_copy_worker *w,
		    const struct stele_copy_unit *unit)
{
	const uint64_t from = unit->offset, to = from + unit->size;
	const uint64_t first = round_up(from, STELE_BLOCK_SIZE);
	const uint64_t last = round_down(to, STELE_BLOCK_SIZE);
	int ret;

	ret = stele_edges_put(w->edges, w->to.base + from,
			      w->ends[0] + from % STELE_BLOCK_SIZE,
			      (first < to ? first : to) - from, true);
	if (ret == 0 && first <= last)
		ret = stele_edges_put(w->edges, w->to.base + last, w->ends[1],
				      to - last, true);
	return ret;
}

/* ---- units ----------------------------------------------------------------- */

/* Read a unit, or what of it `most` bytes hold. */
static int read_unit(struct stele_copy_worker *w,
		     const struct stele_copy_side *side,
		     const struct stele_copy_unit *unit, uint64_t most,
		     uint64_t *size)
{
	const uint64_t base = round_down(unit->offset, STELE_BLOCK_SIZE);

	*size = round_up(unit->offset + unit->size, STELE_BLOCK_SIZE) - base;
	if (*size > most)
		*size = most;
	return stele_copy_transfer(w, side, STELE_OP_READ, w->buffer, base,
				   *size);
}

/* With `send`, what is right so far goes to the target. */
static int pass_slot(struct stele_copy_worker *w,
		     const struct stele_copy_side *side,
		     const struct stele_copy_unit *unit, uint64_t number)
{
	struct passing p;
	uint64_t at, end;
	int ret = begin_slot(w, side, number, &p);

	at = p.offset;
	for (; ret == 0 && at < p.next; at = end) {
		const uint64_t base = round_down(at, STELE_BLOCK_SIZE);
		const uint64_t stop = round_up(p.next, STELE_BLOCK_SIZE);
		const uint64_t size = stop - base < STELE_COPY_UNIT_SIZE ?
					      stop - base :
					      STELE_COPY_UNIT_SIZE;

		end = base + size < p.next ? base + size : p.next;
		ret = atomic_load(w->stop) ? -ECANCELED :
			      stele_copy_transfer(w, side, STELE_OP_READ, w->buffer, base, size);
		if (ret == 0)
			pass_bytes(w, &p, base, size);
		if (ret == 0 && side->is_source && !p.check.error) {
			ret = put(w, w->buffer, at, end);
			atomic_fetch_add(&w->passed, end - at);
		} else if (ret == 0) {
			keep_ends(w, unit, base, size);
		}
	}
	if (ret < 0)
		return ret;
	return judge(w, side, unit, &p.check, stele_record_check_end(&p.check),
		     !p.dirty, p.offset);
}

static int pass_slots(struct stele_copy_worker *w,
		      const struct stele_copy_side *side,
		      const struct stele_copy_unit *unit)
{
	int ret = 0;

	for (uint64_t i = 0; ret == 0 && i < unit->count; i++)
		if (is_wanted(w, unit->first + i))
			ret = pass_slot(w, side, unit, unit->first + i);
	return ret;
}

/* Most often nothing is there: the first few slots tell. */
static int find_small(struct stele_copy_worker *w,
		      const struct stele_copy_unit *unit)
{
	uint64_t size;
	int ret = read_unit(w, &w->to, unit, PEEK_SIZE, &size);

	if (ret == 0)
		ret = check_slots(w, &w->to, unit, size);
	if (ret == 0 && size == PEEK_SIZE) {
		ret = read_unit(w, &w->to, unit, UINT64_MAX, &size);
		if (ret == 0)
			ret = check_slots(w, &w->to, unit, size);
	}
	if (ret == 0)
		keep_ends(w, unit, round_down(unit->offset, STELE_BLOCK_SIZE),
			  size);
	return ret;
}

int stele_copy_find_slots(struct stele_copy_worker *w,
			  const struct stele_copy_unit *unit)
{
	int ret = read_digests(w, unit);

	if (ret < 0)
		return ret;
	ret = unit->kind == STELE_COPY_LARGE ? pass_slots(w, &w->to, unit) :
					       find_small(w, unit);
	if (ret == -EBADMSG || ret == -EUCLEAN)
		return 0;
	if (ret == 0 && !w->copy->only)
		ret = put_ends(w, unit);
	return ret < 0 ? ret : 1;
}

int stele_copy_send_slots(struct stele_copy_worker *w,
			  const struct stele_copy_unit *unit)
{
	uint64_t size;
	int ret = read_digests(w, unit);

	if (ret < 0)
		return ret;
	if (unit->kind == STELE_COPY_LARGE)
		return pass_slots(w, &w->from, unit);
	ret = read_unit(w, &w->from, unit, UINT64_MAX, &size);
	if (ret == 0)
		ret = check_slots(w, &w->from, unit, size);
	if (ret == 0)
		ret = put(w, w->buffer, unit->offset,
			  unit->offset + unit->size);
	return ret;
}
