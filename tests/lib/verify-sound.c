/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify-sound.c - verify has nothing to say of images of every shape
 */
#include "tests/fixture/edit.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/txn/intent.h"
#include "lib/verify/verify.h"
#include "tests/device/fault.h"

static struct test_log messages;

static void say(void *user, const struct stele_damage *damage)
{
	(void)user;
	diag("%s at %" PRIu64 ": %s", damage->what, damage->offset,
	     damage->detail);
}

/* Takes the device. */
static void check_sound(struct stele_device *dev, uint32_t jobs,
			uint64_t samples, const char *what)
{
	const struct stele_verify_opts opts = {
		.size = sizeof(opts), .damage = say, .jobs = jobs,
	};
	struct stele_verify_report report = {.size = sizeof(report)};
	struct stele_image image;

	if (stele_image_load(dev, &messages.log, &image) < 0)
		bail("%s does not load: %s", what, messages.text);
	is_int(0, stele_verify_image(&image, -1, &opts, &report),
	       "%s is sound", what);
	is_uint(samples, report.samples, "all samples were checked");
	is_uint(0, report.damaged, "nothing was reported");
	stele_image_release(&image);
}

static void check_shapes(void)
{
	static const uint64_t counts[] = {0, 1, 2, 127, 128, 5000};
	static const uint32_t granules[] = {16, 64, 512, 4096};
	static const char *const names[] = {"a", "b", "c", "d", NULL};

	for (size_t i = 0; i < 6; i++)
		for (size_t j = 0; j < 4; j++) {
			struct test_sample *samples =
				test_samples(counts[i], 2000, i + j);
			const struct test_segment in = {
				.samples = samples, .count = counts[i],
				.granule = granules[j], .labels = j % 2,
				.names = j == 1 ? names : NULL,
				.order = i % 2, .boundary = j == 3 ? 8192 : 0,
			};
			char what[64];

			snprintf(what, sizeof(what),
				 "%" PRIu64 " samples at granule %" PRIu32,
				 counts[i], granules[j]);
			check_sound(test_image_simple(&in, NULL, 0, 64u << 20),
				    1 + (i + j) % 3, counts[i], what);
			free(samples);
		}
}

/* Larger than the buffers, alone and among others; odd sizes. */
static void check_large(void)
{
	struct test_sample *samples = test_samples(12, 100, 5);
	const struct test_segment in = {.samples = samples, .count = 12};
	uint8_t *data = malloc(16u << 20);

	if (!data)
		bail("no memory");
	for (size_t i = 0; i < 16u << 20; i++)
		data[i] = (uint8_t)(i * 31 ^ i >> 11);
	for (uint64_t i = 0; i < 12; i++) {
		samples[i].data = data;
		samples[i].size = i % 3 ? i * 1000 + 1 :
					  ((i + 4) << 20) - 9000 + i * 2000;
	}
	check_sound(test_image_simple(&in, NULL, 0, 96u << 20), 2, 12,
		    "an image with large samples");
	check_sound(test_image_simple(&in, NULL, 0, 96u << 20), 1, 12,
		    "the same with one thread");
	free(data);
	free(samples);
}

static void check_snapshots(void)
{
	static struct test_image t;
	struct test_sample *samples = test_samples(900, 700, 6);
	struct test_segment in = {.samples = samples, .count = 600};
	static const uint64_t deleted[] = {3, 4, 599}, more[] = {0, 3};
	struct test_ref refs[] = {{0, deleted, 3}, {1, NULL, 0}};
	struct stele_device *dev;

	/* Number 3 becomes void; a key that is deleted may come again. */
	in.order = STELE_SLOT_ORDER_SOURCE;
	samples[3].gone = true;
	stele_device_open_memory(16u << 20, 512, &dev);
	test_image_begin(&t, dev, 16u << 20);
	test_image_segment(&t, &in);
	test_image_snapshot(&t, "one", refs, 1);
	test_image_commit(&t);
	in.samples = samples + 599;
	in.count = 301;
	test_image_segment(&t, &in);
	test_image_snapshot(&t, "two", refs, 2);
	refs[0].deleted = more;
	refs[0].deleted_count = 2;
	test_image_snapshot(&t, "three", refs, 1);
	test_image_commit(&t);
	check_sound(test_image_end(&t), 2, 901, "three snapshots");
	free(samples);
}

static int stop_at_once(void *user, const struct stele_progress *p)
{
	(void)p;
	return ++*(int *)user > 2;
}

static void check_cancel(void)
{
	struct test_sample *samples = test_samples(3000, 5000, 7);
	const struct test_segment in = {.samples = samples, .count = 3000};
	int calls = 0;
	const struct stele_verify_opts opts = {
		.size = sizeof(opts), .progress = stop_at_once,
		.progress_user = &calls, .jobs = 3,
	};
	struct stele_verify_report report = {.size = sizeof(report)};
	struct stele_image image;

	stele_image_load(test_image_simple(&in, NULL, 0, 64u << 20), NULL,
			 &image);
	is_int(-ECANCELED, stele_verify_image(&image, -1, &opts, &report),
	       "progress can stop it");
	stele_image_release(&image);
	free(samples);
}

/* Somebody commits, and what was there is written over, between two looks. */
static int commit_once(void *user, const struct stele_progress *p)
{
	struct stele_device **dev = user;
	struct stele_image image;
	struct stele_txn edit;

	(void)p;
	if (!*dev)
		return 0;
	if (stele_image_load(*dev, NULL, &image) ||
	    stele_txn_attach(&image, &edit) ||
	    stele_txn_rename_snapshot(&edit, "v1", "v2") ||
	    stele_txn_publish(&edit, 1700000001))
		bail("no commit");
	memset((uint8_t *)stele_device_memory(*dev) + edit.segments[0].offset,
	       0x5a, 4096);
	stele_txn_release(&edit);
	image.dev = NULL;
	stele_image_release(&image);
	*dev = NULL;
	return 0;
}

static void check_overtaken(void)
{
	struct test_sample *samples = test_samples(100, 500, 8);
	const struct test_segment in = {.samples = samples, .count = 100};
	struct stele_device *dev = test_image_simple(&in, NULL, 0, 64u << 20);
	struct stele_device *once = dev;
	const struct stele_verify_opts opts = {
		.size = sizeof(opts), .progress = commit_once,
		.progress_user = &once, .jobs = 1, .damage = say,
	};
	struct stele_verify_report report = {.size = sizeof(report)};
	struct stele_image image;

	if (stele_image_load(dev, NULL, &image))
		bail("no image");
	is_int(-EAGAIN, stele_verify_image(&image, -1, &opts, &report),
	       "who is overtaken by a commit begins again");
	is_uint(0, report.damaged, "and has reported nothing");
	stele_image_release(&image);
	free(samples);
}

/* From any read on: no damage, and not a timeout for each block that there is. */
static void check_silent(void)
{
	const struct stele_verify_opts opts = {
		.size = sizeof(opts), .damage = say, .jobs = 1,
	};
	struct test_sample *samples = test_samples(600, 3000, 5);
	const struct test_segment in = {
		.samples = samples, .count = 600, .labels = true};
	struct stele_device *inner = test_image_simple(&in, NULL, 0, 0), *dev;
	uint64_t all, most = 0, damaged = 0, wrong = 0;
	struct stele_verify_report report = {.size = sizeof(report)};
	struct stele_image image;

	if (stele_device_open_fault(inner, NULL, 0, &dev) ||
	    stele_image_load(dev, NULL, &image))
		bail("no image");
	all = stele_fault_count(dev);
	stele_verify_image(&image, -1, &opts, &report);
	all = stele_fault_count(dev) - all;
	for (uint64_t n = 0; n < all; n++) {
		struct stele_fault_rule rule = {.error = ETIMEDOUT};
		size_t asked;

		memset(&report, 0, sizeof(report));
		rule.first = stele_fault_count(dev) + n;
		stele_fault_log_clear(dev);
		stele_fault_set_rules(dev, &rule, 1);
		wrong += stele_verify_image(&image, -1, &opts, &report) !=
			 -ETIMEDOUT;
		damaged += report.damaged;
		stele_fault_log(dev, &asked);
		if (asked > n && asked - n > most)
			most = asked - n;
		stele_fault_set_rules(dev, NULL, 0);
	}
	is_uint(0, wrong, "silent from any of %" PRIu64 " reads on: no answer", all);
	is_uint(0, damaged, "which is no damage");
	ok(most <= 64, "at most %" PRIu64 " reads wait for it", most);
	stele_image_release(&image);
	free(samples);
}

/* ---- superblocks of writers that come late -------------------------------------- */

#define LATE_SIZE (UINT64_C(8) << 20)

/* Generation 4, three of the same image before it. */
static struct stele_device *several_commits(void)
{
	struct test_sample *samples = test_samples(5, 500, 9);
	struct stele_device *dev = test_memory(LATE_SIZE, 512, 0);
	struct test_edit t;
	uint64_t id;

	if (test_edit_create(&t, dev, LATE_SIZE) < 0 ||
	    test_edit_segment(&t, samples, 5, &id) < 0 ||
	    test_edit_snapshot(&t, "v1", &id, 1, NULL, 0) < 0)
		bail("no image");
	for (int i = 0; i < 4; i++)
		if (stele_txn_publish(&t.edit, 1700000000 + i) < 0)
			bail("no commit");
	test_edit_end(&t);
	free(samples);
	return dev;
}

/* `copy` of four. The catalog that it leads to is gone, or never was. */
static void put_late(struct stele_device *dev, unsigned int copy,
		     uint64_t generation, bool other_image)
{
	static const uint64_t at[] = {0x1000, 0x2000, 0x100000, 0x101000};
	struct stele_disk_superblock *disk =
		(void *)((uint8_t *)stele_device_memory(dev) + at[copy]);
	struct stele_superblock sb;

	if (stele_superblock_decode(disk, at[copy], &sb, NULL))
		bail("no superblock");
	sb.generation = generation;
	sb.parent = generation - 1;
	sb.catalog_crc ^= 1;
	sb.uuid[0] ^= other_image;
	stele_superblock_encode(&sb, at[copy], disk);
}

static struct stele_verify_report verify(struct stele_device *dev)
{
	const struct stele_verify_opts opts = {.size = sizeof(opts), .jobs = 1};
	struct stele_verify_report report = {.size = sizeof(report)};
	struct stele_image image;

	if (stele_image_load(dev, NULL, &image) ||
	    stele_verify_image(&image, -1, &opts, &report) < 0)
		bail("cannot verify");
	image.dev = NULL;
	stele_image_release(&image);
	return report;
}

static void commit_next(struct stele_device *dev)
{
	struct test_edit t = {0};

	if (stele_image_load(dev, NULL, &t.image) ||
	    stele_image_announce(&t.image) ||
	    stele_txn_attach(&t.image, &t.edit) ||
	    stele_txn_publish(&t.edit, 1700000010))
		bail("no commit");
	stele_txn_release(&t.edit);
	stele_intent_end(dev);
	test_edit_end(&t);
}

static void check_late(void)
{
	static const struct {
		const char *what;
		uint64_t generation;
		bool other_image;
		unsigned int notes, damaged; /* one of them, at least */
	} cases[] = {
		{"of a generation before", 1, false, 1, 0},
		{"of an image before", 1, true, 1, 0},
		{"of an image before, not long ago", 3, true, 1, 0},
		{"that is newer, without a catalog", 9, false, 0, 1},
		{"that is newer, of another image", 9, true, 0, 1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (unsigned int copy = 0; copy < 4; copy++) {
			struct stele_device *dev = several_commits();
			struct stele_verify_report report = {.size = sizeof(report)};

			put_late(dev, copy, cases[i].generation,
				 cases[i].other_image);
			report = verify(dev);
			ok((cases[i].damaged ||
			    report.notes == cases[i].notes) &&
				   !report.damaged == !cases[i].damaged,
			   "copy %u %s: %" PRIu64 " notes, %" PRIu64 " damaged",
			   copy, cases[i].what, (uint64_t)report.notes,
			   (uint64_t)report.damaged);
			if (cases[i].damaged) {
				stele_device_close(dev);
				continue;
			}
			commit_next(dev);
			report = verify(dev);
			ok(!report.notes && !report.damaged,
			   "the next writer puts it right");
			stele_device_close(dev);
		}
}

int main(void)
{
	plan_lazy();
	test_log_init(&messages);
	check_shapes();
	check_large();
	check_snapshots();
	check_cancel();
	check_overtaken();
	check_silent();
	check_late();
	is_string("", messages.text, "no messages");
	return done();
}
