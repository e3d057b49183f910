/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - what is to be done with a ticket that arrived: is it a sample?
 *
 * All that may take long stands here, and touches nothing but the checker, the ticket and its
 * memory: so it runs on the reader's thread or on those of checkers.h alike. A slot
 * whose checksum does not match is read once more, into memory of its own; only
 * what arrives intact there is copied back. One that the device could not read (EIO)
 * is read once more, too, by itself.
 */
#ifndef STELE_READ_CHECK_H
#define STELE_READ_CHECK_H

#include "lib/device/tally.h"
#include "lib/image/proof.h"
#include "lib/read/sample.h"

struct stele_ticket;

/* Of a ticket. */
struct stele_verdict {
	struct stele_sample sample; /* if its status is 0 */
	char *first; /* where it belongs, while it is read a second time */
	bool again;  /* not finished: it has new memory to be read into */
	unsigned int rereads; /* since it was submitted */
};

/* Digests that a reader keeps at most, all its checkers together. */
#define STELE_CHECKERS_MEMORY (32u << 20)

/* Who checks; belongs to one thread. */
struct stele_checker {
	const struct stele_dataset *ds;
	enum stele_verify verify;
	struct stele_proof proof; /* for DIGEST */
	/* What it has read itself, as a tally; any thread may look. */
	_Atomic uint64_t reads, read_bytes, retries;
};

/* One of `count` that a reader has. Return: 0; -ENOMEM. */
int stele_checker_init(struct stele_checker *checker,
		       const struct stele_dataset *ds, enum stele_verify verify,
		       unsigned int count);
/* Idempotent. */
void stele_checker_release(struct stele_checker *checker);

/* Add what it has read itself: digests, samples by themselves, what damage asks for. */
void stele_checker_count_reads(const struct stele_checker *checker,
			       struct stele_tally *sum);

/* Sets the verdict, and ticket->status to what became of the sample unless `again`. */
void stele_ticket_check(struct stele_checker *checker,
			struct stele_ticket *ticket);

#endif
