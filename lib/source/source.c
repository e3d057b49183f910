/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.c - what all kinds of sources share
 */
#include "lib/source/source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/options.h"

static int invalid(const struct stele_log *log, const char *what)
{
	stele_log_error(log, "%s", what);
	return -EINVAL;
}

int stele_source_from(const struct stele_source_ops *ops, void *user,
		      const struct stele_log *log, struct stele_source *out)
{
	int ret;

	*out = (struct stele_source){.user = user};
	if (!ops)
		return invalid(log, "no source");
	ret = stele_options_copy(ops, &out->ops, sizeof(out->ops), log);
	if (ret < 0)
		return ret;
	ret = stele_options_flags(out->ops.flags,
				  STELE_SOURCE_REPEATS | STELE_SOURCE_PATHS, log);
	if (ret < 0)
		return ret;
	if (out->ops.reserved)
		return invalid(log, "reserved bytes of a source are not zero");
	if (!out->ops.scan || !out->ops.read)
		return invalid(log, "a source without scan() or read()");
	if (out->ops.flags & STELE_SOURCE_PATHS && out->ops.schema)
		return invalid(log, "a source of paths with a schema()");
	if (out->ops.flags & STELE_SOURCE_REPEATS && out->ops.replace)
		return invalid(log, "a source that repeats keys, with a replace()");
	if (!out->ops.reader_new != !out->ops.reader_free)
		return invalid(log, "a source with only one of reader_new() "
				    "and reader_free()");
	return 0;
}

#define KEY_BEGINNING 60 /* bytes of a key that is too long, in a message */

static int refuse(const struct stele_log *log, const char *what, int error,
		  const struct stele_source_entry *entry)
{
	char text[STELE_QUOTE_SIZE];

	stele_log_error(log, "%s: '%s'", what,
			stele_source_quote(entry->key, entry->key_size, text));
	return error;
}

int stele_source_check_entry(const struct stele_source_entry *entry,
			     const struct stele_log *log)
{
	char text[STELE_QUOTE_SIZE];

	if (!entry->key || !entry->key_size) {
		stele_log_error(log, "there is a sample without a key");
		return -EINVAL;
	}
	if (entry->key_size > STELE_KEY_SIZE_MAX) {
		stele_log_error(log, "key of %zu bytes, more than %u: '%s...'",
				entry->key_size, STELE_KEY_SIZE_MAX,
				stele_source_quote(entry->key, KEY_BEGINNING, text));
		return -ENAMETOOLONG;
	}
	if (memchr(entry->key, '\0', entry->key_size))
		return refuse(log, "zero byte in a key", -EINVAL, entry);
	if (entry->data_size <= STELE_SAMPLE_SIZE_MAX)
		return 0;
	stele_log_error(log, "'%s' has %" PRIu64 " bytes, more than the sample size limit",
			stele_source_quote(entry->key, entry->key_size, text),
			entry->data_size);
	return -EFBIG;
}

void stele_source_close(struct stele_source *source)
{
	if (source->release)
		source->release(source->user);
	memset(source, 0, sizeof(*source));
}

char *stele_source_quote(const char *key, size_t key_size,
			 char text[STELE_QUOTE_SIZE])
{
	static const char more[] = "...";
	const size_t room = STELE_QUOTE_SIZE - sizeof(more);
	size_t at = 0;

	for (size_t i = 0; i < key_size; i++) {
		unsigned char c = (unsigned char)key[i];
		bool plain = c >= 0x20 && c != 0x7f && c != '\\' && c != '\'';
		size_t size = plain ? 1 : 4;

		if (at + size > room) {
			memcpy(text + at, more, sizeof(more));
			return text;
		}
		if (plain)
			text[at] = (char)c;
		else
			snprintf(text + at, 5, "\\x%02x", c);
		at += size;
	}
	text[at] = '\0';
	return text;
}
