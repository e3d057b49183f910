/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - calls that ask the cluster, each as a job that ends
 *
 * Who calls through the table notices nothing but -ETIMEDOUT and -ECANCELED. What
 * needs more than copies of its arguments has its run() where it is used.
 */
#include "lib/device/rbd/bound.h"

#include <errno.h>
#include <string.h>

#define real stele_ceph_real

struct stele_ceph stele_ceph_real;

#define FIELDS(...) {__VA_ARGS__}
#define CHANGES STELE_RBD_CHANGES
#define RESULT(value) .out = value, .size = sizeof(*value)

/* bound_NAME(): run_NAME() with these fields of struct stele_rbd_call, as a job. */
#define BOUND(flags, name, params, fields)                                    \
	static int bound_##name params                                        \
	{                                                                     \
		const struct stele_rbd_call call = FIELDS fields;             \
									      \
		return (int)stele_rbd_do(run_##name, flags, &call);           \
	}
/* The same, and run_NAME() calls FUNCTION with the arguments that follow. */
#define AS(flags, name, function, params, fields, ...)                        \
	static ssize_t run_##name(struct stele_rbd_call *c)                   \
	{                                                                     \
		return real.function(__VA_ARGS__);                            \
	}                                                                     \
	BOUND(flags, name, params, fields)
#define CALL(flags, name, params, fields, ...)                                \
	AS(flags, name, name, params, fields, __VA_ARGS__)

/* ---- calls on an image ------------------------------------------------------ */

#define TEXT(name)                                                            \
	CALL(CHANGES, name, (rbd_image_t image, const char *a),               \
	     (.image = image, .text = {a}), c->image, c->text[0])
TEXT(rbd_snap_create)
TEXT(rbd_snap_remove)
TEXT(rbd_snap_protect)
TEXT(rbd_snap_unprotect)
TEXT(rbd_metadata_remove)

#define TEXTS(name)                                                           \
	CALL(CHANGES, name, (rbd_image_t image, const char *a, const char *b), \
	     (.image = image, .text = {a, b}), c->image, c->text[0], c->text[1])
TEXTS(rbd_snap_rename)
TEXTS(rbd_metadata_set)

#define NUMBER(name)                                                          \
	CALL(0, name, (rbd_image_t image, uint64_t *value),                   \
	     (.image = image, RESULT(value)), c->image, c->out)
NUMBER(rbd_get_features)
NUMBER(rbd_get_size)
NUMBER(rbd_get_stripe_unit)
NUMBER(rbd_get_stripe_count)

CALL(0, rbd_stat, (rbd_image_t image, rbd_image_info_t *info, size_t size),
     (.image = image, .out = info, .size = size), c->image, c->out, c->size)
CALL(0, rbd_snap_is_protected, (rbd_image_t image, const char *name, int *flag),
     (.image = image, .text = {name}, RESULT(flag)), c->image, c->text[0], c->out)
CALL(0, rbd_snap_set_by_id, (rbd_image_t image, uint64_t id),
     (.image = image, .number = {id}), c->image, c->number[0])
CALL(0, rbd_metadata_get,
     (rbd_image_t image, const char *key, char *value, size_t *size),
     (.image = image, .text = {key}, .out = value, .size = *size),
     c->image, c->text[0], c->out, &c->size)
CALL(CHANGES, rbd_lock_acquire, (rbd_image_t image, rbd_lock_mode_t mode),
     (.image = image, .number = {mode}),
     c->image, (rbd_lock_mode_t)c->number[0])
CALL(CHANGES, rbd_lock_break,
     (rbd_image_t image, rbd_lock_mode_t mode, const char *owner),
     (.image = image, .number = {mode}, .text = {owner}),
     c->image, (rbd_lock_mode_t)c->number[0], c->text[0])
CALL(CHANGES, rbd_lock_release, (rbd_image_t image), (.image = image), c->image)

/* Objects may go one by one: each is a step. */
static int on_step(uint64_t offset, uint64_t total, void *user)
{
	(void)offset, (void)total;
	stele_rbd_step(user);
	return 0;
}

AS(CHANGES, rbd_resize, rbd_resize_with_progress,
   (rbd_image_t image, uint64_t size), (.image = image, .number = {size}),
   c->image, c->number[0], on_step, c)

/* ---- calls on a pool -------------------------------------------------------- */

AS(CHANGES, rbd_remove, rbd_remove_with_progress,
   (rados_ioctx_t io, const char *name), (.io = io, .text = {name}),
   c->io, c->text[0], on_step, c)

/* Of the client from now on: also when nobody waits for it any more. */
static int add_image(const struct stele_rbd_call *c, int rc)
{
	rbd_image_t image = *(rbd_image_t *)c->out;

	if (!rc)
		rc = stele_rbd_image_add(image, c->io);
	else
		return rc;
	if (rc)
		real.rbd_close(image);
	return rc;
}

#define OPEN(name)                                                            \
	static ssize_t run_##name(struct stele_rbd_call *c)                   \
	{                                                                     \
		return add_image(c, real.name(c->io, c->text[0], c->out,      \
					      c->text[1]));                   \
	}                                                                     \
	BOUND(0, name,                                                        \
	      (rados_ioctx_t io, const char *image, rbd_image_t *out,         \
	       const char *snap),                                             \
	      (.io = io, .text = {image, snap}, RESULT(out)))
OPEN(rbd_open)
OPEN(rbd_open_read_only)

/* Once it is begun, its client does not close it again; it may never end. */
static ssize_t run_rbd_close(struct stele_rbd_call *c)
{
	stele_rbd_image_remove(c->image);
	return real.rbd_close(c->image);
}
BOUND(0, rbd_close, (rbd_image_t image), (.image = image))

/* ---- calls on a cluster ----------------------------------------------------- */

CALL(0, rados_connect, (rados_t cluster), (.cluster = cluster), c->cluster)

static ssize_t run_rados_ioctx_create(struct stele_rbd_call *c)
{
	int rc = real.rados_ioctx_create(c->cluster, c->text[0], c->out);

	if (!rc)
		stele_rbd_client_set_io(c->cluster, *(rados_ioctx_t *)c->out);
	return rc;
}
BOUND(0, rados_ioctx_create, (rados_t cluster, const char *pool, rados_ioctx_t *io),
      (.cluster = cluster, .text = {pool}, RESULT(io)))

/* `expire`: seconds. Also where something else hangs: it is the way out. */
CALL(STELE_RBD_ALWAYS, rados_blocklist_add,
     (rados_t cluster, char *address, uint32_t expire),
     (.cluster = cluster, .text = {address}, .number = {expire}),
     c->cluster, (char *)c->text[0], (uint32_t)c->number[0])

struct answer {
	char *data;
	size_t size;
};

static ssize_t run_ask(struct stele_rbd_call *c)
{
	struct answer *answer = c->out;
	size_t words_size;
	char *words = NULL;
	int rc = real.rados_mon_command(c->cluster, &c->text[0], 1, "", 0,
					&answer->data, &answer->size, &words,
					&words_size);

	real.rados_buffer_free(words);
	if (rc)
		real.rados_buffer_free(answer->data);
	return rc;
}

static void drop_answer(struct stele_rbd_call *c)
{
	real.rados_buffer_free(((struct answer *)c->out)->data);
}

int stele_rbd_ask_monitors(rados_t cluster, const char *command, char **answer,
			   size_t *size)
{
	struct answer got = {0};
	const struct stele_rbd_call call = {
		.cluster = cluster,
		.text = {command},
		.out = &got,
		.size = sizeof(got),
		.drop = drop_answer,
	};
	int rc = (int)stele_rbd_do(run_ask, 0, &call);

	*answer = got.data;
	*size = got.size;
	return rc;
}

void stele_rbd_bound_calls(struct stele_ceph *calls)
{
	real = *calls;
#define USE(name) calls->name = bound_##name;
	USE(rados_blocklist_add)
	USE(rados_connect)
	USE(rados_ioctx_create)
	USE(rbd_close)
	USE(rbd_get_features)
	USE(rbd_get_size)
	USE(rbd_get_stripe_count)
	USE(rbd_get_stripe_unit)
	USE(rbd_lock_acquire)
	USE(rbd_lock_break)
	USE(rbd_lock_release)
	USE(rbd_metadata_get)
	USE(rbd_metadata_remove)
	USE(rbd_metadata_set)
	USE(rbd_open)
	USE(rbd_open_read_only)
	USE(rbd_remove)
	USE(rbd_resize)
	USE(rbd_snap_create)
	USE(rbd_snap_is_protected)
	USE(rbd_snap_protect)
	USE(rbd_snap_remove)
	USE(rbd_snap_rename)
	USE(rbd_snap_set_by_id)
	USE(rbd_snap_unprotect)
	USE(rbd_stat)
}
