/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof-blocks.c - blocks of digests: read once while they are kept, trusted never
 *
 * The reads that checks issue, for a reader and for a proof with little memory; and
 * damage, by accident and by intent, found whatever was proven before: a forger has
 * repaired each checksum, so nothing but the levels above can tell.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/proof.h"
#include "lib/image/section.h"
#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define SAMPLES 400u
#define READS	2000u

static const struct test_plan small = {.segments = 3,
				       .samples = SAMPLES,
				       .size_max = 3000,
				       .granule = 512,
				       .delete_every = 7,
				       .verify = STELE_VERIFY_DIGEST};

/* ---- what was issued ------------------------------------------------------------ */

static uint64_t place_of(const struct stele_segment *segment, uint32_t type,
			 uint64_t *size)
{
	struct stele_section section;

	if (stele_descriptor_find_section(&segment->descriptor, type,
					  STELE_NO_FIELD, &section) < 0)
		bail("no section of type %u", type);
	*size = section.size;
	return segment->descriptor.offset + section.offset;
}

/* Blocks of these sections that were read since the log was cleared. */
static uint64_t blocks_read(const struct test_dataset *t, uint32_t type)
{
	const struct stele_fault_entry *log;
	uint64_t begin, size, sum = 0;
	size_t count;

	log = stele_fault_log(t->dev, &count);
	for (uint32_t i = 0; i < t->ds->snapshot.segment_count; i++) {
		begin = place_of(&t->ds->snapshot.segments[i], type, &size);
		for (size_t k = 0; k < count; k++)
			if (log[k].offset >= begin &&
			    log[k].offset < begin + size)
				sum += log[k].size / STELE_BLOCK_SIZE;
	}
	return sum;
}

/* That there are. */
static uint64_t blocks_of(const struct test_dataset *t, uint32_t type)
{
	uint64_t size, sum = 0;

	for (uint32_t i = 0; i < t->ds->snapshot.segment_count; i++) {
		place_of(&t->ds->snapshot.segments[i], type, &size);
		sum += size / STELE_BLOCK_SIZE;
	}
	return sum;
}

/* Blocks of the trees that the digests lead through to the roots. */
static uint64_t blocks_above_digests(const struct test_dataset *t)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < t->ds->snapshot.segment_count; i++) {
		const struct stele_descriptor *d =
			&t->ds->snapshot.segments[i].descriptor;
		struct stele_tree_shape shape;
		struct stele_section digests;
		uint64_t first, last;

		if (stele_descriptor_find_section(d, STELE_BLOCK_DIGESTS,
						  STELE_NO_FIELD, &digests) < 0)
			bail("no digests");
		stele_descriptor_tree_shape(d, &shape);
		first = stele_descriptor_leaf(d, &digests);
		last = first + digests.size / STELE_BLOCK_SIZE - 1;
		for (uint32_t j = 1; j < shape.level_count; j++) {
			first /= STELE_DIGESTS_PER_BLOCK;
			last /= STELE_DIGESTS_PER_BLOCK;
			sum += last - first + 1;
		}
	}
	return sum;
}

/* ---- a reader -------------------------------------------------------------------- */

static struct stele_reader *open_reader(const struct test_dataset *t)
{
	struct stele_reader *reader;

	if (stele_reader_open(t->ds,
			      &STELE_OPTS(stele_reader_opts, .depth = 8,
					  .check_threads = 1),
			      &reader))
		bail("no reader");
	return reader;
}

static void check_reader(void)
{
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	struct stele_reader *reader;
	struct test_dataset t;
	uint64_t ids[READS];
	size_t count;

	test_dataset_open(&t, &small);
	reader = open_reader(&t);
	for (unsigned int round = 0; round < 2; round++) {
		test_random_ids(&t, ids, READS, round + 1);
		stele_fault_log_clear(t.dev);
		is_uint(0, test_read_all(&t, reader, ids, READS),
			"random samples of all segments");
		is_uint(round ? 0 : blocks_of(&t, STELE_BLOCK_DIGESTS),
			blocks_read(&t, STELE_BLOCK_DIGESTS),
			"each block of digests is read once");
		is_uint(round ? 0 : blocks_above_digests(&t),
			blocks_read(&t, STELE_BLOCK_TREE),
			"each block of the trees is read once");
	}
	stele_fault_log(t.dev, &count);
	is_uint(READS, count, "then a sample is one read");
	ok(test_is_issued(&t, ids, READS, true), "its own");
	stele_reader_stats(reader, &stats);
	is_uint(0, stats.reread, "no sample was read again");
	stele_reader_close(reader);
	test_dataset_close(&t);
}

/* ---- damage ---------------------------------------------------------------------- */

/* Bytes of the target, to be changed and put back. */
struct patch {
	uint64_t offset;
	size_t size;
	uint8_t *data, *saved;
};

static void patch_write(const struct test_dataset *t, const struct patch *p,
			const void *data)
{
	if (stele_device_write(t->dev, data, p->offset, p->size))
		bail("write");
}

static struct patch patch_begin(const struct test_dataset *t, uint64_t offset,
				size_t size)
{
	struct patch p = {.offset = offset, .size = size};

	p.data = stele_device_alloc(t->dev, size);
	p.saved = stele_device_alloc(t->dev, size);
	if (!p.data || !p.saved || stele_device_read(t->dev, p.data, offset, size))
		bail("read");
	memcpy(p.saved, p.data, size);
	return p;
}

static void patch_undo(const struct test_dataset *t, struct patch *p)
{
	patch_write(t, p, p->saved);
	free(p->data);
	free(p->saved);
}

/* A sample with another byte and the right checksum; its digest. */
static struct patch forge_sample(const struct test_dataset *t, uint64_t id,
				 struct stele_hash *hash, uint8_t digest[32])
{
	const struct test_live *live = &t->live[id];
	const struct stele_segment *segment =
		&t->ds->snapshot.segments[live->segment];
	struct stele_record record;
	uint64_t offset, size;
	struct patch p;
	le32 crc;

	stele_segment_slot(segment, live->number, &offset, &size);
	p = patch_begin(t, offset, size);
	p.data[live->sample->size / 2] ^= 0x10;
	crc = le32_put(stele_record_crc(segment->descriptor.id, live->number,
					p.data, size));
	memcpy(p.data + size - sizeof(crc), &crc, sizeof(crc));
	if (stele_record_decode(p.data, size, &segment->shape, &record, NULL))
		bail("no record");
	test_hash_record(hash, p.data, size, &record, digest);
	patch_write(t, &p, p.data);
	return p;
}

/* Entry `index` of the first block there is `digest` now, which becomes its hash. */
static struct patch forge_block(const struct test_dataset *t,
				const struct stele_segment *segment,
				uint32_t type, uint64_t index,
				struct stele_hash *hash, uint8_t digest[32])
{
	uint64_t size, offset = place_of(segment, type, &size);
	struct patch p = patch_begin(t, offset, STELE_BLOCK_SIZE);
	struct stele_disk_block *block = (void *)p.data;

	memcpy(block->payload + index * 32, digest, 32);
	stele_block_seal(block, type, offset, segment->descriptor.id);
	stele_hash_block(hash, block, digest);
	patch_write(t, &p, p.data);
	return p;
}

/* The statuses of all samples, one after the other. */
static void read_each(const struct test_dataset *t, struct stele_reader *reader,
		      int *status)
{
	struct stele_sample sample;

	for (uint64_t id = 0; id < t->count; id++) {
		if (stele_reader_submit(reader, &id, NULL, 1) != 1 ||
		    stele_reader_collect(reader, &sample, 1, 1) != 1)
			bail("read");
		status[id] = sample.status;
		if (!sample.status && !test_is_sample(t, id, &sample))
			status[id] = -1;
		stele_reader_release(reader, &sample);
	}
}

/* How far up the forger came. */
enum reach { NOTHING, SAMPLE, DIGESTS, TREE };

/* Should this one fail? */
static bool is_below(const struct test_dataset *t, uint64_t id, uint64_t victim,
		     enum reach reach)
{
	const struct test_live *a = &t->live[id], *b = &t->live[victim];

	if (reach <= SAMPLE)
		return reach == SAMPLE && id == victim;
	return a->segment == b->segment &&
	       (reach == TREE || a->number < STELE_DIGESTS_PER_BLOCK);
}

static uint64_t count_wrong(const struct test_dataset *t,
			    struct stele_reader *reader, uint64_t victim,
			    enum reach reach)
{
	int *status = calloc(t->count, sizeof(*status));
	uint64_t wrong = 0;

	read_each(t, reader, status);
	for (uint64_t id = 0; id < t->count; id++)
		wrong += status[id] !=
			 (is_below(t, id, victim, reach) ? -EBADMSG : 0);
	free(status);
	return wrong;
}

/* The first segment is proven before, the victim's only if it is a mere sample. */
static void check_forged(enum reach reach, const char *what)
{
	uint64_t ids[SAMPLES], count = 0, victim = 0, number;
	const struct stele_segment *segment;
	struct stele_reader *reader;
	struct patch patches[3];
	struct test_dataset t;
	struct stele_hash *hash;
	uint8_t digest[32];

	test_dataset_open(&t, &small);
	reader = open_reader(&t);
	for (uint64_t id = 0; id < t.count && t.live[id].segment == 0; id++)
		ids[count++] = id;
	test_read_all(&t, reader, ids, count);
	if (reach != SAMPLE)
		victim = count;
	while (t.live[victim].sample->size < 100)
		victim++;
	number = t.live[victim].number;
	segment = &t.ds->snapshot.segments[t.live[victim].segment];
	if (stele_hash_new(&hash) || number >= STELE_DIGESTS_PER_BLOCK)
		bail("no victim");
	patches[0] = forge_sample(&t, victim, hash, digest);
	if (reach >= DIGESTS)
		patches[1] = forge_block(&t, segment, STELE_BLOCK_DIGESTS,
					 number, hash, digest);
	if (reach >= TREE)
		patches[2] = forge_block(&t, segment, STELE_BLOCK_TREE, 0, hash,
					 digest);
	for (unsigned int i = 0; i < 3; i++)
		is_uint(0, count_wrong(&t, reader, victim, reach),
			"a forged %s is found, and nothing else", what);
	for (int i = reach; i-- > 0;)
		patch_undo(&t, &patches[i]);
	is_uint(0, count_wrong(&t, reader, victim, NOTHING),
		"what was bad is not remembered");
	stele_hash_free(hash);
	stele_reader_close(reader);
	test_dataset_close(&t);
}

/* ---- reads that fail -------------------------------------------------------------- */

static int read_one(const struct test_dataset *t, struct stele_reader *reader,
		    uint64_t id)
{
	struct stele_sample sample;
	int status;

	if (stele_reader_submit(reader, &id, NULL, 1) != 1 ||
	    stele_reader_collect(reader, &sample, 1, 1) != 1)
		bail("read");
	status = sample.status;
	if (!status && !test_is_sample(t, id, &sample))
		status = -1;
	stele_reader_release(reader, &sample);
	return status;
}

static void check_fault(enum stele_fault_kind kind, uint32_t type, int wanted,
			uint64_t reread, const char *what)
{
	struct stele_fault_rule rule = {
		.kind = kind, .count = 1, .error = EIO, .arg = 9 * 8 * 64};
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	struct stele_reader *reader;
	struct test_dataset t;
	uint64_t last;

	test_dataset_open(&t, &small);
	reader = open_reader(&t);
	last = t.count - 1;
	is_int(0, read_one(&t, reader, 0), "%s: one of another segment", what);
	rule.offset = place_of(&t.ds->snapshot.segments[2], type, &rule.size);
	stele_fault_set_rules(t.dev, &rule, 1);
	is_int(wanted, read_one(&t, reader, last), "%s", what);
	stele_reader_stats(reader, &stats);
	is_uint(reread, stats.reread, "%s: read again", what);
	is_int(0, read_one(&t, reader, last), "%s: then it is right", what);
	stele_reader_close(reader);
	test_dataset_close(&t);
}

/* ---- a proof with little memory ----------------------------------------------------- */

static int check_number(struct stele_proof *proof, const struct test_dataset *t,
			uint64_t id, bool right)
{
	const struct test_live *live = &t->live[id];
	const struct stele_segment *segment =
		&t->ds->snapshot.segments[live->segment];
	uint8_t digest[32];

	if (stele_segment_digest(proof->image, segment, live->number, digest))
		bail("no digest");
	stele_fault_log_clear(t->dev);
	digest[id % 32] ^= !right;
	return stele_proof_check(proof, segment, live->number, digest);
}

static const struct test_plan three_levels = {
	.segments = 3, .samples = 127 * 127 + 200, .size_max = 40};

/* Of two sets no block of the trees has to go, though all others do. */
static void check_upper(void)
{
	uint64_t ids[READS], digests = 0, trees = 0, wrong = 0;
	struct stele_proof proof;
	struct test_dataset t;

	test_dataset_open(&t, &three_levels);
	test_random_ids(&t, ids, READS, 3);
	if (stele_proof_init(&proof, &t.ds->image, 64 << 10))
		bail("no proof");
	for (unsigned int i = 0; i < READS; i++) {
		wrong += check_number(&proof, &t, ids[i], true) != 0;
		digests += blocks_read(&t, STELE_BLOCK_DIGESTS);
		trees += blocks_read(&t, STELE_BLOCK_TREE);
	}
	is_uint(0, wrong, "all are proven");
	is_uint(blocks_above_digests(&t), trees,
		"blocks of the trees are read once");
	ok(digests < READS, "%ju blocks of digests for %u samples",
	   (uintmax_t)digests, READS);
	stele_proof_release(&proof);
	test_dataset_close(&t);
}

static bool has_failed(const struct test_dataset *t)
{
	const struct stele_fault_entry *log;
	bool failed = false;
	size_t count;

	log = stele_fault_log(t->dev, &count);
	for (size_t i = 0; i < count; i++)
		failed |= log[i].fault >= 0;
	return failed;
}

/* In one set they push each other out; reads into their memory fail, or go astray. */
static void check_failing(void)
{
	struct stele_fault_rule rule = {
		.error = EIO, .count = 1, .arg = STELE_BLOCK_SIZE};
	uint64_t ids[READS], wrong = 0, failed = 0;
	struct stele_proof proof;
	struct test_dataset t;

	test_dataset_open(&t, &three_levels);
	test_random_ids(&t, ids, READS, 4);
	if (stele_proof_init(&proof, &t.ds->image, 0))
		bail("no proof");
	for (unsigned int i = 0; i < READS; i++) {
		int ret;

		rule.kind = i % 4 == 1 ? STELE_FAULT_FAIL :
					 STELE_FAULT_MISDIRECT;
		/* The first read tells what is asked of the proof. */
		rule.first = stele_fault_count(t.dev) + 1 + i % 3;
		stele_fault_set_rules(t.dev, &rule, i % 2);
		ret = check_number(&proof, &t, ids[i], true);
		failed += has_failed(&t);
		wrong += has_failed(&t) ? ret >= 0 : ret != 0;
		stele_fault_set_rules(t.dev, NULL, 0);
		wrong += i % 50 == 0 &&
			 check_number(&proof, &t, ids[i], false) != -EBADMSG;
	}
	ok(failed > READS / 10, "%ju reads fail", (uintmax_t)failed);
	is_uint(0, wrong, "no check but theirs does");
	stele_proof_release(&proof);
	test_dataset_close(&t);
}

/* What one root proves says nothing of another; what memory loses is read again. */
static void check_trust(void)
{
	struct stele_segment other;
	struct stele_proof proof;
	struct test_dataset t;
	uint8_t digest[32];

	test_dataset_open(&t, &small);
	stele_proof_init(&proof, &t.ds->image, 0);
	is_int(0, check_number(&proof, &t, 5, true), "a digest");
	other = t.ds->snapshot.segments[0];
	other.descriptor.tree_root[31] ^= 1;
	stele_segment_digest(&t.ds->image, &other, t.live[5].number, digest);
	is_int(-EBADMSG,
	       stele_proof_check(&proof, &other, t.live[5].number, digest),
	       "the same blocks, with another root above");
	is_int(0, check_number(&proof, &t, 5, true), "under its own");
	for (unsigned int i = 0; i < 8; i++)
		proof.blocks[i].payload[t.live[5].number % 127 * 32] ^= 1;
	is_int(-EBADMSG, check_number(&proof, &t, 5, true), "memory went bad");
	is_int(0, check_number(&proof, &t, 5, true), "it is read once more");
	stele_proof_release(&proof);
	stele_proof_release(&proof);
	test_dataset_close(&t);
}

/* ---- read ahead ----------------------------------------------------------------------- */

/* A check that failed, and the same again at once. */
struct failed {
	uint64_t count, last;
	int first, again;
};

/* One sample of each block of digests of the first segment, in order. */
static struct failed check_in_order(struct stele_proof *proof, const struct test_dataset *t,
				    uint8_t (*digests)[32], uint64_t count)
{
	const struct stele_segment *segment = &t->ds->snapshot.segments[0];
	struct failed failed = {0};

	stele_fault_log_clear(t->dev);
	for (uint64_t i = 0; i < count; i++) {
		const uint64_t number = i * STELE_DIGESTS_PER_BLOCK;
		int ret = stele_proof_check(proof, segment, number, digests[i]);

		if (!ret)
			continue;
		failed.count++;
		failed.last = i;
		failed.first = ret;
		failed.again = stele_proof_check(proof, segment, number, digests[i]);
	}
	return failed;
}

static uint64_t reads_since_clear(const struct test_dataset *t)
{
	size_t count;

	stele_fault_log(t->dev, &count);
	return count;
}

/* Of those samples; how many. */
static uint64_t first_digests(const struct test_dataset *t, uint8_t (**digests)[32])
{
	const struct stele_segment *segment = &t->ds->snapshot.segments[0];
	uint64_t size, count;

	place_of(segment, STELE_BLOCK_DIGESTS, &size);
	count = size / STELE_BLOCK_SIZE;
	*digests = calloc(count, sizeof(**digests));
	for (uint64_t i = 0; i < count; i++)
		if (!*digests || stele_segment_digest(&t->ds->image, segment,
						      i * STELE_DIGESTS_PER_BLOCK,
						      (*digests)[i]))
			bail("no digest");
	return count;
}

/* Of blocks that are read together, one that is bad fails its own samples, and no others. */
static void check_ahead(void)
{
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FAIL, .error = EIO,
					.size = STELE_BLOCK_SIZE};
	uint64_t size, count, begin;
	struct failed failed;
	uint8_t (*digests)[32];
	struct stele_proof proof;
	struct test_dataset t;

	test_dataset_open(&t, &three_levels);
	begin = place_of(&t.ds->snapshot.segments[0], STELE_BLOCK_DIGESTS, &size);
	count = first_digests(&t, &digests);
	if (stele_proof_init(&proof, &t.ds->image, 0) || stele_proof_read_ahead(&proof))
		bail("no proof");
	failed = check_in_order(&proof, &t, digests, count);
	is_uint(0, failed.count, "in order: all are proven");
	is_uint(count, blocks_read(&t, STELE_BLOCK_DIGESTS), "each block is read once");
	ok(reads_since_clear(&t) <= 12, "%ju blocks in %ju reads", (uintmax_t)count,
	   (uintmax_t)reads_since_clear(&t));

	rule.offset = begin + 20 * STELE_BLOCK_SIZE;
	stele_fault_set_rules(t.dev, &rule, 1);
	failed = check_in_order(&proof, &t, digests, count);
	ok(failed.count == 1 && failed.last == 20, "an unreadable block fails its own samples");
	ok(failed.first == -EIO && failed.again == -EIO, "each time");
	rule.kind = STELE_FAULT_FLIP;
	rule.count = 1;
	rule.arg = (STELE_BLOCK_SIZE * 2 + 100) * 8; /* 5 of 3 to 6, which come together */
	rule.offset = begin + 4 * STELE_BLOCK_SIZE;
	stele_fault_set_rules(t.dev, &rule, 1);
	failed = check_in_order(&proof, &t, digests, count);
	ok(failed.count == 1 && failed.last == 5, "a block that came wrong: likewise");
	ok(failed.first == -EBADMSG && !failed.again, "once");
	stele_proof_release(&proof);
	free(digests);
	test_dataset_close(&t);
}

int main(void)
{
	plan_lazy();
	check_reader();
	check_forged(SAMPLE, "sample");
	check_forged(DIGESTS, "block of digests");
	check_forged(TREE, "tree");
	check_fault(STELE_FAULT_FAIL, STELE_BLOCK_TREE, -EIO, 0,
		    "a tree that cannot be read");
	check_fault(STELE_FAULT_FAIL, STELE_BLOCK_DIGESTS, -EIO, 0,
		    "digests that cannot be read");
	check_fault(STELE_FAULT_FLIP, STELE_BLOCK_TREE, 0, 1,
		    "a tree that is bad once");
	check_fault(STELE_FAULT_FLIP, STELE_BLOCK_DIGESTS, 0, 1,
		    "digests that are bad once");
	check_upper();
	check_failing();
	check_trust();
	check_ahead();
	return done();
}
