/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volumes.h - the snapshots that are served
 *
 * Those that there were when it was mounted; each is opened when it is first looked into. One
 * whose name has become another snapshot's by then is stale.
 */
#ifndef STELE_CMD_MOUNT_FUSE_VOLUMES_H
#define STELE_CMD_MOUNT_FUSE_VOLUMES_H

#include "mount/fuse/samples.h"

struct volume {
	char name[STELE_NAME_SIZE_MAX + 1];
	uint8_t digest[STELE_DIGEST_SIZE];
	int64_t time;
	uint64_t sample_count, payload_size;
	char *target; /* owned: to open */
	struct stele_dataset *ds; /* NULL: not open yet */
	struct samples samples;
};

struct volumes {
	pthread_mutex_t lock; /* of opening */
	struct volume *list;  /* owned */
	uint32_t count;
	bool single; /* one, that the root is */
	int64_t create_time;
};

/*
 * Of a target: the snapshot that it selects if `single`, else all. Open the one, or see that
 * there are some. Return: 0; negative errno (logged by the library).
 */
int volumes_open(struct volumes *volumes, const char *target, bool single);
void volumes_close(struct volumes *volumes);
/* Open, if it is not. Return: 0; -ESTALE; errors of stele_dataset_open() (logged). */
int volumes_use(struct volumes *volumes, uint32_t index, struct volume **out);

#endif
