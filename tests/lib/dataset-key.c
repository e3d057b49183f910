/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset-key.c - keys of samples that are not read
 *
 * Several segments, with deletions, of a source that was not in the order of its keys.
 */
#include <errno.h>
#include <string.h>

#include "tests/fixture/dataset.h"
#include "tests/tap.h"

static void test_key(const struct test_dataset *t)
{
	char key[STELE_KEY_SIZE_MAX];
	uint64_t wrong = 0;
	size_t size;

	for (uint64_t id = 0; id < t->count; id += 101) {
		const struct test_sample *wanted = t->live[id].sample;

		wrong += stele_dataset_key(t->ds, id, key, &size) != 0 ||
			 size != strlen(wanted->key) ||
			 memcmp(key, wanted->key, size) != 0;
	}
	is_uint(0, wrong, "the key of each");
	is_int(-ERANGE, stele_dataset_key(t->ds, t->count, key, &size), "no such id");
}

/* What sections say is checked, as a sample is. */
static void test_damage(struct test_dataset *t)
{
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FLIP,
					.first = stele_fault_count(t->dev),
					.count = 1000,
					.arg = 8 * 100};
	char key[STELE_KEY_SIZE_MAX];
	size_t size;

	stele_fault_set_rules(t->dev, &rule, 1);
	is_int(-EBADMSG, stele_dataset_key(t->ds, 0, key, &size), "a damaged key");
	stele_fault_set_rules(t->dev, NULL, 0);
}

int main(void)
{
	const struct test_plan plan = {.segments = 3,
				       .samples = 2000,
				       .size_max = 20,
				       .delete_every = 5,
				       .verify = STELE_VERIFY_CRC};
	struct test_dataset t;

	plan_lazy();
	test_dataset_open(&t, &plan);
	test_key(&t);
	test_damage(&t);
	test_dataset_close(&t);
	return done();
}
