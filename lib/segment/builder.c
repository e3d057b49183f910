/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder.c - options of a build, its progress, and what it leaves out
 */
#include "lib/segment/builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/catalog.h"
#include "lib/base/options.h"
#include "lib/base/workers.h"
#include "lib/posix/tree.h"
#include "lib/txn/txn.h"

/*
 * Threads mostly wait for a source that is not in memory: opens and reads that block. On two
 * cores twice as many as 4 a core brought 1.15 times the rate with small files, 1.2 with large.
 */
#define JOBS_PER_CORE 8
#define NO_BOUNDARY 1u /* asked for */

#define BEGINS_THE_SAME(type, member)                             \
	_Static_assert(offsetof(struct type, member) ==           \
			       offsetof(struct stele_build_opts, member), \
		       "options begin the same")
BEGINS_THE_SAME(stele_append_opts, memory_size);
BEGINS_THE_SAME(stele_append_opts, boundary);
BEGINS_THE_SAME(stele_append_opts, exclude);
BEGINS_THE_SAME(stele_add_opts, memory_size);
BEGINS_THE_SAME(stele_add_opts, boundary);
BEGINS_THE_SAME(stele_add_opts, exclude);
BEGINS_THE_SAME(stele_compact_opts, memory_size);
BEGINS_THE_SAME(stele_compact_opts, boundary);

static int invalid(const struct stele_builder *builder, const char *what)
{
	stele_log_error(&builder->log, "%s", what);
	return -EINVAL;
}

static bool is_granule(uint32_t granule)
{
	return granule == 0 || granule == 16 || granule == 64 ||
	       granule == 512 || granule == 4096;
}

static bool is_boundary(uint32_t boundary)
{
	return boundary <= NO_BOUNDARY ||
	       (boundary >= STELE_BLOCK_SIZE && is_power_of_two(boundary));
}

static bool is_label(const char *label)
{
	if (!label)
		return true;
	for (const char *p = label; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return false;
	return strlen(label) <= STELE_NAME_SIZE_MAX;
}

static bool are_patterns(const char *const *exclude)
{
	for (; exclude && *exclude; exclude++)
		if (!(*exclude)[strspn(*exclude, "/")] ||
		    strlen(*exclude) > STELE_PATTERN_SIZE_MAX)
			return false;
	return true;
}

static int check_options(const struct stele_builder *builder)
{
	const struct stele_build_opts *opts = &builder->opts;

	if (opts->label_from > STELE_LABEL_FROM_NONE || opts->reserved)
		return invalid(builder, "unknown origin of labels");
	if (opts->flags & STELE_APPEND_QUICK &&
	    !(opts->flags & STELE_APPEND_UPDATE))
		return invalid(builder, "quick takes effect with update alone");
	if (!is_granule(opts->granule))
		return invalid(builder, "granule must be 16, 64, 512 or 4096");
	if (!is_boundary(opts->boundary))
		return invalid(builder, "boundary is not a power of two of at "
					"least 4096");
	if (!are_patterns(opts->exclude))
		return invalid(builder, "an exclude pattern is empty, or longer than 4096 bytes");
	if (opts->order > STELE_ORDER_SOURCE)
		return invalid(builder, "unknown order");
	if (!is_label(opts->label))
		return invalid(builder, "label is longer than 63 bytes, or "
					"holds control characters");
	if (opts->note && strlen(opts->note) > STELE_NOTES_SIZE_MAX)
		return invalid(builder, "note is longer than 16 MiB");
	if (opts->memory_size && opts->memory_size < STELE_MEMORY_MIN)
		return invalid(builder, "memory must be at least 1 MiB");
	if (opts->jobs > STELE_JOBS_MAX)
		return invalid(builder, "at most 1024 jobs");
	return 0;
}

static uint32_t default_jobs(void)
{
	const uint32_t jobs = stele_processors() * JOBS_PER_CORE;

	return jobs < STELE_JOBS_DEFAULT ? jobs : STELE_JOBS_DEFAULT;
}

static int fill_in(struct stele_builder *builder)
{
	struct stele_build_opts *opts = &builder->opts;

	if (!opts->memory_size)
		opts->memory_size = STELE_MEMORY_DEFAULT;
	builder->jobs_chosen = opts->jobs;
	if (!builder->jobs_chosen)
		opts->jobs = default_jobs();
	if (!opts->label)
		opts->label = "";
	if (opts->boundary > NO_BOUNDARY)
		builder->boundary = opts->boundary;
	builder->posix = opts->flags & STELE_BUILD_POSIX;
	if (opts->uuid)
		memcpy(builder->uuid, opts->uuid, STELE_UUID_SIZE);
	else if (stele_uuid_random(builder->uuid) < 0)
		return -EIO;
	return stele_options_time(opts->time, &builder->log, &opts->time);
}

int stele_builder_init(struct stele_builder *builder,
		       const struct stele_build_opts *opts, uint32_t flags,
		       struct stele_build_report *report)
{
	int ret;

	memset(builder, 0, sizeof(*builder));
	memset(report, 0, sizeof(*report));
	pthread_mutex_init(&builder->skip_lock, NULL);
	builder->report = report;
	ret = stele_options_get(opts, &builder->opts, sizeof(builder->opts),
				&builder->log);
	if (!ret)
		ret = stele_options_flags(builder->opts.flags, flags,
					  &builder->log);
	if (!ret)
		ret = check_options(builder);
	if (!ret)
		ret = fill_in(builder);
	if (ret < 0)
		return ret;
	memcpy(report->uuid, builder->uuid, STELE_UUID_SIZE);
	report->jobs = builder->opts.jobs;
	return 0;
}

void stele_builder_release(struct stele_builder *builder)
{
	pthread_mutex_destroy(&builder->skip_lock);
}

struct stele_build_opts stele_builder_opts(const void *opts, size_t size)
{
	struct stele_build_opts all = {0};

	memcpy(&all, opts, size);
	all.size = sizeof(all);
	return all;
}

void stele_builder_prefer_boundary(struct stele_builder *builder,
				   uint32_t boundary)
{
	if (!builder->opts.boundary)
		builder->boundary = boundary;
}

void stele_builder_fit(struct stele_builder *builder, const struct stele_device *dev)
{
	stele_builder_prefer_boundary(builder, dev->limits.boundary);
	builder->block_min = stele_posix_block_min(dev);
}

int64_t stele_builder_source_time(const struct stele_builder *builder)
{
	return builder->opts.time <= time(NULL) ? builder->opts.time : 0;
}

double stele_seconds_since(const struct timespec *begin)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - begin->tv_sec) +
	       (double)(now.tv_nsec - begin->tv_nsec) / 1e9;
}

static int tell(struct stele_builder *builder)
{
	clock_gettime(CLOCK_MONOTONIC, &builder->told);
	if (builder->opts.progress && !builder->cancelled &&
	    builder->opts.progress(builder->opts.progress_user,
				   &builder->progress))
		builder->cancelled = true;
	return builder->cancelled ? -ECANCELED : 0;
}

int stele_builder_tick(struct stele_builder *builder)
{
	if (stele_seconds_since(&builder->told) * 1000 < STELE_PROGRESS_MS)
		return builder->cancelled ? -ECANCELED : 0;
	return tell(builder);
}

int stele_builder_phase(struct stele_builder *builder,
			enum stele_phase phase, uint64_t samples_total,
			uint64_t bytes_total)
{
	builder->progress = (struct stele_progress){
		.size = sizeof(builder->progress),
		.phase = phase,
		.samples_total = samples_total,
		.bytes_total = bytes_total,
	};
	return tell(builder);
}

void stele_builder_skip(struct stele_builder *builder,
			enum stele_skip_reason reason, const char *key,
			size_t key_size, int error)
{
	pthread_mutex_lock(&builder->skip_lock);
	builder->report->skipped[reason]++;
	if (builder->opts.skip)
		builder->opts.skip(builder->opts.skip_user, reason, key,
				   key_size, error);
	pthread_mutex_unlock(&builder->skip_lock);
}

static enum stele_skip_reason reason_of(int error)
{
	switch (error) {
	case -ENOENT:
		return STELE_SKIP_VANISHED;
	case -ETXTBSY:
		return STELE_SKIP_CHANGED;
	default:
		return STELE_SKIP_UNREADABLE;
	}
}

/* It is we who have run out of something: no fault of the entry. */
static bool is_ours(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

/* What errno means to us, not to a filesystem. */
static bool is_format_error(int error)
{
	return error == -ETXTBSY || error == -EBADMSG || error == -EUCLEAN ||
	       error == -ESTALE;
}

int stele_builder_lost(struct stele_builder *builder, const char *key,
		       size_t key_size, int error, const char *why)
{
	const bool breaks = why && *why;
	char text[STELE_QUOTE_SIZE];

	if (!breaks && !is_ours(error) &&
	    (builder->opts.flags & STELE_BUILD_SKIP_CHANGED)) {
		stele_builder_skip(builder, reason_of(error), key, key_size,
				   error);
		return 0;
	}
	stele_log_error(&builder->log, "cannot %s '%s': %s",
			!breaks && (error == -EBADMSG || error == -EUCLEAN) ? "verify sample" :
									      "read source",
			stele_source_quote(key, key_size, text),
			breaks			 ? why :
			is_format_error(error) ? stele_strerror(error) :
						 strerror(-error));
	return error;
}
