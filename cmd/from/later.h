/* SPDX-License-Identifier: Apache-2.0 */
/*
 * later.h - members of an archive that stand for earlier ones of the same name
 *
 * As when it is unpacked: so `tar -r` replaces a file. Of two archives none is the later.
 */
#ifndef STELE_CMD_FROM_LATER_H
#define STELE_CMD_FROM_LATER_H

#include "from/scan.h"

/* replace() of stele_source_ops; `user` is the struct from. */
int later_file(void *user, const struct stele_source_entry *earlier,
	       struct stele_source_entry *later);
/* Of WebDataset: fields are replaced one by one. One that is new is no replacement. */
int later_record(void *user, const struct stele_source_entry *earlier,
		 struct stele_source_entry *later);

#endif
