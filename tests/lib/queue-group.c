/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue-group.c - queues of one thread that share a ring
 *
 * Each gets its own bytes and its own completions, whoever looked at the ring, and in
 * whatever order they are closed; and the kernel is entered once for all.
 */
#include "tests/device/device.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

#define QUEUES 5u
#define DEPTH  4u
#define PIECE  4096u

struct member {
	struct stele_device *dev;
	struct stele_queue *queue;
	char *wanted, *seen;
	struct stele_request requests[DEPTH];
};

static const char *name; /* of the backend */

static void open_all(struct member *m, struct stele_queue_group *group)
{
	for (unsigned int i = 0; i < QUEUES; i++) {
		m[i].dev = test_device_open(name, DEPTH * PIECE);
		m[i].wanted = test_data(m[i].dev, DEPTH * PIECE, i + 1);
		m[i].seen = stele_device_alloc(m[i].dev, DEPTH * PIECE);
		if (!m[i].seen ||
		    stele_device_write(m[i].dev, m[i].wanted, 0, DEPTH * PIECE) ||
		    stele_queue_open_in(m[i].dev, DEPTH, group, &m[i].queue))
			bail("no queue over %s", name);
	}
}

static void close_member(struct member *m)
{
	is_uint(0, stele_queue_close(m->queue), "%s: closed", name);
	stele_device_close(m->dev);
	free(m->wanted);
	free(m->seen);
}

static void submit(struct member *m)
{
	memset(m->seen, 0, DEPTH * PIECE);
	for (unsigned int i = 0; i < DEPTH; i++) {
		m->requests[i] = (struct stele_request){
			.op = STELE_OP_READ, .data = m->seen + i * PIECE,
			.offset = i * PIECE, .size = PIECE, .user = m};
		if (stele_queue_submit(m->queue, &m->requests[i]))
			bail("%s: not submitted", name);
	}
}

/* All that are its own, and right. */
static bool reaps(struct member *m, unsigned int min)
{
	struct stele_request *done[2 * DEPTH];
	int n = stele_queue_reap(m->queue, done, 2 * DEPTH, min);
	bool good = n == (int)DEPTH;

	for (int i = 0; i < n; i++)
		good = good && done[i]->user == m && !done[i]->status;
	return good && !memcmp(m->wanted, m->seen, DEPTH * PIECE);
}

static bool readable(struct stele_queue *queue)
{
	struct pollfd fd = {.fd = stele_queue_fd(queue), .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

static uint64_t enters(const struct member *m)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < QUEUES; i++)
		sum += m[i].queue->stats.enters;
	return sum;
}

static void test_gather(struct member *m)
{
	struct stele_request *done[DEPTH];
	uint64_t before = enters(m);

	for (unsigned int i = 0; i < QUEUES; i++)
		submit(&m[i]);
	is_int(0, stele_queue_reap(m[1].queue, done, DEPTH, 0),
	       "%s: nothing is pushed to look for it", name);
	is_int(0, stele_queue_gather(m[3].queue, QUEUES * DEPTH), "gathered");
	ok(enters(m) - before <= QUEUES, "%s: %u calls of the kernel for %u reads",
	   name, (unsigned int)(enters(m) - before), QUEUES * DEPTH);
	ok(readable(m[0].queue), "%s: completions wait: readable", name);
	for (unsigned int i = 0; i < QUEUES; i++)
		ok(reaps(&m[i], 0), "%s: %u has its own", name, i);
	is_int(0, stele_queue_gather(m[0].queue, 1), "%s: none is waited for", name);
	ok(!readable(m[2].queue), "%s: and none is left", name);
}

/* Who waits for its own gets those of others, who find them later. */
static void test_wait(struct member *m)
{
	for (unsigned int i = 0; i < QUEUES; i++)
		submit(&m[i]);
	for (unsigned int i = QUEUES; i-- > 0;)
		ok(reaps(&m[i], DEPTH), "%s: %u waits for its own", name, i);
}

static void *claim(void *queue)
{
	return (void *)(intptr_t)stele_queue_claim(queue);
}

static void test_other_thread(struct member *m)
{
	pthread_t thread;
	void *result;

	if (pthread_create(&thread, NULL, claim, m[1].queue) ||
	    pthread_join(thread, &result))
		bail("no thread");
	is_int(-EBUSY, (int)(intptr_t)result, "%s: another thread's", name);
}

int main(void)
{
	static const char *const names[] = {"memory", "threads", "uring"};
	struct stele_queue_group group;
	struct member m[QUEUES];

	plan_lazy();
	for (size_t i = 0; i < 3; i++) {
		name = names[i];
		if (!test_backend_usable(name))
			continue;
		group = (struct stele_queue_group){0};
		open_all(m, &group);
		for (unsigned int j = 0; j < QUEUES; j++)
			is_int(i == 2, m[j].queue->grouped, "%s: joins or not", name);
		if (i == 2)
			test_gather(m);
		test_wait(m);
		if (i == 2)
			test_other_thread(m);
		/* Its host first: the ring stays. */
		close_member(&m[0]);
		submit(&m[4]);
		ok(reaps(&m[4], DEPTH), "%s: the first one is closed", name);
		for (unsigned int j = 1; j < QUEUES; j++)
			close_member(&m[j]);
	}
	return done();
}
