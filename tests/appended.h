/* SPDX-License-Identifier: Apache-2.0 */
/*
 * appended.h - images that are appended to, on a device in memory
 *
 * A snapshot is compared whole, by key, size, bytes and label, with a model that is
 * nothing but a list of files. What fails unasked is the test's fault: it bails.
 */
#ifndef STELE_TESTS_APPENDED_H
#define STELE_TESTS_APPENDED_H

#include "lib/read/dataset.h"
#include "tests/fake.h"

#define APPENDED_NOW 1700000000 /* time of all snapshots */

extern struct stele_device *appended_dev; /* a fault device over memory */
extern struct stele_append_report appended_report; /* of the last one */

/* A new one, of so many MiB. */
void appended_device(uint64_t size);
struct stele_build_opts appended_options(uint32_t flags);
/* Build snapshot "v1". */
void appended_base(struct fake *fake);
/* As stele_append() does it. Return: as that. */
int appended(struct fake *fake, const char *name,
	     const struct stele_build_opts *opts);

/* A snapshot of a copy of the device; NULL: it does not open. */
struct stele_dataset *appended_open(const char *name);
void appended_digest(const char *name, uint8_t digest[32]);
uint32_t appended_segments(const char *name);

/* Checks: the snapshot is the model; the image is sound; the report says so. */
void appended_holds(const char *name, const struct fake *model,
		    const char *what);
void appended_sound(const char *what);
void appended_counts(uint64_t added, uint64_t updated, uint64_t deleted,
		     uint64_t unchanged, const char *what);

/* Models: another of the same files, and one file less. */
void appended_copy(struct fake *to, const struct fake *from);
void appended_remove(struct fake *fake, size_t index);

#endif
