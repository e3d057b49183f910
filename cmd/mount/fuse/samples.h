/* SPDX-License-Identifier: Apache-2.0 */
/*
 * samples.h - whole samples, verified, for files that are read in pieces
 *
 * A checksum is of a whole sample, so a sample is read once and kept while the kernel asks
 * for its pieces: the last of them, in a bounded cache. Those too large for it are spooled
 * to a temporary file. Any thread; a sample that one reads others wait for.
 *
 * Where a process reads samples in the order of their keys, a thread of its own reads ahead,
 * with a reader, as many at once as pay on the device.
 */
#ifndef STELE_CMD_MOUNT_FUSE_SAMPLES_H
#define STELE_CMD_MOUNT_FUSE_SAMPLES_H

#include <pthread.h>
#include <sys/types.h>

#include "stele.h"
#include "store.h"

#define SAMPLES_BUCKETS 4096u
#define SAMPLES_STREAMS 16u

struct sample_entry {
	uint64_t id;
	struct stele_sample sample;
	void *memory; /* owned: of what was read ahead; else the sample has its own */
	struct store spool; /* of a large one, in place of memory */
	int status;   /* once it is ready */
	uint32_t users;
	bool ready, ahead; /* ahead: nobody has asked for it yet */
	uint64_t cost;	   /* bytes of memory */
	struct sample_entry *next;		 /* in its bucket */
	struct sample_entry *newer, *older; /* by last use, of those that are ready */
};

/* Of a process that reads one sample after another. */
struct sample_stream {
	pid_t pid;
	uint64_t used;	 /* when, in accesses */
	uint32_t rising; /* accesses whose keys came in order */
	bool active, restart;
	uint32_t key_size;
	char key[STELE_KEY_SIZE_MAX]; /* of the last one */
	struct stele_cursor *cursor;  /* the thread's */
};

struct samples {
	struct stele_dataset *ds;
	const char *name; /* of the snapshot, for messages */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct sample_entry *buckets[SAMPLES_BUCKETS];
	struct sample_entry *newest, *oldest;
	uint64_t cost, ahead_cost; /* of all in memory; of those nobody has asked for yet */
	uint32_t spools;
	uint64_t reported; /* id of the last sample that failed; UINT64_MAX: none */
	/* Reading ahead. */
	struct sample_stream streams[SAMPLES_STREAMS];
	uint64_t accesses;
	bool started, stop;
	pthread_t thread;
};

void samples_init(struct samples *samples, struct stele_dataset *ds, const char *name);
/* Once nobody uses it. */
void samples_release(struct samples *samples);

/*
 * The sample, for process `pid`, until it is put back. Return: 0; negative errno (logged).
 */
int samples_get(struct samples *samples, uint64_t id, pid_t pid,
		struct sample_entry **out);
void samples_put(struct samples *samples, struct sample_entry *entry);

#endif
