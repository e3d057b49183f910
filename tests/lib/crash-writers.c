/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash-writers.c - two writers that no lock keeps apart, stopped anywhere
 *
 * Each writer is a thread on a device of its own over the same memory, and waits for
 * its turn before each operation. So one stops after any number of operations,
 * the other one after any number of its own, and then both go on, or never do.
 * Whatever happens: what was acknowledged is there, byte for byte, the image is
 * sound, what was there before is there still, and the next writer finds nothing in
 * its way.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/snapshot.h"
#include "lib/txn/intent.h"
#include "lib/verify/verify.h"
#include "tests/fixture/edit.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#define IMAGE_SIZE (UINT64_C(0x200000) + 60 * 4096)
#define FOREVER	   UINT32_MAX
#define TOLD_MAX   8u

struct writer {
	struct stele_device base; /* first: what it writes through */
	pthread_t thread;
	unsigned int machine; /* and, times ten, how often it was started */
	const char *name; /* of the snapshot that it adds */
	unsigned int first_sample;
	unsigned int allowed; /* operations, before it stops; under lock */
	unsigned int done;
	bool writes[512]; /* is that operation one? */
	bool stopped, started, ended;
	bool dead; /* whatever it does has no effect any more */
	int result;
	struct test_log log;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static struct stele_device *disk;
static uint8_t *base; /* bytes of the image before */
static struct test_sample *samples;
static uint64_t runs, bad, acknowledged, refused, late;

/* ---- a device that waits for its turn ---------------------------------------- */

static ssize_t turn_transfer(struct stele_device *dev, enum stele_op op,
			     void *data, uint64_t offset, size_t size)
{
	struct writer *w = (struct writer *)dev;
	int ret = -EIO;

	pthread_mutex_lock(&lock);
	while (!w->allowed && !w->dead) {
		w->stopped = true;
		pthread_cond_broadcast(&turn);
		pthread_cond_wait(&turn, &lock);
	}
	w->stopped = false;
	if (w->allowed != FOREVER && w->allowed)
		w->allowed--;
	if (w->done < sizeof(w->writes))
		w->writes[w->done] = op == STELE_OP_WRITE;
	w->done++;
	pthread_mutex_unlock(&lock);
	if (!w->dead && op == STELE_OP_READ)
		ret = stele_device_read(disk, data, offset, size);
	else if (!w->dead && op == STELE_OP_WRITE)
		ret = stele_device_write(disk, data, offset, size);
	else if (!w->dead)
		ret = 0;
	return ret ? ret : (ssize_t)size;
}

static int turn_size(struct stele_device *dev, uint64_t *size)
{
	(void)dev;
	return stele_device_size(disk, size);
}

static int turn_queue(struct stele_device *dev, unsigned int depth, void *arena,
		      size_t arena_size, struct stele_queue **queue)
{
	(void)dev, (void)depth, (void)arena, (void)arena_size, (void)queue;
	return -EOPNOTSUPP;
}

static void turn_close(struct stele_device *dev)
{
	(void)dev;
}

static const struct stele_device_ops turn_ops = {
	.name = "turn",
	.transfer = turn_transfer,
	.size = turn_size,
	.queue_open = turn_queue,
	.close = turn_close,
};

/* ---- writers -------------------------------------------------------------------- */

/* A segment, and a snapshot of it and of what was there; a spare one goes. */
static int change(struct writer *w, struct test_edit *t)
{
	const struct stele_txn_snapshot *last =
		stele_txn_find(&t->edit, NULL);
	uint64_t ids[2];
	int ret;

	ids[0] = last->refs[last->info.ref_count - 1].segment_id;
	for (unsigned int i = 0; i < t->edit.snapshot_count; i++)
		if (!strncmp(t->edit.snapshots[i].info.name, "spare", 5))
			stele_txn_remove_snapshot(&t->edit,
						   t->edit.snapshots[i].info.name);
	ret = test_edit_segment(t, samples + w->first_sample, 3, &ids[1]);
	if (ret == 0)
		ret = test_edit_snapshot(t, w->name, ids, 2,
					 (const uint64_t[]){1}, 1);
	test_edit_collect(t);
	return ret ? ret : stele_txn_publish(&t->edit, 1700000001);
}

static void *write_all(void *user)
{
	struct writer *w = user;
	struct test_edit t = {.piece = 4096};
	int ret;

	stele_intent_pose(w->machine % 10, w->machine / 10);
	test_log_init(&w->log);
	ret = stele_image_load(&w->base, &w->log.log, &t.image);
	if (ret == 0)
		ret = stele_image_announce(&t.image);
	if (ret == 0)
		ret = stele_txn_attach(&t.image, &t.edit);
	if (ret == 0)
		ret = change(w, &t);
	w->result = ret;
	if (t.edit.image)
		stele_txn_release(&t.edit);
	stele_intent_end(&w->base);
	t.image.dev = NULL;
	stele_image_release(&t.image);
	pthread_mutex_lock(&lock);
	w->ended = true;
	pthread_cond_broadcast(&turn);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void writer_init(struct writer *w, unsigned int machine, const char *name)
{
	memset(w, 0, sizeof(*w));
	w->machine = machine;
	w->name = name;
	w->first_sample = 3 * (unsigned int)(name[0] - 'a' + 2);
	w->base.ops = &turn_ops;
	w->base.limits = disk->limits;
	w->base.writable = true;
	w->base.fd = -1;
	w->result = -EINPROGRESS;
}

/* So many operations, and until it would do the next one. */
static void go(struct writer *w, unsigned int operations)
{
	pthread_mutex_lock(&lock);
	w->allowed = operations;
	w->stopped = false;
	pthread_cond_broadcast(&turn);
	if (!w->started &&
	    pthread_create(&w->thread, NULL, write_all, w))
		bail("no thread");
	w->started = true;
	while (!w->ended && !w->stopped)
		pthread_cond_wait(&turn, &lock);
	pthread_mutex_unlock(&lock);
}

/* To its end; or it dies where it is. */
static void end(struct writer *w, bool dies)
{
	if (!w->started)
		return;
	pthread_mutex_lock(&lock);
	w->dead = dies;
	pthread_mutex_unlock(&lock);
	go(w, FOREVER);
	pthread_join(w->thread, NULL);
}

/* ---- judging ---------------------------------------------------------------------- */

static bool holds(struct stele_image *image, const char *name)
{
	struct stele_snapshot snapshot;
	uint32_t index;

	if (stele_snapshot_find(image, name, NULL, &index) ||
	    stele_snapshot_load(image, index, &snapshot))
		return false;
	stele_snapshot_release(&snapshot);
	return true;
}

/* Of the first few. */
static void tell(void *user, const struct stele_damage *damage)
{
	(void)user;
	if (damage->error && bad < TOLD_MAX)
		diag("%s at %" PRIu64 ": %s", damage->what, damage->offset,
		     damage->detail);
}

static bool is_good(const struct writer *w, unsigned int count, bool notes)
{
	const struct stele_verify_opts opts = {.jobs = 1, .damage = tell};
	struct stele_verify_report report = {.size = sizeof(report)};
	struct stele_image image;
	bool good;

	if (stele_image_load(disk, NULL, &image))
		return false;
	good = holds(&image, "base");
	for (unsigned int i = 0; i < count; i++)
		if (w[i].started && !w[i].result)
			good = good && holds(&image, w[i].name);
	good = good && stele_verify_image(&image, -1, &opts, &report) == 0 &&
	       (notes || !report.notes);
	image.dev = NULL;
	stele_image_release(&image);
	return good;
}

/* Whoever was replaced, and has published nonetheless, says that he may have. */
static bool is_said(struct writer *w, unsigned int count)
{
	struct stele_image image;
	bool good = true;

	if (stele_image_load(disk, NULL, &image))
		return false;
	for (unsigned int i = 0; i < count; i++) {
		if (!w[i].started || w[i].dead || w[i].result != -ESTALE ||
		    !holds(&image, w[i].name))
			continue;
		late++;
		good = good && test_log_has(&w[i].log, "may have taken effect nonetheless");
	}
	image.dev = NULL;
	stele_image_release(&image);
	return good;
}

/* EIO: a late superblock over one's own, before that was read back. */
static bool has_failed_well(const struct writer *w)
{
	return !w->started || w->dead || !w->result || w->result == -ESTALE ||
	       w->result == -EBUSY || w->result == -EIO;
}

static void judge(struct writer *w, unsigned int count, const char *what,
		  unsigned int i, unsigned int j)
{
	struct writer next;
	bool good = is_good(w, count, true) && is_said(w, count), after;

	for (unsigned int k = 0; k < count; k++) {
		good = good && has_failed_well(&w[k]);
		acknowledged += w[k].started && !w[k].result;
		refused += w[k].started && w[k].result == -ESTALE;
	}
	writer_init(&next, 9, "h");
	go(&next, FOREVER);
	pthread_join(next.thread, NULL);
	after = next.result == 0 && is_good(w, count, false) &&
		is_good(&next, 1, false);
	runs++;
	if (!(good && after) && bad++ < TOLD_MAX)
		diag("%s: stopped after %u and %u: %d, %d, then %d: %s", what,
		     i, j, w[0].result, w[1].result, next.result,
		     good ? "the next one" : "they");
}

static void reset(void)
{
	memcpy(stele_device_memory(disk), base, IMAGE_SIZE);
}

/* ---- schedules ----------------------------------------------------------------------- */

enum then { BOTH_GO_ON, FIRST_DIES, SECOND_DIES };

/* The first does i, the second j, then the first goes on, then the second. */
static void run(const unsigned int machine[2], unsigned int i, unsigned int j,
		enum then then, const char *what)
{
	struct writer w[2];

	reset();
	writer_init(&w[0], machine[0], "a");
	writer_init(&w[1], machine[1], "b");
	go(&w[0], i);
	go(&w[1], j);
	end(&w[0], then == FIRST_DIES);
	end(&w[1], then == SECOND_DIES);
	judge(w, 2, what, i, j);
}

/* One stops, two others come and go, and it goes on. */
static void run_three(unsigned int i, const char *what)
{
	struct writer w[3];

	reset();
	for (unsigned int k = 0; k < 3; k++)
		writer_init(&w[k], k + 1, (const char *[]){"a", "b", "c"}[k]);
	go(&w[0], i);
	go(&w[1], FOREVER);
	pthread_join(w[1].thread, NULL);
	go(&w[2], FOREVER);
	pthread_join(w[2].thread, NULL);
	end(&w[0], false);
	judge(w, 3, what, i, 0);
}

static void report(const char *name)
{
	is_uint(0, bad, "%s: all of %" PRIu64 " schedules end well", name, runs);
	ok(acknowledged >= runs / 4, "%s: %" PRIu64 " writers are "
	   "acknowledged, %" PRIu64 " late", name, acknowledged, refused);
	runs = bad = acknowledged = refused = 0;
}

static void explore(const char *name, unsigned int first, unsigned int second,
		    enum then then)
{
	const unsigned int machine[] = {first, second};
	struct writer alone;

	reset();
	writer_init(&alone, 1, "a");
	go(&alone, FOREVER);
	pthread_join(alone.thread, NULL);
	is_int(0, alone.result, "%s: a writer of %u operations", name,
	       alone.done);
	for (unsigned int i = 0; i <= alone.done; i++)
		for (unsigned int j = 0; j <= alone.done; j++)
			if (j == alone.done || alone.writes[j] ||
			    (j && alone.writes[j - 1]))
				run(machine, i, j == alone.done ? FOREVER : j,
				    then, name);
	report(name);
	for (unsigned int i = 0; first && !then && i <= alone.done; i++)
		run_three(i, "three");
	if (first && !then)
		report("three writers");
}

static void make_base(void)
{
	struct test_edit t;
	uint64_t id;

	disk = test_memory(IMAGE_SIZE, 512, 0);
	if (test_edit_create(&t, disk, IMAGE_SIZE) ||
	    test_edit_segment(&t, samples, 3, &id) ||
	    test_edit_snapshot(&t, "spare", &id, 1, NULL, 0) ||
	    stele_txn_publish(&t.edit, 1700000000) ||
	    test_edit_segment(&t, samples + 3, 3, &id) ||
	    test_edit_snapshot(&t, "base", &id, 1, NULL, 0) ||
	    stele_txn_publish(&t.edit, 1700000000))
		bail("no image");
	test_edit_end(&t);
	base = malloc(IMAGE_SIZE);
	if (!base)
		bail("no memory");
	memcpy(base, stele_device_memory(disk), IMAGE_SIZE);
}

int main(void)
{
	plan_lazy();
	samples = test_samples(36, 300, 77);
	make_base();
	explore("two machines", 1, 2, BOTH_GO_ON);
	explore("the first one dies", 1, 2, FIRST_DIES);
	explore("the second one dies", 1, 2, SECOND_DIES);
	explore("the machine is started again", 1, 11, FIRST_DIES);
	explore("one process", 0, 0, BOTH_GO_ON);
	ok(late > 20, "%" PRIu64 " of those that were replaced have published", late);
	free(base);
	free(samples);
	stele_device_close(disk);
	return done();
}
