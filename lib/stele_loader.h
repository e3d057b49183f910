/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stele_loader.h - batches of samples in a random order, for training; part of stele.h
 *
 * An *epoch* is every sample once (for a mixture: a number of draws). Its order is a
 * function of seed and epoch alone: no list of ids is kept, any position is reached at
 * once, and neither the number of ranks nor the batch size changes it. A *step* covers
 * world x batch_size positions; rank r gets every world-th of them, from the r-th on. So a
 * job that stopped can resume at the same place with any other number of ranks.
 *
 *	struct stele_loader_source source = {.ds = ds};
 *	struct stele_batch batch = {.size = sizeof(batch)};
 *
 *	stele_loader_open(&source, 1, &STELE_OPTS(stele_loader_opts, .batch_size = 256,
 *			  .rank = rank, .world = world, .seed = 1), &loader);
 *	while ((ret = stele_loader_next(loader, &batch)) > 0) {
 *		train(batch.samples, batch.count);
 *		stele_loader_release(loader, &batch);
 *	}
 *
 * Threads. A loader belongs to one thread at a time. It has its own threads, which block
 * all signals: one that reads, and those of the transform callback. In a forked child,
 * calls that can fail return -EOWNERDEAD; save is allowed, and so is close, which leaks the
 * memory. Samples of its batches are not there: a child must not touch their bytes (struct
 * stele_sample).
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
	 * Blocks of neighbours, taken from all over and permuted within windows: for
	 * devices with slow random access. Batches are less well mixed.
	 */
	STELE_SHUFFLE_WINDOWED,
	STELE_SHUFFLE_NONE, /* ids in ascending order: sorted by size */
};

struct stele_shuffle_opts {
	size_t size;
	stele_log_fn log; /* says which option is refused */
	void *log_user;
	uint64_t seed, epoch;
	uint64_t block_size;  /* windowed: samples per block; 0: 64 */
	uint32_t block_count; /* windowed: blocks per window; 0: 256 */
	uint32_t kind;	      /* enum stele_shuffle_kind */
};

struct stele_shuffle;

/**
 * stele_shuffle_open() - the order of ids 0 ... count-1 in one epoch
 *
 * Specified in stele-format(5): the same on any machine and in any version.
 * Belongs to one thread. O(1) memory, and O(1) time for any position.
 * Return: 0; -EINVAL (kind; count 0 or over 2^62; window over 2^31 samples) and
 * -E2BIG, both explained in the log; -ENOMEM.
 */
STELE_API int stele_shuffle_open(uint64_t count,
				 const struct stele_shuffle_opts *opts,
				 struct stele_shuffle **out);
/** The id at a position; both are below count, else UINT64_MAX. */
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
 * Where samples come from; more than one source is a mixture. It never grows.
 *
 * Specified in stele-format(5): the same on any machine and in any version.
 * Each source gets its share of an epoch's draws by weight: exactly, the same in all
 * epochs, and at least one. Over the epoch, sources alternate evenly, in an order that is mixed
 * within each 4096 positions. The draws of a source go through its samples in passes, each in
 * its own order, across epochs: a source half of which was drawn in one epoch continues
 * with the other half in the next. Without weights and epoch_size, an epoch is each
 * sample of each source once.
 *
 * A class is the number that its source has for it. If sources give a number of one field
 * different names, the log is warned.
 */
struct stele_loader_source {
	struct stele_dataset *ds; /* must stay open as long as the loader */
	/* A subset: these ids, without repeats, copied. NULL: those of the range. */
	const uint64_t *ids;
	uint64_t id_count;
	uint64_t first, count; /* a range of ids; count 0: to the end */
	double weight;	       /* relative, in a mixture; 0: its number of samples */
	uint64_t reserved[2];  /* zero */
};

enum stele_last {
	STELE_LAST_PAD = 0, /* fill the last step with samples from the start of the epoch */
	STELE_LAST_DROP,    /* drop what does not fill a whole step */
};

/**
 * For samples that cannot be read, have a wrong checksum, or are refused by the transform. A
 * removed snapshot (-ESTALE) is raised under any policy.
 */
enum stele_on_error {
	STELE_ON_ERROR_RAISE = 0, /* stele_loader_next() returns its error */
	STELE_ON_ERROR_SKIP,	  /* the batch is shorter; it may be empty */
	/*
	 * Replaced by another sample of the same source: from half a pass further on, up to
	 * 8 are tried until one is intact; always the same ones. Otherwise as SKIP.
	 */
	STELE_ON_ERROR_SUBSTITUTE,
};

/**
 * Called by the loader's threads, several at once, for each sample that was read intact. It may
 * change the bytes of sample->data in place (they belong to the loader), and set
 * sample->tag (0) for the consumer. A negative return value becomes the sample's error.
 */
typedef int (*stele_transform_fn)(void *user, struct stele_sample *sample);

struct stele_loader_opts {
	size_t size;
	/* Which option is refused, which sample failed: from any thread of the loader. */
	stele_log_fn log;
	void *log_user;
	uint64_t seed;
	uint64_t epoch;	      /* the first */
	uint32_t batch_size;  /* samples per rank in a step; 0: 1 */
	uint32_t rank, world; /* world 0: 1 */
	uint32_t last;	      /* enum stele_last */
	uint32_t on_error;    /* enum stele_on_error */
	uint32_t shuffle;     /* enum stele_shuffle_kind */
	uint32_t block_count; /* see stele_shuffle_opts */
	uint64_t block_size;
	uint64_t epoch_size;  /* draws per epoch, all ranks; 0: the sum of its samples */
	/*
	 * Bytes of buffers with samples, including those in the caller's hands, above which
	 * nothing more is read; 0: 256 MiB. The next batch is read whatever it takes, so
	 * holding batches never stops a loader.
	 */
	uint64_t prefetch_size;
	uint32_t depth;	      /* as in stele_reader_opts, per source */
	uint32_t verify;      /* enum stele_verify; DEFAULT: each source as its dataset */
	/*
	 * Samples are in their batch in order of arrival; padding is last regardless. Which
	 * batch a sample is in never depends on the device, so a state is exact.
	 */
	uint32_t as_completed; /* 0 or 1 */
	uint32_t threads;      /* of transform; 0: one per core */
	stele_transform_fn transform;
	void *transform_user;
	/*
	 * For processes that share the batches of a rank: of its steps this loader has every
	 * workers-th one, from the worker-th on. Taken in turn, the batches of all workers are
	 * those of one loader, in its order. workers 0: 1.
	 */
	uint32_t worker, workers;
};

/** One batch; it and its samples are valid until it is released. */
struct stele_batch {
	size_t size;
	struct stele_sample *samples; /* by position, unless as_completed */
	uint32_t count;
	uint32_t padded;   /* number of repeats at the end that fill the step */
	uint32_t skipped;  /* SKIP and SUBSTITUTE: samples that failed */
	int skip_error;	   /* SKIP: of the first one skipped; 0: none */
	const uint32_t *sources; /* per sample: index of its source */
	uint32_t source_count;
	uint32_t failed_source; /* with RAISE: of failed_id */
	uint64_t epoch;
	uint64_t index;	   /* of the step, from where this loader began in the epoch */
	void *buffer;	   /* for release */
	/* With RAISE: the sample that the error is about; UINT64_MAX: it is about none. */
	uint64_t failed_id;
};

/**
 * stele_loader_open() - start an epoch
 *
 * Reading starts at once. Memory for prefetching is allocated as needed; for a small dataset
 * no more than twice its size.
 *
 * Return: 0; -EINVAL (rank >= world, an empty subset, a weight that is negative or not a
 * number, fewer draws than sources, a limit exceeded), -ERANGE (an id of a
 * subset), -ENOTUNIQ (an id twice), all explained in the log; -E2BIG; -ENOMEM; errors
 * of stele_reader_open().
 */
STELE_API int stele_loader_open(const struct stele_loader_source *sources,
				uint32_t source_count,
				const struct stele_loader_opts *opts,
				struct stele_loader **out);
/**
 * stele_loader_next() - the next batch of this rank
 *
 * Waits. At the end of an epoch it returns 0 once; the call after that starts the
 * next epoch, which is already being read. All ranks get the same number of batches,
 * whatever fails; none, if DROP leaves no whole step. Of several workers, the first ones may
 * have one more.
 * Return: 1; 0 (end of the epoch); a sample's error (RAISE: the first one of the batch,
 * which is lost; failed_id says which one; the next call continues after it);
 * -EOWNERDEAD; -EIO (a queue broke), -ENOMEM: these persist.
 */
STELE_API int stele_loader_next(struct stele_loader *loader,
				struct stele_batch *batch);
/**
 * Return its buffers; any number of batches can be held, in any order. Idempotent; a copy of
 * one that was released, or one of another loader that is open, is left alone.
 */
STELE_API void stele_loader_release(struct stele_loader *loader,
				    struct stele_batch *batch);
/** Batches left in this epoch; the same for all ranks. */
STELE_API uint64_t stele_loader_remaining(const struct stele_loader *loader);
/**
 * stele_loader_fd() - polls readable when stele_loader_next() would not wait
 *
 * An eventfd of the loader's, to be polled, not read. Return: fd; -EOWNERDEAD; errno.
 */
STELE_API int stele_loader_fd(struct stele_loader *loader);

#define STELE_LOADER_STATE_SIZE 32

/**
 * stele_loader_save() - position of this loader: after the last batch that next returned
 *
 * A word of version and digest of what is loaded and how (snapshots, subsets, shares,
 * epoch_size, kind and versions of the order), then seed, epoch, position. The same on all
 * ranks that have received the same number of batches. A batch for which next returned an
 * error counts as received. Between the last batch and the 0 after it the state is at the
 * end of that epoch. Of one of several workers the place is behind as many whole rounds of all
 * of them as it has received batches: the state is one of the rank where they have the same.
 */
STELE_API void stele_loader_save(const struct stele_loader *loader,
				 uint8_t state[STELE_LOADER_STATE_SIZE]);
/**
 * stele_loader_restore() - resume there, at any batch size and number of ranks
 *
 * The rest of the epoch is divided anew: each of its samples comes once. Seed and epoch
 * are taken from the state. Batches in hand stay valid; prefetched ones are dropped.
 * Return: 0; -ESTALE (a state of other data or another order); -EINVAL (not a state);
 * -EOWNERDEAD. On an error the loader stays where it is.
 */
STELE_API int stele_loader_restore(struct stele_loader *loader,
				   const uint8_t state[STELE_LOADER_STATE_SIZE]);

struct stele_loader_stats {
	size_t size;
	uint64_t batches;
	uint64_t skipped, substituted, padded; /* samples */
	uint64_t wait_ns;   /* time next waited for the device or a transform */
	uint64_t held_size; /* bytes of samples in memory or in flight */
};
/** Queries the reading thread: may wait for a read in progress. Return: 0; -EINVAL. */
STELE_API int stele_loader_stats(const struct stele_loader *loader,
				 struct stele_loader_stats *stats);
/** The same for its readers: their stats, aggregated. Zeros in a forked child. */
STELE_API int stele_loader_reader_stats(const struct stele_loader *loader,
					struct stele_reader_stats *stats);
/**
 * Add the latencies of its readers, from which those of the stats are computed. Queries
 * the reading thread, too; adds nothing in a forked child.
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
