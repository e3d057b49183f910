/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model-steps.c - random changes of two images against a plain model
 *
 * Append, update, delete, undelete, create, rename, gc, compact, copy, resize, in random
 * order, one by one or several in one commit, some with a device that fails on the way:
 * then the image is as it was, or as it should have become; a preview has foretold what
 * the commit says. After each step what has changed is compared whole,
 * digest included, now and then all, and verified. MODEL_SEED, MODEL_STEPS.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/image/key_search.h"
#include "lib/ops/append.h"
#include "lib/ops/build.h"
#include "lib/ops/compact.h"
#include "lib/ops/copy.h"
#include "lib/ops/gc.h"
#include "lib/txn/addition.h"
#include "lib/txn/txn.h"
#include "lib/verify/verify.h"
#include "tests/fixture/change.h"
#include "tests/device/device.h"
#include "tests/crash/model.h"
#include "tests/tap.h"

#define STEPS	    10000u
#define DISK_SHARE  10u /* one of so many: each takes some 150 reads of a disk */
#define IMAGES	    2u
#define DEVICE_SIZE (UINT64_C(24) << 20)
#define SIZE_FIRST  (UINT64_C(6) << 20)
#define CHECK_ALL   50u
#define FAULT_EVERY 8u
#define FAULT_WITHIN 40u /* operations: about a step's */

struct place {
	struct stele_device *dev; /* the fault device */
	uint64_t size;		  /* of it that shows */
	struct model_image model;
	/* Commits until both slots are whole again, mirrors and all. */
	unsigned int torn;
};

struct steps {
	uint64_t random;
	int64_t now;
	struct place places[IMAGES];
	struct model_world world;
	unsigned int names; /* given out */
	unsigned int done[16], failed;
	bool broken; /* a fault is armed */
};

static unsigned int draw(struct steps *s, unsigned int below)
{
	return (unsigned int)(model_random(&s->random) % below);
}

static struct model_snapshot *draw_snapshot(struct steps *s,
					    struct model_image *model)
{
	return &model->snapshots[draw(s, model->count)];
}

static void new_name(struct steps *s, char name[64])
{
	snprintf(name, 64, "s%u", ++s->names);
}

/* ---- steps ----------------------------------------------------------------- */

/*
 * Each changes `next`, a copy of the place's model, and the image. The name
 * that is to be compared goes to `touched`.
 */
struct step {
	struct steps *s;
	struct place *place, *other;
	struct stele_txn *writer;
	struct model_image *next;
	char touched[64];
	bool combines; /* it goes on with other changes: do not commit */
	bool foretold; /* false: a preview said something else than the commit */
};

/* Commit what a step has changed, unless there is more to come. */
static int finish(const struct step *step, int ret)
{
	if (ret || step->combines || step->writer->state != STELE_TXN_DIRTY)
		return ret;
	return stele_txn_publish(step->writer, step->s->now);
}

static struct stele_build_opts write_opts(const struct step *step)
{
	static const uint32_t boundaries[] = {1, 4096, 65536};
	static const uint32_t granules[] = {0, 16, 64, 512};
	struct steps *s = step->s;

	return (struct stele_build_opts){
		.size = sizeof(struct stele_build_opts),
		.time = s->now,
		.memory_size = 4 << 20,
		.jobs = 1 + draw(s, 2),
		.granule = granules[draw(s, 4)],
		.order = draw(s, 2),
		.boundary = boundaries[draw(s, 3)],
	};
}

static int do_append(struct step *step)
{
	static const uint32_t flags[] = {
		0, STELE_APPEND_UPDATE, STELE_APPEND_DELETE_MISSING,
		STELE_APPEND_UPDATE | STELE_APPEND_QUICK,
		STELE_APPEND_UPDATE | STELE_APPEND_DELETE_MISSING,
	};
	struct steps *s = step->s;
	const struct model_snapshot *base = draw_snapshot(s, step->next);
	struct stele_build_opts opts = write_opts(step);
	struct stele_build_report report;
	struct stele_builder builder;
	bool chosen[MODEL_KEYS];
	struct fake fake;
	int ret;

	model_turn(&s->world, &s->random, s->now);
	model_choose(&s->random, chosen);
	new_name(s, step->touched);
	opts.flags = flags[draw(s, 5)] | STELE_FORCE |
		     STELE_BUILD_ALLOW_EMPTY;
	model_append(model_add(step->next, base, step->touched, s->now),
		     &s->world, chosen, opts.flags);
	model_source(&s->world, chosen, &fake);
	ret = stele_builder_init(&builder, &opts, STELE_ADD_FLAGS, &report);
	step->writer->time = s->now;
	if (!ret)
		ret = stele_txn_base(step->writer, base->name);
	if (!ret)
		ret = stele_append_on(step->writer, &builder, &fake.source);
	if (!ret)
		ret = stele_txn_snapshot(step->writer, step->touched, NULL,
					 NULL);
	stele_builder_release(&builder);
	fake_release(&fake);
	return finish(step, ret);
}

static struct stele_txn_opts change_of(const struct step *step, uint32_t flags)
{
	return (struct stele_txn_opts){
		.size = sizeof(struct stele_txn_opts),
		.time = step->s->now,
		.flags = flags,
	};
}

static int find_ids(const struct stele_txn *txn, const struct stele_key_ref *keys,
		    unsigned int count, uint64_t *ids)
{
	const struct stele_snapshot *snapshot = &txn->work->snapshot;
	int ret = 0;

	for (unsigned int i = 0; i < count && !ret; i++) {
		struct stele_key_place place = {.key = keys[i].data, .key_size = keys[i].size};

		ret = stele_snapshot_find_keys(txn->image, snapshot, &place, 1);
		if (!ret && !place.found)
			ret = -ENOENT;
		if (!ret)
			ret = stele_snapshot_id(snapshot, &snapshot->segments[place.segment],
						place.number, &ids[i]);
	}
	return ret;
}

/* Half of them by id, which those that go by key before do not change. */
static int delete_keys(struct stele_txn *txn, const struct stele_key_ref *keys,
		       unsigned int count)
{
	const unsigned int half = count / 2;
	uint64_t ids[MODEL_KEYS];
	int ret = find_ids(txn, keys, half, ids);

	if (!ret)
		ret = stele_txn_delete(txn, keys + half, count - half);
	return ret ? ret : stele_txn_delete_ids(txn, ids, half);
}

static int do_create(struct step *step)
{
	struct steps *s = step->s;
	const struct model_snapshot *base = draw_snapshot(s, step->next);
	static char texts[MODEL_KEYS][MODEL_KEY_SIZE];
	struct stele_key_ref keys[MODEL_KEYS];
	struct model_snapshot *snapshot;
	unsigned int count = 0;
	int ret;

	new_name(s, step->touched);
	snapshot = model_add(step->next, base, step->touched, s->now);
	for (unsigned int i = draw(s, 3) * draw(s, 8); i > 0; i--) {
		unsigned int key = draw(s, MODEL_KEYS);

		if (!snapshot->version[key])
			continue;
		model_key(key, texts[count]);
		keys[count] = (struct stele_key_ref){texts[count],
						     strlen(texts[count])};
		count++;
		snapshot->version[key] = 0;
		snapshot->has_digest = false;
	}
	step->writer->time = s->now;
	ret = stele_txn_base(step->writer, base->name);
	if (!ret)
		ret = delete_keys(step->writer, keys, count);
	if (!ret)
		ret = stele_txn_snapshot(step->writer, step->touched, NULL, NULL);
	return finish(step, ret);
}

static int do_rename(struct step *step)
{
	struct model_snapshot *snapshot = draw_snapshot(step->s, step->next);
	char name[64];

	memcpy(name, snapshot->name, sizeof(name));
	new_name(step->s, step->touched);
	memcpy(snapshot->name, step->touched, sizeof(step->touched));
	return finish(step, stele_txn_rename(step->writer, name, step->touched));
}

static int do_delete(struct step *step)
{
	char name[64];

	memcpy(name, draw_snapshot(step->s, step->next)->name, sizeof(name));
	model_remove(step->next, name, step->s->now);
	return finish(step, stele_txn_drop(step->writer, name));
}

/* By its own name, or another one. */
static int do_undelete(struct step *step)
{
	unsigned int index;
	char name[64];

	if (!step->next->deleted_count)
		return 0;
	index = draw(step->s, step->next->deleted_count);
	memcpy(name, step->next->deleted[index].name, sizeof(name));
	memcpy(step->touched, name, sizeof(name));
	if (draw(step->s, 2))
		new_name(step->s, step->touched);
	model_undelete(step->next, index, step->touched);
	return finish(step, stele_txn_undelete(step->writer, name,
					       strcmp(name, step->touched) ?
						       step->touched :
						       NULL));
}

static int do_gc(struct step *step)
{
	const struct stele_txn_opts change = change_of(
		step, STELE_FORCE);
	struct stele_gc_report report = {.size = sizeof(report)};

	step->next->deleted_count = 0;
	if (step->combines) {
		step->writer->time = step->s->now;
		step->writer->revoke = true;
		return stele_gc_stage(step->writer, NULL, NULL, &report);
	}
	return test_change_gc(step->writer, &change, NULL,
			    NULL, &report);
}

static int do_compact(struct step *step)
{
	struct steps *s = step->s;
	const struct model_snapshot *base = draw_snapshot(s, step->next);
	struct stele_build_opts opts = write_opts(step);
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_builder builder;
	int ret = stele_builder_init(&builder, &opts, STELE_DRY_RUN, &report);

	new_name(s, step->touched);
	model_add(step->next, base, step->touched, s->now)->has_digest = false;
	step->writer->time = s->now;
	if (!ret)
		ret = stele_compact_on(step->writer, &builder, base->name);
	if (!ret)
		ret = stele_txn_snapshot(step->writer, step->touched, NULL,
					 NULL);
	stele_builder_release(&builder);
	return finish(step, ret);
}

static int do_copy(struct step *step)
{
	struct steps *s = step->s;
	const struct model_snapshot *from = draw_snapshot(s, &step->other->model);
	struct stele_snapshot snapshot = {0};
	struct stele_copy_report report = {.size = sizeof(report)};
	struct stele_image image = {0};
	struct stele_device *dev = model_device(step->other->dev, 0);
	uint32_t index;
	int ret = stele_image_load(dev, NULL, &image);

	new_name(s, step->touched);
	model_add(step->next, from, step->touched, from->time);
	step->writer->time = s->now;
	if (ret < 0)
		stele_device_close(dev);
	if (!ret)
		ret = stele_snapshot_find(&image, from->name, NULL, &index);
	if (!ret)
		ret = stele_snapshot_load(&image, index, &snapshot);
	if (!ret)
		ret = stele_copy_on(&(struct stele_copier){
			.image = &image,
			.snapshot = &snapshot,
			.txn = step->writer,
			.name = step->touched,
			.jobs = 1,
			.report = &report,
		});
	stele_snapshot_release(&snapshot);
	stele_image_release(&image);
	return ret;
}

static int do_resize(struct step *step)
{
	struct stele_resize_report report = {.size = sizeof(report)};

	return finish(step, stele_txn_resize(step->writer, 0, &report));
}

static int do_combined(struct step *step);

static const struct {
	const char *name;
	int (*run)(struct step *step);
	unsigned int weight;
	int more; /* snapshots afterwards */
} kinds[] = {
	{"append", do_append, 6, 1},   {"create", do_create, 3, 1},
	{"rename", do_rename, 1, 0},   {"delete", do_delete, 4, -1},
	{"gc", do_gc, 2, 0},	       {"compact", do_compact, 2, 1},
	{"copy", do_copy, 2, 1},       {"resize", do_resize, 1, 0},
	{"combined", do_combined, 4, 0}, {"undelete", do_undelete, 4, 1},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static unsigned int draw_kind(struct steps *s, const struct place *place)
{
	for (;;) {
		unsigned int kind = draw(s, KINDS);
		unsigned int after = place->model.count +
				     (unsigned int)kinds[kind].more;

		if (kinds[kind].run == do_undelete && !place->model.deleted_count)
			continue;
		if (draw(s, 6) < kinds[kind].weight && after >= 1 &&
		    after < MODEL_SNAPSHOTS_MAX)
			return kind;
	}
}

/* Does a preview say what the commit will say? After a fault nothing is known. */
static int commit_combined(struct step *step)
{
	struct stele_txn *txn = step->writer;
	struct stele_txn_preview preview = {.size = sizeof(preview)};
	const uint32_t before = txn->image->catalog.counts.snapshots;
	const int foretold = stele_txn_preview(txn, &preview);
	int ret = 0;

	if (txn->state == STELE_TXN_DIRTY)
		ret = stele_txn_publish(txn, step->s->now);
	if (!step->s->broken)
		step->foretold = ret == foretold &&
				 (ret || before + preview.snapshots_added -
						 preview.snapshots_dropped ==
					 txn->image->catalog.counts.snapshots);
	return ret ? ret : stele_gc_finish(txn, NULL);
}

/* Two to four changes, any of those that leave the commit to others. */
static int do_combined(struct step *step)
{
	static int (*const parts[])(struct step *step) = {
		do_append, do_create, do_delete, do_rename,
		do_delete, do_compact, do_gc, do_resize, do_undelete,
	};
	struct steps *s = step->s;
	int ret = 0;

	step->combines = true;
	step->writer->time = s->now;
	for (unsigned int left = 2 + draw(s, 3); left > 0 && !ret;) {
		const unsigned int part = draw(s, sizeof(parts) / sizeof(*parts));

		if ((parts[part] == do_delete && step->next->count == 1) ||
		    step->next->count + 1 >= MODEL_SNAPSHOTS_MAX)
			ret = step->next->count == 1 ? 0 : do_delete(step);
		else
			ret = parts[part](step);
		left--;
	}
	return ret ? ret : commit_combined(step);
}

/* ---- one step, and what is there afterwards ---------------------------------- */

static void arm(struct steps *s, struct place *place)
{
	const struct stele_fault_rule rule = {
		.kind = STELE_FAULT_FAIL,
		.first = stele_fault_count(place->dev) + draw(s, FAULT_WITHIN),
		.count = 1,
		.error = EIO,
	};

	s->broken = draw(s, FAULT_EVERY) == 0;
	if (stele_fault_set_rules(place->dev, &rule, s->broken) < 0)
		bail("no memory");
}

static int run_step(struct steps *s, struct place *place, unsigned int kind,
		    struct step *step)
{
	const struct stele_log log = {0};
	struct stele_txn writer = {0};
	int ret;

	if ((kinds[kind].run == do_resize ||
	     (kinds[kind].run == do_combined && draw(s, 8) == 0)) &&
	    place->size < DEVICE_SIZE)
		place->size += UINT64_C(1) << 20;
	arm(s, place);
	step->writer = &writer;
	ret = stele_txn_on_device(&writer, model_device(place->dev, place->size),
				 &log);
	if (!ret)
		ret = kinds[kind].run(step);
	stele_txn_release(&writer);
	if (stele_fault_set_rules(place->dev, NULL, 0) < 0)
		bail("no memory");
	stele_fault_log_clear(place->dev);
	return ret;
}

/* A step that failed has done nothing, or all of it. */
static bool settle(struct steps *s, struct place *place,
		   struct model_image *next, const struct step *step, int ret,
		   bool whole)
{
	const char *only = whole ? NULL : step->touched;

	if (ret == 0) {
		model_commit(next);
		place->model = *next;
		return model_check(&place->model, place->dev, only);
	}
	s->failed++;
	if (s->broken && model_check_quietly(next, place->dev, only)) {
		model_commit(next);
		place->model = *next;
		return true;
	}
	if (!model_check(&place->model, place->dev, only))
		return false;
	return ret == -ENOSPC || s->broken;
}

static bool verify(struct place *place)
{
	const struct stele_verify_opts opts = {.size = sizeof(opts), .jobs = 1};
	struct stele_verify_report report = {.size = sizeof(report)};
	struct stele_device *dev = model_device(place->dev, place->size);
	struct stele_image image;
	int ret;

	if (stele_image_load(dev, NULL, &image) < 0) {
		stele_device_close(dev);
		return false;
	}
	ret = stele_verify_image(&image, -1, &opts, &report);
	stele_image_release(&image);
	return ret == 0;
}

static bool take_step(struct steps *s, unsigned int number)
{
	struct place *place = &s->places[draw(s, IMAGES)];
	struct step step = {.s = s, .place = place, .foretold = true};
	const bool whole = number % CHECK_ALL == 0;
	const unsigned int kind = draw_kind(s, place);
	struct model_image next = place->model;
	int ret;

	step.other = place == s->places ? &s->places[1] : s->places;
	step.next = &next;
	s->now++;
	ret = run_step(s, place, kind, &step);
	s->done[kind] += ret == 0;
	if (ret < 0)
		place->torn = 2;
	else if (place->torn && step.touched[0])
		place->torn--;
	if (settle(s, place, &next, &step, ret, whole || step.combines) &&
	    step.foretold &&
	    (!whole || place->torn || verify(place)))
		return true;
	if (!step.foretold)
		diag("a preview said something else");
	diag("step %u: %s of image %u returned %d (%s)", number,
	     kinds[kind].name, (unsigned int)(place - s->places), ret,
	     s->broken ? "a fault was armed" : "no fault");
	return false;
}

/* ---- a run ----------------------------------------------------------------- */

/* What is written to either from now on must be told apart when it is copied. */
static void begin_clone(struct place *place, const struct place *of)
{
	void *bytes = stele_device_alloc(of->dev, SIZE_FIRST);

	if (!bytes || stele_device_read(of->dev, bytes, 0, SIZE_FIRST) ||
	    stele_device_write(place->dev, bytes, 0, SIZE_FIRST))
		bail("cannot clone");
	free(bytes);
	place->model = of->model;
}

static void begin(struct steps *s, unsigned int index, const char *backend)
{
	struct place *place = &s->places[index];
	const struct stele_build_opts opts = {
		.size = sizeof(opts),
		.time = s->now,
		.jobs = 1,
	};
	struct stele_build_report report = {.size = sizeof(report)};
	struct model_snapshot *snapshot;
	struct stele_device *dev;
	bool chosen[MODEL_KEYS];
	struct fake fake;

	place->dev = test_fault_open(backend, DEVICE_SIZE, NULL);
	place->size = SIZE_FIRST;
	if (index > 0) {
		begin_clone(place, &s->places[0]);
		return;
	}
	model_turn(&s->world, &s->random, s->now);
	model_choose(&s->random, chosen);
	snapshot = model_add(&place->model, NULL, "v1", s->now);
	model_append(snapshot, &s->world, chosen, STELE_APPEND_UPDATE);
	model_source(&s->world, chosen, &fake);
	fake.label_from = STELE_LABEL_FROM_NONE;
	dev = model_device(place->dev, place->size);
	if (stele_build_on(dev, &fake.source, "v1", &opts, &report) < 0)
		bail("cannot build");
	stele_device_close(dev);
	model_commit(&place->model);
	fake_release(&fake);
}

static unsigned long setting(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 0) : otherwise;
}

static void test_steps(const char *backend, uint64_t seed, unsigned int count)
{
	struct steps s = {.random = seed, .now = 1000};
	unsigned int taken = 0;

	for (unsigned int i = 0; i < 8; i++)
		model_turn(&s.world, &s.random, s.now);
	for (unsigned int i = 0; i < IMAGES; i++)
		begin(&s, i, backend);
	while (taken < count && take_step(&s, taken))
		taken++;
	is_uint(count, taken, "%s: steps as in the model, seed %llu", backend,
		(unsigned long long)seed);
	for (unsigned int i = 0; i < KINDS; i++)
		ok(s.done[i] > 0 || count < 200, "%s: %u times %s", backend,
		   s.done[i], kinds[i].name);
	ok(s.failed > 0 || count < 200, "%s: %u steps failed", backend, s.failed);
	for (unsigned int i = 0; i < IMAGES; i++)
		stele_device_close(s.places[i].dev);
}

int main(void)
{
	const uint64_t seed = setting("MODEL_SEED", (unsigned long)time(NULL));
	const unsigned int steps = (unsigned int)setting("MODEL_STEPS", STEPS);

	plan_lazy();
	diag("MODEL_SEED=%llu MODEL_STEPS=%u", (unsigned long long)seed, steps);
	test_steps("memory", seed, steps);
	if (test_backend_usable("uring"))
		test_steps("uring", seed + 1, steps / DISK_SHARE);
	return done();
}
