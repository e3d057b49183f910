/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intent.c - see intent.h
 *
 * A look costs one read, so those of a stream of writes are spared for a moment; who
 * was stopped for longer looks before he goes on. What is written to the two blocks
 * themselves asks for no permit.
 */
#include "lib/txn/intent.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "format/decode.h"
#include "format/intent.h"
#include "format/superblock.h"
#include "lib/device/name.h"
#include "lib/image/machine.h"

struct intent {
	struct stele_permit permit; /* first */
	struct stele_device *dev;
	struct stele_log log;
	struct stele_intent_record record;
	struct stele_extents avoided, reserved;
	uint64_t floor;
	int64_t since; /* the last one of those was replaced whose space is avoided */
	bool impatient; /* looks before each write */
	_Atomic int64_t seen; /* when it was ours, ns */
	_Atomic bool lost;
	struct intent *next;
};

/* Of this process: a nonce that is not among them is of a writer that is gone. */
static struct intent *open_intents;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

static int check(struct stele_permit *permit);

static struct intent *intent_of(const struct stele_device *dev)
{
	return dev && dev->permit && dev->permit->check == check ?
		       (struct intent *)dev->permit :
		       NULL;
}

static void enlist(struct intent *intent)
{
	pthread_mutex_lock(&open_lock);
	intent->next = open_intents;
	open_intents = intent;
	pthread_mutex_unlock(&open_lock);
}

static void delist(struct intent *intent)
{
	struct intent **at = &open_intents;

	pthread_mutex_lock(&open_lock);
	while (*at && *at != intent)
		at = &(*at)->next;
	if (*at)
		*at = intent->next;
	pthread_mutex_unlock(&open_lock);
}

static bool is_open(const uint8_t nonce[16])
{
	const struct intent *at;

	pthread_mutex_lock(&open_lock);
	for (at = open_intents; at; at = at->next)
		if (!memcmp(at->record.nonce, nonce, 16))
			break;
	pthread_mutex_unlock(&open_lock);
	return at;
}

/* ---- the block -------------------------------------------------------------- */

static int64_t now_ns(void)
{
	struct timespec now;

	/* A machine that was suspended has been away, too. */
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Return: 1 there is one; 0 none; -ENOMEM; errno of the device. */
static int read_block(struct stele_device *dev, uint64_t offset,
		      struct stele_intent_record *out)
{
	void *block = stele_device_alloc(dev, STELE_BLOCK_SIZE);
	int ret;

	if (!block)
		return -ENOMEM;
	ret = stele_device_read(dev, block, offset, STELE_BLOCK_SIZE);
	if (ret == 0)
		ret = stele_intent_decode(block, offset, out, NULL) == 0;
	free(block);
	return ret;
}

/* NULL: zeros. */
static int write_block(struct stele_device *dev, uint64_t offset,
		       const struct stele_intent_record *record)
{
	void *block = stele_device_alloc(dev, STELE_BLOCK_SIZE);
	int ret;

	if (!block)
		return -ENOMEM;
	memset(block, 0, STELE_BLOCK_SIZE);
	if (record)
		stele_intent_encode(record, offset, block);
	ret = stele_device_write_plain(dev, block, offset, STELE_BLOCK_SIZE);
	free(block);
	return ret;
}

static int lose(struct intent *intent, const struct stele_intent_record *now)
{
	if (atomic_exchange(&intent->lost, true))
		return -ESTALE;
	stele_log_error(&intent->log,
			"another writer, %s%s%s, has taken over: nothing more "
			"is written",
			now ? "on '" : "which has ended",
			now ? now->host : "", now ? "'" : "");
	return -ESTALE;
}

static int look(struct intent *intent)
{
	struct stele_intent_record *now;
	int64_t begin = now_ns();
	int ret;

	if (atomic_load(&intent->lost))
		return -ESTALE;
	now = malloc(sizeof(*now));
	if (!now)
		return -ENOMEM;
	ret = read_block(intent->dev, STELE_INTENT_TURN_OFFSET, now);
	if (ret <= 0 && stele_file_check_whole(intent->dev) < 0) {
		atomic_store(&intent->lost, true);
		ret = -ESTALE;
	} else if (ret >= 0) {
		if (ret == 0 || memcmp(now->nonce, intent->record.nonce,
				       sizeof(now->nonce)) != 0)
			ret = lose(intent, ret ? now : NULL);
		else
			ret = 0;
	}
	free(now);
	if (ret == 0)
		atomic_store(&intent->seen, begin);
	return ret;
}

static int check(struct stele_permit *permit)
{
	struct intent *intent = (struct intent *)permit;

	if (!intent->impatient && !atomic_load(&intent->lost) &&
	    now_ns() - atomic_load(&intent->seen) < STELE_INTENT_INTERVAL_NS)
		return 0;
	return look(intent);
}

static int confirm(struct stele_permit *permit)
{
	return look((struct intent *)permit);
}

/* ---- begin and end ------------------------------------------------------------ */

static int refuse_running(const struct intent *intent,
		  const struct stele_intent_record *other)
{
	char by[STELE_MACHINE_TEXT_SIZE];

	stele_machine_describe(other, by, sizeof(by));
	stele_log_error(&intent->log, "the same image is being written by %s", by);
	return -EBUSY;
}

static int avoid(struct intent *intent, const struct stele_intent_record *other,
		 bool own)
{
	uint32_t i = own ? 0 : other->own_count;
	int ret = 0;

	for (; i < other->own_count + other->other_count && ret == 0; i++)
		ret = stele_extents_add(&intent->avoided,
					other->extents[i].offset,
					other->extents[i].size);
	/* Late superblocks come with late data. */
	if (own || other->other_count)
		intent->floor = other->generation;
	/* By our clock, whenever he said it: he may have been writing until now. */
	intent->since = own ? time(NULL) : other->since;
	if (intent->since < 0)
		intent->since = 0;
	return ret;
}

static enum stele_running running(const struct stele_intent_record *other)
{
	if (bytes_zero(other->nonce, sizeof(other->nonce)))
		return STELE_RUNNING_NO;
	if (!stele_machine_is_self(other))
		return stele_machine_runs(other);
	return is_open(other->nonce) ? STELE_RUNNING_YES : STELE_RUNNING_NO;
}

/* What the one before said, once more when its turn is over. */
static int judge(struct intent *intent, const struct stele_intent_record *other,
		 bool taken)
{
	switch (running(other)) {
	case STELE_RUNNING_YES:
		return refuse_running(intent, other);
	case STELE_RUNNING_BEFORE:
		/* Were it another machine after all: nothing that is published is lost. */
		if (taken)
			intent->floor = other->generation;
		/* fall through */
	case STELE_RUNNING_NO:
		return taken ? avoid(intent, other, false) : 0;
	default:
		if (!taken)
			return 0;
		stele_log_warning(&intent->log,
				  "a writer on '%s' (process %" PRIu64
				  ") has not ended, and is replaced: if it still "
				  "runs, it will fail",
				  other->host, other->process);
		return avoid(intent, other, true);
	}
}

/* What does not fit goes into the last one, with all that lies between. */
static uint32_t put_extents(struct stele_intent_record *record, uint32_t at,
			    uint32_t end, const struct stele_extents *from)
{
	const uint32_t first = at;

	for (uint32_t i = 0; i < from->count; i++) {
		struct stele_catalog_free *last = &record->extents[end - 1];

		if (at < end)
			record->extents[at++] = from->list[i];
		else
			last->size = from->list[i].offset +
				     from->list[i].size - last->offset;
	}
	return at - first;
}

/* Of both, each has `room`. */
static void put_all(struct intent *intent, uint32_t room)
{
	struct stele_intent_record *record = &intent->record;

	record->own_count = put_extents(record, 0, room, &intent->reserved);
	record->other_count = put_extents(record, record->own_count,
					  record->own_count + room,
					  &intent->avoided);
	record->since = record->other_count ? intent->since : 0;
}

/* Before anything is written to where it says, and then look. */
static int say(struct intent *intent)
{
	struct stele_intent_record *record = &intent->record;
	int ret;

	put_all(intent, STELE_INTENT_EXTENTS_MAX / 2);
	ret = write_block(intent->dev, STELE_INTENT_OFFSET, record);
	return ret < 0 ? ret : look(intent);
}

/* Return: as read_block() and judge(). */
static int listen(struct intent *intent, bool taken)
{
	struct stele_intent_record *other = malloc(sizeof(*other));
	int ret = other ? read_block(intent->dev, STELE_INTENT_OFFSET, other) :
			  -ENOMEM;

	if (ret > 0)
		ret = judge(intent, other, taken);
	free(other);
	return ret;
}

static int announce(struct intent *intent, uint64_t generation)
{
	struct stele_intent_record *record = &intent->record;
	int ret = listen(intent, false);

	if (ret < 0)
		return ret;
	if (getrandom(record->nonce, sizeof(record->nonce), 0) !=
	    sizeof(record->nonce))
		return -EIO;
	stele_machine_sign(record);
	record->generation = generation + 1;
	ret = write_block(intent->dev, STELE_INTENT_TURN_OFFSET, record);
	if (ret == 0)
		ret = listen(intent, true);
	if (record->generation <= intent->floor)
		record->generation = intent->floor + 1;
	return ret < 0 ? ret : say(intent);
}

static void intent_free(struct intent *intent)
{
	stele_extents_release(&intent->avoided);
	stele_extents_release(&intent->reserved);
	free(intent);
}

/* What was avoided is left for the next one to avoid; it may come still later. */
static void leave(struct intent *intent)
{
	struct stele_intent_record *record = &intent->record;

	stele_extents_release(&intent->reserved);
	put_all(intent, STELE_INTENT_EXTENTS_MAX);
	memset(record->nonce, 0, sizeof(record->nonce));
	write_block(intent->dev, STELE_INTENT_OFFSET,
		    record->other_count ? record : NULL);
	write_block(intent->dev, STELE_INTENT_TURN_OFFSET, NULL);
}

/* Unless it is somebody else's turn: he has taken what we said away. */
static void take_back(struct intent *intent)
{
	intent->log = (struct stele_log){0}; /* what is done is done */
	if (look(intent) == 0)
		leave(intent);
}

int stele_intent_begin(struct stele_device *dev, const struct stele_log *log,
		       uint64_t generation)
{
	struct intent *intent;
	int ret;

	if (dev->fence_mode != STELE_FENCE_LOCAL || dev->permit)
		return 0;
	intent = calloc(1, sizeof(*intent));
	if (!intent)
		return -ENOMEM;
	intent->permit.check = check;
	intent->permit.confirm = confirm;
	intent->dev = dev;
	intent->impatient = stele_machine_posed;
	if (log)
		intent->log = *log;
	ret = announce(intent, generation);
	if (ret < 0) {
		if (ret == -ENOMEM) /* it may have been said */
			take_back(intent);
		intent_free(intent);
		return ret;
	}
	enlist(intent);
	dev->permit = &intent->permit;
	return 0;
}

void stele_intent_forget(struct stele_device *dev)
{
	struct intent *intent = intent_of(dev);

	if (!intent)
		return;
	dev->permit = NULL;
	delist(intent);
	intent_free(intent);
}

void stele_intent_end(struct stele_device *dev)
{
	struct intent *intent = intent_of(dev);

	if (!intent)
		return;
	take_back(intent);
	stele_intent_forget(dev);
}

/* ---- meanwhile ----------------------------------------------------------------- */

int stele_intent_confirm(struct stele_device *dev)
{
	struct intent *intent = intent_of(dev);

	return intent ? look(intent) : 0;
}

int stele_intent_silent(struct stele_device *dev)
{
	struct stele_intent_record *other;
	int ret;

	if (dev->fence_mode != STELE_FENCE_LOCAL)
		return 0;
	other = malloc(sizeof(*other));
	if (!other)
		return -ENOMEM;
	ret = read_block(dev, STELE_INTENT_OFFSET, other);
	if (ret > 0)
		ret = bytes_zero(other->nonce, sizeof(other->nonce)) ? 0 :
								       -EBUSY;
	if (ret == -ENODATA) /* too small for it */
		ret = 0;
	free(other);
	return ret;
}

int stele_intent_reserve(struct stele_device *dev, uint64_t generation,
			 uint64_t offset, uint64_t size)
{
	struct intent *intent = intent_of(dev);
	int ret;

	if (!intent)
		return 0;
	ret = stele_extents_add(&intent->reserved, offset, size);
	if (ret < 0)
		return ret;
	intent->record.generation = generation;
	ret = look(intent);
	return ret < 0 ? ret : say(intent);
}

void stele_intent_settle(struct stele_device *dev)
{
	struct intent *intent = intent_of(dev);

	if (intent)
		stele_extents_release(&intent->reserved);
}

uint64_t stele_intent_floor(const struct stele_device *dev)
{
	const struct intent *intent = intent_of(dev);

	return intent ? intent->floor : 0;
}

const struct stele_extents *stele_intent_avoided(const struct stele_device *dev)
{
	const struct intent *intent = intent_of(dev);

	return intent ? &intent->avoided : NULL;
}

const struct stele_extents *stele_intent_reserved(const struct stele_device *dev)
{
	const struct intent *intent = intent_of(dev);

	return intent ? &intent->reserved : NULL;
}

bool stele_intent_stop_avoiding(struct stele_device *dev)
{
	struct intent *intent = intent_of(dev);

	if (!intent || !intent->avoided.count)
		return false;
	if (time(NULL) - intent->since < STELE_INTENT_AVOID_SECONDS) {
		if (dev->resizable)
			return false;
		stele_log_warning(&intent->log,
				  "there is no space but where the replaced "
				  "writer may still write: be sure that it does "
				  "not run");
	}
	stele_extents_release(&intent->avoided);
	return true;
}

void stele_intent_pose(unsigned int machine, unsigned int boot)
{
	stele_machine_posed = machine;
	stele_machine_posed_boot = boot;
}
