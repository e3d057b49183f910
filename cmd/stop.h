/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop.h - SIGINT, SIGTERM and SIGHUP as a request to end cleanly
 *
 * The first one is only noted; whoever works asks stop_requested() now and
 * then. A second one ends the program at once, as ever.
 */
#ifndef STELE_CMD_STOP_H
#define STELE_CMD_STOP_H

/* From here on, signals are noted. */
void stop_catch(void);
/* Return: the signal's number; 0: none came. */
int stop_requested(void);
/* Die of the signal that was noted, so that a shell sees what happened. */
void stop_raise(void);

#endif
