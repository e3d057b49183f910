/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.c - a snapshot in memory: samples by pointer
 *
 * Either all comes when it is touched, verified, into memory of the view's own: fetched.h.
 * Or through the page cache, and the rest here is about that: one shared read-only
 * mapping of the target up to the high-water mark (cached.h). What it shows may be older than
 * the device. So a sample that does not match is dropped from the cache, and finally read
 * around it, which also serves as the reread: fresh.h keeps it, as it does what of
 * fetched ones has to be read apart.
 *
 * Any thread may request samples, also in a child after fork(). Proven digests
 * are cached for one thread at a time; a thread that finds them in use proves its own.
 *
 * The pages of a sample fault one by one, each with its own read; prefetch reads
 * them in one piece, and reports errors that would otherwise become SIGBUS on touch.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/device/cached.h"
#include "lib/image/proof.h"
#include "lib/read/check.h"
#include "lib/read/sample.h"
#include "lib/view/fetched.h"
#include "lib/view/fresh.h"

/* Samples requested ahead of those waited for. */
#define PREFETCH_WINDOW 256u

struct stele_view {
	struct stele_dataset *ds;
	uint64_t size; /* of the target, as far as it is mapped */
	struct stele_cached cached;
	struct stele_fetched *fetched; /* NULL: by the page cache */
	enum stele_verify verify;
	struct stele_proof proof; /* for DIGEST, under the lock */
	pthread_mutex_t lock;	  /* trylock only: a fork may have left it locked */
	struct stele_fresh fresh;
};

static int check_options(const struct stele_view_opts *opts,
			 const struct stele_log *log)
{
	const struct stele_option limits[] = {
		{"verify", opts->verify, STELE_VERIFY_DIGEST},
		{"memory_size", opts->memory_size,
		 opts->flags & STELE_VIEW_FETCH ? UINT64_MAX : 0},
	};
	int err = stele_options_flags(opts->flags, STELE_VIEW_FETCH, log);

	return err ? err :
		     stele_options_check(limits, sizeof(limits) / sizeof(*limits), log);
}

/* Memory for samples, of either kind. */
static int open_memory(struct stele_view *view, const struct stele_view_opts *opts)
{
	struct stele_dataset *ds = view->ds;
	int err;

	view->size = ds->image.sb.high_water;
	if (opts->flags & STELE_VIEW_FETCH)
		return stele_fetched_open(ds, view->size, view->verify,
					  opts->memory_size, &view->fetched);
	err = stele_cached_open(ds->image.dev, view->size, &view->cached);
	if (err == -EOPNOTSUPP)
		stele_log_error(&ds->image.log,
				"only block devices and files can be mapped; any target "
				"can be fetched (STELE_VIEW_FETCH)");
	return err;
}

static int view_open(struct stele_dataset *ds,
		     const struct stele_view_opts *opts,
		     struct stele_view **out)
{
	struct stele_view_opts known;
	struct stele_view *view;
	int err;

	err = stele_options_copy(opts, &known, sizeof(known), &ds->image.log);
	if (!err)
		err = check_options(&known, &ds->image.log);
	if (err)
		return err;
	view = calloc(1, sizeof(*view));
	if (!view)
		return -ENOMEM;
	view->ds = ds;
	stele_dataset_enter(ds);
	view->verify = stele_dataset_verify(ds, known.verify);
	pthread_mutex_init(&view->lock, NULL);
	err = open_memory(view, &known);
	if (!err && view->verify == STELE_VERIFY_DIGEST)
		err = stele_proof_init(&view->proof, &ds->image,
				       STELE_CHECKERS_MEMORY);
	if (err) {
		stele_view_close(view);
		return err;
	}
	*out = view;
	return 0;
}

int stele_view_open(struct stele_dataset *ds, const struct stele_view_opts *opts,
		    struct stele_view **out)
{
	return STELE_CALL(view_open(ds, opts, out),
			  "cannot open a view");
}

void stele_view_close(struct stele_view *view)
{
	if (!view)
		return;
	stele_fetched_close(view->fetched);
	stele_cached_close(&view->cached);
	stele_proof_release(&view->proof);
	stele_fresh_release(&view->fresh);
	pthread_mutex_destroy(&view->lock);
	stele_dataset_leave(view->ds);
	free(view);
}

static int locate(const struct stele_view *view, uint64_t id,
		  struct stele_slot *slot)
{
	int err = stele_slot_locate(view->ds, id, slot);

	if (!err && !range_ok(slot->offset, slot->size, view->size))
		err = -EUCLEAN;
	return err;
}

/* ---- samples ---------------------------------------------------------------- */

static int decode(const struct stele_view *view, const struct stele_slot *slot,
		  struct stele_proof *proof, struct stele_sample *out)
{
	return stele_sample_decode(view->ds, slot, view->cached.memory + slot->offset,
				   view->verify, proof, STELE_LOG_INFO, out);
}

static int read_past(struct stele_view *view, const struct stele_slot *slot,
		     struct stele_proof *proof, struct stele_sample *out)
{
	int err = stele_sample_read(view->ds, slot, view->verify, proof,
				    STELE_LOG_ERROR, out);

	if (!err)
		err = stele_fresh_add(&view->fresh, out, slot->read_size);
	if (err == -ENOBUFS)
		stele_log_error(&view->ds->image.log,
				"page cache is stale: a view keeps at most %"
				PRIu64 " bytes read around it; use a reader",
				(uint64_t)STELE_FRESH_SIZE_MAX);
	free(out->buffer);
	out->buffer = NULL;
	return err;
}

static int find_fetched(struct stele_view *view, const struct stele_slot *slot,
			struct stele_proof *proof, struct stele_sample *out)
{
	int ret = stele_fetched_sample(view->fetched, slot, proof, out);

	return ret > 0 ? read_past(view, slot, proof, out) : ret;
}

static int find(struct stele_view *view, const struct stele_slot *slot,
		struct stele_proof *proof, struct stele_sample *out)
{
	int err;

	if (stele_fresh_find(&view->fresh, slot->id, out))
		return 0;
	if (view->fetched)
		return find_fetched(view, slot, proof, out);
	err = decode(view, slot, proof, out);
	if (err == -EBADMSG) {
		stele_cached_drop(&view->cached, slot->offset, slot->size);
		err = decode(view, slot, proof, out);
		if (err == -EBADMSG)
			err = read_past(view, slot, proof, out);
		if (!err)
			stele_slot_log_again(view->ds, slot);
	}
	return stele_slot_judge(view->ds, slot, err);
}

/* The view's proof, or, if that is in use, *own. Return: 0; -ENOMEM. */
static int take_proof(struct stele_view *view, struct stele_proof *own,
		      struct stele_proof **proof)
{
	*own = (struct stele_proof){0};
	*proof = NULL;
	if (view->verify != STELE_VERIFY_DIGEST)
		return 0;
	*proof = pthread_mutex_trylock(&view->lock) ? own : &view->proof;
	return *proof == own ? stele_proof_init(own, &view->ds->image, 0) : 0;
}

static void give_proof(struct stele_view *view, struct stele_proof *own,
		       const struct stele_proof *proof)
{
	if (proof == &view->proof)
		pthread_mutex_unlock(&view->lock);
	stele_proof_release(own);
}

/* Fetched samples stay with the process that has the thread. */
static bool is_gone(const struct stele_view *view)
{
	return view->fetched && stele_fetched_is_forked(view->fetched);
}

static int view_sample(struct stele_view *view, uint64_t id,
		       struct stele_sample *out)
{
	struct stele_proof own, *proof;
	struct stele_slot slot;
	int err;

	*out = (struct stele_sample){.id = id};
	err = is_gone(view) ? -EOWNERDEAD : locate(view, id, &slot);
	if (!err) {
		err = take_proof(view, &own, &proof);
		if (!err)
			err = find(view, &slot, proof, out);
		give_proof(view, &own, proof);
	}
	if (err)
		*out = (struct stele_sample){.id = id, .status = err};
	return err;
}

int stele_view_sample(struct stele_view *view, uint64_t id,
		      struct stele_sample *out)
{
	return STELE_CALL(view_sample(view, id, out),
			  "cannot map sample %" PRIu64, id);
}

/* ---- prefetch --------------------------------------------------------------- */

static void start_sample(const struct stele_view *view, uint64_t id)
{
	struct stele_slot slot;

	if (!locate(view, id, &slot))
		stele_cached_start(&view->cached, slot.offset, slot.size);
}

static int finish_sample(const struct stele_view *view, uint64_t id)
{
	struct stele_slot slot;
	int err = locate(view, id, &slot);

	return err ? err : stele_cached_finish(&view->cached, slot.offset, slot.size);
}

static int prefetch_fetched(struct stele_view *view, const uint64_t *ids,
			    size_t count)
{
	struct stele_proof own, *proof;
	int err = is_gone(view) ? -EOWNERDEAD : take_proof(view, &own, &proof);

	if (err)
		return err;
	err = stele_fetched_prefetch(view->fetched, ids, count, proof);
	give_proof(view, &own, proof);
	return err;
}

static int prefetch_cached(struct stele_view *view, const uint64_t *ids,
			   size_t count)
{
	size_t started = 0;
	int err = 0;

	for (size_t i = 0; i < count; i++) {
		int one;

		for (; started < count && started < i + PREFETCH_WINDOW;
		     started++)
			start_sample(view, ids[started]);
		one = finish_sample(view, ids[i]);
		if (!err)
			err = one;
	}
	return err;
}

int stele_view_prefetch(struct stele_view *view, const uint64_t *ids,
			size_t count)
{
	return STELE_CALL(view->fetched ? prefetch_fetched(view, ids, count) :
					  prefetch_cached(view, ids, count),
			  "cannot prefetch");
}
