/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record-verdicts.c - a damaged or forged record: every path says the same
 *
 * Each corruption of a small and of a large sample is read, streamed, viewed,
 * verified, copied and compacted, by the public calls. With the checksum made good
 * again only the structure, the rules or the digest can tell.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/read/dataset.h"
#include "lib/stele_image.h"
#include "lib/stele_write.h"
#include "tests/fixture/image.h"
#include "tests/tap.h"

#define IMAGE_SIZE (UINT64_C(16) << 20)
#define LARGE_SIZE ((UINT64_C(5) << 20) + 77) /* streamed by all who can */

static char path[512], target[520];
static int file;

/* ---- paths ------------------------------------------------------------------- */

static struct stele_dataset *open_dataset(void)
{
	struct stele_dataset *ds;

	if (stele_dataset_open(path, &STELE_OPTS(stele_open_opts,
						 .verify = STELE_VERIFY_DIGEST),
			       &ds))
		bail("cannot open the image");
	return ds;
}

static int by_read(uint64_t id)
{
	struct stele_dataset *ds = open_dataset();
	struct stele_sample sample;
	int ret = stele_dataset_read(ds, id, &sample);

	stele_sample_release(&sample);
	stele_dataset_close(ds);
	return ret;
}

static int swallow(void *user, const void *data, size_t size)
{
	(void)user, (void)data, (void)size;
	return 0;
}

static int by_stream(uint64_t id)
{
	struct stele_dataset *ds = open_dataset();
	int ret = stele_dataset_stream(ds, id, swallow, NULL);

	stele_dataset_close(ds);
	return ret;
}

static int by_view(uint64_t id)
{
	struct stele_dataset *ds = open_dataset();
	struct stele_sample sample;
	struct stele_view *view;
	int ret;

	if (stele_view_open(ds, NULL, &view))
		bail("no view");
	ret = stele_view_sample(view, id, &sample);
	stele_view_close(view);
	stele_dataset_close(ds);
	return ret;
}

struct found {
	uint64_t id;
	int error;
};

static void keep_error(void *user, const struct stele_damage *damage)
{
	struct found *found = user;

	if (damage->has_id && damage->id == found->id)
		found->error = damage->error;
}

static int by_verify(uint64_t id)
{
	struct found found = {.id = id};
	struct stele_verify_report report = {.size = sizeof(report)};

	if (stele_verify(path, &STELE_OPTS(stele_verify_opts,
					   .damage = keep_error,
					   .damage_user = &found, .jobs = 1),
			 &report) < 0)
		bail("cannot verify");
	return found.error;
}

static int by_copy(uint64_t id)
{
	struct stele_copy_report report = {.size = sizeof(report)};
	int fd;

	(void)id;
	unlink(target);
	fd = open(target, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, IMAGE_SIZE))
		sysbail("target");
	close(fd);
	return stele_copy(path, target, NULL, &report);
}

static int by_compact(uint64_t id)
{
	struct stele_build_report report = {.size = sizeof(report)};

	(void)id;
	return stele_compact(path, "v2", NULL, &report);
}

static const struct {
	const char *name;
	int (*run)(uint64_t id);
} paths[] = {
	{"read", by_read},     {"stream", by_stream}, {"view", by_view},
	{"verify", by_verify}, {"copy", by_copy},     {"compact", by_compact},
};

/* ---- corruptions --------------------------------------------------------------- */

struct slot {
	uint8_t *data;
	uint64_t size, tail_at;
	struct stele_record record; /* as it was */
	struct stele_disk_trailer *trailer;
};

static void nothing(struct slot *s)
{
	(void)s;
}

static void payload_bit(struct slot *s)
{
	s->data[s->record.payload_size / 2] ^= 4;
}

static void key_bit(struct slot *s)
{
	s->data[s->tail_at] ^= 1;
}

static void scalar_bit(struct slot *s)
{
	s->data[s->tail_at + s->record.key_size + 2] ^= 1;
}

static void checksum_bit(struct slot *s)
{
	s->data[s->size - 1] ^= 0x80;
}

static void padding_byte(struct slot *s)
{
	s->data[s->record.payload_size] = 1;
}

static void reserved_byte(struct slot *s)
{
	s->trailer->reserved = le16_put(1);
}

static void unknown_flag(struct slot *s)
{
	s->trailer->flags = le16_put(2);
}

static void no_key(struct slot *s)
{
	s->trailer->key_size = le16_put(0);
}

static void large_key(struct slot *s)
{
	s->trailer->key_size = le16_put(4001);
}

static void zero_in_key(struct slot *s)
{
	s->data[s->tail_at] = 0;
}

static void large_payload(struct slot *s)
{
	s->trailer->payload_size = le48_put(s->size);
}

/* All is as it should be in a record that would have a smaller slot. */
static void small_payload(struct slot *s)
{
	memset(s->data, 0, s->tail_at);
	s->trailer->payload_size = le48_put(0);
}

/* A void record, which the snapshot does not leave out. */
static void void_record(struct slot *s)
{
	memset(s->data, 0, s->size);
	s->trailer->flags = le16_put(STELE_RECORD_VOID);
}

static const struct {
	const char *name;
	void (*corrupt)(struct slot *s);
	bool sealed; /* with the checksum of what it has become */
	int error;
} corruptions[] = {
	{"a bit of the payload", payload_bit, false, -EBADMSG},
	{"a bit of the key", key_bit, false, -EBADMSG},
	{"a bit of the checksum", checksum_bit, false, -EBADMSG},
	{"padding", padding_byte, false, -EBADMSG},
	{"key size", large_key, false, -EBADMSG},
	{"payload size", large_payload, false, -EBADMSG},
	{"another payload, sealed", payload_bit, true, -EBADMSG},
	{"another scalar, sealed", scalar_bit, true, -EBADMSG},
	{"padding, sealed", padding_byte, true, -EUCLEAN},
	{"reserved bytes, sealed", reserved_byte, true, -EUCLEAN},
	{"unknown flag, sealed", unknown_flag, true, -EUCLEAN},
	{"no key, sealed", no_key, true, -EUCLEAN},
	{"key too large, sealed", large_key, true, -EUCLEAN},
	{"zero byte in the key, sealed", zero_in_key, true, -EUCLEAN},
	{"payload too large, sealed", large_payload, true, -EUCLEAN},
	{"slot of a larger record, sealed", small_payload, true, -EUCLEAN},
	{"void though live, sealed", void_record, true, -EUCLEAN},
	{"nothing", nothing, true, 0},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void try_all(uint64_t id, const char *what)
{
	struct stele_dataset *ds = open_dataset();
	const struct stele_segment *segment = &ds->snapshot.segments[0];
	const uint64_t owner = segment->descriptor.id;
	uint8_t *good, *bad;
	struct slot s = {0};
	const char *why;
	uint64_t offset;

	stele_segment_slot(segment, id, &offset, &s.size);
	good = malloc(s.size);
	bad = malloc(s.size);
	if (!good || !bad ||
	    pread(file, good, s.size, (off_t)offset) != (ssize_t)s.size ||
	    stele_record_decode(good, s.size, &segment->shape, &s.record, &why))
		bail("no record");
	s.tail_at = (uint64_t)((const uint8_t *)s.record.key - good);
	s.data = bad;
	s.trailer = (void *)(bad + s.size - sizeof(*s.trailer));
	stele_dataset_close(ds);
	if (s.tail_at == s.record.payload_size)
		bail("no padding in the slot of a %s sample", what);

	for (size_t i = 0; i < COUNT(corruptions); i++) {
		memcpy(bad, good, s.size);
		corruptions[i].corrupt(&s);
		if (corruptions[i].sealed)
			s.trailer->crc = le32_put(
				stele_record_crc(owner, id, bad, s.size));
		if (pwrite(file, bad, s.size, (off_t)offset) != (ssize_t)s.size)
			sysbail("pwrite");
		for (size_t k = 0; k < COUNT(paths) - !corruptions[i].error; k++)
			is_int(corruptions[i].error, paths[k].run(id),
			       "%s of a %s sample: %s", corruptions[i].name,
			       what, paths[k].name);
	}
	free(bad);
	free(good);
}

static void make_image(void)
{
	static uint8_t large[LARGE_SIZE];
	const struct test_sample samples[] = {
		{.key = "a", .data = "some bytes", .size = 10, .label = 1},
		{.key = "bc", .data = large, .size = 3001, .label = 2},
		{.key = "def", .data = large, .size = LARGE_SIZE, .label = 3},
	};
	const struct test_segment segment = {
		.samples = samples, .count = COUNT(samples), .labels = true};
	struct stele_device *dev;

	for (size_t i = 0; i < sizeof(large); i++)
		large[i] = (uint8_t)(i * 7 + i / 256);
	dev = test_image_simple(&segment, NULL, 0, IMAGE_SIZE);
	snprintf(path, sizeof(path), "%s/image", test_tmpdir());
	snprintf(target, sizeof(target), "%s/target", test_tmpdir());
	file = open(path, O_RDWR | O_CREAT, 0600);
	if (file < 0 || pwrite(file, stele_device_memory(dev), IMAGE_SIZE, 0) !=
				(ssize_t)IMAGE_SIZE)
		sysbail("%s", path);
	stele_device_close(dev);
}

int main(void)
{
	plan_lazy();
	make_image();
	try_all(0, "tiny");
	try_all(1, "small");
	try_all(2, "large");
	is_int(0, by_compact(0), "nothing of any sample: compact");
	close(file);
	return done();
}
