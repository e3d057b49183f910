/* SPDX-License-Identifier: Apache-2.0 */
/*
 * built.h - is what was built what a source held?
 *
 * Reads an image back with the decoders alone, not with the reader: every
 * record, every section, every digest.
 */
#ifndef STELE_TESTS_BUILT_H
#define STELE_TESTS_BUILT_H

#include "lib/device/device.h"
#include "tests/fake.h"

/*
 * One check each for records, keys, order, columns, digests. Files that are
 * named in `gone` (NULL at the end; may be NULL) have become void. The device
 * stays the caller's.
 */
void built_check(struct stele_device *dev, const struct fake *fake,
		 const char *const *gone, const char *what);

#endif
