/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkers.h - threads that check arrived tickets, for a reader
 *
 * For where one core cannot keep up with the device: a digest is 2 GB/s of a core.
 * The reader's thread gives tickets and takes them back checked, in the order in
 * which they are done; in between a ticket and its memory are a checker's. It
 * sleeps here only while it has nothing better to wait for.
 *
 * Belongs to the reader's thread, like the reader. A child after fork() has neither
 * the threads nor a lock that it could take.
 */
#ifndef STELE_READ_CHECKERS_H
#define STELE_READ_CHECKERS_H

#include "lib/read/fetch.h"

#define STELE_CHECKERS_MAX 64u /* threads */

struct stele_checkers;

/*
 * Fewer threads than `count` serve where not all can be started.
 * Return: 0; -ENOMEM; errno of eventfd(2); -EAGAIN (not one thread).
 */
int stele_checkers_open(const struct stele_dataset *ds,
			enum stele_verify verify, unsigned int count,
			struct stele_checkers **out);
/* Tickets that were not taken back are as they are. NULL is fine. */
void stele_checkers_close(struct stele_checkers *checkers, bool forked);

unsigned int stele_checkers_count(const struct stele_checkers *checkers);

/*
 * Give all of `arrived`, and append to `checked` what is done; `wait`: until one is, if
 * there is any.
 */
void stele_checkers_exchange(struct stele_checkers *checkers,
			     struct stele_ticket_list *arrived,
			     struct stele_ticket_list *checked, bool wait);
/* Given and not taken back. */
unsigned int stele_checkers_busy(const struct stele_checkers *checkers);

/* Add what each of them has read itself. */
void stele_checkers_count_reads(const struct stele_checkers *checkers,
				struct stele_tally *sum);

/* Polls readable when exchange would take something back. */
int stele_checkers_fd(struct stele_checkers *checkers);

#endif
