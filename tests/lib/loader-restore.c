/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader-restore.c - what was saved behind any batch goes on exactly there
 *
 * At other batch sizes and numbers of ranks, in the middle of an epoch and at its end,
 * with batches read ahead that nobody will take: each sample comes once in the epoch, in
 * the same order. Anything that is not a state of this order is refused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/digest.h"
#include "tests/fixture/loader.h"
#include "tests/tap.h"

#define COUNT 53u

static const struct {
	uint32_t batch, world;
} divisions[] = {{1, 1}, {4, 1}, {3, 2}, {2, 5}, {60, 1}};
#define DIVISIONS (sizeof(divisions) / sizeof(*divisions))

static struct stele_loader_opts options(unsigned int division)
{
	return (struct stele_loader_opts){
		.seed = 5,
		.epoch = 3,
		.batch_size = divisions[division].batch,
		.world = divisions[division].world,
	};
}

static void whole_epoch(const struct stele_loader_source *source,
			const struct test_dataset *t, struct test_load *load)
{
	struct stele_loader *loader = test_loader(source, 1, options(0));

	if (test_load(loader, t, UINT64_MAX, load) || load->count != COUNT)
		bail("no epoch to compare with");
	stele_loader_close(loader);
}

static bool same_state(struct stele_loader **loaders, uint32_t world,
		       uint8_t state[STELE_LOADER_STATE_SIZE])
{
	uint8_t other[STELE_LOADER_STATE_SIZE];
	bool same = true;

	stele_loader_save(loaders[0], state);
	for (uint32_t r = 1; r < world; r++) {
		stele_loader_save(loaders[r], other);
		same &= !memcmp(state, other, sizeof(other));
	}
	return same;
}

static uint64_t restore_all(struct stele_loader **loaders, uint32_t world,
			    const uint8_t state[STELE_LOADER_STATE_SIZE])
{
	uint64_t wrong = 0;

	for (uint32_t r = 0; r < world; r++)
		wrong += stele_loader_restore(loaders[r], state) != 0;
	return wrong;
}

/* Some steps divided one way, the rest and the next epoch in another. */
static uint64_t interrupted_at(const struct stele_loader_source *source,
			       const struct test_dataset *t,
			       const struct test_load *whole, uint64_t steps,
			       unsigned int from, unsigned int to)
{
	struct stele_loader *first[TEST_RANKS_MAX], *second[TEST_RANKS_MAX];
	uint8_t state[STELE_LOADER_STATE_SIZE];
	struct test_load load = {0}, next = {0};
	uint64_t wrong = 0;

	test_loaders(source, 1, options(from), first);
	test_loaders(source, 1, options(to), second);
	test_load_all(first, divisions[from].world, t, steps, &load);
	wrong += !same_state(first, divisions[from].world, state);
	/* Where it would be, had it not been stopped: some way into another place. */
	test_load_all(second, divisions[to].world, t, steps % 3, &next);
	test_load_release(&next);
	wrong += restore_all(second, divisions[to].world, state);
	wrong += test_load_all(second, divisions[to].world, t, UINT64_MAX,
			       &load) != 0;
	wrong += load.count != COUNT || load.wrong;
	wrong += load.count == COUNT &&
		 memcmp(load.ids, whole->ids, COUNT * sizeof(*load.ids)) != 0;
	wrong += test_load_all(second, divisions[to].world, t, UINT64_MAX,
			       &next) != 0;
	wrong += test_load_odd(next.ids, next.count, 0, COUNT, 1);
	wrong += !memcmp(next.ids, load.ids, COUNT * sizeof(*load.ids));
	test_load_release(&load);
	test_load_release(&next);
	test_loaders_close(first, divisions[from].world);
	test_loaders_close(second, divisions[to].world);
	return wrong;
}

static void test_everywhere(const struct stele_loader_source *source,
			    const struct test_dataset *t)
{
	struct test_load whole = {0};

	whole_epoch(source, t, &whole);
	for (unsigned int from = 1; from < DIVISIONS; from++) {
		uint64_t step = divisions[from].batch * divisions[from].world;
		uint64_t wrong = 0;

		for (uint64_t i = 0; i <= (COUNT + step - 1) / step; i++)
			wrong += interrupted_at(source, t, &whole, i, from,
						(unsigned int)(from + i) %
							DIVISIONS);
		is_uint(0, wrong, "from batch %u, world %u",
			divisions[from].batch, divisions[from].world);
	}
	test_load_release(&whole);
}

/* With DROP nothing comes twice, and what is left may still fill smaller steps. */
static void test_drop(const struct stele_loader_source *source,
		      const struct test_dataset *t)
{
	struct stele_loader_opts opts = options(1);
	struct stele_loader *wide, *narrow;
	uint8_t state[STELE_LOADER_STATE_SIZE];
	struct test_load load = {0};

	opts.last = STELE_LAST_DROP;
	wide = test_loader(source, 1, opts);
	opts.batch_size = 1;
	narrow = test_loader(source, 1, opts);
	test_load(wide, t, COUNT / 4, &load);
	is_uint(0, stele_loader_remaining(wide), "no step of four is left");
	stele_loader_save(wide, state);
	is_int(0, stele_loader_restore(narrow, state), "goes on one by one");
	is_uint(COUNT % 4, stele_loader_remaining(narrow), "with the rest");
	is_int(0, test_load(narrow, t, UINT64_MAX, &load), "to the end");
	is_uint(0, test_load_odd(load.ids, load.count, 0, COUNT, 1),
		"each sample once");
	/* Behind the end the state is of the next epoch. */
	test_load_release(&load);
	is_int(0, test_load(wide, t, 1, &load), "the end");
	stele_loader_save(wide, state);
	is_int(0, stele_loader_restore(narrow, state), "saved behind it");
	is_uint(COUNT, stele_loader_remaining(narrow), "a whole epoch");
	test_load_release(&load);
	stele_loader_close(wide);
	stele_loader_close(narrow);
}

static void refused(struct stele_loader *loader, int error,
		    const uint8_t state[STELE_LOADER_STATE_SIZE],
		    const char *what)
{
	uint8_t before[STELE_LOADER_STATE_SIZE];
	uint8_t after[STELE_LOADER_STATE_SIZE];

	stele_loader_save(loader, before);
	is_int(error, stele_loader_restore(loader, state), "%s", what);
	stele_loader_save(loader, after);
	ok(!memcmp(before, after, sizeof(after)), "%s: stays where it is",
	   what);
}

/* A loader that differs in one thing that makes up the order, or in one that does not. */
static void other(const struct stele_loader_source *sources, uint32_t count,
		  struct stele_loader_opts opts, int error,
		  const uint8_t state[STELE_LOADER_STATE_SIZE],
		  const char *what)
{
	struct stele_loader *loader = test_loader(sources, count, opts);

	if (error)
		refused(loader, error, state, what);
	else
		is_int(0, stele_loader_restore(loader, state), "%s", what);
	stele_loader_close(loader);
}

static void test_refused(struct stele_loader_source *source,
			 struct stele_dataset *elsewhere)
{
	struct stele_loader_opts opts = options(1);
	struct stele_loader *loader = test_loader(source, 1, opts);
	struct stele_loader_source two[2] = {*source, *source};
	uint8_t state[STELE_LOADER_STATE_SIZE], bad[STELE_LOADER_STATE_SIZE];
	uint64_t ids[COUNT];

	stele_loader_save(loader, state);
	opts.seed = 99;
	opts.last = STELE_LAST_DROP;
	opts.on_error = STELE_ON_ERROR_SKIP;
	opts.as_completed = 1;
	opts.block_size = 7; /* of a full order: means nothing */
	other(source, 1, opts, 0, state, "seed and policies may differ");
	opts = options(1);
	opts.shuffle = STELE_SHUFFLE_NONE;
	other(source, 1, opts, -ESTALE, state, "another kind of order");
	opts.shuffle = STELE_SHUFFLE_FULL;
	opts.epoch_size = COUNT + 1;
	other(source, 1, opts, -ESTALE, state, "another epoch size");
	opts.epoch_size = 0;
	other(two, 2, opts, -ESTALE, state, "a mixture");
	two[0].ds = elsewhere;
	other(two, 1, opts, -ESTALE, state, "another dataset");
	two[0] = *source;
	two[0].count = COUNT - 1;
	other(two, 1, opts, -ESTALE, state, "a subset");
	for (unsigned int i = 0; i < COUNT; i++)
		ids[i] = COUNT - 1 - i;
	two[0] = (struct stele_loader_source){
		.ds = source->ds, .ids = ids, .id_count = COUNT};
	other(two, 1, opts, -ESTALE, state, "a list");
	memset(bad, 0, sizeof(bad));
	refused(loader, -EINVAL, bad, "zeros");
	memcpy(bad, state, sizeof(bad));
	bad[24] = COUNT + 1;
	refused(loader, -EINVAL, bad, "a position behind the end");
	stele_loader_close(loader);
}

static int wanted_with(unsigned int bit)
{
	if (bit < 64)
		return bit < 16 ? -EINVAL : -ESTALE;
	/* Any seed and epoch will do. */
	return bit < 192 || UINT64_C(1) << (bit - 192) <= COUNT ? 0 : -EINVAL;
}

/* Each is refused, or another place of this order, with samples of its own. */
static void test_bits(const struct stele_loader_source *source,
		      const struct test_dataset *t)
{
	struct stele_loader *loader = test_loader(source, 1, options(1));
	uint8_t state[STELE_LOADER_STATE_SIZE], bad[STELE_LOADER_STATE_SIZE];
	uint64_t wrong = 0;

	stele_loader_save(loader, state);
	for (unsigned int bit = 0; bit < 8 * sizeof(state); bit++) {
		struct test_load load = {0};

		memcpy(bad, state, sizeof(bad));
		bad[bit / 8] ^= (uint8_t)(1 << bit % 8);
		wrong += stele_loader_restore(loader, state) != 0;
		wrong += stele_loader_restore(loader, bad) != wanted_with(bit);
		wrong += test_load(loader, t, 1, &load) != 1 || load.wrong;
		test_load_release(&load);
	}
	is_uint(0, wrong, "a bit of a state changed");
	stele_loader_close(loader);
}

/*
 * What a state names, and in which versions: literal ones, as one of another version means
 * other places.
 */
static void test_named(const struct stele_loader_source *source)
{
	const le64 order[] = {
		le64_put(1), /* version of permutations */
		le64_put(1), /* and of mixtures */
		le64_put(STELE_SHUFFLE_WINDOWED), le64_put(7), le64_put(3),
		le64_put(2 * COUNT), le64_put(1),
	};
	const le64 draws = le64_put(2 * COUNT);
	const le64 subset[] = {le64_put(0), le64_put(0), le64_put(COUNT)};
	struct stele_loader_opts opts = {.shuffle = STELE_SHUFFLE_WINDOWED,
					 .block_size = 7,
					 .block_count = 3,
					 .epoch_size = 2 * COUNT};
	struct stele_loader *loader = test_loader(source, 1, opts);
	uint8_t state[STELE_LOADER_STATE_SIZE], digest[STELE_DIGEST_SIZE];
	struct stele_hash *hash;

	if (stele_hash_new(&hash))
		bail("no digest");
	stele_hash_begin(hash, 0x80);
	stele_hash_add(hash, order, sizeof(order));
	stele_hash_add(hash, source->ds->snapshot.digest, STELE_DIGEST_SIZE);
	stele_hash_add(hash, &draws, sizeof(draws));
	stele_hash_add(hash, subset, sizeof(subset));
	stele_hash_end(hash, digest);
	stele_hash_free(hash);
	stele_loader_save(loader, state);
	ok(state[0] == 'S' && state[1] == 1, "a state, version 1");
	ok(!memcmp(state + 2, digest, 6), "of these data, in this order");
	stele_loader_close(loader);
}

/* The seed is part of the place. */
static void test_seed(const struct stele_loader_source *source,
		      const struct test_dataset *t)
{
	struct stele_loader_opts opts = options(1);
	struct stele_loader *a = test_loader(source, 1, opts), *b;
	uint8_t state[STELE_LOADER_STATE_SIZE], again[STELE_LOADER_STATE_SIZE];
	struct test_load left = {0}, right = {0};

	opts.seed = 1234;
	b = test_loader(source, 1, opts);
	test_load(b, t, 3, &right);
	test_load_release(&right);
	stele_loader_save(a, state);
	is_int(0, stele_loader_restore(b, state), "of another seed");
	stele_loader_save(b, again);
	ok(!memcmp(state, again, sizeof(again)), "saved again, the same");
	test_load(a, t, UINT64_MAX, &left);
	test_load(b, t, UINT64_MAX, &right);
	ok(left.count == COUNT && right.count == COUNT &&
		   !memcmp(left.ids, right.ids, COUNT * sizeof(*left.ids)),
	   "goes on with that seed");
	test_load_release(&left);
	test_load_release(&right);
	stele_loader_close(a);
	stele_loader_close(b);
}

/* With batches in hand, and again and again while reads are under way. */
static void test_often(const struct stele_loader_source *source,
		       const struct test_dataset *t)
{
	struct stele_loader *loader = test_loader(source, 1, options(1));
	struct stele_batch held = {.size = sizeof(held)};
	struct stele_batch batch = {.size = sizeof(batch)};
	uint8_t state[STELE_LOADER_STATE_SIZE];
	uint64_t wrong = 0;

	if (stele_loader_next(loader, &held) != 1)
		bail("no batch");
	stele_loader_save(loader, state);
	stele_loader_restore(loader, state);
	for (unsigned int i = 0; i < 300; i++) {
		wrong += stele_loader_next(loader, &batch) != 1 ||
			 batch.index != i % 2;
		for (uint32_t j = 0; j < batch.count; j++)
			wrong += !test_is_sample(t, batch.samples[j].id,
						 &batch.samples[j]);
		if (i % 2)
			wrong += stele_loader_restore(loader, state) != 0;
		stele_loader_release(loader, &batch);
	}
	is_uint(0, wrong, "restored again and again");
	for (uint32_t j = 0; j < held.count; j++)
		wrong += !test_is_sample(t, held.samples[j].id,
					 &held.samples[j]);
	is_uint(0, wrong, "what was held keeps");
	stele_loader_close(loader);
}

/*
 * Right after a batch was taken, when the loader is about to read on: to everywhere, and
 * what comes next is of there. What had been read ahead gives its memory back.
 */
static void test_anywhere(const struct stele_loader_source *source,
			  const struct test_dataset *t)
{
	struct stele_loader_opts opts = {.prefetch_size = 64 << 10,
					 .shuffle = STELE_SHUFFLE_NONE};
	struct stele_loader *loader = test_loader(source, 1, opts);
	uint8_t state[STELE_LOADER_STATE_SIZE];
	struct stele_loader_stats stats = {.size = sizeof(stats)};
	struct stele_batch batch = {.size = sizeof(batch)};
	uint64_t wrong = 0;

	stele_loader_save(loader, state);
	for (unsigned int i = 0; i < 3000; i++) {
		state[24] = (uint8_t)(i * 7 % COUNT);
		wrong += stele_loader_restore(loader, state) != 0;
		wrong += stele_loader_next(loader, &batch) != 1 ||
			 batch.samples[0].id != state[24] ||
			 !test_is_sample(t, state[24], &batch.samples[0]);
		stele_loader_release(loader, &batch);
	}
	is_uint(0, wrong, "anywhere, at once");
	/* What was dropped under way has to arrive first. */
	wrong = 0;
	do {
		stele_loader_stats(loader, &stats);
	} while (stats.held_size > opts.prefetch_size && wrong++ < 100000);
	ok(stats.held_size <= opts.prefetch_size, "nothing is left behind: %ju",
	   (uintmax_t)stats.held_size);
	stele_loader_close(loader);
}

int main(void)
{
	struct test_plan plan = {.samples = COUNT, .size_max = 3000};
	struct stele_loader_source source = {0};
	struct test_dataset t, other_one;

	plan_lazy();
	test_dataset_open(&t, &plan);
	plan.size_max = 2000;
	test_dataset_open(&other_one, &plan);
	source.ds = t.ds;
	test_everywhere(&source, &t);
	test_drop(&source, &t);
	test_refused(&source, other_one.ds);
	test_bits(&source, &t);
	test_named(&source);
	test_seed(&source, &t);
	test_often(&source, &t);
	test_anywhere(&source, &t);
	test_dataset_close(&t);
	test_dataset_close(&other_one);
	return done();
}
