/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader-errors.c - samples that cannot be had, by policy
 *
 * RAISE says so once and goes on behind that batch; SKIP makes it shorter; SUBSTITUTE
 * puts another sample there, the same one each time. Whatever fails, all ranks get as
 * many batches. What a transform refuses is treated alike.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fixture/loader.h"
#include "tests/tap.h"

#define COUNT 48u

/* Fails on ids that `user` names, as the device would. */
struct refusal {
	const uint64_t *ids;
	unsigned int count;
	atomic_uint calls;
};

static bool is_bad(const uint64_t *bad, unsigned int count, uint64_t id)
{
	for (unsigned int i = 0; i < count; i++)
		if (bad[i] == id)
			return true;
	return false;
}

static int refuse(void *user, struct stele_sample *sample)
{
	struct refusal *refusal = user;

	atomic_fetch_add(&refusal->calls, 1);
	return is_bad(refusal->ids, refusal->count, sample->id) ? -EILSEQ : 0;
}

/* Reads of these samples fail, or the transform does. */
static void break_samples(const struct test_dataset *t, const uint64_t *bad,
			  unsigned int count, bool by_device,
			  struct refusal *refusal,
			  struct stele_loader_opts *opts)
{
	struct stele_fault_rule rules[COUNT] = {0};

	*refusal = (struct refusal){.ids = bad, .count = count};
	opts->transform = by_device ? NULL : refuse;
	opts->transform_user = refusal;
	opts->threads = 2;
	for (unsigned int i = 0; i < count; i++) {
		struct test_read read;

		test_reads_of(t, bad[i], &read, 1);
		rules[i] = (struct stele_fault_rule){
			.kind = STELE_FAULT_FAIL,
			.ops = 1 << STELE_OP_READ,
			.offset = read.offset,
			.size = read.size,
			.error = EILSEQ,
		};
	}
	stele_fault_set_rules(t->dev, rules, by_device ? count : 0);
}

/* The batch that holds this id, at batch size 4 of one rank. */
static uint64_t batch_of(const struct stele_loader_opts *opts, uint64_t id)
{
	struct stele_shuffle *shuffle;
	uint64_t position;

	if (stele_shuffle_open(COUNT,
			       &STELE_OPTS(stele_shuffle_opts,
					   .seed = opts->seed),
			       &shuffle))
		bail("no order");
	position = stele_shuffle_position(shuffle, id);
	stele_shuffle_close(shuffle);
	return position / 4;
}

static void test_raise(const struct test_dataset *t, bool by_device)
{
	struct stele_loader_source source = {.ds = t->ds};
	struct stele_loader_opts opts = {.batch_size = 4, .seed = 9};
	const uint64_t bad[] = {20};
	struct test_load load = {0};
	struct test_log log;
	struct refusal refusal;
	struct stele_loader *loader;
	struct stele_batch batch = {.size = sizeof(batch)};
	uint64_t at = batch_of(&opts, 20);
	char line[96], raised[96];

	test_log_init(&log);
	opts.log = log.log.fn;
	opts.log_user = log.log.user;
	break_samples(t, bad, 1, by_device, &refusal, &opts);
	loader = test_loader(&source, 1, opts);
	is_int(1, test_load(loader, t, at, &load), "up to there");
	is_int(-EILSEQ, stele_loader_next(loader, &batch), "raised");
	is_uint(20, batch.failed_id, "of the sample that failed");
	is_uint(0, batch.failed_source, "of its source");
	snprintf(raised, sizeof(raised), "%s", stele_errmsg());
	is_uint(COUNT / 4 - at - 1, stele_loader_remaining(loader),
		"it counts as had");
	is_int(0, test_load(loader, t, UINT64_MAX, &load), "once");
	is_uint(COUNT / 4 - 1, load.batches, "one batch is lost");
	is_uint(COUNT - 4, load.count, "and no other sample");
	is_uint(0, load.wrong, "these are right");
	snprintf(line, sizeof(line), "cannot read sample 20 of source 0: %s",
		 stele_strerror(-EILSEQ));
	ok(!strcmp(line, raised), "and the message says so");
	ok(test_log_has(&log, line + strlen("cannot read ")), "the log says which");
	stele_loader_close(loader);
	test_load_release(&load);
}

static void test_skip(const struct test_dataset *t, bool by_device)
{
	struct stele_loader_source source = {.ds = t->ds};
	struct stele_loader_opts opts = {.batch_size = 5,
					 .world = 3,
					 .on_error = STELE_ON_ERROR_SKIP};
	const uint64_t bad[] = {1, 2, 3, 5, 8, 13, 21, 34};
	struct stele_loader *loaders[3];
	struct stele_loader_stats stats = {.size = sizeof(stats)};
	uint64_t skipped = 0, left_out = 0;
	struct test_load load = {0};
	struct refusal refusal;

	break_samples(t, bad, 8, by_device, &refusal, &opts);
	test_loaders(&source, 1, opts, loaders);
	is_int(0, test_load_all(loaders, 3, t, UINT64_MAX, &load),
	       "all ranks end together");
	is_uint(3 * 4, load.batches, "after as many batches");
	is_uint(COUNT - 8, load.count, "with all but those that fail");
	is_uint(0, load.wrong, "these are right");
	for (unsigned int i = 0; i < 3; i++) {
		stele_loader_stats(loaders[i], &stats);
		skipped += stats.skipped;
		left_out += stats.substituted;
	}
	is_uint(load.skipped, skipped, "counted");
	ok(skipped >= 8, "at least those eight");
	is_uint(0, left_out, "nothing stands in");
	test_loaders_close(loaders, 3);
	test_load_release(&load);
}

/* Nothing can be read at all: empty batches, and no end of them before the epoch's. */
static void test_skip_all(struct test_dataset *t)
{
	struct stele_loader_source source = {.ds = t->ds};
	struct stele_loader_opts opts = {.batch_size = 5,
					 .on_error = STELE_ON_ERROR_SKIP};
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FAIL,
					.ops = 1 << STELE_OP_READ,
					.error = EILSEQ};
	struct test_load load = {0};
	struct stele_loader *loader;

	stele_fault_set_rules(t->dev, &rule, 1);
	loader = test_loader(&source, 1, opts);
	is_int(0, test_load(loader, t, UINT64_MAX, &load), "all fails");
	is_uint(10, load.batches, "as many batches");
	is_uint(0, load.count, "without samples");
	stele_loader_close(loader);
	opts.on_error = STELE_ON_ERROR_SUBSTITUTE;
	loader = test_loader(&source, 1, opts);
	is_int(0, test_load(loader, t, UINT64_MAX, &load), "stand-ins, too");
	is_uint(20, load.batches, "as many batches");
	is_uint(0, load.count, "without samples");
	stele_loader_close(loader);
	stele_fault_set_rules(t->dev, NULL, 0);
	test_load_release(&load);
}

static void run_substitute(const struct test_dataset *t,
			   const struct stele_loader_opts *opts,
			   struct test_load *load)
{
	struct stele_loader_source source = {.ds = t->ds};
	struct stele_loader_stats stats = {.size = sizeof(stats)};
	struct stele_loader *loader = test_loader(&source, 1, *opts);

	is_int(0, test_load(loader, t, UINT64_MAX, load), "to the end");
	stele_loader_stats(loader, &stats);
	is_uint(stats.substituted, load->skipped, "counted");
	is_uint(0, stats.skipped, "nothing is left out");
	stele_loader_close(loader);
}

static void test_substitute(const struct test_dataset *t, bool by_device)
{
	struct stele_loader_opts opts = {
		.batch_size = 5,
		.on_error = STELE_ON_ERROR_SUBSTITUTE,
	};
	const uint64_t bad[] = {4, 10, 11, 12, 40};
	struct test_load a = {0}, b = {0};
	struct refusal refusal;
	uint64_t there = 0;

	break_samples(t, bad, 5, by_device, &refusal, &opts);
	run_substitute(t, &opts, &a);
	is_uint(COUNT, a.count, "no batch is shorter");
	is_uint(5 * 10, a.count + a.padded, "nor the last");
	ok(a.skipped >= 5, "five stand-ins");
	for (uint64_t i = 0; i < a.count; i++)
		there += is_bad(bad, 5, a.ids[i]);
	is_uint(0, there, "and what fails is not there");
	is_uint(0, a.wrong, "all are right");
	run_substitute(t, &opts, &b);
	ok(!memcmp(a.ids, b.ids, COUNT * sizeof(*a.ids)),
	   "the same ones each time");
	test_load_release(&a);
	test_load_release(&b);
	/* Where there is no other, the place stays empty. */
	break_samples(t, bad, 1, by_device, &refusal, &opts);
	{
		struct stele_loader_source source = {
			.ds = t->ds, .first = 4, .count = 1};
		struct stele_loader *loader = test_loader(&source, 1, opts);

		is_int(0, test_load(loader, t, UINT64_MAX, &a), "one sample");
		is_uint(0, a.count, "which nothing can stand for");
		is_uint(1, a.batches, "but a batch there is");
		stele_loader_close(loader);
		test_load_release(&a);
	}
}

/*
 * A transform is late to refuse: by then buffers are full of what comes later, and the
 * batch that is due still gets its stand-in.
 */
static int refuse_late(void *user, struct stele_sample *sample)
{
	int ret = refuse(user, sample);

	if (ret)
		usleep(20000);
	return ret;
}

static void test_late(const struct test_dataset *t, uint64_t prefetch_size)
{
	struct stele_loader_source source = {.ds = t->ds};
	struct stele_loader_opts opts = {
		.batch_size = 2,
		.on_error = STELE_ON_ERROR_SUBSTITUTE,
		.prefetch_size = prefetch_size,
	};
	const uint64_t bad[] = {7, 29};
	struct test_load load = {0};
	struct stele_loader *loader;
	struct refusal refusal;

	break_samples(t, bad, 2, false, &refusal, &opts);
	opts.transform = refuse_late;
	loader = test_loader(&source, 1, opts);
	for (unsigned int i = 0; i < 3; i++)
		is_int(0, test_load(loader, t, UINT64_MAX, &load), "late");
	is_uint(3 * COUNT, load.count, "nothing is missing");
	is_uint(0, load.wrong, "all are right");
	stele_loader_close(loader);
	test_load_release(&load);
}

/* A checksum that does not match is an error like any other. */
static void test_damage(struct test_dataset *t)
{
	struct stele_loader_source source = {.ds = t->ds};
	struct stele_loader_opts opts = {.on_error = STELE_ON_ERROR_SKIP};
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FLIP,
					.ops = 1 << STELE_OP_READ,
					.arg = 77};
	struct test_load load = {0};
	struct stele_loader *loader;
	struct stele_batch batch = {.size = sizeof(batch)};
	struct test_read read;

	test_reads_of(t, 33, &read, 1);
	rule.offset = read.offset;
	rule.size = read.size;
	stele_fault_set_rules(t->dev, &rule, 1);
	opts.batch_size = COUNT;
	loader = test_loader(&source, 1, opts);
	is_int(1, stele_loader_next(loader, &batch), "damage");
	is_int(-EBADMSG, batch.skip_error, "is named");
	stele_loader_close(loader);
	opts.batch_size = 1;
	loader = test_loader(&source, 1, opts);
	is_int(0, test_load(loader, t, UINT64_MAX, &load), "to the end");
	is_uint(1, load.skipped, "is skipped");
	is_uint(COUNT - 1, load.count, "alone");
	stele_loader_close(loader);
	stele_fault_set_rules(t->dev, NULL, 0);
	test_load_release(&load);
}

/* That the snapshot went away is not skipped: nothing would ever come again. */
static void test_gone(struct test_dataset *t)
{
	struct stele_loader_source source = {.ds = t->ds};
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FAIL,
					.ops = 1 << STELE_OP_READ,
					.error = ESTALE};
	struct stele_batch batch = {.size = sizeof(batch)};

	stele_fault_set_rules(t->dev, &rule, 1);
	for (uint32_t policy = 0; policy < 3; policy++) {
		struct stele_loader *loader = test_loader(
			&source, 1,
			(struct stele_loader_opts){.on_error = policy});

		is_int(-ESTALE, stele_loader_next(loader, &batch),
		       "gone, by policy %u", policy);
		is_int(-ESTALE, stele_loader_next(loader, &batch),
		       "and stays so");
		stele_loader_release(loader, &batch);
		stele_loader_close(loader);
	}
	stele_fault_set_rules(t->dev, NULL, 0);
}

int main(void)
{
	struct test_plan plan = {
		.samples = COUNT, .size_max = 5000, .granule = 4096};
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct test_dataset t;

	plan_lazy();
	test_dataset_open(&t, &plan);
	for (int by_device = 0; by_device < 2; by_device++) {
		diag("%s fails", by_device ? "the device" : "a transform");
		test_raise(&t, by_device);
		test_skip(&t, by_device);
		test_substitute(&t, by_device);
	}
	test_late(&t, 256 << 20);
	/* A little more than there are buffers for: few samples wait for one. */
	stele_dataset_info(t.ds, &info);
	test_late(&t, 2 * (info.slots_size + COUNT * 8192) + 100000);
	test_skip_all(&t);
	test_damage(&t);
	test_gone(&t);
	test_dataset_close(&t);
	return done();
}
