/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify-options.c - one word for what is checked, wherever it is said
 *
 * Of three samples one is intact, one fails its checksum alone, one its digest alone: which
 * of them come tells what was checked. Datasets, readers, views and loaders take the same
 * values, and what says nothing is as the dataset.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fixture/dataset.h"
#include "tests/tap.h"

enum { DAMAGED, INTACT, COUNT };

/* What comes of a damaged sample, and of an intact one below a root that is not its own. */
struct seen {
	int status[COUNT];
};

static struct test_dataset image;

static struct stele_dataset *open_dataset(uint32_t verify)
{
	struct stele_open_opts opts = STELE_OPTS(
		stele_open_opts, .log = image.log.log.fn,
		.log_user = image.log.log.user, .verify = verify);
	struct stele_target target = {0};
	struct stele_dataset *ds;
	struct stele_device *dev;

	if (stele_device_open_file(image.path, 0, NULL, NULL, &dev) ||
	    stele_dataset_create(dev, &target, &opts, &ds))
		bail("cannot open '%s'", image.path);
	/* As if another image's root had been pinned. */
	ds->snapshot.segments[0].descriptor.tree_root[3] ^= 1;
	return ds;
}

static void damage_first(void)
{
	struct stele_extent extent = {.size = sizeof(extent)};
	int fd = open(image.path, O_RDWR | O_CLOEXEC);

	stele_dataset_locate(image.ds, DAMAGED, &extent);
	if (pwrite(fd, "\xaa\x55", 2, (off_t)extent.offset) != 2 || fsync(fd))
		sysbail("write");
	close(fd);
}

/* ---- the ways to read ---------------------------------------------------------- */

static struct seen by_dataset(struct stele_dataset *ds, uint32_t verify)
{
	struct stele_sample sample;
	struct seen seen;

	(void)verify;
	for (uint64_t id = 0; id < COUNT; id++) {
		seen.status[id] = stele_dataset_read(ds, id, &sample);
		stele_sample_release(&sample);
	}
	return seen;
}

static struct seen by_reader(struct stele_dataset *ds, uint32_t verify)
{
	const uint64_t ids[COUNT] = {DAMAGED, INTACT};
	struct stele_sample samples[COUNT];
	struct stele_reader *reader;
	struct seen seen;

	if (stele_reader_open(ds, &STELE_OPTS(stele_reader_opts,
					      .verify = verify), &reader) ||
	    stele_reader_submit(reader, ids, NULL, COUNT) != COUNT ||
	    stele_reader_collect(reader, samples, COUNT, COUNT) != COUNT)
		bail("no reader");
	for (int i = 0; i < COUNT; i++)
		seen.status[samples[i].id] = samples[i].status;
	stele_reader_close(reader);
	return seen;
}

static struct seen by_view_of(struct stele_dataset *ds, uint32_t verify,
			      uint32_t flags)
{
	struct stele_sample sample;
	struct stele_view *view;
	struct seen seen;

	if (stele_view_open(ds, &STELE_OPTS(stele_view_opts, .verify = verify,
					    .flags = flags), &view))
		bail("no view");
	for (uint64_t id = 0; id < COUNT; id++)
		seen.status[id] = stele_view_sample(view, id, &sample);
	stele_view_close(view);
	return seen;
}

static struct seen by_view(struct stele_dataset *ds, uint32_t verify)
{
	return by_view_of(ds, verify, 0);
}

static struct seen by_fetched(struct stele_dataset *ds, uint32_t verify)
{
	return by_view_of(ds, verify, STELE_VIEW_FETCH);
}

/* Unless the kernel forbids it. */
static bool can_fetch(struct stele_dataset *ds)
{
	struct stele_view *view = NULL;
	int err = stele_view_open(ds, &STELE_OPTS(stele_view_opts,
						  .flags = STELE_VIEW_FETCH), &view);

	stele_view_close(view);
	return err != -EPERM && err != -EOPNOTSUPP;
}

static struct seen by_loader(struct stele_dataset *ds, uint32_t verify)
{
	struct stele_loader_source source = {.ds = ds, .count = COUNT};
	struct stele_loader *loader;
	struct stele_batch batch = {.size = sizeof(batch)};
	struct seen seen;

	if (stele_loader_open(&source, 1,
			      &STELE_OPTS(stele_loader_opts, .verify = verify,
					  .shuffle = STELE_SHUFFLE_NONE,
					  .threads = 1), &loader))
		bail("no loader");
	for (int i = 0; i < COUNT; i++) {
		int ret = stele_loader_next(loader, &batch);

		seen.status[i] = ret < 0 ? ret : 0;
		if (ret > 0)
			stele_loader_release(loader, &batch);
	}
	stele_loader_close(loader);
	return seen;
}

static const struct way {
	const char *name;
	struct seen (*read)(struct stele_dataset *ds, uint32_t verify);
} ways[] = {
	{"one-shot", by_dataset},
	{"reader", by_reader},
	{"view", by_view},
	{"fetched view", by_fetched},
	{"loader", by_loader},
};

/* ---- what they should give ------------------------------------------------------- */

static void is_checked_as(uint32_t wanted, struct seen seen, const char *way,
			  uint32_t of_dataset, uint32_t given)
{
	int damaged = wanted == STELE_VERIFY_NONE ? 0 : -EBADMSG;
	int foreign = wanted == STELE_VERIFY_DIGEST ? -EBADMSG : 0;

	if (!ok(seen.status[DAMAGED] == damaged &&
			seen.status[INTACT] == foreign,
		"%s: the dataset says %u, it says %u", way, of_dataset, given))
		diag("damaged: %d, below another root: %d",
		     seen.status[DAMAGED], seen.status[INTACT]);
}

static void check(uint32_t of_dataset)
{
	struct stele_dataset *ds = open_dataset(of_dataset);
	uint32_t fallback = of_dataset ? of_dataset : STELE_VERIFY_CRC;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		uint32_t last = i ? STELE_VERIFY_DIGEST : STELE_VERIFY_DEFAULT;

		if (ways[i].read == by_fetched && !can_fetch(ds)) {
			skip_block(last + 1, "needs userfaultfd");
			continue;
		}
		for (uint32_t v = STELE_VERIFY_DEFAULT; v <= last; v++)
			is_checked_as(v ? v : fallback, ways[i].read(ds, v),
				      ways[i].name, of_dataset, v);
	}
	stele_dataset_close(ds);
}

static void check_unknown(void)
{
	struct stele_dataset *ds = open_dataset(STELE_VERIFY_DEFAULT);
	struct stele_view *view;

	image.log.size = 0;
	is_int(-EINVAL,
	       stele_view_open(ds, &STELE_OPTS(stele_view_opts, .verify = 4),
			       &view),
	       "none that a view knows");
	ok(strstr(image.log.text, "option 'verify' is 4: must be at most 3"),
	   "and it is said");
	stele_dataset_close(ds);
}

int main(void)
{
	/* Each on pages of its own: the one on a page with a damaged one is read apart. */
	struct test_plan plan = {.samples = 20, .size_max = 5000, .granule = 4096,
				 .backend = "threads"};

	plan_lazy();
	test_dataset_open(&image, &plan);
	damage_first();
	for (uint32_t v = STELE_VERIFY_DEFAULT; v <= STELE_VERIFY_DIGEST; v++)
		check(v);
	check_unknown();
	test_dataset_close(&image);
	return done();
}
