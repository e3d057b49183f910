/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tap.c - see tap.h
 *
 * Every line is flushed at once: a crash loses none, and a child that was
 * forked in between prints none twice.
 */
#include "tests/tap.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	bool lazy;
	unsigned int planned, run, failed;
	char tmpdir[PATH_MAX];
	pid_t tmpdir_owner;
} tap;

#define print_message(format)                  \
	do {                                   \
		va_list args;                  \
		va_start(args, format);        \
		vprintf(format, args);         \
		va_end(args);                  \
	} while (0)

static void end_line(void)
{
	putchar('\n');
	fflush(stdout);
}

void plan(unsigned int count)
{
	tap.planned = count;
	printf("1..%u", count);
	end_line();
}

void plan_lazy(void)
{
	tap.lazy = true;
}

int done(void)
{
	if (tap.lazy)
		plan(tap.run);
	if (tap.failed)
		diag("%u of %u failed", tap.failed, tap.run);
	if (tap.run != tap.planned)
		diag("planned %u, ran %u", tap.planned, tap.run);
	return tap.failed || !tap.run || tap.run != tap.planned;
}

static bool begin(bool passed)
{
	tap.run++;
	tap.failed += !passed;
	printf("%sok %u - ", passed ? "" : "not ", tap.run);
	return passed;
}

/* ---- skips --------------------------------------------------------------- */

/* Whether this reason may not be a reason under STRICT. */
static bool skip_forbidden(const char *reason)
{
	const char *strict = getenv("STRICT");
	const char *allow = getenv("STRICT_ALLOW");
	size_t size = strlen(reason);

	if (!strict || !*strict || !strcmp(strict, "0"))
		return false;
	while (allow && *allow) {
		size_t span = strcspn(allow, ":");

		if (span == size && !memcmp(allow, reason, size))
			return false;
		allow += span + (allow[span] == ':');
	}
	return true;
}

void skip_all(const char *format, ...)
{
	char reason[256];
	va_list args;
	bool forbidden;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	forbidden = skip_forbidden(reason);
	if (forbidden)
		printf("1..1\nnot ok 1 - STRICT forbids to skip: %s", reason);
	else
		printf("1..0 # SKIP %s", reason);
	end_line();
	exit(forbidden);
}

void skip_block(unsigned int count, const char *format, ...)
{
	char reason[256];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	while (count--) {
		if (begin(!skip_forbidden(reason)))
			printf("# SKIP %s", reason);
		else
			printf("STRICT forbids to skip: %s", reason);
		end_line();
	}
}

/* ---- checks -------------------------------------------------------------- */

bool ok(bool passed, const char *format, ...)
{
	begin(passed);
	print_message(format);
	end_line();
	return passed;
}

bool is_int(intmax_t wanted, intmax_t seen, const char *format, ...)
{
	bool passed = begin(wanted == seen);

	print_message(format);
	end_line();
	if (!passed)
		diag("wanted %jd, seen %jd", wanted, seen);
	return passed;
}

bool is_uint(uintmax_t wanted, uintmax_t seen, const char *format, ...)
{
	bool passed = begin(wanted == seen);

	print_message(format);
	end_line();
	if (!passed)
		diag("wanted %ju, seen %ju", wanted, seen);
	return passed;
}

bool is_hex(uintmax_t wanted, uintmax_t seen, const char *format, ...)
{
	bool passed = begin(wanted == seen);

	print_message(format);
	end_line();
	if (!passed)
		diag("wanted 0x%jx, seen 0x%jx", wanted, seen);
	return passed;
}

bool is_string(const char *wanted, const char *seen, const char *format, ...)
{
	bool same = wanted && seen ? !strcmp(wanted, seen) : wanted == seen;
	bool passed = begin(same);

	print_message(format);
	end_line();
	if (!passed)
		diag("wanted '%s', seen '%s'", wanted ? wanted : "(null)",
		     seen ? seen : "(null)");
	return passed;
}

bool is_blob(const void *wanted, const void *seen, size_t size,
	     const char *format, ...)
{
	const unsigned char *a = wanted, *b = seen;
	bool passed = begin(!size || !memcmp(a, b, size));
	size_t i = 0;

	print_message(format);
	end_line();
	if (passed)
		return true;
	while (a[i] == b[i])
		i++;
	diag("byte %zu of %zu: wanted 0x%02x, seen 0x%02x", i, size, a[i],
	     b[i]);
	return false;
}

/* ---- words --------------------------------------------------------------- */

void diag(const char *format, ...)
{
	printf("# ");
	print_message(format);
	end_line();
}

void bail(const char *format, ...)
{
	printf("not ok %u - cannot go on: ", tap.run + 1);
	print_message(format);
	end_line();
	exit(255);
}

void sysbail(const char *format, ...)
{
	int error = errno;

	printf("not ok %u - cannot go on: ", tap.run + 1);
	print_message(format);
	printf(": %s", strerror(error));
	end_line();
	exit(255);
}

/* ---- directory ----------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *st, int type,
			struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void remove_tmpdir(void)
{
	if (tap.tmpdir_owner == getpid())
		nftw(tap.tmpdir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *test_tmpdir(void)
{
	const char *base = getenv("TMPDIR"), *build = getenv("BUILD");
	size_t size = sizeof(tap.tmpdir);
	char path[PATH_MAX];

	if (tap.tmpdir_owner)
		return tap.tmpdir;
	if (base)
		snprintf(path, sizeof(path), "%s", base);
	else
		snprintf(path, sizeof(path), "%s/tmp", build ? build : "build");
	mkdir(path, 0777);
	/* A test may go to another directory. */
	if (!realpath(path, tap.tmpdir))
		sysbail("cannot find '%s'", path);
	strncat(tap.tmpdir, "/test.XXXXXX", size - strlen(tap.tmpdir) - 1);
	if (!mkdtemp(tap.tmpdir))
		sysbail("cannot make '%s'", tap.tmpdir);
	tap.tmpdir_owner = getpid();
	atexit(remove_tmpdir);
	return tap.tmpdir;
}
