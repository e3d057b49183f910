/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkers.c - a pool of threads between two lists of tickets
 *
 * One lock covers both lists. A thread takes some tickets at a time, by their bytes:
 * many when they are small, so that the lock costs little, and no more than its
 * share, so that all have work. The event descriptor is readable exactly while `done`
 * holds something, once somebody has asked for it.
 */
#include "lib/read/checkers.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/workers.h"

#define GRAB_MAX      8u
#define GRAB_SIZE_MAX (256u << 10)

struct thread {
	struct stele_checkers *pool;
	struct stele_checker checker;
	pthread_t id;
};

struct stele_checkers {
	pthread_mutex_t lock;
	pthread_cond_t work, finished;
	struct stele_ticket_list pending, done;
	unsigned int pending_count, idle;
	bool waiting; /* the reader's thread, for one that is finished */
	bool stop, watched;
	int event_fd;
	unsigned int busy; /* the reader's thread alone */
	unsigned int done_count;
	unsigned int count;
	struct thread threads[STELE_CHECKERS_MAX];
};

/* ---- the threads' side, with the lock held ----------------------------------- */

static unsigned int grab(struct stele_checkers *c, struct stele_ticket **out)
{
	unsigned int share = c->pending_count / c->count + 1, n = 0;
	uint64_t size = 0;

	while (c->pending.head && n < share && n < GRAB_MAX &&
	       size < GRAB_SIZE_MAX) {
		out[n] = stele_fifo_pop(&c->pending);
		size += out[n++]->slot.read_size;
	}
	c->pending_count -= n;
	return n;
}

static void give_back(struct stele_checkers *c, struct stele_ticket **tickets,
		      unsigned int count)
{
	if (!c->done.head && c->watched)
		eventfd_write(c->event_fd, 1);
	for (unsigned int i = 0; i < count; i++)
		stele_fifo_push(&c->done, tickets[i]);
	c->done_count += count;
	if (c->waiting) {
		c->waiting = false;
		pthread_cond_signal(&c->finished);
	}
}

static void *work(void *arg)
{
	struct thread *thread = arg;
	struct stele_checkers *c = thread->pool;
	struct stele_ticket *tickets[GRAB_MAX];
	unsigned int count;

	pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		count = grab(c, tickets);
		if (!count) {
			c->idle++;
			pthread_cond_wait(&c->work, &c->lock);
			c->idle--;
			continue;
		}
		pthread_mutex_unlock(&c->lock);
		for (unsigned int i = 0; i < count; i++)
			stele_ticket_check(&thread->checker, tickets[i]);
		pthread_mutex_lock(&c->lock);
		give_back(c, tickets, count);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* ---- the reader's side --------------------------------------------------------- */

static int add_thread(struct stele_checkers *c, const struct stele_dataset *ds,
		      enum stele_verify verify, unsigned int count)
{
	struct thread *thread = &c->threads[c->count];
	int err;

	thread->pool = c;
	err = stele_checker_init(&thread->checker, ds, verify, count);
	if (err)
		return err;
	pthread_mutex_lock(&c->lock); /* it looks at count */
	err = stele_thread_start(&thread->id, "stele-check", work, thread);
	c->count += !err;
	pthread_mutex_unlock(&c->lock);
	if (err)
		stele_checker_release(&thread->checker);
	return err;
}

int stele_checkers_open(const struct stele_dataset *ds,
			enum stele_verify verify, unsigned int count,
			struct stele_checkers **out)
{
	struct stele_checkers *c = calloc(1, sizeof(*c));
	int err = 0;

	if (!c)
		return -ENOMEM;
	c->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->event_fd < 0) {
		err = -errno;
		free(c);
		return err;
	}
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work, NULL);
	pthread_cond_init(&c->finished, NULL);
	if (count > STELE_CHECKERS_MAX) /* of more cores: they share the memory */
		count = STELE_CHECKERS_MAX;
	while (!err && c->count < count)
		err = add_thread(c, ds, verify, count);
	if (!c->count) {
		stele_checkers_close(c, false);
		return err;
	}
	*out = c;
	return 0;
}

static void stop(struct stele_checkers *c)
{
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_broadcast(&c->work);
	pthread_mutex_unlock(&c->lock);
	for (unsigned int i = 0; i < c->count; i++) {
		pthread_join(c->threads[i].id, NULL);
		stele_checker_release(&c->threads[i].checker);
	}
	pthread_cond_destroy(&c->finished);
	pthread_cond_destroy(&c->work);
	pthread_mutex_destroy(&c->lock);
}

void stele_checkers_close(struct stele_checkers *c, bool forked)
{
	if (!c)
		return;
	if (!forked)
		stop(c);
	close(c->event_fd);
	free(c);
}

unsigned int stele_checkers_count(const struct stele_checkers *c)
{
	return c->count;
}

void stele_checkers_count_reads(const struct stele_checkers *c,
				struct stele_tally *sum)
{
	for (unsigned int i = 0; i < c->count; i++)
		stele_checker_count_reads(&c->threads[i].checker, sum);
}

unsigned int stele_checkers_busy(const struct stele_checkers *c)
{
	return c->busy;
}

static void wake(struct stele_checkers *c, unsigned int given)
{
	if (given > 1 && c->idle > 1)
		pthread_cond_broadcast(&c->work);
	else if (given && c->idle)
		pthread_cond_signal(&c->work);
}

void stele_checkers_exchange(struct stele_checkers *c,
			     struct stele_ticket_list *arrived,
			     struct stele_ticket_list *checked, bool wait)
{
	struct stele_ticket *ticket;
	unsigned int given = 0;
	eventfd_t events;

	if (!arrived->head && !c->busy)
		return;
	pthread_mutex_lock(&c->lock);
	while ((ticket = stele_fifo_pop(arrived))) {
		stele_fifo_push(&c->pending, ticket);
		given++;
	}
	c->pending_count += given;
	c->busy += given;
	wake(c, given);
	while (wait && c->busy && !c->done.head) {
		c->waiting = true;
		pthread_cond_wait(&c->finished, &c->lock);
	}
	if (c->watched && c->done.head)
		eventfd_read(c->event_fd, &events);
	while ((ticket = stele_fifo_pop(&c->done)))
		stele_fifo_push(checked, ticket);
	c->busy -= c->done_count;
	c->done_count = 0;
	pthread_mutex_unlock(&c->lock);
}

int stele_checkers_fd(struct stele_checkers *c)
{
	pthread_mutex_lock(&c->lock);
	if (!c->watched && c->done.head)
		eventfd_write(c->event_fd, 1);
	c->watched = true;
	pthread_mutex_unlock(&c->lock);
	return c->event_fd;
}
