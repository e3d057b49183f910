/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names-damaged.c - without its class names a snapshot can be read, but neither copied nor proven
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/verify/verify.h"
#include "tests/device/fault.h"
#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define LABEL	1u /* index of the field */
#define SAMPLES 6u
#define HEARD_SIZE 1024

static const char *const few[] = {"cat", "dog", NULL};
static const char *const more[] = {"cat", "dog", "ant", NULL};

static struct stele_catalog_segment places[2];

/* Two segments with these names, of "v1". Offsets of their first blocks of names. */
static struct stele_device *make(const char *const *first, const char *const *second,
				 uint64_t offsets[2])
{
	static struct test_sample samples[2][SAMPLES];
	static char keys[2][SAMPLES][2];
	static struct test_image t;
	struct stele_snapshot snapshot;
	struct stele_image image;
	struct stele_device *dev;

	if (test_image_begin(&t, test_memory(8u << 20, 512, 0), 8u << 20))
		bail("begin");
	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int j = 0; j < SAMPLES; j++) {
			keys[i][j][0] = (char)('a' + i * SAMPLES + j);
			samples[i][j] = (struct test_sample){
				.key = keys[i][j], .data = keys[i][j],
				.size = 1, .label = j % 2};
		}
		test_image_segment(&t, &(struct test_segment){
			.samples = samples[i], .count = SAMPLES, .labels = true,
			.names = i ? second : first});
	}
	test_image_snapshot(&t, "v1", NULL, 0);
	test_image_commit(&t);
	dev = test_image_end(&t);
	if (stele_image_load(dev, NULL, &image) ||
	    stele_snapshot_load(&image, 0, &snapshot))
		bail("image does not load");
	for (unsigned int i = 0; i < 2; i++) {
		const struct stele_descriptor *d = &snapshot.segments[i].descriptor;
		struct stele_section section;

		if (stele_descriptor_find_section(d, STELE_BLOCK_NAMES, LABEL, &section))
			bail("no names");
		offsets[i] = d->offset + section.offset;
		stele_catalog_segment(&image.catalog, i, &places[i]);
	}
	stele_snapshot_release(&snapshot);
	image.dev = NULL;
	stele_image_release(&image);
	return dev;
}

static void flip(struct stele_device *dev, uint64_t offset)
{
	((uint8_t *)stele_device_memory(dev))[offset] ^= 1;
}

static int open_as(struct stele_device *dev, const uint8_t *digest,
		   enum stele_verify verify, struct test_log *log,
		   struct stele_dataset **ds)
{
	struct stele_target target = {.pinned = digest};

	test_log_init(log);
	if (digest)
		memcpy(target.digest, digest, sizeof(target.digest));
	return stele_dataset_create(dev, &target,
				    &STELE_OPTS(stele_open_opts, .verify = verify,
						.log = log->log.fn,
						.log_user = log->log.user),
				    ds);
}

/* Samples by id and by key, and the column of labels. */
static uint64_t wrong_samples(struct stele_dataset *ds)
{
	uint64_t wrong = stele_dataset_count(ds) != 2 * SAMPLES, id;
	int64_t labels[2 * SAMPLES] = {0};

	wrong += stele_dataset_column(ds, LABEL, 0, 2 * SAMPLES, labels) != 0;
	for (uint64_t i = 0; i < 2 * SAMPLES; i++) {
		struct stele_sample sample = {0};
		int64_t label = -1;
		char key;

		wrong += stele_dataset_read(ds, i, &sample) != 0;
		key = sample.key_size == 1 ? *(const char *)sample.key : '?';
		wrong += sample.size != 1 || *(const char *)sample.data != key;
		wrong += stele_sample_i64(&sample, LABEL, &label) ||
			 label != labels[i];
		wrong += stele_dataset_lookup(ds, &key, 1, &id) || id != i;
		stele_sample_release(&sample);
	}
	return wrong;
}

static void is_without(struct stele_dataset *ds, const struct test_log *log,
		       const char *what)
{
	struct stele_field field = {.size = sizeof(field)};
	const char *name;

	is_uint(1, log->warnings, "%s: one warning", what);
	is_uint(0, log->errors, "%s: no error", what);
	if (!ok(test_log_has(log, "class names of field 'label' are damaged: "),
		"%s: it says of what", what))
		diag("%s", log->text);
	is_uint(0, wrong_samples(ds), "%s: samples, keys and labels", what);
	stele_dataset_field(ds, LABEL, &field);
	is_uint(0, field.name_count, "%s: no names", what);
	is_uint(1, field.names_damaged, "%s: which are damaged", what);
	is_int(-EBADMSG, stele_dataset_class_name(ds, LABEL, 0, &name),
	       "%s: who asks for one", what);
	is_string("cannot read the class names of field 'label': they are damaged",
		  stele_errmsg(), "%s: is told why", what);
	is_int(-EBADMSG, stele_dataset_class_name(ds, LABEL, 7, &name),
	       "%s: nobody knows whether a value has none", what);
	is_int(-ENOENT, stele_dataset_class_name(ds, 0, 0, &name),
	       "%s: another field", what);
	is_uint(0, log->errors, "%s: the log is spared that", what);
	field.size = sizeof(field);
	stele_dataset_field(ds, 0, &field);
	is_uint(0, field.names_damaged, "%s: which never had any", what);
}

/* A byte of the only names; then what reads them, and what needs them. */
static void test_flipped(enum stele_verify verify)
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct stele_dataset *ds;
	struct stele_device *dev;
	uint64_t offsets[2];
	struct test_log log;

	dev = make(few, few, offsets);
	flip(dev, offsets[0] + 100);
	flip(dev, offsets[1]); /* of the magic */
	is_int(0, open_as(dev, NULL, verify, &log, &ds), "both damaged: opens");
	is_uint(2, log.warnings, "both damaged: of each");
	log.warnings = 1;
	is_without(ds, &log, "both damaged");
	stele_dataset_info(ds, &info);
	is_int(-EBADMSG, stele_snapshot_check_names(&ds->image, &ds->snapshot),
	       "both damaged: not to be copied");
	stele_dataset_close(ds);

	dev = make(few, few, offsets);
	is_int(0, open_as(dev, info.digest, verify, &log, &ds), "sound: by its digest");
	is_int(0, stele_snapshot_check_names(&ds->image, &ds->snapshot), "sound: to be copied");
	stele_dataset_close(ds);

	dev = make(few, few, offsets);
	flip(dev, offsets[0] + 100);
	is_int(-EBADMSG, open_as(dev, info.digest, verify, &log, &ds),
	       "damaged: not by its digest, which proves fields with names");
	if (!ok(test_log_has(&log, "open snapshot 'v1' by name"), "damaged: it says how"))
		diag("%s", log.text);
}

/* Who may write can rename a field, and damage the names without which nothing shows it. */
static void test_forged(void)
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct stele_dataset *ds;
	struct stele_device *dev;
	uint64_t offsets[2];
	struct test_log log;

	dev = make(few, few, offsets);
	if (open_as(dev, NULL, 0, &log, &ds))
		bail("open");
	stele_dataset_info(ds, &info);
	stele_dataset_close(ds);
	dev = make(few, few, offsets);
	for (unsigned int i = 0; i < 2; i++) {
		const struct stele_catalog_segment *where = &places[i];

		flip(dev, offsets[i] + 100);
		for (unsigned int j = 0; j < 2; j++) {
			uint64_t at = where->offset + j * (where->size - STELE_BLOCK_SIZE);
			struct stele_disk_block *block = (struct stele_disk_block *)(
				(uint8_t *)stele_device_memory(dev) + at);

			block->payload[sizeof(struct stele_disk_descriptor)] ^= 0x20;
			stele_block_seal(block, STELE_BLOCK_DESCRIPTOR, at, where->id);
		}
	}
	is_int(-EBADMSG, open_as(dev, info.digest, 0, &log, &ds), "forged: not by its digest");
}

/* Names of the last segment are those of the snapshot. */
static void test_one_of_two(void)
{
	const char *name = "";
	struct stele_dataset *ds;
	struct stele_device *dev;
	uint64_t offsets[2];
	struct test_log log;

	dev = make(few, few, offsets);
	flip(dev, offsets[0] + 100);
	is_int(0, open_as(dev, NULL, 0, &log, &ds), "first of two alike: opens");
	is_int(0, stele_dataset_class_name(ds, LABEL, 1, &name), "first of two alike: a name");
	is_string("dog", name, "first of two alike: of the second");
	is_int(-EBADMSG, stele_snapshot_check_names(&ds->image, &ds->snapshot),
	       "first of two alike: not to be copied");
	stele_dataset_close(ds);

	dev = make(few, more, offsets);
	flip(dev, offsets[0] + 100);
	is_int(0, open_as(dev, NULL, 0, &log, &ds), "fewer names: opens");
	is_int(0, stele_dataset_class_name(ds, LABEL, 2, &name), "fewer names: a name");
	is_string("ant", name, "fewer names: of the second");
	stele_dataset_close(ds);

	dev = make(few, more, offsets);
	flip(dev, offsets[1] + 100);
	is_int(0, open_as(dev, NULL, 0, &log, &ds), "more names: opens");
	is_without(ds, &log, "more names");
	stele_dataset_close(ds);
}

static void hear(void *user, const struct stele_damage *damage)
{
	char *text = user;
	const size_t used = strlen(text);

	snprintf(text + used, HEARD_SIZE - used, "%s: %s\n", damage->what, damage->detail);
}

static void is_reported(struct stele_device *dev, const char *wanted, const char *what)
{
	struct stele_verify_report report = {.size = sizeof(report)};
	char heard[HEARD_SIZE] = "";
	const struct stele_verify_opts opts = {
		.size = sizeof(opts), .damage = hear, .damage_user = heard};
	struct stele_image image;
	struct test_log log;

	test_log_init(&log);
	if (stele_image_load(dev, &log.log, &image))
		bail("image does not load");
	stele_verify_image(&image, -1, &opts, &report);
	is_string(wanted, heard, "%s: verify", what);
	is_uint(0, log.errors, "%s: nothing but that", what);
	image.dev = NULL;
	stele_image_release(&image);
}

/* Of fields without their names nothing is known to be wrong. */
static void test_verify(void)
{
	struct stele_fault_rule once = {.kind = STELE_FAULT_FAIL, .ops = 1u << STELE_OP_READ,
					.error = EIO, .count = 1, .size = 1};
	struct stele_disk_block *block;
	struct stele_device *dev;
	uint64_t offsets[2];

	dev = make(few, few, offsets);
	is_reported(dev, "", "sound");
	flip(dev, offsets[1] + 100);
	is_reported(dev, "names: block: checksum mismatch\n", "a flipped bit");
	stele_device_close(dev);
	dev = make(few, few, offsets);
	block = (struct stele_disk_block *)((uint8_t *)stele_device_memory(dev) + offsets[0]);
	block->payload[0] = 0; /* a name of no length */
	stele_block_seal(block, STELE_BLOCK_NAMES, offsets[0], places[0].id);
	is_reported(dev, "names: impossible contents\n"
		    "names: level 0: hash does not match the level above\n",
		    "sealed all the same");
	stele_device_close(dev);
	once.offset = offsets[0];
	if (stele_device_open_fault(make(few, few, offsets), &once, 1, &dev))
		bail("no device");
	is_reported(dev, "names: could not be read at first\n", "unreadable once");
	stele_device_close(dev);
}

/* What a device says of a bad sector, and what it says of its own end. */
static void test_unreadable(int error, bool revocable, int wanted)
{
	struct stele_fault_rule rule = {
		.kind = STELE_FAULT_FAIL, .ops = 1u << STELE_OP_READ, .error = error};
	struct stele_device *inner, *dev;
	struct stele_dataset *ds;
	uint64_t offsets[2];
	struct test_log log;

	inner = make(few, more, offsets);
	rule.offset = offsets[1];
	rule.size = 1;
	if (stele_device_open_fault(inner, &rule, 1, &dev))
		bail("no device");
	dev->revocable = revocable;
	if (!is_int(wanted, open_as(dev, NULL, 0, &log, &ds), "%s: open", strerror(error)) ||
	    wanted)
		return;
	is_without(ds, &log, strerror(error));
	stele_dataset_close(ds);
}

int main(void)
{
	static const int of_blocks[] = {EIO, ENODATA, EILSEQ, EREMOTEIO, ETIMEDOUT, EBADE,
					EUCLEAN};
	static const int of_devices[] = {ENOMEM, ENODEV, ENXIO, ESTALE, ESHUTDOWN};

	plan_lazy();
	test_flipped(STELE_VERIFY_CRC);
	test_flipped(STELE_VERIFY_DIGEST);
	test_forged();
	test_one_of_two();
	test_verify();
	for (size_t i = 0; i < sizeof(of_blocks) / sizeof(*of_blocks); i++)
		test_unreadable(of_blocks[i], false, 0);
	for (size_t i = 0; i < sizeof(of_devices) / sizeof(*of_devices); i++)
		test_unreadable(of_devices[i], false, -of_devices[i]);
	test_unreadable(ETIMEDOUT, true, -ETIMEDOUT);
	return done();
}
