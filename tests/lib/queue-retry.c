/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue-retry.c - short, interrupted and refused transfers, blocking and queued
 *
 * Each case breaks what a device below answers, by one rule, and names the
 * status, and the number of operations, that must come of it.
 */
#include "tests/device/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

#define SIZE   (1u << 20)
#define OFFSET 16384
#define LENGTH 65536

struct test_case {
	const char *what;
	struct stele_fault_rule rule;
	int status;
	uint64_t ops; /* that the device must see */
};

#define FAIL(n, e) {.kind = STELE_FAULT_FAIL, .count = (n), .error = (e)}
#define SHORTEN(n, to) {.kind = STELE_FAULT_SHORTEN, .count = (n), .arg = (to)}
#define FOR_EVER 0
#define ALL_TRIES (STELE_RETRY_MAX + 1)

static const struct test_case both[] = {
	{"nothing", FAIL(1, 0), 0, 1}, /* its rule is not set */
	{"short once", SHORTEN(1, 4096), 0, 2},
	{"short thrice", SHORTEN(3, 4096), 0, 4},
	{"short to one block", SHORTEN(1, 512), 0, 2},
	{"short of one block", SHORTEN(1, LENGTH - 512), 0, 2},
	{"always short", SHORTEN(FOR_EVER, 16384), 0, 4},
	{"short within a block", SHORTEN(1, 4096 + 100), 0, 2},
	{"always short within a block", SHORTEN(FOR_EVER, 8192 + 511), 0, 8},
	{"short below a block, once", SHORTEN(1, 511), 0, 2},
	{"EAGAIN once", FAIL(1, EAGAIN), 0, 2},
	{"EINTR once", FAIL(1, EINTR), 0, 2},
	{"EAGAIN to the last try", FAIL(STELE_RETRY_MAX, EAGAIN), 0, ALL_TRIES},
	{"EAGAIN for ever", FAIL(FOR_EVER, EAGAIN), -EAGAIN, ALL_TRIES},
	{"EINTR for ever", FAIL(FOR_EVER, EINTR), -EINTR, ALL_TRIES},
	{"EIO", FAIL(1, EIO), -EIO, 1},
	{"EILSEQ", FAIL(1, EILSEQ), -EILSEQ, 1},
	{"ENODATA, of a bad block", FAIL(1, ENODATA), -EIO, 1},
};

static const struct test_case reads[] = {
	{"nothing at all", SHORTEN(1, 0), -ENODATA, 1},
	{"below a block for ever", SHORTEN(FOR_EVER, 511), -ENODATA, ALL_TRIES},
};

static const struct test_case writes[] = {
	{"nothing at all", SHORTEN(1, 0), -ENOSPC, 1},
	{"below a block for ever", SHORTEN(FOR_EVER, 511), -ENOSPC, ALL_TRIES},
};

struct run {
	struct stele_device *dev; /* the fault device */
	const char *backend;	  /* below it */
	bool queued;
	enum stele_op op;
};

static int transfer_queued(const struct run *run, void *data)
{
	struct stele_request *done = NULL, request = {.op = run->op,
						      .data = data,
						      .offset = OFFSET,
						      .size = LENGTH};
	struct stele_queue *queue;
	int n;

	if (stele_queue_open(run->dev, 2, data, LENGTH, &queue))
		bail("no queue");
	if (stele_queue_submit(queue, &request))
		bail("not taken");
	n = stele_queue_reap(queue, &done, 1, 1);
	is_int(1, n, "one is reaped");
	n = stele_queue_reap(queue, &done, 1, 1);
	is_int(0, n, "and only once");
	stele_queue_close(queue);
	return request.status;
}

static int transfer(const struct run *run, void *data)
{
	if (run->queued)
		return transfer_queued(run, data);
	if (run->op == STELE_OP_READ)
		return stele_device_read(run->dev, data, OFFSET, LENGTH);
	return stele_device_write(run->dev, data, OFFSET, LENGTH);
}

static void set_rule(struct stele_device *dev,
		     const struct stele_fault_rule *rule)
{
	bool none = !rule || (rule->kind == STELE_FAULT_FAIL && !rule->error);

	if (stele_fault_set_rules(dev, rule, none ? 0 : 1))
		bail("no rule");
}

/* What lies on the device, around the transfer too, that no rule touches. */
static void look(struct stele_device *dev, char *all)
{
	set_rule(dev, NULL);
	if (stele_device_read(dev, all, 0, SIZE))
		bail("cannot look");
}

static void check_case(const struct run *run, const struct test_case *c)
{
	char *before = test_data(run->dev, SIZE, 1);
	char *after = test_data(run->dev, SIZE, 2);
	char *data = test_data(run->dev, LENGTH, 3);
	const char *how = run->queued ? "queued" : "blocking";
	const char *op = run->op == STELE_OP_READ ? "read" : "write";
	uint64_t count;
	int rc;

	set_rule(run->dev, NULL);
	if (stele_device_write(run->dev, before, 0, SIZE))
		bail("cannot prepare");
	set_rule(run->dev, &c->rule);
	count = stele_fault_count(run->dev);
	rc = transfer(run, data);
	is_int(c->status, rc, "%s, %s %s: %s", run->backend, how, op, c->what);
	is_uint(c->ops, stele_fault_count(run->dev) - count,
		"so many operations");
	look(run->dev, after);
	if (!rc && run->op == STELE_OP_READ)
		is_blob(before + OFFSET, data, LENGTH, "reads the bytes");
	if (!rc && run->op == STELE_OP_WRITE)
		memcpy(before + OFFSET, data, LENGTH);
	if (rc)
		memcpy(before + OFFSET, after + OFFSET, LENGTH);
	is_blob(before, after, SIZE, "the device holds what it should");
	free(before);
	free(after);
	free(data);
}

static void check_cases(const struct run *run)
{
	const struct test_case *own = run->op == STELE_OP_READ ? reads : writes;

	for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++)
		check_case(run, &both[i]);
	for (size_t i = 0; i < 2; i++)
		check_case(run, &own[i]);
}

/* A flush has no bytes to go on with; it is retried and reported alike. */
static void check_flush(struct stele_device *dev, const char *backend)
{
	struct stele_fault_rule again = FAIL(3, EINTR), broken = FAIL(1, EIO);

	set_rule(dev, &again);
	is_int(0, stele_device_flush(dev), "%s: flush again", backend);
	set_rule(dev, &broken);
	is_int(-EIO, stele_device_flush(dev), "%s: flush fails", backend);
}

/* Progress pays for new retries. */
static void check_progress(struct run *run)
{
	static const struct stele_fault_rule rules[] = {
		FAIL(STELE_RETRY_MAX, EAGAIN),
		SHORTEN(1, 4096),
		FAIL(STELE_RETRY_MAX, EINTR),
	};
	char *data = test_data(run->dev, LENGTH, 6);

	run->op = STELE_OP_READ;
	for (int queued = 0; queued < 2; queued++) {
		run->queued = queued;
		if (stele_fault_set_rules(run->dev, rules, 3))
			bail("no rules");
		is_int(0, transfer(run, data), "%s: retries of each piece",
		       run->backend);
	}
	free(data);
}

/* One request in trouble hurts none of its neighbours. */
static void check_neighbours(struct stele_device *dev, const char *backend)
{
	static const struct stele_fault_rule rules[] = {
		{.kind = STELE_FAULT_FAIL,
		 .offset = 8192,
		 .size = 512,
		 .error = EIO},
		{.kind = STELE_FAULT_SHORTEN,
		 .offset = 16384,
		 .size = 512,
		 .count = 1,
		 .arg = 512},
	};
	struct stele_request requests[8], *done[8];
	char *wanted = test_data(dev, SIZE, 4), *seen = test_data(dev, SIZE, 5);
	struct stele_queue *queue;

	set_rule(dev, NULL);
	stele_device_write(dev, wanted, 0, SIZE);
	stele_fault_set_rules(dev, rules, 2);
	if (stele_queue_open(dev, 8, NULL, 0, &queue))
		bail("no queue");
	for (unsigned int i = 0; i < 8; i++) {
		requests[i] = (struct stele_request){.op = STELE_OP_READ,
						     .data = seen + i * 4096,
						     .offset = i * 4096,
						     .size = 4096};
		stele_queue_submit(queue, &requests[i]);
	}
	is_int(8, stele_queue_reap(queue, done, 8, 8), "%s: all are reaped",
	       backend);
	for (int i = 0; i < 8; i++)
		is_int(i == 2 ? -EIO : 0, requests[i].status, "%s: status %d",
		       backend, i);
	memcpy(seen + 8192, wanted + 8192, 4096);
	is_blob(wanted, seen, (size_t)8 * 4096, "%s: their bytes", backend);
	stele_queue_close(queue);
	free(wanted);
	free(seen);
}

int main(void)
{
	plan_lazy();
	for (int i = 0; i < TEST_BACKENDS; i++) {
		struct run run = {.backend = test_backends[i]};

		if (!test_backend_usable(run.backend))
			continue;
		run.dev = test_fault_open(run.backend, SIZE, NULL);
		for (int j = 0; j < 4; j++) {
			run.queued = j & 1;
			run.op = j & 2 ? STELE_OP_WRITE : STELE_OP_READ;
			check_cases(&run);
		}
		check_flush(run.dev, run.backend);
		check_progress(&run);
		check_neighbours(run.dev, run.backend);
		stele_device_close(run.dev);
	}
	return done();
}
