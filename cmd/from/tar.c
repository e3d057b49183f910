/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar.c - the members of tar archives, each of them a sample
 *
 * libarchive reads the headers. It converts names to the charset of the locale, and composes
 * what is decomposed on the way; in that of "C", which knows ASCII alone, it gives up and
 * leaves the bytes as they are. What lies behind the header of a member in a plain archive is
 * noted, not read; only of a sparse member, which has other bytes than it says, is everything
 * copied. Its map says where they belong; libarchive makes a hole of what they do not reach.
 */
#include "from/tar.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libarchive.h"
#include "text.h"

#define BLOCK_SIZE	512u
#define CHECKSUM_OFFSET 148u
#define CHECKSUM_SIZE	8u
#define COPY_SIZE	((size_t)256 << 10)
#define UTF8_SIZE_MAX	4u

/* The header's checksum: the sum of its bytes, those of the checksum taken as blanks. */
bool from_tar_detect(const uint8_t *data, size_t size)
{
	unsigned long sum = 0, said = 0;
	const uint8_t *at = data + CHECKSUM_OFFSET;

	if (size < BLOCK_SIZE || !data[0])
		return false;
	for (size_t i = 0; i < BLOCK_SIZE; i++)
		sum += i - CHECKSUM_OFFSET < CHECKSUM_SIZE ? ' ' : data[i];
	while (*at == ' ')
		at++;
	for (; at < data + CHECKSUM_OFFSET + CHECKSUM_SIZE && *at >= '0' && *at <= '7'; at++)
		said = said * 8 + (unsigned long)(*at - '0');
	return sum == said;
}

/* Where in a sparse member its reader is. */
struct sparse {
	const uint8_t *data; /* of the extent that was handed over last */
	size_t left;	     /* of it */
	uint64_t at, next;   /* read so far; where `data` belongs */
	uint64_t size;	     /* of the member */
	uint64_t missing;    /* bytes of the map that were not handed over yet */
	bool end;
};

/* libarchive's reader of tar, over bytes that are decompressed. */
struct tar_reader {
	struct input *input;
	struct archive *archive;
	size_t block;
	uint8_t *buffer;
	uint64_t at;  /* bytes that were handed over or skipped */
	size_t given; /* of the buffer */
	struct sparse sparse; /* of the current member, if it is */
	uint64_t begin, end; /* of the last member: its header; the next one (0: unknown) */
	uint64_t stem; /* hash of the last member's path without its endings */
	uint64_t members, shared; /* how many; those that have the last one's */
};

static la_ssize_t read_block(struct archive *archive, void *user,
			     const void **data)
{
	struct tar_reader *tar = user;
	int64_t got = input_read(tar->input, tar->buffer, tar->block);

	*data = tar->buffer;
	if (got) /* at the end, what was given last is looked at again */
		tar->given = got > 0 ? (size_t)got : 0;
	tar->at += got > 0 ? (uint64_t)got : 0;
	if (got < 0)
		libarchive.archive_set_error(
			archive, EIO, "%s",
			got == -EBADMSG ? input_why(tar->input) :
					  strerror((int)-got));
	return got;
}

static la_int64_t skip_block(struct archive *archive, void *user, la_int64_t size)
{
	struct tar_reader *tar = user;

	(void)archive;
	if (size <= 0 || !input_seeks(tar->input))
		return 0;
	tar->at += (uint64_t)size;
	tar->given = 0;
	tar->input->error = input_seek(tar->input, (uint64_t)size);
	return size;
}

/* Return: 0; -ENOMEM. The archive is freed in any case. */
static int open_reader(struct tar_reader *tar)
{
	tar->block = input_seeks(tar->input) ? INPUT_SMALL_SIZE : COPY_SIZE;
	tar->buffer = malloc(tar->block);
	tar->archive = libarchive.archive_read_new();
	if (!tar->buffer || !tar->archive ||
	    libarchive.archive_read_support_format_tar(tar->archive))
		return -ENOMEM;
	/* What is wrong with the first block shows in its header, too. */
	libarchive.archive_read_open2(tar->archive, tar, NULL, read_block,
				      skip_block, NULL);
	return 0;
}

static void close_reader(struct tar_reader *tar)
{
	if (tar->archive)
		libarchive.archive_read_free(tar->archive);
	free(tar->buffer);
}

/* ---- bytes ----------------------------------------------------------------- */

static int archive_damaged(struct from_scan *scan, uint64_t offset,
			   const struct tar_member *member)
{
	struct archive *archive = scan->reader->archive;

	if (scan->input.error && scan->input.error != -EBADMSG)
		return from_cannot_read(scan, scan->input.error);
	if (member)
		return from_damaged(scan, offset, "'%s': %s", member->path,
				    libarchive_why(archive));
	return from_damaged(scan, offset, "%s", libarchive_why(archive));
}

static int refuse_map(struct archive *archive, const char *why)
{
	libarchive.archive_set_error(archive, EIO, "%s", why);
	return ARCHIVE_FAILED;
}

/* The map, as far as libarchive understands it: what is stored has these bytes at least. */
static void begin_sparse(struct sparse *sparse, struct archive_entry *entry, uint64_t size)
{
	la_int64_t offset, extent;

	*sparse = (struct sparse){.size = size};
	libarchive.archive_entry_sparse_reset(entry);
	while (libarchive.archive_entry_sparse_next(entry, &offset, &extent) == ARCHIVE_OK)
		sparse->missing += (uint64_t)extent;
}

/* Return: ARCHIVE_OK, also at the end; ARCHIVE_FATAL and the like. */
static int next_extent(struct archive *archive, struct sparse *sparse)
{
	const void *data;
	la_int64_t offset;
	int ret = libarchive.archive_read_data_block(archive, &data, &sparse->left, &offset);

	if (ret == ARCHIVE_EOF) {
		sparse->end = true;
		sparse->next = sparse->size;
		sparse->left = 0;
		return sparse->missing ? refuse_map(archive, "fewer bytes are stored than its "
							     "map of holes says") : ARCHIVE_OK;
	}
	if (ret != ARCHIVE_OK)
		return ret;
	if (offset < 0 || (uint64_t)offset < sparse->at || (uint64_t)offset > sparse->size ||
	    sparse->left > sparse->size - (uint64_t)offset)
		return refuse_map(archive, "its map of holes is out of order");
	sparse->data = data;
	sparse->next = (uint64_t)offset;
	sparse->missing -= sparse->left < sparse->missing ? sparse->left : sparse->missing;
	return ARCHIVE_OK;
}

/* Like archive_read_data(), which fills in what is not there, and no hole at the end. */
static la_ssize_t read_sparse(struct archive *archive, struct sparse *sparse, void *data,
			      size_t size)
{
	uint64_t hole;
	int ret = ARCHIVE_OK;

	while (ret == ARCHIVE_OK && !sparse->left && sparse->at == sparse->next && !sparse->end)
		ret = next_extent(archive, sparse);
	if (ret != ARCHIVE_OK)
		return ret;
	hole = sparse->next - sparse->at;
	if (hole) {
		size = hole < size ? (size_t)hole : size;
		memset(data, 0, size);
	} else if (!sparse->left) {
		return 0; /* the end, and nothing may have been handed over */
	} else {
		size = sparse->left < size ? sparse->left : size;
		memcpy(data, sparse->data, size);
		sparse->data += size;
		sparse->left -= size;
		sparse->next += size;
	}
	sparse->at += size;
	return (la_ssize_t)size;
}

static la_ssize_t read_data(struct from_scan *scan, const struct tar_member *member, void *data,
			    size_t size)
{
	struct tar_reader *tar = scan->reader;

	return member->sparse ? read_sparse(tar->archive, &tar->sparse, data, size) :
				libarchive.archive_read_data(tar->archive, data, size);
}

/* Return: 0; ARCHIVE_FATAL and the like; -EILSEQ; negative errno (said). */
static int copy(struct from_scan *scan, const struct tar_member *member, uint8_t *data,
		bool text, int *said)
{
	size_t rest = 0; /* of a character */
	la_ssize_t got;

	while ((got = read_data(scan, member, data + rest, COPY_SIZE - rest)) > 0) {
		const size_t size = rest + (size_t)got;
		size_t valid;

		*said = from_append(scan, data + rest, (size_t)got);
		if (*said)
			return *said;
		if (!text)
			continue;
		valid = text_valid((const char *)data, size);
		rest = size - valid;
		if (rest >= UTF8_SIZE_MAX)
			return -EILSEQ;
		memmove(data, data + valid, rest);
	}
	return got < 0 ? (int)got : rest ? -EILSEQ : 0;
}

int tar_member_copy(struct from_scan *scan, struct tar_member *member, bool text)
{
	struct store *store = &scan->from->store;
	const uint64_t before = store->size;
	uint8_t *data = malloc(COPY_SIZE);
	uint64_t begin;
	int said, ret;

	if (!data)
		return -ENOMEM;
	said = from_store(scan, member->offset, &member->place);
	begin = store->size;
	ret = said ? said : copy(scan, member, data, text, &said);
	free(data);
	if (said || (!ret && store->size - begin == member->size))
		return said;
	store_truncate(store, before);
	member->lost = true;
	return ret == -EILSEQ ? from_damaged(scan, member->offset, "'%s' is not UTF-8",
					     member->path) :
				archive_damaged(scan, member->offset, member);
}

int tar_member_keep(struct from_scan *scan, struct tar_member *member)
{
	return member->place ? 0 : tar_member_copy(scan, member, false);
}

int64_t tar_member_read(struct from_scan *scan, struct tar_member *member,
			void *data, size_t size)
{
	la_ssize_t got = read_data(scan, member, data, size);
	int ret;

	if (got >= 0)
		return got;
	member->lost = true;
	ret = archive_damaged(scan, member->offset, member);
	return ret;
}

/* ---- members --------------------------------------------------------------- */

static uint64_t position(const struct from_scan *scan)
{
	return (uint64_t)libarchive.archive_filter_bytes(scan->reader->archive, 0);
}

/* Before the first one it is negative. */
static uint64_t header_position(const struct from_scan *scan)
{
	const la_int64_t at = libarchive.archive_read_header_position(
		scan->reader->archive);

	return at > 0 ? (uint64_t)at : 0;
}

/* Hand on what was reported, for whoever has other members of the sample. */
static int hand_on_lost(struct from_scan *scan, struct tar_member *member, tar_member_fn fn,
			int reported)
{
	member->lost = true;
	return reported ? reported : fn(scan, member);
}

static int take_file(struct from_scan *scan, struct archive_entry *entry,
		     struct tar_member *member, tar_member_fn fn)
{
	const la_int64_t size = libarchive.archive_entry_size(entry);
	const uint64_t begin = position(scan);
	char bytes[TEXT_SIZE];

	if (size < 0 || !libarchive.archive_entry_size_is_set(entry))
		return hand_on_lost(scan, member, fn, from_damaged(
			scan, member->offset, "'%s' has no size", member->path));
	member->size = (uint64_t)size;
	member->sparse = libarchive.archive_entry_sparse_count(entry) > 0;
	if (member->sparse)
		begin_sparse(&scan->reader->sparse, entry, member->size);
	if (!from_is_plain(scan) || member->sparse)
		return fn(scan, member);
	if (begin > scan->shard->size || member->size > scan->shard->size - begin)
		return hand_on_lost(scan, member, fn, from_damaged(
			scan, member->offset,
			"'%s' is cut short: it has %s, and not all is there",
			member->path, text_counted(bytes, member->size, "byte")));
	member->place = from_place(scan, begin);
	scan->reader->begin = member->offset;
	scan->reader->end = begin + (member->size + BLOCK_SIZE - 1) / BLOCK_SIZE * BLOCK_SIZE;
	return fn(scan, member);
}

static int take_entry(struct from_scan *scan, struct archive_entry *entry,
		      tar_member_fn fn)
{
	const char *path = libarchive.archive_entry_pathname(entry);
	const char *link = libarchive.archive_entry_hardlink(entry);
	struct tar_member member = {.offset = header_position(scan)};

	if (!path || !*from_below(path))
		return libarchive.archive_entry_filetype(entry) == AE_IFDIR ?
			       0 :
			       from_damaged(scan, member.offset, "member without a name");
	member.path = from_below(path);
	member.path_size = strlen(member.path);
	if (link)
		return hand_on_lost(scan, &member, fn, from_damaged(
			scan, member.offset,
			"'%s' is a hard link to '%s', which has the bytes "
			"(tar --hard-dereference stores them with both)",
			member.path, from_below(link)));
	switch (libarchive.archive_entry_filetype(entry)) {
	case AE_IFREG:
		return take_file(scan, entry, &member, fn);
	case AE_IFDIR:
		return 0;
	case AE_IFLNK:
		member.skip = STELE_SKIP_SYMLINK;
		return fn(scan, &member);
	default:
		member.skip = STELE_SKIP_SPECIAL;
		return fn(scan, &member);
	}
}

/* A device may have held something else before, and a tape has more behind the archive. */
static bool ends_anywhere(const struct from_scan *scan)
{
	struct stat st;

	return !fstat(scan->input.fd, &st) && (S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode));
}

/* Behind the end is something else than zeros. */
static int judge_rest(struct from_scan *scan, uint64_t end, bool alone)
{
	int ret = end <= 2 * BLOCK_SIZE ? from_no_image(scan) : 0;

	if (ret)
		return ret;
	if (alone)
		return from_damaged(scan, end - BLOCK_SIZE, "a block of zeros, behind which the "
				    "archive goes on: something is missing");
	if (!ends_anywhere(scan))
		return from_damaged(scan, end, "something follows the end of the archive: it is "
				    "two archives, or something is missing");
	from_warn(scan, end, "what is behind the end of the archive is ignored");
	return 0;
}

/*
 * Behind the end is padding. If there is anything else, it may be no end: zeros that took the
 * place of a header look the same. What is compressed is read to its end, where its
 * checksum is.
 */
static int check_rest(struct from_scan *scan, uint64_t end, bool alone)
{
	struct tar_reader *tar = scan->reader;
	const uint64_t left = tar->at > end ? tar->at - end : 0;
	const size_t rest = left < tar->given ? (size_t)left : tar->given;
	bool padding = input_is_zero(tar->buffer + tar->given - rest, rest);
	int64_t got = 1;

	while (got > 0 && (padding || !input_seeks(&scan->input))) {
		got = input_read(&scan->input, tar->buffer, tar->block);
		if (got > 0 && padding)
			padding = input_is_zero(tar->buffer, (size_t)got);
	}
	if (got == -EBADMSG)
		return from_damaged(scan, end, "%s", input_why(&scan->input));
	if (got < 0)
		return from_cannot_read(scan, (int)got);
	return padding ? 0 : judge_rest(scan, end, alone);
}

/* Two blocks of zeros end an archive. Without them, who knows what is missing? */
static int check_end(struct from_scan *scan)
{
	const uint64_t begin = header_position(scan), end = position(scan);

	if (end == begin)
		return from_damaged(scan, begin, "it ends without the mark of its "
						 "end: something may be missing");
	return check_rest(scan, end, end - begin == BLOCK_SIZE);
}

/*
 * A warning is mostly of names in another character set. But libarchive goes on behind an
 * extended header that it cannot parse, too, with half of a name, or a sparse file's map for
 * its bytes; only the text tells these apart.
 */
static bool is_malformed(struct archive *archive)
{
	const char *why = libarchive.archive_error_string(archive);

	return why && strcasestr(why, "malformed");
}

/*
 * A sparse member whose map is a single extent, all of it, looks like any other, and may be
 * stored as less. Its sample was handed on, and cannot be left out.
 */
static int check_stored(struct from_scan *scan, uint64_t offset)
{
	struct tar_reader *tar = scan->reader;
	const uint64_t end = tar->end;

	tar->end = 0;
	if (!end || offset == end)
		return 0;
	return from_failed(scan->from, -EBADMSG, "'%s' at byte %" PRIu64 ": the member does not "
			   "end where its size says", scan->shard->name, tar->begin);
}

static int read_members(struct from_scan *scan, tar_member_fn fn)
{
	struct archive *archive = scan->reader->archive;
	bool lost = false; /* behind a damaged header: all blocks up to a sound one are one place */
	int ret = 0;

	while (!ret) {
		struct archive_entry *entry;
		uint64_t offset;
		int got = libarchive.archive_read_next_header(archive, &entry);

		/* That of a header that is cut off is not told. */
		offset = got == ARCHIVE_FATAL ? position(scan) : header_position(scan);
		ret = got == ARCHIVE_FATAL ? 0 : check_stored(scan, offset);
		if (ret)
			break;
		if (got == ARCHIVE_EOF)
			return check_end(scan);
		if (got == ARCHIVE_OK || (got == ARCHIVE_WARN && !is_malformed(archive))) {
			ret = take_entry(scan, entry, fn);
			lost = false;
			continue;
		}
		if (!lost || got == ARCHIVE_FATAL)
			ret = archive_damaged(scan, offset, NULL);
		if (got == ARCHIVE_FATAL)
			break; /* whatever follows is lost */
		lost = got != ARCHIVE_WARN;
	}
	return ret;
}

int from_tar_members(struct from_scan *scan, tar_member_fn fn)
{
	locale_t ascii = newlocale(LC_CTYPE_MASK, "C", (locale_t)0);
	struct tar_reader tar = {.input = &scan->input};
	locale_t before;
	int ret;

	if (!ascii)
		return -ENOMEM;
	before = uselocale(ascii);
	ret = open_reader(&tar);
	scan->reader = &tar;
	if (!ret)
		ret = read_members(scan, fn);
	close_reader(&tar);
	uselocale(before);
	freelocale(ascii);
	return ret;
}

/* ---- a member is a sample -------------------------------------------------- */

/* FNV-1a of what WebDataset takes for the key. */
static uint64_t hash_stem(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *end = strchrnul(slash ? slash + 1 : path, '.');
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (const char *at = path; at < end; at++)
		hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
	return hash;
}

/* A third of them: each sample has two members or more. */
static void count_shared(struct from *from, struct tar_reader *tar, const char *path)
{
	const uint64_t stem = hash_stem(path);

	tar->shared += tar->members++ && stem == tar->stem;
	tar->stem = stem;
	from->members_share = tar->shared * 3 >= tar->members;
}

static int take_sample(struct from_scan *scan, struct tar_member *member)
{
	int ret;

	if (member->lost)
		return 0;
	if (member->skip)
		return from_skip(scan, member->skip, member->path, member->path_size);
	ret = tar_member_keep(scan, member);
	count_shared(scan->from, scan->reader, member->path);
	return ret || member->lost ? ret :
				     from_sample(scan, member->path,
						 member->path_size, member->size,
						 member->place);
}

static int tar_scan(struct from_scan *scan)
{
	return from_tar_members(scan, take_sample);
}

const struct from_format from_tar = {
	.name = "tar",
	.detect = from_tar_detect,
	.scan = tar_scan,
	.kind = FROM_FILES,
};
