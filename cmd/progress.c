/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - a line that says how far a command is
 *
 *	writing 12,345/50,000 samples, 1.2 GiB of 3.4 GiB, 512.0 MiB/s, 0:04 left
 *
 * Parts that do not fit the terminal are left out. The line is
 * overwritten with blanks, not by escape codes: any terminal can do that.
 */
#include "progress.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "stele.h"
#include "stop.h"
#include "text.h"

#define LINE_SIZE 256
#define PAINT_INTERVAL_NS 100000000
#define LINE_INTERVAL_NS  1000000000
#define COLUMNS_DEFAULT 80

static struct {
	pthread_mutex_t lock;
	bool wanted, forced;
	bool lines; /* not overwritten: no terminal */
	const char *verb;
	uint64_t began, painted; /* nanoseconds; painted 0: not yet */
	int width;		 /* of what is on the screen */
} line = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	return COLUMNS_DEFAULT;
}

static void clear(void)
{
	if (line.width && !line.lines)
		fprintf(stderr, "\r%*s\r", line.width, "");
	line.width = 0;
}

/* Append a part if the whole of it leaves the last column free. */
static void add(char *text, int limit, const char *format, ...)
{
	size_t length = strlen(text);
	va_list args;
	int grown;

	va_start(args, format);
	grown = vsnprintf(text + length, LINE_SIZE - length, format, args);
	va_end(args);
	if (grown < 0 || (int)length + grown >= limit ||
	    length + (size_t)grown >= LINE_SIZE)
		text[length] = '\0';
}

/* By bytes if their sum is known, else by samples. */
static bool time_left(const struct stele_progress *p, double seconds,
		      uint64_t *left)
{
	const bool bytes = p->bytes_total;
	const uint64_t total = bytes ? p->bytes_total : p->samples_total;
	const uint64_t done = bytes ? p->bytes_done : p->samples_done;

	if (!done || done > total)
		return false;
	*left = (uint64_t)(seconds / (double)done * (double)(total - done) + 0.5);
	return true;
}

static void compose(char *text, int limit, const char *verb,
		    const struct stele_progress *p, double seconds)
{
	char a[TEXT_SIZE], b[TEXT_SIZE];
	double rate = seconds > 0 ? (double)p->bytes_done / seconds : 0;
	uint64_t left;

	snprintf(text, LINE_SIZE, "%.*s", limit - 1, verb);
	if (p->samples_total)
		add(text, limit, " %s/%s", text_count(a, p->samples_done),
		    text_counted(b, p->samples_total, "sample"));
	else if (p->samples_done)
		add(text, limit, " %s",
		    text_counted(a, p->samples_done, "sample"));
	if (p->bytes_total)
		add(text, limit, ", %s of %s", text_size(a, p->bytes_done),
		    text_size(b, p->bytes_total));
	else if (p->bytes_done)
		add(text, limit, ", %s", text_size(a, p->bytes_done));
	if (seconds < 0.5)
		return;
	if (rate >= 1)
		add(text, limit, ", %s/s", text_size(a, (uint64_t)rate));
	if (!time_left(p, seconds, &left))
		return;
	add(text, limit, ", %llu:%02u left", (unsigned long long)(left / 60),
	    (unsigned int)(left % 60));
}

static void paint(const char *verb, const struct stele_progress *p, uint64_t time)
{
	char text[LINE_SIZE];
	int width;

	compose(text, line.lines ? LINE_SIZE : columns(), verb, p,
		(double)(time - line.began) / 1e9);
	line.painted = time;
	if (line.lines) {
		fprintf(stderr, "%s\n", text);
		return;
	}
	width = (int)strlen(text);
	fprintf(stderr, "\r%s%*s", text,
		width < line.width ? line.width - width : 0, "");
	line.width = width > line.width ? width : line.width;
}

void progress_force(void)
{
	line.forced = true;
}

void progress_start(bool wanted)
{
	pthread_mutex_lock(&line.lock);
	line.lines = !isatty(STDERR_FILENO);
	line.wanted = line.forced || (wanted && !line.lines);
	line.verb = NULL;
	pthread_mutex_unlock(&line.lock);
}

void progress_update(const char *verb, const struct stele_progress *p)
{
	uint64_t time, interval;

	pthread_mutex_lock(&line.lock);
	interval = line.lines ? LINE_INTERVAL_NS : PAINT_INTERVAL_NS;
	if (line.wanted) {
		time = now();
		if (line.verb != verb) {
			line.verb = verb;
			line.began = time;
			line.painted = line.lines ? time : 0;
		}
		if (!line.painted || time - line.painted >= interval)
			paint(verb, p, time);
	}
	pthread_mutex_unlock(&line.lock);
}

int progress_show(void *user, const struct stele_progress *p)
{
	static const char *const verbs[] = {
		[STELE_PHASE_SCAN] = "scanning",
		[STELE_PHASE_COMPARE] = "comparing",
		[STELE_PHASE_HASH] = "hashing",
		[STELE_PHASE_WRITE] = "writing",
		[STELE_PHASE_SECTIONS] = "indexing",
		[STELE_PHASE_COMMIT] = "committing",
		[STELE_PHASE_COPY] = "copying",
		[STELE_PHASE_VERIFY] = "verifying",
		[STELE_PHASE_DISCARD] = "discarding",
	};

	(void)user;
	if (p->phase < sizeof(verbs) / sizeof(*verbs))
		progress_update(verbs[p->phase], p);
	return stop_requested();
}

void progress_message(const char *message, const char *reason)
{
	pthread_mutex_lock(&line.lock);
	clear();
	if (!line.lines)
		line.painted = 0;
	fprintf(stderr, "stele: %s%s%s\n", message, reason ? ": " : "",
		reason ? reason : "");
	pthread_mutex_unlock(&line.lock);
}

void progress_hide(void)
{
	pthread_mutex_lock(&line.lock);
	clear();
	if (!line.lines)
		line.painted = 0;
	pthread_mutex_unlock(&line.lock);
}

void progress_end(void)
{
	progress_hide();
	pthread_mutex_lock(&line.lock);
	line.wanted = false;
	line.verb = NULL;
	pthread_mutex_unlock(&line.lock);
}
