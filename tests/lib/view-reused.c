/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view-reused.c - space that is written anew while a view shows it
 *
 * A snapshot is deleted, its space given back and used for another one. Under a view of
 * the first, the samples are gone: all say so. On a disk that two machines share (two loop
 * devices over one file) that view keeps the old bytes in the page cache of its machine,
 * and they are what a new view of the second snapshot finds there: it has to read past
 * them.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/view/fresh.h"
#include "tests/fixture/edit.h"
#include "tests/device/loop.h"
#include "tests/tap.h"

#define SIZE  (UINT64_C(16) << 20)
#define COUNT 100u
#define THREADS 4u

static struct test_sample *samples[2]; /* of "old" and "new" */
static uint64_t places[2];	       /* where their segments are */
static struct stele_device *writer;

static void must(int err, const char *what)
{
	if (err)
		bail("%s: %s", what, strerror(-err));
}

static void commit(struct test_edit *t)
{
	must(stele_txn_publish(&t->edit, 1), "commit");
	test_edit_end(t);
}

static void publish(struct test_edit *t, unsigned int which, const char *name)
{
	uint64_t id;

	must(test_edit_segment(t, samples[which], COUNT, &id), "segment");
	must(test_edit_snapshot(t, name, &id, 1, NULL, 0), "snapshot");
	places[which] = stele_txn_segment(&t->edit, id)->offset;
	commit(t);
}

static void write_old(const char *target)
{
	struct test_edit t;

	must(stele_device_open_file(target, STELE_DEVICE_WRITE, NULL, NULL,
				    &writer), "open");
	must(test_edit_create(&t, writer, SIZE), "create");
	publish(&t, 0, "old");
}

static void delete_old(void)
{
	struct test_edit t;

	must(test_edit_load(&t, writer), "load");
	must(stele_txn_remove_snapshot(&t.edit, "old"), "remove");
	test_edit_collect(&t);
	commit(&t);
	must(test_edit_load(&t, writer), "load");
	commit(&t); /* the one after the next may have the space */
}

static void write_new(void)
{
	struct test_edit t;

	must(test_edit_load(&t, writer), "load");
	publish(&t, 1, "new");
	if (places[1] > places[0])
		bail("the space was not used again");
}

/* ---- views -------------------------------------------------------------------- */

static struct stele_dataset *open_one(const char *target, const char *name)
{
	struct stele_dataset *ds;
	char text[600];

	snprintf(text, sizeof(text), "%s@%s", target, name);
	must(stele_dataset_open(text, NULL, &ds), text);
	return ds;
}

static struct stele_view *open_view(struct stele_dataset *ds, uint32_t verify)
{
	struct stele_view *view;

	must(stele_view_open(ds, &STELE_OPTS(stele_view_opts, .verify = verify),
			     &view), "view");
	return view;
}

struct outcome {
	unsigned int right, wrong, gone, failed;
};

static bool is_right(const struct stele_sample *sample, unsigned int which)
{
	for (unsigned int i = 0; i < COUNT; i++) {
		const struct test_sample *wanted = &samples[which][i];

		if (sample->key_size == strlen(wanted->key) &&
		    !memcmp(sample->key, wanted->key, sample->key_size))
			return sample->size == wanted->size &&
			       !memcmp(sample->data, wanted->data, wanted->size);
	}
	return false;
}

/* Every sample is looked at when all have been asked for: each stays where it is. */
static struct outcome look(struct stele_view *view, unsigned int which)
{
	struct stele_sample all[COUNT];
	struct outcome out = {0};

	for (uint64_t id = 0; id < COUNT; id++)
		stele_view_sample(view, id, &all[id]);
	for (uint64_t id = 0; id < COUNT; id++) {
		if (all[id].status == -ESTALE)
			out.gone++;
		else if (all[id].status)
			out.failed++;
		else if (is_right(&all[id], which))
			out.right++;
		else
			out.wrong++;
	}
	return out;
}

static void shows(struct stele_view *view, unsigned int which,
		  struct outcome wanted, const char *what)
{
	struct outcome seen = look(view, which);

	if (!ok(!memcmp(&wanted, &seen, sizeof(seen)), "%s", what))
		diag("%u right, %u wrong, %u gone, %u failed", seen.right,
		     seen.wrong, seen.gone, seen.failed);
}

static void *look_new(void *view)
{
	struct outcome out = look(view, 1);

	return (void *)(uintptr_t)out.right;
}

/* To several threads at once. */
static void shows_all(struct stele_view *view, const char *what)
{
	pthread_t threads[THREADS];
	uintptr_t sum = 0;
	void *result;

	for (unsigned int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, look_new, view))
			bail("no thread");
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &result);
		sum += (uintptr_t)result;
	}
	is_uint(THREADS * COUNT, sum, "%s", what);
}

static const struct outcome right = {.right = COUNT}, gone = {.gone = COUNT};

/* ---- one machine ----------------------------------------------------------------- */

static void check_file(void)
{
	char path[512];
	struct stele_view *view, *digests;
	struct stele_dataset *ds;

	snprintf(path, sizeof(path), "%s", file_new("image", SIZE));
	write_old(path);
	ds = open_one(path, "old");
	view = open_view(ds, STELE_VERIFY_DEFAULT);
	digests = open_view(ds, STELE_VERIFY_DIGEST);
	shows(view, 0, right, "what was published");
	shows(digests, 0, right, "by digests");
	delete_old();
	shows(view, 0, right, "deleted, and not written anew");
	write_new();
	shows(view, 0, gone, "written anew: gone");
	shows(digests, 0, gone, "by digests, too");
	stele_view_close(digests);
	stele_view_close(view);
	stele_dataset_close(ds);
	stele_device_close(writer);
}

/* ---- two machines ---------------------------------------------------------------- */

static void check_new(struct stele_dataset *new)
{
	struct stele_view *careless = open_view(new, STELE_VERIFY_NONE);
	struct stele_view *view = open_view(new, STELE_VERIFY_DEFAULT);
	struct stele_view *digests = open_view(new, STELE_VERIFY_DIGEST);
	struct outcome seen = look(careless, 1);

	ok(seen.right < COUNT / 2, "shared: the page cache is old (%u of %u)",
	   COUNT - seen.right, COUNT);
	shows_all(view, "shared: a new view of what is there now");
	shows(view, 1, right, "shared: and again");
	shows_all(digests, "shared: by digests");
	stele_view_close(careless);
	stele_view_close(view);
	stele_view_close(digests);
}

static void check_shared(void)
{
	char here[LOOP_NODE_SIZE], there[LOOP_NODE_SIZE], file[512];
	struct stele_view *old_view, *view, *careless;
	struct stele_dataset *old, *new;

	snprintf(file, sizeof(file), "%s", file_new("disk", SIZE));
	if (!loop_usable() || !loop_attach(file, 512, here) ||
	    !loop_attach(file, 512, there)) {
		skip_block(7, "needs root and loop devices");
		return;
	}
	write_old(there);
	old = open_one(here, "old");
	old_view = open_view(old, STELE_VERIFY_DEFAULT);
	shows(old_view, 0, right, "shared: what was published");
	delete_old();
	write_new();
	new = open_one(here, "new");
	check_new(new);
	/* Opened while the old one keeps the cache as it is. */
	view = open_view(new, STELE_VERIFY_DEFAULT);
	careless = open_view(new, STELE_VERIFY_NONE);
	stele_view_close(old_view);
	shows(view, 1, right, "shared: when nobody keeps the old bytes");
	shows(careless, 1, right, "shared: they are dropped for all");
	stele_view_close(careless);
	stele_view_close(view);
	stele_dataset_close(new);
	stele_dataset_close(old);
	stele_device_close(writer);
}

static void check_limit(void)
{
	struct stele_sample sample = {.id = 7, .buffer = malloc(1)}, found;
	struct stele_fresh fresh = {0};

	is_int(-ENOBUFS,
	       stele_fresh_add(&fresh, &sample, STELE_FRESH_SIZE_MAX + 1),
	       "copies of a view are bounded");
	ok(sample.buffer, "what is not kept is the caller's");
	is_int(0, stele_fresh_add(&fresh, &sample, STELE_FRESH_SIZE_MAX),
	       "as much as may be");
	ok(!sample.buffer && stele_fresh_find(&fresh, 7, &found), "is kept");
	is_int(-ENOBUFS, stele_fresh_add(&fresh, &sample, 1), "and no more");
	ok(!stele_fresh_find(&fresh, 7 + STELE_FRESH_BUCKETS, &found),
	   "another one is not there");
	stele_fresh_release(&fresh);
}

int main(void)
{
	plan_lazy();
	check_limit();
	for (unsigned int i = 0; i < 2; i++)
		samples[i] = test_samples(COUNT, 20000 - i * 2000, i + 1);
	check_file();
	check_shared();
	return done();
}
