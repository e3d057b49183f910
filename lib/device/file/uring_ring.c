/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uring_ring.c - rings: how they are made, entered and ended
 *
 * What a kernel, a container or a limit forbids is found by trying: flags are
 * dropped from the best downwards, but never those that make a kind what it is. All
 * calls of io_uring_enter(2) are made here, one for what is to be submitted and
 * waited for.
 */
#include "lib/device/file/uring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Linux 5.6, the first to have IORING_OP_READ; and no lost completions. */
#define FEATURES_NEEDED (IORING_FEAT_NODROP | IORING_FEAT_RW_CUR_POS)

int stele_uring_ring_init(struct io_uring *ring, unsigned int entries,
			  const struct stele_uring_kind *kind)
{
	static const unsigned int tiers[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL |
			IORING_SETUP_CLAMP,
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
			IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP,
		IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP,
		IORING_SETUP_CLAMP,
	};
	struct io_uring_params params;
	int rc = -EINVAL;

	for (size_t i = 0; rc == -EINVAL && i < 4; i++) {
		memset(&params, 0, sizeof(params));
		params.flags = tiers[i] | kind->setup;
		params.sq_thread_idle = kind->idle_ms;
		rc = io_uring_queue_init_params(entries, ring, &params);
	}
	if (rc)
		return rc;
	if ((params.features & FEATURES_NEEDED) == FEATURES_NEEDED &&
	    params.sq_entries >= entries)
		return 0;
	io_uring_queue_exit(ring);
	return -ENOSYS;
}

/* ---- entering -------------------------------------------------------------- */

static unsigned int flags_of(const struct io_uring *ring)
{
	return IO_URING_READ_ONCE(*ring->sq.kflags);
}

/* A ring that is polled has completions when somebody looks, and tells nobody. */
bool stele_uring_ring_ready(const struct io_uring *ring)
{
	return io_uring_cq_ready(ring) ||
	       flags_of(ring) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

/* With a thread of the kernel: that thread sees them, unless it sleeps. */
static unsigned int unsubmitted(const struct io_uring *ring)
{
	unsigned int ready = io_uring_sq_ready(ring);

	if (ready && ring->flags & IORING_SETUP_SQPOLL &&
	    ring->sq.sqe_tail == *ring->sq.ktail &&
	    !(flags_of(ring) & IORING_SQ_NEED_WAKEUP))
		return 0;
	return ready;
}

int stele_uring_ring_push(struct io_uring *ring, unsigned int min_wait,
			  bool look, uint64_t *enters)
{
	unsigned int failures = 0;
	int rc;

	look = look &&
	       (ring->flags & IORING_SETUP_IOPOLL ||
		flags_of(ring) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW));
	while (look || unsubmitted(ring) ||
	       io_uring_cq_ready(ring) < min_wait) {
		*enters += 1;
		if (io_uring_cq_ready(ring) < min_wait)
			rc = io_uring_submit_and_wait(ring, min_wait);
		else if (look)
			rc = io_uring_submit_and_get_events(ring);
		else
			rc = io_uring_submit(ring);
		look = look && rc < 0;
		if (rc >= 0 || rc == -EINTR)
			continue;
		if (rc != -EAGAIN || ++failures > STELE_RETRY_MAX)
			return rc;
	}
	return 0;
}

/* ---- ends ------------------------------------------------------------------ */

void stele_uring_ring_abandon(struct io_uring *ring)
{
	munmap(ring->sq.sqes,
	       ring->sq.ring_entries * sizeof(*ring->sq.sqes) *
		       (ring->flags & IORING_SETUP_SQE128 ? 2 : 1));
	munmap(ring->sq.ring_ptr, ring->sq.ring_sz);
	if (ring->cq.ring_ptr != ring->sq.ring_ptr)
		munmap(ring->cq.ring_ptr, ring->cq.ring_sz);
	close(ring->ring_fd);
}
