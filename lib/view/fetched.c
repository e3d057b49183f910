/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetched.c - see fetched.h
 *
 * A *group* is what has to be read to fill in the pages of a sample: it, and those that have
 * bytes on its first and its last page. Their slots are read with one read, or gathered with
 * other groups, and each is checked where it lies; only what is intact is copied to the
 * image of the pages. One that is not is read once more by itself.
 *
 * The thread that handles touches logs what is wrong with a sample; nobody else can, as who
 * touched it gets a signal.
 */
#include "lib/view/fetched.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/workers.h"
#include "lib/image/gather.h"
#include "lib/image/proof.h"
#include "lib/view/places.h"
#include "lib/view/resident.h"

/* Of a prefetch: groups read together; and bytes. */
#define GROUPS_MAX    256u
#define GATHER_MEMORY (UINT64_C(8) << 20)
/* Digests that are kept for touches. */
#define PROOF_MEMORY  (1u << 20)

struct stele_fetched {
	const struct stele_dataset *ds;
	enum stele_verify verify;
	struct stele_faults faults;
	struct stele_resident resident;
	struct stele_places places;
	struct stele_proof proof; /* the thread's */
	pthread_t thread;
	bool started;
	int stop; /* an eventfd */
	unsigned int fork_count;
	struct stele_gather gather; /* of prefetch; its memory NULL: not needed yet */
};

struct group {
	uint64_t first, count; /* pages that are to be filled in */
	uint64_t begin, end;   /* blocks with the slots that have bytes there */
	uint64_t id, last;     /* the samples that were asked for */
};

bool stele_fetched_is_forked(const struct stele_fetched *f)
{
	return f->fork_count != stele_fork_count();
}

/* ---- groups ----------------------------------------------------------------- */

static int widen(void *user, const struct stele_slot *slot)
{
	struct group *group = user;
	const uint64_t end = slot->read_offset + slot->read_size;

	if (group->begin > slot->read_offset)
		group->begin = slot->read_offset;
	if (group->end < end)
		group->end = end;
	return 0;
}

static void pages_of(const struct stele_fetched *f, const struct stele_slot *slot,
		     uint64_t *first, uint64_t *count)
{
	const uint64_t page_size = f->faults.page_size;

	*first = slot->offset / page_size;
	*count = (slot->offset + slot->size - 1) / page_size - *first + 1;
}

/* False: all its pages are present. */
static bool plan(struct stele_fetched *f, const struct stele_slot *slot,
		 struct group *group)
{
	const uint64_t page_size = f->faults.page_size;

	*group = (struct group){.begin = UINT64_MAX, .id = slot->id, .last = slot->id};
	pages_of(f, slot, &group->first, &group->count);
	stele_resident_trim(&f->resident, &group->first, &group->count);
	if (!group->count)
		return false;
	stele_places_each(&f->places, group->first * page_size,
			  (group->first + group->count) * page_size, widen, group);
	return true;
}

/* A group that was read, as it is checked. */
struct check {
	struct stele_fetched *f;
	const struct group *group;
	const uint8_t *data; /* from group->begin on */
	int status;	     /* of reading it */
	struct stele_proof *proof;
	char *image; /* of the pages */
	bool *bad;   /* each of them */
	struct stele_sample *out; /* the first that was asked for; NULL: not wanted */
	int error;		  /* of those that were asked for: the first */
};

static bool is_wanted(const struct check *check, uint64_t id)
{
	return id >= check->group->id && id <= check->group->last;
}

static void mark_bad(struct check *check, const struct stele_slot *slot)
{
	uint64_t first, count;

	pages_of(check->f, slot, &first, &count);
	for (uint64_t i = 0; i < check->group->count; i++) {
		const uint64_t page = check->group->first + i;

		check->bad[i] = check->bad[i] || (page >= first && page < first + count);
	}
}

static void keep(struct check *check, const struct stele_slot *slot,
		 const uint8_t *data, const struct stele_sample *sample)
{
	const uint64_t page_size = check->f->faults.page_size;
	const uint64_t begin = check->group->first * page_size;
	const ptrdiff_t move = check->f->faults.memory + slot->offset - (const char *)data;
	uint64_t size;
	const uint8_t *part = stele_record_part(
		data, slot->offset, slot->size, begin,
		begin + check->group->count * page_size, &size);

	if (size)
		memcpy(check->image + (slot->offset + (uint64_t)(part - data) - begin),
		       part, size);
	if (!check->out || slot->id != check->group->id)
		return;
	*check->out = *sample;
	check->out->buffer = NULL;
	check->out->data = (const char *)sample->data + move;
	check->out->key = (const char *)sample->key + move;
	check->out->tail = (const char *)sample->tail + move;
}

/* Of a failed read of all, those that were asked for may still be read. */
static bool is_worth_rereading(const struct check *check, uint64_t id, int err)
{
	return err == -EBADMSG || (check->status && is_wanted(check, id));
}

static int check_slot(void *user, const struct stele_slot *slot)
{
	struct check *check = user;
	const struct stele_dataset *ds = check->f->ds;
	const uint8_t *data = check->data + (slot->offset - check->group->begin);
	struct stele_sample sample = {.id = slot->id};
	int err = check->status;

	if (!err)
		err = stele_sample_decode(ds, slot, data, check->f->verify,
					  check->proof, STELE_LOG_INFO, &sample);
	if (is_worth_rereading(check, slot->id, err)) {
		const bool mismatch = err == -EBADMSG;

		err = stele_sample_read(ds, slot, check->f->verify, check->proof,
					STELE_LOG_ERROR, &sample);
		data = (uint8_t *)sample.buffer + (slot->offset - slot->read_offset);
		if (!err && mismatch)
			stele_slot_log_again(ds, slot);
	}
	if (err)
		mark_bad(check, slot);
	else
		keep(check, slot, data, &sample);
	if (err && !check->error && is_wanted(check, slot->id))
		check->error = stele_slot_judge(ds, slot, err);
	free(sample.buffer);
	return 0;
}

/*
 * Check what was read, and fill in what is intact; all pages are bad if userfaultfd fails.
 * Return: 0; 1 (some pages are bad); -ENOMEM; errno of those that were asked for.
 */
static int take(struct check *check)
{
	struct stele_fetched *f = check->f;
	const struct group *group = check->group;
	const uint64_t page_size = f->faults.page_size;
	int err;

	check->image = calloc(group->count, page_size);
	check->bad = calloc(group->count, sizeof(*check->bad));
	if (!check->image || !check->bad)
		return -ENOMEM;
	err = stele_places_each(&f->places, group->first * page_size,
				(group->first + group->count) * page_size,
				check_slot, check);
	if (!err)
		err = stele_resident_fill(&f->resident, group->first, group->count,
					  check->image, check->bad);
	if (err)
		memset(check->bad, true, group->count);
	if (err || check->error)
		return check->error ? check->error : err;
	return memchr(check->bad, true, group->count) ? 1 : 0;
}

static void release(struct check *check)
{
	free(check->image);
	free(check->bad);
}

/* Read it alone, and take that. */
static int fetch(struct check *check)
{
	struct stele_device *dev = check->f->ds->image.dev;
	const struct group *group = check->group;
	const uint64_t size = group->end - group->begin;
	void *data = size <= PTRDIFF_MAX ? stele_device_alloc(dev, size) : NULL;
	int ret = -ENOMEM;

	if (data) {
		check->status = stele_device_read(dev, data, group->begin, size);
		if (check->status == -EIO)
			check->status = stele_device_read(dev, data, group->begin, size);
		check->data = data;
		ret = take(check);
	}
	free(data);
	return ret;
}

/* ---- samples ----------------------------------------------------------------- */

/*
 * What is present was checked, and is nobody's to change. Return: 0; -ENODATA (it is not);
 * -EUCLEAN.
 */
static int look(struct stele_fetched *f, const struct stele_slot *slot,
		struct stele_sample *out)
{
	uint64_t first, count;
	int err;

	pages_of(f, slot, &first, &count);
	if (!stele_resident_hold(&f->resident, first, count))
		return -ENODATA;
	err = stele_sample_decode(f->ds, slot, f->faults.memory + slot->offset,
				  STELE_VERIFY_NONE, NULL, STELE_LOG_INFO, out);
	stele_resident_let(&f->resident);
	return err;
}

int stele_fetched_sample(struct stele_fetched *f, const struct stele_slot *slot,
			 struct stele_proof *proof, struct stele_sample *out)
{
	struct stele_sample found = {.id = slot->id};
	struct group group;
	struct check check = {.f = f, .group = &group, .proof = proof, .out = &found};
	int ret;

	while (!plan(f, slot, &group)) {
		ret = look(f, slot, out);
		if (ret != -ENODATA)
			return ret;
	}
	ret = fetch(&check);
	release(&check);
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
	struct group group;
	struct check check = {.f = f, .group = &group, .proof = &f->proof};
	int ret;

	if (!plan(f, slot, &group) || page < group.first ||
	    page >= group.first + group.count)
		return 0; /* another thread was faster */
	ret = fetch(&check);
	if (ret && check.bad && !check.bad[page - group.first])
		ret = 0;
	release(&check);
	return ret > 0 ? -EBADMSG : ret;
}

static void serve(struct stele_fetched *f, uint64_t offset)
{
	const uint64_t page_size = f->faults.page_size;
	struct stele_slot slot;
	int err = -EFAULT; /* nobody was given a pointer to where no sample is */

	if (stele_places_each(&f->places, offset, offset + page_size, take_first,
			      &slot) == 1)
		err = serve_sample(f, &slot, offset / page_size);
	if (!err) {
		stele_faults_wake(&f->faults, offset);
		return;
	}
	stele_log_error(&f->ds->image.log, "a view's page at offset %" PRIu64
			" cannot be filled in, a touch raises SIGBUS: %s", offset,
			stele_strerror(err));
	stele_resident_poison(&f->resident, offset / page_size);
}

static void *serve_all(void *user)
{
	struct stele_fetched *f = user;
	uint64_t offset;

	while (stele_faults_wait(&f->faults, f->stop, &offset) > 0)
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
	struct group groups[GROUPS_MAX];
	unsigned int group_count;
};

static void note(struct prefetch *p, int err)
{
	if (err < 0 && !p->error)
		p->error = err;
}

static void fetch_one(struct prefetch *p, const struct group *group)
{
	struct check check = {.f = p->f, .group = group, .proof = p->proof};

	note(p, fetch(&check));
	release(&check);
}

/* The next id on the pages of the last group. */
static bool join(struct prefetch *p, const struct group *group)
{
	struct group *last = p->group_count ? &p->groups[p->group_count - 1] : NULL;

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
	struct group group;
	uint64_t size;
	int err = stele_slot_locate(p->f->ds, id, &slot);

	if (!err && !range_ok(slot.offset, slot.size, p->f->faults.size))
		err = -EUCLEAN;
	note(p, err);
	if (err || !plan(p->f, &slot, &group) || join(p, &group))
		return true;
	if (p->pages + group.count > p->f->resident.pages_max) {
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
		const struct group *group = &p->groups[i];
		struct check check = {.f = p->f, .group = group, .proof = p->proof};

		if (err) {
			fetch_one(p, group);
			continue;
		}
		check.data = stele_gather_next(gather, group->end - group->begin);
		note(p, take(&check));
		release(&check);
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
		err = stele_gather_open(&f->gather, f->ds->image.dev, GATHER_MEMORY);
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
	const uint64_t page_size = f->faults.page_size;
	/* A slot begins on one page and ends on another. */
	const uint64_t need = f->ds->slot_size_max / page_size + 2;

	*pages = (memory ? memory : STELE_FETCHED_MEMORY_DEFAULT) / page_size;
	if (*pages >= need)
		return 0;
	*pages = need;
	if (!memory)
		return 0;
	stele_log_error(&f->ds->image.log, "option 'memory_size' is %" PRIu64
			": must be at least %" PRIu64, memory, need * page_size);
	return -EINVAL;
}

static int start(struct stele_fetched *f, uint64_t size, uint64_t memory)
{
	uint64_t pages;
	int err = stele_faults_open(size, &f->ds->image.log, &f->faults);

	if (!err)
		err = count_pages(f, memory, &pages);
	if (!err)
		err = stele_resident_init(&f->resident, &f->faults, pages);
	if (!err)
		err = stele_places_init(&f->places, f->ds);
	if (!err && f->verify == STELE_VERIFY_DIGEST)
		err = stele_proof_init(&f->proof, &f->ds->image, PROOF_MEMORY);
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
	f->ds = ds;
	f->verify = verify;
	f->stop = f->faults.fd = f->faults.hole = -1;
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
	stele_faults_close(&f->faults, forked);
	stele_resident_release(&f->resident);
	stele_places_release(&f->places);
	stele_proof_release(&f->proof);
	free(f);
}
