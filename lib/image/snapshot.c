/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.c - load a snapshot, prove its digest, and map ids to numbers
 */
#include "lib/image/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/copies.h"
#include "lib/image/digest.h"
#include "lib/image/fork.h"

int stele_snapshot_find(const struct stele_image *image, const char *name,
			const uint8_t *digest, uint32_t *index)
{
	const uint32_t count = image->catalog.counts.snapshots;
	struct stele_catalog_snapshot info;

	if (!name && !digest && count > 1)
		return -EINVAL;
	if (!name && !digest && image->fork && !image->fork->lost)
		return -ENOTUNIQ;
	for (uint32_t i = 0; i < count; i++) {
		stele_catalog_snapshot(&image->catalog, i, &info);
		if (name && strcmp(name, info.name) != 0)
			continue;
		if (digest && memcmp(digest, info.digest, STELE_DIGEST_SIZE))
			continue;
		*index = i;
		return 0;
	}
	if (!image->fork || !stele_fork_has(image->fork, name, digest))
		return -ENOENT;
	stele_log_error(&image->log,
			"%s, and %s%s%s is not shared by both sides ('stele repair' shows them)",
			image->fork->lost ? "the newest superblocks are damaged" :
					    "two writers published at once",
			name ? "snapshot '" : "this snapshot", name ? name : "",
			name ? "'" : "");
	return -ENOTUNIQ;
}

#define NAMES_SIZE 512 /* of a list of snapshots in a message */
#define NAMES_MAX  12u

int stele_snapshot_log_choice(const struct stele_image *image, int error)
{
	struct stele_catalog_snapshot info;
	char names[NAMES_SIZE] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < image->catalog.counts.snapshots; i++) {
		stele_catalog_snapshot(&image->catalog, i, &info);
		if (i == NAMES_MAX ||
		    used + strlen(info.name) + sizeof(", , and 4294967295 more") > NAMES_SIZE) {
			sprintf(names + used, " and %u more",
				image->catalog.counts.snapshots - i);
			break;
		}
		used += (size_t)sprintf(names + used, "%s%s", used ? ", " : "",
					info.name);
	}
	if (error == -ENOENT && !used)
		stele_image_log_empty(image, STELE_LOG_ERROR, &image->log);
	else if (error == -ENOENT)
		stele_log_error(&image->log, "no such snapshot (available: %s)",
				names);
	else if (error == -EINVAL)
		stele_log_error(&image->log,
				"it has several snapshots (available: %s)",
				names);
	return error;
}

static int load_segments(struct stele_image *image, struct stele_snapshot *out)
{
	const uint32_t count = out->info.ref_count;
	struct stele_segment_at *at = calloc((size_t)count + 1, sizeof(*at));
	int ret = -ENOMEM;

	out->segments = calloc((size_t)count + 1, sizeof(*out->segments));
	for (uint32_t i = 0; at && i < count; i++) {
		stele_catalog_ref(&image->catalog, out->info.first_ref + i,
				  &at[i].ref);
		stele_catalog_segment(&image->catalog, at[i].ref.segment,
				      &at[i].where);
	}
	if (at && out->segments)
		ret = stele_segments_load(image, at, count, out->segments,
					  &out->segment_count);
	free(at);
	for (uint32_t i = 0; i < out->segment_count; i++) {
		out->segments[i].first_id = out->sample_count;
		out->sample_count += out->segments[i].live_count;
	}
	return ret;
}

/* Does a later segment keep all names of an earlier one? */
static bool names_extend(const struct stele_names *later,
			 const struct stele_names *earlier)
{
	if (later->damage || earlier->damage) /* nobody knows */
		return true;
	if (later->count < earlier->count)
		return false;
	for (uint32_t i = 0; i < earlier->count; i++)
		if (strcmp(later->names[i], earlier->names[i]) != 0)
			return false;
	return true;
}

static bool schema_extends(const struct stele_segment *later,
			   const struct stele_segment *earlier)
{
	const uint32_t count = later->descriptor.field_count;

	if (memcmp(later->descriptor.schema_digest,
		   earlier->descriptor.schema_digest, STELE_DIGEST_SIZE) == 0)
		return true;
	if (count != earlier->descriptor.field_count ||
	    memcmp(later->fields, earlier->fields,
		   count * sizeof(*later->fields)))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!names_extend(&later->names->field[i],
				  &earlier->names->field[i]))
			return false;
	return true;
}

static int check_segments(const struct stele_image *image,
			  struct stele_snapshot *snapshot)
{
	for (uint32_t i = 1; i < snapshot->segment_count; i++) {
		struct stele_segment *later = &snapshot->segments[i];
		const struct stele_segment *earlier = later - 1;

		if (later->extends_id == earlier->descriptor.id)
			continue;
		if (!schema_extends(later, earlier)) {
			stele_log_error(&image->log,
					"segments of snapshot '%s' differ in "
					"fields or class names",
					snapshot->info.name);
			return -EUCLEAN;
		}
		later->extends_id = earlier->descriptor.id;
	}
	if (snapshot->sample_count == snapshot->info.sample_count)
		return 0;
	stele_log_error(&image->log,
			"snapshot '%s' has %" PRIu64
			" samples, but the catalog says %" PRIu64,
			snapshot->info.name, snapshot->sample_count,
			snapshot->info.sample_count);
	return -EUCLEAN;
}

int stele_snapshot_check_names(const struct stele_image *image,
			       const struct stele_snapshot *snapshot)
{
	for (uint32_t i = 0; i < snapshot->segment_count; i++) {
		const struct stele_segment *segment = &snapshot->segments[i];

		for (uint32_t j = 0; segment->names && j < segment->names->count; j++) {
			if (!segment->names->field[j].damage)
				continue;
			stele_log_error(&image->log,
					"class names of field '%s' in snapshot "
					"'%s' %s",
					segment->fields[j].name,
					snapshot->info.name,
					stele_names_defect(&segment->names->field[j]));
			return -EBADMSG;
		}
	}
	return 0;
}

int stele_snapshot_compute_digest(struct stele_snapshot *snapshot)
{
	struct stele_digest_part *parts;
	struct stele_hash *hash = NULL;
	int ret;

	parts = calloc((size_t)snapshot->segment_count + 1, sizeof(*parts));
	ret = parts ? stele_hash_new(&hash) : -ENOMEM;
	if (ret < 0)
		goto out;
	for (uint32_t i = 0; i < snapshot->segment_count; i++) {
		const struct stele_segment *s = &snapshot->segments[i];
		struct stele_digest_part *part = &parts[i];

		memcpy(part->schema_digest, s->descriptor.schema_digest,
		       sizeof(part->schema_digest));
		memcpy(part->tree_root, s->descriptor.tree_root,
		       sizeof(part->tree_root));
		part->sample_count = s->descriptor.sample_count;
		part->deleted = s->deleted;
		part->deleted_digest = s->deleted_digest;
	}
	stele_hash_snapshot(hash, parts, snapshot->segment_count,
			    snapshot->digest);
out:
	stele_hash_free(hash);
	free(parts);
	return ret;
}

int stele_snapshot_payload_without(const struct stele_image *image,
				   const struct stele_snapshot *snapshot,
				   uint64_t deleted_size, uint64_t *out)
{
	const struct stele_catalog_snapshot *info = &snapshot->info;

	if (deleted_size > info->payload_size) {
		stele_log_error(&image->log,
				"snapshot '%s' has %" PRIu64
				" bytes of payload, fewer than some of its "
				"samples",
				info->name, info->payload_size);
		return -EUCLEAN;
	}
	*out = info->payload_size - deleted_size;
	return 0;
}

int stele_snapshot_check(const struct stele_image *image,
			 struct stele_snapshot *snapshot)
{
	int ret = check_segments(image, snapshot);

	if (ret == 0)
		ret = stele_snapshot_compute_digest(snapshot);
	if (ret < 0 || memcmp(snapshot->digest, snapshot->info.digest,
			      sizeof(snapshot->digest)) == 0)
		return ret;
	stele_log_error(&image->log,
			"digest of snapshot '%s' does not match its segments",
			snapshot->info.name);
	return -EBADMSG;
}

int stele_snapshot_load(struct stele_image *image, uint32_t index,
			struct stele_snapshot *out)
{
	int ret;

	memset(out, 0, sizeof(*out));
	if (index >= image->catalog.counts.snapshots)
		return -ENOENT;
	stele_catalog_snapshot(&image->catalog, index, &out->info);
	ret = load_segments(image, out);
	if (ret == 0)
		ret = stele_snapshot_check(image, out);
	if (ret < 0)
		stele_snapshot_release(out);
	return ret;
}

static int open_once(struct stele_device *dev, const struct stele_log *log,
		     const char *name, const uint8_t *digest,
		     struct stele_image *image, struct stele_snapshot *snapshot,
		     bool *overtaken)
{
	uint32_t index;
	int ret;

	*overtaken = false;
	ret = stele_image_load(dev, log, image);
	if (ret < 0)
		return ret;
	ret = stele_snapshot_find(image, name, digest, &index);
	if (ret < 0)
		stele_snapshot_log_choice(image, ret);
	else
		ret = stele_snapshot_load(image, index, snapshot);
	if (ret == 0 && digest) {
		ret = stele_snapshot_check_names(image, snapshot);
		if (ret < 0) {
			stele_log_error(&image->log,
					"the digest cannot be proven without its "
					"class names; open snapshot '%s' by name",
					snapshot->info.name);
			stele_snapshot_release(snapshot);
		}
	}
	if (ret == 0)
		return 0;
	*overtaken = stele_error_of_content(ret) && stele_image_changed(image);
	image->dev = NULL; /* the caller's */
	stele_image_release(image);
	return ret;
}

int stele_snapshot_open(struct stele_device *dev, const struct stele_log *log,
			const char *name, const uint8_t *digest,
			struct stele_image *image,
			struct stele_snapshot *snapshot)
{
	bool overtaken = true;
	int ret = -EIO;

	memset(snapshot, 0, sizeof(*snapshot));
	for (unsigned int i = 1; overtaken && i <= STELE_LOAD_TRIES; i++) {
		struct stele_log_held held;

		stele_log_hold(&held, log);
		ret = open_once(dev, &held.log, name, digest, image, snapshot,
				&overtaken);
		stele_log_end(&held, !overtaken || i == STELE_LOAD_TRIES);
	}
	if (overtaken)
		return -EBUSY;
	if (ret == 0)
		image->log = log ? *log : (struct stele_log){0};
	return ret;
}

void stele_snapshot_release(struct stele_snapshot *snapshot)
{
	for (uint32_t i = 0; i < snapshot->segment_count; i++)
		stele_segment_release(&snapshot->segments[i]);
	free(snapshot->segments);
	memset(snapshot, 0, sizeof(*snapshot));
}

int stele_snapshot_locate(const struct stele_snapshot *snapshot, uint64_t id,
			  const struct stele_segment **segment,
			  uint64_t *number)
{
	uint32_t low = 0, high = snapshot->segment_count;

	if (id >= snapshot->sample_count)
		return -ERANGE;
	/* The last one that begins at or below id; it cannot be empty. */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (snapshot->segments[middle].first_id <= id)
			low = middle;
		else
			high = middle;
	}
	*segment = &snapshot->segments[low];
	*number = stele_deleted_live(&(*segment)->deleted,
				     id - (*segment)->first_id);
	return 0;
}

int stele_snapshot_id(const struct stele_snapshot *snapshot,
		      const struct stele_segment *segment, uint64_t number,
		      uint64_t *id)
{
	uint64_t below;

	(void)snapshot;
	if (number >= segment->descriptor.sample_count)
		return -ERANGE;
	if (stele_deleted_has(&segment->deleted, number, &below))
		return -ENOENT;
	*id = segment->first_id + number - below;
	return 0;
}

void stele_snapshot_describe(const struct stele_catalog_snapshot *snapshot,
			     struct stele_snapshot_info *out)
{
	*out = (struct stele_snapshot_info){
		.size = sizeof(*out),
		.id = snapshot->id,
		.parent = snapshot->parent,
		.time = snapshot->time,
		.sample_count = snapshot->sample_count,
		.payload_size = snapshot->payload_size,
		.segment_count = snapshot->ref_count,
		.note_size = snapshot->note_size,
		.deleted_time = snapshot->deleted_time,
	};
	memcpy(out->name, snapshot->name, sizeof(out->name) - 1);
	memcpy(out->digest, snapshot->digest, sizeof(out->digest));
}
