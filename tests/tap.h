/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tap.h - what C tests say to prove
 *
 * The vocabulary of C TAP Harness: the wanted value comes before the seen one,
 * the last arguments are a printf format that names the check. A test is
 *
 *	plan_lazy();
 *	is_int(0, stele_x_decode(&x, data, size), "decodes");
 *	return done();
 *
 * Without done() there is no plan, so a test that stops half way is red. Under
 * STRICT=1 a skip is a failure, unless STRICT_ALLOW (reasons, separated by
 * colons) holds its reason word for word. One thread at a time.
 */
#ifndef STELE_TESTS_TAP_H
#define STELE_TESTS_TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAP_FORMAT(n) __attribute__((format(printf, n, (n) + 1)))
#define TAP_NORETURN  __attribute__((noreturn))

void plan(unsigned int count);
void plan_lazy(void);
/* Prints the plan if it was lazy. Return: exit status of the program. */
int done(void);

/* Instead of a plan: nothing here can run on this machine. */
void skip_all(const char *format, ...) TAP_FORMAT(1) TAP_NORETURN;
/* Stands for `count` checks that cannot run on this machine. */
void skip_block(unsigned int count, const char *format, ...) TAP_FORMAT(2);

/* Each returns whether it passed. */
bool ok(bool passed, const char *format, ...) TAP_FORMAT(2);
bool is_int(intmax_t wanted, intmax_t seen, const char *format, ...)
	TAP_FORMAT(3);
bool is_uint(uintmax_t wanted, uintmax_t seen, const char *format, ...)
	TAP_FORMAT(3);
bool is_hex(uintmax_t wanted, uintmax_t seen, const char *format, ...)
	TAP_FORMAT(3);
bool is_string(const char *wanted, const char *seen, const char *format, ...)
	TAP_FORMAT(3);
bool is_blob(const void *wanted, const void *seen, size_t size,
	     const char *format, ...) TAP_FORMAT(4);

void diag(const char *format, ...) TAP_FORMAT(1);
/*
 * The test itself cannot go on; sysbail adds what errno says. (TAP's
 * "Bail out!" would stop all other tests as well.)
 */
void bail(const char *format, ...) TAP_FORMAT(1) TAP_NORETURN;
void sysbail(const char *format, ...) TAP_FORMAT(1) TAP_NORETURN;

/*
 * A new directory under $TMPDIR, else $BUILD/tmp, on a filesystem that should
 * take O_DIRECT; removed with all that is in it when the program exits. The
 * same one at each call.
 */
const char *test_tmpdir(void);

#endif
