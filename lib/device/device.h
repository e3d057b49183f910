/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - the seam: every byte that goes to or comes from a target
 *
 * A *device* is an opened target: shared between threads, its limits fixed at
 * open. Blocking transfers on it are for the cold path (superblocks, catalog,
 * sections). A *queue* is one thread's way to keep many transfers in flight:
 * only the thread that opened it may use it, and never across fork().
 *
 * This layer is strict where kernels are lenient (a loop device takes
 * misaligned buffers): offset and length must be multiples of
 * limits.logical_block, the memory a multiple of limits.memory_align, and a
 * queued transfer at most limits.transfer_max; otherwise -EINVAL, before
 * anything is issued. It handles short transfers, EAGAIN and EINTR once, for
 * all backends: a request that completes with status 0 was transferred whole.
 *
 * Life of a request: free -> submitted -> in flight -> reaped -> free. Request
 * and memory belong to the queue from submit until reap hands them back, also
 * when something failed: the kernel may still write there.
 */
#ifndef STELE_DEVICE_DEVICE_H
#define STELE_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/log.h"

struct stele_device;
struct stele_queue;
struct stele_queue_group;
struct stele_rbd_snap_ops;

/* Names of the file backends that are probed; there are others, by name only. */
#define STELE_BACKEND_ENV     "STELE_BACKEND"
#define STELE_BACKEND_URING   "uring"
#define STELE_BACKEND_THREADS "threads"

/*
 * Largest length of one queued transfer, whatever the device allows; and where a kernel
 * would split what is larger.
 */
#define STELE_TRANSFER_SIZE_MAX	     (32u << 20)
#define STELE_FILE_TRANSFER_SIZE_MAX (512u << 10)
#define STELE_QUEUE_DEPTH_MAX	4096u
/* How often one piece of a request is tried again on EAGAIN or EINTR. */
#define STELE_RETRY_MAX		64u

enum stele_op {
	STELE_OP_READ,
	STELE_OP_WRITE,
	STELE_OP_FLUSH, /* of all writes reaped before it was submitted */
	STELE_OP_DISCARD, /* block-aligned, no other limit; slow, may block */
};

struct stele_limits {
	uint32_t logical_block; /* power of two, 512..4096 */
	uint32_t memory_align;	/* power of two, bytes */
	uint32_t transfer_max;	/* multiple of logical_block; never split below us */
	uint32_t depth_max;	/* never more than the kernel has tags for at once */
	uint32_t boundary;	/* what crosses a multiple costs more: an RBD object; 0: none */
};

struct stele_request {
	enum stele_op op;
	void *data;	 /* not for FLUSH, DISCARD */
	uint64_t offset; /* bytes */
	uint32_t size;	 /* bytes */
	int status;	 /* after reap: 0 or negative errno */
	void *user;	 /* the caller's */

	/* The seam's own, from submit to reap. */
	uint32_t done;	  /* bytes transferred so far */
	uint32_t retries; /* of the piece now in flight */
	struct stele_queue *queue; /* of a backend in which queues share */
	struct stele_request *next;
};

/*
 * What tells one image of a storage, or one RBD snapshot of it, from all others, as
 * names are used again: the ids that Ceph gave.
 */
struct stele_storage_id {
	char cluster[40]; /* a UUID as text; "": nothing is known */
	int64_t pool;
	char image[64];
	uint64_t snap; /* 0: the head */
};

/*
 * What a backend implements. A raw transfer may be short (0 <= res < size) or
 * fail with any errno; device.c and queue.c do the rest. Every slot is
 * required but those that say they are optional; discard may fail.
 */
struct stele_device_ops {
	const char *name;

	/* One blocking transfer; bytes (flush, discard: 0) or -errno. */
	ssize_t (*transfer)(struct stele_device *dev, enum stele_op op,
			    void *data, uint64_t offset, size_t size);
	/* Bytes on the target now. */
	int (*size)(struct stele_device *dev, uint64_t *size);
	/* Sets *queue to a struct that begins with struct stele_queue. */
	int (*queue_open)(struct stele_device *dev, unsigned int depth,
			  void *arena, size_t arena_size,
			  struct stele_queue **queue);
	/* Optional: see stele_queue_open_in(). Its errors mean: not in this group. */
	int (*queue_join)(struct stele_device *dev, unsigned int depth,
			  struct stele_queue_group *group,
			  struct stele_queue **queue);
	void (*close)(struct stele_device *dev);

	/* Optional. See stele_device_check(). */
	int (*check)(struct stele_device *dev);
	/* Optional, of a resizable one: set the target's size. 0 or -errno. */
	int (*resize)(struct stele_device *dev, uint64_t size);
	/* Optional: the same, where a late one must not make it smaller. */
	int (*grow)(struct stele_device *dev, uint64_t size);
	/* Optional, of no file: see stele_device_reserve_file(). */
	int (*reserve)(struct stele_device *dev, uint64_t offset, uint64_t size);
	/* Optional: bytes that were ever written, in whole objects. */
	int (*data)(struct stele_device *dev, uint64_t *bytes);
	const struct stele_rbd_snap_ops *snaps; /* NULL: it has none; see snaps.h */
	/*
	 * Optional: the URI by which any process of this machine opens it, whatever
	 * its environment; malloc'ed, NULL: no memory.
	 */
	char *(*uri)(struct stele_device *dev);
	/* Optional; see stele_device_pick(). */
	int (*pick)(struct stele_device *dev, const char *name);
	/* Optional: which one it is. */
	int (*identify)(struct stele_device *dev, struct stele_storage_id *id);
};

struct stele_queue_ops {
	/*
	 * Start what is left of one request (from request->done on). There is
	 * always room: queue.c never has more than depth in flight. 0 or
	 * -errno.
	 */
	int (*start)(struct stele_queue *queue, struct stele_request *request);
	/*
	 * Push what was started to the kernel, wait until at least min_wait
	 * raw completions are there (0: only look), and fill done[]/res[]
	 * with up to max of them (0: only push, and of a group wait for any of
	 * its queues). Count or -errno.
	 */
	int (*wait)(struct stele_queue *queue, unsigned int min_wait,
		    struct stele_request **done, ssize_t *res,
		    unsigned int max);
	/* A descriptor that polls readable when completions may be there. */
	int (*event_fd)(struct stele_queue *queue);
	/*
	 * Nothing is in flight, except in a forked child: there, only free; and
	 * when it broke: then nothing may be freed that the kernel knows.
	 */
	void (*close)(struct stele_queue *queue, bool forked);
	/*
	 * Optional: another thread than before uses it from now on. Return: 0; -EBUSY
	 * (only the one before can reap what is in flight); errno.
	 */
	int (*adopt)(struct stele_queue *queue);
	/* Optional: see stele_queue_register(). */
	int (*attach)(struct stele_queue *queue, void *memory, size_t size);
	/* Optional: what is in use of what can be, in words; NULL: the name. */
	void (*describe)(const struct stele_queue *queue, char *text,
			 size_t size);
};

struct stele_queue_stats {
	uint64_t retries;    /* pieces that were started again */
	uint64_t enters;     /* calls of the kernel, where the backend knows */
	uint64_t registered; /* transfers of memory that the kernel has pinned */
};

/* Embedded at the head of each backend's own struct. */
struct stele_device {
	const struct stele_device_ops *ops;
	struct stele_limits limits;
	struct stele_log log;
	bool writable;
	bool dry; /* what is written never reaches a target, see rehearsal.h */
	bool resizable; /* its size is ours to set: a file, the head of an RBD image */
	uint32_t fence_mode; /* enum stele_fence_mode: what keeps other writers out */
	int fd; /* of a target that has one, else -1 */
	bool named; /* a regular file that had a name when it was opened */
	/*
	 * Its bytes may be taken away without an error, which only check() tells:
	 * nothing that is read counts before its checksum matched.
	 */
	bool revocable;
	struct stele_permit *permit; /* the writer's: asked before each write; or NULL */
	_Atomic uint64_t written; /* bytes that writes have transferred */
};

/* May a writer still write? Any thread asks. Return: 0, or the error of the write. */
struct stele_permit {
	int (*check)(struct stele_permit *permit);
	/* The same, and an answer of a moment ago is not good enough. */
	int (*confirm)(struct stele_permit *permit);
};

struct stele_queue {
	const struct stele_queue_ops *ops;
	struct stele_device *dev; /* that was asked for a queue: the limits */
	unsigned int depth;
	unsigned int in_flight;	 /* submitted and not yet reaped */
	unsigned int fork_count; /* of the process when it was opened */
	unsigned int thread;	 /* that uses it; 0: none yet */
	bool grouped;		 /* it shares with others; see stele_queue_open_in() */
	struct stele_queue_stats stats; /* backends count enters and registered */
};

enum stele_device_flags {
	STELE_DEVICE_WRITE = 1 << 0,
	/* nobody else has it open: O_EXCL on block devices and flock(LOCK_EX) */
	STELE_DEVICE_EXCL = 1 << 1,
	STELE_DEVICE_CREATE = 1 << 2, /* a regular file that must not exist; not among devices */
	/*
	 * No other writer, readers welcome: O_EXCL on block devices, and a lock
	 * that EXCL takes as well; on RBD the exclusive lock, not handed over.
	 */
	STELE_DEVICE_SOLE = 1 << 3, /* with WRITE */
};

/*
 * Open any target: a path, or "rbd:POOL[/NAMESPACE]/IMAGE[?OPTIONS]". `snap` (may be
 * NULL) opens that RBD snapshot, read-only, and only if it is protected; -EOPNOTSUPP
 * for a path.
 *
 * `backend` is of files. Why an RBD image cannot be opened is logged.
 *
 * Return: as stele_device_open_file(), and of RBD: -EINVAL (syntax); -ENOENT (no such
 * configuration, pool, image or RBD snapshot); -EACCES; -EPERM (an RBD snapshot that is
 * not protected); -ETIMEDOUT; -EOPNOTSUPP (built without librbd).
 */
int stele_device_open(const char *path, const char *snap, unsigned int flags,
		      const char *backend, const struct stele_log *log,
		      struct stele_device **out);
/*
 * The same, and while a file or disk is busy again and again for a second: the
 * kernel closes the files of a ring a moment after its process is gone.
 */
int stele_device_open_patiently(const char *path, unsigned int flags,
				const char *backend,
				const struct stele_log *log,
				struct stele_device **out);

/*
 * Create an RBD image, with what suits data that is written once and read by
 * many; size 0: only look whether that may be tried. Files are created at open.
 * Return: 0 (size 0: there is none); -EEXIST (there is one; not logged); -EINVAL
 * (object_size); -EOPNOTSUPP; errno of the cluster (logged).
 */
int stele_device_create(const char *path, uint64_t size, uint32_t object_size,
			const struct stele_log *log);
/* Remove it, or a file. Nobody may have an image open. 0; errno (of RBD: logged). */
int stele_device_destroy(const char *path, const struct stele_log *log);
#define STELE_OBJECT_SIZE_MIN	  4096u
#define STELE_OBJECT_SIZE_MAX	  (32u << 20)
#define STELE_OBJECT_SIZE_DEFAULT (4u << 20)

/*
 * Is it still what was opened? Of a writer's on RBD: is it still the only one?
 * Return: 0; -ESTALE (an RBD snapshot that was removed); -ESHUTDOWN (another writer has taken
 * over); errno.
 */
int stele_device_check(struct stele_device *dev);
/* See ops->uri; without the RBD snapshot. NULL: not RBD, or no memory. */
char *stele_device_uri(struct stele_device *dev);
/*
 * From now on the device is the RBD snapshot of that name, as if it had been opened by it,
 * through the same connection. Once, of a device that was opened for reading, at its head,
 * and has no queue. On an error the device can only be closed; -ENOENT: none that was there
 * when it was opened.
 */
int stele_device_pick(struct stele_device *dev, const char *name);
/* Return: 0; -EOPNOTSUPP (a file, device or memory); errno. */
int stele_device_identify(struct stele_device *dev, struct stele_storage_id *id);

/*
 * Open a block device or regular file with O_DIRECT (a filesystem that has
 * none: -EOPNOTSUPP is stepped down to buffered, and logged once). Readers
 * take a shared flock where they get it at once, so that a writer on this
 * machine can tell. `backend`: NULL looks at $STELE_BACKEND, then probes "uring" and
 * "threads". Only by name: "sqpoll"; and to read, "iopoll", "hybrid" (of disks whose
 * queues are polled) and "passthrough" (of whole NVMe namespaces).
 * Limits are read from the queue, never assumed.
 *
 * Return: 0; -EBUSY (EXCL: in use by another opener; SOLE: by a writer); -ENOTBLK (neither block
 * device nor regular file); -EROFS; -EINVAL (unknown backend); -EOPNOTSUPP
 * (logical blocks over 4096: metadata could not be read; a backend by name that
 * cannot serve here, which the log says why); errno of open(2).
 */
int stele_device_open_file(const char *path, unsigned int flags,
			   const char *backend, const struct stele_log *log,
			   struct stele_device **out);
/*
 * The descriptor behind a file device, for fstat and ioctl; else -EOPNOTSUPP.
 */
int stele_device_fd(const struct stele_device *dev);
/* What an error of a write to it means: what is full is mostly not the device itself. */
const char *stele_device_strerror(const struct stele_device *dev, int error);
/* Of what the kernel says of it: that -ENOSPC has this meaning in error.h. Return: `rc`. */
int stele_device_explain(const struct stele_device *dev, int rc);
/* Of a write of `what` to it: if it is full, say what that means. Return: `error`. */
int stele_device_log_full(const struct stele_device *dev, const struct stele_log *log,
			  const char *what, int error);

/*
 * Blocking transfers, whole or failed, of any block-aligned size. Safe from
 * several threads at once.
 * Return: 0; -EINVAL (alignment); -ENODATA (read) or -ENOSPC (write: end of the
 * target before size); -EROFS (not opened for writing); errno of the device.
 */
int stele_device_read(struct stele_device *dev, void *data, uint64_t offset,
		      size_t size);
int stele_device_write(struct stele_device *dev, const void *data,
		       uint64_t offset, size_t size);
/* The same, and no permit is asked. */
int stele_device_write_plain(struct stele_device *dev, const void *data,
			     uint64_t offset, size_t size);
/* Ask the permit, if there is one; anew, of what erases more than space of its own. */
int stele_device_may_write(struct stele_device *dev);
int stele_device_may_erase(struct stele_device *dev);
int stele_device_flush(struct stele_device *dev);
/* The permit is asked anew. */
int stele_device_discard(struct stele_device *dev, uint64_t offset,
			 uint64_t size);
int stele_device_size(struct stele_device *dev, uint64_t *size);
/*
 * Set the size of a resizable target; what is new reads as zeros. Writing never
 * makes it grow: it fails with -ENOSPC at the end, as on a block device. Not
 * while other threads write. The permit is asked anew.
 * Return: 0; -EINVAL (alignment); -EROFS; -EOPNOTSUPP (not resizable); errno.
 */
int stele_device_resize(struct stele_device *dev, uint64_t size);
/* Make it that large, unless it is larger: also if somebody else made it so just now. */
int stele_device_grow(struct stele_device *dev, uint64_t size);
/*
 * Have the filesystem allocate these bytes of a regular file, whose size does not
 * change: then a full disk shows now, not while it is written. Where a filesystem
 * cannot, nothing happens.
 * Return: 0; -ENOSPC; -EDQUOT; -EROFS; -EOPNOTSUPP (no regular file); -ENOMEM; errno.
 */
int stele_device_reserve_file(struct stele_device *dev, uint64_t offset,
			      uint64_t size);
/*
 * Give back what was reserved, also by what failed, and has not been kept: all that
 * were holes are holes again, whatever was written there, if they were reserved from
 * `from` on; what lies before is for a next call. No larger than `size`. `permit` (may be
 * NULL) is asked before each change: if it refuses, no more is done.
 * Return: 0; -EROFS; -EOPNOTSUPP (no regular file); the permit's error; errno.
 */
int stele_device_unreserve_file(struct stele_device *dev, uint64_t from,
				uint64_t size, struct stele_permit *permit);
/* It is in use now, or may be. */
void stele_device_keep_file(struct stele_device *dev);
/* NULL is fine. */
void stele_device_close(struct stele_device *dev);

/* "uring", "threads", "memory", "fault": which one serves. */
const char *stele_device_backend(const struct stele_device *dev);

/* Memory that every backend can transfer to and from; release with free(). */
void *stele_device_alloc(const struct stele_device *dev, size_t size);

/*
 * A queue of up to depth transfers. `arena` (may be NULL) is memory that most
 * transfers will use: backends register it where they can; best effort.
 * Return: 0; -EINVAL (depth 0 or over STELE_QUEUE_DEPTH_MAX); -ENOMEM; errno.
 */
int stele_queue_open(struct stele_device *dev, unsigned int depth, void *arena,
		     size_t arena_size, struct stele_queue **out);

/*
 * Queues of one thread, of any devices, that share what their backends can share: a ring
 * that is entered once for all. Begins as zeros.
 */
struct stele_queue_group {
	struct stele_queue *host; /* that others can join; NULL: none yet */
};

/*
 * As stele_queue_open(), in a group, for this thread alone. No memory is registered. A reap
 * that waits for nothing brings what was gathered. What cannot join has a queue of its own.
 */
int stele_queue_open_in(struct stele_device *dev, unsigned int depth,
			struct stele_queue_group *group,
			struct stele_queue **out);
/*
 * Push what all queues of its group have started, and wait until `min` requests of any can
 * be reaped (at most those in flight). Return: 0; -EIO (it broke); as claim.
 */
int stele_queue_gather(struct stele_queue *queue, unsigned int min);

/*
 * A queue belongs to one thread at a time: the one that calls. A ring serves the thread
 * that made it, so another gets a new one, and only while nothing is in flight. Submit,
 * reap, register and fd begin with this.
 * Return: 0; -EOWNERDEAD; -EBUSY (requests of another thread are in flight); errno.
 */
int stele_queue_claim(struct stele_queue *queue);

/*
 * Hand over one request. It is started now or with the next submit or reap.
 * Return: 0; -EINVAL (alignment, size 0, over transfer_max); -EAGAIN (depth
 * requests in flight: reap first); -EROFS; -EOWNERDEAD (after fork); as claim. On an
 * error the request was not taken.
 */
int stele_queue_submit(struct stele_queue *queue,
		       struct stele_request *request);

/*
 * Collect up to max finished requests, in completion order; wait for at least
 * `min` (at most those in flight). A failed transfer is a collected request
 * with a status, never an error of this call.
 * Return: count; -EOWNERDEAD; as claim; -EIO (the queue itself broke).
 */
int stele_queue_reap(struct stele_queue *queue, struct stele_request **done,
		     unsigned int max, unsigned int min);

/*
 * Submit all of these, and wait for all of them; nothing else may be in flight. Each has
 * its own status. Return: 0; errors of submit and reap: some may be in flight still.
 */
int stele_queue_run(struct stele_queue *queue, struct stele_request *requests,
		    unsigned int count);

/*
 * Further memory, beside the arena, that transfers will use; page-aligned, until
 * the queue is closed. Nothing need be idle.
 * Return: 0; -EOPNOTSUPP (the backend registers none); -EINVAL; -ENOSPC (too many);
 * -ENOMEM; -EOWNERDEAD; as claim.
 */
int stele_queue_register(struct stele_queue *queue, void *memory, size_t size);
#define STELE_QUEUE_REGIONS_MAX 64u

/* "uring defer-taskrun fixed-file fixed-buffers": what is in use. */
void stele_queue_describe(const struct stele_queue *queue, char *text,
			  size_t size);

/* Kernel threads that block on behalf of this process's rings now (iou-wrk). */
unsigned int stele_device_workers(void);

/*
 * Polls readable when reap would return something. -EOPNOTSUPP: a queue that is polled
 * itself ("iopoll", "hybrid") finds completions when it is reaped, and tells nobody.
 */
int stele_queue_fd(struct stele_queue *queue);

/*
 * Waits for everything in flight, drops it, and frees. NULL is fine.
 * Return: 0; or, of a queue that broke or that cannot be claimed, how many are in flight
 * for ever: the kernel may still write to their memory, which may never be freed or used
 * (the requests may).
 */
unsigned int stele_queue_close(struct stele_queue *queue);

/* The calling thread, by a number that no other of this process ever has. */
unsigned int stele_thread_number(void);

/* How often this process has been forked from the one that loaded us. */
unsigned int stele_fork_count(void);

#endif
