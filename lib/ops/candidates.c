/* SPDX-License-Identifier: Apache-2.0 */
/*
 * candidates.c - digests of the base, digests of files, compare
 */
#include "lib/ops/candidates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/workers.h"
#include "lib/image/digest.h"
#include "lib/image/section.h"
#include "lib/segment/pack.h"
#include "lib/segment/sort.h"

#define BLOCKS_MAX	64u /* of digests, in one read */
#define BLOCKS_GAP	4u  /* that are read to save a read */
#define UNIT		8u  /* files that a thread takes at once */
#define BUFFER_SIZE_MAX (UINT64_C(256) << 10)
#define BUFFER_SIZE_MIN (UINT64_C(16) << 10)

int stele_candidates_init(struct stele_candidates *candidates,
			  struct stele_builder *builder,
			  const struct stele_plan *plan,
			  const struct stele_source *source,
			  const struct stele_base *base)
{
	*candidates = (struct stele_candidates){
		.builder = builder,
		.plan = plan,
		.source = source,
		.base = base,
		.pool = {
			.budget = builder->opts.memory_size / 4,
			.directory = builder->temp_directory,
			.log = &builder->log,
		},
	};
	stele_spill_init(&candidates->list, &candidates->pool);
	stele_spill_init(&candidates->places, &candidates->pool);
	return 0;
}

void stele_candidates_release(struct stele_candidates *candidates)
{
	stele_spill_release(&candidates->list);
	stele_spill_release(&candidates->places);
	memset(candidates, 0, sizeof(*candidates));
}

int stele_candidates_add(struct stele_candidates *candidates, uint64_t ordinal,
			 uint64_t number, uint64_t size)
{
	struct stele_candidate *list;
	int ret = stele_spill_grow(&candidates->list, (candidates->count + 1) *
						     sizeof(*list));

	if (ret < 0)
		return ret;
	list = candidates->list.data;
	list[candidates->count++] = (struct stele_candidate){
		.ordinal = ordinal,
		.number = number,
		.size = size,
	};
	candidates->bytes_total += size;
	return 0;
}

/* ---- digests of the base ------------------------------------------------------ */

/* A candidate, and what its digest is found by. */
struct place {
	uint64_t number, index;
};

static int by_number(const void *a, const void *b, void *user)
{
	const struct place *x = a, *y = b;

	(void)user;
	return (x->number > y->number) - (x->number < y->number);
}

static int tick(void *user)
{
	return stele_builder_tick(user);
}

static int sort_places(struct stele_candidates *candidates)
{
	const struct stele_candidate *list = candidates->list.data;
	struct place *places;
	int ret = stele_spill_grow(&candidates->places,
				   candidates->count * sizeof(*places));

	if (ret < 0)
		return ret;
	places = candidates->places.data;
	for (uint64_t i = 0; i < candidates->count; i++)
		places[i] = (struct place){list[i].number, i};
	return stele_sort(&candidates->places, candidates->count,
			  sizeof(*places), by_number, tick,
			  candidates->builder);
}

static uint64_t block_of(const struct place *place)
{
	return place->number / STELE_DIGESTS_PER_BLOCK;
}

/* How many of the `left` in `places` one read of up to BLOCKS_MAX blocks serves. */
static uint64_t one_read(const struct place *places, uint64_t left)
{
	const uint64_t first = block_of(places);
	uint64_t n = 1;

	while (n < left && block_of(&places[n]) < first + BLOCKS_MAX &&
	       block_of(&places[n]) <= block_of(&places[n - 1]) + BLOCKS_GAP)
		n++;
	return n;
}

static void copy_digests(struct stele_candidate *list,
			 const struct place *places, uint64_t count,
			 const struct stele_disk_block *blocks)
{
	for (uint64_t i = 0; i < count; i++) {
		const uint64_t block = block_of(&places[i]) - block_of(places);
		const uint64_t at = places[i].number % STELE_DIGESTS_PER_BLOCK;

		memcpy(list[places[i].index].digest,
		       blocks[block].payload + at * STELE_DIGEST_SIZE,
		       STELE_DIGEST_SIZE);
	}
}

static int read_digests(struct stele_candidates *candidates)
{
	const struct stele_image *image = candidates->base->image;
	const struct place *places = candidates->places.data;
	struct stele_disk_block *blocks;
	struct stele_section section;
	uint64_t taken;
	int ret = 0;

	if (stele_descriptor_find_section(&candidates->segment->descriptor,
					  STELE_BLOCK_DIGESTS, STELE_NO_FIELD,
					  &section) < 0)
		return -EUCLEAN;
	blocks = stele_device_alloc(image->dev, BLOCKS_MAX * STELE_BLOCK_SIZE);
	if (!blocks)
		return -ENOMEM;
	for (uint64_t i = 0; i < candidates->count && !ret; i += taken) {
		const struct place *last;

		taken = one_read(places + i, candidates->count - i);
		last = &places[i + taken - 1];
		ret = stele_section_read(image, candidates->segment, &section,
					 block_of(&places[i]),
					 block_of(last) - block_of(&places[i]) +
						 1,
					 blocks);
		if (!ret)
			copy_digests(candidates->list.data, places + i, taken,
				     blocks);
		if (!ret)
			ret = stele_builder_tick(candidates->builder);
	}
	free(blocks);
	return ret;
}

/* ---- digests of the source ---------------------------------------------------- */

struct hashing {
	struct stele_candidates *candidates;
	size_t buffer_size;
	uint64_t next; /* index of the first one not taken; atomic */
	bool stop;     /* atomic */
};

/* What one thread has. */
struct hasher {
	struct hashing *hashing;
	struct stele_hash *hash;
	struct stele_source_reader reader;
	uint8_t *buffer;
	uint8_t tail[STELE_RECORD_TAIL_MAX];
};

static bool stopped(const struct hashing *hashing)
{
	return __atomic_load_n(&hashing->stop, __ATOMIC_RELAXED);
}

static void stop(struct hashing *hashing)
{
	__atomic_store_n(&hashing->stop, true, __ATOMIC_RELAXED);
}

/* All bytes of an open sample. */
static int add_payload(struct hasher *hasher)
{
	struct stele_candidates *c = hasher->hashing->candidates;

	while (hasher->reader.left) {
		int64_t got = stele_source_reader_read(
			&hasher->reader, hasher->buffer,
			hasher->hashing->buffer_size);

		if (got < 0)
			return (int)got;
		if (stopped(hasher->hashing))
			return -ECANCELED;
		stele_hash_add(hasher->hash, hasher->buffer, (size_t)got);
		__atomic_add_fetch(&c->bytes, (uint64_t)got, __ATOMIC_RELAXED);
	}
	return stele_source_reader_end(&hasher->reader);
}

/* The leaf digest that the sample would have on the base. */
static int hash_file(struct hasher *hasher,
		     const struct stele_source_entry *entry, uint8_t digest[32])
{
	struct stele_source_reader *reader = &hasher->reader;
	uint8_t *end = hasher->tail + sizeof(hasher->tail);
	size_t size;
	int ret = stele_source_reader_open(reader, entry);

	stele_hash_begin(hasher->hash, STELE_HASH_LEAF);
	if (!ret)
		ret = add_payload(hasher);
	stele_source_reader_close(reader);
	if (ret < 0)
		return ret;
	size = stele_record_put_tail(&reader->fields->shape, end,
				     entry->data_size, entry->key,
				     (uint32_t)entry->key_size,
				     reader->record_ends, reader->scalars, 0);
	stele_hash_add(hasher->hash, end - size, size - sizeof(le32));
	stele_hash_end(hasher->hash, digest);
	return 0;
}

static int decide_one(struct hasher *hasher, struct stele_candidate *candidate)
{
	const struct stele_candidates *c = hasher->hashing->candidates;
	struct stele_source_entry entry;
	uint8_t digest[32];
	int ret;

	stele_table_get(&c->plan->table, candidate->ordinal, &entry);
	ret = hash_file(hasher, &entry, digest);
	if (ret == -ECANCELED)
		return ret;
	if (ret < 0)
		return stele_builder_lost(c->builder, entry.key, entry.key_size,
					  ret, hasher->reader.why);
	candidate->changed = memcmp(digest, candidate->digest,
				    sizeof(digest)) != 0;
	return 0;
}

static int hash_work(void *user, unsigned int index)
{
	struct hashing *hashing = user;
	struct stele_candidates *c = hashing->candidates;
	struct stele_candidate *list = c->list.data;
	struct hasher hasher = {.hashing = hashing};
	int ret = stele_hash_new(&hasher.hash);

	(void)index;
	if (!ret)
		ret = stele_source_reader_init(&hasher.reader, c->source,
					       &c->plan->fields);
	hasher.buffer = malloc(hashing->buffer_size);
	if (!ret && !hasher.buffer)
		ret = -ENOMEM;
	while (!ret && !stopped(hashing)) {
		uint64_t at = __atomic_fetch_add(&hashing->next, UNIT,
						 __ATOMIC_RELAXED);
		uint64_t end = at + UNIT < c->count ? at + UNIT : c->count;

		if (at >= c->count)
			break;
		for (; at < end && !ret; at++)
			ret = decide_one(&hasher, &list[at]);
	}
	stele_source_reader_release(&hasher.reader);
	free(hasher.buffer);
	stele_hash_free(hasher.hash);
	if (ret == -ECANCELED && stopped(hashing))
		ret = 0; /* whoever stopped this one says why */
	if (ret < 0)
		stop(hashing);
	return ret;
}

static void hash_tick(void *user)
{
	struct hashing *hashing = user;
	struct stele_builder *builder = hashing->candidates->builder;

	builder->progress.bytes_done = __atomic_load_n(
		&hashing->candidates->bytes, __ATOMIC_RELAXED);
	builder->progress.bytes_total = hashing->candidates->bytes_total;
	if (stele_builder_tick(builder) < 0)
		stop(hashing);
}

/* As many threads as there is work for, whose buffers fit a quarter of memory. */
static unsigned int share_memory(struct hashing *hashing)
{
	const struct stele_builder *builder = hashing->candidates->builder;
	const uint64_t memory = builder->opts.memory_size / 4;
	const uint64_t units = (hashing->candidates->count + UNIT - 1) / UNIT;
	uint64_t jobs = builder->opts.jobs, size = BUFFER_SIZE_MAX;

	if (jobs > units)
		jobs = units;
	if (jobs > memory / BUFFER_SIZE_MIN)
		jobs = memory / BUFFER_SIZE_MIN;
	while (jobs * size > memory && size > BUFFER_SIZE_MIN)
		size /= 2;
	hashing->buffer_size = size;
	return (unsigned int)jobs;
}

int stele_candidates_decide(struct stele_candidates *candidates)
{
	struct hashing hashing = {.candidates = candidates};
	int ret;

	if (!candidates->count)
		return 0;
	ret = sort_places(candidates);
	if (!ret)
		ret = read_digests(candidates);
	if (!ret)
		ret = stele_workers_run("stele-hash", share_memory(&hashing),
					hash_work, hash_tick, &hashing);
	if (!ret && candidates->builder->cancelled)
		ret = -ECANCELED;
	return ret;
}
