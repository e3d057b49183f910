/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.c - units of work, threads that take them, voids that are left
 */
#include "lib/segment/pipeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/block.h"
#include "lib/base/workers.h"
#include "lib/segment/sort.h"

/*
 * A unit: so many bytes of slots, or so many samples, whichever comes first; of a
 * source that reads together what it expects, as much as it has memory for. But all
 * threads get several.
 */
#define UNIT_SIZE	 (UINT64_C(4) << 20)
#define UNIT_SAMPLES_MIN 256u
#define UNIT_SAMPLES_MAX 4096u
#define UNITS_PER_THREAD 8u
#define WINDOWS_PER_THREAD 2u

#define CHUNK_SIZE_MAX	(UINT64_C(1) << 20)
#define CHUNK_SIZE_MIN	(UINT64_C(64) << 10)
#define CHUNK_COUNT_MIN 2u
#define CHUNK_COUNT_MAX 4u
_Static_assert(CHUNK_SIZE_MIN * CHUNK_COUNT_MIN <= STELE_MEMORY_MIN / 2,
	       "one thread fits the least memory");

struct pipeline {
	struct stele_builder *builder;
	struct stele_plan *plan;
	const struct stele_source *source;
	struct stele_device *dev;
	struct stele_written *written;
	struct stele_edges edges;
	size_t chunk_size;
	unsigned int chunk_count;

	uint64_t unit_size, unit_samples;

	pthread_mutex_t lock; /* of the two below */
	uint64_t next;	      /* number of the first one not taken */
	uint64_t lost_payload, lost_records; /* of voids */

	bool stop;		     /* atomic */
	uint64_t samples, bytes;     /* atomic: done */
};

int stele_written_init(struct stele_written *written, struct stele_plan *plan)
{
	const uint64_t count = plan->descriptor.sample_count;
	int ret;

	memset(written, 0, sizeof(*written));
	stele_spill_init(&written->digests, &plan->pool);
	stele_spill_init(&written->scalars, &plan->pool);
	stele_spill_init(&written->voids, &plan->pool);
	ret = stele_spill_grow(&written->digests, count * STELE_DIGEST_SIZE);
	if (!ret)
		ret = stele_spill_grow(&written->scalars,
				       count * plan->fields.shape.scalar_count *
					       sizeof(uint64_t));
	return ret;
}

void stele_written_release(struct stele_written *written)
{
	stele_spill_release(&written->digests);
	stele_spill_release(&written->scalars);
	stele_spill_release(&written->voids);
}

static bool stopped(const struct pipeline *pipeline)
{
	return __atomic_load_n(&pipeline->stop, __ATOMIC_RELAXED);
}

static void stop(struct pipeline *pipeline)
{
	__atomic_store_n(&pipeline->stop, true, __ATOMIC_RELAXED);
}

/* [*first, *end) is the caller's to write. False: none are left. */
static bool take_unit(struct pipeline *pipeline, uint64_t *first, uint64_t *end)
{
	const struct stele_plan *plan = pipeline->plan;
	const uint64_t count = plan->descriptor.sample_count;
	uint64_t at, begin;

	pthread_mutex_lock(&pipeline->lock);
	at = pipeline->next;
	*first = at;
	begin = stele_plan_offset(plan, at);
	while (at < count && at - *first < pipeline->unit_samples &&
	       stele_plan_offset(plan, at) - begin +
			       (at - *first) * pipeline->source->window_entry <
		       pipeline->unit_size)
		at++;
	*end = at;
	pipeline->next = at;
	pthread_mutex_unlock(&pipeline->lock);
	return *first < *end;
}

static int add_void(struct pipeline *pipeline, const struct stele_void *gone)
{
	struct stele_written *written = pipeline->written;
	const struct stele_plan *plan = pipeline->plan;
	struct stele_plan_sample sample;
	uint64_t record = 0;
	int ret;

	stele_plan_sample(plan, gone->number, &sample);
	stele_record_size(&plan->fields.shape, sample.entry.data_size,
			  (uint32_t)sample.entry.key_size, &record);
	pthread_mutex_lock(&pipeline->lock);
	ret = stele_spill_grow(&written->voids,
			       (written->void_count + 1) * sizeof(*gone));
	if (!ret) {
		((struct stele_void *)
			 written->voids.data)[written->void_count++] = *gone;
		pipeline->lost_payload += sample.entry.data_size;
		pipeline->lost_records +=
			record - stele_record_tail_fixed(&plan->fields.shape);
	}
	pthread_mutex_unlock(&pipeline->lock);
	return ret;
}

/* Those of a void are zero, as all of the array was. */
static void keep_scalars(struct pipeline *pipeline,
			 const struct stele_packer *packer, uint64_t number)
{
	const struct stele_plan *plan = pipeline->plan;
	uint64_t *scalars = pipeline->written->scalars.data;

	for (uint32_t i = 0; i < plan->fields.shape.scalar_count; i++)
		scalars[i * plan->descriptor.sample_count + number] =
			packer->reader.scalars[i];
}

static int write_sample(struct pipeline *pipeline, struct stele_packer *packer,
			uint64_t number)
{
	uint8_t *digests = pipeline->written->digests.data;
	struct stele_plan_sample sample;
	struct stele_void gone;
	int ret = pipeline->dev->dry ?
			  stele_pack_look(packer, number, &gone) :
			  stele_pack(packer, number, digests + number * 32, &gone);

	if (ret > 0) {
		ret = add_void(pipeline, &gone);
		stele_plan_sample(pipeline->plan, number, &sample);
		__atomic_add_fetch(&pipeline->bytes,
				   sample.entry.data_size - gone.written,
				   __ATOMIC_RELAXED);
	}
	else if (!ret)
		keep_scalars(pipeline, packer, number);
	if (!ret)
		__atomic_add_fetch(&pipeline->samples, 1, __ATOMIC_RELAXED);
	return ret;
}

/* Where the bytes begin that go with a sample: the gap before the first one. */
static uint64_t begin_of(const struct stele_plan *plan, uint64_t number)
{
	return number ? stele_plan_offset(plan, number) : plan->descriptor_size;
}

/* And where they end: at the next slot, or at the end of the last block. */
static uint64_t end_of(const struct stele_plan *plan, uint64_t number)
{
	const uint64_t end = stele_plan_offset(plan, number + 1);

	return number + 1 < plan->descriptor.sample_count ?
		       end :
		       round_up(end, STELE_BLOCK_SIZE);
}

/* A slot, and the zeros up to the next. */
static int write_slot(struct pipeline *pipeline, struct stele_packer *packer,
		      uint64_t number)
{
	struct stele_plan_sample sample;
	int ret = write_sample(pipeline, packer, number);

	if (ret < 0 || stopped(pipeline))
		return ret;
	stele_plan_sample(pipeline->plan, number, &sample);
	return stele_pack_zeros(packer, end_of(pipeline->plan, number) -
						sample.offset -
						sample.slot_size);
}

static int look_at_unit(struct pipeline *pipeline, struct stele_packer *packer,
			uint64_t first, uint64_t end)
{
	int ret = 0;

	for (uint64_t i = first; i < end && !ret && !stopped(pipeline); i++)
		ret = write_sample(pipeline, packer, i);
	return ret;
}

/* Tell the source which samples come. */
static int expect(struct pipeline *pipeline, struct stele_packer *packer,
		  uint64_t first, uint64_t end)
{
	const struct stele_source *source = pipeline->source;
	struct stele_plan_sample sample;
	uint64_t *places;

	if (!source->expect)
		return 0;
	places = reallocarray(packer->places, end - first, sizeof(*places));
	if (!places)
		return -ENOMEM;
	packer->places = places;
	for (uint64_t i = first; i < end; i++) {
		stele_plan_sample(pipeline->plan, i, &sample);
		places[i - first] = sample.entry.place;
	}
	source->expect(packer->reader.reader, places, end - first, &pipeline->stop);
	return 0;
}

static int write_unit(struct pipeline *pipeline, struct stele_packer *packer,
		      uint64_t first, uint64_t end)
{
	const struct stele_plan *plan = pipeline->plan;
	const uint64_t begin = begin_of(plan, first);
	int ret = expect(pipeline, packer, first, end);

	if (ret < 0)
		return ret;
	stele_stream_begin(&packer->stream, plan->descriptor.offset + begin);
	ret = stele_pack_zeros(packer, stele_plan_offset(plan, first) - begin);
	for (uint64_t i = first; i < end && !ret && !stopped(pipeline); i++)
		ret = write_slot(pipeline, packer, i);
	if (stopped(pipeline))
		return ret;
	return ret ? ret : stele_stream_end(&packer->stream);
}

static int work(void *user, unsigned int index)
{
	struct pipeline *pipeline = user;
	struct stele_packer packer = {
		.plan = pipeline->plan,
		.builder = pipeline->builder,
		.stop = &pipeline->stop,
		.bytes = &pipeline->bytes,
	};
	uint64_t first, end;
	int ret = stele_hash_new(&packer.hash);

	(void)index;
	if (!ret)
		ret = stele_source_reader_init(&packer.reader, pipeline->source,
					       &pipeline->plan->fields);
	if (!ret && !pipeline->dev->dry)
		ret = stele_stream_open(&packer.stream, pipeline->dev,
					&pipeline->edges, pipeline->chunk_size,
					pipeline->chunk_count);
	while (!ret && !stopped(pipeline) && take_unit(pipeline, &first, &end))
		ret = pipeline->dev->dry ?
			      look_at_unit(pipeline, &packer, first, end) :
			      write_unit(pipeline, &packer, first, end);
	if (!ret && packer.stream.queue)
		ret = stele_stream_drain(&packer.stream);
	if (packer.stream.error && packer.stream.error != -ESTALE && /* logged */
	    !__atomic_exchange_n(&pipeline->stop, true, __ATOMIC_RELAXED))
		stele_log_error(&pipeline->builder->log,
				"cannot write samples: %s",
				stele_device_strerror(pipeline->dev,
						      packer.stream.error));
	stele_source_reader_release(&packer.reader);
	free(packer.places);
	stele_stream_close(&packer.stream);
	stele_hash_free(packer.hash);
	/* Whoever stopped this one says why; else it is the device's word. */
	if (ret == -ECANCELED && stopped(pipeline))
		ret = 0;
	if (ret < 0)
		stop(pipeline);
	return ret;
}

static void tick(void *user)
{
	struct pipeline *pipeline = user;
	struct stele_progress *progress = &pipeline->builder->progress;

	progress->samples_done =
		__atomic_load_n(&pipeline->samples, __ATOMIC_RELAXED);
	progress->bytes_done =
		__atomic_load_n(&pipeline->bytes, __ATOMIC_RELAXED);
	if (stele_builder_tick(pipeline->builder) < 0)
		stop(pipeline);
}

/* As many threads and as large chunks as fit half of the memory. */
static unsigned int share_memory(struct pipeline *pipeline)
{
	const uint64_t memory = pipeline->builder->opts.memory_size / 2;
	const uint64_t fewest = CHUNK_COUNT_MIN * CHUNK_SIZE_MIN;
	uint64_t jobs = pipeline->builder->opts.jobs;
	uint64_t chunk = CHUNK_SIZE_MAX, count;

	if (jobs > memory / fewest)
		jobs = memory / fewest;
	while (jobs * CHUNK_COUNT_MIN * chunk > memory)
		chunk /= 2;
	count = memory / (jobs * chunk);
	pipeline->chunk_size = chunk;
	pipeline->chunk_count = (unsigned int)(count < CHUNK_COUNT_MAX ?
						       count :
						       CHUNK_COUNT_MAX);
	return (unsigned int)jobs;
}

static int compare_voids(const void *a, const void *b, void *user)
{
	const struct stele_void *x = a, *y = b;

	(void)user;
	return (x->number > y->number) - (x->number < y->number);
}

static int settle_voids(struct pipeline *pipeline)
{
	struct stele_written *written = pipeline->written;
	struct stele_descriptor *d = &pipeline->plan->descriptor;
	const struct stele_void *voids;
	int ret = stele_sort(&written->voids, written->void_count,
			     sizeof(*voids), compare_voids, NULL, NULL);

	voids = written->voids.data;
	for (uint64_t i = 0; i < written->void_count && !ret; i++)
		ret = stele_pack_wipe(pipeline->plan, pipeline->dev, &voids[i]);
	d->payload_size -= pipeline->lost_payload;
	d->records_size -= pipeline->lost_records;
	return ret;
}

static void choose_unit(struct pipeline *pipeline, unsigned int jobs)
{
	const bool window = pipeline->source->expect;
	const uint64_t each = window ? WINDOWS_PER_THREAD : UNITS_PER_THREAD;
	const uint64_t count = pipeline->plan->descriptor.sample_count / (jobs * each);

	pipeline->unit_size = window ? pipeline->source->window : UNIT_SIZE;
	pipeline->unit_samples = count;
	if (count < UNIT_SAMPLES_MIN)
		pipeline->unit_samples = UNIT_SAMPLES_MIN;
	else if (!window && count > UNIT_SAMPLES_MAX)
		pipeline->unit_samples = UNIT_SAMPLES_MAX;
}

int stele_pipeline_run(struct stele_builder *builder, struct stele_plan *plan,
		       const struct stele_source *source, struct stele_device *dev,
		       struct stele_written *written)
{
	struct pipeline pipeline = {
		.builder = builder,
		.plan = plan,
		.source = source,
		.dev = dev,
		.written = written,
	};
	unsigned int jobs = share_memory(&pipeline);
	int ret = stele_builder_phase(builder, STELE_PHASE_WRITE,
				      plan->descriptor.sample_count,
				      plan->descriptor.payload_size);

	if (ret < 0 || plan->descriptor.sample_count == 0 ||
	    (dev->dry && source->stored))
		return ret;
	builder->report->jobs = jobs;
	choose_unit(&pipeline, jobs);
	ret = stele_edges_init(&pipeline.edges, dev, jobs);
	if (ret < 0)
		return ret;
	pthread_mutex_init(&pipeline.lock, NULL);
	ret = stele_workers_run("stele-write", jobs, work, tick, &pipeline);
	if (!ret && builder->cancelled)
		ret = -ECANCELED;
	if (!ret)
		ret = settle_voids(&pipeline);
	tick(&pipeline);
	pthread_mutex_destroy(&pipeline.lock);
	stele_edges_release(&pipeline.edges);
	return ret;
}
