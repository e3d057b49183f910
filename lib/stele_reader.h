/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stele_reader.h - many samples at once, by request or by pointer; part of stele.h
 *
 * A *reader* keeps many device reads in flight: samples are requested (submit), handed
 * out as they complete (collect), each with its own status, and released, which makes room
 * for the next. Buffers are its own, allocated when it is opened. It finds out by itself
 * how many reads the device wants in flight. It records latencies in *histograms*, which
 * programs can use for their own, too. A *view* has the kernel map the image
 * instead, samples are pointers into the page cache; or it fetches samples when they are touched.
 *
 * Threads. A reader belongs to one thread at a time, and so does a view's prefetch. It can
 * move to another while nothing is in flight: no thread can wait for what another one
 * submitted; until that is collected by its own thread, others get -EBUSY.
 *
 * Processes. In a child after fork() every call on a reader returns -EOWNERDEAD, its samples
 * do not exist (see struct stele_sample), and close leaves the parent's reader alone.
 */
#include "stele.h" /* outside the guard: it includes this one where it belongs */

#ifndef STELE_READER_H
#define STELE_READER_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- reader ------------------------------------------------------------ */

struct stele_reader;

/**
 * One device read, at the time (CLOCK_MONOTONIC) at which it is issued, in the thread that the
 * reader belongs to. It may not call the library.
 */
typedef void (*stele_trace_fn)(void *user, uint64_t time_ns, uint64_t offset,
			       uint32_t size);

struct stele_reader_opts {
	size_t size;
	uint64_t arena_size; /* bytes of buffers; 0: 64 MiB, or what the
				largest sample needs, within a limit */
	uint32_t depth;	     /* device reads in flight, up to 4096, fixed;
				0: adapted while reading */
	uint32_t verify;     /* enum stele_verify */
	uint32_t check_threads; /* to compute checksums and digests, up to 64; 0:
				   the caller, and for digests one per core */
	uint32_t merge_gap;  /* adjacent samples of one submit with at most that many
				bytes between them share one read, and the window
				does not limit a submit; 0: one read per sample */
	uint32_t reserved;
	stele_trace_fn trace; /* called for each device read, except those of checks */
	void *trace_user;
};

/** Latencies in nanoseconds, to 3 significant digits; any thread, one at a time. */
struct stele_histogram;

/** NULL: no memory. */
STELE_API struct stele_histogram *stele_histogram_new(void);
STELE_API void stele_histogram_free(struct stele_histogram *histogram);
/** Values up to 2^40 (18 minutes) are distinguished; larger ones count as that. */
STELE_API void stele_histogram_record(struct stele_histogram *histogram,
				      uint64_t ns);
/** Add the contents of @from. */
STELE_API void stele_histogram_add(struct stele_histogram *histogram,
				   const struct stele_histogram *from);
STELE_API uint64_t stele_histogram_count(const struct stele_histogram *histogram);
/** Smallest value not exceeded by a fraction @quantile (0 ... 1) of all; 0: empty. */
STELE_API uint64_t
stele_histogram_quantile(const struct stele_histogram *histogram,
			 double quantile);
STELE_API double stele_histogram_mean(const struct stele_histogram *histogram);

struct stele_reader_stats {
	size_t size;
	uint64_t samples;      /* collected */
	uint64_t failed;       /* of those, with an error status */
	uint64_t bytes;	       /* payload delivered */
	uint64_t device_reads; /* requests issued, for whatever purpose */
	uint64_t device_bytes; /* of these requests */
	uint64_t check_reads;  /* of device_reads, those made by checks, one at a
				  time: digests; a failed sample again; after damage,
				  whether the image still exists */
	uint64_t check_bytes;  /* of those; included in device_bytes */
	uint64_t pending_reads; /* of device_reads, those for samples not
				   collected yet, though possibly complete */
	uint64_t pending_bytes; /* of those; included in device_bytes */
	uint64_t reread;       /* samples read again: a bad checksum, EIO */
	uint64_t retries;      /* pieces of requests restarted: short, EAGAIN,
				  EINTR; not in device_reads */
	uint64_t enters;       /* io_uring_enter calls that submitted or waited; 0 for
				  backends other than rings */
	uint64_t registered;   /* requests into memory registered with the ring */
	uint64_t p50_ns, p90_ns, p99_ns, p999_ns, max_ns; /* submit to collect */
	uint64_t device_p50_ns, device_p99_ns; /* one device read, except for checks */
	double mean_ns, device_mean_ns;
	uint32_t depth;	       /* device reads in flight now */
	uint32_t window;       /* limit for depth, at recent sizes */
	uint32_t depth_peak;
	uint32_t workers;      /* kernel threads blocking for this process's
				  rings now (iou-wrk): should be 0 */
	uint32_t huge_pages;   /* of the arena: 2 explicit, 1 transparent at the
				  kernel's discretion, 0 none */
	char tier[64];	       /* "uring defer-taskrun fixed-file fixed-buffers" */
};

enum stele_depth_phase {
	STELE_DEPTH_STARTUP = 1, /* doubling */
	STELE_DEPTH_DRAIN,	 /* the same again, until the knee is clear */
	STELE_DEPTH_CRUISE,
	STELE_DEPTH_PROBE_UP,
	STELE_DEPTH_PROBE_DOWN,
	STELE_DEPTH_PINNED,
};

/** One round of the depth controller. It never grows. */
struct stele_depth_round {
	uint64_t time_ns;  /* its end, since the reader was opened */
	double window;	   /* requests of the mean size */
	double bytes_per_second, reads_per_second;
	double slowdown;   /* mean latency, relative to the quickest round of late */
	uint32_t phase;	   /* enum stele_depth_phase */
	uint32_t starved;  /* 1: the caller requested less than the window */
	uint64_t reserved[2];
};

/**
 * Return: 0; -ENOMEM; -EINVAL and -E2BIG, explained in the dataset's log; -EAGAIN (no
 * thread could be started); errno of the queue.
 */
STELE_API int stele_reader_open(struct stele_dataset *ds,
				const struct stele_reader_opts *opts,
				struct stele_reader **out);

/**
 * stele_reader_submit() - request samples
 * @ids: any order, repeats allowed; @tags may be NULL (tag = 0)
 *
 * Accepts as many as there is room for, at most twice the window of reads (unless
 * opts->merge_gap is set), and returns that count (0: collect and release first). An
 * id out of range is accepted, and collected with -ERANGE. A sample larger than
 * the whole arena gets its own memory, one at a time.
 * Return: count; -EOWNERDEAD; -EBUSY (see above).
 */
STELE_API int stele_reader_submit(struct stele_reader *reader,
				  const uint64_t *ids, const uint64_t *tags,
				  unsigned int count);

/** Where to read a sample to. It never grows. */
struct stele_destination {
	uint64_t id, tag;
	void *memory;	      /* aligned to 4096 */
	uint64_t memory_size; /* at least stele_reader_buffer_size() */
};

/**
 * stele_reader_submit_into() - read samples into the caller's memory
 *
 * Which belongs to the reader until the sample is collected. Accepts as many as there is
 * room for, up to the first that it refuses.
 * Return: count (0: no room now); or why the first is refused: -ERANGE; -EINVAL
 * (alignment); -ENOBUFS (too small); or -EOWNERDEAD; -EBUSY.
 */
STELE_API int stele_reader_submit_into(struct stele_reader *reader,
				       const struct stele_destination *to,
				       unsigned int count);
/**
 * Bytes that reading this sample fills: its slot, extended to whole device
 * blocks. 0: id out of range.
 */
STELE_API uint64_t stele_reader_buffer_size(const struct stele_reader *reader,
					    uint64_t id);

/**
 * stele_reader_collect() - finished samples, in completion order
 * @min: wait for this many (at most all in flight); 0: do not wait
 * Return: count (each with its own status); -EOWNERDEAD; -EBUSY; -EIO (the
 * queue broke).
 */
STELE_API int stele_reader_collect(struct stele_reader *reader,
				   struct stele_sample *samples,
				   unsigned int max, unsigned int min);
/**
 * Return a collected sample's buffer; failed ones, too; idempotent. A sample whose buffer
 * belongs to another reader is left alone.
 */
STELE_API void stele_reader_release(struct stele_reader *reader,
				    struct stele_sample *sample);
/** Submitted and not yet collected. */
STELE_API unsigned int
stele_reader_in_flight(const struct stele_reader *reader);
/**
 * Polls readable when collect may return something. Return: fd (the reader's
 * own); -EOPNOTSUPP; -EOWNERDEAD; -EBUSY; errno of epoll(7) or eventfd(2).
 */
STELE_API int stele_reader_fd(struct stele_reader *reader);
/** Return: 0; -EINVAL. */
STELE_API int stele_reader_stats(const struct stele_reader *reader,
				 struct stele_reader_stats *stats);
/** The last rounds, oldest first. Return: their number, at most @max and 256. */
STELE_API unsigned int
stele_reader_history(const struct stele_reader *reader,
		     struct stele_depth_round *rounds, unsigned int max);
enum stele_latency {
	STELE_LATENCY_SAMPLE = 0, /* from submit to collect */
	STELE_LATENCY_DEVICE,	  /* one device read, except for checks */
};
/** Valid as long as the reader, which updates it. NULL: unknown @which. */
STELE_API const struct stele_histogram *
stele_reader_latency(const struct stele_reader *reader,
		     enum stele_latency which);
/**
 * stele_stats_add() - sum over several readers, starting from zeros
 *
 * Counts, depth, window and depth_peak are added; workers are those of the whole process;
 * huge_pages is the worst, tier the first one's. Latencies are left alone. Return: 0;
 * -EINVAL.
 */
STELE_API int stele_stats_add(struct stele_reader_stats *sum,
			      const struct stele_reader_stats *one);
/**
 * stele_stats_latencies() - set quantiles and means from histograms
 * @samples, @device: of one reader or the sum of several; NULL: leave these values alone
 *
 * Return: 0; -EINVAL.
 */
STELE_API int stele_stats_latencies(struct stele_reader_stats *stats,
				    const struct stele_histogram *samples,
				    const struct stele_histogram *device);
/**
 * stele_reader_register() - register memory that samples are read into with the ring
 * @memory: aligned to 4096; must stay mapped until the reader is closed
 *
 * Saves pinning its pages for each stele_reader_submit_into() that reads into it.
 * Up to 64 such regions.
 * Return: 0; -EOPNOTSUPP (this backend registers none); -EINVAL; -ENOSPC; -ENOMEM (the
 * locked memory limit); -EOWNERDEAD; -EBUSY.
 */
STELE_API int stele_reader_register(struct stele_reader *reader, void *memory,
				    uint64_t memory_size);
/**
 * stele_stats_prometheus() - statistics in Prometheus text format
 * @labels: 'rank="3",target="/dev/x"' or NULL; UTF-8, with \, " and newlines in
 *	values escaped, because a collector rejects the whole file otherwise
 *
 * Like snprintf(3): returns the full length, terminates if @size allows; -EINVAL. For a file
 * that a collector reads: write a temporary file and rename it.
 */
STELE_API int stele_stats_prometheus(const struct stele_reader_stats *stats,
				     const char *labels, char *text,
				     size_t size);
/**
 * Waits for reads in flight. NULL is fine. Samples that were not released become invalid, and
 * can still be released with stele_sample_release(). If collect returned -EIO, or returns
 * -EBUSY, there is nothing to wait for, and memory of stele_reader_submit_into() may be
 * written to until the process exits.
 */
STELE_API void stele_reader_close(struct stele_reader *reader);

/* ---- mmap view ---------------------------------------------------------- */

struct stele_view;

enum stele_view_flags {
	/*
	 * Samples are fetched by the view into memory of its own (userfaultfd), whole and
	 * verified: from any target, RBD images as well. See "Fetched" below.
	 */
	STELE_VIEW_FETCH = 1 << 0,
};

struct stele_view_opts {
	size_t size;
	uint32_t verify; /* enum stele_verify */
	uint32_t flags;	 /* enum stele_view_flags */
	uint64_t memory_size; /* FETCH: bytes of samples that are kept at most; 0: 256 MiB, or
				 what the largest sample needs */
};

/**
 * stele_view_open() - map the target read-only (MAP_SHARED): samples by
 * pointer, no copy
 *
 * Pages come through the page cache. A page that cannot be read, or of a file that was cut
 * off, raises SIGBUS on touch: the caller's, or that of stele_view_sample(), which touches
 * what it checks. stele_view_prefetch() reports it as an error instead.
 *
 * What is checked is what the cache holds at that time. Bytes in the caller's hands change
 * when the target is written to: those of a published snapshot never, those of a deleted
 * one once gc has freed their space. The cache may also be older than a target
 * that another machine writes to: a sample that does not match is read around the cache, and
 * kept in memory until the view is closed, 256 MiB at most.
 *
 * Fetched. A sample is read whole and verified when it is requested, touched or prefetched,
 * and with it those that share pages with it. Above memory_size, those fetched first are
 * dropped; their pointers stay valid: a touch brings them back, verified again. So have room
 * for all that threads look at simultaneously, or they drop each other's. If a touch
 * fails, it raises SIGBUS, and never shows zeros or other bytes; a system call gets an error.
 * Samples that share a page with a damaged one are read around it, as above. A thread of
 * the view may call the dataset's log function while others wait for what they
 * touch. After fork() the child has no such memory (SIGSEGV), and calls on the view return
 * -EOWNERDEAD: open another one.
 * Return: 0; -EOPNOTSUPP (not a kernel block device or file; FETCH: no userfaultfd); -EPERM
 * (FETCH: the kernel forbids it; the log names the sysctl); -EINVAL; -E2BIG; -ENOMEM; -EAGAIN
 * (FETCH: no thread); errno of mmap(2).
 */
STELE_API int stele_view_open(struct stele_dataset *ds,
			      const struct stele_view_opts *opts,
			      struct stele_view **out);
/**
 * Pointer and length of a sample, valid until the view is closed; nothing to release. Any
 * thread, and unless it is fetched a forked child. Return: 0; -ERANGE; -EBADMSG, -EUCLEAN;
 * -ESTALE; -ENOBUFS (over the 256 MiB, logged); -EOWNERDEAD; -ENOMEM; device errno.
 */
STELE_API int stele_view_sample(struct stele_view *view, uint64_t id,
				struct stele_sample *out);
/**
 * stele_view_prefetch() - read samples into memory
 * Fetched: many at once, verified; the first ones, if memory_size is less than all need.
 * Return: 0; -ERANGE; -EIO and others of madvise(2), or errors of stele_view_sample() (the
 * first failure; the rest is still tried).
 */
STELE_API int stele_view_prefetch(struct stele_view *view, const uint64_t *ids,
				  size_t count);
STELE_API void stele_view_close(struct stele_view *view);

#ifdef __cplusplus
}
#endif

#endif
