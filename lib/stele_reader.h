/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stele_reader.h - many samples at once, by request or by pointer; part of stele.h
 *
 * A *reader* keeps many device reads in flight: it is asked for samples (submit), and hands
 * them out as they come (collect), each with its own status. Buffers are its own, taken when
 * it is opened; each sample's is given back (release), and makes room for the next. It finds
 * out alone how much the device wants in flight. It counts what it did, in *histograms* that
 * programs may use for their own latencies. A *view* has the kernel map the image
 * instead: samples are pointers into the page cache.
 *
 * Threads. A reader belongs to one thread at a time, and so does a view's prefetch. It goes
 * to another while nothing is outstanding: what one thread submitted no other can wait for,
 * and is told -EBUSY until it was collected where it was submitted.
 *
 * Processes. In a child after fork() all of a reader says -EOWNERDEAD, its samples are
 * not there (see struct stele_sample), and close leaves the parent's alone.
 */
#include "stele.h" /* outside the guard: it includes this one where it belongs */

#ifndef STELE_READER_H
#define STELE_READER_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- reader ------------------------------------------------------------ */

struct stele_reader;

struct stele_reader_opts {
	size_t size;
	uint64_t arena_size; /* bytes of buffers; 0: 64 MiB, or what the
				largest sample needs, within a limit */
	uint32_t depth;	     /* device reads in flight, up to 4096, kept as it is;
				0: found while reading, from the device's profile */
	uint32_t verify;     /* enum stele_verify */
	uint32_t check_threads; /* that compute checksums and digests, up to 64; 0:
				   the caller, and for digests one per core */
	uint32_t merge_gap;  /* samples of one submit, one behind the other on the device
				with at most so many bytes between them, are read
				together, and all that there are tickets for may be
				submitted; 0: each sample has its own read */
};

/** Latencies in nanoseconds, to 3 significant digits; any thread, but one at a time. */
struct stele_histogram;

/** NULL: no memory. */
STELE_API struct stele_histogram *stele_histogram_new(void);
STELE_API void stele_histogram_free(struct stele_histogram *histogram);
/** Values from 1 to 2^40 (18 minutes) are told apart; what is larger counts as that. */
STELE_API void stele_histogram_record(struct stele_histogram *histogram,
				      uint64_t ns);
/** Add all that @from holds. */
STELE_API void stele_histogram_add(struct stele_histogram *histogram,
				   const struct stele_histogram *from);
STELE_API uint64_t stele_histogram_count(const struct stele_histogram *histogram);
/** The smallest value that a share of @quantile (0 ... 1) does not exceed; 0: empty. */
STELE_API uint64_t
stele_histogram_quantile(const struct stele_histogram *histogram,
			 double quantile);
STELE_API double stele_histogram_mean(const struct stele_histogram *histogram);

struct stele_reader_stats {
	uint64_t samples;      /* collected */
	uint64_t failed;       /* of those, with a status */
	uint64_t bytes;	       /* payload delivered */
	uint64_t device_reads; /* requests issued, whatever they are for */
	uint64_t device_bytes; /* of these requests */
	uint64_t check_reads;  /* of device_reads, those of checks, which wait for
				  each: digests; a sample that failed, by itself;
				  of a damaged one, whether its image is there yet */
	uint64_t check_bytes;  /* of them; in device_bytes, too */
	uint64_t pending_reads; /* of device_reads, those for samples that were not
				   collected yet, though they may be there */
	uint64_t pending_bytes; /* of them; in device_bytes, too */
	uint64_t reread;       /* samples read again: a bad checksum, EIO */
	uint64_t retries;      /* pieces of requests started again: short, EAGAIN,
				  EINTR; not in device_reads */
	uint64_t enters;       /* calls of the kernel that submitted or waited, by
				  rings; others do not know: 0 */
	uint64_t registered;   /* requests into memory that the ring knows */
	uint64_t p50_ns, p90_ns, p99_ns, p999_ns, max_ns; /* submit to collect */
	uint64_t device_p50_ns, device_p99_ns; /* one device read, none of checks */
	double mean_ns, device_mean_ns;
	uint32_t depth;	       /* device reads in flight now */
	uint32_t window;       /* that may be, for sizes as of late */
	uint32_t depth_peak;
	uint32_t workers;      /* kernel threads that block for this process's
				  rings now (iou-wrk): should be 0 */
	uint32_t huge_pages;   /* of the arena: 2 explicit, 1 transparent if the
				  kernel likes, 0 none */
	char tier[64];	       /* "uring defer-taskrun fixed-file fixed-buffers" */
};

enum stele_depth_phase {
	STELE_DEPTH_STARTUP = 1, /* doubling */
	STELE_DEPTH_DRAIN,
	STELE_DEPTH_CRUISE,
	STELE_DEPTH_PROBE_UP,
	STELE_DEPTH_PROBE_DOWN,
	STELE_DEPTH_PINNED,
};

/** One round of the controller of depth. */
struct stele_depth_round {
	uint64_t time_ns;  /* its end, since the reader was opened */
	double window;	   /* requests of the mean size */
	double bytes_per_second, reads_per_second;
	double slowdown;   /* median latency, as a multiple of one alone */
	uint32_t phase;	   /* enum stele_depth_phase */
	uint32_t starved;  /* 1: the caller asked for less than the window */
};

/**
 * Return: 0; -ENOMEM; -EINVAL and -E2BIG, which the dataset's log explains; -EAGAIN (not
 * one thread); errno of the queue.
 */
STELE_API int stele_reader_open(struct stele_dataset *ds,
				const struct stele_reader_opts *opts,
				struct stele_reader **out);

/**
 * stele_reader_submit() - ask for samples
 * @ids: any order, repeats allowed; @tags may be NULL (tag = 0)
 *
 * Takes as many as there is room for, at most twice what the window of reads holds
 * (unless opts->merge_gap is set), and returns that count (0: collect and release
 * first). An id out of range is taken, and collected with -ERANGE. A sample larger than the whole arena gets
 * memory of its own, one at a time.
 * Return: count; -EOWNERDEAD; -EBUSY (see above).
 */
STELE_API int stele_reader_submit(struct stele_reader *reader,
				  const uint64_t *ids, const uint64_t *tags,
				  unsigned int count);

/**
 * stele_reader_submit_into() - read one sample into the caller's memory
 * @memory: aligned to 4096, of at least stele_reader_buffer_size() bytes for @id;
 *          belongs to the reader until the sample is collected
 * Return: 1 taken; 0 no room now; -ERANGE; -EINVAL (alignment); -ENOBUFS (too
 * small); -EOWNERDEAD; -EBUSY.
 */
STELE_API int stele_reader_submit_into(struct stele_reader *reader, uint64_t id,
				       uint64_t tag, void *memory,
				       uint64_t memory_size);
/**
 * Bytes that a read of this sample fills: its slot, widened to whole device
 * blocks. 0: id out of range.
 */
STELE_API uint64_t stele_reader_buffer_size(const struct stele_reader *reader,
					    uint64_t id);

/**
 * stele_reader_collect() - finished samples, in completion order
 * @min: wait until so many are there (at most what is outstanding); 0: only look
 * Return: count (each with its own status); -EOWNERDEAD; -EBUSY; -EIO (the
 * queue broke).
 */
STELE_API int stele_reader_collect(struct stele_reader *reader,
				   struct stele_sample *samples,
				   unsigned int max, unsigned int min);
/**
 * Give a collected sample's buffer back. Also for failed ones; idempotent. One whose buffer
 * is not this reader's is left as it is.
 */
STELE_API void stele_reader_release(struct stele_reader *reader,
				    struct stele_sample *sample);
/** Submitted and not yet collected. */
STELE_API unsigned int
stele_reader_outstanding(const struct stele_reader *reader);
/**
 * Polls readable when collect may return something. Return: fd (the reader's
 * own); -EOPNOTSUPP; -EOWNERDEAD; -EBUSY; errno of epoll(7) or eventfd(2).
 */
STELE_API int stele_reader_fd(struct stele_reader *reader);
STELE_API void stele_reader_stats(const struct stele_reader *reader,
				  struct stele_reader_stats *stats);
/** The last rounds, oldest first. Return: how many, at most @max and 256. */
STELE_API unsigned int
stele_reader_history(const struct stele_reader *reader,
		     struct stele_depth_round *rounds, unsigned int max);
enum stele_latency {
	STELE_LATENCY_SAMPLE = 0, /* accepted by submit, to handed out by collect */
	STELE_LATENCY_DEVICE,	  /* one device read, but for those of checks */
};
/** Lives as long as the reader, and is written by it. NULL: unknown @which. */
STELE_API const struct stele_histogram *
stele_reader_latency(const struct stele_reader *reader,
		     enum stele_latency which);
/**
 * stele_stats_add() - the sums over several readers, from a zeroed struct on
 *
 * Counts, depth, window and depth_peak add up; workers are those of the whole process;
 * huge_pages are the worst, the tier is the first one's. Latencies are left as they are.
 */
STELE_API void stele_stats_add(struct stele_reader_stats *sum,
			       const struct stele_reader_stats *one);
/**
 * stele_stats_latencies() - quantiles and means, from what lies behind them
 * @samples, @device: of one reader or the sum of several; NULL: leave theirs as they are
 */
STELE_API void stele_stats_latencies(struct stele_reader_stats *stats,
				     const struct stele_histogram *samples,
				     const struct stele_histogram *device);
/**
 * stele_reader_register() - tell the ring of memory that samples are read into
 * @memory: aligned to 4096; stays mapped until the reader is closed
 *
 * Saves pinning its pages for each read, for those of stele_reader_submit_into() that
 * lie in it. Up to 64 such regions.
 * Return: 0; -EOPNOTSUPP (this backend registers none); -EINVAL; -ENOSPC; -ENOMEM (the
 * limit of locked memory); -EOWNERDEAD; -EBUSY.
 */
STELE_API int stele_reader_register(struct stele_reader *reader, void *memory,
				    uint64_t memory_size);
/**
 * stele_stats_prometheus() - stats in the text format of Prometheus
 * @labels: 'rank="3",target="/dev/x"' or NULL; UTF-8, and \, " and newlines within
 *	values escaped, as a collector refuses all of a file that has another byte
 *
 * As snprintf(3): the length that all of it has, terminated if @size allows. For a file
 * that a collector picks up: write beside and rename.
 */
STELE_API int stele_stats_prometheus(const struct stele_reader_stats *stats,
				     const char *labels, char *text,
				     size_t size);
/**
 * Waits for what is in flight. NULL is fine. Samples not released become
 * invalid. Where collect said -EIO, or says -EBUSY, there is nothing to wait for, and
 * memory of stele_reader_submit_into() may be written to until the process ends.
 */
STELE_API void stele_reader_close(struct stele_reader *reader);

/* ---- mmap view ---------------------------------------------------------- */

struct stele_view;

struct stele_view_opts {
	size_t size;
	uint32_t verify; /* enum stele_verify */
	uint32_t reserved;
};

/**
 * stele_view_open() - map the target read-only (MAP_SHARED): samples by
 * pointer, no copy
 *
 * Pages come through the page cache. A page that cannot be read raises SIGBUS
 * on touch; stele_view_prefetch() reports it as an error instead.
 *
 * What is checked is what the cache holds at that time. Bytes in the caller's hands change
 * when the target is written to: published ones never, those of a snapshot that is
 * deleted when gc has given back their space. The cache may also be older than a target
 * that another machine writes to: a sample that does not match is read past it, and kept
 * in memory until the view is closed, 256 MiB at most.
 * Return: 0; -EOPNOTSUPP (not a kernel block device or file); -EINVAL; -E2BIG;
 * -ENOMEM; errno of mmap(2).
 */
STELE_API int stele_view_open(struct stele_dataset *ds,
			      const struct stele_view_opts *opts,
			      struct stele_view **out);
/**
 * Pointer and length of a sample, valid until the view is closed; nothing to release. Any
 * thread, and a forked child. Return: 0; -ERANGE; -EBADMSG, -EUCLEAN; -ESTALE; -ENOBUFS
 * (beyond the 256 MiB, logged); -ENOMEM; device errno.
 */
STELE_API int stele_view_sample(struct stele_view *view, uint64_t id,
				struct stele_sample *out);
/**
 * stele_view_prefetch() - bring samples into memory
 * Return: 0; -ERANGE; -EIO and others of madvise(2) (the first that failed;
 * the rest was tried).
 */
STELE_API int stele_view_prefetch(struct stele_view *view, const uint64_t *ids,
				  size_t count);
STELE_API void stele_view_close(struct stele_view *view);

#ifdef __cplusplus
}
#endif

#endif
