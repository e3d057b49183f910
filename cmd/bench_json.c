/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_json.c - what a benchmark found, for programs
 *
 * One object. Rates are per second, times seconds unless the name says otherwise.
 * With --stats also all that each reader counted, and its last rounds of depth.
 */
#include "bench.h"

#include <stdio.h>

#include "bench_model.h"
#include "json.h"

static double ratio(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

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

	json_set_real(object, "user_seconds", used->user);
	json_set_real(object, "system_seconds", used->system);
	json_set_real(object, "us_per_sample",
		 ratio((used->user + used->system) * 1e6, samples));
	if (!used->has_busy)
		return object;
	json_set_real(object, "machine_seconds", used->busy);
	json_set_real(object, "machine_us_per_sample",
		 ratio(used->busy * 1e6, samples));
	json_set_real(object, "steal_seconds", used->steal);
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
	json_set_text(object, "phase", bench_phase_name(round->phase));
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
	json_set_text(object, "huge_pages", bench_pages_name(stats->huge_pages));
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

	json_set_real(object, "seconds", result->seconds);
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
	json_set_text(object, "latency_of", bench_latency_name(config));
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
