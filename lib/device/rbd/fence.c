/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fence.c - who writes no more: others, and we ourselves
 *
 * What a client sent may be carried out long after it was given up, or its process
 * ended: its kernel still holds it, or an OSD that hangs. Only the cluster's blocklist
 * ends that. So a writer that does not know how a change of it ended puts itself
 * there before it lets go of anything; if it cannot, it lets go of nothing, and
 * the next writer does it. For years, as a machine may sleep for longer than the hour
 * that Ceph keeps such an entry by itself.
 *
 * One that slept may be alone with an older belief: before its next change it looks
 * whether the lock is still its own.
 */
#include "lib/device/rbd/rbd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/device/rbd/bound.h"

/*
 * What goes by between two changes without a look at the lock; nobody takes it from
 * one that is awake before its watch ends, in 30 s by Ceph's default.
 */
#define PAUSE_MAX_NS INT64_C(2000000000)
#define DATE_SIZE    11u /* "2036-11-19" */

/* ---- the blocklist ---------------------------------------------------------- */

/*
 * Is the address on the list, and until when ("2036-11-19T...")? "": it does not say.
 * [{"addr":"192.0.2.1:0/123","until":"..."}, ...]
 */
static bool find_entry(const struct stele_rbd *rbd, const char *address,
		       char until[DATE_SIZE])
{
	static const char key[] = "\"until\":\"";
	char quoted[STELE_RBD_ADDRESS_SIZE + 2], *list;
	const char *entry = NULL, *date;
	size_t size;

	*until = '\0';
	snprintf(quoted, sizeof(quoted), "\"%s\"", address);
	if (!stele_rbd_ask_monitors(
		    rbd->links->link[0].cluster,
		    "{\"prefix\": \"osd blocklist ls\", \"format\": \"json\"}",
		    &list, &size))
		entry = memmem(list, size, quoted, strlen(quoted));
	if (entry) {
		size -= (size_t)(entry - list);
		date = memmem(entry, size, key, strlen(key));
		if (date && size - (size_t)(date - entry) > strlen(key) + DATE_SIZE)
			snprintf(until, DATE_SIZE, "%.*s", (int)DATE_SIZE - 1,
				 date + strlen(key)); /* the list has no end */
	}
	stele_ceph.rados_buffer_free(list);
	return entry;
}

bool stele_rbd_is_fenced(const struct stele_rbd *rbd, const char *address)
{
	char until[DATE_SIZE];

	return find_entry(rbd, address, until);
}

static int add_entry(const struct stele_rbd *rbd, const char *address)
{
	char copy[STELE_RBD_ADDRESS_SIZE];

	snprintf(copy, sizeof(copy), "%s", address);
	/* Comes back when our own map has it, and so whoever gets what we send. */
	return stele_ceph.rados_blocklist_add(rbd->links->link[0].cluster, copy,
					      STELE_RBD_FENCE_SECONDS);
}

/* An entry that is there already would stay as it is. */
static int extend_entry(const struct stele_rbd *rbd, const char *address)
{
	char command[STELE_RBD_ADDRESS_SIZE + 128], *answer;
	size_t size;
	int rc;

	snprintf(command, sizeof(command),
		 "{\"prefix\": \"osd blocklist\", \"blocklistop\": \"rm\", "
		 "\"addr\": \"%s\"}",
		 address);
	rc = stele_rbd_ask_monitors(rbd->links->link[0].cluster, command, &answer,
				    &size);
	stele_ceph.rados_buffer_free(answer);
	return rc ? rc : add_entry(rbd, address);
}

/* In between it is not fenced, but nobody has read or written anything since it was. */
int stele_rbd_fence(const struct stele_rbd *rbd, const char *address)
{
	time_t soon = time(NULL) + STELE_RBD_FENCE_SECONDS / 2;
	char until[DATE_SIZE], wanted[DATE_SIZE];
	struct tm tm;
	int rc = add_entry(rbd, address);

	if (rc || !find_entry(rbd, address, until) || !gmtime_r(&soon, &tm))
		return rc;
	strftime(wanted, sizeof(wanted), "%Y-%m-%d", &tm);
	if (!*until || strcmp(until, wanted) >= 0)
		return 0;
	if (!extend_entry(rbd, address))
		return 0;
	/* What it sent may wait as long as it sleeps: then this would be no fence. */
	stele_log_error(&rbd->base.log,
			"'%s': its last writer, %s, was fenced by somebody else, "
			"until %s only, and client.%s may not change that: run "
			"'ceph osd blocklist rm %s' and 'ceph osd blocklist add "
			"%s %u' as an administrator",
			rbd->path, address, until, rbd->settings.user, address,
			address, STELE_RBD_FENCE_SECONDS);
	return -EACCES;
}

static int fence_self(const struct stele_rbd *rbd)
{
	char *address = NULL;
	int rc = stele_ceph.rados_getaddrs(rbd->links->link[0].cluster, &address);

	if (!rc)
		rc = stele_rbd_fence(rbd, address);
	if (!rc)
		stele_rbd_fenced(rbd->links->link[0].image);
	if (!rc)
		stele_log_emit(&rbd->base.log, STELE_LOG_WARNING,
			       "'%s': what was sent may still be under way, so "
			       "this writer (%s) has fenced itself; its lock is "
			       "left to the next one",
			       rbd->path, address);
	stele_ceph.rados_buffer_free(address);
	return rc;
}

bool stele_rbd_settle(struct stele_rbd *rbd)
{
	struct stele_rbd_links *links = atomic_load(&rbd->links);
	int rc;

	if (!links || links->fork_count != stele_fork_count() ||
	    !rbd->base.writable || !links->link[0].image ||
	    !stele_rbd_in_doubt(links->link[0].image))
		return true;
	rc = fence_self(rbd);
	if (rc)
		stele_log_error(&rbd->base.log,
				"'%s': what was sent may still be under way, "
				"and this writer cannot fence itself: %s; it "
				"keeps its lock, and the next writer fences it",
				rbd->path, strerror(-rc));
	return false;
}

/* ---- a writer that slept ---------------------------------------------------- */

int64_t stele_rbd_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void stamp(struct stele_rbd *rbd, int64_t boot)
{
	atomic_store(&rbd->guard.seen, boot);
}

void stele_rbd_guard_begin(struct stele_rbd *rbd)
{
	stamp(rbd, stele_rbd_now());
}

/* Through a handle of its own: one that is open tells what it knew. */
static int look(struct stele_rbd *rbd)
{
	rados_ioctx_t io;
	rbd_image_t image;
	int rc = stele_rbd_ioctx(rbd, &io), owned;

	if (!rc)
		rc = stele_ceph.rbd_open_read_only(io, rbd->name.image, &image,
						   NULL);
	if (rc && stele_rbd_pool_gone(rbd))
		return -ESTALE;
	if (rc)
		return rc == -ENOENT ? -ESHUTDOWN : rc;
	owned = stele_rbd_owns_lock(rbd, image);
	stele_ceph.rbd_close(image);
	if (owned < 0)
		return owned;
	return owned ? 0 : -ESHUTDOWN;
}

int stele_rbd_guard_now(struct stele_rbd *rbd)
{
	int64_t boot = stele_rbd_now();
	rbd_image_t image;
	int rc = stele_rbd_image(rbd, &image);

	if (rc || !rbd->locked)
		return rc;
	if (atomic_load(&rbd->guard.lost))
		return -ESHUTDOWN;
	if (stele_rbd_in_doubt(image))
		return -ETIMEDOUT;
	rc = look(rbd);
	if (!rc)
		stamp(rbd, boot);
	if (rc != -ESHUTDOWN || atomic_exchange(&rbd->guard.lost, true))
		return rc;
	stele_rbd_doubt(image);
	stele_log_error(&rbd->base.log,
			"'%s': another writer has taken over, or an "
			"administrator has locked this one out: nothing more "
			"is written",
			rbd->path);
	return rc;
}

/* Boot time goes on while the machine sleeps. */
int stele_rbd_guard(struct stele_rbd *rbd)
{
	struct stele_rbd_links *links = atomic_load(&rbd->links);
	int64_t boot = stele_rbd_now();

	if (!rbd->locked || links->fork_count != stele_fork_count())
		return 0;
	if (boot - atomic_load(&rbd->guard.seen) > PAUSE_MAX_NS ||
	    atomic_load(&rbd->guard.lost) ||
	    stele_rbd_in_doubt(links->link[0].image))
		return stele_rbd_guard_now(rbd);
	stamp(rbd, boot);
	return 0;
}

int stele_rbd_writer_image(struct stele_rbd *rbd, rbd_image_t *image)
{
	int rc = stele_rbd_image(rbd, image);

	return rc ? rc : stele_rbd_guard(rbd);
}
