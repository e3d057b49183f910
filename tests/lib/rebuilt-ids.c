/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rebuilt-ids.c - a segment's id, which seeds its checksums, is of one content alone
 *
 * Asked for reproducible output, an image of one content is built over one of another,
 * with keys and sizes alike: whoever still reads the first one must be told that it is
 * gone, and never see a byte of the second. So it is wherever the two come to lie.
 */
#include "tests/tap.h"

#include <errno.h>
#include <string.h>

#include "lib/ops/build.h"
#include "lib/read/dataset.h"
#include "lib/txn/txn.h"
#include "tests/device/memory.h"
#include "tests/fixture/fake.h"

#define SAMPLES	  300u
#define SIZE_MAX_ 900u

static const uint8_t uuid[16] = "one and the same";

static void build(struct stele_device *dev, uint8_t version)
{
	struct stele_build_report report = {.size = sizeof(report)};
	struct fake fake;

	fake_init(&fake);
	fake_add_many(&fake, "a", SAMPLES, SIZE_MAX_);
	for (size_t i = 0; i < fake.count; i++)
		fake.files[i].version = version;
	if (stele_build_on(dev, &fake.source, "v1",
			   &STELE_OPTS(stele_build_opts, .uuid = uuid,
				       .time = 1700000000),
			   &report) < 0)
		bail("cannot build");
	fake_release(&fake);
}

static struct stele_device *blank(void)
{
	struct stele_device *dev;

	if (stele_device_open_memory(8 << 20, 512, &dev) < 0)
		bail("no device");
	return dev;
}

static uint64_t id_on(struct stele_device *dev)
{
	struct stele_catalog_segment segment;
	struct stele_image image;

	if (stele_image_load(dev, NULL, &image) < 0)
		bail("no image");
	stele_catalog_segment(&image.catalog, 0, &segment);
	image.dev = NULL; /* the caller's */
	stele_image_release(&image);
	return segment.id;
}

static int nothing(void *user, const void *data, size_t size)
{
	(void)user, (void)data, (void)size;
	return 0;
}

/* Samples that do not fail with -ESTALE, by any way of reading. */
static unsigned int count_passed(struct stele_dataset *ds)
{
	unsigned int passed = 0;
	struct stele_sample sample;
	struct stele_reader *reader;

	if (stele_reader_open(ds, NULL, &reader) < 0)
		bail("no reader");
	for (uint64_t id = 0; id < SAMPLES; id++) {
		passed += stele_dataset_read(ds, id, &sample) != -ESTALE;
		stele_sample_release(&sample);
		passed += stele_dataset_stream(ds, id, nothing, NULL) != -ESTALE;
		if (stele_reader_submit(reader, &id, NULL, 1) != 1 ||
		    stele_reader_collect(reader, &sample, 1, 1) != 1)
			bail("reader");
		passed += sample.status != -ESTALE;
		stele_reader_release(reader, &sample);
	}
	stele_reader_close(reader);
	return passed;
}

static void test_open_reader(void)
{
	const struct stele_target target = {.path = (char *)"memory"};
	struct stele_device *dev = blank();
	struct stele_dataset *ds;
	uint64_t first, id;

	build(dev, 0);
	first = id_on(dev);
	if (stele_dataset_create(dev, &target, NULL, &ds) < 0)
		bail("cannot open");
	build(dev, 1);
	ok(first != id_on(dev), "of other samples it is another id");
	is_uint(0, count_passed(ds), "no byte of the other image passes");
	is_int(-ESTALE, stele_dataset_lookup(ds, "a/000001", 8, &id), "nor a key");
	stele_dataset_close(ds);
}

static void test_reproducible(void)
{
	struct stele_device *one = blank(), *other = blank();

	build(one, 0);
	build(other, 0);
	ok(!memcmp(stele_device_memory(one), stele_device_memory(other), 8 << 20),
	   "the same UUID and samples: the same bytes");
	build(other, 1);
	ok(id_on(one) != id_on(other), "other samples: another id");
	build(other, 0);
	ok(id_on(one) == id_on(other), "the same ones, over another image: the same");
	stele_device_close(one);
	stele_device_close(other);
}

static void test_attempts(void)
{
	struct stele_device *dev = blank();
	struct stele_image image;
	struct stele_txn edit;
	uint64_t one = 0, other = 0;

	build(dev, 0);
	if (stele_image_load(dev, NULL, &image) < 0)
		bail("no image");
	for (int i = 0; i < 2; i++) {
		if (stele_txn_attach(&image, &edit) < 0 ||
		    stele_txn_segment_id(&edit, i ? &other : &one) < 0)
			bail("no id");
		stele_txn_release(&edit);
	}
	ok(one != other, "two attempts at one generation have two ids");
	stele_image_release(&image);
}

int main(void)
{
	plan_lazy();
	test_open_reader();
	test_reproducible();
	test_attempts();
	return done();
}
