/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.h - a reader from inside, for the files that share it
 *
 * Life of a ticket:
 *
 *	idle -> fetched (fetch.h) -> checked (check.h) -> handed out, idle
 *	              ^----------------- again -'
 *
 * Checked by the reader's own thread, as it hands samples out, or by threads of
 * checkers.h, in which case the checked ones wait in `checked`. Of checksums the reader's
 * thread then still does as much as it takes to wake one of those.
 */
#ifndef STELE_READ_READER_H
#define STELE_READ_READER_H

#include "lib/read/arena.h"
#include "lib/read/checkers.h"
#include "lib/read/fetch.h"

struct stele_reader {
	struct stele_dataset *ds;
	uint64_t serial; /* no other reader of this process has it; 0: it got none */
	struct stele_arena arena;
	struct stele_pages large; /* of the sample that no arena could hold */
	struct stele_fetch fetch;
	struct stele_checker checker;
	struct stele_checkers *checkers; /* NULL: checker does it all */
	bool shares; /* with checkers: checker, too, has its share */
	struct stele_ticket *tickets;
	unsigned int ticket_count;
	unsigned int tickets_used; /* of them that ever were */
	struct stele_ticket_list idle, checked;
	unsigned int outstanding;
	double share; /* of what its thread has in flight; 1: it has no other reader */
	uint32_t merge_gap; /* bytes; 0: each sample has a read of its own */
	unsigned int fork_count; /* of the process that opened it */
	int broken;		 /* the queue's last word */
	int poll_fd;  /* -1 until asked for: epoll of the queue, checkers and ... */
	int event_fd; /* ... this one: samples that wait for collect */
	bool signalled;
	struct stele_histogram *latency; /* of samples */
	struct stele_reader_stats stats; /* what is counted here */
	uint64_t settled_reads, settled_bytes; /* of samples that were collected */
};

/*
 * stele_reader_open() of one of several readers that a thread has: a share of what
 * may be in flight is all that it gets memory for. Small ones have their queue in the group.
 */
int stele_reader_open_share(struct stele_dataset *ds,
			    const struct stele_reader_opts *opts, double share,
			    struct stele_queue_group *group,
			    struct stele_reader **out);
/*
 * As stele_reader_fd(), for who sleeps only once collect finds nothing: where no checkers
 * have work it is the queue's, and of a group the same for all.
 */
int stele_reader_wait_fd(struct stele_reader *reader);
bool stele_reader_is_forked(const struct stele_reader *reader);
/* Is the reader of a sample still open? Looks at neither. Without a serial: true. */
bool stele_reader_is_open(uint64_t serial);
/* See stele_fetch_pump(); what breaks is kept in `broken`. */
void stele_reader_pump(struct stele_reader *reader, unsigned int wait);
/* Memory of a sample, arena's or large; anything else is ignored. */
void stele_reader_give(struct stele_reader *reader, const void *memory);
/* After anything that may have changed what collect would return. */
void stele_reader_update_event(struct stele_reader *reader);

#endif
