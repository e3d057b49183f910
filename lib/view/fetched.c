/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetched.c - see fetched.h
 *
 * Whoever asks for a sample reads it; touches are handled by a thread of the view, and a
 * prefetch gathers groups (group.h). All that is present was checked, and is nobody's to change,
 * so a sample that is there needs no further look.
 *
 * The thread logs why a page cannot be filled in; nobody else can, as who touched it gets a
 * signal.
 */
#include "lib/view/fetched.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/workers.h"
#include "lib/image/gather.h"
#include "lib/image/proof.h"
#include "lib/view/group.h"

/* Of a prefetch: groups read together; and bytes. */
#define GROUPS_MAX    256u
#define GATHER_MEMORY (UINT64_C(8) << 20)
/* Digests that are kept for touches. */
#define PROOF_MEMORY  (1u << 20)

struct stele_fetched {
	struct stele_filling filling;
	struct stele_proof proof; /* the thread's */
	pthread_t thread;
	bool started;
	int stop; /* an eventfd */
	unsigned int fork_count;
	struct stele_gather gather; /* of prefetch; its memory NULL: not needed yet */
};

bool stele_fetched_is_forked(const struct stele_fetched *f)
{
	return f->fork_count != stele_fork_count();
}

/* ---- samples ----------------------------------------------------------------- */

/* If all of it is present. Return: 0; -ENODATA (it is not); -EUCLEAN. */
static int look(struct stele_fetched *f, const struct stele_slot *slot,
		struct stele_sample *out)
{
	uint64_t first, count;
	int err;

	stele_group_pages(&f->filling, slot, &first, &count);
	if (!stele_resident_hold(&f->filling.resident, first, count))
		return -ENODATA;
	err = stele_sample_decode(f->filling.ds, slot, f->filling.faults.memory + slot->offset,
				  STELE_VERIFY_NONE, NULL, STELE_LOG_INFO, out);
	stele_resident_let(&f->filling.resident);
	return err;
}

int stele_fetched_sample(struct stele_fetched *f, const struct stele_slot *slot,
			 struct stele_proof *proof, struct stele_sample *out)
{
	struct stele_sample found = {.id = slot->id};
	struct stele_group group;
	struct stele_group_check check = {
		.f = &f->filling, .group = &group, .proof = proof, .out = &found};
	int ret;

	while (!stele_group_plan(&f->filling, slot, &group)) {
		ret = look(f, slot, out);
		if (ret != -ENODATA)
			return ret;
	}
	ret = stele_group_fetch(&check);
	stele_group_release(&check);
	if (!ret)
		*out = found;
	return ret;
}

/* ---- touches ----------------------------------------------------------------- */

static int take_first(void *user, const struct stele_slot *slot)
{
	*(struct stele_slot *)user = *slot;
	return 1;
}

/* A page that a sample is on. Return: 0; errno: it cannot be filled in. */
static int serve_sample(struct stele_fetched *f, const struct stele_slot *slot,
			uint64_t page)
{
	struct stele_group group;
	struct stele_group_check check = {
		.f = &f->filling, .group = &group, .proof = &f->proof};
	int ret;

	if (!stele_group_plan(&f->filling, slot, &group) || page < group.first ||
	    page >= group.first + group.count)
		return 0; /* another thread was faster */
	ret = stele_group_fetch(&check);
	if (ret && check.bad && !check.bad[page - group.first])
		ret = 0;
	stele_group_release(&check);
	return ret > 0 ? -EBADMSG : ret;
}

static void serve(struct stele_fetched *f, uint64_t offset)
{
	const uint64_t page_size = f->filling.faults.page_size;
	struct stele_slot slot;
	int err = -EFAULT; /* nobody was given a pointer to where no sample is */

	if (stele_places_each(&f->filling.places, offset, offset + page_size, take_first,
			      &slot) == 1)
		err = serve_sample(f, &slot, offset / page_size);
	if (!err) {
		stele_faults_wake(&f->filling.faults, offset);
		return;
	}
	stele_log_error(&f->filling.ds->image.log, "a view's page at offset %" PRIu64
			" cannot be filled in, a touch raises SIGBUS: %s", offset,
			stele_strerror(err));
	stele_resident_poison(&f->filling.resident, offset / page_size);
}

static void *serve_all(void *user)
{
	struct stele_fetched *f = user;
	uint64_t offset;

	while (stele_faults_wait(&f->filling.faults, f->stop, &offset) > 0)
		serve(f, offset);
	return NULL;
}

/* ---- prefetch ---------------------------------------------------------------- */

struct prefetch {
	struct stele_fetched *f;
	const uint64_t *ids;
	size_t count, next;   /* ids that were looked at */
	uint64_t pages;	      /* that were planned so far */
	struct stele_proof *proof;
	int error; /* the first */
	struct stele_group groups[GROUPS_MAX];
	unsigned int group_count;
};

static void note(struct prefetch *p, int err)
{
	if (err < 0 && !p->error)
		p->error = err;
}

static void fetch_one(struct prefetch *p, const struct stele_group *group)
{
	struct stele_group_check check = {
		.f = &p->f->filling, .group = group, .proof = p->proof};

	note(p, stele_group_fetch(&check));
	stele_group_release(&check);
}

/* The next id on the pages of the last group. */
static bool join(struct prefetch *p, const struct stele_group *group)
{
	struct stele_group *last = p->group_count ? &p->groups[p->group_count - 1] : NULL;

	if (!last || group->id != last->last + 1 || group->first < last->first ||
	    group->first + group->count > last->first + last->count)
		return false;
	last->last = group->id;
	return true;
}

/* One more id. False: what was added has to be read first. */
static bool add(struct prefetch *p)
{
	struct stele_gather *gather = &p->f->gather;
	const uint64_t id = p->ids[p->next];
	struct stele_slot slot;
	struct stele_group group;
	uint64_t size;
	int err = stele_slot_locate(p->f->filling.ds, id, &slot);

	if (!err && !range_ok(slot.offset, slot.size, p->f->filling.faults.size))
		err = -EUCLEAN;
	note(p, err);
	if (err || !stele_group_plan(&p->f->filling, &slot, &group) || join(p, &group))
		return true;
	if (p->pages + group.count > p->f->filling.resident.pages_max) {
		p->count = p->next; /* it would only drop what came before */
		return false;
	}
	size = group.end - group.begin;
	if (size <= gather->slot_max) {
		if (p->group_count == GROUPS_MAX ||
		    !stele_gather_add(gather, id, group.begin, size))
			return false;
		p->groups[p->group_count++] = group;
	}
	p->pages += group.count;
	if (size > gather->slot_max)
		fetch_one(p, &group);
	return true;
}

/* Read what was added. If that fails, each group shows by itself whether it can be read. */
static void run(struct prefetch *p)
{
	static const bool never;
	struct stele_gather *gather = &p->f->gather;
	const int err = stele_gather_run(gather, &never);

	for (unsigned int i = 0; i < p->group_count; i++) {
		const struct stele_group *group = &p->groups[i];
		struct stele_group_check check = {
			.f = &p->f->filling, .group = group, .proof = p->proof};

		if (err) {
			fetch_one(p, group);
			continue;
		}
		check.data = stele_gather_next(gather, group->end - group->begin);
		note(p, stele_group_take(&check));
		stele_group_release(&check);
	}
}

int stele_fetched_prefetch(struct stele_fetched *f, const uint64_t *ids, size_t count,
			   struct stele_proof *proof)
{
	struct prefetch *p = calloc(1, sizeof(*p));
	int err = 0;

	if (!p)
		return -ENOMEM;
	*p = (struct prefetch){.f = f, .ids = ids, .count = count, .proof = proof};
	if (!f->gather.memory)
		err = stele_gather_open(&f->gather, f->filling.ds->image.dev, GATHER_MEMORY);
	while (!err && p->next < p->count) {
		stele_gather_begin(&f->gather);
		p->group_count = 0;
		while (p->next < p->count && add(p))
			p->next++;
		run(p);
	}
	if (!err)
		err = p->error;
	free(p);
	return err;
}

/* ---- open -------------------------------------------------------------------- */

static int count_pages(const struct stele_fetched *f, uint64_t memory, uint64_t *pages)
{
	const uint64_t page_size = f->filling.faults.page_size;
	/* A slot begins on one page and ends on another. */
	const uint64_t need = f->filling.ds->slot_size_max / page_size + 2;

	*pages = (memory ? memory : STELE_FETCHED_MEMORY_DEFAULT) / page_size;
	if (*pages >= need)
		return 0;
	*pages = need;
	if (!memory)
		return 0;
	stele_log_error(&f->filling.ds->image.log, "option 'memory_size' is %" PRIu64
			": must be at least %" PRIu64, memory, need * page_size);
	return -EINVAL;
}

static int start(struct stele_fetched *f, uint64_t size, uint64_t memory)
{
	uint64_t pages;
	int err = stele_faults_open(size, &f->filling.ds->image.log, &f->filling.faults);

	if (!err)
		err = count_pages(f, memory, &pages);
	if (!err)
		err = stele_resident_init(&f->filling.resident, &f->filling.faults, pages);
	if (!err)
		err = stele_places_init(&f->filling.places, f->filling.ds);
	if (!err && f->filling.verify == STELE_VERIFY_DIGEST)
		err = stele_proof_init(&f->proof, &f->filling.ds->image, PROOF_MEMORY);
	if (err)
		return err;
	f->stop = eventfd(0, EFD_CLOEXEC);
	if (f->stop < 0)
		return -errno;
	err = stele_thread_start(&f->thread, "stele-view", serve_all, f);
	f->started = !err;
	return err;
}

int stele_fetched_open(const struct stele_dataset *ds, uint64_t size,
		       enum stele_verify verify, uint64_t memory,
		       struct stele_fetched **out)
{
	struct stele_fetched *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->filling.ds = ds;
	f->filling.verify = verify;
	f->stop = f->filling.faults.fd = f->filling.faults.hole = -1;
	f->fork_count = stele_fork_count();
	err = start(f, size, memory);
	if (err) {
		stele_fetched_close(f);
		return err;
	}
	*out = f;
	return 0;
}

void stele_fetched_close(struct stele_fetched *f)
{
	const bool forked = f && stele_fetched_is_forked(f);

	if (!f)
		return;
	if (f->started && !forked) {
		eventfd_write(f->stop, 1);
		pthread_join(f->thread, NULL);
	}
	if (f->stop >= 0)
		close(f->stop);
	stele_gather_close(&f->gather);
	stele_faults_close(&f->filling.faults, forked);
	stele_resident_release(&f->filling.resident);
	stele_places_release(&f->filling.places);
	stele_proof_release(&f->proof);
	free(f);
}
