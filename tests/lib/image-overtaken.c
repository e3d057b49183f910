/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image-overtaken.c - a reader that opens while another one commits
 *
 * At each read of an open in turn a writer steps in, and commits so often that
 * whatever the reader has learned so far is written over: it replaces the one
 * snapshot, and frees and reuses all space. The reader must get the
 * snapshot as it was at some commit, or begin again; and give up after so
 * many times, when it is overtaken for ever.
 */
#include "tests/fixture/edit.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/snapshot.h"

#define SIZE	(UINT64_C(0x200000) + 40 * 4096)
#define COMMITS 5u
#define READS_MAX 200u

struct hooked {
	struct stele_device base;
	struct stele_device *inner;
	unsigned int reads, at; /* the writer comes before read number `at` */
	bool always;		/* and before each later one */
	bool busy;
};

static struct test_sample *samples;
static unsigned int number;

static void commit_often(struct stele_device *dev)
{
	static const uint64_t deleted[] = {1};

	for (unsigned int i = 0; i < COMMITS; i++) {
		struct test_edit t;
		uint64_t id;

		if (test_edit_load(&t, dev) < 0)
			bail("cannot load");
		stele_txn_remove_snapshot(&t.edit, "cur");
		test_edit_collect(&t);
		if (test_edit_segment(&t, samples + number++ % 12, 3, &id) <
			    0 ||
		    test_edit_snapshot(&t, "cur", &id, 1, deleted, 1) < 0 ||
		    stele_txn_publish(&t.edit, number) < 0)
			bail("cannot write");
		test_edit_end(&t);
	}
}

static ssize_t transfer(struct stele_device *dev, enum stele_op op, void *data,
			uint64_t offset, size_t size)
{
	struct hooked *h = (struct hooked *)dev;

	if (op == STELE_OP_READ && !h->busy &&
	    (h->reads++ == h->at || (h->always && h->reads > h->at))) {
		h->busy = true;
		commit_often(h->inner);
		h->busy = false;
	}
	return h->inner->ops->transfer(h->inner, op, data, offset, size);
}

static int size_of(struct stele_device *dev, uint64_t *size)
{
	return stele_device_size(((struct hooked *)dev)->inner, size);
}

static void close_hooked(struct stele_device *dev)
{
	(void)dev;
}

static const struct stele_device_ops ops = {
	.name = "hooked",
	.transfer = transfer,
	.size = size_of,
	.close = close_hooked,
};

static struct stele_device *make_image(void)
{
	struct stele_device *dev;
	struct test_edit t;

	if (stele_device_open_memory(SIZE, 512, &dev) < 0 ||
	    test_edit_create(&t, dev, SIZE) < 0 ||
	    stele_txn_publish(&t.edit, 1) < 0)
		bail("no image");
	test_edit_end(&t);
	commit_often(dev);
	return dev;
}

static int try_open(struct stele_device *inner, unsigned int at, bool always,
		    struct test_log *messages, bool *fired)
{
	struct hooked h = {.base = *inner, .inner = inner, .at = at,
			   .always = always};
	struct stele_snapshot snapshot;
	struct stele_image image;
	int ret;

	h.base.ops = &ops;
	test_log_init(messages);
	ret = stele_snapshot_open(&h.base, &messages->log, "cur", NULL, &image,
				  &snapshot);
	if (ret == 0) {
		stele_snapshot_release(&snapshot);
		stele_image_release(&image);
	}
	*fired = h.reads > at;
	return ret;
}

static void check_once(void)
{
	unsigned int bad = 0, said = 0, at;
	bool fired = true;

	for (at = 0; fired && at < READS_MAX; at++) {
		struct stele_device *dev = make_image();
		struct test_log messages;
		int ret = try_open(dev, at, false, &messages, &fired);

		if (ret < 0)
			diag("at read %u: %d", at, ret);
		bad += ret < 0;
		said += messages.size > 0;
		stele_device_close(dev);
	}
	ok(at > 6, "a writer at each of %u reads", at - 1);
	is_uint(0, bad, "and the snapshot is always there");
	is_uint(0, said, "without a word of damage");
}

static void check_always(void)
{
	struct stele_device *dev = make_image();
	struct test_log messages;
	bool fired;
	int ret = try_open(dev, 6, true, &messages, &fired);

	is_int(-EBUSY, ret, "overtaken for ever: it ends");
	ok(messages.size > 0, "and says why");
	stele_device_close(dev);
}

/* Damage that nobody's commit explains is told at once. */
static void check_damage(void)
{
	struct stele_device *dev = make_image();
	uint8_t *bytes = stele_device_memory(dev);
	struct test_log messages;
	struct stele_image image;
	struct stele_catalog_segment where;
	bool fired;

	if (stele_image_load(dev, NULL, &image) < 0)
		bail("load");
	stele_catalog_segment(&image.catalog, 0, &where);
	bytes[where.offset + 100] ^= 1;
	bytes[where.offset + where.size - 100] ^= 1;
	image.dev = NULL;
	stele_image_release(&image);
	is_int(-EBADMSG, try_open(dev, READS_MAX, false, &messages, &fired),
	       "a damaged descriptor");
	ok(messages.size > 0, "is told");
	stele_device_close(dev);
}

int main(void)
{
	plan_lazy();
	samples = test_samples(16, 300, 21);
	check_once();
	check_always();
	check_damage();
	free(samples);
	return done();
}
