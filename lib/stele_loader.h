/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stele_loader.h - batches of samples in a random order, for training; part of stele.h
 *
 * An *epoch* is every sample once (of a mixture: a number of draws). Its order is a
 * function of seed and epoch alone: no list of ids is held, any position is reached at
 * once, and neither the number of ranks nor the batch size changes it. A *step* takes
 * world x batch_size positions; rank r has each world-th of them from the r-th on. So a
 * job that stopped goes on at the same place with any other number of ranks.
 *
 *	struct stele_loader_source source = {.ds = ds};
 *	struct stele_batch batch;
 *
 *	stele_loader_open(&source, 1, &STELE_OPTS(stele_loader_opts, .batch_size = 256,
 *			  .rank = rank, .world = world, .seed = 1), &loader);
 *	while ((ret = stele_loader_next(loader, &batch)) > 0) {
 *		train(batch.samples, batch.count);
 *		stele_loader_release(loader, &batch);
 *	}
 *
 * Threads. A loader belongs to one thread at a time. It has threads of its own, which take
 * no signals: one that reads, and those of the transform callback. A forked child gets
 * -EOWNERDEAD from what can fail; it may save, and close, which leaves the memory. Samples
 * of its batches are not there: a child must not touch their bytes (struct stele_sample).
 */
#include "stele.h" /* outside the guard: it includes this one where it belongs */

#ifndef STELE_LOADER_H
#define STELE_LOADER_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- orders ------------------------------------------------------------ */

enum stele_shuffle_kind {
	STELE_SHUFFLE_FULL = 0, /* one uniform permutation of all */
	/*
	 * Blocks of neighbours, gathered from all over and permuted within windows: for
	 * devices that are slow at random. Batches are less well mixed.
	 */
	STELE_SHUFFLE_WINDOWED,
	STELE_SHUFFLE_NONE, /* ids in ascending order: sorted by size */
};

struct stele_shuffle_opts {
	size_t size;
	stele_log_fn log; /* says which option is refused */
	void *log_user;
	uint64_t seed, epoch;
	uint64_t block_size;  /* windowed: samples of a block; 0: 64 */
	uint32_t block_count; /* windowed: blocks of a window; 0: 256 */
	uint32_t kind;	      /* enum stele_shuffle_kind */
};

struct stele_shuffle;

/**
 * stele_shuffle_open() - the order of ids 0 ... count-1 in one epoch
 *
 * As stele-format(5) describes it: the same on any machine and in any version.
 * Belongs to one thread. O(1) memory, and O(1) time for any position.
 * Return: 0; -EINVAL (kind; count 0 or over 2^62; window over 2^31 samples) and
 * -E2BIG, both of which the log explains; -ENOMEM.
 */
STELE_API int stele_shuffle_open(uint64_t count,
				 const struct stele_shuffle_opts *opts,
				 struct stele_shuffle **out);
/** The id at a position; both below count, else UINT64_MAX. */
STELE_API uint64_t stele_shuffle_at(struct stele_shuffle *shuffle,
				    uint64_t position);
/** Its inverse. */
STELE_API uint64_t stele_shuffle_position(struct stele_shuffle *shuffle,
					  uint64_t id);
/** NULL is fine. */
STELE_API void stele_shuffle_close(struct stele_shuffle *shuffle);

/* ---- loader -------------------------------------------------------------- */

#define STELE_LOADER_SOURCES_MAX 256
#define STELE_LOADER_BATCH_MAX	 (1 << 20) /* samples */
#define STELE_LOADER_THREADS_MAX 256	   /* of transform */

struct stele_loader;

/**
 * Where samples come from; more than one source is a mixture.
 *
 * As stele-format(5) describes it: the same on any machine and in any version.
 * Each source gets its share of an epoch's draws by weight: to the draw, the same in all
 * epochs, one at least. Along the epoch sources alternate evenly, in an order that is mixed
 * within each 4096 positions. The draws of a source go through its samples in passes, each in
 * an order of its own, and from epoch to epoch: a source that is half drawn in one epoch goes
 * on with the other half in the next. With no weights and no epoch_size an epoch is each
 * sample of each source once.
 */
struct stele_loader_source {
	struct stele_dataset *ds; /* stays open as long as the loader */
	/* A subset: these ids, without repeats, copied. NULL: those of the range. */
	const uint64_t *ids;
	uint64_t id_count;
	uint64_t first, count; /* a range of ids; count 0: to the end */
	double weight;	       /* of a mixture, relative; 0: its number of samples */
};

enum stele_loader_rest {
	STELE_REST_PAD = 0, /* fill the last step with samples from the epoch's beginning */
	STELE_REST_DROP,    /* leave out what does not fill a whole step */
};

/**
 * A sample that cannot be read, whose checksum is wrong, or that the transform refuses. That
 * a snapshot went away (-ESTALE) is raised under any policy.
 */
enum stele_loader_policy {
	STELE_ON_ERROR_RAISE = 0, /* stele_loader_next() returns its error */
	STELE_ON_ERROR_SKIP,	  /* the batch is shorter; it may be empty */
	/*
	 * Another sample of the same source in its place: from half a pass further on, up to
	 * 8 of them until one is intact; the same ones each time. Else as SKIP.
	 */
	STELE_ON_ERROR_SUBSTITUTE,
};

/**
 * Called by the loader's threads, several at once, for each sample that was read intact. It may
 * change the bytes of sample->data in place (they are the loader's), and set what
 * sample->tag (0) holds for the consumer. A negative return is the sample's error.
 */
typedef int (*stele_transform_fn)(void *user, struct stele_sample *sample);

struct stele_loader_opts {
	size_t size;
	/* Says which option is refused, and which sample failed: from any thread of the loader. */
	stele_log_fn log;
	void *log_user;
	uint64_t seed;
	uint64_t epoch;	      /* the first */
	uint32_t batch_size;  /* samples of one rank in a step; 0: 1 */
	uint32_t rank, world; /* world 0: one */
	uint32_t rest;	      /* enum stele_loader_rest */
	uint32_t on_error;    /* enum stele_loader_policy */
	uint32_t shuffle;     /* enum stele_shuffle_kind */
	uint32_t block_count; /* see stele_shuffle_opts */
	uint64_t block_size;
	uint64_t epoch_size;  /* draws of an epoch, all ranks; 0: the sum of its samples */
	/*
	 * Bytes of buffers that hold samples, those in the caller's hands too: no further one
	 * is read beyond; 0: 256 MiB. But the batch that comes next is read whatever it takes,
	 * so holding batches never stops a loader.
	 */
	uint64_t prefetch_size;
	uint32_t depth;	      /* as stele_reader_opts, of each source */
	uint32_t verify;      /* enum stele_verify; DEFAULT: each source as its dataset */
	/*
	 * Samples stand in their batch as they arrived; what pads comes last even so. Which
	 * batch a sample is in never depends on the device, so that a state is exact.
	 */
	uint32_t as_completed; /* 0 or 1 */
	uint32_t threads;      /* of transform; 0: one per core */
	stele_transform_fn transform;
	void *transform_user;
};

/** One batch; it and its samples are valid until it is released. */
struct stele_batch {
	struct stele_sample *samples; /* by position, unless as_completed */
	uint32_t count;
	uint32_t padded;   /* the last so many are repeats that fill the step */
	uint32_t skipped;  /* SKIP and SUBSTITUTE: samples that failed */
	int skip_error;	   /* SKIP: of the first that was left out; 0: none was */
	const uint32_t *sources; /* of each sample: index of its source */
	uint32_t source_count, reserved;
	uint64_t epoch;
	uint64_t index;	   /* of the step within what this loader does of the epoch */
	void *buffer;	   /* for release */
};

/**
 * stele_loader_open() - begin with an epoch
 *
 * Reading begins at once. Memory for the prefetch is taken as it is used; of a small dataset
 * no more than twice its size.
 *
 * Return: 0; -EINVAL (rank >= world, an empty subset, a weight that is negative or no
 * number, fewer draws than sources, what is over a limit), -ERANGE (an id of a
 * subset), -ENOTUNIQ (an id twice), all of which the log explains; -E2BIG; -ENOMEM; errors
 * of stele_reader_open().
 */
STELE_API int stele_loader_open(const struct stele_loader_source *sources,
				uint32_t source_count,
				const struct stele_loader_opts *opts,
				struct stele_loader **out);
/**
 * stele_loader_next() - the next batch of this rank
 *
 * Waits. At the end of an epoch it returns 0 once; the call after that begins with the
 * next epoch, which is being read already. All ranks get the same number of batches,
 * whatever fails; none, if DROP leaves no whole step.
 * Return: 1; 0 (end of the epoch); a sample's error (RAISE: the first one of the batch,
 * which is lost; the call after that goes on behind it); -EOWNERDEAD; -EIO (a queue
 * broke), -ENOMEM: these stay.
 */
STELE_API int stele_loader_next(struct stele_loader *loader,
				struct stele_batch *batch);
/** Give it back; any number may be held, in any order. Idempotent. */
STELE_API void stele_loader_release(struct stele_loader *loader,
				    struct stele_batch *batch);
/** Batches that are left of this epoch, for this rank as for any other. */
STELE_API uint64_t stele_loader_remaining(const struct stele_loader *loader);
/**
 * stele_loader_fd() - polls readable when stele_loader_next() would not wait
 *
 * An eventfd of the loader's, to poll and not to read. Return: fd; -EOWNERDEAD; errno.
 */
STELE_API int stele_loader_fd(struct stele_loader *loader);

#define STELE_LOADER_STATE_SIZE 32

/**
 * stele_loader_save() - where this loader is: behind the last batch that next returned
 *
 * A word of version and digest of what is loaded and how (snapshots, subsets, shares,
 * epoch_size, kind and versions of the order), then seed, epoch, position. The same on all
 * ranks that have had as many batches. A batch that next raised an error for counts as had.
 * Between the last batch and the 0 behind it the state is at the end of that epoch.
 */
STELE_API void stele_loader_save(const struct stele_loader *loader,
				 uint8_t state[STELE_LOADER_STATE_SIZE]);
/**
 * stele_loader_restore() - go on there, at any batch size and number of ranks
 *
 * The rest of the epoch is divided anew: each of its samples comes once. Seed and epoch
 * are those of the state. Batches in hand stay valid; what was read ahead is dropped.
 * Return: 0; -ESTALE (a state of other data or another order); -EINVAL (no state);
 * -EOWNERDEAD. On an error the loader stays where it is.
 */
STELE_API int stele_loader_restore(struct stele_loader *loader,
				   const uint8_t state[STELE_LOADER_STATE_SIZE]);

struct stele_loader_stats {
	struct stele_reader_stats reader; /* sums over the sources' readers */
	uint64_t batches;
	uint64_t skipped, substituted, padded; /* samples */
	uint64_t wait_ns;   /* that next waited for the device or a transform */
	uint64_t held_size; /* bytes of samples now in memory or on their way */
};
/** Asks the thread that reads: may wait for a read that is under way. */
STELE_API void stele_loader_stats(const struct stele_loader *loader,
				  struct stele_loader_stats *stats);
/**
 * Add the latencies of its readers, which are behind those of the stats. Asks the thread
 * that reads, too; a forked child adds nothing.
 */
STELE_API void stele_loader_latency(const struct stele_loader *loader,
				    enum stele_latency which,
				    struct stele_histogram *sum);
/** At any time; waits for what is in flight. NULL is fine. Batches become invalid. */
STELE_API void stele_loader_close(struct stele_loader *loader);

#ifdef __cplusplus
}
#endif

#endif
