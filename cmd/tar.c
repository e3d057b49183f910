/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar.c - ustar headers, and pax headers before them
 */
#include "tar.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

#define OCTAL_MAX ((UINT64_C(1) << 33) - 1) /* 11 digits */

/* POSIX.1, "ustar Interchange Format". */
struct header {
	char name[100];
	char mode[8], uid[8], gid[8];
	char size[12], mtime[12];
	char checksum[8];
	char type;
	char link[100];
	char magic[6], version[2];
	char user[32], group[32];
	char major[8], minor[8];
	char prefix[155];
	char unused[12];
};
_Static_assert(sizeof(struct header) == TAR_BLOCK_SIZE, "ustar header");

static size_t round_up(size_t size, size_t unit)
{
	return (size + unit - 1) / unit * unit;
}

/* The slash at which a path falls into prefix and name; NULL: it cannot. */
static const char *split(const char *path, size_t size)
{
	const char *slash = NULL;

	for (size_t i = 1; i < size && i <= 155; i++) {
		if (path[i] == '/' && size - i - 1 <= 100 && i + 1 < size)
			slash = path + i;
	}
	return slash;
}

static bool fits(const char *path, size_t size)
{
	return size <= 100 || split(path, size);
}

static void finish(struct header *header)
{
	const unsigned char *bytes = (const unsigned char *)header;
	unsigned int sum = 0;

	memcpy(header->mode, "0000644", 8);
	memcpy(header->uid, "0000000", 8);
	memcpy(header->gid, "0000000", 8);
	memcpy(header->magic, "ustar", 6);
	memcpy(header->version, "00", 2);
	memcpy(header->major, "0000000", 8);
	memcpy(header->minor, "0000000", 8);
	memset(header->checksum, ' ', sizeof(header->checksum));
	for (size_t i = 0; i < sizeof(*header); i++)
		sum += bytes[i];
	snprintf(header->checksum, 7, "%06o", sum);
}

static void put_octal(char field[12], uint64_t value)
{
	snprintf(field, 12, "%011" PRIo64, value);
}

static bool time_fits(int64_t time)
{
	return time >= 0 && (uint64_t)time <= OCTAL_MAX;
}

/* What does not fit is in the pax header; here stands something close. */
static void put_file(struct header *header, const char *path, size_t path_size,
		     uint64_t size, int64_t time)
{
	const char *slash = path_size > 100 ? split(path, path_size) : NULL;

	memset(header, 0, sizeof(*header));
	if (slash) {
		memcpy(header->prefix, path, (size_t)(slash - path));
		path_size -= (size_t)(slash + 1 - path);
		path = slash + 1;
	}
	memcpy(header->name, path, path_size < 100 ? path_size : 100);
	put_octal(header->size, size <= OCTAL_MAX ? size : 0);
	put_octal(header->mtime, time_fits(time) ? (uint64_t)time : 0);
	header->type = '0';
	finish(header);
}

/* "LENGTH KEY=VALUE\n", where the length counts its own digits. */
static size_t put_record(char *out, const char *key, const void *value,
			 size_t size)
{
	size_t rest = strlen(key) + size + 3, length = rest + 1;
	char digits[24];

	while (length != rest + (size_t)snprintf(digits, sizeof(digits), "%zu",
						 length))
		length = rest + strlen(digits);
	out += sprintf(out, "%s %s=", digits, key);
	memcpy(out, value, size);
	out[size] = '\n';
	return length;
}

static bool is_text(const char *path, size_t size)
{
	size_t n = 0;

	for (; size; path += n, size -= n) {
		n = text_utf8(path, size);
		if (!n)
			return false;
	}
	return true;
}

/* Return: bytes of the records; 0: none are needed. */
static size_t put_records(char *out, const char *path, size_t path_size,
			  uint64_t size, int64_t time)
{
	char *p = out;
	char text[24];

	if (!fits(path, path_size)) {
		if (!is_text(path, path_size))
			p += put_record(p, "hdrcharset", "BINARY", 6);
		p += put_record(p, "path", path, path_size);
	}
	if (size > OCTAL_MAX) {
		snprintf(text, sizeof(text), "%" PRIu64, size);
		p += put_record(p, "size", text, strlen(text));
	}
	if (!time_fits(time)) {
		snprintf(text, sizeof(text), "%" PRId64, time);
		p += put_record(p, "mtime", text, strlen(text));
	}
	return (size_t)(p - out);
}

size_t tar_header(char out[TAR_HEADER_MAX], const char *path, size_t path_size,
		  uint64_t size, int64_t time)
{
	static const char pax_name[] = "././@PaxHeader";
	struct header header;
	size_t records, done = 0;

	memset(out, 0, TAR_HEADER_MAX);
	records = put_records(out + sizeof(header), path, path_size, size,
			      time);
	if (records) {
		put_file(&header, pax_name, strlen(pax_name), records, 0);
		header.type = 'x';
		finish(&header);
		memcpy(out, &header, sizeof(header));
		done = sizeof(header) + round_up(records, TAR_BLOCK_SIZE);
	}
	put_file(&header, path, path_size, size, time);
	memcpy(out + done, &header, sizeof(header));
	return done + sizeof(header);
}

size_t tar_padding(uint64_t size)
{
	return (size_t)(-size % TAR_BLOCK_SIZE);
}

size_t tar_ending(uint64_t size)
{
	const size_t last = (size_t)(size % TAR_RECORD_SIZE);

	return round_up(last + 2 * TAR_BLOCK_SIZE, TAR_RECORD_SIZE) - last;
}
