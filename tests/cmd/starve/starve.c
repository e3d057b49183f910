/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starve.c - memory that cannot be had, once
 *
 * Loaded before all else (LD_PRELOAD), it fails allocation number $STARVE_AT of the
 * process, and then makes the file $STARVE_TOLD. Numbers count from 1; those
 * of threads that race count as they come.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t align, size_t size);

static atomic_long left = -1; /* -1: not known yet */

static long look(void)
{
	const char *at = getenv("STARVE_AT");

	return at ? atol(at) : 0;
}

static int denied(void)
{
	const char *told = getenv("STARVE_TOLD");
	long unknown = -1;

	if (atomic_load(&left) == -1)
		atomic_compare_exchange_strong(&left, &unknown, look());
	if (atomic_load(&left) <= 0 || atomic_fetch_sub(&left, 1) != 1)
		return 0;
	if (told)
		close(open(told, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t size)
{
	return denied() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return denied() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return denied() ? NULL : __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t count, size_t size)
{
	size_t all;

	if (__builtin_mul_overflow(count, size, &all) || denied())
		return NULL;
	return __libc_realloc(old, all);
}

void *aligned_alloc(size_t align, size_t size)
{
	return denied() ? NULL : __libc_memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
	void *memory = denied() ? NULL : __libc_memalign(align, size);

	if (!memory)
		return ENOMEM;
	*out = memory;
	return 0;
}
