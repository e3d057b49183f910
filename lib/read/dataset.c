/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.c - what a snapshot is and holds, and by which id
 *
 * The handle is immutable after create: any number of threads use it without a
 * lock. It owns the device through the image, which in turn must outlive
 * readers, cursors and views: they are counted, and while there are any it stays open.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"

#include "format/filter.h"
#include "lib/base/options.h"
#include "lib/image/key_search.h"
#include "lib/image/proof.h"
#include "lib/image/section.h"
#include "lib/read/dataset.h"
#include "lib/source/source.h"

/* Segments in which a key is looked for at the same time. */
#define FIND_MANY 4u

/* ---- open and close -------------------------------------------------------- */

static uint64_t largest_slot(const struct stele_snapshot *snapshot)
{
	uint64_t size = 0;

	for (uint32_t i = 0; i < snapshot->segment_count; i++) {
		const struct stele_segment *segment = &snapshot->segments[i];

		for (uint32_t j = 0; j < segment->descriptor.run_count; j++)
			if (segment->runs[j].slot_size > size)
				size = segment->runs[j].slot_size;
	}
	return size;
}

enum stele_verify stele_dataset_verify(const struct stele_dataset *ds,
				       enum stele_verify wanted)
{
	if (wanted == STELE_VERIFY_DEFAULT)
		return ds->verify;
	if (wanted == STELE_VERIFY_NONE && ds->image.dev->revocable)
		return STELE_VERIFY_CRC;
	return wanted;
}

/* On success the dataset owns `dev`. */
static int load(struct stele_dataset *ds, struct stele_device *dev,
		const struct stele_target *target, const struct stele_log *log)
{
	struct stele_log_held held;
	bool gone;
	int err;

	stele_log_hold(&held, log);
	err = stele_snapshot_open(dev, &held.log, target->snapshot,
				  stele_target_digest(target), &ds->image,
				  &ds->snapshot);
	gone = err == -ENOENT && target->mapped;
	stele_log_end(&held, !gone);
	if (!err) {
		ds->image.log = *log;
		ds->slot_size_max = largest_slot(&ds->snapshot);
		return 0;
	}
	/* What lies there now need not be an image at all. */
	if (dev->revocable && stele_device_check(dev) == -ESTALE) {
		stele_log_error(log, "'%s': its RBD snapshot was deleted",
				target->path);
		err = -ESTALE;
	} else if (gone) {
		err = stele_target_gone(target, log);
	}
	stele_device_close(dev);
	return err;
}

int stele_dataset_check(const struct stele_open_opts *opts,
			const struct stele_log *log)
{
	const struct stele_option limits[] = {
		{"verify", opts->verify, STELE_VERIFY_DIGEST},
		{"reserved", opts->reserved, 0},
	};

	return stele_options_check(limits, sizeof(limits) / sizeof(*limits),
				   log);
}

int stele_dataset_create(struct stele_device *dev,
			 const struct stele_target *target,
			 const struct stele_open_opts *opts,
			 struct stele_dataset **out)
{
	struct stele_open_opts known;
	struct stele_dataset *ds = NULL;
	struct stele_log log;
	int err;

	err = stele_options_get(opts, &known, sizeof(known), &log);
	if (!err)
		err = stele_dataset_check(&known, &log);
	if (!err) {
		ds = calloc(1, sizeof(*ds));
		err = ds ? 0 : -ENOMEM;
	}
	if (!ds) {
		stele_device_close(dev);
		return err;
	}
	err = load(ds, dev, target, &log);
	if (err) {
		stele_dataset_close(ds);
		return err;
	}
	/* A pin is of bytes: whatever leads to other ones is refused. */
	ds->verify = target->pinned ? STELE_VERIFY_DIGEST : STELE_VERIFY_CRC;
	ds->verify = stele_dataset_verify(ds, known.verify);
	if (ds->verify == STELE_VERIFY_DIGEST)
		err = stele_prover_new(&ds->image, &ds->image.prover);
	if (err) {
		stele_dataset_close(ds);
		return err;
	}
	*out = ds;
	return 0;
}

void stele_dataset_enter(struct stele_dataset *ds)
{
	atomic_fetch_add_explicit(&ds->users, 1, memory_order_relaxed);
}

/* What its user did comes before the close that finds none. */
void stele_dataset_leave(struct stele_dataset *ds)
{
	atomic_fetch_sub_explicit(&ds->users, 1, memory_order_release);
}

static int dataset_close(struct stele_dataset *ds)
{
	uint32_t users;

	if (!ds)
		return 0;
	users = atomic_load_explicit(&ds->users, memory_order_acquire);
	if (users) {
		stele_log_error(&ds->image.log,
				"cannot close the dataset: %u of its readers, "
				"cursors and views are open", users);
		return -EBUSY;
	}
	stele_snapshot_release(&ds->snapshot);
	stele_image_release(&ds->image);
	free(ds);
	return 0;
}

int stele_dataset_close(struct stele_dataset *ds)
{
	return STELE_CALL(dataset_close(ds),
			  "cannot close the dataset");
}

/* ---- what it is -------------------------------------------------------------- */

static void add_segment(struct stele_dataset_info *info,
			const struct stele_segment *segment)
{
	const struct stele_descriptor *d = &segment->descriptor;

	info->deleted_count += segment->deleted.count;
	info->slots_size += d->slots_size;
	info->padding_size += stele_descriptor_padding(d);
	info->run_count += d->run_count;
}

static void fill_info(const struct stele_dataset *ds,
		      struct stele_dataset_info *info)
{
	const struct stele_superblock *sb = &ds->image.sb;
	const struct stele_snapshot *snapshot = &ds->snapshot;
	const struct stele_device *dev = ds->image.dev;

	memcpy(info->uuid, sb->uuid, sizeof(info->uuid));
	memcpy(info->label, sb->label, sizeof(info->label) - 1);
	memcpy(info->snapshot, snapshot->info.name, sizeof(info->snapshot) - 1);
	memcpy(info->digest, snapshot->digest, sizeof(info->digest));
	info->time = snapshot->info.time;
	info->generation = sb->generation;
	info->image_size = sb->image_size;
	info->used_size = sb->high_water;
	info->sample_count = snapshot->sample_count;
	info->payload_size = snapshot->info.payload_size;
	info->slot_size_max = ds->slot_size_max;
	info->segment_count = snapshot->segment_count;
	for (uint32_t i = 0; i < snapshot->segment_count; i++)
		add_segment(info, &snapshot->segments[i]);
	info->table_size = info->run_count * sizeof(struct stele_disk_run);
	if (snapshot->segment_count) {
		info->granule = snapshot->segments[0].descriptor.granule;
		info->field_count = snapshot->segments[0].descriptor.field_count;
	}
	info->logical_block = dev->limits.logical_block;
	info->transfer_max = dev->limits.transfer_max;
	strncpy(info->backend, stele_device_backend(dev),
		sizeof(info->backend) - 1);
}

static int dataset_info(const struct stele_dataset *ds,
			struct stele_dataset_info *info)
{
	struct stele_dataset_info known = {0};

	fill_info(ds, &known);
	return stele_output_set(info, &known, backend, &ds->image.log);
}

int stele_dataset_info(const struct stele_dataset *ds,
		       struct stele_dataset_info *info)
{
	return STELE_CALL(dataset_info(ds, info), "cannot describe the dataset");
}

uint64_t stele_dataset_count(const struct stele_dataset *ds)
{
	return ds->snapshot.sample_count;
}

/* The last segment has all names; no segment, no fields. */
static const struct stele_segment *schema(const struct stele_dataset *ds,
					  uint32_t *field_count)
{
	const struct stele_segment *last;

	if (!ds->snapshot.segment_count) {
		*field_count = 0;
		return NULL;
	}
	last = &ds->snapshot.segments[ds->snapshot.segment_count - 1];
	*field_count = last->descriptor.field_count;
	return last;
}

static int dataset_field(const struct stele_dataset *ds, uint32_t index,
			 struct stele_field *out)
{
	uint32_t count;
	const struct stele_segment *segment = schema(ds, &count);
	struct stele_field field;

	if (index >= count)
		return -ERANGE;
	stele_segment_field(segment, index, &field);
	return stele_output_set(out, &field, name, &ds->image.log);
}

int stele_dataset_field(const struct stele_dataset *ds, uint32_t index,
			struct stele_field *out)
{
	return STELE_CALL(dataset_field(ds, index, out),
			  "no field %" PRIu32, index);
}

static int dataset_field_index(const struct stele_dataset *ds, const char *name)
{
	uint32_t count;
	const struct stele_segment *segment = schema(ds, &count);

	for (uint32_t i = 0; i < count; i++)
		if (!strncmp(segment->fields[i].name, name,
			     STELE_FIELD_NAME_SIZE))
			return (int)i;
	return -ENOENT;
}

int stele_dataset_field_index(const struct stele_dataset *ds, const char *name)
{
	return STELE_CALL(name ? dataset_field_index(ds, name) : -EINVAL,
			  "no field '%s'", name ? name : "");
}

static int dataset_class_name(const struct stele_dataset *ds, uint32_t field,
			      int64_t value, const char **name)
{
	uint32_t count;
	const struct stele_segment *segment = schema(ds, &count);
	const struct stele_names *names;

	if (field >= count) {
		stele_log_error(&(struct stele_log){0}, "there is no field %" PRIu32, field);
		return -ERANGE;
	}
	names = &segment->names->field[field];
	if (names->damage) {
		/* The log was told when the dataset was opened. */
		stele_log_error(&(struct stele_log){0},
				"cannot read the class names of field '%s': "
				"they %s", segment->fields[field].name,
				stele_names_defect(names));
		return -EBADMSG;
	}
	if (value < 0 || value >= names->count) {
		stele_log_error(&(struct stele_log){0}, "field '%s' has %" PRIu32 " class%s",
				segment->fields[field].name, names->count,
				names->count == 1 ? "" : "es");
		return -ENOENT;
	}
	*name = names->names[value];
	return 0;
}

int stele_dataset_class_name(const struct stele_dataset *ds, uint32_t field,
			     int64_t value, const char **name)
{
	return STELE_CALL(dataset_class_name(ds, field, value, name),
			  "no class name for value %" PRIi64, value);
}

/* ---- ids ------------------------------------------------------------------- */

static int ignore(void *user, const void *data, size_t size)
{
	(void)user;
	(void)data;
	(void)size;
	return 0;
}

/*
 * The record says which key it has. When it is another one, either of the two is
 * damaged: if it is the record, whoever reads it will be told.
 */
static int check_key(struct stele_dataset *ds, const struct stele_segment *segment,
		     uint64_t number, uint64_t id, const char *key,
		     size_t key_size)
{
	int err = stele_segment_check_key(&ds->image, segment, number, key,
					  key_size);

	if (err == -EBADMSG ||
	    (err == -EUCLEAN && stele_dataset_stream(ds, id, ignore, NULL)))
		return 0;
	if (err == -EUCLEAN)
		stele_log_error(&ds->image.log,
				"the keys of segment %016" PRIx64
				" lead to sample %" PRIu64
				", which has another key",
				segment->descriptor.id, id);
	return err;
}

/* What all segments say of a key. NULL: they are few, or it cannot be known at once. */
static struct stele_key_hit *find_in_all(const struct stele_dataset *ds,
					 const char *key, size_t key_size)
{
	const uint64_t hash = stele_filter_hash(key, key_size);
	const uint32_t count = ds->snapshot.segment_count;
	struct stele_key_hit *hits;
	uint32_t many = 0;

	for (uint32_t i = 0; i < count; i++)
		many += stele_segment_may_have(&ds->image,
					       &ds->snapshot.segments[i], hash);
	if (many < FIND_MANY)
		return NULL;
	hits = calloc(count, sizeof(*hits));
	if (!hits || !stele_segments_find_key(&ds->image, ds->snapshot.segments,
					      count, key, key_size, hits))
		return hits;
	free(hits);
	return NULL;
}

static bool is_key(const char *key, size_t key_size)
{
	return key && key_size && key_size <= STELE_KEY_SIZE_MAX;
}

static int dataset_lookup(struct stele_dataset *ds, const char *key,
			size_t key_size, uint64_t *id)
{
	const struct stele_snapshot *snapshot = &ds->snapshot;
	struct stele_key_hit *hits;
	int err = -ENOENT;

	if (!is_key(key, key_size))
		return -EINVAL;
	hits = find_in_all(ds, key, key_size);
	/* A key that is deleted in one segment may live in another. */
	for (uint32_t i = 0; err == -ENOENT && i < snapshot->segment_count;
	     i++) {
		const struct stele_segment *segment = &snapshot->segments[i];
		uint64_t number, size;

		if (hits && hits[i].result == -ENOENT)
			continue;
		err = hits ? hits[i].result : -EAGAIN;
		number = err ? 0 : hits[i].number;
		if (err) /* damage is told there */
			err = stele_segment_find_key(&ds->image, segment, key,
						     key_size, &number, &size);
		if (!err)
			err = stele_snapshot_id(snapshot, segment, number, id);
		if (!err)
			err = check_key(ds, segment, number, *id, key, key_size);
	}
	free(hits);
	return err == -ERANGE ? -EUCLEAN : err;
}

int stele_dataset_lookup(struct stele_dataset *ds, const char *key,
		       size_t key_size, uint64_t *id)
{
	char text[STELE_QUOTE_SIZE];
	int ret;

	stele_call_begin();
	ret = dataset_lookup(ds, key, key_size, id);
	if (!is_key(key, key_size))
		return stele_call_end(ret, "cannot look up a key of %zu bytes", key_size);
	return stele_call_end(ret, "cannot look up '%s'",
			      ret ? stele_source_quote(key, key_size, text) : "");
}

static int dataset_locate(const struct stele_dataset *ds, uint64_t id,
			  struct stele_extent *out)
{
	const struct stele_segment *segment;
	struct stele_extent known = {0};
	int err = stele_snapshot_locate(&ds->snapshot, id, &segment,
					&known.number);

	if (err)
		return err;
	stele_segment_slot(segment, known.number, &known.offset, &known.slot_size);
	known.segment_id = segment->descriptor.id;
	return stele_output_set(out, &known, number, &ds->image.log);
}

int stele_dataset_locate(const struct stele_dataset *ds, uint64_t id,
			 struct stele_extent *out)
{
	return STELE_CALL(dataset_locate(ds, id, out),
			  "cannot locate sample %" PRIu64, id);
}

static int dataset_digest(struct stele_dataset *ds, uint64_t id, uint8_t *digest)
{
	const struct stele_segment *segment;
	uint64_t number;
	int err = stele_snapshot_locate(&ds->snapshot, id, &segment, &number);

	return err ? err : stele_segment_digest(&ds->image, segment, number, digest);
}

int stele_dataset_digest(struct stele_dataset *ds, uint64_t id,
			 uint8_t digest[STELE_DIGEST_SIZE])
{
	return STELE_CALL(dataset_digest(ds, id, digest),
			  "cannot read the digest of sample %" PRIu64, id);
}
