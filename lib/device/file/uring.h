/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uring.h - what the files of the io_uring backends share, and nobody else sees
 *
 * uring_ring.c makes rings, enters the kernel and ends them; uring_memory.c keeps
 * the table of registered memory; uring.c is the queue over both. What one kind of
 * ring does otherwise than the plain one stands in its struct stele_uring_kind.
 *
 * A ring with DEFER_TASKRUN serves the thread that made it, and its descriptor is
 * registered in the table of one thread: see uring_adopt().
 *
 * Queues of a group have one ring: that of their host, which stays until the last of
 * them is closed. Whoever looks at it gives the others' completions to them (`parked`).
 */
#ifndef STELE_DEVICE_FILE_URING_H
#define STELE_DEVICE_FILE_URING_H

#include <liburing.h>

#include "lib/device/backend.h"

struct stele_uring_region {
	char *start;
	size_t size;
};

/*
 * The table of one ring: the arena, cut into slabs, each registered when it is first
 * used; behind them regions, whole.
 */
struct stele_uring_memory {
	char *arena;
	size_t arena_size; /* 0: none of it is registered */
	unsigned int slab_shift; /* slabs are 1 << slab_shift bytes */
	unsigned int slab_count;
	uint8_t *slabs;	   /* enum of uring_memory.c; NULL: all are registered */
	bool table;	   /* it can be added to */
	unsigned int region_count;
	struct stele_uring_region regions[STELE_QUEUE_REGIONS_MAX];
};

struct stele_uring {
	struct stele_queue base;
	struct io_uring ring;
	unsigned int entries;
	unsigned int maker;   /* stele_thread_number() of who made the ring */
	uint8_t ring_flags;   /* its int_flags, while its descriptor is not registered */
	const struct stele_uring_kind *kind;
	struct stele_file *file;
	int target;	      /* that transfers go to ... */
	int fd;		      /* ... as the ring knows it */
	bool fd_registered;
	struct stele_uring_memory memory;
	int event_fd; /* -1 until asked for; then the kernel signals it */
	struct stele_uring *host; /* whose ring it uses; of its own: itself */
	struct stele_request_list parked; /* that another queue of the ring saw */
	/* A host's, of all queues of its ring. */
	unsigned int users;	/* that are open; 0: it shares with none */
	unsigned int promised;	/* depths */
	unsigned int in_ring;	/* started, and not seen complete */
	unsigned int parked_count;
};

struct stele_uring_kind {
	const char *name;
	unsigned int setup;   /* IORING_SETUP_*: without them it is another kind */
	unsigned int idle_ms; /* of a thread of the kernel that polls for requests */
	/* Of a request, what is left of it; user data and flags are set behind it. */
	void (*prepare)(struct stele_uring *queue, struct io_uring_sqe *sqe,
			struct stele_request *request);
	/* A raw result as the seam wants it; NULL: it is one. */
	ssize_t (*result)(const struct stele_request *request, int res);
};

/* ---- uring_ring.c ---------------------------------------------------------- */

/* The best ring of a kind that this kernel makes. 0 or -errno. */
int stele_uring_ring_init(struct io_uring *ring, unsigned int entries,
			  const struct stele_uring_kind *kind);
/*
 * Everything submitted, and min_wait completions in the ring; with `look`, also those
 * that wait for us to come and post them. Counts into *enters. 0 or -errno.
 */
int stele_uring_ring_push(struct io_uring *ring, unsigned int min_wait,
			  bool look, uint64_t *enters);
/* Is something left that a look would bring? */
bool stele_uring_ring_ready(const struct io_uring *ring);
/* In a forked child: io_uring_queue_exit() would ask the kernel to unregister. */
void stele_uring_ring_abandon(struct io_uring *ring);

/* ---- uring_memory.c -------------------------------------------------------- */

/* An arena of no size: only a table. Best effort. */
void stele_uring_memory_init(struct stele_uring *queue, void *arena,
			     size_t arena_size);
void stele_uring_memory_release(struct stele_uring *queue);
/* The number in the table under which all of this memory is registered, or -1. */
int stele_uring_memory_find(struct stele_uring *queue, void *data, size_t size);
/* See stele_queue_register(). */
int stele_uring_memory_attach(struct stele_queue *base, void *memory,
			      size_t size);

/* ---- uring.c --------------------------------------------------------------- */

/* A queue of this kind; the backend keeps what else it needs at hand. */
int stele_uring_open(struct stele_file *file, const struct stele_uring_kind *kind,
		     int fd, unsigned int depth, void *arena, size_t arena_size,
		     struct stele_queue **out);
/* What prepare() does for a file or block device. */
void stele_uring_prepare(struct stele_uring *queue, struct io_uring_sqe *sqe,
			 struct stele_request *request);

#endif
