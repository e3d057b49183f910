/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crew.h - a few threads that work while the caller's thread keeps watch
 *
 * The watching thread calls tick() every STELE_TICK_MS, so that progress is
 * told and asked about from the caller's own thread. Workers block all
 * signals: handlers run where the caller expects them. Ends when every worker
 * has returned; it is the workers' business to stop one another.
 */
#ifndef STELE_BASE_CREW_H
#define STELE_BASE_CREW_H

/* How often a scan or another long step asks whether to go on. */
#define STELE_TICK_MS 50

/* `index`: 0 to jobs - 1. Returns 0 or a negative errno. */
typedef int (*stele_crew_work)(void *user, unsigned int index);
typedef void (*stele_crew_tick)(void *user);

/*
 * Run work() on `jobs` (at least 1) threads. Fewer will do when the system
 * gives no more.
 * Return: 0; the first error of a worker; -EAGAIN (not one thread); -ENOMEM.
 */
int stele_crew_run(unsigned int jobs, stele_crew_work work,
		   stele_crew_tick tick, void *user);

#endif
