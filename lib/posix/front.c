/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.c - see front.h
 */
#include "lib/posix/front.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/block.h"

int stele_front_read(struct stele_device *dev, struct stele_disk_erofs_front *out)
{
	uint8_t *block = stele_device_alloc(dev, STELE_BLOCK_SIZE);
	int ret = block ? stele_device_read(dev, block, 0, STELE_BLOCK_SIZE) : -ENOMEM;

	if (ret == 0)
		memcpy(out, block + STELE_EROFS_OFFSET, sizeof(*out));
	free(block);
	return ret;
}

bool stele_front_is_own(const struct stele_disk_erofs_front *front, const uint8_t *uuid)
{
	struct stele_erofs_inode root;
	struct stele_erofs_super super;

	return stele_erofs_front_decode(front, &super, &root, NULL) == 0 &&
	       (!uuid || !memcmp(super.uuid, uuid, sizeof(super.uuid)));
}

int stele_front_of_tree(struct stele_device *dev, uint64_t offset, const uint8_t uuid[16],
			struct stele_disk_erofs_front *out)
{
	uint8_t *block = stele_device_alloc(dev, STELE_BLOCK_SIZE);
	int ret = block ? stele_device_read(dev, block, offset, STELE_BLOCK_SIZE) : -ENOMEM;

	if (ret == 0)
		memcpy(out, block, sizeof(*out));
	free(block);
	return ret < 0 || stele_front_is_own(out, uuid) ? ret : -EUCLEAN;
}

int stele_front_write(struct stele_device *dev, const struct stele_disk_erofs_front *front)
{
	uint8_t *block = stele_device_alloc(dev, STELE_BLOCK_SIZE);
	int ret = block ? stele_device_read(dev, block, 0, STELE_BLOCK_SIZE) : -ENOMEM;

	if (ret == 0) {
		memcpy(block + STELE_EROFS_OFFSET, front, sizeof(*front));
		ret = stele_device_write(dev, block, 0, STELE_BLOCK_SIZE);
	}
	free(block);
	return ret < 0 ? ret : stele_device_flush(dev);
}
