/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.c - a snapshot as a source: its live samples, in the order of keys
 *
 * Keys and sizes come from sections alone, the place of an entry is its id. A
 * sample is streamed from the device: what is read ahead is bounded, and the
 * end of its bytes is told only when its checksum and its digest were right: what is
 * made of it gets digests of its own, which must not vouch for what these do not. A
 * thread keeps one stream from sample to sample.
 */
#include "lib/source/source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/image/merge.h"
#include "lib/image/proof.h"
#include "lib/image/record_stream.h"

/* Of digests, for each thread. */
#define PROOF_MEMORY (256u << 10)
/* Keys between two looks at the clock. */
#define TICK_EVERY 1024u

struct snapshot_source {
	struct stele_source source;
	const struct stele_image *image;	 /* the caller's, both */
	const struct stele_snapshot *snapshot;
	uint64_t memory; /* that one thread reads with */
};

/* What a thread keeps. */
struct reading {
	struct stele_record_stream stream;
	struct stele_proof proof;
	const struct stele_segment *segment; /* of the record at hand */
	uint64_t number;
	const uint8_t *data; /* of a piece, not handed out yet */
	size_t size;
};

static const struct snapshot_source *source_of(const struct stele_source *source)
{
	return (const struct snapshot_source *)source;
}

/* ---- scan ------------------------------------------------------------------- */

static int unclean(const struct snapshot_source *s, const struct stele_key *key,
		   const char *what)
{
	char text[STELE_QUOTE_SIZE];

	stele_log_error(&s->source.log, "keys: '%s' %s",
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
		.key = key->key, .key_size = key->key_size, .size = key->size,
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
	stele_log_error(&scan->s->source.log,
			"keys: only %" PRIu64 " of %" PRIu64 " samples have one",
			scan->live, snapshot->sample_count);
	return -EUCLEAN;
}

static int snapshot_scan(struct stele_source *source,
			 const struct stele_source_sink *sink)
{
	struct scan *scan = calloc(1, sizeof(*scan));
	int ret;

	if (!scan)
		return -ENOMEM;
	scan->s = source_of(source);
	scan->sink = sink;
	ret = stele_keys_merge_init(&scan->merge,
				    scan->s->snapshot->segment_count);
	if (!ret)
		ret = walk(scan);
	stele_keys_merge_release(&scan->merge);
	free(scan);
	return ret;
}

static void snapshot_schema(struct stele_source *source,
			    struct stele_source_schema *out)
{
	const struct stele_snapshot *snapshot = source_of(source)->snapshot;
	const struct stele_segment *last;

	*out = (struct stele_source_schema){0};
	if (!snapshot->segment_count)
		return;
	/* A later segment knows all names of those before it. */
	last = &snapshot->segments[snapshot->segment_count - 1];
	out->fields = last->fields;
	out->names = last->names;
	out->field_count = last->descriptor.field_count;
}

/* ---- entries ---------------------------------------------------------------- */

static int damaged(const struct snapshot_source *s,
		   const struct stele_record_stream *stream, int error)
{
	const char *why = stream->check.why;

	stele_log_error(&s->source.log, "record at %" PRIu64 ": %s",
			stream->slot_offset,
			*why ? why : stele_strerror(error));
	return error;
}

static int prepare(const struct snapshot_source *s,
		   struct stele_source_file *file)
{
	struct reading *r = file->state;
	int ret;

	if (r)
		return 0;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	ret = stele_record_stream_open(&r->stream, s->image->dev, s->memory);
	if (ret == 0)
		ret = stele_proof_init(&r->proof, s->image, PROOF_MEMORY);
	if (ret < 0) {
		stele_record_stream_close(&r->stream);
		free(r);
		return ret;
	}
	file->state = r;
	return 0;
}

static bool is_entry(const struct stele_record *record,
		     const struct stele_source_entry *entry)
{
	return record->payload_size == entry->size &&
	       record->key_size == entry->key_size &&
	       memcmp(record->key, entry->key, entry->key_size) == 0;
}

/* The next bytes of the record at hand. Return: 1; 0: all of it is as it was written. */
static int next_piece(struct reading *r, const void **data, size_t *size)
{
	int ret = stele_record_stream_next(&r->stream, data, size);

	return ret ? ret :
		     stele_proof_check(&r->proof, r->segment, r->number,
				       r->stream.check.digest);
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

static int snapshot_open(struct stele_source *source,
			 const struct stele_source_entry *entry,
			 struct stele_source_file *file)
{
	const struct snapshot_source *s = source_of(source);
	struct reading *r;
	int ret = prepare(s, file);

	if (ret < 0)
		return ret;
	r = file->state;
	r->size = 0;
	ret = stele_snapshot_locate(s->snapshot, entry->place, &r->segment,
				    &r->number);
	if (ret < 0)
		return ret;
	ret = stele_record_stream_begin(&r->stream, r->segment, r->number, 0,
					r->proof.hash);
	if (!ret && !is_entry(&r->stream.check.record, entry)) {
		ret = drain(r);
		if (!ret)
			r->stream.check.why =
				"key or size differ from the keys section";
		ret = ret ? ret : -EUCLEAN;
	}
	if (ret < 0)
		return damaged(s, &r->stream, ret);
	file->source = source;
	return 0;
}

/* Short only at the end, and never before the checksum was right. */
static ssize_t snapshot_read(struct stele_source_file *file, void *data,
			     size_t size)
{
	struct reading *r = file->state;
	size_t done = 0;

	while (done < size) {
		const void *piece;
		size_t n = size - done;

		if (!r->size) {
			int ret = next_piece(r, &piece, &r->size);

			if (ret < 0)
				return damaged(source_of(file->source),
					       &r->stream, ret);
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
	return (ssize_t)done;
}

static void snapshot_tail(struct stele_source_file *file, uint64_t *ends,
			  uint64_t *scalars)
{
	const struct reading *r = file->state;
	const struct stele_record *record = &r->stream.check.record;
	/* All segments of a snapshot have one shape. */
	const struct stele_record_shape *shape =
		&source_of(file->source)->snapshot->segments[0].shape;

	for (uint32_t i = 0; i + 1 < shape->bytes_count; i++)
		ends[i] = le64_get(record->ends[i]);
	for (uint32_t i = 0; i < shape->scalar_count; i++)
		scalars[i] = le64_get(record->scalars[i]);
}

static void snapshot_close(struct stele_source_file *file)
{
	file->source = NULL;
}

static void snapshot_forget(struct stele_source_file *file)
{
	struct reading *r = file->state;

	if (r) {
		stele_record_stream_close(&r->stream);
		stele_proof_release(&r->proof);
	}
	free(r);
	file->state = NULL;
}

static void snapshot_release(struct stele_source *source)
{
	free(source);
}

static const struct stele_source_ops snapshot_ops = {
	.scan = snapshot_scan,
	.open = snapshot_open,
	.read = snapshot_read,
	.close = snapshot_close,
	.release = snapshot_release,
	.schema = snapshot_schema,
	.tail = snapshot_tail,
	.forget = snapshot_forget,
};

int stele_source_open_snapshot(const struct stele_image *image,
			       const struct stele_snapshot *snapshot,
			       uint64_t memory, const struct stele_log *log,
			       struct stele_source **out)
{
	struct snapshot_source *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->source.ops = &snapshot_ops;
	if (log)
		s->source.log = *log;
	s->image = image;
	s->snapshot = snapshot;
	s->memory = memory;
	*out = &s->source;
	return 0;
}
