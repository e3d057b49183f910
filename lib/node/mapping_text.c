/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping_text.c - what a mapping's file says: encode, decode
 *
 *	stele mapping 1
 *	name = photos
 *	target = /dev/nvme1n1
 *	...
 *	time = 1763812345
 *
 * One table says which line holds what. Decoding ends by encoding the result: only a
 * file that comes out the same is believed, so there is one spelling of each mapping,
 * and one that was cut short is refused (`time`, the last line, is never left out).
 */
#include "lib/node/mapping.h"

#include "format/catalog.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "lib/device/target.h"

enum kind {
	PATH,	/* char *, malloc'ed; control characters and '\\' as \ooo */
	NAME,	/* of a mapping or snapshot */
	WORD,	/* printable, without blanks */
	HEX,	/* bytes */
	FLAG,	/* "yes" */
	DEVICE, /* a dev_t as MAJOR:MINOR */
	NUMBER, /* uint64_t or int64_t */
};

struct field {
	const char *key;
	enum kind kind;
	bool required;
	size_t offset, size; /* of a member of struct stele_mapping */
};

#define FIELD(key, kind, required, member) \
	{key, kind, required, offsetof(struct stele_mapping, member), \
	 sizeof(((struct stele_mapping *)0)->member)}

static const struct field fields[] = {
	FIELD("name", NAME, true, info.name),
	FIELD("target", PATH, true, target),
	FIELD("snapshot", NAME, true, info.snapshot),
	FIELD("digest", HEX, true, info.digest),
	FIELD("uuid", HEX, true, info.uuid),
	FIELD("samples", NUMBER, false, info.sample_count),
	FIELD("pinned", FLAG, false, info.pinned),
	FIELD("via", WORD, true, info.via),
	FIELD("read_only", FLAG, false, info.read_only),
	FIELD("was_read_only", FLAG, false, was_read_only),
	FIELD("attached", FLAG, false, attached),
	FIELD("device", DEVICE, false, identity.rdev),
	FIELD("filesystem", DEVICE, false, identity.fsdev),
	FIELD("inode", NUMBER, false, identity.inode),
	FIELD("sequence", NUMBER, false, identity.sequence),
	FIELD("size", NUMBER, false, identity.size),
	FIELD("cluster", WORD, false, identity.storage.cluster),
	FIELD("pool", NUMBER, false, identity.storage.pool),
	FIELD("image", WORD, false, identity.storage.image),
	FIELD("rbd_snapshot", NUMBER, false, identity.storage.snap),
	FIELD("time", NUMBER, true, info.time),
};

#define FIELD_COUNT (sizeof(fields) / sizeof(fields[0]))

/* ---- encode ------------------------------------------------------------------ */

/* Nothing to say: zeros, "", NULL. */
static bool is_empty(const void *at, size_t size)
{
	static const char zeros[STELE_NAME_SIZE_MAX + 1];

	return size <= sizeof(zeros) && !memcmp(at, zeros, size);
}

static bool is_control(char c)
{
	return (unsigned char)c < ' ' || c == '\177';
}

/* What does not fit sets `full`, and nothing is written past the end. */
struct writer {
	char *text;
	size_t size;
	bool full;
};

__attribute__((format(printf, 2, 3))) static void
put(struct writer *out, const char *format, ...)
{
	size_t room = STELE_MAPPING_SIZE_MAX - out->size;
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(out->text + out->size, room, format, args);
	va_end(args);
	if (size < 0 || (size_t)size >= room)
		out->full = true;
	else
		out->size += (size_t)size;
}

static void put_path(struct writer *out, const char *path)
{
	for (; *path; path++)
		put(out, is_control(*path) || *path == '\\' ? "\\%03o" : "%c",
		    (unsigned char)*path);
}

static void put_value(struct writer *out, const struct field *field,
		      const void *at)
{
	uint64_t number = 0;

	switch (field->kind) {
	case PATH:
		put_path(out, *(char *const *)at);
		break;
	case NAME:
	case WORD:
		put(out, "%s", (const char *)at);
		break;
	case HEX:
		for (size_t i = 0; i < field->size; i++)
			put(out, "%02x", ((const uint8_t *)at)[i]);
		break;
	case FLAG:
		put(out, "yes");
		break;
	case DEVICE:
		memcpy(&number, at, sizeof(number));
		put(out, "%u:%u", major(number), minor(number));
		break;
	case NUMBER:
		memcpy(&number, at, sizeof(number));
		put(out, "%" PRIu64, number);
		break;
	}
}

int stele_mapping_encode(const struct stele_mapping *mapping, char *text)
{
	struct writer out = {.text = text};

	put(&out, "stele mapping %u\n", STELE_MAPPING_VERSION);
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		const void *at = (const char *)mapping + fields[i].offset;

		if (!fields[i].required && is_empty(at, fields[i].size))
			continue;
		put(&out, "%s = ", fields[i].key);
		put_value(&out, &fields[i], at);
		put(&out, "\n");
	}
	return out.full ? -ENAMETOOLONG : 0;
}

/* ---- decode ------------------------------------------------------------------ */

static int get_path(const char *text, char **out)
{
	char *path = malloc(strlen(text) + 1), *to = path;

	if (!path)
		return -ENOMEM;
	*out = path;
	for (; *text; text++) {
		unsigned int octal;

		if (*text != '\\') {
			*to++ = *text;
		} else if (sscanf(text + 1, "%3o", &octal) == 1 && octal &&
			   octal <= UINT8_MAX && strlen(text) >= 4) {
			*to++ = (char)octal;
			text += 3;
		} else {
			return -EUCLEAN;
		}
	}
	*to = '\0';
	return to - path < PATH_MAX ? 0 : -EUCLEAN;
}

static int get_hex(const char *text, uint8_t *out, size_t size)
{
	if (strlen(text) != 2 * size)
		return -EUCLEAN;
	for (size_t i = 0; i < size; i++)
		if (sscanf(text + 2 * i, "%2hhx", &out[i]) != 1)
			return -EUCLEAN;
	return 0;
}

static int get_text(const char *text, const struct field *field, char *out)
{
	size_t size = strlen(text);

	if (size >= field->size || strchr(text, ' ') ||
	    (field->kind == NAME && !stele_name_ok(text, size)))
		return -EUCLEAN;
	memcpy(out, text, size + 1);
	return 0;
}

/* What it lets pass and would not write itself, re-encoding finds. */
static int get_value(const char *text, const struct field *field, void *at)
{
	unsigned int high, low;
	uint64_t number;

	switch (field->kind) {
	case PATH:
		return get_path(text, at);
	case NAME:
	case WORD:
		return get_text(text, field, at);
	case HEX:
		return get_hex(text, at, field->size);
	case FLAG:
		*(bool *)at = true;
		return 0;
	case DEVICE:
		if (sscanf(text, "%u:%u", &high, &low) != 2)
			return -EUCLEAN;
		number = makedev(high, low);
		memcpy(at, &number, sizeof(number));
		return 0;
	case NUMBER:
		number = strtoull(text, NULL, 10);
		memcpy(at, &number, sizeof(number));
		return 0;
	}
	return -EUCLEAN;
}

static int bad(const char **why, const char *step, int err)
{
	*why = step;
	return err;
}

/* `text` is a copy, terminated; its newlines go. */
static int get_fields(char *text, struct stele_mapping *out, const char **why)
{
	char *line = text;

	for (size_t i = 0; i < FIELD_COUNT; i++) {
		const struct field *field = &fields[i];
		size_t size = strlen(field->key);
		char *end = strchr(line, '\n');
		int err;

		if (!end || strncmp(line, field->key, size) ||
		    strncmp(line + size, " = ", 3)) {
			if (field->required)
				return bad(why, field->key, -EUCLEAN);
			continue;
		}
		*end = '\0';
		err = get_value(line + size + 3, field,
				(char *)out + field->offset);
		if (err)
			return bad(why, field->key, err);
		line = end + 1;
	}
	return *line ? bad(why, "unknown, repeated or misplaced line", -EUCLEAN) : 0;
}

/* Fields against each other. */
static int check_fields(const struct stele_mapping *m, const char *name,
			const char **why)
{
	const struct stele_identity *id = &m->identity;
	const bool rbd = *id->storage.cluster;

	if (strcmp(m->info.name, name))
		return bad(why, "name", -EUCLEAN);
	if (rbd ? !stele_path_is_rbd(m->target) : *m->target != '/')
		return bad(why, "target", -EUCLEAN);
	if (!*m->info.via)
		return bad(why, "via", -EUCLEAN);
	if (rbd != !!*id->storage.image || rbd != !!id->storage.snap ||
	    (!rbd && id->storage.pool))
		return bad(why, "cluster", -EUCLEAN);
	if (id->rdev ? id->fsdev || id->inode : !rbd == !id->inode)
		return bad(why, "device", -EUCLEAN);
	if (m->was_read_only && !m->info.read_only)
		return bad(why, "was_read_only", -EUCLEAN);
	if (m->attached && (!rbd || !id->rdev))
		return bad(why, "attached", -EUCLEAN);
	return 0;
}

static bool is_text(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (is_control(text[i]) && text[i] != '\n')
			return false;
	return size;
}

/* `text` is terminated, `copy` the same for taking apart. */
static int decode(const char *text, char *copy, const char *name,
		  struct stele_mapping *out, const char **why)
{
	char head[32];
	size_t length = (size_t)sprintf(head, "stele mapping %u\n",
					STELE_MAPPING_VERSION);
	int err;

	if (strncmp(text, head, strcspn(head, "0123456789")))
		return bad(why, "not a mapping", -EBADMSG);
	if (strncmp(text, head, length))
		return bad(why, "version", -EOPNOTSUPP);
	err = get_fields(copy + length, out, why);
	if (!err)
		err = check_fields(out, name, why);
	/* The copy has served. */
	if (!err && (stele_mapping_encode(out, copy) || strcmp(copy, text)))
		err = bad(why, "spelling", -EUCLEAN);
	out->info.target = out->target;
	return err;
}

int stele_mapping_decode(const char *text, size_t size, const char *name,
			 struct stele_mapping *out, const char **why)
{
	char *copies;
	int err;

	memset(out, 0, sizeof(*out));
	if (size >= STELE_MAPPING_SIZE_MAX || !is_text(text, size))
		return bad(why, "not a mapping", -EBADMSG);
	copies = calloc(2, STELE_MAPPING_SIZE_MAX);
	if (!copies)
		return bad(why, "no memory", -ENOMEM);
	memcpy(copies, text, size);
	memcpy(copies + STELE_MAPPING_SIZE_MAX, text, size);
	err = decode(copies, copies + STELE_MAPPING_SIZE_MAX, name, out, why);
	free(copies);
	if (err)
		stele_mapping_release(out);
	return err;
}
