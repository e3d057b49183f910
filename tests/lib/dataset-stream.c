/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset-stream.c - samples piece by piece: bytes, reads issued, damage
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/proof.h"
#include "lib/image/record_stream.h"
#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define MEMORY_MAX (UINT64_C(8) << 20)

/* ---- the stream of records -------------------------------------------------- */

/* Is it the sample, by record and digest? Says what is not. */
static bool is_streamed(const struct test_dataset *t,
			struct stele_record_stream *s, struct stele_proof *proof,
			uint64_t id)
{
	const struct test_live *live = &t->live[id];
	const struct stele_segment *segment =
		&t->ds->snapshot.segments[live->segment];
	const struct test_sample *sample = live->sample;
	const struct stele_record *record = &s->check.record;
	const void *data;
	size_t size, done = 0;
	int ret;

	ret = stele_record_stream_begin(s, segment, live->number, 0,
					proof ? proof->hash : NULL);
	if (ret || record->payload_size != sample->size ||
	    record->key_size != strlen(sample->key) ||
	    memcmp(record->key, sample->key, record->key_size)) {
		diag("begin of %ju: %d %s", (uintmax_t)id, ret, s->check.why);
		return false;
	}
	while ((ret = stele_record_stream_next(s, &data, &size)) > 0) {
		if (!size || size > sample->size - done ||
		    memcmp(data, (const char *)sample->data + done, size)) {
			diag("sample %ju differs behind %zu", (uintmax_t)id,
			     done);
			return false;
		}
		done += size;
	}
	if (ret == 0 && proof)
		ret = stele_proof_check(proof, segment, live->number,
					s->check.digest);
	if (ret || done != sample->size)
		diag("sample %ju: %d, %zu bytes", (uintmax_t)id, ret, done);
	return ret == 0 && done == sample->size;
}

/* Does what was issued cover each block of the slot once, and no other? */
static bool is_read_once(const struct test_dataset *t, uint64_t id,
			 size_t *requests)
{
	const uint32_t block = t->dev->limits.logical_block;
	const struct stele_fault_entry *log;
	struct stele_extent extent = {.size = sizeof(extent)};
	uint64_t first, count, sum = 0;
	uint8_t *seen;
	bool good = true;

	stele_dataset_locate(t->ds, id, &extent);
	first = extent.offset / block;
	count = (extent.offset + extent.slot_size + block - 1) / block - first;
	seen = calloc(count, 1);
	log = stele_fault_log(t->dev, requests);
	for (size_t i = 0; i < *requests && good; i++) {
		good = log[i].op == STELE_OP_READ &&
		       log[i].offset / block >= first &&
		       (log[i].offset + log[i].size) / block <= first + count;
		for (uint64_t b = 0; good && b < log[i].size / block; b++)
			good = !seen[log[i].offset / block - first + b]++;
		sum += log[i].size / block;
	}
	free(seen);
	return good && sum == count;
}

static void check_records(const struct test_plan *plan, uint64_t memory,
			  const char *what)
{
	struct stele_record_stream s;
	struct stele_proof proof;
	struct test_dataset t;
	uint64_t wrong = 0, more = 0, held;
	size_t requests;

	test_dataset_open(&t, plan);
	if (stele_proof_init(&proof, &t.ds->image, 0))
		bail("no proof");
	is_int(0, stele_record_stream_open(&s, t.dev, memory), "%s: open", what);
	held = s.piece_count * s.stride + s.tail_room;
	ok(held <= memory && s.piece_count >= 2, "%s: holds %ju bytes", what,
	   (uintmax_t)held);
	for (uint64_t id = 0; id < t.count; id++)
		wrong += !is_streamed(&t, &s, &proof, id);
	is_uint(0, wrong, "%s: all samples", what);
	for (uint64_t id = 0; id < t.count; id++) {
		stele_record_stream_close(&s);
		if (stele_record_stream_open(&s, t.dev, memory))
			bail("no stream");
		stele_fault_log_clear(t.dev);
		wrong += !is_streamed(&t, &s, NULL, id) ||
			 !is_read_once(&t, id, &requests);
		more += requests > 1;
	}
	is_uint(0, wrong, "%s: each block of a slot is read once", what);
	if (plan->size_max <= 4000)
		is_uint(0, more, "%s: one read for each", what);
	stele_record_stream_close(&s);
	stele_record_stream_close(&s);
	stele_proof_release(&proof);
	test_dataset_close(&t);
}

/* One record left half way, others behind it; the memory is never mixed up. */
static void check_abandoned(void)
{
	struct test_plan plan = {
		.samples = 12, .size_max = 3000000, .backend = "threads"};
	struct stele_record_stream s;
	struct test_dataset t;
	const void *data;
	size_t size;
	unsigned int wrong = 0;

	test_dataset_open(&t, &plan);
	stele_record_stream_open(&s, t.dev, MEMORY_MAX / 4);
	for (uint64_t id = 0; id + 1 < t.count; id++) {
		const struct test_live *live = &t.live[id];

		wrong += stele_record_stream_begin(
				 &s, &t.ds->snapshot.segments[0], live->number,
				 0, NULL) != 0;
		wrong += stele_record_stream_next(&s, &data, &size) < 0;
		wrong += !is_streamed(&t, &s, NULL, id + 1);
	}
	is_uint(0, wrong, "a record may be left half way");
	stele_record_stream_close(&s);
	test_dataset_close(&t);
}

/* ---- samples of a dataset ---------------------------------------------------- */

struct sink {
	const struct test_sample *sample;
	size_t done, largest, calls;
	bool wrong;
	size_t stop_at; /* calls; 0: never */
};

static int take(void *user, const void *data, size_t size)
{
	struct sink *sink = user;

	sink->wrong |= size == 0 || size > sink->sample->size - sink->done ||
		       memcmp((const char *)sink->sample->data + sink->done,
			      data, size) != 0;
	sink->done += size;
	sink->largest = size > sink->largest ? size : sink->largest;
	return ++sink->calls == sink->stop_at ? 77 : 0;
}

static struct sink stream(const struct test_dataset *t, uint64_t id,
			  size_t stop_at, int *ret)
{
	struct sink sink = {.sample = t->live[id].sample, .stop_at = stop_at};

	stele_fault_log_clear(t->dev);
	*ret = stele_dataset_stream(t->ds, id, take, &sink);
	return sink;
}

static uint64_t largest_of(const struct test_dataset *t)
{
	uint64_t best = 0;

	for (uint64_t id = 0; id < t->count; id++)
		if (t->live[id].sample->size > t->live[best].sample->size)
			best = id;
	return best;
}

static void check_dataset(const char *backend, enum stele_verify verify)
{
	struct test_plan plan = {.samples = 7, .size_max = 14000000,
				 .backend = backend, .verify = verify,
				 .segments = 2, .delete_every = 5};
	struct test_dataset t;
	uint64_t wrong = 0, in_pieces = 0;
	size_t requests;
	int ret;

	test_dataset_open(&t, &plan);
	for (uint64_t id = 0; id < t.count; id++) {
		struct sink sink = stream(&t, id, 0, &ret);

		wrong += ret || sink.wrong || sink.done != sink.sample->size;
		in_pieces += sink.calls > 1;
		wrong += sink.largest > MEMORY_MAX / 2;
		wrong += verify != STELE_VERIFY_DIGEST &&
			 !is_read_once(&t, id, &requests);
	}
	is_uint(0, wrong, "%s: all samples, each block once", backend);
	ok(in_pieces > 0, "%s: %ju of them in pieces", backend,
	   (uintmax_t)in_pieces);
	stream(&t, largest_of(&t), 2, &ret);
	is_int(77, ret, "%s: the callback stops it", backend);
	stream(&t, t.count, 0, &ret);
	is_int(-ERANGE, ret, "%s: no such id", backend);
	test_dataset_close(&t);
}

/* A bit at `position` of the slot is wrong whenever it is read. */
static struct stele_fault_rule flip(const struct test_dataset *t, uint64_t id,
				    uint64_t position, uint64_t count)
{
	const struct stele_fault_entry *log;
	struct stele_extent extent = {.size = sizeof(extent)};
	size_t n;
	int ret;

	stele_dataset_locate(t->ds, id, &extent);
	position += extent.offset;
	stream(t, id, 0, &ret);
	log = stele_fault_log(t->dev, &n);
	for (size_t i = 0; i < n; i++)
		if (position >= log[i].offset &&
		    position < log[i].offset + log[i].size)
			return (struct stele_fault_rule){
				.kind = STELE_FAULT_FLIP, .count = count,
				.offset = position, .size = 1,
				.arg = (position - log[i].offset) * 8 + 2};
	bail("nobody reads %ju", (uintmax_t)position);
}

static void check_damage(enum stele_verify verify)
{
	struct test_plan plan = {
		.samples = 3, .size_max = 14000000, .verify = verify};
	struct stele_fault_rule rule;
	struct stele_extent extent = {.size = sizeof(extent)};
	struct test_dataset t;
	uint64_t id, positions[6];
	int ret;

	test_dataset_open(&t, &plan);
	id = largest_of(&t);
	stele_dataset_locate(t.ds, id, &extent);
	positions[0] = 0;
	positions[1] = extent.slot_size / 2;
	positions[2] = t.live[id].sample->size; /* padding, or the key */
	positions[3] = extent.slot_size - 10;	/* payload size */
	positions[4] = extent.slot_size - 1;
	positions[5] = extent.slot_size - 7;	/* key size */
	for (int i = 0; i < 6; i++) {
		rule = flip(&t, id, positions[i], 0);
		stele_fault_set_rules(t.dev, &rule, 1);
		stream(&t, id, 0, &ret);
		stele_fault_set_rules(t.dev, NULL, 0);
		is_int(-EBADMSG, ret, "a bit at %ju of %ju: refused",
		       (uintmax_t)positions[i], (uintmax_t)extent.slot_size);
	}
	ok(test_log_has(&t.log, "expected 0x"), "with both checksums");
	stream(&t, id, 0, &ret);
	is_int(0, ret, "without it: right");
	test_dataset_close(&t);
}

/* Each read of a large sample fails once: that errno, and no hang. */
static void check_errors(void)
{
	struct test_plan plan = {.samples = 3, .size_max = 14000000};
	struct test_dataset t;
	uint64_t id;
	unsigned int wrong = 0;
	size_t reads;
	int ret;

	test_dataset_open(&t, &plan);
	id = largest_of(&t);
	stream(&t, id, 0, &ret);
	stele_fault_log(t.dev, &reads);
	for (size_t n = 0; n < reads; n++) {
		struct stele_fault_rule rule = {.kind = STELE_FAULT_FAIL,
						.count = 1,
						.error = EREMOTEIO};

		rule.first = stele_fault_count(t.dev) + n;
		stele_fault_set_rules(t.dev, &rule, 1);
		stream(&t, id, 0, &ret);
		wrong += ret != -EREMOTEIO;
	}
	is_uint(0, wrong, "each of %zu reads failing: said", reads);
	test_dataset_close(&t);
}

/* A sample that fits is read again, and never handed out wrong. */
static void check_small(void)
{
	struct test_plan plan = {.samples = 20, .size_max = 9000};
	struct stele_fault_rule rule;
	struct test_dataset t;
	struct sink sink;
	int ret;

	test_dataset_open(&t, &plan);
	rule = flip(&t, 7, 3, 1);
	stele_fault_set_rules(t.dev, &rule, 1);
	sink = stream(&t, 7, 0, &ret);
	ok(ret == 0 && !sink.wrong, "a bit flips once: the second read heals");
	rule.count = 0;
	stele_fault_set_rules(t.dev, &rule, 1);
	sink = stream(&t, 7, 0, &ret);
	is_int(-EBADMSG, ret, "always: refused");
	is_uint(0, sink.calls, "and nothing handed out");
	test_dataset_close(&t);
}

/* ---- a part of a sample ------------------------------------------------------- */

static uint64_t wrong_ranges(const struct test_dataset *t, uint64_t id)
{
	const struct test_sample *sample = t->live[id].sample;
	const uint64_t size = sample->size;
	const uint64_t ranges[][2] = {
		{0, size}, {0, 1}, {1, 511}, {size / 2, size}, {size - 1, 9},
		{size, 1}, {size + 9, 9}, {size / 3, size / 3}, {7, 0},
		{UINT64_MAX, UINT64_MAX},
	};
	uint8_t *buffer = malloc(size + 10);
	uint64_t wrong = 0, got;

	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
		const uint64_t offset = ranges[i][0], most = ranges[i][1];
		const uint64_t left = offset < size ? size - offset : 0;
		const uint64_t want = most < left ? most : left;

		memset(buffer, 0xee, size + 10);
		wrong += stele_dataset_read_range(t->ds, id, offset, most,
						  buffer, &got) ||
			 got != want || buffer[want] != 0xee ||
			 (want && memcmp(buffer, (const char *)sample->data +
							 offset, want));
	}
	free(buffer);
	return wrong;
}

static void check_ranges(enum stele_verify verify, uint64_t size_max)
{
	const struct test_plan plan = {.samples = 6, .size_max = size_max,
				       .verify = verify};
	const struct stele_fault_entry *log;
	struct test_dataset t;
	uint64_t wrong = 0, sum = 0, got;
	uint8_t byte;
	size_t issued;

	test_dataset_open(&t, &plan);
	for (uint64_t id = 0; id < t.count; id++)
		wrong += t.live[id].sample->size ? wrong_ranges(&t, id) : 0;
	is_uint(0, wrong, "ranges of up to %ju, verify %d", (uintmax_t)size_max,
		verify);
	stele_fault_log_clear(t.dev);
	stele_dataset_read_range(t.ds, 0, 0, 1, &byte, &got);
	log = stele_fault_log(t.dev, &issued);
	for (size_t i = 0; i < issued; i++)
		sum += log[i].size;
	if (verify == STELE_VERIFY_NONE)
		ok(sum < 32768, "unchecked, little is read: %ju", (uintmax_t)sum);
	else
		ok(sum >= t.live[0].sample->size, "checked, all is read");
	is_int(-ERANGE, stele_dataset_read_range(t.ds, t.count, 0, 1, &byte, &got),
	       "no such sample");
	is_int(-EINVAL, stele_dataset_read_range(t.ds, 0, 0, 1, NULL, &got),
	       "no buffer");
	test_dataset_close(&t);
}

static void test_ranges(void)
{
	check_ranges(STELE_VERIFY_NONE, 3000);
	check_ranges(STELE_VERIFY_CRC, 3000);
	check_ranges(STELE_VERIFY_DIGEST, 3000);
	check_ranges(STELE_VERIFY_NONE, 10 << 20);
	check_ranges(STELE_VERIFY_CRC, 10 << 20);
}

int main(void)
{
	static const uint64_t memories[] = {STELE_RECORD_MEMORY_MIN, 100000,
					    1000000, MEMORY_MAX};
	struct test_plan plan = {.samples = 30, .size_max = 600000,
				 .segments = 2, .delete_every = 4};
	struct stele_record_stream s;
	char what[64];

	plan_lazy();
	for (unsigned int i = 0; i < 8; i++) {
		plan.logical_block = i & 1 ? 4096 : 512;
		plan.granule = i & 1 ? 64 : 16;
		snprintf(what, sizeof(what), "%ju bytes, blocks of %u",
			 (uintmax_t)memories[i / 2], plan.logical_block);
		check_records(&plan, memories[i / 2], what);
	}
	plan.size_max = 4000;
	check_records(&plan, STELE_RECORD_MEMORY_MIN, "small samples");
	is_int(-EINVAL, stele_record_stream_open(&s, NULL, 100), "too little");
	check_abandoned();
	check_dataset("threads", STELE_VERIFY_DIGEST);
	check_dataset("uring", STELE_VERIFY_CRC);
	check_damage(STELE_VERIFY_CRC);
	check_damage(STELE_VERIFY_DIGEST);
	check_errors();
	check_small();
	test_ranges();
	return done();
}
