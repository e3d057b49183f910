/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_open.c - the life of a loader, from options to the end of its threads
 *
 * Close: first no transform runs any more, then the I/O thread lets its readers drain;
 * only then is memory given back. A forked child has none of these threads, and what they
 * were changing when it was forked is left as it is.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/error.h"

#include "format/checked.h"
#include "lib/base/options.h"
#include "lib/base/workers.h"
#include "lib/read/classes.h"
#include "lib/read/loader/loader.h"
#include "lib/read/loader/shuffle.h"

#define PREFETCH_DEFAULT (UINT64_C(256) << 20)

static uint32_t default_threads(void)
{
	const uint32_t cores = stele_processors();

	return cores < STELE_LOADER_THREADS_MAX ? cores :
						  STELE_LOADER_THREADS_MAX;
}

static void take_defaults(struct stele_loader_opts *opts)
{
	if (!opts->batch_size)
		opts->batch_size = 1;
	if (!opts->world)
		opts->world = 1;
	if (!opts->workers)
		opts->workers = 1;
	if (!opts->prefetch_size)
		opts->prefetch_size = PREFETCH_DEFAULT;
	if (!opts->threads)
		opts->threads = default_threads();
}

static int check_options(const struct stele_loader_opts *opts,
			 const struct stele_log *log)
{
	const struct stele_option limits[] = {
		{"rank", opts->rank, opts->world - 1},
		{"worker", opts->worker, opts->workers - 1},
		{"batch_size", opts->batch_size, STELE_LOADER_BATCH_MAX},
		{"last", opts->last, STELE_LAST_DROP},
		{"on_error", opts->on_error, STELE_ON_ERROR_SUBSTITUTE},
		{"shuffle", opts->shuffle, STELE_SHUFFLE_NONE},
		{"epoch_size", opts->epoch_size, STELE_PERMUTATION_COUNT_MAX},
		{"depth", opts->depth, STELE_QUEUE_DEPTH_MAX},
		{"verify", opts->verify, STELE_VERIFY_DIGEST},
		{"as_completed", opts->as_completed, 1},
		{"threads", opts->threads, STELE_LOADER_THREADS_MAX},
	};

	return stele_options_check(limits, sizeof(limits) / sizeof(*limits),
				   log);
}

static int init_order(struct stele_loader *l,
		      const struct stele_loader_source *sources)
{
	const struct stele_loader_opts *opts = &l->opts;
	struct stele_epoch_shape shape;
	int err = stele_shuffle_shape(opts->shuffle, opts->block_size,
				      opts->block_count, &l->log, &shape);

	if (err)
		return err;
	err = stele_loader_order_init(&l->order, sources, l->source_count,
				      &shape, opts->seed, opts->epoch_size,
				      &l->log);
	if (err)
		return err;
	l->size = l->order.mixture.size;
	l->lanes = calloc(l->source_count, sizeof(*l->lanes));
	if (!l->lanes)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->source_count; i++)
		l->lanes[i].ds = sources[i].ds;
	stele_loader_cursor_set(l, opts->epoch, 0, &l->at);
	l->at_end = !l->at.steps;
	l->plan = l->at;
	l->seed = opts->seed;
	return 0;
}

/*
 * Do the sources mean the same class by each number of a field of the first one? Each is
 * compared with the longest list of names before it.
 */
static void check_classes(const struct stele_loader *l, const struct stele_loader_source *sources,
			  struct stele_field *most)
{
	struct stele_field field;
	uint32_t of = 0;
	int64_t number;

	for (uint32_t i = 1; i < l->source_count; i++) {
		if (!stele_field_find(sources[i].ds, most->name, &field))
			continue;
		number = stele_classes_differ(most, &field);
		if (number >= 0) {
			stele_log_warning(&l->log, "class %" PRIi64 " of field '%s' is '%s' in "
					  "source %" PRIu32 ", and '%s' in source %" PRIu32
					  ": batches mix them", number, field.name,
					  most->names[number], of, field.names[number], i);
			return;
		}
		if (field.name_count > most->name_count) {
			*most = field;
			of = i;
		}
	}
}

static void check_fields(const struct stele_loader *l, const struct stele_loader_source *sources)
{
	struct stele_field field = {.size = sizeof(field)};

	for (uint32_t i = 0; !stele_dataset_field(sources[0].ds, i, &field); i++)
		if (field.type == STELE_TYPE_I64)
			check_classes(l, sources, &field);
}

/* Its readers are open when this returns. */
static int start_thread(struct stele_loader *l)
{
	int err;

	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->wake_fd < 0)
		return -errno;
	err = stele_thread_start(&l->thread, "stele-loader",
				 stele_loader_io_main, l);
	if (err)
		return err;
	pthread_mutex_lock(&l->lock);
	while (!l->opened)
		pthread_cond_wait(&l->changed, &l->lock);
	pthread_mutex_unlock(&l->lock);
	if (l->refused) {
		pthread_join(l->thread, NULL);
		l->opened = false;
	}
	return l->refused;
}

static int loader_open(const struct stele_loader_source *sources,
		       uint32_t source_count,
		       const struct stele_loader_opts *opts,
		       struct stele_loader **out)
{
	struct stele_loader_opts known;
	struct stele_loader *l;
	struct stele_log log;
	int err = stele_options_get(opts, &known, sizeof(known), &log);

	if (err)
		return err;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->opts = known;
	l->log = log;
	l->source_count = source_count;
	l->fork_count = stele_fork_count();
	l->wake_fd = l->event_fd = -1;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	take_defaults(&l->opts);
	l->step_size = (uint64_t)l->opts.batch_size * l->opts.world;
	err = check_options(&l->opts, &l->log);
	if (!err)
		err = init_order(l, sources);
	if (!err)
		err = stele_loader_pool_start(l);
	if (!err)
		err = start_thread(l);
	if (err) {
		stele_loader_close(l);
		return err;
	}
	check_fields(l, sources);
	*out = l;
	return 0;
}

int stele_loader_open(const struct stele_loader_source *sources,
		      uint32_t source_count,
		      const struct stele_loader_opts *opts,
		      struct stele_loader **out)
{
	return STELE_CALL(loader_open(sources, source_count, opts, out),
			  "cannot open a loader");
}

static void stop_threads(struct stele_loader *l)
{
	stele_loader_pool_stop(&l->pool);
	if (!l->opened)
		return;
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	stele_loader_tell(l);
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->thread, NULL);
}

void stele_loader_close(struct stele_loader *l)
{
	if (!l)
		return;
	if (l->fork_count == stele_fork_count()) {
		stop_threads(l);
		stele_loader_pool_release(&l->pool);
		stele_loader_batch_free_all(l);
		stele_loader_order_release(&l->order);
		pthread_cond_destroy(&l->changed);
		pthread_mutex_destroy(&l->lock);
		free(l->lanes);
	} else {
		/* What its readers would do; they are another thread's for ever. */
		for (uint32_t i = 0; i < l->source_count; i++)
			stele_dataset_leave(l->lanes[i].ds);
	}
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	if (l->event_fd >= 0)
		close(l->event_fd);
	free(l);
}
