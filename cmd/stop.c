/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop.c - SIGINT, SIGTERM and SIGHUP as a request to end cleanly
 */
#include "stop.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

/* Set by a handler, in whatever thread, and read by all: lock-free, or it would be no use. */
static atomic_int requested;

static void note(int signal_number)
{
	requested = signal_number;
}

void stop_catch(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = note,
				   .sa_flags = SA_RESETHAND | SA_RESTART};
	struct sigaction old;

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		/* nohup, and a shell's background jobs, ignore some. */
		if (sigaction(signals[i], NULL, &old) == 0 &&
		    old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
}

int stop_requested(void)
{
	return requested;
}

void stop_raise(void)
{
	signal(requested, SIG_DFL);
	raise(requested);
}
