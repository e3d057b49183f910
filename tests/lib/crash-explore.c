/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash-explore.c - whatever a crash leaves, recovery finds what was promised
 *
 * A history (build over a blank or an old target, three commits) is recorded
 * through the fault device. Then every flush epoch of it is cut: prefixes of its writes, all
 * subsets where they are few, else all but one, only one, and random ones;
 * superblocks torn at every eighth byte, from the front and from the back. Each state must be
 * the last acknowledged generation or the one in flight, byte for byte.
 * From states in which a superblock was in flight the history goes on:
 * recover, commit, and cut that in the same way.
 */
#include "tests/image.h"
#include "tests/tap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/device/fault.h"

#define IMAGE_SIZE  (UINT64_C(0x200000) + 72 * 4096)
#define EXPECT_MAX  8u
#define WRITES_MAX  64u
#define EXHAUSTIVE  10u
#define RANDOM	    256u
#define RESTART_MAX 48u

enum expect_kind {
	EXPECT_BLANK,
	EXPECT_UNFINISHED,
	EXPECT_IMAGE,
};

/* What a user may count on from one moment on. */
struct expect {
	enum expect_kind kind;
	size_t log_count; /* entries of the log at that moment */
	uint8_t uuid[STELE_UUID_BYTES];
	uint64_t generation;
	uint8_t *bytes; /* of the whole target */
};

struct history {
	struct stele_device *fault;
	struct expect expect[EXPECT_MAX];
	unsigned int count;
	uint8_t *base; /* the target before it began */
};

/* States are made in place, here, and recovered from here. */
static struct stele_device *replay;
static uint8_t *state;	 /* its bytes */
static uint8_t *durable; /* what no crash can take back */

static struct {
	uint64_t states, bad;
	const char *name;
} seen;

static struct test_sample *samples;
static unsigned int first_sample; /* so that a second build has other bytes */

static uint8_t *copy_of(const void *bytes)
{
	uint8_t *copy = malloc(IMAGE_SIZE);

	if (!copy)
		bail("no memory");
	return memcpy(copy, bytes, IMAGE_SIZE);
}

/* ---- recording --------------------------------------------------------------- */

static void expect(struct history *h, enum expect_kind kind,
		   const struct stele_superblock *sb)
{
	struct expect *e = &h->expect[h->count++];

	e->kind = kind;
	stele_fault_log(h->fault, &e->log_count);
	if (kind != EXPECT_IMAGE)
		return;
	memcpy(e->uuid, sb->uuid, sizeof(e->uuid));
	e->generation = sb->generation;
	e->bytes = stele_device_alloc(h->fault, IMAGE_SIZE);
	if (!e->bytes ||
	    stele_device_read(h->fault, e->bytes, 0, IMAGE_SIZE) < 0)
		bail("cannot keep what is expected");
}

static void open_history(struct history *h, const uint8_t *base)
{
	struct stele_device *inner;

	memset(h, 0, sizeof(*h));
	h->base = copy_of(base);
	if (stele_device_open_memory(IMAGE_SIZE, 512, &inner) < 0)
		bail("no memory device");
	memcpy(stele_device_memory(inner), base, IMAGE_SIZE);
	if (stele_device_open_fault(inner, NULL, 0, &h->fault) < 0)
		bail("no fault device");
	stele_fault_keep_data(h->fault, true);
}

static void close_history(struct history *h)
{
	stele_device_close(h->fault);
	for (unsigned int i = 0; i < h->count; i++)
		free(h->expect[i].bytes);
	free(h->base);
}

static void add_generation(struct history *h, struct test_image *t)
{
	const struct test_segment in = {
		.samples = samples + first_sample + t->counts.segments,
		.count = 3};
	static const uint64_t deleted[] = {1};
	const struct test_ref ref = {t->counts.segments, deleted, 1};
	char name[] = "v0";

	name[1] = (char)('0' + t->counts.snapshots);
	if (test_image_segment(t, &in) < 0 ||
	    test_image_snapshot(t, name, &ref, 1) < 0 ||
	    test_image_commit(t) < 0)
		bail("a commit failed");
	expect(h, EXPECT_IMAGE, &t->image.sb);
}

/* Begin, and so many commits; what was there before is expected first. */
static void record_build(struct history *h, const uint8_t *base,
			 unsigned int commits)
{
	static struct test_image t;
	struct stele_image old;

	open_history(h, base);
	if (stele_image_load(h->fault, NULL, &old) == 0) {
		expect(h, EXPECT_IMAGE, &old.sb);
		old.dev = NULL;
		stele_image_release(&old);
	} else {
		expect(h, EXPECT_BLANK, NULL);
	}
	if (test_image_begin(&t, h->fault, IMAGE_SIZE) < 0)
		bail("begin failed");
	t.piece = 4096;
	expect(h, EXPECT_UNFINISHED, NULL);
	for (unsigned int i = 0; i < commits; i++)
		add_generation(h, &t);
	test_image_end(&t);
}

/* Recover, and one commit more. False: there is nothing to go on with. */
static bool record_restart(struct history *h, const uint8_t *base)
{
	static struct test_image t;

	open_history(h, base);
	if (test_image_resume(&t, h->fault) < 0)
		return false;
	t.piece = 8192;
	expect(h, EXPECT_IMAGE, &t.image.sb);
	add_generation(h, &t);
	test_image_end(&t);
	return true;
}

/* ---- judging ------------------------------------------------------------------- */

static bool same_bytes(const struct expect *e, uint64_t offset, uint64_t size)
{
	return !memcmp(state + offset, e->bytes + offset, size);
}

/* Is all that this image refers to what it was when it was acknowledged? */
static bool same_content(const struct expect *e,
			 const struct stele_image *image)
{
	bool same = image->sb.generation == e->generation &&
		    !memcmp(image->sb.uuid, e->uuid, sizeof(e->uuid)) &&
		    same_bytes(e, image->sb.catalog_offset,
			       image->sb.catalog_size);

	for (uint32_t i = 0; i < image->catalog.counts.segments; i++) {
		struct stele_catalog_segment where;

		stele_catalog_segment(&image->catalog, i, &where);
		same = same && same_bytes(e, where.offset, where.size);
	}
	for (uint32_t i = 0; i < image->catalog.counts.refs; i++) {
		struct stele_catalog_ref ref;

		stele_catalog_ref(&image->catalog, i, &ref);
		same = same && same_bytes(e, ref.deleted_offset, 4096);
	}
	return same;
}

static bool is_as(const struct expect *e, int ret,
		  const struct stele_image *image)
{
	switch (e->kind) {
	case EXPECT_BLANK: /* a torn superblock is no image, either */
		return ret == -EMEDIUMTYPE || ret == -EBADMSG;
	case EXPECT_UNFINISHED:
		return ret == -ENODATA;
	default:
		return ret == 0 && same_content(e, image);
	}
}

/* The state at hand, when `floor` is what was acknowledged. */
static void judge(const struct history *h, unsigned int floor)
{
	struct stele_image image;
	int ret = stele_image_load(replay, NULL, &image);
	bool good = is_as(&h->expect[floor], ret, &image);

	if (!good && floor + 1 < h->count)
		good = is_as(&h->expect[floor + 1], ret, &image);
	seen.states++;
	if (!good && seen.bad++ < 5)
		diag("%s: state %" PRIu64 ": load %d, generation %" PRIu64
		     ", acknowledged %" PRIu64,
		     seen.name, seen.states, ret,
		     ret ? 0 : image.sb.generation,
		     h->expect[floor].generation);
	if (ret == 0) {
		image.dev = NULL;
		stele_image_release(&image);
	}
}

/* ---- cutting --------------------------------------------------------------------- */

struct epoch {
	const struct history *h;
	const struct stele_fault_entry *writes[WRITES_MAX];
	unsigned int count;
	unsigned int floor; /* acknowledged when its last write was issued */
};

/* States from which the history goes on. */
static uint8_t *restarts[RESTART_MAX];
static unsigned int restart_count;

static void put(const struct stele_fault_entry *w, uint64_t from, uint64_t to)
{
	memcpy(state + w->offset + from, (const uint8_t *)w->data + from,
	       to - from);
}

static void undo(const struct epoch *e)
{
	for (unsigned int i = 0; i < e->count; i++)
		memcpy(state + e->writes[i]->offset,
		       durable + e->writes[i]->offset, e->writes[i]->size);
}

static void try_subset(const struct epoch *e, uint64_t mask)
{
	for (unsigned int i = 0; i < e->count; i++)
		if (mask >> i & 1)
			put(e->writes[i], 0, e->writes[i]->size);
	judge(e->h, e->floor);
	undo(e);
}

static void try_subsets(const struct epoch *e)
{
	const uint64_t all = (UINT64_C(1) << e->count) - 1;
	uint64_t random = e->count;

	if (e->count <= EXHAUSTIVE) {
		for (uint64_t mask = 0; mask <= all; mask++)
			try_subset(e, mask);
		return;
	}
	for (unsigned int i = 0; i <= e->count; i++)
		try_subset(e, (UINT64_C(1) << i) - 1);
	for (unsigned int i = 0; i < e->count; i++) {
		try_subset(e, UINT64_C(1) << i);
		try_subset(e, all & ~(UINT64_C(1) << i));
	}
	for (unsigned int i = 0; i < RANDOM; i++) {
		random = random * UINT64_C(6364136223846793005) + 1;
		try_subset(e, (random ^ random >> 29) & all);
	}
}

static bool is_superblock(const struct stele_fault_entry *w)
{
	return w->offset < STELE_DATA_OFFSET;
}

static void keep_restart(void)
{
	if (restart_count < RESTART_MAX)
		restarts[restart_count++] = copy_of(state);
}

/* One superblock torn at `at`, the other writes as `mask` says. */
static void try_tear(const struct epoch *e, unsigned int torn, uint64_t mask,
		     uint64_t at, bool back, bool restart)
{
	const struct stele_fault_entry *w = e->writes[torn];

	for (unsigned int i = 0; i < e->count; i++)
		if (i != torn && mask >> i & 1)
			put(e->writes[i], 0, e->writes[i]->size);
	put(w, back ? at : 0, back ? w->size : at);
	judge(e->h, e->floor);
	if (restart)
		keep_restart();
	undo(e);
}

/* All superblocks of the epoch torn, each at its own place. */
static void try_all_torn(const struct epoch *e, uint64_t at, uint64_t step)
{
	for (unsigned int i = 0; i < e->count; i++) {
		const struct stele_fault_entry *w = e->writes[i];

		if (is_superblock(w))
			put(w, 0, at % (w->size + 8));
		else
			put(w, 0, w->size);
		at += step;
	}
	judge(e->h, e->floor);
	undo(e);
}

static void try_tears(const struct epoch *e, bool restart)
{
	const uint64_t all = (UINT64_C(1) << e->count) - 1;

	for (unsigned int i = 0; i < e->count; i++) {
		if (!is_superblock(e->writes[i]))
			continue;
		for (uint64_t at = 0; at <= e->writes[i]->size; at += 8) {
			bool keep = restart && at % 0x800 == 0x40;

			try_tear(e, i, 0, at, false, keep);
			try_tear(e, i, all, at, false, keep);
			try_tear(e, i, 0, at, true, false);
			try_tear(e, i, all, at, true, false);
			try_all_torn(e, at, 0);
			try_all_torn(e, at, 88);
			try_all_torn(e, at, 2048);
		}
	}
}

static void explore_epoch(struct epoch *e, bool restart)
{
	bool superblock = false;

	try_subsets(e);
	try_tears(e, restart);
	for (unsigned int i = 0; i < e->count; i++)
		superblock |= is_superblock(e->writes[i]);
	for (uint64_t mask = 0; restart && superblock && e->count == 2 &&
				mask < 4; mask++) {
		for (unsigned int i = 0; i < 2; i++)
			if (mask >> i & 1)
				put(e->writes[i], 0, e->writes[i]->size);
		keep_restart();
		undo(e);
	}
	for (unsigned int i = 0; i < e->count; i++) {
		const struct stele_fault_entry *w = e->writes[i];

		put(w, 0, w->size);
		memcpy(durable + w->offset, w->data, w->size);
	}
	e->count = 0;
}

static void explore(const struct history *h, bool restart)
{
	const struct stele_fault_entry *log;
	struct epoch e = {.h = h};
	size_t count;

	log = stele_fault_log(h->fault, &count);
	memcpy(state, h->base, IMAGE_SIZE);
	memcpy(durable, h->base, IMAGE_SIZE);
	for (size_t i = 0; i <= count; i++) {
		while (e.floor + 1 < h->count &&
		       h->expect[e.floor + 1].log_count <= i)
			e.floor++;
		if (i == count || log[i].op == STELE_OP_FLUSH)
			explore_epoch(&e, restart);
		else if (log[i].op == STELE_OP_WRITE)
			e.writes[e.count++] = &log[i];
		if (e.count == WRITES_MAX)
			bail("too many writes in an epoch");
	}
	judge(h, h->count - 1);
}

/* ---- histories ---------------------------------------------------------------------- */

static void report(const char *name)
{
	static uint64_t total;

	total += seen.states;
	is_uint(0, seen.bad, "%s: all of %" PRIu64 " states are good", name,
		seen.states);
	diag("%" PRIu64 " states so far", total);
	seen.states = seen.bad = 0;
}

static void explore_build(const char *name, const uint8_t *base,
			  uint8_t **last)
{
	struct history h;

	seen.name = name;
	record_build(&h, base, 3);
	explore(&h, true);
	report(name);
	if (last)
		*last = copy_of(state);
	close_history(&h);
}

static void explore_restarts(void)
{
	unsigned int went_on = 0;

	seen.name = "restart";
	for (unsigned int i = 0; i < restart_count; i++) {
		struct history h;

		if (record_restart(&h, restarts[i])) {
			explore(&h, false);
			went_on++;
		}
		close_history(&h);
		free(restarts[i]);
	}
	restart_count = 0;
	report("recover, commit, crash");
	ok(went_on > 8, "%u restarts", went_on);
}

int main(void)
{
	uint8_t *blank = calloc(1, IMAGE_SIZE);
	uint8_t *old;

	plan_lazy();
	samples = test_samples(24, 300, 77);
	durable = calloc(1, IMAGE_SIZE);
	if (!durable || !blank ||
	    stele_device_open_memory(IMAGE_SIZE, 512, &replay) < 0)
		bail("no memory");
	state = stele_device_memory(replay);
	explore_build("over a blank target", blank, &old);
	explore_restarts();
	first_sample = 8;
	explore_build("over an old image", old, NULL);
	explore_restarts();
	stele_device_close(replay);
	free(durable);
	free(blank);
	free(old);
	free(samples);
	return done();
}
