/* SPDX-License-Identifier: Apache-2.0 */
/*
 * liblmdb.c - loads LMDB, once
 */
#include "liblmdb.h"

#include "ondemand.h"

#define LIBRARY "liblmdb.so.0"

struct liblmdb liblmdb;

static const struct ondemand_call wanted[] = {
#define CALL(call) {#call, offsetof(struct liblmdb, call)},
	LIBLMDB_CALLS(CALL)
#undef CALL
};

bool liblmdb_load(void)
{
	return ondemand_load(LIBRARY, wanted, sizeof(wanted) / sizeof(wanted[0]), &liblmdb);
}
