/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.c - a filter passes every key that was added, and few others
 */
#include "format/filter.h"

#include <stdio.h>
#include <string.h>

#include "tests/tap.h"

#define ROOM (STELE_FILTER_SIZE_MAX + 8)

static uint64_t hash_of(const char *kind, unsigned int i)
{
	char key[32];
	int size = snprintf(key, sizeof(key), "%s/%06u.jpg", kind, i);

	return stele_filter_hash(key, (size_t)size);
}

static void test_sizes(void)
{
	is_uint(0, stele_filter_size(0), "of no keys");
	is_uint(8, stele_filter_size(1), "of one");
	is_uint(8, stele_filter_size(5), "of five");
	is_uint(16, stele_filter_size(6), "of six");
	is_uint(4064, stele_filter_size(2709), "of as many as there may be");
	is_uint(0, stele_filter_size(2710), "of one more");
	is_uint(0, stele_filter_size(UINT64_MAX), "of any number");
}

/* As the page has it. */
static void test_golden(void)
{
	static const uint8_t wanted[] = {
		0x08, 0x20, 0x00, 0x08, 0x20, 0x80, 0x00, 0x02
	};
	uint8_t filter[8] = {0};

	is_uint(UINT64_C(0x28327e036ccfe552), stele_filter_hash("hello", 5), "hash");
	stele_filter_add(filter, 8, stele_filter_hash("hello", 5));
	is_blob(wanted, filter, sizeof(wanted), "bits of one key");
}

static void test_passes(unsigned int count)
{
	const uint32_t size = stele_filter_size(count);
	unsigned int lost = 0, passed = 0, tries = 100000;
	uint8_t filter[ROOM];

	memset(filter, 0, size);
	memset(filter + size, 0x5a, sizeof(filter) - size);
	for (unsigned int i = 0; i < count; i++)
		stele_filter_add(filter, size, hash_of("cat", i));
	for (unsigned int i = 0; i < count; i++)
		lost += !stele_filter_may_have(filter, size, hash_of("cat", i));
	for (unsigned int i = 0; i < tries; i++)
		passed += stele_filter_may_have(filter, size, hash_of("dog", i));
	is_uint(0, lost, "%u keys: all of them pass", count);
	ok(passed * 100 <= tries, "%u keys: %u of %u others do", count, passed,
	   tries);
	is_uint(0x5a, filter[size], "%u keys: nothing is written behind", count);
}

int main(void)
{
	plan_lazy();
	test_sizes();
	test_golden();
	test_passes(1);
	test_passes(20);
	test_passes(1000);
	test_passes(2709);
	return done();
}
