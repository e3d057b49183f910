/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.c - stele_map(), stele_unmap(), stele_map_list()
 *
 * What gets published was opened, and has passed every check of an open, the
 * snapshot's digest among them. A device that was set read-only gets back what
 * it had when the last mapping goes that wants it so.
 */
#include "format/catalog.h"
#include "lib/base/options.h"
#include "lib/device/name.h"
#include "lib/image/snapshot_device.h"
#include "lib/node/krbd.h"
#include "lib/node/open.h"
#include "lib/read/dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/error.h"

static int get_options(const struct stele_map_opts *opts,
		       struct stele_map_opts *known, struct stele_log *log)
{
	int err = stele_options_get(opts, known, sizeof(*known), log);

	if (!err)
		err = stele_options_flags(known->flags, STELE_MAP_READ_ONLY, log);
	if (!err)
		err = stele_options_check(&(struct stele_option){
			"reserved", known->reserved, 0}, 1, log);
	return err ? err : stele_map_krbd_check(known, log);
}

/* ---- read-only devices ------------------------------------------------------- */

struct others {
	const struct stele_mapping *than;
	bool found;
	bool was_read_only; /* the device, before the first of them */
};

static int find_other(void *user, const struct stele_mapping *mapping)
{
	struct others *others = user;

	if (!mapping->info.read_only ||
	    (!stele_identity_same(&mapping->identity,
				  &others->than->identity) &&
	     !stele_identity_same(&others->than->identity,
				  &mapping->identity)) ||
	    !strcmp(mapping->info.name, others->than->info.name))
		return 0;
	others->found = true;
	others->was_read_only = mapping->was_read_only;
	return 1;
}

static int find_others(const struct stele_mapping *than, struct others *others)
{
	int rc;

	*others = (struct others){.than = than};
	rc = stele_mapping_each(find_other, others, NULL);
	return rc < 0 ? rc : 0;
}

static int set_read_only(const char *path, bool read_only,
			 const struct stele_log *log)
{
	int err = stele_path_set_read_only(path, read_only);

	if (err)
		stele_log_error(log, "cannot set '%s' %s: %s", path,
				read_only ? "read-only" : "writable again",
				strerror(-err));
	return err;
}

/* Fills mapping->was_read_only. */
static int make_read_only(struct stele_mapping *mapping, const struct stele_log *log)
{
	const char *path = mapping->info.target;
	struct others others;
	int now, err;

	if (*mapping->identity.storage.cluster) {
		mapping->was_read_only = true; /* as every RBD snapshot */
		return 0;
	}
	if (!mapping->identity.rdev) {
		stele_log_error(log, "cannot set '%s' read-only: it is no block device",
				path);
		return -ENOTBLK;
	}
	now = stele_path_is_read_only(path);
	if (now < 0)
		return now;
	err = find_others(mapping, &others);
	if (err)
		return err;
	mapping->was_read_only = others.found ? others.was_read_only : now;
	return now ? 0 : set_read_only(path, true, log);
}

/* What make_read_only() did, unless another mapping still wants it. */
static int restore_writable(const struct stele_mapping *mapping,
			    const struct stele_log *log)
{
	struct others others;
	int err;

	if (!mapping->info.read_only || mapping->was_read_only)
		return 0;
	if (stele_mapping_is_stale(mapping)) {
		stele_log_warning(log, "'%s' is not what was mapped any more: it is left as it is",
				  mapping->info.target);
		return 0;
	}
	err = find_others(mapping, &others);
	if (err || others.found)
		return err;
	return set_read_only(mapping->info.target, false, log);
}

/* ---- map ------------------------------------------------------------------- */

/* One attempt to map: what release_attempt() gives back. */
struct attempt {
	struct stele_target target;
	struct stele_mapping mapping;
	struct stele_dataset *ds;
	bool published;
};

static void release_attempt(struct attempt *attempt,
			    const struct stele_map_opts *opts,
			    const struct stele_log *log)
{
	stele_dataset_close(attempt->ds);
	if (!attempt->published) {
		attempt->mapping.info.name[0] = '\0';
		stele_map_krbd_close(opts, &attempt->mapping, log);
	}
	stele_target_release(&attempt->target);
	stele_mapping_release(&attempt->mapping);
}

/* Through librbd or the kernel. */
static int open_snap(struct attempt *attempt, const struct stele_map_opts *opts,
		     const struct stele_log *log, struct stele_device **dev)
{
	int err = stele_snapshot_open_device(&attempt->target, opts->backend,
					     log, dev);

	if (err)
		return err;
	attempt->mapping.target = stele_device_uri(*dev);
	if (!attempt->mapping.target) {
		stele_device_close(*dev);
		return -ENOMEM;
	}
	return stele_map_krbd_open(opts, &attempt->mapping,
				   attempt->target.snapshot, log, dev);
}

/* Sets mapping.target, which any process here can open. */
static int open_device(struct attempt *attempt,
		       const struct stele_map_opts *opts,
		       const struct stele_log *log, struct stele_device **dev)
{
	const char *path = attempt->target.path;

	if (stele_path_is_rbd(path))
		return open_snap(attempt, opts, log, dev);
	if (opts->via && strcmp(opts->via, "auto") != 0) {
		stele_log_error(log, "cannot map '%s' via %s: it is no RBD image",
				path, opts->via);
		return -EINVAL;
	}
	attempt->mapping.target = realpath(path, NULL);
	if (!attempt->mapping.target) {
		const int err = -errno;

		stele_log_error(log, "cannot open '%s': %s", path,
				err == -ENOENT ? "no such file, device or mapping" :
						 strerror(-err));
		return err;
	}
	return stele_device_open(attempt->mapping.target, NULL, 0,
				 opts->backend, log, dev);
}

static int open_snapshot(struct attempt *attempt,
			 const struct stele_map_opts *opts,
			 const struct stele_log *log)
{
	struct stele_device *dev;
	const char *path;
	int err;

	err = open_device(attempt, opts, log, &dev);
	if (err)
		return err;
	err = stele_identity_of_device(dev, &attempt->mapping.identity);
	if (err) {
		stele_device_close(dev);
		return err;
	}
	path = attempt->mapping.target;
	stele_access_of(stele_device_fd(dev), stele_path_is_rbd(path) ? NULL : path,
			&attempt->mapping.access);
	err = stele_dataset_create(dev, &attempt->target,
				   &STELE_OPTS(stele_open_opts,
					       .log = log->fn,
					       .log_user = log->user),
				   &attempt->ds);
	/* Who opens the name has to prove its digest. */
	return err ? err : stele_snapshot_check_names(&attempt->ds->image, &attempt->ds->snapshot);
}

static const char *way(const struct stele_identity *identity)
{
	if (*identity->storage.cluster)
		return identity->rdev ? "krbd" : "librbd";
	return identity->rdev ? "device" : "file";
}

static void describe(struct attempt *attempt, const char *name, bool read_only)
{
	struct stele_mapping_info *info = &attempt->mapping.info;
	struct stele_dataset_info ds = {.size = sizeof(ds)};

	stele_dataset_info(attempt->ds, &ds);
	if (!name)
		name = stele_name_ok(ds.label, strlen(ds.label)) ? ds.label :
								   ds.snapshot;
	memcpy(info->name, name, strlen(name) + 1); /* both are checked */
	memcpy(info->snapshot, ds.snapshot, sizeof(info->snapshot));
	memcpy(info->uuid, ds.uuid, sizeof(info->uuid));
	memcpy(info->digest, ds.digest, sizeof(info->digest));
	info->target = attempt->mapping.target;
	strcpy(info->via, way(&attempt->mapping.identity));
	info->sample_count = ds.sample_count;
	info->time = time(NULL);
	info->read_only = read_only;
	info->pinned = attempt->target.pinned;
}

/*
 * What is there under that name already?
 * Return: 0 nothing; 1 the very same; -EEXIST; errors of stele_mapping_load().
 */
static int compare_existing(const struct stele_mapping *mapping,
			    const struct stele_log *log,
			    struct stele_mapping_info *info)
{
	const struct stele_mapping_info *wanted = &mapping->info;
	struct stele_mapping there;
	int rc = stele_mapping_load(wanted->name, log, &there);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	rc = -EEXIST;
	if (!stele_identity_same(&there.identity, &mapping->identity) ||
	    memcmp(there.info.uuid, wanted->uuid, sizeof(wanted->uuid)) ||
	    memcmp(there.info.digest, wanted->digest, sizeof(wanted->digest)) ||
	    strcmp(there.info.snapshot, wanted->snapshot))
		stele_log_error(log, "'%s' is mapped already, to '%s@%s' (unmap it first)",
				wanted->name, there.info.target,
				there.info.snapshot);
	else if (wanted->pinned && !there.info.pinned)
		stele_log_error(log,
				"'%s' is mapped already, but not by its digest "
				"(unmap it first)",
				wanted->name);
	else if (wanted->read_only && !there.info.read_only)
		stele_log_error(log, "'%s' is mapped already, but not read-only (unmap it first)",
				wanted->name);
	else
		rc = 1;
	if (rc == 1)
		*info = there.info;
	stele_mapping_release(&there);
	return rc;
}

static int publish(struct attempt *attempt, const struct stele_log *log)
{
	struct stele_mapping *mapping = &attempt->mapping;
	int err = 0;

	if (mapping->info.read_only)
		err = make_read_only(mapping, log);
	if (err)
		return err;
	err = stele_mapping_save(mapping, log);
	attempt->published = !err;
	if (!err && stele_mapping_hides_file(mapping, mapping->info.name))
		stele_log_warning(log, "there is a file '%s', too: from now on it is './%s'",
				  mapping->info.name, mapping->info.name);
	if (err) {
		struct stele_mapping nameless = *mapping;

		/* Who was faster under our name counts as another one. */
		nameless.info.name[0] = '\0';
		restore_writable(&nameless, log);
	}
	return err;
}

static int map(const char *target, const char *name,
	       const struct stele_map_opts *opts,
	       struct stele_mapping_info *out)
{
	struct stele_mapping_info info;
	struct stele_mapping source = {0};
	struct attempt attempt = {0};
	struct stele_map_opts known;
	struct stele_log log;
	int rc = get_options(opts, &known, &log);

	if (!rc)
		rc = stele_output_check(out, stale, &log);
	if (rc)
		return rc;
	if (name && !stele_name_ok(name, strlen(name))) {
		stele_log_error(&log,
				"cannot map '%s': '%s' cannot name a mapping: "
				"must be " STELE_NAME_RULE, target, name);
		return -EINVAL;
	}
	rc = stele_target_parse(target, &log, &attempt.target);
	if (!rc)
		rc = stele_target_resolve(&attempt.target, &log, &source);
	stele_mapping_release(&source);
	if (!rc)
		rc = open_snapshot(&attempt, &known, &log);
	if (rc)
		goto out;
	describe(&attempt, name, known.flags & STELE_MAP_READ_ONLY);
	info = attempt.mapping.info;
	rc = compare_existing(&attempt.mapping, &log, &info);
	if (rc)
		goto out;
	rc = publish(&attempt, &log);
	if (rc == -EEXIST) /* somebody was faster; with the same, perhaps */
		rc = compare_existing(&attempt.mapping, &log, &info);
out:
	release_attempt(&attempt, &known, &log);
	if (rc < 0)
		return rc;
	info.target = NULL;
	stele_output_fill(out, &info, sizeof(info));
	return 0;
}

int stele_map(const char *target, const char *name,
	      const struct stele_map_opts *opts, struct stele_mapping_info *out)
{
	return STELE_CALL(map(target, name, opts, out),
			  "cannot map '%s'", target);
}

/* ---- unmap, list ------------------------------------------------------------- */

static int do_unmap(const char *name, const struct stele_map_opts *opts)
{
	struct stele_mapping mapping = {0};
	struct stele_map_opts known;
	struct stele_log log;
	bool damaged;
	int err = get_options(opts, &known, &log);

	if (err)
		return err;
	if (!name || !stele_name_ok(name, strlen(name))) {
		stele_log_error(&log, "'%s' cannot name a mapping: must be " STELE_NAME_RULE,
				name ? name : "");
		return -EINVAL;
	}
	err = stele_mapping_check_removable(name, &log);
	if (err)
		return err;
	err = stele_mapping_load(name, &log, &mapping);
	if (err == -ENOENT)
		stele_log_error(&log, "'%s' is not mapped", name);
	if (err == -ENOENT)
		return err;
	/* A damaged one is of no use to anybody, but in the way. */
	damaged = err;
	if (!damaged)
		err = restore_writable(&mapping, &log);
	if (!err)
		err = stele_map_krbd_close(&known, &mapping, &log);
	if (!err || damaged)
		err = stele_mapping_remove(name);
	if (!err && damaged)
		stele_log_warning(&log, "'%s' is removed all the same", name);
	stele_mapping_release(&mapping);
	return err;
}

int stele_unmap(const char *name, const struct stele_map_opts *opts)
{
	return STELE_CALL(do_unmap(name, opts),
			  "cannot unmap '%s'", name);
}

struct list {
	void (*fn)(void *user, const struct stele_mapping_info *info);
	void *user;
	int count;
};

static int list_one(void *user, const struct stele_mapping *mapping)
{
	struct stele_mapping_info info = mapping->info;
	struct list *list = user;

	info.size = sizeof(info);
	if (list->fn)
		list->fn(list->user, &info);
	list->count++;
	return 0;
}

static int maps(void (*fn)(void *user, const struct stele_mapping_info *info),
		void *user, const struct stele_map_opts *opts)
{
	struct list list = {.fn = fn, .user = user};
	struct stele_map_opts known;
	struct stele_log log;
	int rc = get_options(opts, &known, &log);

	if (!rc)
		rc = stele_mapping_each(list_one, &list, &log);
	return rc < 0 ? rc : list.count;
}

int stele_map_list(void (*fn)(void *user, const struct stele_mapping_info *info),
		   void *user, const struct stele_map_opts *opts)
{
	return STELE_CALL(maps(fn, user, opts),
			  "cannot list mappings");
}
