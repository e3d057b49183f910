/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder.h - what all steps of one build share: options, messages, progress
 *
 * Progress is told from the thread that builds, at most every STELE_PROGRESS_MS;
 * once its callback asked to stop, every later tick says so. Skips may come
 * from any thread; the callback sees one at a time.
 */
#ifndef STELE_SEGMENT_BUILDER_H
#define STELE_SEGMENT_BUILDER_H

#include <pthread.h>
#include <time.h>

#include "lib/base/log.h"
#include "lib/source/source.h"

#define STELE_MEMORY_DEFAULT (UINT64_C(256) << 20)
#define STELE_MEMORY_MIN     (UINT64_C(1) << 20)
#define STELE_JOBS_DEFAULT   32u /* at most, 8 for each core */
#define STELE_JOBS_MAX	     1024u

struct stele_builder {
	struct stele_build_opts opts; /* checked, defaults filled in */
	bool jobs_chosen; /* by the caller; else the default is filled in */
	uint8_t uuid[STELE_UUID_SIZE];
	struct stele_log log;
	struct stele_build_report *report; /* never NULL */
	uint32_t boundary; /* that the layout keeps; 0: none */
	bool posix; /* every sample can be a file: see lib/posix/ */
	uint32_t block_min; /* of these; 0: the target is not known yet */
	uint32_t block_kept; /* of a tree that is there: a granule is not chosen below it */
	const char *temp_directory; /* NULL: see stele_temp_directory() */
	struct stele_progress progress;
	struct timespec told; /* when progress was told last */
	bool cancelled;
	pthread_mutex_t skip_lock;
};

/* Flags that are known to builds, to stele_txn_add(), to appends. */
#define STELE_BUILD_FLAGS                                           \
	(STELE_DRY_RUN | STELE_FORCE | STELE_BUILD_ALLOW_EMPTY |    \
	 STELE_BUILD_FOLLOW | STELE_BUILD_SKIP_CHANGED | STELE_BUILD_POSIX)
#define STELE_ADD_FLAGS                                             \
	((STELE_BUILD_FLAGS & ~(STELE_DRY_RUN | STELE_BUILD_POSIX)) | STELE_APPEND_UPDATE | \
	 STELE_APPEND_QUICK | STELE_APPEND_DELETE_MISSING)
#define STELE_APPEND_FLAGS (STELE_ADD_FLAGS | STELE_DRY_RUN | STELE_APPEND_ALWAYS)

/*
 * Check the options, of which `flags` may be set, and fill in what is left to us: memory,
 * jobs, time, uuid. `report` is zeroed. Return: 0; -EINVAL; -E2BIG; errno of getrandom(2).
 */
int stele_builder_init(struct stele_builder *builder,
		       const struct stele_build_opts *opts, uint32_t flags,
		       struct stele_build_report *report);
/* What all options of verbs that write a segment begin with, and those with a skip callback. */
#define STELE_WRITE_OPTS_SIZE offsetof(struct stele_build_opts, label_from)
#define STELE_ADD_OPTS_SIZE   offsetof(struct stele_build_opts, backend)
/* Those, as options of a build. */
struct stele_build_opts stele_builder_opts(const void *opts, size_t size);
void stele_builder_release(struct stele_builder *builder);
/*
 * What the target wants (a boundary, or 0), before the plan is made: holds unless the
 * options say otherwise.
 */
void stele_builder_prefer_boundary(struct stele_builder *builder,
				   uint32_t boundary);
/* The same by a device, which also says how small blocks of files may be. */
void stele_builder_fit(struct stele_builder *builder, const struct stele_device *dev);

/*
 * The time since when a source that is scanned now is as it is written: the
 * snapshot's, unless that is made up and still to come (0).
 */
int64_t stele_builder_source_time(const struct stele_builder *builder);

/* From the building thread. Return: 0; -ECANCELED. */
int stele_builder_tick(struct stele_builder *builder);
/* The same at the beginning of a phase: told at once. */
int stele_builder_phase(struct stele_builder *builder,
			enum stele_phase phase, uint64_t samples_total,
			uint64_t bytes_total);

/* Something is no sample. Any thread. */
void stele_builder_skip(struct stele_builder *builder,
			enum stele_skip_reason reason, const char *key,
			size_t key_size, int error);
/*
 * A source entry could not be read, or is not what it was. `why`: which rule it
 * breaks, which is never left out; NULL or "": what the error means.
 * Return: 0 when it is to be left out (it was reported); else `error` (it was logged).
 */
int stele_builder_lost(struct stele_builder *builder, const char *key,
		       size_t key_size, int error, const char *why);

double stele_seconds_since(const struct timespec *begin);

#endif
