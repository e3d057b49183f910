/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - each call that asks the cluster, as a job that ends
 *
 * Here are those on an image, by their shapes; bound.c has the mechanism. Who calls
 * through the table notices nothing but -ETIMEDOUT. What a call writes to goes by the
 * job's own memory: it may be written long after the caller went on.
 */
#include "lib/device/rbd/bound.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHANGES STELE_RBD_CHANGES

#define real stele_ceph_real

static int finish(struct stele_rbd_job *job, unsigned int flags)
{
	ssize_t res = stele_rbd_job_do(&job, flags);

	stele_rbd_job_free(job);
	return (int)res;
}

/* What the job has room for is copied to `out`, of the same size. */
static int finish_out(struct stele_rbd_job *job, void *out)
{
	ssize_t res = stele_rbd_job_do(&job, 0);

	if (job && res >= 0)
		memcpy(out, job->out, job->size);
	stele_rbd_job_free(job);
	return (int)res;
}

static struct stele_rbd_job *with_number(struct stele_rbd_job *job, uint64_t n)
{
	if (job)
		job->number[0] = n;
	return job;
}

/* ---- calls that bring nothing back but how it went -------------------------- */

#define RUN(call, ...)                                                        \
	static ssize_t run_##call(struct stele_rbd_job *job)                  \
	{                                                                     \
		return real.call(__VA_ARGS__);                                \
	}

#define TEXT(call)                                                            \
	RUN(call, job->image, job->text[0])                                   \
	static int bound_##call(rbd_image_t image, const char *name)          \
	{                                                                     \
		struct stele_rbd_job *job = stele_rbd_job_new(run_##call,     \
							      image);         \
									      \
		return finish(stele_rbd_job_text(job, name, NULL), CHANGES);  \
	}
TEXT(rbd_snap_create)
TEXT(rbd_snap_remove)
TEXT(rbd_snap_protect)
TEXT(rbd_snap_unprotect)
TEXT(rbd_metadata_remove)

#define TEXTS(call)                                                           \
	RUN(call, job->image, job->text[0], job->text[1])                     \
	static int bound_##call(rbd_image_t image, const char *a,             \
				const char *b)                                \
	{                                                                     \
		struct stele_rbd_job *job = stele_rbd_job_new(run_##call,     \
							      image);         \
									      \
		return finish(stele_rbd_job_text(job, a, b), CHANGES);        \
	}
TEXTS(rbd_snap_rename)
TEXTS(rbd_metadata_set)

RUN(rbd_snap_set_by_id, job->image, job->number[0])
static int bound_rbd_snap_set_by_id(rbd_image_t image, uint64_t id)
{
	return finish(with_number(stele_rbd_job_new(run_rbd_snap_set_by_id,
						    image),
				  id),
		      0);
}

/* Objects may go one by one: each is a step. */
static int on_step(uint64_t offset, uint64_t total, void *user)
{
	(void)offset, (void)total;
	stele_rbd_job_step(user);
	return 0;
}

RUN(rbd_resize_with_progress, job->image, job->number[0], on_step, job)
static int bound_rbd_resize(rbd_image_t image, uint64_t size)
{
	return finish(with_number(stele_rbd_job_new(run_rbd_resize_with_progress,
						    image),
				  size),
		      CHANGES);
}

/* ---- the lock --------------------------------------------------------------- */

RUN(rbd_lock_acquire, job->image, (rbd_lock_mode_t)job->number[0])
static int bound_rbd_lock_acquire(rbd_image_t image, rbd_lock_mode_t mode)
{
	return finish(with_number(stele_rbd_job_new(run_rbd_lock_acquire, image),
				  mode),
		      CHANGES);
}

RUN(rbd_lock_break, job->image, (rbd_lock_mode_t)job->number[0], job->text[0])
static int bound_rbd_lock_break(rbd_image_t image, rbd_lock_mode_t mode,
				const char *owner)
{
	struct stele_rbd_job *job = stele_rbd_job_new(run_rbd_lock_break, image);

	return finish(stele_rbd_job_text(with_number(job, mode), owner, NULL),
		      CHANGES);
}

RUN(rbd_lock_release, job->image)
static int bound_rbd_lock_release(rbd_image_t image)
{
	return finish(stele_rbd_job_new(run_rbd_lock_release, image), CHANGES);
}

struct lockers {
	int exclusive;
	size_t size[4]; /* tag, clients, cookies, addresses */
	char text[];
};

static ssize_t run_rbd_list_lockers(struct stele_rbd_job *job)
{
	struct lockers *all = job->out;
	char *clients = all->text + all->size[0];
	char *cookies = clients + all->size[1];
	char *addresses = cookies + all->size[2];

	return real.rbd_list_lockers(job->image, &all->exclusive, all->text,
				     &all->size[0], clients, &all->size[1],
				     cookies, &all->size[2], addresses,
				     &all->size[3]);
}

static ssize_t bound_rbd_list_lockers(rbd_image_t image, int *exclusive,
				      char *tag, size_t *tag_size,
				      char *clients, size_t *clients_size,
				      char *cookies, size_t *cookies_size,
				      char *addresses, size_t *addresses_size)
{
	char *const to[4] = {tag, clients, cookies, addresses};
	size_t *const size[4] = {tag_size, clients_size, cookies_size,
				 addresses_size};
	struct stele_rbd_job *job;
	struct lockers *all;
	const char *from;
	ssize_t res;

	job = stele_rbd_job_room(stele_rbd_job_new(run_rbd_list_lockers, image),
				 sizeof(*all) + *tag_size + *clients_size +
					 *cookies_size + *addresses_size);
	all = job ? job->out : NULL;
	for (unsigned int i = 0; all && i < 4; i++)
		all->size[i] = *size[i];
	res = stele_rbd_job_do(&job, 0);
	from = job ? all->text : NULL;
	for (unsigned int i = 0; job && i < 4; i++) {
		memcpy(to[i], from, *size[i]);
		from += *size[i];
		*size[i] = all->size[i];
	}
	if (job)
		*exclusive = all->exclusive;
	stele_rbd_job_free(job);
	return res;
}

/* ---- calls that fill something of a known size ------------------------------ */

#define NUMBER(call)                                                          \
	RUN(call, job->image, job->out)                                       \
	static int bound_##call(rbd_image_t image, uint64_t *value)           \
	{                                                                     \
		struct stele_rbd_job *job = stele_rbd_job_new(run_##call,     \
							      image);         \
									      \
		return finish_out(stele_rbd_job_room(job, sizeof(*value)),    \
				  value);                                     \
	}
NUMBER(rbd_get_features)
NUMBER(rbd_get_size)
NUMBER(rbd_get_stripe_unit)
NUMBER(rbd_get_stripe_count)

RUN(rbd_stat, job->image, job->out, job->size)
static int bound_rbd_stat(rbd_image_t image, rbd_image_info_t *info, size_t size)
{
	struct stele_rbd_job *job = stele_rbd_job_new(run_rbd_stat, image);

	return finish_out(stele_rbd_job_room(job, size), info);
}

RUN(rbd_snap_is_protected, job->image, job->text[0], job->out)
static int bound_rbd_snap_is_protected(rbd_image_t image, const char *name,
				       int *flag)
{
	struct stele_rbd_job *job = stele_rbd_job_new(run_rbd_snap_is_protected,
						      image);

	job = stele_rbd_job_text(job, name, NULL);
	return finish_out(stele_rbd_job_room(job, sizeof(*flag)), flag);
}

RUN(rbd_snap_get_namespace_type, job->image, job->number[0], job->out)
static int bound_rbd_snap_get_namespace_type(rbd_image_t image, uint64_t id,
					     rbd_snap_namespace_type_t *type)
{
	struct stele_rbd_job *job =
		stele_rbd_job_new(run_rbd_snap_get_namespace_type, image);

	return finish_out(stele_rbd_job_room(with_number(job, id), sizeof(*type)),
			  type);
}

/* ---- calls that fill a list ------------------------------------------------- */

static ssize_t run_rbd_snap_list(struct stele_rbd_job *job)
{
	int room = (int)job->number[0], count;

	count = real.rbd_snap_list(job->image, job->out, &room);
	job->number[0] = (uint64_t)room;
	return count;
}

static void late_rbd_snap_list(struct stele_rbd_job *job)
{
	if (job->res >= 0)
		real.rbd_snap_list_end(job->out);
}

static int bound_rbd_snap_list(rbd_image_t image, rbd_snap_info_t *list, int *max)
{
	struct stele_rbd_job *job = stele_rbd_job_new(run_rbd_snap_list, image);
	int res;

	job = stele_rbd_job_room(with_number(job, (uint64_t)*max),
				 (size_t)*max * sizeof(*list));
	if (job)
		job->late = late_rbd_snap_list;
	res = (int)stele_rbd_job_do(&job, 0);
	if (job && res >= 0)
		memcpy(list, job->out, job->size);
	if (job)
		*max = (int)job->number[0];
	stele_rbd_job_free(job);
	return res;
}

static ssize_t run_rbd_watchers_list(struct stele_rbd_job *job)
{
	size_t room = job->number[0];
	int res = real.rbd_watchers_list(job->image, job->out, &room);

	job->number[0] = room;
	return res;
}

static void late_rbd_watchers_list(struct stele_rbd_job *job)
{
	if (job->res >= 0)
		real.rbd_watchers_list_cleanup(job->out, job->number[0]);
}

static int bound_rbd_watchers_list(rbd_image_t image, rbd_image_watcher_t *list,
				   size_t *max)
{
	struct stele_rbd_job *job = stele_rbd_job_new(run_rbd_watchers_list,
						      image);
	int res;

	job = stele_rbd_job_room(with_number(job, *max), *max * sizeof(*list));
	if (job)
		job->late = late_rbd_watchers_list;
	res = (int)stele_rbd_job_do(&job, 0);
	if (job && res >= 0)
		memcpy(list, job->out, job->size);
	if (job)
		*max = job->number[0];
	stele_rbd_job_free(job);
	return res;
}

static ssize_t run_rbd_metadata_get(struct stele_rbd_job *job)
{
	return real.rbd_metadata_get(job->image, job->text[0], job->out,
				     &job->size);
}

static int bound_rbd_metadata_get(rbd_image_t image, const char *key,
				  char *value, size_t *size)
{
	struct stele_rbd_job *job = stele_rbd_job_new(run_rbd_metadata_get,
						      image);
	const size_t room = *size;
	int res;

	job = stele_rbd_job_room(stele_rbd_job_text(job, key, NULL), room);
	res = (int)stele_rbd_job_do(&job, 0);
	if (job && res >= 0)
		memcpy(value, job->out, room);
	if (job)
		*size = job->size;
	stele_rbd_job_free(job);
	return res;
}

/* What is found reaches the caller at the end. */
struct extent {
	uint64_t offset;
	size_t size;
	int exists;
};

struct extents {
	struct stele_rbd_job *job;
	struct extent *list;
	size_t count, room;
};

static int keep_extent(uint64_t offset, size_t size, int exists, void *user)
{
	struct extents *all = user;
	struct extent *list = all->list;

	if (!stele_rbd_job_step(all->job))
		return -ECANCELED;
	if (all->count == all->room) {
		all->room = all->room ? all->room * 2 : 64;
		list = realloc(list, all->room * sizeof(*list));
		if (!list)
			return -ENOMEM;
		all->list = list;
	}
	list[all->count++] = (struct extent){offset, size, exists};
	return 0;
}

/* Of the whole image's data only: that is all we ask for. */
static ssize_t run_rbd_diff_iterate2(struct stele_rbd_job *job)
{
	struct extents *all = job->out;

	all->job = job;
	return real.rbd_diff_iterate2(job->image, job->text[0], job->number[0],
				      job->number[1], 1, 1, keep_extent, all);
}

static void free_extents(struct stele_rbd_job *job)
{
	free(((struct extents *)job->out)->list);
}

static int bound_rbd_diff_iterate2(rbd_image_t image, const char *from,
				   uint64_t offset, uint64_t size,
				   uint8_t parent, uint8_t whole,
				   int (*fn)(uint64_t, size_t, int, void *),
				   void *user)
{
	struct stele_rbd_job *job = stele_rbd_job_new(run_rbd_diff_iterate2,
						      image);
	const struct extents *all;
	int res;

	if (!parent || !whole)
		return -EINVAL;
	job = stele_rbd_job_text(with_number(job, offset), from, NULL);
	job = stele_rbd_job_room(job, sizeof(*all));
	if (job) {
		job->number[1] = size;
		job->late = free_extents;
	}
	res = (int)stele_rbd_job_do(&job, 0);
	all = job ? job->out : NULL;
	for (size_t i = 0; all && !res && i < all->count; i++)
		res = fn(all->list[i].offset, all->list[i].size,
			 all->list[i].exists, user);
	if (job)
		free_extents(job);
	stele_rbd_job_free(job);
	return res;
}

void stele_rbd_bound_image_calls(struct stele_ceph *calls)
{
#define BOUND(call) calls->call = bound_##call;
	BOUND(rbd_diff_iterate2)
	BOUND(rbd_get_features)
	BOUND(rbd_get_size)
	BOUND(rbd_get_stripe_count)
	BOUND(rbd_get_stripe_unit)
	BOUND(rbd_list_lockers)
	BOUND(rbd_lock_acquire)
	BOUND(rbd_lock_break)
	BOUND(rbd_lock_release)
	BOUND(rbd_metadata_get)
	BOUND(rbd_metadata_remove)
	BOUND(rbd_metadata_set)
	BOUND(rbd_resize)
	BOUND(rbd_snap_create)
	BOUND(rbd_snap_get_namespace_type)
	BOUND(rbd_snap_is_protected)
	BOUND(rbd_snap_list)
	BOUND(rbd_snap_protect)
	BOUND(rbd_snap_remove)
	BOUND(rbd_snap_rename)
	BOUND(rbd_snap_set_by_id)
	BOUND(rbd_snap_unprotect)
	BOUND(rbd_stat)
	BOUND(rbd_watchers_list)
}
