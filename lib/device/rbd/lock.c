/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.c - one writer of an RBD image, and who it is
 *
 * The lock is librbd's exclusive lock, taken in the mode that is not handed over. Ceph
 * itself knows an address alone, so the holder describes itself in the image's metadata.
 * A holder that is alive is never fenced. One is dead when nobody in its pid namespace has
 * its pid any more (told on the same machine only, at once), when its watch has ended,
 * which librbd waits for, or when it is fenced already. A dead one is put on the cluster's
 * blocklist before its lock is taken; should it wake up, every write of it fails with
 * -ESHUTDOWN. A writer removes its metadata when it is done: who finds that of another one
 * there, and has the lock, fences it, whoever held the lock in between.
 *
 * Clients that lock by themselves when they write hand over when asked. They did not
 * expect another writer, though, so that is refused, too, while such a client has the
 * image open.
 */
#include "lib/device/rbd/rbd.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "format/superblock.h"
#include "lib/device/rbd/bound.h"

#define WRITER_KEY  "stele.writer"
#define INTERNAL    "internal" /* tag of locks that librbd takes */
#define LIST_SIZE   4096u      /* of lockers: one, or some that share it */
#define NAME_SIZE   65u
#define CLIENT_SIZE 32u
#define BOOT_SIZE   37u
#define ADDRESS_SIZE 65u
#define TEXT_SIZE   640u /* of the metadata */
#define ASKED_NS    INT64_C(1000000000) /* who lets go when asked, has by then */
#define WATCHERS    64u
#define WHO_SIZE    256u

/* A process, so that it can't be mistaken for another one. */
struct writer {
	char client[CLIENT_SIZE], host[NAME_SIZE], user[NAME_SIZE];
	char address[ADDRESS_SIZE]; /* of the client; "": not told */
	char boot[BOOT_SIZE]; /* of the machine's kernel */
	uint64_t space;	      /* inode of the pid namespace */
	uint64_t start;	      /* of the process, since boot */
	int64_t pid;
};

struct owner {
	char client[LIST_SIZE];
	char address[STELE_RBD_ADDRESS_SIZE];
	char tag[NAME_SIZE];
	bool known; /* `writer` is this owner's */
	struct writer writer;
};

/* ---- who writes ------------------------------------------------------------ */

static void read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");

	if (!file || !fgets(line, (int)size, file))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* The 22nd word of /proc/PID/stat; the 2nd may hold anything. 0: not known. */
static uint64_t start_of(int64_t pid)
{
	char path[64], line[1024];
	uint64_t start = 0;
	char *word;

	snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
	read_line(path, line, sizeof(line));
	word = strrchr(line, ')');
	for (int i = 2; word && i < 22; i++)
		word = strchr(word + 1, ' ');
	if (word)
		start = strtoull(word, NULL, 10);
	return start;
}

/* Words are divided by spaces. */
static void one_word(char *text, const char *fallback, size_t size)
{
	if (!*text)
		snprintf(text, size, "%s", fallback);
	for (; *text; text++)
		if ((unsigned char)*text <= ' ' || *text == 0x7f)
			*text = '_';
}

/* As Ceph lists us. */
static void name_self(rados_t cluster, char name[CLIENT_SIZE])
{
	snprintf(name, CLIENT_SIZE, "client.%" PRIu64,
		 stele_ceph.rados_get_instance_id(cluster));
}

static void describe_self(rados_t cluster, struct writer *out)
{
	char *address = NULL;
	char buffer[1024];
	struct passwd entry, *found = NULL;
	struct stat st;

	memset(out, 0, sizeof(*out));
	name_self(cluster, out->client);
	gethostname(out->host, sizeof(out->host) - 1);
	one_word(out->host, "?", sizeof(out->host));
	if (!getpwuid_r(geteuid(), &entry, buffer, sizeof(buffer), &found) &&
	    found)
		snprintf(out->user, sizeof(out->user), "%s", entry.pw_name);
	else
		snprintf(out->user, sizeof(out->user), "%u", geteuid());
	one_word(out->user, "?", sizeof(out->user));
	read_line("/proc/sys/kernel/random/boot_id", out->boot,
		  sizeof(out->boot));
	one_word(out->boot, "?", sizeof(out->boot));
	if (!stat("/proc/self/ns/pid", &st))
		out->space = st.st_ino;
	out->pid = getpid();
	out->start = start_of(out->pid);
	if (!stele_ceph.rados_getaddrs(cluster, &address) &&
	    strlen(address) < sizeof(out->address))
		strcpy(out->address, address);
	stele_ceph.rados_buffer_free(address);
}

static bool parse_writer(const char *text, struct writer *out)
{
	memset(out, 0, sizeof(*out));
	return sscanf(text,
		      "%31s %64s %" SCNd64 " %64s %36s %" SCNu64 " %" SCNu64
		      " %64s",
		      out->client, out->host, &out->pid, out->user, out->boot,
		      &out->space, &out->start, out->address) >= 7;
}

static int write_metadata(const struct stele_rbd *rbd, rbd_image_t image,
			  const struct writer *writer)
{
	char text[TEXT_SIZE];
	int rc;

	snprintf(text, sizeof(text),
		 "%s %s %" PRId64 " %s %s %" PRIu64 " %" PRIu64 " %s",
		 writer->client, writer->host, writer->pid, writer->user,
		 writer->boot, writer->space, writer->start, writer->address);
	rc = stele_ceph.rbd_metadata_set(image, WRITER_KEY, text);
	return rc ? stele_rbd_explain(rbd, "write metadata of", rc) : 0;
}

enum fate { UNKNOWN, ALIVE, GONE };

/* Known where it would be in this pid namespace. kill(2) sees what /proc may hide. */
static enum fate fate_of(const struct writer *writer, const struct writer *self)
{
	uint64_t start;

	if (strcmp(writer->boot, self->boot) || !strcmp(self->boot, "?") ||
	    writer->space != self->space || !self->space || writer->pid <= 0)
		return UNKNOWN;
	if (kill((pid_t)writer->pid, 0) && errno == ESRCH)
		return GONE;
	start = start_of(writer->pid);
	return start && writer->start && start != writer->start ? GONE : ALIVE;
}

/* Return: 1; 0 nobody (that we understand); errno. */
static int read_metadata(rbd_image_t image, struct writer *out)
{
	char text[TEXT_SIZE];
	size_t size = sizeof(text);
	int rc = stele_ceph.rbd_metadata_get(image, WRITER_KEY, text, &size);

	if (rc)
		return rc == -ENOENT || rc == -ERANGE ? 0 : rc;
	return parse_writer(text, out);
}

/* ---- who holds the lock ---------------------------------------------------- */

/* Fills a struct owner. */
static ssize_t run_lockers(struct stele_rbd_call *call)
{
	struct owner *out = call->out;
	char cookies[LIST_SIZE];
	size_t client = sizeof(out->client), cookie = sizeof(cookies);
	size_t address = sizeof(out->address), tag = sizeof(out->tag);
	int exclusive;

	return stele_ceph_real.rbd_list_lockers(call->image, &exclusive, out->tag,
						&tag, out->client, &client, cookies,
						&cookie, out->address, &address);
}

/* Return: 1 (*out is set); 0 nobody; errno. */
static int find_owner(rbd_image_t image, struct owner *out)
{
	const struct stele_rbd_call call = {
		.image = image,
		.out = out,
		.size = sizeof(*out),
	};
	ssize_t count;
	int rc;

	memset(out, 0, sizeof(*out));
	count = stele_rbd_do(run_lockers, 0, &call);
	if (count <= 0)
		return count == -ENOENT ? 0 : (int)count;
	rc = read_metadata(image, &out->writer);
	if (rc < 0)
		return rc;
	out->known = rc && !strcmp(out->writer.client, out->client);
	return 1;
}

/* Texts: see below. Number: our own id. Fills what is to be said of the one it found. */
static ssize_t run_watcher(struct stele_rbd_call *call)
{
	rbd_image_watcher_t list[WATCHERS];
	size_t count = WATCHERS;
	int found = 0, rc = stele_ceph_real.rbd_watchers_list(call->image, list,
							      &count);

	if (rc)
		return rc == -ERANGE ? 1 : rc;
	for (size_t i = 0; i < count && !found; i++) {
		char name[CLIENT_SIZE];

		snprintf(name, sizeof(name), "client.%" PRId64, list[i].id);
		if ((uint64_t)list[i].id == call->number[0] ||
		    !strcmp(list[i].addr, call->text[1]) ||
		    (call->text[0] && strcmp(call->text[0], name)))
			continue;
		snprintf(call->out, call->size, "%s, %s", name, list[i].addr);
		found = 1;
	}
	stele_ceph_real.rbd_watchers_list_cleanup(list, count);
	return found;
}

/*
 * Does somebody else have the image open for more than reading: that client, or (NULL)
 * any, except one address? Return: 1 (`who` is set; "": too many to tell); 0; errno.
 */
static int find_watcher(const struct stele_rbd *rbd, rbd_image_t image,
			const char *client, const char *except,
			char who[WHO_SIZE])
{
	rados_t cluster = rbd->links->link[0].cluster;
	const struct stele_rbd_call call = {
		.image = image,
		.text = {client, except},
		.number = {stele_ceph.rados_get_instance_id(cluster)},
		.out = who,
		.size = WHO_SIZE,
	};

	return (int)stele_rbd_do(run_watcher, 0, &call);
}

/* "pid 4123 of alice on host (client.4, 192.0.2.1:0/5)", as far as it is known. */
static const char *describe(const struct owner *owner, char who[WHO_SIZE])
{
	if (owner->known)
		snprintf(who, WHO_SIZE, "pid %" PRId64 " of %s on %s (%s, %.64s)",
			 owner->writer.pid, owner->writer.user,
			 owner->writer.host, owner->writer.client, owner->address);
	else
		snprintf(who, WHO_SIZE, "%.64s, %.64s", owner->client,
			 owner->address);
	return who;
}

static int refuse(const struct stele_rbd *rbd, const struct owner *owner)
{
	char who[WHO_SIZE];

	if (owner->known || !strcmp(owner->tag, INTERNAL))
		stele_log_error(&rbd->base.log, "'%s' is being written by %s",
				rbd->path, describe(owner, who));
	else
		stele_log_error(&rbd->base.log,
				"'%s' is locked by %s ('rbd lock ls'; a stale "
				"lock is removed with 'rbd lock rm')",
				rbd->path, describe(owner, who));
	return -EBUSY;
}

/* ---- lock ------------------------------------------------------------------ */

static int check_feature(const struct stele_rbd *rbd, rbd_image_t image)
{
	uint64_t features;
	int rc = stele_ceph.rbd_get_features(image, &features);

	if (rc)
		return stele_rbd_explain(rbd, "lock", rc);
	if (features & RBD_FEATURE_EXCLUSIVE_LOCK)
		return 0;
	stele_log_error(&rbd->base.log,
			"cannot lock '%s': the image has no exclusive lock "
			"('rbd feature enable %s exclusive-lock')",
			rbd->path, rbd->path + strlen(STELE_RBD_PREFIX));
	return -EOPNOTSUPP;
}

static int fence(const struct stele_rbd *rbd, const char *address)
{
	int rc = stele_rbd_fence(rbd, address);

	return rc ? stele_rbd_explain(rbd, "fence the last writer of", rc) : 0;
}

static int break_lock(struct stele_rbd *rbd, rbd_image_t image,
		      const struct owner *owner)
{
	char who[WHO_SIZE];
	int rc = fence(rbd, owner->address);

	if (rc)
		return rc;
	rc = stele_ceph.rbd_lock_break(image, RBD_LOCK_MODE_EXCLUSIVE,
				       owner->address);
	/* Somebody else was faster. */
	if (rc == -ENOENT || rc == -EAGAIN || rc == -EBUSY)
		return 0;
	if (rc)
		return stele_rbd_explain(rbd, "break the lock of", rc);
	stele_log_warning(&rbd->base.log,
			  "'%s': previous writer, %s, died holding the lock; fenced",
			  rbd->path, describe(owner, who));
	return 0;
}

/* Nobody else has it open who could write. `fenced`: an address that can't. */
static int check_watchers(const struct stele_rbd *rbd, rbd_image_t image,
			  const char *client, const char *fenced)
{
	char who[WHO_SIZE];
	int rc = find_watcher(rbd, image, client, fenced, who);

	if (rc < 0)
		return stele_rbd_explain(rbd, "list who has open", rc);
	if (!rc)
		return 0;
	stele_log_error(&rbd->base.log, "'%s' is open elsewhere: %s ('rbd status')",
			rbd->path, *who ? who : "by many clients");
	return -EBUSY;
}

/* Librbd asks the owner, and fences one that has no watch, once that is so. */
static int acquire(struct stele_rbd *rbd, rbd_image_t image,
		   struct owner *owner)
{
	int rc = stele_ceph.rbd_lock_acquire(image, RBD_LOCK_MODE_EXCLUSIVE);

	if (rc == -EROFS || rc == -EBUSY) {
		if (!*owner->client && find_owner(image, owner) <= 0)
			snprintf(owner->client, CLIENT_SIZE, "another client");
		return refuse(rbd, owner);
	}
	if (rc)
		return stele_rbd_explain(rbd, "lock", rc);
	rbd->locked = true;
	stele_rbd_guard_begin(rbd);
	rbd->base.fence_mode = STELE_FENCE_RBD_LOCK;
	return 0;
}

/* Who is fenced by now is gone, though its process lives. Or errno. */
static int judge_owner(const struct stele_rbd *rbd, rbd_image_t image,
		       const struct owner *owner, const struct writer *self)
{
	enum fate fate = owner->known ? fate_of(&owner->writer, self) : UNKNOWN;
	char who[WHO_SIZE];
	int watches;

	if (fate == GONE || strcmp(owner->tag, INTERNAL))
		return fate;
	if (stele_rbd_is_fenced(rbd, owner->address))
		return GONE;
	if (fate == ALIVE)
		return fate;
	watches = find_watcher(rbd, image, owner->client, "", who);
	if (watches < 0)
		return stele_rbd_explain(rbd, "list who has open", watches);
	return watches ? UNKNOWN : GONE;
}

/*
 * With the lock, and before anything is read: an owner that did not let go is fenced.
 * One that is none of ours may have, when asked, and it may have other images.
 */
static int fence_last(struct stele_rbd *rbd, rbd_image_t image,
		      const struct owner *owner, bool asked,
		      const struct writer *self)
{
	char who[WHO_SIZE];
	struct writer last;
	int rc = read_metadata(image, &last);

	if (rc > 0 && *last.address && strcmp(last.client, self->client))
		rc = fence(rbd, last.address);
	if (rc < 0 || !*owner->client)
		return rc;
	if (owner->known)
		return fence(rbd, owner->address);
	if (asked)
		return 0;
	rc = find_watcher(rbd, image, owner->client, "", who);
	return rc ? rc < 0 ? rc : 0 : fence(rbd, owner->address);
}

static int take(struct stele_rbd *rbd, rbd_image_t image, bool alone,
		struct owner *owner, const struct writer *self)
{
	int found = find_owner(image, owner), fate = UNKNOWN, rc = 0;
	int64_t begin;

	if (found < 0)
		return stele_rbd_explain(rbd, "ask who locks", found);
	if (found)
		fate = judge_owner(rbd, image, owner, self);
	if (fate < 0)
		return fate;
	if (found && (fate == ALIVE || strcmp(owner->tag, INTERNAL)))
		return refuse(rbd, owner);
	if (fate == GONE)
		rc = break_lock(rbd, image, owner);
	begin = stele_rbd_now();
	if (!rc)
		rc = acquire(rbd, image, owner);
	if (!rc)
		rc = fence_last(rbd, image, owner, stele_rbd_now() - begin < ASKED_NS, self);
	if (!rc)
		rc = write_metadata(rbd, image, self);
	if (!rc && alone)
		rc = check_watchers(rbd, image, NULL,
				    fate == GONE ? owner->address : "");
	else if (!rc && found && fate != GONE)
		rc = check_watchers(rbd, image, owner->client, "");
	return rc;
}

int stele_rbd_owns_lock(const struct stele_rbd *rbd, rbd_image_t image)
{
	struct owner owner;
	char self[CLIENT_SIZE];
	int rc;

	name_self(rbd->links->link[0].cluster, self);
	/* Another writer has left its own words there, or none. */
	rc = find_owner(image, &owner);
	return rc > 0 ? owner.known && !strcmp(owner.client, self) : rc;
}

int stele_rbd_lock(struct stele_rbd *rbd, bool alone)
{
	struct writer self;
	struct owner owner;
	rbd_image_t image;
	int rc = stele_rbd_image(rbd, &image);

	if (!rc)
		rc = check_feature(rbd, image);
	if (rc)
		return rc;
	describe_self(rbd->links->link[0].cluster, &self);
	rc = take(rbd, image, alone, &owner, &self);
	if (rc)
		stele_rbd_unlock(rbd);
	return rc;
}

void stele_rbd_unlock(struct stele_rbd *rbd)
{
	rbd_image_t image;

	if (!rbd->locked || stele_rbd_image(rbd, &image) || stele_rbd_guard(rbd))
		return;
	rbd->locked = false;
	/* Whoever reads what stays sees that it is of another client. */
	if (stele_ceph.rbd_metadata_remove(image, WRITER_KEY) != -ETIMEDOUT)
		stele_ceph.rbd_lock_release(image);
}
