/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop.c - SIGINT, SIGTERM and SIGHUP as a request to end cleanly
 */
#include "stop.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

/* timeout(1) and supervisors signal a process, and then its group: that is one request. */
#define ONE_REQUEST_MS 500

/* Set by a handler, in whatever thread, and read by all: lock-free, or it would be no use. */
static atomic_int requested;
static atomic_llong requested_ms; /* when the first one came */

static long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void note(int signal_number)
{
	const int error = errno;
	long long none = 0, now = now_ms();

	if (atomic_compare_exchange_strong(&requested_ms, &none, now)) {
		requested = signal_number;
	} else if (now - none >= ONE_REQUEST_MS) {
		signal(signal_number, SIG_DFL);
		raise(signal_number);
	}
	errno = error;
}

void stop_catch(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
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
