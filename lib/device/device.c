/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.c - blocking transfers, the same for every backend
 *
 * A transfer of any size is cut into requests that obey transfer_max, one
 * after the other; request.c says what each raw result means. No state but a
 * thread's tally of its reads: safe from several threads wherever the backend is.
 *
 * -ENOSPC within a target, and of more of a file, is what lies below it that is full;
 * behind its end it is the target's, and too small is what that means everywhere else.
 */
#include "lib/device/device.h"

#include <errno.h>
#include <stdlib.h>

#include "format/checked.h"
#include "lib/base/error.h"
#include "lib/device/backend.h"
#include "lib/device/tally.h"

/* Memory is cheap to map and register by the page. */
#define MEMORY_ALIGN_MIN 4096

int stele_device_explain(const struct stele_device *dev, int rc)
{
	if (rc == -ENOSPC && !dev->dry)
		stele_error_explain(rc, stele_device_strerror(dev, rc));
	return rc;
}

static void explain_request(struct stele_device *dev, const struct stele_request *request)
{
	uint64_t size;

	if (request->status == -ENOSPC && !stele_device_size(dev, &size) &&
	    range_ok(request->offset, request->size, size))
		stele_device_explain(dev, request->status);
}

static int run(struct stele_device *dev, struct stele_request *request)
{
	uint32_t started = 0;
	ssize_t res;
	void *data;
	int rc;

	rc = stele_request_check(dev, request);
	if (rc)
		return rc;
	do {
		started++;
		data = request->data ? (char *)request->data + request->done
				     : NULL;
		res = dev->ops->transfer(dev, request->op, data,
					 request->offset + request->done,
					 request->size - request->done);
	} while (!stele_request_advance(dev, request, res));
	stele_request_count(dev, request);
	explain_request(dev, request);
	if (request->op == STELE_OP_READ)
		stele_tally_add(request->size, started - 1);
	return request->status;
}

/* The whole must be sound before its first piece is issued. */
static int check_whole(const struct stele_device *dev, enum stele_op op,
		       const void *data, uint64_t offset, uint64_t size)
{
	uint32_t block = dev->limits.logical_block;

	if (op != STELE_OP_READ && !dev->writable)
		return -EROFS;
	if (!is_aligned(offset, block) || !is_aligned(size, block) ||
	    !is_aligned((uintptr_t)data, dev->limits.memory_align) ||
	    !range_ok(offset, size, INT64_MAX))
		return -EINVAL;
	return 0;
}

static int run_pieces(struct stele_device *dev, enum stele_op op, void *data,
		      uint64_t offset, uint64_t size, uint32_t piece_max)
{
	int rc = check_whole(dev, op, data, offset, size);

	while (!rc && size) {
		struct stele_request piece = {
			.op = op,
			.data = data,
			.offset = offset,
			.size = size < piece_max ? (uint32_t)size : piece_max,
		};

		rc = run(dev, &piece);
		if (data)
			data = (char *)data + piece.size;
		offset += piece.size;
		size -= piece.size;
	}
	return rc;
}

int stele_device_read(struct stele_device *dev, void *data, uint64_t offset,
		      size_t size)
{
	return run_pieces(dev, STELE_OP_READ, data, offset, size,
			  dev->limits.transfer_max);
}

int stele_device_may_write(struct stele_device *dev)
{
	return dev->permit ? dev->permit->check(dev->permit) : 0;
}

int stele_device_may_erase(struct stele_device *dev)
{
	return dev->permit ? dev->permit->confirm(dev->permit) : 0;
}

int stele_device_write_plain(struct stele_device *dev, const void *data,
			     uint64_t offset, size_t size)
{
	return run_pieces(dev, STELE_OP_WRITE, (void *)data, offset, size,
			  dev->limits.transfer_max);
}

int stele_device_write(struct stele_device *dev, const void *data,
		       uint64_t offset, size_t size)
{
	int rc = stele_device_may_write(dev);

	return rc ? rc : stele_device_write_plain(dev, data, offset, size);
}

int stele_device_flush(struct stele_device *dev)
{
	struct stele_request flush = {.op = STELE_OP_FLUSH};

	return run(dev, &flush);
}

int stele_device_discard(struct stele_device *dev, uint64_t offset,
			 uint64_t size)
{
	int rc = stele_device_may_erase(dev);

	return rc ? rc : run_pieces(dev, STELE_OP_DISCARD, NULL, offset, size,
				    1u << 30);
}

int stele_device_size(struct stele_device *dev, uint64_t *size)
{
	return dev->ops->size(dev, size);
}

static int may_resize(struct stele_device *dev, uint64_t size)
{
	if (!dev->resizable || !dev->ops->resize)
		return -EOPNOTSUPP;
	if (!dev->writable)
		return -EROFS;
	if (size > INT64_MAX || !is_aligned(size, dev->limits.logical_block))
		return -EINVAL;
	return stele_device_may_erase(dev);
}

int stele_device_resize(struct stele_device *dev, uint64_t size)
{
	int rc = may_resize(dev, size);

	return rc ? rc : stele_device_explain(dev, dev->ops->resize(dev, size));
}

int stele_device_grow(struct stele_device *dev, uint64_t size)
{
	uint64_t now;
	int rc = may_resize(dev, size);

	if (!rc)
		rc = stele_device_size(dev, &now);
	if (rc || now >= size)
		return rc;
	rc = dev->ops->grow ? dev->ops->grow(dev, size) : dev->ops->resize(dev, size);
	return stele_device_explain(dev, rc);
}

void stele_device_close(struct stele_device *dev)
{
	if (dev)
		dev->ops->close(dev);
}

int stele_device_fd(const struct stele_device *dev)
{
	return dev->fd >= 0 ? dev->fd : -EOPNOTSUPP;
}

const char *stele_device_strerror(const struct stele_device *dev, int error)
{
	if (error != -ENOSPC || dev->fd < 0)
		return stele_strerror(error);
	return dev->resizable ? "its filesystem is full" :
				"the storage behind the device is full";
}

int stele_device_log_full(const struct stele_device *dev, const struct stele_log *log,
			  const char *what, int error)
{
	if (error == -ENOSPC)
		stele_log_error(log, "cannot write %s: %s", what,
				stele_device_strerror(dev, error));
	return error;
}

const char *stele_device_backend(const struct stele_device *dev)
{
	return dev->ops->name;
}

void *stele_device_alloc(const struct stele_device *dev, size_t size)
{
	size_t align = dev->limits.memory_align;
	void *data;

	if (align < MEMORY_ALIGN_MIN)
		align = MEMORY_ALIGN_MIN;
	return posix_memalign(&data, align, size ? size : 1) ? NULL : data;
}
