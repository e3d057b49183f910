/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader-queues.c - loaders over queues that cannot be polled, or that break
 *
 * The ring of a backend that polls has no descriptor: a mixture of two such sources goes
 * on all the same. What broke is told again and again, and costs no processor.
 */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "tests/fixture/loader.h"
#include "tests/tap.h"

#define OPENINGS   300u
#define PATIENCE_S 120u /* of all: what hangs is killed */

/* It is meant to leak: what a queue that broke may still write to. */
const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *
__lsan_default_suppressions(void)
{
	return "leak:stele_loader_io_main";
}

static struct stele_device_ops device_ops;
static struct stele_queue_ops queue_ops;
static int (*open_queue)(struct stele_device *dev, unsigned int depth,
			 void *arena, size_t arena_size,
			 struct stele_queue **queue);

static int no_fd(struct stele_queue *queue)
{
	(void)queue;
	return -EOPNOTSUPP;
}

static int open_blind(struct stele_device *dev, unsigned int depth, void *arena,
		      size_t arena_size, struct stele_queue **queue)
{
	int err = open_queue(dev, depth, arena, arena_size, queue);

	if (err)
		return err;
	queue_ops = *(*queue)->ops;
	queue_ops.event_fd = no_fd;
	(*queue)->ops = &queue_ops;
	return 0;
}

/* Its queues have nothing to poll from now on. */
static void blind(struct test_dataset *t)
{
	device_ops = *t->dev->ops;
	if (device_ops.queue_open != open_blind)
		open_queue = device_ops.queue_open;
	device_ops.queue_open = open_blind;
	t->dev->ops = &device_ops;
}

static void test_blind(struct test_dataset *t, unsigned int count)
{
	const struct stele_loader_source sources[2] = {{.ds = t[0].ds},
						       {.ds = t[1].ds}};
	/* Whoever only looks finds nothing: one has to wait in the queue. */
	struct stele_fault_rule rule = {.kind = STELE_FAULT_DELAY,
					.ops = 1 << STELE_OP_READ,
					.arg = UINT64_MAX};
	struct stele_loader_opts opts = {.batch_size = 3};
	struct test_load load = {0};
	struct stele_loader *loader;

	for (unsigned int i = 0; i < count; i++) {
		blind(&t[i]);
		stele_fault_set_rules(t[i].dev, &rule, 1);
	}
	loader = test_loader(sources, 2, opts);
	is_int(0, test_load(loader, t, UINT64_MAX, &load),
	       "%u of two queues cannot be polled: to the end", count);
	is_uint(t[0].count + t[1].count, load.count, "with all samples");
	is_uint(0, load.wrong, "that are right");
	stele_loader_close(loader);
	test_load_release(&load);
}

/* Milliseconds of this process. */
static uint64_t processor_ms(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000 + (uint64_t)used.tv_nsec / 1000000;
}

static void test_broken(struct test_dataset *t, uint32_t count)
{
	const struct stele_loader_source sources[2] = {{.ds = t[0].ds},
						       {.ds = t[1].ds}};
	struct stele_fault_rule rule = {.kind = STELE_FAULT_BREAK,
					.ops = 1 << STELE_OP_READ};
	struct test_load load = {0};
	struct stele_loader *loader;
	uint64_t before;

	rule.first = stele_fault_count(t[0].dev) + 20;
	stele_fault_set_rules(t[0].dev, &rule, 1);
	loader = test_loader(sources, count, (struct stele_loader_opts){0});
	is_int(-EIO, test_load(loader, t, UINT64_MAX, &load),
	       "one of %u queues breaks", count);
	is_int(-EIO, test_load(loader, t, 1, &load), "again");
	is_uint(0, load.wrong, "what came before is right");
	before = processor_ms();
	usleep(300000);
	ok(processor_ms() - before < 150, "and the loader sleeps: %ju ms",
	   (uintmax_t)(processor_ms() - before));
	stele_loader_close(loader);
	stele_fault_set_rules(t[0].dev, NULL, 0);
	test_load_release(&load);
}

/*
 * A queue that breaks at its first read, before the opener has woken, too: that is
 * for the first batch to tell. An opener that takes it for its own failure waits
 * for a thread that does not end.
 */
static void test_broken_at_once(struct test_dataset *t)
{
	const struct stele_loader_source source = {.ds = t->ds};
	struct stele_fault_rule rule = {.kind = STELE_FAULT_BREAK,
					.ops = 1 << STELE_OP_READ};
	unsigned int wrong = 0;

	stele_fault_set_rules(t->dev, &rule, 1);
	for (unsigned int i = 0; i < OPENINGS; i++) {
		struct test_load load = {0};
		struct stele_loader *loader = test_loader(
			&source, 1, (struct stele_loader_opts){0});

		wrong += test_load(loader, t, UINT64_MAX, &load) != -EIO;
		stele_loader_close(loader);
		test_load_release(&load);
	}
	is_uint(0, wrong, "a queue that breaks at once: opens, and tells");
	stele_fault_set_rules(t->dev, NULL, 0);
}

int main(void)
{
	struct test_plan plans[2] = {{.samples = 90, .size_max = 5000},
				     {.samples = 60, .size_max = 20000}};
	struct test_dataset t[2];

	plan_lazy();
	alarm(PATIENCE_S);
	for (unsigned int i = 0; i < 2; i++)
		test_dataset_open(&t[i], &plans[i]);
	test_broken_at_once(t);
	test_broken(t, 1);
	test_broken(t, 2);
	test_blind(t, 1);
	test_blind(t, 2);
	for (unsigned int i = 0; i < 2; i++)
		test_dataset_close(&t[i]);
	return done();
}
