/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rbd-read.c - a snapshot on RBD, read as any other, and then taken away
 *
 * What is read is compared with the files that it was built from. Readers leave
 * neither watch nor lock, go on in a forked child, and when the RBD snapshot is
 * removed under them they say -ESTALE and never bring a wrong byte. Under pointers of a
 * fetched view it is SIGBUS.
 */
#include "tests/tap.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/device/device.h"
#include "tests/device/ceph.h"
#include "tests/device/loop.h"

#define SAMPLES	    60u
#define SAMPLE_SIZE 150000u

static unsigned char *contents[SAMPLES]; /* by the key's number */

/* A file image, brought into RBD as an operator would. */
static const char *make_snapshot(void)
{
	char path[4096], image[4096];
	const char *rbd = rbd_new(0);

	snprintf(path, sizeof(path), "%s/src", test_tmpdir());
	snprintf(image, sizeof(image), "%s/image", test_tmpdir());
	if (!command("mkdir %s", path))
		bail("no source");
	for (unsigned int i = 0; i < SAMPLES; i++) {
		FILE *file;

		contents[i] = malloc(SAMPLE_SIZE);
		for (unsigned int j = 0; j < SAMPLE_SIZE; j++)
			contents[i][j] = (unsigned char)(random() >> 8);
		snprintf(path, sizeof(path), "%s/src/%u", test_tmpdir(), i);
		file = fopen(path, "w");
		if (!file || fwrite(contents[i], SAMPLE_SIZE, 1, file) != 1 ||
		    fclose(file))
			bail("cannot write '%s'", path);
	}
	snprintf(path, sizeof(path), "%s/src", test_tmpdir());
	if (stele_build(path, image, NULL, NULL) ||
	    !ceph_command("rbd", "import --no-progress %s %s", image,
			  rbd_spec(rbd)) ||
	    !ceph_command("rbd", "snap create --no-progress %s@v1",
			  rbd_spec(rbd)) ||
	    !ceph_command("rbd", "snap protect %s@v1", rbd_spec(rbd)))
		bail("no snapshot");
	return rbd;
}

static bool is_right(const struct stele_sample *sample)
{
	char key[16];
	unsigned int number;

	if (sample->size != SAMPLE_SIZE || sample->key_size >= sizeof(key))
		return false;
	memcpy(key, sample->key, sample->key_size);
	key[sample->key_size] = '\0';
	number = (unsigned int)atoi(key);
	return number < SAMPLES &&
	       !memcmp(sample->data, contents[number], SAMPLE_SIZE);
}

struct counts {
	unsigned int right, wrong, stale, other;
};

static void count_sample(struct counts *counts, const struct stele_sample *s)
{
	counts->right += !s->status && is_right(s);
	counts->wrong += !s->status && !is_right(s);
	counts->stale += s->status == -ESTALE;
	counts->other += s->status && s->status != -ESTALE;
}

static struct counts read_all(struct stele_reader *reader)
{
	struct counts counts = {0};
	struct stele_sample sample;
	uint64_t next = 0;

	while (next < SAMPLES || stele_reader_in_flight(reader)) {
		if (next < SAMPLES)
			next += (uint64_t)stele_reader_submit(reader, &next,
							      NULL, 1);
		if (stele_reader_collect(reader, &sample, 1,
					 next == SAMPLES) == 1) {
			count_sample(&counts, &sample);
			stele_reader_release(reader, &sample);
		}
	}
	return counts;
}

static struct counts read_each(struct stele_dataset *ds)
{
	struct counts counts = {0};
	struct stele_sample sample;

	for (uint64_t id = 0; id < SAMPLES; id++) {
		stele_dataset_read(ds, id, &sample);
		count_sample(&counts, &sample);
		stele_sample_release(&sample);
	}
	return counts;
}

/* ---- a view ------------------------------------------------------------------ */

/* Room for two of them. */
#define VIEW_MEMORY (3 * (uint64_t)SAMPLE_SIZE)

static sigjmp_buf back;

static void on_bus(int number)
{
	siglongjmp(back, number);
}

/* NULL: the kernel forbids it. */
static struct stele_view *open_view(struct stele_dataset *ds)
{
	struct stele_view *view = NULL;
	int err = stele_view_open(ds, &STELE_OPTS(stele_view_opts,
						  .flags = STELE_VIEW_FETCH,
						  .memory_size = VIEW_MEMORY), &view);

	if (err && err != -EPERM && err != -EOPNOTSUPP)
		bail("no view: %s", stele_errmsg());
	return view;
}

static struct counts ask_all(struct stele_view *view, struct stele_sample *all)
{
	struct counts counts = {0};
	struct stele_sample sample;

	for (uint64_t id = 0; id < SAMPLES; id++) {
		stele_view_sample(view, id, &sample);
		count_sample(&counts, &sample);
		if (!sample.status)
			all[id] = sample;
	}
	return counts;
}

/* SIGBUS counts as stale. */
static struct counts touch_all(const struct stele_sample *all)
{
	static struct counts counts; /* jumped over */
	static uint64_t id;

	counts = (struct counts){0};
	signal(SIGBUS, on_bus);
	for (id = 0; id < SAMPLES; id++) {
		if (sigsetjmp(back, 1))
			counts.stale++;
		else
			count_sample(&counts, &all[id]);
	}
	signal(SIGBUS, SIG_DFL);
	return counts;
}

static void check_view(struct stele_view *view, struct stele_sample *all)
{
	const uint64_t ids[] = {7, 3};
	struct counts counts = ask_all(view, all);

	is_uint(SAMPLES, counts.right, "a fetched view: all right");
	counts = touch_all(all);
	is_uint(SAMPLES, counts.right, "and when they are touched again");
	is_int(0, stele_view_prefetch(view, ids, 2), "prefetch");
}

/* What is in memory stays right; the rest is gone. */
static void check_view_removed(struct stele_view *view, struct stele_sample *all)
{
	struct counts counts = touch_all(all);
	const uint64_t ids[] = {20, 21, 22, 23};

	is_uint(0, counts.wrong + counts.other, "a view removed: no wrong byte");
	ok(counts.stale > SAMPLES / 2, "SIGBUS: %u", counts.stale);
	counts = ask_all(view, all);
	is_uint(0, counts.wrong + counts.other, "nor when asked for");
	ok(counts.stale > SAMPLES / 2, "stale: %u", counts.stale);
	is_int(-ESTALE, stele_view_prefetch(view, ids, 4), "prefetch says so");
	stele_view_close(view);
}

static bool no_trace(const char *rbd)
{
	char spec[4096];

	snprintf(spec, sizeof(spec), "%s", rbd_spec(rbd));
	return ceph_command("rbd", "status %s | grep -q 'Watchers: none'",
			    spec) &&
	       ceph_command("rbd", "lock ls %s | wc -l | grep -qx 0", spec);
}

/* ThreadSanitizer ends a child that starts threads, as librados does. */
#ifdef __SANITIZE_THREAD__
#define CHILD_CONNECTS 0
#else
#define CHILD_CONNECTS 1
#endif

static void check_child(struct stele_dataset *ds)
{
	struct stele_reader *reader;
	struct counts counts;
	int status;
	pid_t pid;

	if (!CHILD_CONNECTS) {
		skip_block(1, "needs a child that may start threads");
		return;
	}
	pid = fork();
	if (pid < 0)
		sysbail("fork");
	if (!pid) {
		counts = read_each(ds);
		if (counts.right != SAMPLES ||
		    stele_reader_open(ds, NULL, &reader))
			_exit(1);
		counts = read_all(reader);
		stele_reader_close(reader);
		stele_dataset_close(ds);
		_exit(counts.right == SAMPLES ? 0 : 2);
	}
	if (waitpid(pid, &status, 0) != pid)
		sysbail("waitpid");
	is_int(0, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
	       "a child reads all, too, by one-shot and reader");
}

static void set_protected(const char *rbd, const char *verb)
{
	char spec[4096];

	snprintf(spec, sizeof(spec), "%s", rbd_spec(rbd));
	if (!ceph_command("rbd", "snap %s %s@v1", verb, spec))
		bail("cannot %s the snapshot", verb);
}

/* Without protection nobody begins: not in a child, nor by a connection more. */
static void check_unprotected(const char *rbd, const char *at)
{
	struct stele_reader *reader, *second;
	struct stele_dataset *ds;
	struct stele_sample sample;
	char target[4096 + 32];
	int status, rc;
	pid_t pid;

	snprintf(target, sizeof(target), "%s&connections=2", at);
	if (stele_dataset_open(target, NULL, &ds) ||
	    stele_reader_open(ds, NULL, &reader))
		bail("cannot open '%s'", target);
	set_protected(rbd, "unprotect");
	is_int(-EPERM, stele_reader_open(ds, NULL, &second),
	       "unprotected meanwhile: no further connection");
	pid = CHILD_CONNECTS ? fork() : -1;
	if (CHILD_CONNECTS && pid < 0)
		sysbail("fork");
	if (!pid) {
		rc = stele_dataset_read(ds, 0, &sample);
		_exit(rc == -EPERM ? 0 : rc ? 2 : 1);
	}
	if (!CHILD_CONNECTS)
		skip_block(1, "needs a child that may start threads");
	else if (waitpid(pid, &status, 0) != pid)
		sysbail("waitpid");
	else
		is_int(0, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
		       "nor does a child read");
	set_protected(rbd, "protect");
	is_int(0, stele_reader_open(ds, NULL, &second), "protected again: it is");
	stele_reader_close(second);
	stele_reader_close(reader);
	stele_dataset_close(ds);
}

/*
 * In the head each sample gets other bytes within, which only a checksum tells:
 * that is what librbd brings once the snapshot is removed.
 */
static void change_head(const char *rbd, const struct stele_dataset *ds)
{
	struct stele_device *dev;
	struct stele_extent extent = {.size = sizeof(extent)};
	char *junk;

	if (stele_device_open(rbd, NULL, STELE_DEVICE_WRITE, NULL, NULL, &dev))
		bail("cannot write to '%s'", rbd);
	junk = stele_device_alloc(dev, 4096);
	memset(junk, 0x5a, 4096);
	for (uint64_t id = 0; id < SAMPLES; id++) {
		stele_dataset_locate(ds, id, &extent);
		if (stele_device_write(dev, junk,
				       (extent.offset / 4096 + 2) * 4096, 4096))
			bail("cannot write to '%s'", rbd);
	}
	if (stele_device_flush(dev))
		bail("cannot flush '%s'", rbd);
	stele_device_close(dev);
	free(junk);
}

static void remove_snapshot(const char *rbd)
{
	char spec[4096];

	snprintf(spec, sizeof(spec), "%s", rbd_spec(rbd));
	if (!ceph_command("rbd", "snap unprotect %s@v1", spec) ||
	    !ceph_command("rbd", "snap rm --no-progress %s@v1", spec))
		bail("cannot remove the snapshot");
}

static void check_removed(struct stele_dataset *ds,
			  struct stele_reader *reader, const char *what)
{
	struct counts counts = read_all(reader);

	is_uint(0, counts.wrong, "%s: no wrong sample of a reader", what);
	is_uint(0, counts.other, "%s: nothing but stale", what);
	is_uint(SAMPLES, counts.stale + counts.right, "%s: %u are", what,
		counts.stale);
	ok(counts.stale > SAMPLES / 2, "%s: most of them", what);
	counts = read_each(ds);
	is_uint(0, counts.wrong, "%s: nor by one-shot", what);
	is_uint(0, counts.other, "%s: stale as well", what);
}

int main(void)
{
	struct stele_dataset *ds, *unchecked, *late;
	struct stele_reader *reader, *careless;
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct stele_view *view;
	struct stele_sample seen[SAMPLES];
	struct counts counts;
	const char *rbd;
	char at[4096];

	requires_ceph();
	plan_lazy();
	rbd = make_snapshot();
	snprintf(at, sizeof(at), "%s&user=reader", rbd_at(rbd, "v1"));
	is_int(0, stele_dataset_open(at, NULL, &ds), "opens, read-only caps");
	stele_dataset_info(ds, &info);
	is_string("rbd", info.backend, "backend");
	is_uint(4 << 20, info.transfer_max, "an object in one read");
	is_int(0, stele_reader_open(ds, NULL, &reader), "a reader");
	counts = read_all(reader);
	is_uint(SAMPLES, counts.right, "all right");
	ok(no_trace(rbd), "no watch, no lock while it is open");
	check_child(ds);
	counts = read_all(reader);
	is_uint(SAMPLES, counts.right, "and the parent goes on");
	check_unprotected(rbd, at);
	is_int(-EOPNOTSUPP, stele_view_open(ds, NULL, &view),
	       "no view by the page cache");
	view = open_view(ds);
	if (view)
		check_view(view, seen);
	else
		skip_block(8, "needs userfaultfd");
	is_int(0, stele_dataset_open(
			  at,
			  &STELE_OPTS(stele_open_opts,
				      .verify = STELE_VERIFY_NONE),
			  &unchecked), "opens without checks");
	is_int(0, stele_reader_open(unchecked,
				    &STELE_OPTS(stele_reader_opts,
						.verify = STELE_VERIFY_NONE),
				    &careless), "a reader without checks");
	remove_snapshot(rbd);
	change_head(rbd, ds);
	check_removed(ds, reader, "removed");
	check_removed(unchecked, careless, "without checks");
	if (view)
		check_view_removed(view, seen);
	is_int(-ENOENT, stele_dataset_open(at, NULL, &late), "opens no more");
	stele_reader_close(careless);
	stele_reader_close(reader);
	stele_dataset_close(unchecked);
	stele_dataset_close(ds);
	ok(no_trace(rbd), "nothing is left");
	for (unsigned int i = 0; i < SAMPLES; i++)
		free(contents[i]);
	return done();
}
