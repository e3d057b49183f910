/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop.h - SIGINT, SIGTERM and SIGHUP as a request to end cleanly
 *
 * The first one is only recorded; working code polls stop_requested(). One that comes half
 * a second later or more terminates the program at once, as usual.
 */
#ifndef STELE_CMD_STOP_H
#define STELE_CMD_STOP_H

/* From here on, signals are recorded. */
void stop_catch(void);
/* Return: the signal's number; 0: none came. */
int stop_requested(void);
/* Die of the recorded signal, so that a shell sees what happened. */
void stop_raise(void);

#endif
