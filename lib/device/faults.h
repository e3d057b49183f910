/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.h - memory whose pages come from us: an anonymous mapping with userfaultfd
 *
 * Whoever touches a page that is not there waits until it is filled in or poisoned; a touch
 * of a poisoned page raises SIGBUS. No page is ever filled in by the kernel: nobody sees zeros
 * that were not put there. A child after fork() does not have the memory (SIGSEGV), as
 * userfaultfd does not follow there, and it would see zeros.
 *
 * Pages are filled in, poisoned and dropped by one thread at a time (lib/view/resident.h).
 */
#ifndef STELE_DEVICE_FAULTS_H
#define STELE_DEVICE_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stele_log;

struct stele_faults {
	int fd;
	int hole; /* an empty file: how SIGBUS is raised before Linux 6.6; -1: not needed yet */
	char *memory;
	size_t size, page_size;
};

/*
 * `size` bytes, rounded up to pages. A kernel that lets us serve only touches by the
 * program itself, and none by its system calls, is worth a warning. Return: 0; -EPERM (the
 * kernel forbids it: logged); -EOPNOTSUPP (it has no userfaultfd); -ENOMEM; errno.
 */
int stele_faults_open(uint64_t size, const struct stele_log *log,
		      struct stele_faults *out);
/* `forked`: in a child, where there is no memory to unmap. */
void stele_faults_close(struct stele_faults *faults, bool forked);

/*
 * Wait for a touch of a page that is not there, or until `stop` polls readable. Return: 1
 * (*offset is that of the page); 0 (stop); errno.
 */
int stele_faults_wait(const struct stele_faults *faults, int stop, uint64_t *offset);
/* Whole pages, none of which is there. Return: 0; errno: then none is. */
int stele_faults_fill(const struct stele_faults *faults, uint64_t offset,
		      const void *data, size_t size);
/* One page that is not there. Return: 0; errno. */
int stele_faults_poison(struct stele_faults *faults, uint64_t offset);
/* A poisoned page is one that is not there. Return: 0; errno. */
int stele_faults_heal(struct stele_faults *faults, uint64_t offset);
/* Filled pages are not there any more. */
void stele_faults_drop(const struct stele_faults *faults, uint64_t offset, size_t size);
/* Whoever waits for this page looks again. */
void stele_faults_wake(const struct stele_faults *faults, uint64_t offset);

#endif
