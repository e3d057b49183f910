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

struct stele_progress;

/* --progress: show it in any case, wherever stderr goes. */
void progress_force(void);
/* Before that, nothing is shown. */
void progress_start(bool wanted);
/*
 * Cheap: paints at most ten times a second, or once where it is no terminal. `verb`: static
 * text; a new one restarts the clock.
 */
void progress_update(const char *verb, const struct stele_progress *progress);
/* A stele_progress_fn, for whatever call: show it, and stop after a signal (see stop.h). */
int progress_show(void *user, const struct stele_progress *progress);
/* `stele: MESSAGE[: REASON]` on stderr, after clearing the line. */
void progress_message(const char *message, const char *reason);
/* Clear the line; the next update paints it again. */
void progress_hide(void);
/* Clear the line for good. */
void progress_end(void);

#endif
