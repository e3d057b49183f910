/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permutation-chance.c - no test tells a permutation from a random one
 *
 * Chi-square on where positions go, alone and in pairs, on differences of neighbours,
 * and on what seeds, epochs, purposes and counts next to each other have in common. Keys are
 * fixed, so that each value is the same in every run. That these tests would notice
 * is tested as well: with too few rounds they do.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/permutation.h"
#include "tests/fixture/network.h"
#include "tests/tap.h"

#define CELLS_MAX     4096
#define POSITIONS_MAX 1281167
#define KEYS          20000
/* In standard deviations; there are about a hundred values. */
#define LIMIT 4.0

/* Events that are all as likely. */
struct tally {
	uint64_t count[CELLS_MAX];
	uint64_t total;
};

static double worst; /* of the values since the last check() */
static char where[64];
static uint32_t rounds; /* instead of what a permutation has; 0: those */

static void add(struct tally *tally, uint64_t cell)
{
	tally->count[cell]++;
	tally->total++;
}

/*
 * How far chi-square is from what is expected (Wilson and Hilferty). `spread`: how
 * much of a cell's mean each freedom varies by; 1 if cells are independent.
 */
static void judge(struct tally *tally, uint64_t cells, double freedom,
		  double spread, const char *what, uint64_t count)
{
	double expected = (double)tally->total / (double)cells, chi = 0, far;

	for (uint64_t i = 0; i < cells; i++) {
		double off = (double)tally->count[i] - expected;

		chi += off * off / expected / spread;
	}
	far = (cbrt(chi / freedom) - (1 - 2 / (9 * freedom))) /
	      sqrt(2 / (9 * freedom));
	if (fabs(far) > fabs(worst)) {
		worst = far;
		snprintf(where, sizeof(where), "%s of %llu", what,
			 (unsigned long long)count);
	}
	memset(tally, 0, sizeof(*tally));
}

static void check(const char *what)
{
	if (rounds)
		ok(fabs(worst) > LIMIT, "%s: %u rounds are noticed (%.1f, %s)",
		   what, rounds, worst, where);
	else
		ok(fabs(worst) < LIMIT, "%s: %.1f (%s)", what, worst, where);
	worst = 0;
}

static void begin(struct stele_permutation *p, uint64_t count, uint64_t seed,
		  uint64_t epoch, uint64_t purpose)
{
	stele_permutation_init(p, count, seed, epoch, purpose);
	p->rounds = rounds ? rounds : p->rounds;
}

/* Of each position which id it has, of some pairs which two. */
static void few(uint64_t count, uint64_t keys)
{
	static struct tally alone, pairs[3];
	struct stele_permutation p;
	uint64_t id[64];

	for (uint64_t key = 0; key < keys; key++) {
		uint64_t stream = stele_permutation_stream(1, key, 0);

		stele_permutation_init(&p, count, 1, key, 0);
		for (uint64_t i = 0; i < count; i++) {
			/* Few ids are worked out before their rounds can be changed. */
			id[i] = rounds ? test_network(count, stream, rounds, i)
				       : stele_permutation_at(&p, i);
			add(&alone, i * count + id[i]);
		}
		/* The second of a pair has one id less to choose from. */
		for (unsigned int k = 0; k < 3; k++) {
			uint64_t i = k == 0 ? 0 : k == 1 ? count / 2 : 1;
			uint64_t j = k == 0   ? 1
				     : k == 1 ? count / 2 - 1
					      : count - 1;
			uint64_t rest = id[j] - (id[j] > id[i]);

			if (i != j)
				add(&pairs[k], id[i] * (count - 1) + rest);
		}
	}
	/* Each key fills each row and each column once: as much chance, in fewer freedoms. */
	judge(&alone, count * count, ((double)count - 1) * ((double)count - 1),
	      (double)count / ((double)count - 1), "positions", count);
	for (unsigned int k = 0; k < 3; k++) {
		if (pairs[k].total)
			judge(&pairs[k], count * (count - 1),
			      (double)(count * (count - 1)) - 1, 1, "pairs",
			      count);
	}
}

static void test_few(uint64_t keys)
{
	static const uint64_t counts[] = {17, 19, 24, 25, 31,
					  32, 33, 48, 63, 64};

	for (uint64_t count = 3; count <= 16; count++)
		few(count, keys);
	check("3 to 16 samples");
	for (unsigned int i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		few(counts[i], keys);
	check("17 to 64 samples");
}

/* Bins that are all as wide, whatever the count. */
static uint64_t bin(uint64_t id, uint64_t count, uint64_t bins)
{
	return (uint64_t)((unsigned __int128)id * bins / count);
}

/* What two permutations have to do with each other, at the same positions. */
static void compare(const struct stele_permutation *a,
		    const struct stele_permutation *b, uint64_t positions,
		    struct tally *both, struct tally *apart, struct tally *low)
{
	for (uint64_t i = 0; i < positions; i++) {
		uint64_t x = stele_permutation_at(a, i);
		uint64_t y = stele_permutation_at(b, i);

		add(both, bin(x, a->count, 32) * 32 + bin(y, b->count, 32));
		add(low, x % 16 * 16 + y % 16);
		if (a->count == b->count)
			add(apart,
			    bin((y + a->count - x) % a->count, a->count, 1024));
	}
}

/* Next to each other in one of the four numbers that make a permutation. */
static void test_unrelated(uint64_t count, uint64_t positions)
{
	static const char *const names[] = {"seeds", "epochs", "purposes",
					    "counts"};
	static struct tally both, apart, low;

	for (unsigned int k = 0; k < 4; k++) {
		for (uint64_t at = 0; at < (1 << 20) / positions; at++) {
			struct stele_permutation a, b;

			begin(&a, count, at, 0, 0);
			begin(&b, count + (k == 3), at + (k == 0), k == 1,
			      k == 2);
			compare(&a, &b, positions, &both, &apart, &low);
		}
		judge(&both, 1024, 1023, 1, names[k], count);
		judge(&low, 256, 255, 1, names[k], count);
		if (k < 3)
			judge(&apart, 1024, 1023, 1, names[k], count);
	}
}

/* Within one permutation: neighbours, triples, and where things go. */
static void test_within(uint64_t count, uint64_t positions, uint64_t seed)
{
	double freedom = positions == count ? 31 * 31 : 31 * 32;
	static struct tally place, triples, low, apart;
	static uint64_t id[POSITIONS_MAX];
	struct stele_permutation p;

	begin(&p, count, seed, 0, 0);
	for (uint64_t i = 0; i < positions; i++) {
		id[i] = stele_permutation_at(&p, i);
		add(&place, i * 32 / positions * 32 + bin(id[i], count, 32));
		add(&low, i % 32 * 32 + id[i] % 32);
		if (i >= 2)
			add(&triples, bin(id[i - 2], count, 16) * 256 +
					      bin(id[i - 1], count, 16) * 16 +
					      bin(id[i], count, 16));
	}
	judge(&place, 1024, freedom, 1, "places", count);
	judge(&low, 1024, freedom, 1, "low bits", count);
	judge(&triples, 4096, 4095, 1, "triples", count);
	for (unsigned int k = 0; k < 5; k++) {
		uint64_t columns = UINT64_C(1) << p.column_bits;
		uint64_t lag = k < 3 ? k + 1 : k < 4 ? p.rows : columns;

		for (uint64_t i = lag; i < positions; i++)
			add(&apart, bin((id[i] + count - id[i - lag]) % count,
					count, 1024));
		if (apart.total > 20 * 1024)
			judge(&apart, 1024, 1023, 1, "differences", count);
		memset(&apart, 0, sizeof(apart));
	}
}

/* Of few thousand: neighbours and fixed points, over many epochs. */
static void test_epochs(uint64_t count)
{
	static struct tally apart;
	uint64_t fixed = 0, epochs = (1 << 20) / count;

	for (uint64_t epoch = 0; epoch < epochs; epoch++) {
		struct stele_permutation p;
		uint64_t before = 0;

		begin(&p, count, 0, epoch, 0);
		for (uint64_t i = 0; i < count; i++) {
			uint64_t id = stele_permutation_at(&p, i);

			fixed += id == i;
			if (i)
				add(&apart, (id + count - before) % count - 1);
			before = id;
		}
	}
	judge(&apart, count - 1, (double)count - 2, 1, "differences", count);
	/* One is expected of each, and as much variance. */
	ok(fabs((double)fixed - (double)epochs) < 4 * sqrt((double)epochs),
	   "%llu fixed points in %llu permutations of %llu",
	   (unsigned long long)fixed, (unsigned long long)epochs,
	   (unsigned long long)count);
}

static void test_many(void)
{
	test_within(1 << 20, 1 << 20, 1);
	test_within(1281167, 1281167, 2);
	test_within(813000000, 1 << 20, 3);
	test_within((UINT64_C(1) << 40) + 1, 1 << 20, 4);
	test_within(STELE_PERMUTATION_COUNT_MAX, 1 << 20, 5);
	check("one permutation of many samples");
}

int main(void)
{
	plan_lazy();
	test_few(KEYS);
	test_epochs(257);
	test_epochs(1000);
	test_epochs(4096);
	check("neighbours");
	test_unrelated(1 << 12, 1 << 12);
	test_unrelated(1281167, 1 << 17);
	test_unrelated(813000000, 1 << 18);
	check("keys and counts that differ by one");
	test_many();

	rounds = 4;
	test_few(KEYS);
	test_many();
	return done();
}
