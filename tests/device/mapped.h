/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapped.h - is there memory at an address? (Sanitizers keep for a while what is freed.)
 */
#ifndef STELE_TESTS_DEVICE_MAPPED_H
#define STELE_TESTS_DEVICE_MAPPED_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

static inline bool is_mapped(const void *memory)
{
	uintptr_t page = (uintptr_t)memory & ~UINT64_C(4095);

	return !msync((void *)page, 4096, MS_ASYNC) || errno != ENOMEM;
}

#endif
