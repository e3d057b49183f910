/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xattr.c - what a file does not say: id, digest and fields, as extended attributes
 *
 * A field is raw bytes, a scalar is text. One whose value is longer than an attribute may be
 * is not listed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mount/fuse/files.h"
#include "text.h"

#define PREFIX	   "user.stele."
#define FIELD	   PREFIX "field."
#define VALUE_MAX  65536u /* XATTR_SIZE_MAX */

struct value {
	char text[TEXT_HEX_SIZE];
	const void *data; /* into text, or the sample */
	uint64_t size;
};

static int set_digest(const uint8_t *digest, struct value *value)
{
	text_hex(value->text, digest, STELE_DIGEST_SIZE);
	return 0;
}

static int set_field(const struct stele_sample *sample, uint32_t index, struct value *value)
{
	struct stele_field field = {.size = sizeof(field)};
	int64_t whole;
	double real;
	int error = stele_dataset_field(sample->ds, index, &field);

	if (!error && field.type == STELE_TYPE_I64) {
		error = stele_sample_i64(sample, index, &whole);
		snprintf(value->text, sizeof(value->text), "%" PRId64, whole);
	} else if (!error && field.type == STELE_TYPE_F64) {
		error = stele_sample_f64(sample, index, &real);
		snprintf(value->text, sizeof(value->text), "%.17g", real);
	} else if (!error) {
		error = stele_sample_bytes(sample, index, &value->data, &value->size);
	}
	if (!error && value->size > VALUE_MAX)
		error = -E2BIG;
	return error;
}

static int get_of_sample(struct volume *volume, const struct sample_entry *entry,
			 const char *name, struct value *value)
{
	int index = stele_dataset_field_index(volume->ds, name);

	if (index < 0)
		return -ENODATA;
	return entry->spool.fd >= 0 ? -E2BIG :
				   set_field(&entry->sample, (uint32_t)index, value);
}

static int get_of_file(struct volume *volume, uint64_t id, const char *name,
		       struct value *value)
{
	uint8_t digest[STELE_DIGEST_SIZE];
	int error;

	if (!strcmp(name, PREFIX "id")) {
		snprintf(value->text, sizeof(value->text), "%" PRIu64, id);
		return 0;
	}
	if (strcmp(name, PREFIX "digest") != 0)
		return -ENODATA;
	error = stele_dataset_digest(volume->ds, id, digest);
	return error ? error : set_digest(digest, value);
}

/* Of a directory: the top of a snapshot has its digest. */
static int get_of_directory(const struct files *files, const struct node *node,
			    const char *name, struct value *value)
{
	if (node->volume == NODE_VOLUME_ALL || node->path_size ||
	    strcmp(name, PREFIX "digest") != 0)
		return -ENODATA;
	return set_digest(files->volumes.list[node->volume].digest, value);
}

static void reply(fuse_req_t req, const void *data, size_t have, size_t size)
{
	if (!size)
		fuse.fuse_reply_xattr(req, have);
	else if (size < have)
		fuse.fuse_reply_err(req, ERANGE);
	else
		fuse.fuse_reply_buf(req, data, have);
}

static void reply_value(fuse_req_t req, int error, const struct value *value, size_t size)
{
	if (error)
		fuse.fuse_reply_err(req, files_errno(error));
	else if (value->data)
		reply(req, value->data, (size_t)value->size, size);
	else
		reply(req, value->text, strlen(value->text), size);
}

void xattr_get(fuse_req_t req, fuse_ino_t number, const char *name, size_t size)
{
	struct files *files = fuse.fuse_req_userdata(req);
	const struct node *node = nodes_directory(&files->nodes, number);
	struct sample_entry *entry = NULL;
	struct value value = {.data = NULL};
	struct volume *volume;
	uint64_t id;
	int error;

	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0) {
		/* Who hears that there are no lists of access asks for none of the next file. */
		fuse.fuse_reply_err(req, strncmp(name, "user.", 5) ? EOPNOTSUPP : ENODATA);
		return;
	}
	if (node) {
		reply_value(req, get_of_directory(files, node, name, &value), &value, size);
		return;
	}
	error = files_find(files, number, &volume, &id);
	if (!error && strncmp(name, FIELD, strlen(FIELD)) != 0)
		error = get_of_file(volume, id, name, &value);
	else if (!error)
		error = samples_get(&volume->samples, id, 0, &entry);
	if (entry)
		error = get_of_sample(volume, entry, name + strlen(FIELD), &value);
	reply_value(req, error, &value, size);
	if (entry)
		samples_put(&volume->samples, entry);
}

/* Names, each with its NUL. Return: 0; negative errno. */
static int list_file(struct volume *volume, const struct sample_entry *entry, FILE *to)
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct stele_field field = {.size = sizeof(field)};
	struct value value;

	fprintf(to, PREFIX "id%c" PREFIX "digest%c", 0, 0);
	stele_dataset_info(volume->ds, &info);
	for (uint32_t i = 0; entry->spool.fd < 0 && i < info.field_count; i++) {
		value = (struct value){.data = NULL};
		if (!stele_dataset_field(volume->ds, i, &field) &&
		    !set_field(&entry->sample, i, &value))
			fprintf(to, FIELD "%s%c", field.name, 0);
	}
	return 0;
}

void xattr_list(fuse_req_t req, fuse_ino_t number, size_t size)
{
	struct files *files = fuse.fuse_req_userdata(req);
	const struct node *node = nodes_directory(&files->nodes, number);
	struct sample_entry *entry;
	struct volume *volume;
	char *names = NULL;
	size_t have = 0;
	FILE *to = open_memstream(&names, &have);
	uint64_t id;
	int error = to ? 0 : -ENOMEM;

	if (!error && node) {
		if (node->volume != NODE_VOLUME_ALL && !node->path_size)
			fprintf(to, PREFIX "digest%c", 0);
	} else if (!error) {
		error = files_find(files, number, &volume, &id);
		if (!error)
			error = samples_get(&volume->samples, id, 0, &entry);
		if (!error) {
			list_file(volume, entry, to);
			samples_put(&volume->samples, entry);
		}
	}
	if (to && fclose(to) && !error)
		error = -ENOMEM;
	if (error)
		fuse.fuse_reply_err(req, files_errno(error));
	else
		reply(req, names, have, size);
	free(names);
}
