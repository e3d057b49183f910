/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depth.c - a fixed window
 */
#include "lib/read/depth.h"

void stele_depth_init(struct stele_depth *d,
		      const struct stele_depth_config *config)
{
	*d = (struct stele_depth){.config = *config};
	if (config->model)
		d->model = *config->model;
	d->window = config->pinned ? config->pinned : STELE_DEPTH_DEFAULT;
	if (d->window > config->depth_max)
		d->window = config->depth_max;
}

bool stele_depth_admits(const struct stele_depth *d, uint32_t size)
{
	(void)size;
	return d->in_flight < d->window;
}

void stele_depth_issued(struct stele_depth *d, uint32_t size, uint64_t now)
{
	(void)now;
	d->in_flight++;
	d->bytes_in_flight += size;
}

void stele_depth_completed(struct stele_depth *d, uint32_t size,
			   uint64_t issued, uint64_t now, int status,
			   bool starved)
{
	(void)issued, (void)now, (void)status, (void)starved;
	d->in_flight--;
	d->bytes_in_flight -= size;
}

uint32_t stele_depth_window(const struct stele_depth *d)
{
	return d->window;
}

unsigned int stele_depth_history(const struct stele_depth *d,
				 struct stele_depth_round *out,
				 unsigned int max)
{
	(void)d, (void)out, (void)max;
	return 0;
}
