/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - one line on a terminal that says how far a command is
 *
 * There is one stderr, so there is one line, and its state is the program's.
 * Where stderr is no terminal, nothing is ever printed. Messages pass
 * through here, so that the two never mix. Any thread.
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

/* Until then, nothing is shown. */
void progress_start(bool wanted);
/* Cheap: paints ten times a second at most. */
void progress_update(const struct progress_state *state);
/* `stele: MESSAGE[: REASON]` on stderr, with the line out of the way. */
void progress_message(const char *message, const char *reason);
/* Clear the line; the next update paints it again. */
void progress_hide(void);
/* Clear the line for good. */
void progress_end(void);

#endif
