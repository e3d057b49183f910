/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.c - a device that wraps another one, and logs or breaks what passes
 *
 * What the seam above starts, one raw operation, is numbered by the plan; then
 * it goes on to the device below as it is, or changed, or not at all. What
 * must be cut at any byte is done by blocking transfers of the device below. That
 * a broken operation is tried again is the work of the seam, as with any device.
 */
#include "tests/device/fault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/checked.h"
#include "tests/device/fault_plan.h"
#include "tests/device/fault_queue.h"

struct fault {
	struct stele_device base;
	struct stele_device *inner;
	struct stele_fault_plan plan;
};

static ssize_t pass(struct stele_device *inner, const struct stele_passage *p)
{
	return inner->ops->transfer(inner, p->op, p->data, p->offset, p->size);
}

/* What a whole success would return. */
static ssize_t claim(const struct stele_passage *p)
{
	return p->op == STELE_OP_READ || p->op == STELE_OP_WRITE
		       ? (ssize_t)p->size
		       : 0;
}

/* The first bytes of one block; what else the block holds is left alone. */
static ssize_t pass_part_of_block(struct stele_device *inner,
				  const struct stele_passage *p)
{
	uint32_t block = inner->limits.logical_block;
	struct stele_passage whole = *p;
	ssize_t res;

	whole.op = STELE_OP_READ;
	whole.size = block;
	whole.data = stele_device_alloc(inner, block);
	if (!whole.data)
		return -ENOMEM;
	res = pass(inner, &whole);
	if (res == block && p->op == STELE_OP_READ) {
		memcpy(p->data, whole.data, p->size);
	} else if (res == block) {
		memcpy(whole.data, p->data, p->size);
		whole.op = STELE_OP_WRITE;
		res = pass(inner, &whole);
	}
	free(whole.data);
	return res < (ssize_t)p->size ? res : (ssize_t)p->size;
}

/* Exactly the first `size` bytes, aligned or not. */
static ssize_t pass_part(struct stele_device *inner,
			 const struct stele_passage *p, uint64_t size)
{
	struct stele_passage part = *p;
	ssize_t whole = 0, rest = 0;

	if (size > p->size)
		size = p->size;
	part.size = round_down(size, inner->limits.logical_block);
	if (part.size)
		whole = pass(inner, &part);
	if (whole < (ssize_t)part.size || part.size == size)
		return whole;
	part.data = (char *)p->data + whole;
	part.offset += (uint64_t)whole;
	part.size = size - (uint64_t)whole;
	rest = pass_part_of_block(inner, &part);
	return rest < 0 ? rest : whole + rest;
}

ssize_t stele_fault_finish(const struct stele_passage *p, ssize_t res)
{
	uint64_t at = p->arg / 8;

	if (p->fault == STELE_FAULT_FLIP && p->op == STELE_OP_READ && res > 0 &&
	    at < (uint64_t)res)
		((uint8_t *)p->data)[at] ^= (uint8_t)(1u << p->arg % 8);
	return res;
}

ssize_t stele_fault_perform(struct stele_device *inner,
			    const struct stele_passage *p)
{
	bool is_write = p->op == STELE_OP_WRITE;
	struct stele_passage moved = *p;
	ssize_t res;

	switch (p->fault) {
	case STELE_FAULT_FAIL:
		return -p->error;
	case STELE_FAULT_LOSE:
		return claim(p);
	case STELE_FAULT_SHORTEN:
		if (is_write || p->op == STELE_OP_READ)
			return pass_part(inner, p, p->arg);
		return pass(inner, p);
	case STELE_FAULT_TEAR:
		if (!is_write)
			return pass(inner, p);
		res = pass_part(inner, p, p->arg);
		return res < 0 ? res : claim(p);
	case STELE_FAULT_MISDIRECT:
		moved.offset += p->arg;
		return pass(inner, &moved);
	default:
		return stele_fault_finish(p, pass(inner, p));
	}
}

static ssize_t fault_transfer(struct stele_device *dev, enum stele_op op,
			      void *data, uint64_t offset, size_t size)
{
	struct fault *fault = (struct fault *)dev;
	struct stele_passage passage = {
		.op = op,
		.data = data,
		.offset = offset,
		.size = size,
	};
	int rc = stele_fault_plan_enter(&fault->plan, &passage);

	return rc ? rc : stele_fault_perform(fault->inner, &passage);
}

static int fault_size(struct stele_device *dev, uint64_t *size)
{
	return stele_device_size(((struct fault *)dev)->inner, size);
}

static int fault_resize(struct stele_device *dev, uint64_t size)
{
	return stele_device_resize(((struct fault *)dev)->inner, size);
}

static int fault_grow(struct stele_device *dev, uint64_t size)
{
	return stele_device_grow(((struct fault *)dev)->inner, size);
}

static int fault_queue_open(struct stele_device *dev, unsigned int depth,
			    void *arena, size_t arena_size,
			    struct stele_queue **out)
{
	struct fault *fault = (struct fault *)dev;

	return stele_fault_open_queue(fault->inner, &fault->plan, depth, arena,
				      arena_size, out);
}

static void fault_close(struct stele_device *dev)
{
	struct fault *fault = (struct fault *)dev;

	stele_device_close(fault->inner);
	stele_fault_plan_release(&fault->plan);
	free(fault);
}

static int fault_check(struct stele_device *dev)
{
	return stele_device_check(((struct fault *)dev)->inner);
}

static int fault_identify(struct stele_device *dev, struct stele_storage_id *id)
{
	return stele_device_identify(((struct fault *)dev)->inner, id);
}

static const struct stele_device_ops fault_ops = {
	.check = fault_check,
	.identify = fault_identify,
	.name = "fault",
	.transfer = fault_transfer,
	.size = fault_size,
	.queue_open = fault_queue_open,
	.close = fault_close,
	.resize = fault_resize,
	.grow = fault_grow,
};

struct stele_fault_plan *stele_fault_plan_of(struct stele_device *dev)
{
	return &((struct fault *)dev)->plan;
}

int stele_device_open_fault(struct stele_device *inner,
			    const struct stele_fault_rule *rules, size_t count,
			    struct stele_device **out)
{
	struct fault *fault = calloc(1, sizeof(*fault));

	if (!fault) {
		stele_device_close(inner);
		return -ENOMEM;
	}
	fault->base = *inner;
	fault->base.ops = &fault_ops;
	fault->inner = inner;
	if (stele_fault_plan_init(&fault->plan, rules, count)) {
		fault_close(&fault->base);
		return -ENOMEM;
	}
	*out = &fault->base;
	return 0;
}
