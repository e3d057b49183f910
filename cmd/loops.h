/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loops.h - which files loop devices are over
 *
 * Who replaces such a file leaves its bytes without a name: they are gone with the device.
 */
#ifndef STELE_CMD_LOOPS_H
#define STELE_CMD_LOOPS_H

#include <sys/stat.h>

/*
 * "loop1", which is over this file; NULL: none, as far as that can be told. Asked of the system
 * once, so that it may be called for each of many files, by any thread.
 */
const char *loops_over(const struct stat *st);

#endif
