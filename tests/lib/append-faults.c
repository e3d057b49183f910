/* SPDX-License-Identifier: Apache-2.0 */
/*
 * append-faults.c - what an append reads, and what is left when it fails
 */
#include "tests/fixture/appended.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/device/fault.h"

/* Bytes read within a part of the target, since the log was cleared. */
static uint64_t bytes_read(uint64_t offset, uint64_t size)
{
	const struct stele_fault_entry *log;
	uint64_t sum = 0;
	size_t count;

	log = stele_fault_log(appended_dev, &count);
	for (size_t i = 0; i < count; i++)
		if (log[i].op == STELE_OP_READ && log[i].offset >= offset &&
		    log[i].offset < offset + size)
			sum += log[i].size;
	return sum;
}

/* Few keys against many, and all of them: what is read. */
static void test_reads(void)
{
	struct stele_append_opts opts = appended_options(STELE_APPEND_UPDATE);
	struct fake many, few;
	uint64_t read, offset;
	struct stele_dataset *ds;
	struct stele_section keys;

	appended_device(8);
	fake_init(&many);
	fake_add_many(&many, "k", 30000, 20);
	appended_base(&many);
	ds = appended_open("v1");
	if (!ds || stele_descriptor_find_section(
			   &ds->snapshot.segments[0].descriptor,
			   STELE_BLOCK_KEYS, STELE_NO_FIELD, &keys) < 0)
		bail("no keys");
	offset = ds->snapshot.segments[0].descriptor.offset + keys.offset;
	stele_dataset_close(ds);
	fake_init(&few);
	fake_add(&few, "k/000100", many.files[100].size);
	fake_add(&few, "k/029000", many.files[29000].size);
	fake_add(&few, "k/x", 1);
	stele_fault_log_clear(appended_dev);
	is_int(0, appended(&few, "few", &opts), "three against 30,000");
	appended_counts(1, 0, 0, 30000, "few");
	read = bytes_read(offset, keys.size) / 4096;
	ok(read < 30, "%ju of %ju pages of keys are read", (uintmax_t)read,
	   (uintmax_t)keys.size / 4096);
	read = bytes_read(0, UINT64_MAX / 2);
	ok(read < 400000, "%ju bytes in all", (uintmax_t)read);
	opts.flags = 0;
	opts.base = "v1";
	stele_fault_log_clear(appended_dev);
	is_int(0, appended(&many, "all", &opts), "all against all");
	read = bytes_read(offset, keys.size);
	ok(read >= keys.size && read < keys.size + 10 * 4096,
	   "each page of keys is read once, and few to find the first");
	fake_release(&many);
	fake_release(&few);
	stele_device_close(appended_dev);
}

/* Every operation fails in turn: the old state is there, and sound. */
static void test_faults(enum stele_op op, const char *what)
{
	struct stele_append_opts opts =
		appended_options(STELE_APPEND_UPDATE | STELE_APPEND_DELETE_MISSING);
	struct stele_fault_rule rule = {
		.kind = STELE_FAULT_FAIL, .ops = 1u << op, .error = EIO,
		.count = 1};
	struct fake old, new;
	unsigned int n, bad = 0, whole = 0, failed = 0;
	uint64_t count;

	fake_init(&old);
	fake_add_many(&old, "f", 60, 900);
	appended_copy(&new, &old);
	new.files[3].version = 1;
	appended_remove(&new, 30);
	fake_add_many(&new, "g", 10, 900);
	appended_device(4);
	appended_base(&old);
	count = stele_fault_count(appended_dev);
	appended(&new, "v2", &opts);
	count = stele_fault_count(appended_dev) - count;
	stele_device_close(appended_dev);
	for (n = 0; n < count; n++) {
		struct stele_dataset *v1, *v2;
		bool v2_there;
		int ret;

		appended_device(4);
		appended_base(&old);
		rule.first = stele_fault_count(appended_dev) + n;
		stele_fault_set_rules(appended_dev, &rule, 1);
		ret = appended(&new, "v2", &opts);
		stele_fault_set_rules(appended_dev, NULL, 0);
		failed += ret != 0;
		v1 = appended_open("v1");
		v2 = appended_open("v2");
		whole += ret && v2;
		bad += !v1 || stele_dataset_count(v1) != 60 ||
		       (v2 && stele_dataset_count(v2) != 69) || (!ret && !v2);
		v2_there = v2 != NULL;
		stele_dataset_close(v1);
		stele_dataset_close(v2);
		/* The next one finds nothing in its way. */
		if (ret && !v2_there)
			bad += appended(&new, "v2", &opts) != 0;
		stele_device_close(appended_dev);
	}
	ok(failed > 2, "%s: %u of %u fail, %u of these after the "
	   "fact", what, failed, n, whole);
	is_uint(0, bad, "%s: old or new, nothing between", what);
	fake_release(&old);
	fake_release(&new);
}

int main(void)
{
	plan_lazy();
	test_reads();
	test_faults(STELE_OP_WRITE, "writes");
	test_faults(STELE_OP_READ, "reads");
	test_faults(STELE_OP_FLUSH, "flushes");
	return done();
}
