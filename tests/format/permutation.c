/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permutation.c - each position has an id of its own, whatever the count
 *
 * Small ones have the ids that the network of the page has, taken round by round.
 * That ids look random is permutation-chance.c's to tell, that they are those of the
 * page permutation-page.c's.
 */
#include <stdlib.h>

#include "format/permutation.h"
#include "tests/fixture/network.h"
#include "tests/tap.h"

static uint32_t *seen;

/* Positions whose id is out of range, was there before, or does not lead back. */
static uint64_t wrong(uint64_t count, uint64_t seed, uint32_t mark)
{
	struct stele_permutation p;
	uint64_t bad = 0;

	stele_permutation_init(&p, count, seed, seed ^ 1, 0);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t id = stele_permutation_at(&p, i);

		if (id >= count || seen[id] == mark) {
			bad++;
			continue;
		}
		seen[id] = mark;
		bad += stele_permutation_position(&p, id) != i;
	}
	return bad;
}

static void test_small(void)
{
	uint64_t bad = 0;

	for (uint64_t count = 1; count <= 4096; count++)
		bad += wrong(count, count % 5, (uint32_t)count);
	is_uint(0, bad, "a bijection with its inverse, for each count to 4096");
	bad = 0;
	for (uint32_t seed = 0; seed < 10000; seed++)
		bad += wrong(1 + seed % 20, seed, 5000 + seed);
	is_uint(0, bad, "so of few samples with many seeds");
}

static void test_around_powers(void)
{
	for (uint32_t bits = 13; bits <= 20; bits++) {
		uint64_t power = UINT64_C(1) << bits, bad = 0;

		for (uint64_t count = power - 1; count <= power + 1; count++)
			bad += wrong(count, bits,
				     (uint32_t)(100000 + 3 * bits + count % 3));
		is_uint(0, bad, "a bijection around 2^%u", bits);
	}
}

static void test_page(void)
{
	uint64_t bad = 0;

	for (uint64_t seed = 0; seed < 20000; seed++) {
		uint64_t count = seed % 100 ? 1 + seed % 17 : 1 + seed / 10;
		uint64_t stream = stele_permutation_stream(seed, 1, 2);
		uint32_t rounds = count <= 16 ? 32 : count <= 256 ? 20 : 12;
		struct stele_permutation p;

		stele_permutation_init(&p, count, seed, 1, 2);
		for (uint64_t i = 0; i < count; i++)
			bad += stele_permutation_at(&p, i) !=
			       test_network(count, stream, rounds, i);
	}
	is_uint(0, bad, "ids are those of the network");
}

static bool leads_back(const struct stele_permutation *p, uint64_t at)
{
	uint64_t id = stele_permutation_at(p, at);

	return id < p->count && stele_permutation_position(p, id) == at &&
	       stele_permutation_at(p, stele_permutation_position(p, at)) == at;
}

/* Where not all positions can be tried: an inverse leaves no room for two of one id. */
static void test_large(void)
{
	static const uint64_t powers[] = {31, 32, 33, 40, 61, 62};

	for (unsigned int i = 0; i < sizeof(powers) / sizeof(powers[0]); i++) {
		uint64_t power = UINT64_C(1) << powers[i], bad = 0;

		for (uint64_t count = power - 1; count <= power + 1; count++) {
			struct stele_permutation p;
			uint64_t step = count / 10007;

			if (count > STELE_PERMUTATION_COUNT_MAX)
				continue;
			stele_permutation_init(&p, count, 3, powers[i], 0);
			for (uint64_t k = 0; k < 10007; k++)
				bad += !leads_back(&p, k * step);
			bad += !leads_back(&p, count - 1);
		}
		is_uint(0, bad, "the inverse is one around 2^%u",
			(unsigned int)powers[i]);
	}
}

int main(void)
{
	plan_lazy();
	seen = calloc((UINT64_C(1) << 20) + 1, sizeof(*seen));
	if (!seen)
		sysbail("no memory");
	test_small();
	test_page();
	test_around_powers();
	test_large();
	free(seen);
	return done();
}
