/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build-faults.c - a device that fails at any point, and a caller that stops
 *
 * After each failure the target is what it was, an unfinished image, or (when
 * only the acknowledgement was lost) the whole new one. Nothing in between.
 */
#include "lib/image/snapshot.h"
#include "lib/ops/build.h"
#include "tests/fixture/built.h"
#include "tests/device/fault.h"
#include "tests/device/memory.h"
#include "tests/fixture/fake.h"
#include "tests/fixture/rest.h"
#include "tests/tap.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define DEVICE_SIZE (UINT64_C(16) << 20)

static struct stele_build_opts options(unsigned int jobs)
{
	return (struct stele_build_opts){.size = sizeof(struct stele_build_opts),
					 .jobs = jobs};
}

/* The device inside is closed with the outer one. */
static struct stele_device *faulty(const struct stele_fault_rule *rule)
{
	struct stele_device *dev;

	if (stele_device_open_memory(DEVICE_SIZE, 512, &dev) < 0 ||
	    stele_device_open_fault(dev, rule, rule ? 1 : 0, &dev) < 0)
		bail("no fault device");
	return dev;
}

/* 1: none; 2: unfinished; 3: whole; 0: anything else. */
static int state_of(struct stele_device *dev, const struct fake *fake)
{
	struct stele_image image;
	struct stele_snapshot snapshot;
	int ret, state = 0;

	stele_fault_set_rules(dev, NULL, 0);
	ret = stele_image_load(dev, NULL, &image);
	if (ret == -EMEDIUMTYPE)
		return 1;
	if (ret == -EINPROGRESS)
		return 2;
	if (ret < 0)
		return 0;
	if (stele_snapshot_load(&image, 0, &snapshot) == 0) {
		state = snapshot.sample_count == fake->count ? 3 : 0;
		stele_snapshot_release(&snapshot);
	}
	image.dev = NULL;
	stele_image_release(&image);
	return state;
}

/* Of the mirror, which a catalog can do without, and which has two places? */
static bool is_mirror(const struct stele_fault_entry *log, size_t at)
{
	const struct stele_fault_entry *entry;

	while (log[at].op == STELE_OP_FLUSH && at > 0)
		at--;
	entry = &log[at];
	return entry->offset >= STELE_CATALOG_MIRRORS_OFFSET &&
	       entry->offset < STELE_DATA_OFFSET;
}

/* Was the rule applied? Rules that have not come to it yet hit nothing. */
static bool was_hit(struct stele_device *dev)
{
	size_t count;
	const struct stele_fault_entry *log = stele_fault_log(dev, &count);

	for (size_t i = 0; i < count; i++)
		if (log[i].fault == STELE_FAULT_FAIL && !is_mirror(log, i))
			return true;
	return false;
}

static void test_every_operation(enum stele_op op, int error, const char *what,
				 unsigned int jobs)
{
	struct stele_build_opts opts = options(jobs);
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FAIL,
					.ops = 1u << op,
					.count = 1,
					.error = error};
	unsigned int states[4] = {0}, wrong = 0, leaks = 0, forgiven = 0, n;
	bool ended = false;
	struct stele_build_report report = {.size = sizeof(report)};
	struct fake fake;

	fake_init(&fake);
	fake_add_many(&fake, "a", 700, 3000);
	fake_add(&fake, "b/large", 3 << 20);
	for (n = 0; !ended && n < 2000; n++) {
		struct stele_device *dev;
		int ret;

		rule.first = n;
		dev = faulty(&rule);
		ret = stele_build_on(dev, &fake.source, "v1", &opts, &report);
		ended = !ret && stele_fault_count(dev) <= n;
		wrong += ret && ret != -error;
		forgiven += !ret && was_hit(dev);
		leaks += fake.opened;
		if (ret)
			states[state_of(dev, &fake)]++;
		stele_device_close(dev);
	}
	diag("%s, %u jobs: %u operations; %u untouched, %u unfinished, %u whole",
	     what, jobs, n, states[1], states[2], states[3]);
	ok(n < 2000, "%s: the last one is reached", what);
	is_uint(0, wrong, "%s: the error comes back", what);
	/*
	 * One copy of an old superblock need not be readable; the first is hit
	 * twice, since a flush comes before. Nor need block 0, after the commit.
	 */
	ok(forgiven <= (op == STELE_OP_READ ? 6 : 0),
	   "%s: none is overlooked", what);
	is_uint(0, leaks, "%s: files are closed", what);
	is_uint(0, states[0], "%s: the target is never in between", what);
	ok(op == STELE_OP_READ || states[2] > 0, "%s: often unfinished", what);
	fake_release(&fake);
}

/* From one operation on nothing works: nothing may hang or be freed early. */
static void test_dead(void)
{
	struct stele_build_opts opts = options(4);
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FAIL,
					.error = ENXIO};
	struct stele_build_report report = {.size = sizeof(report)};
	unsigned int wrong = 0;
	struct fake fake;

	fake_init(&fake);
	fake_add_many(&fake, "a", 700, 3000);
	fake_add(&fake, "b/large", 3 << 20);
	for (rule.first = 0; rule.first < 30; rule.first++) {
		struct stele_device *dev = faulty(&rule);

		wrong += stele_build_on(dev, &fake.source, "v1", &opts,
					&report) != -ENXIO;
		stele_device_close(dev);
	}
	is_uint(0, wrong, "a device that dies");
	is_uint(0, fake.opened, "files are closed");
	fake_release(&fake);
}

/* Completions that come late and in another order change nothing. */
static void test_delays(void)
{
	struct stele_build_opts opts = options(3);
	struct stele_fault_rule rule = {.kind = STELE_FAULT_DELAY,
					.ops = 1u << STELE_OP_WRITE,
					.arg = 5};
	struct stele_device *dev = faulty(&rule);
	struct stele_build_report report = {.size = sizeof(report)};
	struct fake fake;

	fake_init(&fake);
	fake_add_many(&fake, "a", 700, 3000);
	fake_add(&fake, "b/large", 5 << 20);
	is_int(0, stele_build_on(dev, &fake.source, "v1", &opts, &report),
	       "late completions");
	stele_fault_set_rules(dev, NULL, 0);
	built_check(dev, &fake, NULL, "late completions");
	stele_device_close(dev);
	fake_release(&fake);
}

/* Transfers that come back short are gone on with. */
static void test_short(void)
{
	struct stele_build_opts opts = options(3);
	struct stele_fault_rule rule = {.kind = STELE_FAULT_SHORTEN,
					.ops = 1u << STELE_OP_WRITE,
					.count = 20,
					.arg = 512};
	struct stele_device *dev = faulty(&rule);
	struct stele_build_report report = {.size = sizeof(report)};
	struct fake fake;

	fake_init(&fake);
	fake_add_many(&fake, "a", 700, 3000);
	is_int(0, stele_build_on(dev, &fake.source, "v1", &opts, &report),
	       "short transfers");
	stele_fault_set_rules(dev, NULL, 0);
	built_check(dev, &fake, NULL, "short transfers");
	stele_device_close(dev);
	fake_release(&fake);
}

/* ---- cancel ------------------------------------------------------------------ */

struct stopping {
	enum stele_phase phase;
	unsigned int calls;
	uint32_t last; /* phase */
	bool whole;
};

static int on_progress(void *user, const struct stele_progress *progress)
{
	struct stopping *stopping = user;

	stopping->calls++;
	stopping->last = progress->phase;
	if (progress->samples_total &&
	    progress->samples_done > progress->samples_total)
		stopping->whole = false;
	return progress->phase == stopping->phase;
}

static void test_cancel(enum stele_phase phase, int wanted)
{
	struct stopping stopping = {.phase = phase, .whole = true};
	struct stele_build_opts opts = options(2);
	struct stele_device *dev = faulty(NULL);
	struct stele_build_report report = {.size = sizeof(report)};
	struct fake fake;

	opts.progress = on_progress;
	opts.progress_user = &stopping;
	fake_init(&fake);
	fake_add_many(&fake, "a", 300, 3000);
	is_int(-ECANCELED,
	       stele_build_on(dev, &fake.source, "v1", &opts, &report),
	       "stopped in phase %d", phase);
	is_uint(phase, stopping.last, "no phase after it");
	ok(stopping.whole, "never more done than there is");
	is_int(wanted, state_of(dev, &fake), "state of the target");
	stele_device_close(dev);
	fake_release(&fake);
}

/* The source holds its first file back until the build was told to stop. */
struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stopped;
	unsigned int calls; /* of the progress, while it writes */
};

static void wait_for_stop(void *user)
{
	struct gate *gate = user;

	pthread_mutex_lock(&gate->lock);
	while (!gate->stopped)
		pthread_cond_wait(&gate->changed, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
	/* Its callback has yet to return; then it waits for us. */
	test_others_rest();
}

/* The first call of a phase comes before its threads. */
static int stop_later(void *user, const struct stele_progress *progress)
{
	struct gate *gate = user;

	if (progress->phase != STELE_PHASE_WRITE || !gate->calls++)
		return 0;
	pthread_mutex_lock(&gate->lock);
	gate->stopped = true;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
	return 1;
}

static void test_cancel_midway(void)
{
	struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER,
			    .changed = PTHREAD_COND_INITIALIZER};
	struct stele_build_opts opts = options(1);
	struct stele_device *dev = faulty(NULL);
	struct stele_build_report report = {.size = sizeof(report)};
	struct fake fake;

	opts.progress = stop_later;
	opts.progress_user = &gate;
	fake_init(&fake);
	fake_add_many(&fake, "a", 300, 3000);
	fake.on_open = wait_for_stop;
	fake.on_open_user = &gate;
	is_int(-ECANCELED,
	       stele_build_on(dev, &fake.source, "v1", &opts, &report),
	       "stopped while threads work");
	is_uint(1, fake.opened_total, "they begin no other file");
	is_uint(0, fake.opened, "files are closed");
	is_int(2, state_of(dev, &fake), "an unfinished image");
	stele_device_close(dev);
	fake_release(&fake);
}

int main(void)
{
	plan_lazy();
	test_every_operation(STELE_OP_WRITE, EIO, "writes", 1);
	test_every_operation(STELE_OP_WRITE, ENOSPC, "writes", 3);
	test_every_operation(STELE_OP_READ, EIO, "reads", 2);
	test_every_operation(STELE_OP_FLUSH, EIO, "flushes", 2);
	test_dead();
	test_delays();
	test_short();
	test_cancel(STELE_PHASE_SCAN, 1);
	test_cancel(STELE_PHASE_WRITE, 2);
	test_cancel(STELE_PHASE_SECTIONS, 2);
	test_cancel(STELE_PHASE_COMMIT, 2);
	test_cancel_midway();
	return done();
}
