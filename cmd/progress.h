/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - how far a command is, on stderr
 *
 * There is one stderr, so there is one line, with global state. On a terminal it is
 * overwritten; elsewhere lines are printed only if progress_force() was called, one a second.
 * Messages go through here, so that the two never mix. Any thread.
 */
#ifndef STELE_CMD_PROGRESS_H
#define STELE_CMD_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress_state {
	const char *verb; /* static text; a new one restarts the clock */
	uint64_t samples_done, samples_total; /* total 0: not known */
	uint64_t bytes_done, bytes_total;
};

/* --progress: show it in any case, wherever stderr goes. */
void progress_force(void);
/* Before that, nothing is shown. */
void progress_start(bool wanted);
/* Cheap: paints at most ten times a second, or once where it is no terminal. */
void progress_update(const struct progress_state *state);
/* `stele: MESSAGE[: REASON]` on stderr, after clearing the line. */
void progress_message(const char *message, const char *reason);
/* Clear the line; the next update paints it again. */
void progress_hide(void);
/* Clear the line for good. */
void progress_end(void);

#endif
