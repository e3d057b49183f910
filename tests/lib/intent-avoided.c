/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intent-avoided.c - what a writer that never ended leaves in a file is used again
 *
 * At once, if its machine was started again since; else an hour after somebody else
 * has taken its place, and until then the file grows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format/intent.h"
#include "lib/image/digest.h"
#include "lib/txn/txn.h"
#include "lib/txn/intent.h"
#include "tests/fixture/edit.h"
#include "tests/tap.h"

#define SIZE  (UINT64_C(3) << 20) /* no room for a piece */
#define PIECE (UINT64_C(1) << 20)

static char path[4096];
static uint64_t taken; /* by who died */

struct writer {
	struct stele_device *dev;
	struct test_edit t;
};

static void make_file(void)
{
	struct test_sample *samples = test_samples(5, 400, 3);
	const struct test_segment in = {.samples = samples, .count = 5};
	struct stele_device *dev = test_image_simple(&in, NULL, 0, SIZE);
	FILE *file;

	snprintf(path, sizeof(path), "%s/image", test_tmpdir());
	file = fopen(path, "w");
	if (!file || fwrite(stele_device_memory(dev), SIZE, 1, file) != 1 ||
	    fclose(file))
		bail("cannot write '%s'", path);
	stele_device_close(dev);
	free(samples);
}

static struct stele_device *open_file(void)
{
	struct stele_device *dev;

	if (stele_device_open_file(path, STELE_DEVICE_WRITE, NULL, NULL, &dev))
		bail("cannot open '%s'", path);
	return dev;
}

static void begin(struct writer *w, unsigned int machine, unsigned int boot)
{
	memset(w, 0, sizeof(*w));
	w->dev = open_file();
	stele_intent_pose(machine, boot);
	if (stele_image_load(w->dev, NULL, &w->t.image) ||
	    stele_image_announce(&w->t.image) ||
	    stele_txn_attach(&w->t.image, &w->t.edit))
		bail("no writer");
}

static void end(struct writer *w)
{
	stele_txn_release(&w->t.edit);
	stele_intent_end(w->dev);
	test_edit_end(&w->t);
	stele_device_close(w->dev);
	stele_intent_pose(0, 0);
}

static void *both_blocks(struct stele_device *dev)
{
	void *blocks = stele_device_alloc(dev, 2 * STELE_BLOCK_SIZE);

	if (!blocks || stele_device_read(dev, blocks, STELE_INTENT_TURN_OFFSET,
					 2 * STELE_BLOCK_SIZE))
		bail("cannot read the intent");
	return blocks;
}

static void put_blocks(struct stele_device *dev, void *blocks)
{
	if (stele_device_write(dev, blocks, STELE_INTENT_TURN_OFFSET,
			       2 * STELE_BLOCK_SIZE))
		bail("cannot write the intent");
	free(blocks);
}

/* A power loss, when space was taken: the file is larger, and the intent stands. */
static void die(unsigned int machine, unsigned int boot)
{
	struct writer w;
	void *said;

	begin(&w, machine, boot);
	if (stele_txn_allocate(&w.t.edit, PIECE, 0, &taken))
		bail("no space");
	stele_txn_keep_space(&w.t.edit);
	said = both_blocks(w.dev);
	end(&w);
	w.dev = open_file();
	put_blocks(w.dev, said);
	stele_device_close(w.dev);
}

/* Change what is said; `how` may be NULL. The time in it. */
static int64_t patch(void (*how)(struct stele_intent_record *record))
{
	struct stele_device *dev = open_file();
	uint8_t *blocks = both_blocks(dev);
	struct stele_disk_intent *disk = (void *)(blocks + STELE_BLOCK_SIZE);
	struct stele_intent_record record;

	if (stele_intent_decode(disk, STELE_INTENT_OFFSET, &record, NULL))
		bail("no intent");
	if (how)
		how(&record);
	stele_intent_encode(&record, STELE_INTENT_OFFSET, disk);
	put_blocks(dev, blocks);
	stele_device_close(dev);
	return record.since;
}

static void forget_machine(struct stele_intent_record *record)
{
	memset(record->machine, 0, sizeof(record->machine));
}

static void rename_machine(struct stele_intent_record *record)
{
	strcpy(record->host, "another");
}

static void forget_boot(struct stele_intent_record *record)
{
	memset(record->boot, 0, sizeof(record->boot));
}

static void move_into_container(struct stele_intent_record *record)
{
	record->namespace++;
}

static void make_old(struct stele_intent_record *record)
{
	record->since -= STELE_INTENT_AVOID_SECONDS;
}

static void make_nearly_old(struct stele_intent_record *record)
{
	record->since -= STELE_INTENT_AVOID_SECONDS - 1000;
}

static void make_future(struct stele_intent_record *record)
{
	record->since += 2 * STELE_INTENT_AVOID_SECONDS;
}

/* Does the next one take the space that the dead one had, so that the file is enough? */
static bool uses_it(unsigned int machine, unsigned int boot)
{
	uint64_t before, after, offset;
	struct writer w;

	begin(&w, machine, boot);
	if (stele_device_size(w.dev, &before) ||
	    stele_txn_allocate(&w.t.edit, PIECE, 0, &offset) ||
	    stele_device_size(w.dev, &after))
		bail("no space");
	end(&w);
	if (offset == taken && after != before)
		bail("the file has grown");
	return offset == taken;
}

static uint64_t size_now(void)
{
	struct stele_device *dev = open_file();
	uint64_t size;

	if (stele_device_size(dev, &size))
		bail("no size");
	stele_device_close(dev);
	return size;
}

static void check_restarted(void)
{
	static const struct {
		const char *what;
		void (*how)(struct stele_intent_record *record);
	} cases[] = {
		{"a machine that has no id", forget_machine},
		{"one that has another name", rename_machine},
		{"one whose boot has no id", forget_boot},
		{"one that was in a container", move_into_container},
	};
	struct writer w;
	uint64_t size;

	make_file();
	die(1, 1);
	size = size_now();
	for (unsigned int boot = 2; boot < 6; boot++)
		die(1, boot);
	is_uint(size, size_now(), "a machine that fails again and again takes "
				  "the same space");
	begin(&w, 1, 6);
	ok(stele_intent_floor(w.dev) > w.t.image.sb.generation,
	   "but a generation is left out: in case it was another machine");
	end(&w);
	die(1, 5);
	ok(uses_it(1, 6), "and nothing is avoided");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		die(1, 1);
		patch(cases[i].how);
		ok(!uses_it(1, 2), "%s may be another one", cases[i].what);
		patch(make_old);
		ok(uses_it(1, 2), "for an hour");
	}
}

static void check_old(void)
{
	const int64_t now = time(NULL);

	die(1, 1);
	is_int(0, patch(NULL), "nobody was replaced");
	ok(!uses_it(2, 1), "a writer of another machine is avoided");
	ok(patch(NULL) >= now, "from when it was replaced");
	ok(!uses_it(3, 1), "by the next one, too");
	patch(make_nearly_old);
	ok(!uses_it(3, 1), "for nearly an hour");
	patch(make_future);
	ok(!uses_it(3, 1), "and by a clock that is slow");
	for (unsigned int hour = 0; hour < 3; hour++)
		patch(make_old);
	ok(uses_it(3, 1), "then its space is used before the file grows");
}

/* machine-id(5): it is not to be shown to others. */
static void check_id(void)
{
	static const uint8_t wanted[16] = {
		0xac, 0x06, 0xac, 0x85, 0x56, 0x7d, 0x41, 0x95,
		0xbe, 0xb9, 0x2d, 0xb8, 0xa1, 0xbd, 0xd9, 0x2f,
	};
	uint8_t secret[16], id[16];

	for (unsigned int i = 0; i < sizeof(secret); i++)
		secret[i] = (uint8_t)i;
	stele_hash_machine_id(secret, id);
	is_blob(wanted, id, sizeof(id), "of a machine's id a digest is said");
}

int main(void)
{
	plan_lazy();
	check_id();
	check_restarted();
	check_old();
	return done();
}
