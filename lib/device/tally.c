/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally.c - see tally.h
 */
#include "lib/device/tally.h"

static _Thread_local struct stele_tally tally;

const struct stele_tally *stele_tally_of_thread(void)
{
	return &tally;
}

void stele_tally_add(uint32_t size, uint32_t retries)
{
	tally.reads++;
	tally.bytes += size;
	tally.retries += retries;
}
