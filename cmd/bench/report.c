/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - what a benchmark found, for people and for programs
 *
 * For people a line for each thing that is asked of storage: how much, how late, at what
 * price; then what explains it. Nothing is printed that was not measured. For programs one
 * object: rates are per second, times seconds unless the name says otherwise. With --stats
 * also all that each reader counted, and its last rounds of depth.
 */
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accelerator.h"
#include "json.h"
#include "text.h"


/* Of what the readers asked for, a device on which nothing else reads gives so much. */
#define COLD_MIN 0.95
#define COLD_MAX 1.10

static const char *phase_name(uint32_t phase)
{
	static const char *const names[] = {
		[STELE_DEPTH_STARTUP] = "startup",
		[STELE_DEPTH_DRAIN] = "drain",
		[STELE_DEPTH_CRUISE] = "cruise",
		[STELE_DEPTH_PROBE_UP] = "probe up",
		[STELE_DEPTH_PROBE_DOWN] = "probe down",
		[STELE_DEPTH_PINNED] = "pinned",
	};

	if (phase >= sizeof(names) / sizeof(names[0]) || !names[phase])
		return "-";
	return names[phase];
}

static const char *pages_name(uint32_t huge_pages)
{
	return huge_pages >= 2 ? "explicit" : huge_pages ? "transparent" : "none";
}

bool bench_waits(const struct bench_config *config)
{
	return config->loader || config->rate;
}

/* What the latencies are those of. */
static const char *latency_name(const struct bench_config *config)
{
	if (config->loader)
		return "waited for a batch";
	return config->rate ? "from when a sample was due"
			    : "from submit to collect";
}

static double ratio(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

void bench_text_interval(double time, double samples_per_second,
			 double bytes_per_second)
{
	char a[TEXT_SIZE], b[TEXT_SIZE];

	printf("%9.1f s  %11s samples/s  %11s/s\n", time,
	       text_count(a, (uint64_t)(samples_per_second + 0.5)),
	       text_size(b, (uint64_t)bytes_per_second));
	fflush(stdout);
}

/* ---- what was done --------------------------------------------------------------- */

static const char *verify_words(uint32_t verify)
{
	switch (verify) {
	case STELE_VERIFY_NONE:
		return "not verified";
	case STELE_VERIFY_DIGEST:
		return "digests verified";
	default:
		return "checksums verified";
	}
}

void bench_text_head(const struct bench_config *config,
		     const struct stele_dataset_info *info)
{
	char *name = text_escape(config->target, strlen(config->target));
	char a[TEXT_SIZE], b[TEXT_SIZE], c[TEXT_SIZE];

	printf(ROW "%s\n", "target", name ? name : config->target);
	free(name);
	printf(ROW "%s, %s, %s, mean %s\n", "snapshot", info->snapshot,
	       text_counted(a, info->sample_count, "sample"),
	       text_size(b, info->payload_size),
	       text_size(c, info->payload_size / info->sample_count));
}

static void print_what(const struct bench_config *config,
		       const struct bench_result *result)
{
	char a[TEXT_SIZE];

	bench_text_head(config, &result->info);
	printf(ROW "%s, %s, ", "read", bench_order_name(config->order),
	       text_counted(a, config->threads,
			    config->loader ? "loader" : "thread"));
	if (config->depth)
		printf("depth %u, ", config->depth);
	else
		printf("depth automatic, ");
	if (config->rate)
		printf("%s a second at %s intervals, ",
		       text_count(a, config->rate),
		       bench_arrivals_name(config->arrivals));
	if (config->batch > 1 || config->sync)
		printf("batches of %u%s, ", config->batch,
		       config->sync ? ", one after another" : "");
	printf("%s\n", verify_words(config->verify));
	printf(ROW "%.2f s%s, %s", "took", result->seconds,
	       result->interrupted ? " until interrupted" : "",
	       text_counted(a, result->samples, "sample"));
	printf(result->epochs < 9.95 ? " (%.2f epochs)\n" : " (%.0f epochs)\n",
	       result->epochs);
}

/* ---- how much, how late, at what price --------------------------------------------- */

static void print_rates(const struct bench_config *config,
			const struct bench_result *result)
{
	char a[TEXT_SIZE], b[TEXT_SIZE];
	double good = ratio((double)(result->samples - result->failed),
			    result->seconds);

	printf("\n" ROW "%s samples/s\n", "rate",
	       text_count(a, (uint64_t)(good + 0.5)));
	printf(ROW "%s/s of payload, %s in all\n", "bytes",
	       text_size(a, (uint64_t)ratio((double)result->bytes,
					    result->seconds)),
	       text_size(b, result->bytes));
	if (config->model)
		bench_model_text(config, result);
	if (result->failed)
		printf(ROW "%s\n", "failed",
		       text_counted(a, result->failed, "sample"));
	if (result->unstarted)
		printf(ROW "%s, due and left to wait until the end\n",
		       "not begun",
		       text_counted(a, result->unstarted, "sample"));
}

static void print_latency(const struct bench_config *config,
			  const struct stele_reader_stats *sum)
{
	char a[TEXT_SIZE], b[TEXT_SIZE], c[TEXT_SIZE], d[TEXT_SIZE];

	if (sum->max_ns)
		printf(ROW "p50 %s, p99 %s, p99.9 %s, max %s, %s\n", "latency",
		       text_latency(a, sum->p50_ns),
		       text_latency(b, sum->p99_ns),
		       text_latency(c, sum->p999_ns),
		       text_latency(d, sum->max_ns), latency_name(config));
	if (sum->device_p99_ns)
		printf(ROW "p50 %s, p99 %s, of one device read\n",
		       sum->max_ns ? "" : "latency",
		       text_latency(a, sum->device_p50_ns),
		       text_latency(b, sum->device_p99_ns));
}

static void print_cpu(const struct bench_result *result)
{
	const struct bench_machine *used = &result->used;
	double samples = (double)result->samples;

	printf(ROW "%.2f us a sample, %.2f processors: of this process\n", "cpu",
	       ratio((used->user + used->system) * 1e6, samples),
	       ratio(used->user + used->system, result->seconds));
	/* Counted in ticks of 10 ms: of a short run there may be none. */
	if (used->has_busy && used->busy >= used->user + used->system)
		printf(ROW "%.2f us a sample, %.2f processors: of the whole "
			   "machine, all that was not idle\n",
		       "", ratio(used->busy * 1e6, samples),
		       ratio(used->busy, result->seconds));
	/* More than 1 %: others took what this machine was to have. */
	if (used->steal > 0.01 * result->seconds)
		printf(ROW "%.2f processors were stolen by the hypervisor\n", "",
		       ratio(used->steal, result->seconds));
}

/* ---- what explains it --------------------------------------------------------------- */

static void print_cold(const struct bench_result *result)
{
	const struct stele_reader_stats *sum = &result->sum;
	const struct bench_machine *used = &result->used;
	double asked = (double)sum->device_bytes, came;
	/* What loaders were reading ahead at the end, the device has not counted yet. */
	double ahead = (double)sum->pending_bytes;
	const char *name;

	if (!used->device_count) {
		printf(ROW "not known: no device here counts them\n", "cold");
		return;
	}
	name = used->devices[used->device_count - 1].name;
	came = (double)used->devices[used->device_count - 1].bytes;
	if (asked <= ahead)
		printf(ROW "not known: too little was read\n", "cold");
	else if (came < COLD_MIN * (asked - ahead))
		printf(ROW "no: %.1f %% of the bytes came from a cache, not from "
			   "%s\n",
		       "cold", 100 * (1 - came / (asked - ahead)), name);
	else
		printf(ROW "yes: past the page cache, all bytes came from %s%s\n",
		       "cold", name,
		       came > COLD_MAX * asked ? ", which also others read" : "");
}

static void print_reads(const struct bench_result *result)
{
	const struct stele_reader_stats *sum = &result->sum;
	const struct bench_machine *used = &result->used;

	printf(ROW "%.2f a sample, %.3f bytes read for each byte of payload\n",
	       "reads", result->reads_per_sample, result->bytes_per_byte);
	if (sum->check_reads)
		printf(ROW "%.2f a sample, %.3f bytes, of these by checks\n", "",
		       ratio((double)sum->check_reads, (double)sum->samples),
		       ratio((double)sum->check_bytes, (double)sum->bytes));
	for (unsigned int i = 0; i < used->device_count; i++) {
		const struct bench_device *device = &used->devices[i];

		printf(ROW "%.2f a sample, %.3f bytes, as %s counts them\n", "",
		       ratio((double)device->reads, (double)sum->samples),
		       ratio((double)device->bytes, (double)sum->bytes),
		       device->name);
	}
}

static void print_start(const struct bench_config *config,
			const struct bench_start *start)
{
	bool whole = start->first_batch > 0; /* else fewer came than a batch has */
	double first = whole ? start->first_batch : start->first_sample;

	if (!(first > 0))
		return;
	printf(ROW "%.1f ms to the first %s: %.1f load (processor time), %.1f "
		   "open, %.1f readers, %.1f read\n",
	       "start",
	       1e3 * (start->load + start->open + start->readers + first),
	       whole && config->batch > 1 ? "batch" : "sample",
	       1e3 * start->load, 1e3 * start->open, 1e3 * start->readers,
	       1e3 * first);
}

static void print_depth(const struct bench_config *config,
			const struct bench_result *result)
{
	const struct bench_part *part = &result->parts[0];
	char peak[TEXT_SIZE];
	uint32_t phase = 0;

	if (part->round_count)
		phase = part->rounds[part->round_count - 1].phase;
	if (config->depth || !result->rounds)
		printf(ROW "window %u%s, peak %s in flight%s\n",
		       "depth", result->sum.window,
		       config->depth ? "" : " at last",
		       text_counted(peak, result->sum.depth_peak,
				    "device read"),
		       config->threads > 1 ? ", of all readers" : "");
	else
		printf(ROW "window %.0f to %.0f, median %.0f%s, at last %s\n",
		       "depth", result->window_min, result->window_max,
		       result->window_median,
		       config->threads > 1 ? " of each reader" : "",
		       phase_name(phase));
}

static void print_tier(const struct bench_result *result)
{
	const struct stele_reader_stats *sum = &result->sum;
	char workers[TEXT_SIZE];

	printf(ROW "%s, huge pages %s, %s, %" PRIu64 " %s, %" PRIu64
		   " read again\n",
	       "path", sum->tier, pages_name(sum->huge_pages),
	       text_counted(workers, sum->workers, "kernel worker"),
	       sum->retries, sum->retries == 1 ? "retry" : "retries",
	       sum->reread);
}

/* ---- --stats --------------------------------------------------------------------------- */

static void print_reader(uint32_t index, const struct bench_part *part)
{
	const struct stele_reader_stats *s = &part->stats;
	char a[TEXT_SIZE], b[TEXT_SIZE], c[TEXT_SIZE], d[TEXT_SIZE];

	printf("\nreader %" PRIu32 ": %s\n", index, s->tier);
	printf("  samples %" PRIu64 ", failed %" PRIu64 ", bytes %" PRIu64 "\n",
	       s->samples, s->failed, s->bytes);
	printf("  device reads %" PRIu64 ", bytes %" PRIu64 ", reread %" PRIu64
	       ", retries %" PRIu64 "\n",
	       s->device_reads, s->device_bytes, s->reread, s->retries);
	printf("  of these by checks: reads %" PRIu64 ", bytes %" PRIu64
	       "; for samples not collected: %" PRIu64 ", %" PRIu64 "\n",
	       s->check_reads, s->check_bytes, s->pending_reads,
	       s->pending_bytes);
	printf("  enters %" PRIu64 ", registered %" PRIu64
	       ", workers %u, huge pages %s\n",
	       s->enters, s->registered, s->workers,
	       pages_name(s->huge_pages));
	printf("  depth %u, window %u, peak %u\n", s->depth, s->window,
	       s->depth_peak);
	printf("  latency p50 %s, p90 %s, p99 %s, p99.9 %s",
	       text_latency(a, s->p50_ns), text_latency(b, s->p90_ns),
	       text_latency(c, s->p99_ns), text_latency(d, s->p999_ns));
	printf(", max %s, mean %s\n", text_latency(a, s->max_ns),
	       text_latency(b, (uint64_t)s->mean_ns));
	printf("  device read p50 %s, p99 %s\n",
	       text_latency(a, s->device_p50_ns),
	       text_latency(b, s->device_p99_ns));
}

void bench_text(const struct bench_config *config,
		const struct bench_result *result)
{
	if (config->interval)
		putchar('\n');
	print_what(config, result);
	print_rates(config, result);
	print_latency(config, &result->shown);
	print_cpu(result);
	putchar('\n');
	print_reads(result);
	print_cold(result);
	print_depth(config, result);
	print_tier(result);
	print_start(config, &result->start);
	for (uint32_t i = 0; config->stats && i < result->part_count; i++)
		print_reader(i, &result->parts[i]);
}

/* ---- JSON -------------------------------------------------------------------- */

void bench_json_interval(double time, double samples_per_second,
			 double bytes_per_second)
{
	json_t *object = json_make();

	json_set_real(object, "time", time);
	json_set_real(object, "samples_per_second", samples_per_second);
	json_set_real(object, "bytes_per_second", bytes_per_second);
	json_line(object);
	fflush(stdout);
}

static json_t *config_json(const struct bench_config *config)
{
	json_t *object = json_make();

	json_set_text(object, "order", bench_order_name(config->order));
	json_set_number(object, "threads", config->threads);
	json_set_number(object, "depth", config->depth);
	json_set_number(object, "batch", config->batch);
	json_set(object, "loader", json_boolean(config->loader));
	json_set(object, "sync", json_boolean(config->sync));
	json_set_text(object, "verify", bench_verify_name(config->verify));
	json_set_number(object, "check_threads", config->check_threads);
	json_set_number(object, "memory", config->memory);
	json_set_number(object, "seed", config->seed);
	if (config->rate) {
		json_set_number(object, "rate", config->rate);
		json_set_text(object, "arrivals",
			      bench_arrivals_name(config->arrivals));
	}
	return object;
}

json_t *bench_json_head(const struct bench_config *config,
			const struct stele_dataset_info *info)
{
	json_t *head = json_make(), *object = json_make();

	json_set_text(object, "name", info->snapshot);
	json_set_hex(object, "digest", info->digest, sizeof(info->digest));
	json_set_number(object, "samples", info->sample_count);
	json_set_number(object, "payload_size", info->payload_size);
	json_set_text(head, "target", config->target);
	json_set(head, "snapshot", object);
	return head;
}

static json_t *latency_json(const struct stele_reader_stats *stats)
{
	json_t *object = json_make();

	json_set_number(object, "p50", stats->p50_ns);
	json_set_number(object, "p90", stats->p90_ns);
	json_set_number(object, "p99", stats->p99_ns);
	json_set_number(object, "p999", stats->p999_ns);
	json_set_number(object, "max", stats->max_ns);
	json_set_real(object, "mean", stats->mean_ns);
	json_set_number(object, "device_p50", stats->device_p50_ns);
	json_set_number(object, "device_p99", stats->device_p99_ns);
	return object;
}

static json_t *start_json(const struct bench_start *start)
{
	json_t *object = json_make();

	json_set_real(object, "load", start->load);
	json_set_real(object, "open", start->open);
	json_set_real(object, "readers", start->readers);
	json_set_real(object, "first_sample", start->first_sample);
	json_set_real(object, "first_batch", start->first_batch);
	json_set_real(object, "total", start->load + start->open + start->readers +
					  start->first_batch);
	return object;
}

static json_t *cpu_json(const struct bench_result *result)
{
	const struct bench_machine *used = &result->used;
	double samples = (double)result->samples;
	json_t *object = json_make();

	json_set_seconds(object, "user_seconds", used->user);
	json_set_seconds(object, "system_seconds", used->system);
	json_set_real(object, "us_per_sample",
		 ratio((used->user + used->system) * 1e6, samples));
	if (!used->has_busy)
		return object;
	json_set_seconds(object, "machine_seconds", used->busy);
	json_set_real(object, "machine_us_per_sample",
		 ratio(used->busy * 1e6, samples));
	json_set_seconds(object, "steal_seconds", used->steal);
	return object;
}

static json_t *devices_json(const struct bench_machine *used)
{
	json_t *list = json_make_list(), *object;

	for (unsigned int i = 0; i < used->device_count; i++) {
		object = json_make();
		json_set_text(object, "name", used->devices[i].name);
		json_set_number(object, "reads", used->devices[i].reads);
		json_set_number(object, "merged", used->devices[i].merged);
		json_set_number(object, "bytes", used->devices[i].bytes);
		json_add(list, object);
	}
	return list;
}

static json_t *depth_json(const struct bench_result *result)
{
	json_t *object = json_make();

	json_set_number(object, "window", result->sum.window);
	json_set_number(object, "peak", result->sum.depth_peak);
	json_set_number(object, "rounds", result->rounds);
	if (!result->rounds)
		return object;
	json_set_real(object, "window_min", result->window_min);
	json_set_real(object, "window_median", result->window_median);
	json_set_real(object, "window_max", result->window_max);
	return object;
}

static json_t *round_json(const struct stele_depth_round *round)
{
	json_t *object = json_make();

	json_set_real(object, "time", (double)round->time_ns / 1e9);
	json_set_real(object, "window", round->window);
	json_set_real(object, "bytes_per_second", round->bytes_per_second);
	json_set_real(object, "reads_per_second", round->reads_per_second);
	json_set_real(object, "slowdown", round->slowdown);
	json_set_text(object, "phase", phase_name(round->phase));
	json_set_number(object, "starved", round->starved);
	return object;
}

static void set_counters(json_t *object, const struct stele_reader_stats *stats)
{
	json_set_number(object, "device_reads", stats->device_reads);
	json_set_number(object, "device_bytes", stats->device_bytes);
	json_set_number(object, "check_reads", stats->check_reads);
	json_set_number(object, "check_bytes", stats->check_bytes);
	json_set_number(object, "pending_reads", stats->pending_reads);
	json_set_number(object, "pending_bytes", stats->pending_bytes);
	json_set_number(object, "reread", stats->reread);
	json_set_number(object, "retries", stats->retries);
	json_set_number(object, "enters", stats->enters);
	json_set_number(object, "registered", stats->registered);
	json_set_number(object, "workers", stats->workers);
	json_set_text(object, "huge_pages", pages_name(stats->huge_pages));
	json_set_text(object, "tier", stats->tier);
}

static json_t *readers_json(const struct bench_result *result)
{
	json_t *list = json_make_list(), *object, *rounds;

	for (uint32_t i = 0; i < result->part_count; i++) {
		const struct bench_part *part = &result->parts[i];

		object = json_make();
		json_set_number(object, "samples", part->samples);
		json_set_number(object, "failed", part->failed);
		json_set_number(object, "bytes", part->bytes);
		json_set_number(object, "wait_ns", part->wait_ns);
		set_counters(object, &part->stats);
		json_set_number(object, "window", part->stats.window);
		json_set_number(object, "depth_peak", part->stats.depth_peak);
		json_set(object, "latency_ns",
				    latency_json(&part->stats));
		rounds = json_make_list();
		for (unsigned int j = 0; j < part->round_count; j++)
			json_add(rounds,
					      round_json(&part->rounds[j]));
		json_set(object, "rounds", rounds);
		json_add(list, object);
	}
	return list;
}

static void set_figures(json_t *object, const struct bench_result *result)
{
	const struct stele_reader_stats *sum = &result->sum;
	double good = (double)(result->samples - result->failed);

	json_set_seconds(object, "seconds", result->seconds);
	json_set_number(object, "samples", result->samples);
	json_set_number(object, "failed", result->failed);
	json_set_number(object, "bytes", result->bytes);
	json_set_number(object, "batches", result->batches);
	json_set_real(object, "epochs", result->epochs);
	json_set_real(object, "samples_per_second", ratio(good, result->seconds));
	json_set_real(object, "bytes_per_second",
		 ratio((double)result->bytes, result->seconds));
	json_set_real(object, "reads_per_sample", result->reads_per_sample);
	json_set_real(object, "bytes_per_byte", result->bytes_per_byte);
	set_counters(object, sum);
}

void bench_json(const struct bench_config *config,
		const struct bench_result *result)
{
	json_t *object = bench_json_head(config, &result->info);

	json_set_text(object, "backend", result->info.backend);
	json_set(object, "options", config_json(config));
	set_figures(object, result);
	if (config->rate)
		json_set_number(object, "unstarted", result->unstarted);
	if (config->loader)
		json_set_number(object, "padded", result->padded);
	json_set_text(object, "latency_of", latency_name(config));
	json_set(object, "latency_ns", latency_json(&result->shown));
	json_set(object, "cpu", cpu_json(result));
	json_set(object, "devices", devices_json(&result->used));
	json_set(object, "start_seconds", start_json(&result->start));
	json_set(object, "depth", depth_json(result));
	json_set(object, "interrupted",
			    json_boolean(result->interrupted));
	if (config->model)
		json_set(object, "accelerators",
				    bench_model_json(config, result));
	if (config->stats)
		json_set(object, "readers", readers_json(result));
	json_line(object);
}
