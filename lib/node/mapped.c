/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapped.c - a device whose metadata was read once, when it was mapped
 *
 * A blocking read that begins within a recorded extent is answered from there,
 * as far as that goes; everything else goes to the device below. Read-only.
 */
#include "lib/node/krbd.h"
#include "lib/node/mapping_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct mapped_extent {
	uint64_t offset, size;
	const uint8_t *bytes;
};

struct mapped {
	struct stele_device base;
	struct stele_device *inner;
	struct stele_mapping mapping;
	struct stele_device_ops ops; /* ours, by the name of who serves */
	uint32_t count;
	struct mapped_extent extents[]; /* ascending */
};

/* The one that holds the byte at `offset`, or NULL. */
static const struct mapped_extent *find_extent(const struct mapped *mapped,
					       uint64_t offset)
{
	uint32_t low = 0, high = mapped->count;

	while (low < high) { /* the first that begins behind offset */
		uint32_t middle = low + (high - low) / 2;

		if (mapped->extents[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	low--;
	return offset - mapped->extents[low].offset <
			       mapped->extents[low].size ?
		       &mapped->extents[low] :
		       NULL;
}

static ssize_t mapped_transfer(struct stele_device *dev, enum stele_op op,
			       void *data, uint64_t offset, size_t size)
{
	struct mapped *mapped = (struct mapped *)dev;
	const struct mapped_extent *extent;
	uint64_t skip;

	if (op != STELE_OP_READ)
		return -EROFS;
	extent = find_extent(mapped, offset);
	if (!extent)
		return mapped->inner->ops->transfer(mapped->inner, op, data,
						    offset, size);
	skip = offset - extent->offset;
	if (size > extent->size - skip)
		size = (size_t)(extent->size - skip);
	memcpy(data, extent->bytes + skip, size);
	return (ssize_t)size;
}

static int mapped_size(struct stele_device *dev, uint64_t *size)
{
	return stele_device_size(((struct mapped *)dev)->inner, size);
}

static int mapped_queue_open(struct stele_device *dev, unsigned int depth,
			     void *arena, size_t arena_size,
			     struct stele_queue **queue)
{
	struct stele_device *inner = ((struct mapped *)dev)->inner;

	return inner->ops->queue_open(inner, depth, arena, arena_size, queue);
}

static void mapped_close(struct stele_device *dev)
{
	struct mapped *mapped = (struct mapped *)dev;

	stele_device_close(mapped->inner);
	stele_mapping_release(&mapped->mapping);
	free(mapped);
}

static int mapped_check(struct stele_device *dev)
{
	return stele_device_check(((struct mapped *)dev)->inner);
}

static int mapped_identify(struct stele_device *dev, struct stele_storage_id *id)
{
	return stele_device_identify(((struct mapped *)dev)->inner, id);
}

static const struct stele_device_ops mapped_ops = {
	.transfer = mapped_transfer,
	.size = mapped_size,
	.queue_open = mapped_queue_open,
	.close = mapped_close,
	.check = mapped_check,
	.identify = mapped_identify,
};

/* False when an answer could end within a block of the device. */
static bool take_extents(struct mapped *mapped)
{
	const struct stele_mapping_extent *extents = mapped->mapping.extents;
	const uint8_t *bytes = mapped->mapping.bytes;
	uint32_t block = mapped->base.limits.logical_block;

	for (uint32_t i = 0; i < mapped->count; i++) {
		struct mapped_extent *extent = &mapped->extents[i];

		extent->offset = le64_get(extents[i].offset);
		extent->size = le64_get(extents[i].size);
		extent->bytes = bytes;
		bytes += extent->size;
		if (!is_aligned(extent->offset, block) ||
		    !is_aligned(extent->size, block))
			return false;
	}
	return true;
}

int stele_device_wrap_mapped(struct stele_device *inner,
			     struct stele_mapping *mapping,
			     struct stele_device **out)
{
	uint32_t count = mapping->extent_count;
	struct mapped *mapped = malloc(sizeof(*mapped) +
				       count * sizeof(mapped->extents[0]));

	if (!mapped) {
		stele_device_close(inner);
		stele_mapping_release(mapping);
		return -ENOMEM;
	}
	mapped->base = *inner;
	mapped->ops = mapped_ops;
	mapped->ops.name = stele_device_backend(inner);
	mapped->base.ops = &mapped->ops;
	mapped->base.writable = false;
	mapped->base.below = inner;
	mapped->inner = inner;
	mapped->mapping = *mapping;
	mapped->count = count;
	memset(mapping, 0, sizeof(*mapping));
	if (!take_extents(mapped)) {
		mapped_close(&mapped->base);
		return -EUCLEAN;
	}
	*out = &mapped->base;
	return 0;
}

static int check_identity(const struct stele_mapping *mapping,
			  struct stele_device *inner, bool head,
			  const struct stele_log *log)
{
	struct stele_identity now;
	int err = stele_identity_of_device(inner, &now);

	if (head) { /* the shot that was mapped is another thing */
		struct stele_storage_id storage = now.storage;

		now = mapping->identity;
		storage.shot = now.storage.shot;
		now.storage = storage;
	}
	if (!err && stele_identity_same(&mapping->identity, &now))
		return 0;
	stele_log_error(log, "'%s' is not what was mapped as '%s' any more (map it again)",
			mapping->info.target, mapping->info.name);
	return err ? err : -ESTALE;
}

static int open_attached(const struct stele_mapping *mapping,
			 const char *backend, const struct stele_log *log,
			 struct stele_device **out)
{
	char node[STELE_KRBD_NODE_SIZE];
	int err = stele_krbd_node_of(mapping->identity.rdev, node);

	if (err)
		return err;
	return stele_device_open_krbd(node, mapping->info.target,
				      mapping->info.snapshot,
				      &mapping->identity.storage, backend, log,
				      out);
}

int stele_mapping_open_device(const struct stele_mapping *mapping, bool head,
			      const char *backend, const struct stele_log *log,
			      struct stele_device **out)
{
	const char *target = mapping->info.target;
	const bool has_shots = stele_path_has_shots(target);
	int err;

	if (has_shots && mapping->identity.rdev && !head)
		err = open_attached(mapping, backend, log, out);
	else
		err = stele_device_open(target,
					has_shots && !head ?
						mapping->info.snapshot :
						NULL,
					0, backend, log, out);
	if (err == -ENOENT || err == -ENOTBLK) {
		stele_log_error(log, "'%s', mapped as '%s', is gone",
				mapping->info.target, mapping->info.name);
		err = -ESTALE;
	}
	if (err)
		return err;
	err = check_identity(mapping, *out, head && has_shots, log);
	if (err)
		stele_device_close(*out);
	return err;
}
