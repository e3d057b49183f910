/* SPDX-License-Identifier: Apache-2.0 */
/*
 * erofs.c - see erofs.h
 *
 * Decoders take what the encoders make, and nothing else that EROFS knows: they are there
 * to check what was written, and to tell an EROFS of Stele's from any other.
 */
#include "format/erofs.h"

#include "format/decode.h"

#define FORMAT_EXTENDED 1u
#define MODE_FILE	0100444u
#define MODE_DIRECTORY	0040555u

/* ---- inodes ---------------------------------------------------------------- */

static uint16_t mode_of(const struct stele_erofs_inode *inode)
{
	return inode->type == STELE_EROFS_DIRECTORY ? MODE_DIRECTORY : MODE_FILE;
}

static void encode_extended(const struct stele_erofs_inode *inode, uint64_t nid,
			    struct stele_disk_erofs_extended *out)
{
	memset(out, 0, sizeof(*out));
	out->format = le16_put(FORMAT_EXTENDED);
	out->mode = le16_put(mode_of(inode));
	out->size = le64_put(inode->size);
	out->block = le32_put(inode->block);
	out->ino = le32_put((uint32_t)nid);
	out->time = le64_put((uint64_t)inode->time);
	out->link_count = le32_put(inode->link_count);
}

void stele_erofs_inode_encode(const struct stele_erofs_inode *inode, uint64_t nid,
			      void *out)
{
	struct stele_disk_erofs_compact *compact = out;

	if (inode->extended) {
		encode_extended(inode, nid, out);
		return;
	}
	memset(compact, 0, sizeof(*compact));
	compact->mode = le16_put(mode_of(inode));
	compact->link_count = le16_put((uint16_t)inode->link_count);
	compact->size = le32_put((uint32_t)inode->size);
	compact->block = le32_put(inode->block);
	compact->ino = le32_put((uint32_t)nid);
}

int stele_erofs_inode_decode(const void *data, uint64_t size,
			     struct stele_erofs_inode *out, const char **why)
{
	const struct stele_disk_erofs_compact *compact = data;
	const struct stele_disk_erofs_extended *extended = data;
	const uint16_t mode = le16_get(compact->mode);
	struct stele_erofs_inode inode = {
		.extended = le16_get(compact->format) & FORMAT_EXTENDED,
		.type = mode == MODE_DIRECTORY ? STELE_EROFS_DIRECTORY : STELE_EROFS_FILE,
		.block = le32_get(compact->block),
	};

	if (le16_get(compact->format) & ~FORMAT_EXTENDED)
		return unclean(why, "erofs inode: unknown format");
	if (inode.extended && size < sizeof(*extended))
		return unclean(why, "erofs inode: cut short");
	if (le16_get(compact->xattr_count))
		return unclean(why, "erofs inode: with attributes");
	if (mode != mode_of(&inode))
		return unclean(why, "erofs inode: unknown mode");
	inode.size = inode.extended ? le64_get(extended->size) : le32_get(compact->size);
	inode.link_count = inode.extended ? le32_get(extended->link_count) :
					    le16_get(compact->link_count);
	if (inode.extended)
		inode.time = (int64_t)le64_get(extended->time);
	if (!inode.link_count)
		return unclean(why, "erofs inode: without a name");
	*out = inode;
	return 0;
}

/* ---- superblock -------------------------------------------------------------- */

#define UUID_BYTES_MIN 12u /* of 16, which are as they were */

void stele_erofs_front_encode(const struct stele_erofs_super *super,
			      const struct stele_erofs_inode *root,
			      struct stele_disk_erofs_front *out)
{
	struct stele_disk_erofs_super *disk = &out->super;

	memset(out, 0, sizeof(*out));
	disk->magic = le32_put(STELE_EROFS_MAGIC);
	disk->block_bits = (uint8_t)super->block_bits;
	disk->root_nid = le16_put(STELE_EROFS_ROOT_NID);
	disk->inode_count = le64_put(super->inode_count);
	disk->time = le64_put((uint64_t)super->time);
	disk->block_count = le32_put(super->block_count);
	memcpy(disk->uuid, super->uuid, sizeof(disk->uuid));
	memcpy(disk->volume, super->volume,
	       strnlen(super->volume, STELE_EROFS_VOLUME_SIZE));
	stele_erofs_inode_encode(root, STELE_EROFS_ROOT_NID, &out->root);
}

int stele_erofs_front_decode(const struct stele_disk_erofs_front *front,
			     struct stele_erofs_super *super,
			     struct stele_erofs_inode *root, const char **why)
{
	const struct stele_disk_erofs_super *disk = &front->super;
	struct stele_disk_erofs_front again;
	int ret;

	if (le32_get(disk->magic) != STELE_EROFS_MAGIC)
		return refuse(why, -EMEDIUMTYPE, "erofs: no magic");
	*super = (struct stele_erofs_super){
		.block_bits = disk->block_bits,
		.block_count = le32_get(disk->block_count),
		.inode_count = le64_get(disk->inode_count),
		.time = (int64_t)le64_get(disk->time),
	};
	memcpy(super->uuid, disk->uuid, sizeof(super->uuid));
	memcpy(super->volume, disk->volume, sizeof(disk->volume));
	if (super->block_bits < STELE_EROFS_BITS_MIN ||
	    super->block_bits > STELE_EROFS_BITS_MAX)
		return unclean(why, "erofs: block size out of range");
	ret = stele_erofs_inode_decode(&front->root, sizeof(front->root), root, why);
	if (ret < 0)
		return ret;
	if (!root->extended || root->type != STELE_EROFS_DIRECTORY)
		return unclean(why, "erofs: root is no directory of ours");
	/* All else is as we write it, or it is another's. */
	stele_erofs_front_encode(super, root, &again);
	if (memcmp(&again, front, sizeof(again)) != 0)
		return unclean(why, "erofs: not written by Stele");
	return 0;
}

bool stele_erofs_front_is_of(const struct stele_disk_erofs_front *front,
			     const uint8_t uuid[16])
{
	unsigned int same = 0;

	for (size_t i = 0; i < sizeof(front->super.uuid); i++)
		same += front->super.uuid[i] == uuid[i];
	return same >= UUID_BYTES_MIN;
}

/* ---- directories --------------------------------------------------------------- */

bool stele_erofs_name_ok(const char *name, size_t size)
{
	if (size == 0 || size > STELE_EROFS_NAME_MAX)
		return false;
	if (name[0] == '.' && (size == 1 || (size == 2 && name[1] == '.')))
		return false;
	return !memchr(name, '/', size) && !memchr(name, '\0', size);
}

void stele_erofs_dirent_put(uint8_t *block, uint32_t index, uint32_t count, uint32_t at,
			    const struct stele_erofs_dirent *entry)
{
	struct stele_disk_erofs_dirent *disk = (void *)block;
	const uint32_t offset = count * (uint32_t)sizeof(*disk) + at;

	disk[index] = (struct stele_disk_erofs_dirent){
		.nid = le64_put(entry->nid),
		.name_offset = le16_put((uint16_t)offset),
		.type = (uint8_t)entry->type,
	};
	memcpy(block + offset, entry->name, entry->name_size);
}

int stele_erofs_dirents_count(const uint8_t *block, uint32_t size, const char **why)
{
	const struct stele_disk_erofs_dirent *disk = (const void *)block;
	uint32_t names;

	if (size < sizeof(*disk))
		return unclean(why, "erofs directory: cut short");
	names = le16_get(disk->name_offset);
	if (names < sizeof(*disk) || names % sizeof(*disk) || names > size)
		return unclean(why, "erofs directory: count of entries");
	return (int)(names / sizeof(*disk));
}

static bool is_dots(const char *name, size_t size)
{
	return size && size <= 2 && name[0] == '.' && name[size - 1] == '.';
}

int stele_erofs_dirent_get(const uint8_t *block, uint32_t size, uint32_t index,
			   struct stele_erofs_dirent *out, const char **why)
{
	const struct stele_disk_erofs_dirent *disk = (const void *)block;
	int count = stele_erofs_dirents_count(block, size, why);
	uint32_t from, to = size;

	if (count < 0)
		return count;
	if (index >= (uint32_t)count)
		return unclean(why, "erofs directory: no such entry");
	from = le16_get(disk[index].name_offset);
	if (index + 1 < (uint32_t)count)
		to = le16_get(disk[index + 1].name_offset);
	if (from < (uint32_t)count * sizeof(*disk) || to < from || to > size)
		return unclean(why, "erofs directory: place of a name");
	*out = (struct stele_erofs_dirent){
		.nid = le64_get(disk[index].nid),
		.type = disk[index].type,
		.name = (const char *)block + from,
		.name_size = (uint32_t)strnlen((const char *)block + from, to - from),
	};
	if (out->type != STELE_EROFS_FILE && out->type != STELE_EROFS_DIRECTORY)
		return unclean(why, "erofs directory: type of an entry");
	if (!is_dots(out->name, out->name_size) &&
	    !stele_erofs_name_ok(out->name, out->name_size))
		return unclean(why, "erofs directory: name of an entry");
	return 0;
}
