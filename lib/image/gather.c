/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather.c - slots sorted by offset, read in pieces, copied to their places
 *
 * A piece is a run of blocks that hold slots, with gaps that cost less than another
 * read. It ends where memory does, within a slot too: the next one begins there.
 * Pieces arrive in any order, and each gives every slot the part of it that it has.
 */
#include "lib/image/gather.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/checked.h"

#define PIECE_SHARE 32u /* of the memory */
#define PIECE_MIN   4096u
#define PIECE_MAX   (256u << 10)
#define GAP_MAX	    (16u << 10) /* bytes that are read to save a read */
#define SLOT_SHARE  4u /* of the room: several fit */

struct entry {
	uint64_t offset; /* on the target */
	uint64_t size;
	uint64_t place; /* in the memory */
	uint64_t id;	/* the caller's */
};
_Static_assert(sizeof(struct entry) == STELE_GATHER_ENTRY_SIZE, "what a slot takes");

static struct entry *entry_of(const struct stele_gather *g, uint64_t index)
{
	return (struct entry *)(g->memory + STELE_GATHER_DEPTH *
						    (uint64_t)g->piece_size) + index;
}

int stele_gather_open(struct stele_gather *g, struct stele_device *dev,
		      uint64_t memory)
{
	uint64_t piece = round_down(memory / PIECE_SHARE, PIECE_MIN);

	*g = (struct stele_gather){.dev = dev};
	if (memory < STELE_GATHER_MEMORY_MIN)
		return -EINVAL;
	if (piece < PIECE_MIN)
		piece = PIECE_MIN;
	if (piece > PIECE_MAX)
		piece = PIECE_MAX;
	if (piece > dev->limits.transfer_max)
		piece = dev->limits.transfer_max;
	g->piece_size = (uint32_t)piece;
	g->room = memory - STELE_GATHER_DEPTH * piece;
	g->slot_max = g->room / SLOT_SHARE;
	g->memory = stele_device_alloc(dev, memory);
	for (uint32_t i = 0; i < STELE_GATHER_DEPTH; i++)
		g->idle[g->idle_count++] = &g->pieces[i];
	return g->memory ? 0 : -ENOMEM;
}

void stele_gather_close(struct stele_gather *g)
{
	/* Leak what a broken queue may still write to. */
	if (!stele_queue_close(g->queue))
		free(g->memory);
	*g = (struct stele_gather){0};
}

void stele_gather_begin(struct stele_gather *g)
{
	g->count = g->used = g->taken = 0;
	g->next = g->to = 0;
}

/* Where in the memory the bytes are that end so far from its end. */
static uint64_t place_of(const struct stele_gather *g, uint64_t used)
{
	return STELE_GATHER_DEPTH * (uint64_t)g->piece_size + g->room - used;
}

bool stele_gather_add(struct stele_gather *g, uint64_t id, uint64_t offset,
		      uint64_t size)
{
	if (size > g->slot_max ||
	    (g->count + 1) * sizeof(struct entry) + g->used + size > g->room)
		return false;
	g->used += size;
	*entry_of(g, g->count++) = (struct entry){
		.offset = offset, .size = size, .place = place_of(g, g->used), .id = id};
	return true;
}

const uint8_t *stele_gather_next(struct stele_gather *g, uint64_t size)
{
	g->taken += size;
	return g->memory + place_of(g, g->taken);
}

int stele_gather_each(const struct stele_gather *g,
		      int (*fn)(void *user, uint64_t id, const uint8_t *slot, uint64_t size),
		      void *user)
{
	int ret = 0;

	for (uint64_t i = 0; i < g->count && !ret; i++) {
		const struct entry *entry = entry_of(g, i);

		ret = fn(user, entry->id, g->memory + entry->place, entry->size);
	}
	return ret;
}

/* ---- pieces ------------------------------------------------------------------ */

static int by_offset(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* The next blocks that hold slots. False: all have been asked for. */
static bool form_piece(struct stele_gather *g, struct stele_gather_piece *piece)
{
	const uint32_t block = g->dev->limits.logical_block;
	uint64_t from, to, limit;

	if (g->next == g->count)
		return false;
	from = round_down(entry_of(g, g->next)->offset, block);
	if (from < g->to)
		from = g->to;
	to = from;
	limit = from + g->piece_size;
	for (piece->first = g->next; g->next < g->count; g->next++) {
		const struct entry *entry = entry_of(g, g->next);
		const uint64_t end = round_up(entry->offset + entry->size, block);

		if (entry->offset > to + GAP_MAX || entry->offset >= limit)
			break;
		if (end > limit) {
			to = limit;
			break;
		}
		if (to < end)
			to = end;
	}
	g->to = to;
	piece->request = (struct stele_request){
		.op = STELE_OP_READ,
		.data = g->memory +
			(uint64_t)(piece - g->pieces) * g->piece_size,
		.offset = from,
		.size = (uint32_t)(to - from),
		.user = piece,
	};
	return true;
}

/* To each slot the part that the piece has of it. */
static void copy_out(struct stele_gather *g, const struct stele_gather_piece *piece)
{
	const uint8_t *data = piece->request.data;
	const uint64_t from = piece->request.offset;
	const uint64_t to = from + piece->request.size;

	for (uint64_t i = piece->first; i < g->count; i++) {
		const struct entry *entry = entry_of(g, i);
		uint64_t begin = entry->offset, end = begin + entry->size;

		if (begin >= to)
			break;
		begin = begin > from ? begin : from;
		end = end < to ? end : to;
		if (begin < end)
			memcpy(g->memory + entry->place + (begin - entry->offset),
			       data + (begin - from), end - begin);
	}
}

static int submit(struct stele_gather *g)
{
	while (g->idle_count) {
		struct stele_gather_piece *piece = g->idle[g->idle_count - 1];
		int ret;

		if (!form_piece(g, piece))
			return 0;
		ret = stele_queue_submit(g->queue, &piece->request);
		if (ret < 0)
			return ret;
		g->idle_count--;
	}
	return 0;
}

/* Wait for some, and take what they bring, unless that failed. Return: 0; errno. */
static int reap(struct stele_gather *g)
{
	struct stele_request *done[STELE_GATHER_DEPTH];
	int count = stele_queue_reap(g->queue, done, STELE_GATHER_DEPTH, 1);
	int ret = count < 0 ? count : 0;

	for (int i = 0; i < count; i++) {
		struct stele_gather_piece *piece = done[i]->user;

		g->idle[g->idle_count++] = piece;
		if (!ret)
			ret = done[i]->status;
		if (!ret)
			copy_out(g, piece);
	}
	return ret;
}

/* What is in flight is waited for, unless the queue itself broke. */
static int drain(struct stele_gather *g, int error)
{
	unsigned int before;

	do {
		before = g->idle_count;
		if (before < STELE_GATHER_DEPTH)
			reap(g);
	} while (g->idle_count > before);
	return error;
}

int stele_gather_run(struct stele_gather *g, const bool *stop)
{
	int ret = 0;

	if (!g->queue && g->count)
		ret = stele_queue_open(g->dev, STELE_GATHER_DEPTH, g->memory,
				       STELE_GATHER_DEPTH * (size_t)g->piece_size,
				       &g->queue);
	if (ret < 0 || !g->count)
		return ret;
	qsort(entry_of(g, 0), g->count, sizeof(struct entry), by_offset);
	do {
		ret = submit(g);
		if (!ret && g->idle_count < STELE_GATHER_DEPTH)
			ret = reap(g);
		if (!ret && __atomic_load_n(stop, __ATOMIC_RELAXED))
			ret = -ECANCELED;
	} while (!ret && (g->next < g->count ||
			  g->idle_count < STELE_GATHER_DEPTH));
	return ret ? drain(g, ret) : 0;
}
