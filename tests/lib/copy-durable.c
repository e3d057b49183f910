/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy-durable.c - what a copy says to be in is there when the power fails
 *
 * A copy is killed before each of its last operations. The next one mostly finds
 * nothing to do: then it has flushed what it found before it says so.
 */
#include <errno.h>

#include "tests/fixture/copies.h"
#include "tests/device/fault.h"
#include "tests/tap.h"

#define LAST 24u /* operations: the last commit, and some before */

static uint64_t count_flushes(struct stele_device *dev)
{
	const struct stele_fault_entry *log;
	uint64_t flushes = 0;
	size_t count;

	log = stele_fault_log(dev, &count);
	while (count-- > 0)
		flushes += log[count].op == STELE_OP_FLUSH;
	return flushes;
}

int main(void)
{
	struct copies_source s = {0};
	struct stele_copy_report r = {.size = sizeof(r)};
	unsigned int found = 0, wrong = 0;
	struct stele_device *to;
	uint64_t operations;

	plan_lazy();
	test_log_init(&copies_log);
	copies_source(&s, 512);
	to = copies_target(512);
	copies_copy(s.dev, "v2", to, 1, &r);
	operations = stele_fault_count(to);
	stele_device_close(to);
	for (uint64_t n = operations - LAST; n < operations; n++) {
		const struct stele_fault_rule killed = {
			.kind = STELE_FAULT_FAIL, .first = n, .error = EIO};
		bool in;

		to = copies_target(512);
		stele_fault_set_rules(to, &killed, 1);
		copies_copy(s.dev, "v2", to, 1, &r);
		stele_fault_set_rules(to, NULL, 0);
		in = copies_has(to, "v2");
		stele_fault_log_clear(to);
		wrong += copies_copy(s.dev, "v2", to, 1, &r) != 0;
		if (in && copies_writes(to) == 0) {
			found++;
			wrong += count_flushes(to) == 0;
		}
		stele_device_close(to);
	}
	is_uint(0, wrong, "of %u copies that were killed none is in, and lost",
		LAST);
	ok(found > 3, "%u of them left nothing to do", found);
	copies_source_drop(&s);
	return done();
}
