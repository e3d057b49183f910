/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader-counts.c - what a reader counts is what the device was asked for
 *
 * The log of the fault device against the stats, in each mode: checksums and digests,
 * the reader's thread and others, samples larger than the arena or in the caller's
 * memory; with reads that fail, are short, or bring something else. What checks read by
 * themselves does not pass the reader's queue, so the log tells it apart.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "tests/fixture/dataset.h"
#include "tests/fixture/loader.h"
#include "tests/tap.h"

#define SAMPLES	 300u /* read: as many as one segment has */
#define SHORT	 4096u /* bytes that a short read brings */
#define RULES	 24u
#define PAUSE_NS 1000000

struct mode {
	const char *name;
	enum stele_verify verify;
	uint32_t threads;
	uint64_t arena_size;
	bool own_memory, faults;
};

/* ---- what was asked for ------------------------------------------------------------- */

/* Requests, and pieces of them that were started again. */
struct asked {
	uint64_t requests, bytes, retries;
};

struct seen {
	struct asked queued, blocking;
};

/* What the reader says of the reads that it issues. */
static struct trace {
	struct {
		uint64_t time, offset;
		uint32_t size;
	} reads[8 * SAMPLES];
	size_t count;
} traced;

static void trace(void *user, uint64_t time, uint64_t offset, uint32_t size)
{
	struct trace *to = user;

	if (to->count == sizeof(to->reads) / sizeof(to->reads[0]))
		bail("traced more than was read");
	to->reads[to->count].time = time;
	to->reads[to->count].offset = offset;
	to->reads[to->count++].size = size;
}

/* Is it the log of the queue, in order? Where nothing had to be started again. */
static bool is_traced(struct stele_device *dev)
{
	const struct stele_fault_entry *log;
	size_t count, next = 0;
	uint64_t last = 0;

	log = stele_fault_log(dev, &count);
	for (size_t i = 0; i < count; i++) {
		if (!log[i].queued)
			continue;
		if (next == traced.count || traced.reads[next].offset != log[i].offset ||
		    traced.reads[next].size != log[i].size || traced.reads[next].time < last)
			return false;
		last = traced.reads[next++].time;
	}
	return next == traced.count;
}

static uint64_t traced_bytes(void)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < traced.count; i++)
		bytes += traced.reads[i].size;
	return bytes;
}

static struct seen seen_by(struct stele_device *dev)
{
	const struct stele_fault_entry *log;
	struct seen seen = {0};
	size_t count;

	log = stele_fault_log(dev, &count);
	for (size_t i = 0; i < count; i++) {
		struct asked *asked = log[i].queued ? &seen.queued :
						      &seen.blocking;

		asked->requests++;
		asked->bytes += log[i].size;
		if (log[i].fault != STELE_FAULT_SHORTEN || log[i].size <= SHORT)
			continue;
		/* Another entry asks for the rest. */
		asked->requests--;
		asked->bytes -= log[i].size - SHORT;
		asked->retries++;
	}
	return seen;
}

static bool agrees(const struct seen *seen, const struct stele_reader_stats *s)
{
	return s->device_reads ==
		       seen->queued.requests + seen->blocking.requests &&
	       s->device_bytes == seen->queued.bytes + seen->blocking.bytes &&
	       s->check_reads == seen->blocking.requests &&
	       s->check_bytes == seen->blocking.bytes &&
	       s->retries == seen->queued.retries + seen->blocking.retries;
}

static void compare(const struct test_dataset *t,
		    const struct stele_reader *reader, const struct mode *mode)
{
	struct seen seen = seen_by(t->dev);
	struct stele_reader_stats stats = {.size = sizeof(stats)};

	stele_reader_stats(reader, &stats);
	is_uint(seen.queued.requests + seen.blocking.requests,
		stats.device_reads, "%s: requests", mode->name);
	is_uint(seen.queued.bytes + seen.blocking.bytes, stats.device_bytes,
		"%s: their bytes", mode->name);
	is_uint(seen.blocking.requests, stats.check_reads,
		"%s: those of checks", mode->name);
	is_uint(seen.blocking.bytes, stats.check_bytes, "%s: their bytes",
		mode->name);
	ok(traced.count == seen.queued.requests && traced_bytes() == seen.queued.bytes,
	   "%s: the others were traced", mode->name);
	if (!mode->faults)
		ok(is_traced(t->dev), "%s: as they were issued", mode->name);
	is_uint(seen.queued.retries + seen.blocking.retries, stats.retries,
		"%s: what was started again", mode->name);
	is_uint(seen.queued.requests,
		stele_histogram_count(
			stele_reader_latency(reader, STELE_LATENCY_DEVICE)),
		"%s: latencies, but for those of checks", mode->name);
	is_uint(0, stats.pending_reads + stats.pending_bytes,
		"%s: none for samples to come", mode->name);
	if (mode->faults || mode->verify == STELE_VERIFY_DIGEST)
		ok(stats.check_reads > 0, "%s: there are some", mode->name);
	if (mode->faults)
		ok(stats.failed && stats.reread && seen.queued.retries &&
			   seen.blocking.retries,
		   "%s: and all kinds of failures", mode->name);
}

/* ---- reading ------------------------------------------------------------------------ */

/* Some samples fail once, some for ever; of some the second read is short. */
static void set_rules(struct test_dataset *t)
{
	static const enum stele_fault_kind kinds[] = {
		STELE_FAULT_FAIL, STELE_FAULT_FLIP, STELE_FAULT_SHORTEN,
		STELE_FAULT_LOSE};
	struct stele_fault_rule rules[RULES] = {0};
	struct test_read reads[64];

	for (unsigned int i = 0; i < RULES; i++) {
		uint64_t id = t->count - 1 - 7 * (i / 2);

		test_reads_of(t, id, reads, 64);
		rules[i] = (struct stele_fault_rule){
			.kind = kinds[(i / 2 + 2 * (i % 2)) % 4],
			.ops = 1 << STELE_OP_READ,
			.count = i % 2 ? i % 3 : 1,
			.offset = reads[0].offset,
			.size = reads[0].size,
			.error = EIO,
			.arg = SHORT,
		};
		if (rules[i].kind == STELE_FAULT_FLIP)
			rules[i].arg = 8 * 100;
	}
	stele_fault_set_rules(t->dev, rules, RULES);
}

static bool submit(struct stele_reader *reader, uint64_t id, void **memory)
{
	uint64_t size = stele_reader_buffer_size(reader, id);

	if (!memory)
		return stele_reader_submit(reader, &id, NULL, 1) == 1;
	free(*memory);
	*memory = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
	return stele_reader_submit_into(
		       reader,
		       &(struct stele_destination){.id = id,
						   .memory = *memory,
						   .memory_size = size},
		       1) == 1;
}

/* Each sample once, whatever becomes of it. */
static void read_all(const struct test_dataset *t, struct stele_reader *reader,
		     bool own_memory)
{
	void **memory = calloc(t->count, sizeof(*memory));
	struct stele_sample sample;
	uint64_t next = 0, done = 0;

	while (done < t->count) {
		if (next < t->count &&
		    submit(reader, next, own_memory ? &memory[next] : NULL)) {
			next++;
			continue;
		}
		if (stele_reader_collect(reader, &sample, 1, 1) != 1)
			bail("collect");
		stele_reader_release(reader, &sample);
		done++;
	}
	for (uint64_t i = 0; i < t->count; i++)
		free(memory[i]);
	free(memory);
}

static struct stele_reader *open_reader(const struct test_dataset *t,
					const struct mode *mode)
{
	struct stele_reader *reader;

	traced.count = 0;
	if (stele_reader_open(t->ds,
			      &STELE_OPTS(stele_reader_opts, .depth = 8,
					  .arena_size = mode->arena_size,
					  .verify = mode->verify,
					  .check_threads = mode->threads,
					  .trace = trace, .trace_user = &traced),
			      &reader))
		bail("no reader");
	return reader;
}

static void check(const struct test_plan *plan, const struct mode *mode)
{
	struct stele_reader *reader;
	struct test_dataset t;

	test_dataset_open(&t, plan);
	reader = open_reader(&t, mode);
	if (mode->faults)
		set_rules(&t);
	for (unsigned int epoch = 0; epoch < 2; epoch++) {
		read_all(&t, reader, mode->own_memory);
		compare(&t, reader, mode);
	}
	stele_reader_close(reader);
	test_dataset_close(&t);
}

/* What does not add up. */
static void check_worst(void)
{
	static const struct stele_reader_stats parts[] = {
		{.workers = 2, .huge_pages = 2, .tier = "first"},
		{.workers = 3, .huge_pages = 0, .tier = "second"},
		{.workers = 1, .huge_pages = 1, .tier = "third"},
	};
	struct stele_reader_stats sum = {.size = sizeof(sum)}, one;

	for (unsigned int i = 0; i < 3; i++) {
		one = parts[i];
		one.size = sizeof(one);
		stele_stats_add(&sum, &one);
	}
	is_uint(3, sum.workers, "workers are those of the process");
	is_uint(0, sum.huge_pages, "the worst pages");
	is_string("first", sum.tier, "the first one's tier");
}

/* Between submit and collect, wherever the samples are. */
static void check_pending(const struct test_plan *plan)
{
	const struct mode mode = {.name = "pending",
				  .verify = STELE_VERIFY_CRC};
	struct stele_sample samples[6];
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	struct stele_reader *reader;
	struct test_dataset t;
	struct test_read read;
	uint64_t bytes = 0;

	test_dataset_open(&t, plan);
	reader = open_reader(&t, &mode);
	for (uint64_t id = 0; id < 6; id++) {
		submit(reader, id, NULL);
		test_reads_of(&t, id, &read, 1);
		bytes += read.size;
	}
	stele_reader_stats(reader, &stats);
	is_uint(6, stats.pending_reads, "of samples that were asked for");
	is_uint(bytes, stats.pending_bytes, "their bytes");
	if (stele_reader_collect(reader, samples, 4, 4) != 4)
		bail("collect");
	for (unsigned int i = 0; i < 4; i++) {
		test_reads_of(&t, samples[i].id, &read, 1);
		bytes -= read.size;
	}
	stele_reader_stats(reader, &stats);
	is_uint(2, stats.pending_reads, "of those that are left");
	is_uint(bytes, stats.pending_bytes, "their bytes");
	stele_reader_close(reader);
	test_dataset_close(&t);
}

/* Sums of two are those of the log; their latencies, of all samples of both. */
static void check_sums(const struct stele_reader *one,
		       const struct stele_reader *other,
		       const struct seen *seen)
{
	struct stele_reader_stats a = {.size = sizeof(a)};
	struct stele_reader_stats b = {.size = sizeof(b)};
	struct stele_reader_stats sum = {.size = sizeof(sum)};
	struct stele_histogram *all = stele_histogram_new();

	stele_reader_stats(one, &a);
	stele_reader_stats(other, &b);
	stele_stats_add(&sum, &a);
	stele_stats_add(&sum, &b);
	ok(agrees(seen, &sum), "the sums are those of the log");
	is_uint(a.samples + b.samples, sum.samples, "of samples, too");
	ok(sum.failed == a.failed + b.failed && sum.bytes == a.bytes + b.bytes &&
		   sum.reread == a.reread + b.reread &&
		   sum.depth_peak == a.depth_peak + b.depth_peak,
	   "failures, bytes, those read again, depths");
	is_uint(0, sum.max_ns + sum.device_p99_ns, "no latency");
	stele_histogram_add(all, stele_reader_latency(one, STELE_LATENCY_SAMPLE));
	stele_histogram_add(all,
			    stele_reader_latency(other, STELE_LATENCY_SAMPLE));
	stele_stats_latencies(&sum, all, NULL);
	is_uint(a.max_ns > b.max_ns ? a.max_ns : b.max_ns, sum.max_ns,
		"the slowest of both");
	ok(sum.p50_ns >= (a.p50_ns < b.p50_ns ? a.p50_ns : b.p50_ns) &&
		   sum.p50_ns <= (a.p50_ns > b.p50_ns ? a.p50_ns : b.p50_ns),
	   "half of both lies between the halves of each");
	is_uint(0, sum.device_p50_ns + sum.device_p99_ns, "of samples alone");
	stele_stats_latencies(&sum, NULL, all);
	is_uint(sum.p99_ns, sum.device_p99_ns, "then of the device");
	stele_histogram_free(all);
}

/* What checks read is their reader's, though both are of one thread. */
static void check_two(const struct test_plan *plan)
{
	const struct mode mode = {
		.name = "one of two", .verify = STELE_VERIFY_CRC, .faults = true};
	struct stele_reader *one, *other;
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	struct test_dataset t;
	struct seen seen;

	test_dataset_open(&t, plan);
	one = open_reader(&t, &mode);
	other = open_reader(&t, &mode);
	set_rules(&t);
	read_all(&t, one, false);
	compare(&t, one, &mode);
	stele_reader_stats(other, &stats);
	is_uint(0, stats.device_reads + stats.check_reads + stats.device_bytes,
		"the other one has read nothing");
	read_all(&t, other, false);
	seen = seen_by(t.dev);
	check_sums(one, other, &seen);
	stele_reader_close(one);
	stele_reader_close(other);
	test_dataset_close(&t);
}

static void add_latencies(const struct stele_loader *loader, struct stele_histogram *latency[3])
{
	for (int which = STELE_LATENCY_SAMPLE; which <= STELE_LATENCY_DEVICE + 1;
	     which++) {
		stele_histogram_free(latency[which]);
		latency[which] = stele_histogram_new();
		stele_loader_latency(loader, (enum stele_latency)which,
				     latency[which]);
	}
}

/* Two sources: their sums. It reads ahead until it may not, so it is asked again. */
static void check_loader(const struct test_plan *plan)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct stele_reader_stats stats = {.size = sizeof(stats)}, later = stats;
	struct stele_histogram *latency[3] = {NULL};
	struct stele_loader *loader;
	struct test_load load = {0};
	struct test_dataset t;
	struct seen seen;

	test_dataset_open(&t, plan);
	loader = test_loader((struct stele_loader_source[]){{.ds = t.ds},
							    {.ds = t.ds}},
			     2,
			     STELE_OPTS(stele_loader_opts, .batch_size = 10,
					.verify = STELE_VERIFY_DIGEST,
					.prefetch_size = 100000));
	test_load(loader, (struct test_dataset[]){t, t}, UINT64_MAX, &load);
	do { /* and again, if it has gone on meanwhile */
		nanosleep(&pause, NULL);
		stele_loader_reader_stats(loader, &stats);
		seen = seen_by(t.dev);
		add_latencies(loader, latency);
		stele_loader_reader_stats(loader, &later);
	} while (!agrees(&seen, &stats) || stats.depth || later.samples != stats.samples ||
		 later.device_reads != stats.device_reads);
	ok(true, "a loader's sums become those of the log");
	ok(stats.check_reads > 0, "with checks: %ju",
	   (uintmax_t)stats.check_reads);
	is_uint(stats.samples, stele_histogram_count(latency[0]),
		"latencies of its samples");
	is_uint(seen.queued.requests, stele_histogram_count(latency[1]),
		"latencies of its reads");
	is_uint(0, stele_histogram_count(latency[2]), "of nothing");
	is_uint(stats.p99_ns, stele_histogram_quantile(latency[0], 0.99),
		"which its stats tell");
	for (int which = 0; which < 3; which++)
		stele_histogram_free(latency[which]);
	test_load_release(&load);
	stele_loader_close(loader);
	test_dataset_close(&t);
}

static void check_all(const char *backend)
{
	static const struct mode modes[] = {
		{"checksums", STELE_VERIFY_CRC, 0, 0, false, false},
		{"checksums, failures", STELE_VERIFY_CRC, 0, 0, false, true},
		{"threads, failures", STELE_VERIFY_CRC, 3, 0, false, true},
		{"digests", STELE_VERIFY_DIGEST, 1, 0, false, false},
		{"digests, failures", STELE_VERIFY_DIGEST, 1, 0, false, true},
		{"digests, threads", STELE_VERIFY_DIGEST, 3, 0, false, true},
		{"small arena", STELE_VERIFY_DIGEST, 2, 8192, false, true},
		{"own memory", STELE_VERIFY_DIGEST, 2, 0, true, true},
		{"own memory, no check", STELE_VERIFY_NONE, 0, 0, true, false},
	};
	struct test_plan plan = {.samples = SAMPLES,
				 .segments = 2,
				 .size_max = 20000,
				 .granule = 4096,
				 .delete_every = 5,
				 .backend = backend};
	const struct test_plan large = {
		.samples = 40, .size_max = 2000000, .backend = backend};

	diag("%s", backend ? backend : "memory");
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		check(&plan, &modes[i]);
	check(&large, &(struct mode){.name = "several transfers",
				     .verify = STELE_VERIFY_DIGEST,
				     .threads = 2,
				     .arena_size = 1 << 20});
	check_two(&plan);
	check_pending(&plan);
	check_loader(&plan);
}

int main(void)
{
	plan_lazy();
	check_worst();
	check_all(NULL);
	check_all("uring");
	check_all("threads");
	return done();
}
