/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c - batches in order
 */
#include <errno.h>
#include <string.h>

#include "lib/stele.h"

int stele_loader_open(const struct stele_loader_source *sources,
		      uint32_t source_count,
		      const struct stele_loader_opts *opts,
		      struct stele_loader **out)
{
	(void)sources, (void)source_count, (void)opts, (void)out;
	return -EOPNOTSUPP;
}

int stele_loader_next(struct stele_loader *loader, struct stele_batch *batch)
{
	(void)loader, (void)batch;
	return -EOPNOTSUPP;
}

void stele_loader_release(struct stele_loader *loader,
			  struct stele_batch *batch)
{
	(void)loader, (void)batch;
}

uint64_t stele_loader_remaining(const struct stele_loader *loader)
{
	(void)loader;
	return 0;
}

int stele_loader_fd(struct stele_loader *loader)
{
	(void)loader;
	return -EOPNOTSUPP;
}

void stele_loader_save(const struct stele_loader *loader,
		       uint8_t state[STELE_LOADER_STATE_SIZE])
{
	(void)loader;
	memset(state, 0, STELE_LOADER_STATE_SIZE);
}

int stele_loader_restore(struct stele_loader *loader,
			 const uint8_t state[STELE_LOADER_STATE_SIZE])
{
	(void)loader, (void)state;
	return -EOPNOTSUPP;
}

void stele_loader_stats(const struct stele_loader *loader,
			struct stele_loader_stats *stats)
{
	(void)loader;
	*stats = (struct stele_loader_stats){0};
}

void stele_loader_close(struct stele_loader *loader)
{
	(void)loader;
}
