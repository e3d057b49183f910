/* SPDX-License-Identifier: Apache-2.0 */
/*
 * readers-undisturbed.c - an image changes all the while it is read
 *
 * Threads read the snapshot "keep" on a file: some hold it open, some open it
 * anew each time. Meanwhile segments are added, snapshots are created, renamed
 * and deleted, space is freed, discarded and written over many times. Any wrong
 * byte and any error is a failure.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/image/digest.h"
#include "lib/txn/txn.h"
#include "tests/fixture/change.h"
#include "tests/fixture/dataset.h"
#include "tests/fixture/image.h"
#include "tests/tap.h"

enum { SAMPLES = 300, HOLDERS = 2, OPENERS = 2, AT_ONCE = 16 };
enum { ROUNDS = 120, READS_MIN = 1000, OPENS_MIN = 20 }; /* at least */

#define IMAGE_SIZE (UINT64_C(8) << 20)

static struct test_sample *samples; /* of "keep", by key */
static char path[600], target[700];
static bool finished; /* atomic, as what follows */
static uint64_t reads, opens, wrong;

static void fail(const char *what, int error)
{
	if (__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED) < 5)
		fprintf(stderr, "# %s: %d\n", what, error);
}

/* ---- readers ------------------------------------------------------------------- */

static void check_sample(const struct stele_sample *sample)
{
	char key[32] = "";
	size_t i;

	__atomic_add_fetch(&reads, 1, __ATOMIC_RELAXED);
	if (sample->status || sample->key_size >= sizeof(key)) {
		fail("a sample", sample->status);
		return;
	}
	memcpy(key, sample->key, sample->key_size);
	i = strtoul(key + 1, NULL, 10);
	if (i >= SAMPLES || strcmp(samples[i].key, key) != 0 ||
	    samples[i].size != sample->size ||
	    memcmp(samples[i].data, sample->data, sample->size) != 0)
		fail("wrong bytes", 0);
}

static void read_some(struct stele_dataset *ds, struct stele_reader *reader,
		      uint64_t *seed)
{
	struct stele_sample got[AT_ONCE];
	uint64_t ids[AT_ONCE];
	unsigned int done = 0;
	int n;

	if (stele_dataset_count(ds) != SAMPLES) {
		fail("count", 0);
		return;
	}
	for (unsigned int i = 0; i < AT_ONCE; i++)
		ids[i] = test_random(seed) % SAMPLES;
	if (stele_reader_submit(reader, ids, NULL, AT_ONCE) != AT_ONCE) {
		fail("submit", 0);
		return;
	}
	while (done < AT_ONCE) {
		n = stele_reader_collect(reader, got, AT_ONCE, 1);
		if (n < 0) {
			fail("collect", n);
			return;
		}
		for (int i = 0; i < n; i++) {
			check_sample(&got[i]);
			stele_reader_release(reader, &got[i]);
		}
		done += (unsigned int)n;
	}
}

static void log_error(void *user, enum stele_log_level level, const char *line)
{
	(void)user;
	if (level == STELE_LOG_ERROR)
		fprintf(stderr, "# %s\n", line);
}

/* `times` rounds, 0: until the end, of one opening. */
static void open_and_read(unsigned int times, uint64_t *seed)
{
	struct stele_dataset *ds;
	struct stele_reader *reader;
	unsigned int n = 0;
	int err = stele_dataset_open(
		target, &STELE_OPTS(stele_open_opts, .log = log_error), &ds);

	if (err) {
		fail("open", err);
		return;
	}
	__atomic_add_fetch(&opens, 1, __ATOMIC_RELAXED);
	err = stele_reader_open(ds, NULL, &reader);
	if (err)
		fail("reader", err);
	while (!err && !__atomic_load_n(&finished, __ATOMIC_RELAXED) &&
	       (!times || n++ < times))
		read_some(ds, reader, seed);
	if (!err)
		stele_reader_close(reader);
	stele_dataset_close(ds);
}

static void *hold(void *user)
{
	uint64_t seed = (uintptr_t)user + 1;

	open_and_read(0, &seed);
	return NULL;
}

static void *reopen(void *user)
{
	uint64_t seed = (uintptr_t)user + 100;

	while (!__atomic_load_n(&finished, __ATOMIC_RELAXED))
		open_and_read(1, &seed);
	return NULL;
}

/* ---- the writer ------------------------------------------------------------------ */

static void make_image(void)
{
	static struct test_image image;
	struct stele_device *dev;

	samples = test_samples(SAMPLES, 5000, 3);
	for (unsigned int i = 0; i < SAMPLES; i++)
		snprintf((char *)(uintptr_t)samples[i].key, 24, "s%06u", i);
	snprintf(path, sizeof(path), "%s/image", test_tmpdir());
	snprintf(target, sizeof(target), "%s@keep", path);
	if (stele_device_open_file(path,
				   STELE_DEVICE_CREATE | STELE_DEVICE_WRITE,
				   NULL, NULL, &dev) ||
	    stele_device_resize(dev, IMAGE_SIZE) ||
	    test_image_begin(&image, dev, IMAGE_SIZE) ||
	    test_image_segment(&image, &(struct test_segment){
					       .samples = samples,
					       .count = SAMPLES}) ||
	    test_image_snapshot(&image, "keep", NULL, 0) ||
	    test_image_commit(&image))
		bail("no image");
	stele_device_close(test_image_end(&image));
}

static void must(int ret, const char *what)
{
	if (ret < 0)
		bail("%s: %s", what, strerror(-ret));
}

/* A new segment in free space, and the snapshot `name` of it alone. */
static uint64_t add_segment(struct stele_txn *writer, const char *name)
{
	const struct test_segment segment = {.samples = samples,
					     .count = SAMPLES};
	struct stele_txn_snapshot snapshot = {.info.time = 1700000000,
					       .info.sample_count = SAMPLES};
	struct stele_digest_part part = {.sample_count = SAMPLES};
	struct stele_txn_ref ref = {0};
	struct stele_hash *hash;
	struct test_composed c;
	uint64_t id, offset;
	void *bytes;

	must(stele_txn_segment_id(writer, &id), "id");
	test_segment_compose(&segment, id, STELE_DATA_OFFSET, &c);
	must(stele_txn_allocate(writer, c.d.size, 0, &offset), "space");
	free(c.bytes);
	test_segment_compose(&segment, id, offset, &c);
	bytes = stele_device_alloc(writer->image->dev, c.d.size);
	memcpy(bytes, c.bytes, c.d.size);
	must(stele_device_write(writer->image->dev, bytes, offset, c.d.size),
	     "write");
	must(stele_txn_add_segment(writer,
				    &(struct stele_catalog_segment){
					    .id = id, .offset = offset,
					    .size = c.d.size,
					    .descriptor_size = c.descriptor_size,
					    .sample_count = SAMPLES}),
	     "segment");
	memcpy(part.schema_digest, c.d.schema_digest, 32);
	memcpy(part.tree_root, c.d.tree_root, 32);
	must(stele_hash_new(&hash), "hash");
	stele_hash_snapshot(hash, &part, 1, snapshot.info.digest);
	stele_hash_free(hash);
	ref.segment_id = id;
	snapshot.refs = &ref;
	snapshot.info.ref_count = 1;
	strcpy(snapshot.info.name, name);
	must(stele_txn_add_snapshot(writer, &snapshot), "snapshot");
	must(stele_txn_publish(writer, 1700000000), "commit");
	free(bytes);
	free(c.bytes);
	return c.d.size;
}

/* Everything that changes an image, once. */
static uint64_t change(struct stele_txn *writer, unsigned int round)
{
	struct stele_gc_report report = {.size = sizeof(report)};
	struct stele_key_ref keys[20];
	const struct stele_txn_opts now = {
		.time = 1700000000 + round,
		.flags = STELE_FORCE | STELE_TXN_DISCARD,
	};
	uint64_t size;

	for (unsigned int i = 0; i < 20; i++) {
		const char *key = samples[(round + i * 7) % SAMPLES].key;

		keys[i] = (struct stele_key_ref){key, strlen(key)};
	}
	size = add_segment(writer, "new");
	must(test_change_create(writer, &now, "less", "keep", keys, 20, NULL, NULL),
	     "create");
	must(test_change_rename(writer, &now, "new", "old"), "rename");
	must(test_change_delete(writer, &now, "old"), "delete");
	must(test_change_delete(writer, &now, "less"), "delete");
	must(test_change_gc(writer, &now, NULL, NULL, &report),
	     "gc");
	return size;
}

/* Where the writer is quick, or readers get little time, it changes more. */
static bool need_more(void)
{
	return !__atomic_load_n(&wrong, __ATOMIC_RELAXED) &&
	       (__atomic_load_n(&reads, __ATOMIC_RELAXED) < READS_MIN ||
		__atomic_load_n(&opens, __ATOMIC_RELAXED) < OPENS_MIN);
}

int main(void)
{
	pthread_t threads[HOLDERS + OPENERS];
	const struct stele_log log = {log_error, NULL};
	struct stele_txn writer;
	uint64_t written = 0;
	unsigned int round = 0;

	plan_lazy();
	setenv("STELE_RUN_DIR", test_tmpdir(), 1);
	make_image();
	for (uintptr_t i = 0; i < HOLDERS + OPENERS; i++)
		if (pthread_create(&threads[i], NULL,
				   i < HOLDERS ? hold : reopen, (void *)i))
			bail("no thread");
	for (; round < ROUNDS || need_more(); round++) {
		must(stele_txn_begin(&writer, path, false, NULL, &log), "writer");
		written += change(&writer, round);
		stele_txn_release(&writer);
	}
	__atomic_store_n(&finished, true, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < HOLDERS + OPENERS; i++)
		pthread_join(threads[i], NULL);
	is_uint(0, wrong, "%ju reads, %ju openings, and %u rounds of changes",
		(uintmax_t)reads, (uintmax_t)opens, round);
	ok(written > 4 * IMAGE_SIZE, "%ju bytes went into an image of %ju",
	   (uintmax_t)written, (uintmax_t)IMAGE_SIZE);
	free(samples);
	return done();
}
