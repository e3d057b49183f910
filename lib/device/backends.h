/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backends.h - which backend serves a file or disk, and what those by name need
 *
 * One table says what there is. The default is io_uring, and threads where that is
 * forbidden. All others serve only who asks for them by name: each is better on some
 * device and worse on most. A name that cannot be served here is an error that says
 * why, found by a real read, never by a version.
 */
#ifndef STELE_DEVICE_BACKENDS_H
#define STELE_DEVICE_BACKENDS_H

#include "lib/device/backend.h"

struct stele_file_backend {
	const char *name;
	bool reads_only; /* flushes and discards are not its to do */
	/*
	 * Optional: what can be told before a read is tried; NULL: nothing speaks
	 * against it. It may leave in the file what its queues need.
	 */
	const char *(*refuse)(struct stele_file *file);
	int (*queue_open)(struct stele_device *dev, unsigned int depth,
			  void *arena, size_t arena_size,
			  struct stele_queue **out);
	/* Optional: of queues that share a ring. */
	int (*queue_join)(struct stele_device *dev, unsigned int depth,
			  struct stele_queue_group *group,
			  struct stele_queue **out);
};

/*
 * Sets what serves an opened file whose limits are known: its name and queue_open in
 * file->ops. `wanted` may be NULL: $STELE_BACKEND, else the default.
 * Return: 0; -EINVAL (no such name); -EOPNOTSUPP (cannot serve here); errno. Logged.
 */
int stele_backend_choose(struct stele_file *file, const char *path,
			 const char *wanted);

/* Of a file that is not there yet: 0; -EINVAL (no such name; logged). */
int stele_backend_check(const char *wanted, const struct stele_log *log);

/* ---- uring_tiers.c --------------------------------------------------------- */

extern const struct stele_file_backend stele_backend_iopoll;
extern const struct stele_file_backend stele_backend_hybrid;
extern const struct stele_file_backend stele_backend_sqpoll;

/* ---- nvme.c ---------------------------------------------------------------- */

extern const struct stele_file_backend stele_backend_passthrough;
/* What refuse() left; NULL is fine. */
void stele_nvme_close(struct stele_nvme *nvme);

#endif
