/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_pool.c - threads that call a loader's transform
 *
 * First come, first served. A sample that fails here is finished, or goes back to the
 * I/O thread for a stand-in.
 */
#include "lib/base/workers.h"
#include "lib/read/loader/loader.h"

static void transform(struct stele_loader *l, struct stele_loader_item *item)
{
	int status = 0;

	if (!atomic_load(&item->batch->dropped))
		status = l->opts.transform(l->opts.transform_user,
					   &item->sample);
	if (status >= 0) {
		stele_loader_item_finish(l, item);
		return;
	}
	item->status = status;
	if (l->opts.on_error != STELE_ON_ERROR_SUBSTITUTE) {
		stele_loader_item_finish(l, item);
		return;
	}
	pthread_mutex_lock(&l->lock);
	stele_fifo_push(&l->failed, item);
	stele_loader_tell(l);
	pthread_mutex_unlock(&l->lock);
}

static void *work(void *arg)
{
	struct stele_loader_pool *pool = arg;
	struct stele_loader_item *item;

	pthread_mutex_lock(&pool->lock);
	while (!pool->stop) {
		item = stele_fifo_pop(&pool->items);
		if (!item) {
			pthread_cond_wait(&pool->work, &pool->lock);
			continue;
		}
		pthread_mutex_unlock(&pool->lock);
		transform(pool->loader, item);
		pthread_mutex_lock(&pool->lock);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

int stele_loader_pool_start(struct stele_loader *l)
{
	struct stele_loader_pool *pool = &l->pool;
	int err = 0;

	pool->loader = l;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, NULL);
	while (!err && l->opts.transform && pool->count < l->opts.threads) {
		err = stele_thread_start(&pool->threads[pool->count],
					 "stele-transform", work, pool);
		pool->count += !err;
	}
	/* Fewer than asked for will do. */
	return pool->count ? 0 : err;
}

void stele_loader_pool_push(struct stele_loader_pool *pool,
			    struct stele_loader_item_list *items)
{
	struct stele_loader_item *item;
	uint32_t count = 0;

	if (!items->head)
		return;
	pthread_mutex_lock(&pool->lock);
	for (; (item = stele_fifo_pop(items)); count++)
		stele_fifo_push(&pool->items, item);
	if (count == 1)
		pthread_cond_signal(&pool->work);
	else
		pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
}

void stele_loader_pool_stop(struct stele_loader_pool *pool)
{
	if (!pool->loader)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->stop = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (uint32_t i = 0; i < pool->count; i++)
		pthread_join(pool->threads[i], NULL);
}

void stele_loader_pool_release(struct stele_loader_pool *pool)
{
	if (!pool->loader)
		return;
	pthread_cond_destroy(&pool->work);
	pthread_mutex_destroy(&pool->lock);
	pool->loader = NULL;
}
