/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map_krbd.c - see map_krbd.h
 */
#include "lib/node/map_krbd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/device/rbd/access.h"
#include "lib/node/krbd.h"

int stele_via_parse(const char *text, enum stele_via *out)
{
	static const char *const names[] = {"auto", "krbd", "librbd"};

	*out = STELE_VIA_AUTO;
	if (!text)
		return 0;
	for (unsigned int i = 0; i < 3; i++)
		if (!strcmp(text, names[i])) {
			*out = (enum stele_via)i;
			return 0;
		}
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
	rc = stele_mapping_each(find_sharer, sharers);
	return rc < 0 ? rc : 0;
}

int stele_map_krbd_close(const struct stele_mapping *mapping,
			 const struct stele_log *log)
{
	char node[STELE_KRBD_NODE_SIZE];
	struct sharers sharers;
	uint32_t number;
	int err;

	/* A device that came after it under its number is not ours. */
	if (!mapping->attached || stele_mapping_is_stale(mapping))
		return 0;
	err = find_sharers(mapping, &sharers);
	if (err || sharers.found)
		return err;
	err = stele_krbd_node_of(mapping->identity.rdev, node);
	if (!err)
		err = stele_krbd_number(node, &number);
	return err ? err : stele_krbd_detach(STELE_KRBD_SYSFS, number, log);
}

/* ---- attach ------------------------------------------------------------------ */

#ifdef HAVE_LIBRBD

/* What fails is no error as long as there is another way. */
static void soften(void *user, enum stele_log_level level, const char *line)
{
	const struct stele_log *log = user;

	if (log->fn)
		log->fn(log->user,
			level == STELE_LOG_ERROR ? STELE_LOG_WARNING : level,
			line);
}

/* *number of a device that is the shot; *attached: nobody had it before. */
static int attach(struct stele_device *dev, const struct stele_log *log,
		  uint32_t *number, bool *attached)
{
	struct stele_rbd_access got;
	struct stele_krbd_access access;
	struct stele_krbd_shot shot;
	int rc = stele_rbd_access_get(dev, &got);

	if (rc)
		return rc;
	access = (struct stele_krbd_access){
		.monitors = got.monitors, .user = got.user,
		.key = got.key, .mode = got.mode,
	};
	shot = (struct stele_krbd_shot){
		.fsid = got.fsid, .pool = got.pool, .ns = got.ns,
		.image = got.image, .shot = got.shot,
		.image_id = got.image_id, .shot_id = got.shot_id,
	};
	rc = stele_krbd_find(STELE_KRBD_SYSFS, &shot, number);
	*attached = rc <= 0;
	/* No krbd at all: attaching says so. */
	if (!rc || rc == -EOPNOTSUPP)
		rc = stele_krbd_attach(STELE_KRBD_SYSFS, &access, &shot, log,
				       number);
	stele_rbd_access_release(&got);
	return rc < 0 ? rc : 0;
}

/* Was a device that is there already attached for mappings? */
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

static int open_krbd(const char *target, const char *snapshot,
		     const char *backend, const struct stele_log *log,
		     struct stele_device *dev, struct stele_device **out,
		     bool *attached)
{
	char node[STELE_KRBD_NODE_SIZE];
	struct stele_storage_id id;
	uint32_t number;
	int err = stele_device_identify(dev, &id);

	if (!err)
		err = attach(dev, log, &number, attached);
	if (err)
		return err;
	stele_krbd_node(number, node);
	err = stele_device_open_krbd(node, target, snapshot, &id, backend, log,
				     out);
	if (err)
		stele_log_error(log, "cannot open '%s', which krbd attached: %s",
				node, strerror(-err));
	if (!err && !*attached) {
		err = find_owner(*out, attached);
		if (err)
			stele_device_close(*out);
	} else if (err && *attached) {
		stele_krbd_detach(STELE_KRBD_SYSFS, number, log);
	}
	return err;
}

int stele_map_krbd_open(enum stele_via via, const char *target,
			const char *snapshot, const char *backend,
			const struct stele_log *log, struct stele_device **dev,
			bool *attached)
{
	const struct stele_log softly = {soften, (void *)log};
	struct stele_device *krbd;
	int err;

	*attached = false;
	if (via == STELE_VIA_LIBRBD)
		return 0;
	err = open_krbd(target, snapshot, backend,
			via == STELE_VIA_AUTO ? &softly : log, *dev, &krbd,
			attached);
	if (err && via == STELE_VIA_AUTO) {
		stele_log_info(log, "'%s@%s' is read through librbd", target,
			       snapshot);
		*attached = false;
		return 0;
	}
	stele_device_close(*dev);
	*dev = err ? NULL : krbd;
	return err;
}

#else

int stele_map_krbd_open(enum stele_via via, const char *target,
			const char *snapshot, const char *backend,
			const struct stele_log *log, struct stele_device **dev,
			bool *attached)
{
	(void)via, (void)target, (void)snapshot, (void)backend, (void)log;
	*attached = false;
	stele_device_close(*dev);
	*dev = NULL;
	return -EOPNOTSUPP;
}

#endif
