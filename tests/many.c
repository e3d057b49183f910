/* SPDX-License-Identifier: Apache-2.0 */
/*
 * many.c - see many.h
 */
#include "tests/many.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/section.h"
#include "lib/verify/verify.h"
#include "tests/tap.h"

static const char *const names[] = {"bird", "cat", "dog", NULL};

static uint64_t random_of(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

/* Keys of their own, but for the last segment, which has the first one's. */
static struct test_sample *make_samples(const struct many *m, uint32_t segment,
					uint64_t seed)
{
	const uint64_t first = segment + 1 == m->segments ? 0 : segment;
	struct test_sample *samples = test_samples(
		MANY_EACH, segment == 2 ? 90000 : 2000, seed + segment);

	for (uint64_t i = 0; i < MANY_EACH; i++) {
		char *key;

		if (asprintf(&key, "%s/%05" PRIu64, names[i % 3],
			     i + first * MANY_EACH) < 0)
			bail("no memory");
		samples[i].key = key;
		samples[i].label = (int64_t)(i % 3);
	}
	samples[5].gone = segment == 1 && m->segments > 2;
	return samples;
}

/* Which numbers a segment leaves out. */
static uint64_t choose_deleted(const struct many *m, uint32_t segment,
			       uint64_t *seed, uint64_t *out)
{
	const bool replaced = segment == 0 && m->segments > 1;
	bool gone[MANY_EACH] = {false};
	uint64_t count = 0;

	for (uint64_t i = 0; i < MANY_EACH; i++)
		gone[m->numbers[segment][i]] =
			replaced || m->samples[segment][i].gone ||
			random_of(seed) % 7 == 0;
	for (uint64_t i = 0; i < MANY_EACH; i++)
		if (gone[i])
			out[count++] = i;
	return count;
}

void many_make(struct many *m, struct stele_device *dev, uint64_t size,
	       uint64_t seed)
{
	static const uint32_t granules[] = {16, 512, 64, 4096};
	static uint64_t deleted[MANY_SEGMENTS][MANY_EACH];
	struct test_ref refs[MANY_SEGMENTS];
	static struct test_image t;

	m->segments = 1 + (uint32_t)(seed % MANY_SEGMENTS);
	if (test_image_begin(&t, dev, size) < 0)
		bail("cannot begin an image");
	for (uint32_t i = 0; i < m->segments; i++) {
		const struct test_segment in = {
			.samples = m->samples[i] = make_samples(m, i, seed),
			.count = MANY_EACH,
			.labels = true,
			.names = names,
			.granule = granules[random_of(&seed) % 4],
			.boundary = i == 2 ? 65536 : 0,
			.order = random_of(&seed) % 2,
			.numbers = m->numbers[i],
		};

		if (test_image_segment(&t, &in) < 0)
			bail("cannot write segment %u", i);
		refs[i] = (struct test_ref){
			i, deleted[i], choose_deleted(m, i, &seed, deleted[i])};
	}
	if (test_image_snapshot(&t, "v1", refs, m->segments) < 0 ||
	    test_image_commit(&t) < 0)
		bail("cannot commit an image");
	test_image_end(&t);
}

void many_release(struct many *m)
{
	for (uint32_t i = 0; i < m->segments; i++) {
		for (uint64_t j = 0; j < MANY_EACH; j++)
			free((char *)m->samples[i][j].key);
		free(m->samples[i]);
	}
}

struct stele_dataset *many_open(struct stele_device *dev, const char *name)
{
	const struct stele_target target = {.snapshot = (char *)name};
	struct stele_dataset *ds;
	int ret = stele_dataset_create(dev, &target, NULL, &ds);

	if (ret < 0)
		bail("cannot open what was made: %s", strerror(-ret));
	return ds;
}

/* ---- comparing -------------------------------------------------------------- */

static void digest_of(const struct stele_dataset *ds, uint64_t id,
		      uint8_t digest[32])
{
	const struct stele_segment *segment;
	uint64_t number;

	if (stele_snapshot_locate(&ds->snapshot, id, &segment, &number) ||
	    stele_segment_digest(&ds->image, segment, number, digest))
		bail("no digest of %" PRIu64, id);
}

static bool same_sample(struct stele_dataset *a, uint64_t id,
			struct stele_dataset *b)
{
	uint8_t da[32], db[32];
	struct stele_sample sample;
	uint64_t there;
	bool same;

	if (stele_dataset_read(a, id, &sample) < 0)
		bail("cannot read sample %" PRIu64, id);
	same = stele_dataset_find(b, sample.key, sample.key_size, &there) == 0;
	stele_sample_release(&sample);
	if (!same)
		return false;
	digest_of(a, id, da);
	digest_of(b, there, db);
	return memcmp(da, db, 32) == 0;
}

static bool same_field(const struct stele_dataset *a,
		       const struct stele_dataset *b, uint32_t field)
{
	struct stele_field fa, fb;

	if (stele_dataset_field(a, field, &fa) ||
	    stele_dataset_field(b, field, &fb) || fa.type != fb.type ||
	    fa.name_count != fb.name_count || strcmp(fa.name, fb.name))
		return false;
	for (uint32_t i = 0; i < fa.name_count; i++) {
		const char *na, *nb;

		if (stele_dataset_class_name(a, field, i, &na) ||
		    stele_dataset_class_name(b, field, i, &nb) ||
		    strcmp(na, nb))
			return false;
	}
	return true;
}

static void say(void *user, const struct stele_damage *damage)
{
	(void)user;
	diag("%s at %" PRIu64 ": %s", damage->what, damage->offset,
	     damage->detail);
}

void many_compare(struct stele_dataset *a, struct stele_dataset *b,
		  const char *what)
{
	struct stele_verify_opts opts = {.size = sizeof(opts), .damage = say};
	struct stele_verify_report found = {0};
	struct stele_dataset_info ia, ib;
	uint64_t wrong = 0;

	stele_dataset_info(a, &ia);
	stele_dataset_info(b, &ib);
	is_uint(ia.sample_count, ib.sample_count, "%s: as many samples", what);
	is_uint(1, ib.segment_count, "%s: in one segment", what);
	is_uint(0, ib.deleted_count, "%s: none deleted", what);
	is_uint(ia.field_count, ib.field_count, "%s: as many fields", what);
	for (uint32_t i = 0; i < ia.field_count; i++)
		wrong += !same_field(a, b, i);
	is_uint(0, wrong, "%s: fields and names are the same", what);
	for (uint64_t i = 0; i < ia.sample_count; i++)
		wrong += !same_sample(a, i, b);
	is_uint(0, wrong, "%s: samples are the same", what);
	is_int(0, stele_verify_image(&b->image, -1, &opts, &found),
	       "%s: sound", what);
}
