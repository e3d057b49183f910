/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - files, loop devices and other programs, for C tests
 *
 * Devices are detached when the test exits, before its directory goes. They
 * need root: ask loop_usable() first.
 */
#ifndef STELE_TESTS_DEVICE_LOOP_H
#define STELE_TESTS_DEVICE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#define LOOP_NODE_SIZE 32

/* Runs a shell command; what it says is dropped. Did it succeed? */
bool command(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Is there such a program (in PATH or sbin)? */
bool command_exists(const char *name);

/* A file of that many bytes, all hole, in test_tmpdir(). Its path: static. */
const char *file_new(const char *name, uint64_t size);

bool loop_usable(void);
/* Attach `file`, with its partitions; false when there is no node left. */
bool loop_attach(const char *file, unsigned int logical_block,
		 char node[LOOP_NODE_SIZE]);
void loop_detach(const char *node);

#endif
