/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather.c - slots in any order: their bytes, and the reads that bring them
 */
#include "lib/image/gather.h"
#include "tests/device/fault.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SIZE   (UINT64_C(16) << 20)
#define MEMORY (UINT64_C(8) << 20)
#define BLOCK  512u
#define SLOTS  20000u

static struct stele_device *dev;
static bool stop;

struct slot {
	uint64_t offset, size, order;
};
static struct slot slots[SLOTS];

static uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)((offset * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

static void make_device(void)
{
	struct stele_device *bottom = test_memory(SIZE, BLOCK, 0);
	uint8_t *data = stele_device_memory(bottom);

	for (uint64_t i = 0; i < SIZE; i++)
		data[i] = byte_at(i);
	if (stele_device_open_fault(bottom, NULL, 0, &dev) < 0)
		bail("no fault device");
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 31)) * UINT64_C(0x7fb5d329728ea185);
	return x ^ (x >> 27);
}

static int by_order(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return (x->order > y->order) - (x->order < y->order);
}

/* Slots of these sizes, `apart` bytes between them, wanted in their order or in any. */
static uint64_t make_slots(uint64_t count, uint64_t size_max, uint64_t apart, bool mixed)
{
	uint64_t at = 1000;

	for (uint64_t i = 0; i < count; i++) {
		slots[i] = (struct slot){at, 1 + mix(i + 1) % size_max,
					 mixed ? mix(i + 7) : i};
		at += slots[i].size + apart;
	}
	if (at > SIZE)
		bail("the slots need %" PRIu64 " bytes", at);
	qsort(slots, count, sizeof(*slots), by_order);
	return at - apart;
}

static bool is_right(const struct slot *slot, const uint8_t *data)
{
	for (uint64_t i = 0; i < slot->size; i++)
		if (data[i] != byte_at(slot->offset + i))
			return false;
	return true;
}

struct seen {
	uint64_t count, offset, wrong;
};

/* In the order of the device, each as it was added. */
static int see(void *user, uint64_t id, const uint8_t *data, uint64_t size)
{
	struct seen *seen = user;

	seen->wrong += slots[id].offset < seen->offset || slots[id].size != size ||
		       !is_right(&slots[id], data);
	seen->offset = slots[id].offset;
	return ++seen->count == SLOTS / 2 ? 7 : 0;
}

static uint64_t run(struct stele_gather *g, uint64_t count, int wanted, const char *what)
{
	uint64_t wrong = 0;

	stele_gather_begin(g);
	for (uint64_t i = 0; i < count; i++)
		if (!stele_gather_add(g, i, slots[i].offset, slots[i].size))
			bail("%s: no room for slot %" PRIu64, what, i);
	stele_fault_log_clear(dev);
	is_int(wanted, stele_gather_run(g, &stop), "%s: run", what);
	for (uint64_t i = 0; i < count && !wanted; i++)
		wrong += !is_right(&slots[i], stele_gather_next(g, slots[i].size));
	return wrong;
}

/* Reads: how many, of how many bytes, none of a block that another one has. */
static void check_reads(uint64_t reads_max, uint64_t bytes_min, uint64_t bytes_max,
			const char *what)
{
	static uint8_t seen[SIZE / BLOCK];
	const struct stele_fault_entry *log;
	uint64_t bytes = 0, twice = 0;
	size_t count;

	memset(seen, 0, sizeof(seen));
	log = stele_fault_log(dev, &count);
	for (size_t i = 0; i < count; i++) {
		bytes += log[i].size;
		for (uint64_t b = 0; b < log[i].size / BLOCK; b++)
			twice += seen[log[i].offset / BLOCK + b]++ > 0;
	}
	is_uint(0, twice, "%s: no block is read twice", what);
	ok(bytes >= bytes_min && bytes <= bytes_max, "%s: %" PRIu64 " bytes are read", what,
	   bytes);
	ok(count <= reads_max, "%s: %zu reads, at most %" PRIu64, what, count, reads_max);
}

static void check_dense(struct stele_gather *g, bool mixed, const char *what)
{
	struct seen seen = {0};
	const uint64_t end = make_slots(SLOTS, 300, 0, mixed);
	const uint64_t bytes = (end + BLOCK - 1) / BLOCK * BLOCK - 1000 / BLOCK * BLOCK;

	is_uint(0, run(g, SLOTS, 0, what), "%s: all slots", what);
	check_reads(bytes / g->piece_size + 1, bytes, bytes, what);
	is_int(7, stele_gather_each(g, see, &seen), "%s: in the order of the device", what);
	ok(seen.count == SLOTS / 2 && !seen.wrong, "%s: until told to stop", what);
}

static void check_sizes(struct stele_gather *g)
{
	const uint64_t end = make_slots(15, g->slot_max / 2, 1, true);

	is_uint(0, run(g, 12, 0, "larger than pieces"), "larger than pieces: all slots");
	check_reads(12 + end / g->piece_size, 0, end, "larger than pieces");
	ok(!stele_gather_add(g, 0, 0, g->slot_max + 1), "none that is larger than that");
}

/* Gaps are read where that costs less than a read. */
static void check_gaps(struct stele_gather *g)
{
	const uint64_t end = make_slots(400, 100, 8 << 10, true);

	is_uint(0, run(g, 400, 0, "small gaps"), "small gaps: all slots");
	check_reads(end / g->piece_size + 1, end / 2, end, "small gaps");
	make_slots(300, 100, 40 << 10, true);
	is_uint(0, run(g, 300, 0, "large gaps"), "large gaps: all slots");
	check_reads(300, 0, 300 * 2 * BLOCK, "large gaps");
}

static void check_room(struct stele_gather *g)
{
	uint64_t count = 0;

	stele_gather_begin(g);
	while (stele_gather_add(g, count, count * 1000, 1000))
		count++;
	is_uint(g->room / (1000 + STELE_GATHER_ENTRY_SIZE), count, "room for all that was told");
	is_int(0, stele_gather_run(g, &stop), "all of it");
	stele_gather_begin(g);
	is_int(0, stele_gather_run(g, &stop), "none");
}

static void check_failures(struct stele_gather *g)
{
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FAIL, .error = EIO};

	make_slots(SLOTS, 300, 0, true);
	rule.first = stele_fault_count(dev) + 3;
	rule.count = 1;
	stele_fault_set_rules(dev, &rule, 1);
	run(g, SLOTS, -EIO, "a failed read");
	stele_fault_set_rules(dev, NULL, 0);
	is_uint(0, run(g, SLOTS, 0, "after it"), "after it: all slots");
	stop = true;
	run(g, SLOTS, -ECANCELED, "asked to stop");
	stop = false;
	is_uint(0, run(g, SLOTS, 0, "after that"), "after that: all slots");
}

int main(void)
{
	struct stele_gather g;

	plan_lazy();
	make_device();
	is_int(-EINVAL, stele_gather_open(&g, dev, STELE_GATHER_MEMORY_MIN - 1), "too little");
	stele_gather_close(&g);
	is_int(0, stele_gather_open(&g, dev, MEMORY), "open");
	check_dense(&g, false, "in order");
	check_dense(&g, true, "in any order");
	check_sizes(&g);
	check_gaps(&g);
	check_room(&g);
	check_failures(&g);
	stele_gather_close(&g);
	stele_gather_close(&g);
	stele_device_close(dev);
	return done();
}
