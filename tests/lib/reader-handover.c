/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader-handover.c - a reader goes from thread to thread, with nothing outstanding
 *
 * A ring serves the thread that made it, and numbers of registered rings mean others in
 * each thread: so each thread here has a reader of its own beside the one that goes
 * about. What is in flight stays with who submitted it: others are refused, and
 * nothing is lost.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define IDS    200u
#define REGION (1u << 20)

struct hand {
	struct test_dataset *t;
	struct stele_reader *reader;
	uint64_t ids[IDS];
	uint64_t wrong;
	int seen[4]; /* of a thread that comes while another's reads are in flight */
	unsigned int outstanding;
};

static void *open_one(void *arg)
{
	struct hand *hand = arg;

	hand->reader = test_reader_open(hand->t, 4u << 20, 8);
	return NULL;
}

static void *read_beside(void *arg)
{
	struct hand *hand = arg;
	struct stele_reader *own = test_reader_open(hand->t, 4u << 20, 8);

	hand->wrong += test_read_all(hand->t, own, hand->ids, IDS / 2);
	hand->wrong += test_read_all(hand->t, hand->reader, hand->ids, IDS);
	hand->wrong += test_read_all(hand->t, own, hand->ids, IDS / 2);
	stele_reader_close(own);
	return NULL;
}

static void *close_beside(void *arg)
{
	struct hand *hand = arg;
	struct stele_reader *own = test_reader_open(hand->t, 4u << 20, 8);

	hand->wrong += test_read_all(hand->t, own, hand->ids, IDS / 2);
	stele_reader_close(hand->reader);
	hand->wrong += test_read_all(hand->t, own, hand->ids, IDS / 2);
	stele_reader_close(own);
	return NULL;
}

static void in_thread(void *(*work)(void *), struct hand *hand)
{
	pthread_t id;

	if (pthread_create(&id, NULL, work, hand))
		bail("no thread");
	pthread_join(id, NULL);
}

/* Through memory that was registered, and poll, by whichever thread comes. */
static void *read_into(void *arg)
{
	static _Alignas(4096) char memory[REGION];
	struct hand *hand = arg;
	const struct stele_destination to = {.id = hand->ids[0],
					     .memory = memory,
					     .memory_size = sizeof(memory)};
	struct pollfd poll_fd = {.events = POLLIN};
	struct stele_sample sample;

	if (!hand->seen[0])
		hand->seen[0] = stele_reader_register(hand->reader, memory,
						      sizeof(memory));
	hand->seen[1] = stele_reader_submit_into(hand->reader, &to, 1);
	poll_fd.fd = stele_reader_fd(hand->reader);
	hand->seen[2] = poll(&poll_fd, 1, 10000);
	hand->seen[3] = stele_reader_collect(hand->reader, &sample, 1, 1);
	hand->wrong += hand->seen[3] != 1 ||
		       !test_is_sample(hand->t, hand->ids[0], &sample);
	return NULL;
}

static void check_rounds(struct hand *hand, const char *name)
{
	struct stele_reader_stats stats = {.size = sizeof(stats)};

	in_thread(open_one, hand);
	is_uint(0, test_read_all(hand->t, hand->reader, hand->ids, IDS),
		"%s: opened there, used here", name);
	for (int i = 0; i < 3; i++)
		in_thread(read_beside, hand);
	is_uint(0, hand->wrong, "%s: used by others, beside their own", name);
	is_uint(0, test_read_all(hand->t, hand->reader, hand->ids, IDS),
		"%s: and here again", name);
	memset(hand->seen, 0, sizeof(hand->seen));
	read_into(hand);
	in_thread(read_into, hand);
	ok(hand->seen[1] == 1 && hand->seen[2] == 1 && !hand->wrong,
	   "%s: memory and descriptor go along", name);
	stele_reader_stats(hand->reader, &stats);
	is_uint(0, stats.failed, "%s: nothing failed", name);
	in_thread(close_beside, hand);
	is_uint(0, hand->wrong, "%s: closed by another", name);
}

/* ---- in flight ------------------------------------------------------------- */

static void *come_too_early(void *arg)
{
	struct hand *hand = arg;
	struct stele_sample sample;

	hand->seen[0] = stele_reader_submit(hand->reader, hand->ids, NULL, 1);
	hand->seen[1] = stele_reader_collect(hand->reader, &sample, 1, 1);
	hand->seen[2] = stele_reader_fd(hand->reader);
	hand->outstanding = stele_reader_in_flight(hand->reader);
	return NULL;
}

static void check_in_flight(struct hand *hand, const char *name)
{
	struct stele_sample samples[4];
	unsigned int wrong = 0;
	int n;

	hand->reader = test_reader_open(hand->t, 4u << 20, 8);
	is_int(4, stele_reader_submit(hand->reader, hand->ids, NULL, 4),
	       "%s: four are in flight", name);
	in_thread(come_too_early, hand);
	ok(hand->seen[0] == -EBUSY && hand->seen[1] == -EBUSY &&
		   hand->seen[2] == -EBUSY,
	   "%s: another thread is refused", name);
	is_uint(4, hand->outstanding, "%s: and loses nothing", name);
	n = stele_reader_collect(hand->reader, samples, 4, 4);
	for (int i = 0; i < n; i++) {
		wrong += !test_is_sample(hand->t, samples[i].id, &samples[i]);
		stele_reader_release(hand->reader, &samples[i]);
	}
	ok(n == 4 && !wrong, "%s: they come where they were submitted", name);
	in_thread(read_beside, hand);
	is_uint(0, hand->wrong, "%s: then it may go", name);
	stele_reader_close(hand->reader);
}

static bool serves_one_thread(const struct test_dataset *t)
{
	struct stele_reader *reader = test_reader_open(t, 4u << 20, 8);
	struct stele_reader_stats stats = {.size = sizeof(stats)};

	stele_reader_stats(reader, &stats);
	stele_reader_close(reader);
	return strstr(stats.tier, "defer-taskrun");
}

static void check(const char *backend)
{
	struct test_plan plan = {.samples = IDS,
				 .size_max = 60000,
				 .granule = 512,
				 .backend = backend};
	const char *name = backend ? backend : "memory";
	struct test_dataset t;
	struct hand hand = {.t = &t};

	test_dataset_open(&t, &plan);
	test_random_ids(&t, hand.ids, IDS, 5);
	check_rounds(&hand, name);
	if (serves_one_thread(&t))
		check_in_flight(&hand, name);
	test_dataset_close(&t);
}

int main(void)
{
	plan_lazy();
	check("uring");
	check("sqpoll");
	check("threads");
	check(NULL);
	return done();
}
