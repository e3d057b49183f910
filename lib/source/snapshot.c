/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.c - a snapshot as a source: its live samples, in the order of keys
 *
 * Keys and sizes come from sections alone, the place of an entry is its id. What a
 * thread expects to open is gathered: as many samples as memory holds, whatever their
 * order. Larger ones, and those of a gathering that failed, are streamed one by one.
 * The end of a sample's bytes is told only when its checksum and its digest were right:
 * what is made of it gets digests of its own, which must not vouch for what these do not.
 */
#include "lib/source/source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/image/gather.h"
#include "lib/image/merge.h"
#include "lib/image/proof.h"
#include "lib/image/record_stream.h"

/* Of digests, for each thread. */
#define PROOF_MEMORY (256u << 10)
#define STREAM_SHARE 4u /* of the memory; the rest is for gathering */
#define WINDOW_SPARE 4u /* of that, for its pieces, and for slots that were larger */
/* Keys between two looks at the clock. */
#define TICK_EVERY 1024u

struct snapshot_source {
	struct stele_log log;
	const struct stele_image *image;	 /* the caller's, both */
	const struct stele_snapshot *snapshot;
	uint64_t stream_memory, gather_memory; /* of one thread */
	struct stele_field fields[STELE_FIELDS_MAX];
};

/* What a thread keeps. */
struct reading {
	const struct snapshot_source *source;
	struct stele_record_stream stream;
	struct stele_proof proof;
	struct stele_gather gather;
	const uint64_t *expected; /* places */
	uint64_t expected_count, opened, gathered;
	bool failed; /* what was gathered is not there, or not right: it is read alone */
	const bool *stop;
	const struct stele_segment *segment; /* of the record at hand */
	uint64_t number;
	bool proven; /* its digest was right */
	const uint8_t *data; /* of a piece, not handed out yet */
	size_t size;
	bool unproven; /* the record is as it was written; what says so is not (logged) */
};

/* ---- scan ------------------------------------------------------------------- */

static int unclean(const struct snapshot_source *s, const struct stele_key *key,
		   const char *what)
{
	char text[STELE_QUOTE_SIZE];

	stele_log_error(&s->log, "keys: '%s' %s",
			stele_source_quote(key->key, key->key_size, text),
			what);
	return -EUCLEAN;
}

struct scan {
	const struct snapshot_source *s;
	const struct stele_source_sink *sink;
	struct stele_keys_merge merge;
	struct stele_key last; /* that was told */
	uint64_t seen, live;
	struct timespec asked;
};

static int ask(struct scan *scan)
{
	struct timespec now;
	int64_t ms;

	if (scan->seen++ % TICK_EVERY)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = (now.tv_sec - scan->asked.tv_sec) * 1000 +
	     (now.tv_nsec - scan->asked.tv_nsec) / 1000000;
	if (ms < STELE_PROGRESS_MS)
		return 0;
	scan->asked = now;
	return scan->sink->tick(scan->sink->user) ? -ECANCELED : 0;
}

static int tell(struct scan *scan, uint32_t index, const struct stele_key *key)
{
	struct stele_source_entry entry = {
		.size = sizeof(entry), .key = key->key,
		.key_size = key->key_size, .data_size = key->size,
	};
	int ret = stele_keys_merge_id(&scan->merge, index, key, &entry.place);

	if (ret == -ENOENT)
		return 0;
	if (ret < 0)
		return unclean(scan->s, key, "number out of range");
	if (scan->live && stele_key_compare(key->key, key->key_size,
					    scan->last.key,
					    scan->last.key_size) == 0)
		return unclean(scan->s, key, "occurs twice");
	memcpy(scan->last.key, key->key, key->key_size);
	scan->last.key_size = key->key_size;
	scan->live++;
	return scan->sink->entry(scan->sink->user, &entry);
}

static int walk(struct scan *scan)
{
	const struct stele_snapshot *snapshot = scan->s->snapshot;
	const struct stele_key *key;
	uint32_t index;
	int ret = 0;

	for (uint32_t i = 0; i < snapshot->segment_count && !ret; i++)
		ret = stele_keys_merge_add(&scan->merge, scan->s->image,
					   &snapshot->segments[i], NULL, 0);
	while (!ret) {
		ret = stele_keys_merge_next(&scan->merge, &index, &key);
		if (ret <= 0)
			break;
		ret = ask(scan);
		if (!ret)
			ret = tell(scan, index, key);
	}
	if (ret || scan->live == snapshot->sample_count)
		return ret;
	stele_log_error(&scan->s->log,
			"keys: only %" PRIu64 " of %" PRIu64 " samples have one",
			scan->live, snapshot->sample_count);
	return -EUCLEAN;
}

static int snapshot_scan(void *user, const struct stele_source_sink *sink)
{
	struct scan *scan = calloc(1, sizeof(*scan));
	int ret;

	if (!scan)
		return -ENOMEM;
	scan->s = user;
	scan->sink = sink;
	ret = stele_keys_merge_init(&scan->merge,
				    scan->s->snapshot->segment_count);
	if (!ret)
		ret = walk(scan);
	stele_keys_merge_release(&scan->merge);
	free(scan);
	return ret;
}

/* A later segment knows all names of those before it. */
static int snapshot_schema(void *user, const struct stele_schema *base,
			   struct stele_schema *out)
{
	struct snapshot_source *s = user;
	const struct stele_snapshot *snapshot = s->snapshot;
	const struct stele_segment *last;

	(void)base;
	s->fields[0] = (struct stele_field){.size = sizeof(s->fields[0]),
					    .name = "data",
					    .type = STELE_TYPE_BYTES};
	out->fields = s->fields;
	out->count = 1; /* of what has no samples, and never had a field */
	if (!snapshot->segment_count)
		return 0;
	last = &snapshot->segments[snapshot->segment_count - 1];
	out->count = last->descriptor.field_count;
	for (uint32_t i = 0; i < out->count; i++)
		stele_segment_field(last, i, &s->fields[i]);
	return 0;
}

/* ---- entries ---------------------------------------------------------------- */

static int damaged(const struct reading *r, int error)
{
	const char *why = r->stream.check.why;

	if (!r->unproven)
		stele_log_error(&r->source->log, "record at %" PRIu64 ": %s",
				r->stream.slot_offset,
				*why ? why : stele_strerror(error));
	return error;
}

static void reader_free(void *reader)
{
	struct reading *r = reader;

	stele_record_stream_close(&r->stream);
	stele_gather_close(&r->gather);
	stele_proof_release(&r->proof);
	free(r);
}

static int reader_new(void *user, void **reader)
{
	const struct snapshot_source *s = user;
	struct reading *r = calloc(1, sizeof(*r));
	int ret = r ? 0 : -ENOMEM;

	if (!r)
		return ret;
	r->source = s;
	ret = stele_record_stream_open(&r->stream, s->image->dev, s->stream_memory);
	if (ret == 0)
		ret = stele_gather_open(&r->gather, s->image->dev, s->gather_memory);
	if (ret == 0)
		ret = stele_proof_init(&r->proof, s->image, PROOF_MEMORY);
	if (ret == 0)
		ret = stele_proof_read_ahead(&r->proof);
	if (ret < 0)
		reader_free(r);
	else
		*reader = r;
	return ret;
}

static bool is_entry(const struct stele_record *record,
		     const struct stele_source_entry *entry)
{
	return record->payload_size == entry->data_size &&
	       record->key_size == entry->key_size &&
	       memcmp(record->key, entry->key, entry->key_size) == 0;
}

/* The next bytes of the record at hand. Return: 1; 0: all of it is as it was written. */
static int next_piece(struct reading *r, const void **data, size_t *size)
{
	int ret = stele_record_stream_next(&r->stream, data, size);

	if (ret || r->proven)
		return ret;
	ret = stele_proof_check(&r->proof, r->segment, r->number, r->stream.check.digest);
	r->unproven = ret < 0;
	return ret;
}

static int drain(struct reading *r)
{
	const void *data;
	size_t size;
	int ret;

	do
		ret = next_piece(r, &data, &size);
	while (ret > 0);
	return ret;
}

/* The tail was read first; whether it is right, only the end tells. */
static void fill_values(const struct reading *r, union stele_value *values)
{
	const struct stele_record *record = &r->stream.check.record;
	const struct stele_segment *segment = r->segment;
	uint32_t bytes = 0, scalar = 0;
	uint64_t begin = 0, bits;

	for (uint32_t i = 0; i < segment->descriptor.field_count; i++) {
		if (stele_field_is_scalar(segment->fields[i].type)) {
			bits = le64_get(record->scalars[scalar++]);
			memcpy(&values[i], &bits, sizeof(bits));
			continue;
		}
		values[i].size = record->payload_size - begin;
		if (++bytes < segment->shape.bytes_count)
			values[i].size = le64_get(record->ends[bytes - 1]) -
					 begin;
		begin += values[i].size;
	}
}

/* ---- what is expected ------------------------------------------------------- */

static void snapshot_expect(void *reader, const uint64_t *places, uint64_t count,
			    const bool *stop)
{
	struct reading *r = reader;

	r->expected = places;
	r->expected_count = count;
	r->opened = r->gathered = 0;
	r->stop = stop;
}

/* In the order of the device, in which their digests are, too. */
static int prove(void *user, uint64_t id, const uint8_t *slot, uint64_t size)
{
	struct reading *r = user;
	struct stele_record_check check = {.slot_size = size, .hash = r->proof.hash};
	int ret = stele_snapshot_locate(r->source->snapshot, id, &check.segment,
					&check.number);

	if (!ret && __atomic_load_n(r->stop, __ATOMIC_RELAXED))
		ret = -ECANCELED;
	if (!ret)
		ret = stele_record_check_slot(&check, slot);
	return ret ? ret :
		     stele_proof_check(&r->proof, check.segment, check.number,
				       check.digest);
}

/* The next ones. What is wrong with one is told when it is read alone. */
static int gather(struct reading *r)
{
	const struct stele_segment *segment;
	uint64_t number, offset, size;
	int ret = 0;

	stele_gather_begin(&r->gather);
	for (; r->gathered < r->expected_count; r->gathered++) {
		ret = stele_snapshot_locate(r->source->snapshot,
					    r->expected[r->gathered], &segment, &number);
		if (ret < 0)
			return ret;
		stele_segment_slot(segment, number, &offset, &size);
		if (size <= r->gather.slot_max &&
		    !stele_gather_add(&r->gather, r->expected[r->gathered], offset,
				      size))
			break;
	}
	ret = stele_gather_run(&r->gather, r->stop);
	if (!ret)
		ret = stele_gather_each(&r->gather, prove, r);
	r->failed = ret < 0;
	return ret == -ECANCELED ? ret : 0;
}

/* *slot: NULL if it is to be read alone. */
static int find(struct reading *r, uint64_t place, const uint8_t **slot)
{
	uint64_t offset, size;
	int ret = 0;

	*slot = NULL;
	if (r->opened == r->expected_count || r->expected[r->opened] != place)
		return 0;
	if (r->opened == r->gathered)
		ret = gather(r);
	if (ret < 0)
		return ret;
	r->opened++;
	stele_segment_slot(r->segment, r->number, &offset, &size);
	if (size > r->gather.slot_max)
		return 0;
	*slot = stele_gather_next(&r->gather, size);
	if (r->failed)
		*slot = NULL;
	return 0;
}

static int snapshot_open(void *reader, const struct stele_source_entry *entry,
			 union stele_value *values)
{
	struct reading *r = reader;
	const struct snapshot_source *s = r->source;
	const uint8_t *slot;
	int ret;

	r->size = 0;
	ret = stele_snapshot_locate(s->snapshot, entry->place, &r->segment,
				    &r->number);
	if (!ret)
		ret = find(r, entry->place, &slot);
	if (ret < 0)
		return ret;
	r->proven = slot;
	ret = slot ? stele_record_stream_begin_at(&r->stream, r->segment, r->number,
						  slot) :
		     stele_record_stream_begin(&r->stream, r->segment, r->number, 0,
					       r->proof.hash);
	if (!ret && !is_entry(&r->stream.check.record, entry)) {
		ret = drain(r);
		if (!ret)
			r->stream.check.why =
				"key or size differ from the keys section";
		ret = ret ? ret : -EUCLEAN;
	}
	if (ret < 0)
		return damaged(r, ret);
	fill_values(r, values);
	return 0;
}

/* Short only at the end, and never before the checksum was right. */
static int64_t snapshot_read(void *reader,
			     const struct stele_source_entry *entry,
			     uint64_t offset, void *data, size_t size)
{
	struct reading *r = reader;
	size_t done = 0;

	(void)entry;
	(void)offset;

	while (done < size) {
		const void *piece;
		size_t n = size - done;

		if (!r->size) {
			int ret = next_piece(r, &piece, &r->size);

			if (ret < 0)
				return damaged(r, ret);
			if (ret == 0)
				break;
			r->data = piece;
		}
		if (n > r->size)
			n = r->size;
		memcpy((uint8_t *)data + done, r->data, n);
		r->data += n;
		r->size -= n;
		done += n;
	}
	return (int64_t)done;
}

static const struct stele_source_ops snapshot_ops = {
	.size = sizeof(snapshot_ops),
	.scan = snapshot_scan,
	.schema = snapshot_schema,
	.reader_new = reader_new,
	.reader_free = reader_free,
	.open = snapshot_open,
	.read = snapshot_read,
};

int stele_source_open_snapshot(const struct stele_image *image,
			       const struct stele_snapshot *snapshot,
			       uint64_t memory, const struct stele_log *log,
			       struct stele_source *out)
{
	struct snapshot_source *s;

	if (memory < STELE_SNAPSHOT_MEMORY_MIN)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	if (log)
		s->log = *log;
	s->image = image;
	s->snapshot = snapshot;
	s->stream_memory = memory / STREAM_SHARE;
	if (s->stream_memory < STELE_RECORD_MEMORY_MIN)
		s->stream_memory = STELE_RECORD_MEMORY_MIN;
	s->gather_memory = memory - s->stream_memory;
	*out = (struct stele_source){
		.ops = snapshot_ops, .user = s, .release = free, .stored = true,
		.expect = snapshot_expect,
		.window = s->gather_memory - s->gather_memory / WINDOW_SPARE,
		.window_entry = STELE_GATHER_ENTRY_SIZE + sizeof(uint64_t)};
	return 0;
}
