/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map_krbd.c - when an RBD snapshot gets mapped: read by the kernel, or librbd?
 *
 * krbd devices are shared: one that is attached already, for a mapping or by
 * anybody, is used again. Only those that were attached for mappings are
 * detached, with the last mapping.
 */
#include "lib/device/target_rbd.h"
#include "lib/node/krbd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_via(const struct stele_map_opts *opts, const char *way)
{
	return !strcmp(opts->via ? opts->via : "auto", way);
}

int stele_map_krbd_check(const struct stele_map_opts *opts,
			 const struct stele_log *log)
{
	if (is_via(opts, "auto") || is_via(opts, "krbd") || is_via(opts, "librbd"))
		return 0;
	stele_log_error(log, "invalid option 'via': '%s' is none of auto, krbd, librbd",
			opts->via);
	return -EINVAL;
}

/* ---- is a device needed by another mapping? --------------------------------- */

struct sharers {
	const struct stele_mapping *than;
	bool found, attached;
};

static int find_sharer(void *user, const struct stele_mapping *mapping)
{
	struct sharers *sharers = user;

	if (mapping->identity.rdev &&
	    stele_identity_same(&mapping->identity, &sharers->than->identity) &&
	    strcmp(mapping->info.name, sharers->than->info.name) != 0) {
		sharers->found = true;
		sharers->attached |= mapping->attached;
	}
	return 0;
}

static int find_sharers(const struct stele_mapping *than,
			struct sharers *sharers)
{
	int rc;

	*sharers = (struct sharers){.than = than};
	rc = stele_mapping_each(find_sharer, sharers, NULL);
	return rc < 0 ? rc : 0;
}

/* ---- attach, detach --------------------------------------------------------- */

/* What fails under "auto" is only a warning: librbd is used instead. */
static void explain(const struct stele_map_opts *opts,
		    const struct stele_log *log, const char *target,
		    const char *snapshot, const char *why)
{
	if (is_via(opts, "krbd"))
		stele_log_error(log, "cannot attach '%s@%s' through krbd: %s",
				target, snapshot, why);
	else
		stele_log_warning(log, "cannot attach '%s@%s' through krbd: %s",
				  target, snapshot, why);
}

static int attach(const struct stele_map_opts *opts, const char *target,
		  const char *snapshot, const struct stele_storage_id *id,
		  const struct stele_log *log, char node[STELE_KRBD_NODE_SIZE])
{
	char why[STELE_MAP_REASON_SIZE] = "";
	struct stele_rbd_name name;
	int rc = stele_rbd_name_parse(target, log, &name);

	if (rc)
		return rc;
	rc = opts->attach(opts->attach_user,
			  &(struct stele_map_rbd){
				  .size = sizeof(struct stele_map_rbd),
				  .pool = name.pool,
				  .pool_namespace = name.ns,
				  .image = name.image,
				  .snapshot = snapshot,
				  .conf = name.conf,
				  .user = name.user,
			  },
			  why);
	stele_rbd_name_release(&name);
	why[sizeof(why) - 1] = '\0';
	if (rc < 0) {
		explain(opts, log, target, snapshot,
			*why ? why : strerror(-rc));
		return rc;
	}
	rc = stele_krbd_find(STELE_KRBD_SYSFS, id, node);
	if (rc > 0)
		return 0;
	explain(opts, log, target, snapshot,
		rc ? strerror(-rc) : "the kernel has no such device afterwards");
	return rc ? rc : -ESTALE;
}

static int detach(const struct stele_map_opts *opts, const char *node,
		  const struct stele_log *log)
{
	char why[STELE_MAP_REASON_SIZE] = "";
	int rc;

	if (!opts->detach) {
		stele_log_warning(log, "'%s' is left attached", node);
		return 0;
	}
	rc = opts->detach(opts->attach_user, node, why);
	why[sizeof(why) - 1] = '\0';
	if (rc < 0)
		stele_log_error(log, "cannot detach '%s': %s", node,
				rc == -EBUSY ? "it is open" :
				*why	     ? why :
					       strerror(-rc));
	return rc < 0 ? rc : 0;
}

/* One that was there already belongs to mappings if it belongs to another mapping. */
static int find_owner(struct stele_device *dev, bool *attached)
{
	struct stele_mapping nameless = {0};
	struct sharers sharers;
	int err = stele_identity_of_device(dev, &nameless.identity);

	if (!err)
		err = find_sharers(&nameless, &sharers);
	*attached = !err && sharers.attached;
	return err;
}

static int open_krbd(const struct stele_map_opts *opts,
		     struct stele_mapping *mapping, const char *snapshot,
		     const struct stele_log *log, struct stele_device *dev,
		     struct stele_device **out)
{
	char node[STELE_KRBD_NODE_SIZE];
	struct stele_storage_id id;
	bool found;
	int rc = stele_device_identify(dev, &id);

	if (rc)
		return rc;
	rc = stele_krbd_find(STELE_KRBD_SYSFS, &id, node);
	found = rc > 0;
	if (!found && !opts->attach) {
		explain(opts, log, mapping->target, snapshot, "it is not attached");
		return -EOPNOTSUPP;
	}
	if (!found)
		rc = attach(opts, mapping->target, snapshot, &id, log, node);
	if (rc < 0)
		return rc;
	rc = stele_device_open_krbd(node, mapping->target, snapshot, &id,
				    opts->backend, log, out);
	if (rc) {
		explain(opts, log, mapping->target, snapshot, strerror(-rc));
		if (!found)
			detach(opts, node, log);
		return rc;
	}
	mapping->attached = true;
	if (found)
		rc = find_owner(*out, &mapping->attached);
	if (rc)
		stele_device_close(*out);
	return rc;
}

int stele_map_krbd_open(const struct stele_map_opts *opts,
			struct stele_mapping *mapping, const char *snapshot,
			const struct stele_log *log, struct stele_device **dev)
{
	struct stele_device *krbd;
	int err;

	if (is_via(opts, "librbd"))
		return 0;
	err = open_krbd(opts, mapping, snapshot, log, *dev, &krbd);
	if (err && !is_via(opts, "krbd"))
		return 0;
	stele_device_close(*dev);
	*dev = err ? NULL : krbd;
	return err;
}

int stele_map_krbd_close(const struct stele_map_opts *opts,
			 const struct stele_mapping *mapping,
			 const struct stele_log *log)
{
	char node[STELE_KRBD_NODE_SIZE];
	struct sharers sharers;
	int err;

	/* A device that took its number afterwards is not ours. */
	if (!mapping->attached || stele_mapping_is_stale(mapping))
		return 0;
	err = find_sharers(mapping, &sharers);
	if (err || sharers.found)
		return err;
	err = stele_krbd_node_of(mapping->identity.rdev, node);
	return err ? err : detach(opts, node, log);
}
