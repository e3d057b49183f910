/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset-stale.c - a snapshot that is deleted, and its space written anew,
 * while it is open
 *
 * Until its bytes go it can be read; then every way of reading says -ESTALE,
 * and never a wrong byte. Damage of a snapshot that is there stays damage.
 */
#include "tests/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/txn/txn.h"
#include "tests/fixture/dataset.h"

#define SAMPLES 200

static unsigned int told;   /* lines that say it */
static unsigned int errors; /* with all others */

static void count_line(void *user, enum stele_log_level level, const char *line)
{
	(void)user;
	errors += level == STELE_LOG_ERROR;
	told += level == STELE_LOG_ERROR && strstr(line, "snapshot was deleted");
}

static void must(int err, const char *what)
{
	if (err)
		bail("%s: %s", what, strerror(-err));
}

/* Another handle on the same device, as another process has it. */
static void begin(struct stele_device *dev, struct stele_image *image,
		  struct stele_txn *edit)
{
	must(stele_image_load(dev, NULL, image), "load");
	must(stele_txn_attach(image, edit), "edit");
}

static void end(struct stele_image *image, struct stele_txn *edit)
{
	stele_txn_release(edit);
	image->dev = NULL; /* the dataset's */
	stele_image_release(image);
}

/* The snapshot and its segment, out of the catalog; *where is what it was. */
static void delete_all(struct stele_device *dev,
		       struct stele_catalog_segment *where)
{
	struct stele_image image;
	struct stele_txn edit;

	begin(dev, &image, &edit);
	*where = edit.segments[0];
	while (edit.snapshot_count)
		must(stele_txn_remove_snapshot(&edit, edit.snapshots[0].info.name),
		     "remove");
	while (edit.segment_count)
		must(stele_txn_drop_segment(&edit, edit.segments[0].id),
		     "drop");
	must(stele_txn_publish(&edit, 1), "commit");
	end(&image, &edit);
}

/* What a writer does who finds the space free. */
static bool write_anew(struct stele_device *dev,
		       const struct stele_catalog_segment *where)
{
	struct stele_image image;
	struct stele_txn edit;
	uint64_t offset;
	void *junk = stele_device_alloc(dev, where->size);

	memset(junk, 0x5a, where->size);
	begin(dev, &image, &edit);
	must(stele_txn_publish(&edit, 2), "the commit after the next");
	must(stele_txn_allocate(&edit, where->size, 0, &offset), "allocate");
	must(stele_device_write(dev, junk, offset, where->size), "write");
	end(&image, &edit);
	free(junk);
	return offset <= where->offset;
}

static int nothing(void *user, const void *data, size_t size)
{
	(void)user, (void)data, (void)size;
	return 0;
}

/* All ways to read one sample, and a key. */
static void check_ways(struct test_dataset *t, int wanted)
{
	uint64_t id = t->count - 1, found;
	struct stele_sample sample;
	struct stele_reader *reader;

	is_int(wanted, stele_dataset_read(t->ds, id, &sample), "one-shot");
	is_int(wanted, sample.status, "its status");
	stele_sample_release(&sample);
	is_int(wanted, stele_dataset_stream(t->ds, id, nothing, NULL), "stream");
	must(stele_reader_open(t->ds, NULL, &reader), "reader");
	is_int(1, stele_reader_submit(reader, &id, NULL, 1), "reader: taken");
	is_int(1, stele_reader_collect(reader, &sample, 1, 1), "reader: back");
	is_int(wanted, sample.status, "reader: status");
	stele_reader_release(reader, &sample);
	stele_reader_close(reader);
	is_int(wanted ? wanted : -ENOENT,
	       stele_dataset_lookup(t->ds, "none", 4, &found), "a key");
}

static void check_deleted(void)
{
	struct test_plan plan = {.samples = SAMPLES, .size_max = 3000};
	struct stele_catalog_segment where;
	struct test_dataset t;

	told = errors = 0;
	test_dataset_open(&t, &plan);
	t.ds->image.log = (struct stele_log){.fn = count_line};
	check_ways(&t, 0);
	delete_all(t.dev, &where);
	check_ways(&t, 0);
	is_uint(0, told, "nobody was told");
	ok(write_anew(t.dev, &where), "its space is handed out again");
	check_ways(&t, -ESTALE);
	is_uint(1, told, "told once");
	is_uint(1, errors, "and of no damage");
	test_dataset_close(&t);
}

/* The bytes are as bad, but the catalog has the segment still. */
static void check_damaged(void)
{
	struct test_plan plan = {.samples = SAMPLES, .size_max = 3000};
	struct stele_catalog_segment where;
	struct test_dataset t;
	void *junk;

	told = errors = 0;
	test_dataset_open(&t, &plan);
	t.ds->image.log = (struct stele_log){.fn = count_line};
	stele_catalog_segment(&t.ds->image.catalog, 0, &where);
	junk = stele_device_alloc(t.dev, where.size);
	memset(junk, 0x5a, where.size);
	must(stele_device_write(t.dev, junk, where.offset, where.size), "write");
	check_ways(&t, -EBADMSG);
	is_uint(0, told, "nobody was told");
	ok(errors >= 4, "but of each damage");
	free(junk);
	test_dataset_close(&t);
}


int main(void)
{
	plan_lazy();
	check_deleted();
	check_damaged();
	return done();
}
