/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device-fault.c - each fault does what it says, and the log tells of it
 */
#include "tests/device/device.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

#define SIZE (1u << 20)
#define WRITES (1u << STELE_OP_WRITE)
#define READS  (1u << STELE_OP_READ)

struct stage {
	struct stele_device *dev;
	char *before, *data, *after; /* SIZE bytes each */
};

static void open_stage(struct stage *stage, const char *backend,
		       const struct stele_fault_rule *rule)
{
	stage->dev = test_fault_open(backend, SIZE, NULL);
	stage->before = test_data(stage->dev, SIZE, 1);
	stage->data = test_data(stage->dev, SIZE, 2);
	stage->after = test_data(stage->dev, SIZE, 3);
	if (stele_device_write(stage->dev, stage->before, 0, SIZE) ||
	    stele_fault_set_rules(stage->dev, rule, 1))
		bail("no stage");
	stele_fault_log_clear(stage->dev);
}

static void close_stage(struct stage *stage)
{
	stele_device_close(stage->dev);
	free(stage->before);
	free(stage->data);
	free(stage->after);
}

/* By a queue or not. Return: the status. */
static int transfer(struct stage *stage, bool queued, enum stele_op op,
		    char *data, uint64_t offset, uint32_t size)
{
	struct stele_request *done, request = {
		.op = op, .data = data, .offset = offset, .size = size};
	struct stele_queue *queue;

	if (!queued)
		return op == STELE_OP_READ
			       ? stele_device_read(stage->dev, data, offset, size)
			       : stele_device_write(stage->dev, data, offset,
						    size);
	if (stele_queue_open(stage->dev, 1, NULL, 0, &queue) ||
	    stele_queue_submit(queue, &request) ||
	    stele_queue_reap(queue, &done, 1, 1) != 1)
		bail("no transfer");
	stele_queue_close(queue);
	return request.status;
}

static void look(struct stage *stage)
{
	if (stele_fault_set_rules(stage->dev, NULL, 0) ||
	    stele_device_read(stage->dev, stage->after, 0, SIZE))
		bail("cannot look");
}

/* ---- writes -------------------------------------------------------------- */

/* What a write of 8192 bytes at 4096 leaves: `kept` of its bytes, at `at`. */
static const struct write_case {
	const char *what;
	struct stele_fault_rule rule;
	int status;
	size_t kept;
	uint64_t at;
} write_cases[] = {
	{"failed", {.kind = STELE_FAULT_FAIL, .error = EIO}, -EIO, 0, 4096},
	{"lost", {.kind = STELE_FAULT_LOSE}, 0, 0, 4096},
	{"torn at a block", {.kind = STELE_FAULT_TEAR, .arg = 4096}, 0, 4096,
	 4096},
	{"torn at 8 bytes", {.kind = STELE_FAULT_TEAR, .arg = 8}, 0, 8, 4096},
	{"torn within a block", {.kind = STELE_FAULT_TEAR, .arg = 5000}, 0,
	 5000, 4096},
	{"torn to nothing", {.kind = STELE_FAULT_TEAR}, 0, 0, 4096},
	{"torn behind its end", {.kind = STELE_FAULT_TEAR, .arg = 9000}, 0,
	 8192, 4096},
	{"misdirected", {.kind = STELE_FAULT_MISDIRECT, .arg = 65536}, 0, 8192,
	 4096 + 65536},
	{"delayed", {.kind = STELE_FAULT_DELAY, .arg = 100}, 0, 8192, 4096},
	{"not a read", {.kind = STELE_FAULT_FLIP}, 0, 8192, 4096},
	{"elsewhere", {.kind = STELE_FAULT_FAIL, .error = EIO, .offset = 12288,
	 .size = 512}, 0, 8192, 4096},
	{"elsewhere before", {.kind = STELE_FAULT_FAIL, .error = EIO,
	 .size = 4096}, 0, 8192, 4096},
	{"its last byte", {.kind = STELE_FAULT_FAIL, .error = EIO,
	 .offset = 12287, .size = 1}, -EIO, 0, 4096},
	{"its first byte", {.kind = STELE_FAULT_FAIL, .error = EIO,
	 .offset = 4095, .size = 2}, -EIO, 0, 4096},
	{"everything", {.kind = STELE_FAULT_FAIL, .error = EIO, .offset = 1,
	 .size = UINT64_MAX}, -EIO, 0, 4096},
	{"another operation", {.kind = STELE_FAULT_FAIL, .error = EIO,
	 .ops = READS | 1u << STELE_OP_FLUSH}, 0, 8192, 4096},
	{"another number", {.kind = STELE_FAULT_FAIL, .error = EIO,
	 .first = 1000}, 0, 8192, 4096},
};

static void check_write(const struct write_case *c, const char *backend,
			bool queued)
{
	struct stage s;

	open_stage(&s, backend, &c->rule);
	is_int(c->status,
	       transfer(&s, queued, STELE_OP_WRITE, s.data, 4096, 8192),
	       "%s, %s write: %s", backend, queued ? "queued" : "blocking",
	       c->what);
	look(&s);
	memcpy(s.before + c->at, s.data, c->kept);
	is_blob(s.before, s.after, SIZE, "and leaves that");
	close_stage(&s);
}

/* ---- reads --------------------------------------------------------------- */

static void check_reads(const char *backend, bool queued)
{
	static const struct stele_fault_rule flip = {
		.kind = STELE_FAULT_FLIP, .ops = READS, .arg = 8 * 700 + 3};
	static const struct stele_fault_rule misdirect = {
		.kind = STELE_FAULT_MISDIRECT, .ops = READS, .arg = 512};
	static const struct stele_fault_rule lose = {
		.kind = STELE_FAULT_LOSE, .ops = READS};
	struct stage s;
	char *untouched;

	open_stage(&s, backend, &flip);
	transfer(&s, queued, STELE_OP_READ, s.data, 4096, 4096);
	is_hex((uint8_t)s.before[4096 + 700] ^ 8, (uint8_t)s.data[700],
	       "%s: flips its bit", backend);
	s.data[700] ^= 8;
	is_blob(s.before + 4096, s.data, 4096, "%s: and no other", backend);
	close_stage(&s);

	open_stage(&s, backend, &misdirect);
	transfer(&s, queued, STELE_OP_READ, s.data, 4096, 4096);
	is_blob(s.before + 4096 + 512, s.data, 4096, "%s: reads elsewhere",
		backend);
	close_stage(&s);

	open_stage(&s, backend, &lose);
	untouched = test_data(s.dev, 4096, 2);
	is_int(0, transfer(&s, queued, STELE_OP_READ, s.data, 4096, 4096),
	       "%s: claims to have read", backend);
	is_blob(untouched, s.data, 4096, "%s: has not", backend);
	free(untouched);
	close_stage(&s);
}

/* ---- order --------------------------------------------------------------- */

struct order {
	struct stele_request requests[4];
	struct stele_queue *queue;
};

static void open_order(struct order *order, struct stage *s)
{
	memset(order, 0, sizeof(*order));
	if (stele_queue_open(s->dev, 4, NULL, 0, &order->queue))
		bail("no queue");
	for (int i = 0; i < 4; i++)
		order->requests[i] = (struct stele_request){
			.op = STELE_OP_READ,
			.data = s->data + i * 512,
			.offset = i * 512,
			.size = 512};
}

/* Submit all, reap all: digits of the requests in the order they came. */
static unsigned int come_back(struct order *order)
{
	struct stele_request *done;
	unsigned int digits = 0;

	for (int i = 0; i < 4; i++)
		stele_queue_submit(order->queue, &order->requests[i]);
	for (int i = 0; i < 4; i++) {
		if (stele_queue_reap(order->queue, &done, 1, 1) != 1)
			return 0;
		digits = digits * 10 + (unsigned int)(done - order->requests);
	}
	return digits;
}

static void check_order(void)
{
	struct stele_fault_rule delay = {.kind = STELE_FAULT_DELAY,
					 .ops = READS,
					 .count = 1};
	static const struct {
		uint64_t arg;
		unsigned int digits;
	} cases[] = {{3, 1230}, {1000000, 1230}};
	struct order order;
	struct stage s;

	for (size_t i = 0; i < 2; i++) {
		delay.arg = cases[i].arg;
		open_stage(&s, "memory", &delay);
		open_order(&order, &s);
		is_uint(cases[i].digits, come_back(&order),
			"delayed by %ju operations", (uintmax_t)delay.arg);
		is_blob(s.before, s.data, 2048, "bytes in their places");
		stele_queue_close(order.queue);
		close_stage(&s);
	}
}

/* Held back from a look, until that many operations have come later. */
static void check_delay(void)
{
	struct stele_fault_rule delay = {.kind = STELE_FAULT_DELAY,
					 .ops = READS,
					 .count = 1,
					 .arg = 2};
	struct stele_request *done[4];
	struct order order;
	struct stage s;

	open_stage(&s, "memory", &delay);
	open_order(&order, &s);
	stele_queue_submit(order.queue, &order.requests[0]);
	is_int(0, stele_queue_reap(order.queue, done, 4, 0), "none came later");
	stele_queue_submit(order.queue, &order.requests[1]);
	is_int(1, stele_queue_reap(order.queue, done, 4, 0), "one came later");
	ok(done[0] == &order.requests[1], "and is complete");
	stele_device_flush(s.dev);
	is_int(1, stele_queue_reap(order.queue, done, 4, 0), "two came later");
	ok(done[0] == &order.requests[0], "the delayed one");

	stele_fault_set_rules(s.dev, &delay, 1);
	stele_queue_submit(order.queue, &order.requests[2]);
	is_int(1, stele_queue_reap(order.queue, done, 4, 1),
	       "a wait for nothing else ends");
	stele_queue_submit(order.queue, &order.requests[3]);
	stele_queue_close(order.queue);
	close_stage(&s);
}

static void check_delay_polled(const char *backend)
{
	struct stele_fault_rule delay = {.kind = STELE_FAULT_DELAY,
					 .arg = 1000};
	struct stele_request *done[4];
	unsigned int seen = 0;
	struct pollfd p;
	struct order order;
	struct stage s;

	open_stage(&s, backend, &delay);
	open_order(&order, &s);
	p = (struct pollfd){.fd = stele_queue_fd(order.queue),
			    .events = POLLIN};
	for (int i = 0; i < 4; i++)
		stele_queue_submit(order.queue, &order.requests[i]);
	for (int rounds = 0; seen < 4 && rounds < 100; rounds++) {
		int n = stele_queue_reap(order.queue, done, 4, 0);

		if (n < 0 || (!n && poll(&p, 1, 10000) != 1))
			break;
		seen += (unsigned int)n;
	}
	is_uint(4, seen, "%s: poll tells of the delayed", backend);
	is_int(0, poll(&p, 1, 0), "%s: and then of nothing", backend);
	stele_queue_close(order.queue);
	close_stage(&s);
}

/* ---- log ----------------------------------------------------------------- */

static void check_log(void)
{
	static const struct stele_fault_rule fail = {.kind = STELE_FAULT_FAIL,
						     .ops = WRITES,
						     .count = 1,
						     .error = EINTR};
	const struct stele_fault_entry *log;
	uint64_t first;
	size_t count;
	struct stage s;

	open_stage(&s, "memory", &fail);
	stele_fault_keep_data(s.dev, true);
	first = stele_fault_count(s.dev);
	stele_device_write(s.dev, s.data, 8192, 1024);
	stele_device_flush(s.dev);
	transfer(&s, true, STELE_OP_READ, s.after, 512, 1024);
	stele_device_discard(s.dev, 0, 512);

	log = stele_fault_log(s.dev, &count);
	is_uint(5, count, "five operations");
	for (size_t i = 0; i < count; i++)
		is_uint(first + i, log[i].number, "numbered");
	is_int(STELE_FAULT_FAIL, log[0].fault, "the first failed");
	is_int(-1, log[1].fault, "the second did not");
	is_int(STELE_OP_WRITE, log[1].op, "a write");
	is_uint(8192, log[1].offset, "its offset");
	is_uint(1024, log[1].size, "its size");
	is_blob(s.data, log[1].data, 1024, "its data");
	ok(!log[1].queued, "not queued");
	is_int(STELE_OP_FLUSH, log[2].op, "a flush");
	is_int(STELE_OP_READ, log[3].op, "a read");
	ok(log[3].queued && !log[3].data, "queued, without data");
	is_int(STELE_OP_DISCARD, log[4].op, "a discard");
	stele_fault_log_clear(s.dev);
	stele_fault_log(s.dev, &count);
	is_uint(0, count, "cleared");
	is_uint(first + 5, stele_fault_count(s.dev), "numbers go on");
	is_int(-EINVAL, stele_device_write(s.dev, s.data, 1, 512), "refused");
	is_uint(first + 5, stele_fault_count(s.dev), "before it is issued");
	close_stage(&s);
}

int main(void)
{
	plan_lazy();
	for (int i = 0; i < TEST_BACKENDS; i++) {
		/* What is below makes no difference; images cost time. */
		if (!strcmp(test_backends[i], "rbd") ||
		    !test_backend_usable(test_backends[i]))
			continue;
		for (int queued = 0; queued < 2; queued++) {
			for (size_t j = 0; j < sizeof(write_cases) /
						       sizeof(write_cases[0]);
			     j++)
				check_write(&write_cases[j], test_backends[i],
					    queued);
			check_reads(test_backends[i], queued);
		}
		check_delay_polled(test_backends[i]);
	}
	check_order();
	check_delay();
	check_log();
	return done();
}
