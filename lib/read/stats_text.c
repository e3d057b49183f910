/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_text.c - a reader's stats in the text format of Prometheus
 *
 * Seconds and bytes, as is the custom there. Numbers are put together from integers:
 * printf's floats follow the locale, and the format does not.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "lib/base/error.h"
#include "lib/base/options.h"

#include "lib/stele.h"

#define NS_PER_SECOND UINT64_C(1000000000)

struct text {
	char *data;
	size_t size;	 /* of data */
	size_t length;	 /* of all that was put, kept or not */
	const char *labels; /* never NULL */
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t,
						      const char *format, ...)
{
	bool fits = t->length < t->size;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(fits ? t->data + t->length : NULL,
		      fits ? t->size - t->length : 0, format, args);
	va_end(args);
	if (n > 0)
		t->length += (size_t)n;
}

static void put_head(struct text *t, const char *name, const char *type,
		     const char *help)
{
	put(t, "# HELP stele_reader_%s %s\n# TYPE stele_reader_%s %s\n", name,
	    help, name, type);
}

/* The name, and labels: the caller's, then one of ours (may be NULL). */
static void put_name(struct text *t, const char *name, const char *suffix,
		     const char *label, const char *value)
{
	bool both = *t->labels && label;

	put(t, "stele_reader_%s%s", name, suffix);
	if (*t->labels || label)
		put(t, "{%s%s", t->labels, both ? "," : "");
	if (label)
		put(t, "%s=\"%s\"", label, value);
	if (*t->labels || label)
		put(t, "}");
	put(t, " ");
}

static void put_count(struct text *t, const char *name, uint64_t value,
		      const char *help)
{
	put_head(t, name, "counter", help);
	put_name(t, name, "", NULL, NULL);
	put(t, "%" PRIu64 "\n", value);
}

static void put_gauge(struct text *t, const char *name, uint64_t value,
		      const char *help)
{
	put_head(t, name, "gauge", help);
	put_name(t, name, "", NULL, NULL);
	put(t, "%" PRIu64 "\n", value);
}

static void put_seconds(struct text *t, uint64_t ns)
{
	put(t, "%" PRIu64 ".%09" PRIu64 "\n", ns / NS_PER_SECOND,
	    ns % NS_PER_SECOND);
}

struct quantile {
	const char *name;
	uint64_t ns;
};

static void put_summary(struct text *t, const char *name, const char *help,
			const struct quantile *quantiles, unsigned int count,
			double mean_ns, uint64_t samples)
{
	put_head(t, name, "summary", help);
	for (unsigned int i = 0; i < count; i++) {
		put_name(t, name, "", "quantile", quantiles[i].name);
		put_seconds(t, quantiles[i].ns);
	}
	put_name(t, name, "_sum", NULL, NULL);
	put_seconds(t, (uint64_t)(mean_ns * (double)samples));
	put_name(t, name, "_count", NULL, NULL);
	put(t, "%" PRIu64 "\n", samples);
}

static void put_counts(struct text *t, const struct stele_reader_stats *s)
{
	put_count(t, "samples_total", s->samples, "Samples collected.");
	put_count(t, "samples_failed_total", s->failed,
		  "Samples collected with an error.");
	put_count(t, "bytes_total", s->bytes, "Payload of samples.");
	put_count(t, "device_reads_total", s->device_reads,
		  "Requests to the device.");
	put_count(t, "device_bytes_total", s->device_bytes,
		  "Bytes of these requests.");
	put_count(t, "check_reads_total", s->check_reads,
		  "Of these requests, those of checks.");
	put_count(t, "check_bytes_total", s->check_bytes,
		  "Bytes of requests of checks.");
	put_count(t, "rereads_total", s->reread,
		  "Samples read again after a bad checksum or an error.");
	put_count(t, "retries_total", s->retries,
		  "Parts of requests that were started again.");
	put_count(t, "enters_total", s->enters,
		  "System calls that submitted or waited.");
	put_count(t, "registered_reads_total", s->registered,
		  "Requests into memory that the ring knows.");
}

static void put_latencies(struct text *t, const struct stele_reader_stats *s)
{
	const struct quantile of_samples[] = {{"0.5", s->p50_ns},
					      {"0.9", s->p90_ns},
					      {"0.99", s->p99_ns},
					      {"0.999", s->p999_ns},
					      {"1", s->max_ns}};
	const struct quantile of_reads[] = {{"0.5", s->device_p50_ns},
					    {"0.99", s->device_p99_ns}};

	put_summary(t, "sample_seconds", "From submit to collect.", of_samples,
		    5, s->mean_ns, s->samples);
	put_summary(t, "device_read_seconds",
		    "One request to the device, but for those of checks.",
		    of_reads, 2, s->device_mean_ns,
		    s->device_reads - s->check_reads - s->depth);
}

static int stats_prometheus(const struct stele_reader_stats *stats,
			    const char *labels, char *text, size_t size)
{
	struct text t = {text, size, 0, labels ? labels : ""};
	const struct stele_log log = {0};
	struct stele_reader_stats known;
	const struct stele_reader_stats *s = &known;

	if (size)
		*text = '\0';
	if (stele_output_check(stats, tier, &log))
		return -EINVAL;
	stele_output_load(stats, &known, sizeof(known));
	put_counts(&t, s);
	put_latencies(&t, s);
	put_gauge(&t, "depth", s->depth, "Requests in flight.");
	put_gauge(&t, "pending_reads", s->pending_reads,
		  "Requests for samples that were not collected yet.");
	put_gauge(&t, "pending_bytes", s->pending_bytes,
		  "Bytes of these requests.");
	put_gauge(&t, "depth_peak", s->depth_peak, "The most there ever were.");
	put_gauge(&t, "window", s->window, "Requests that may be in flight.");
	put_gauge(&t, "workers", s->workers,
		  "Kernel threads that block for this process's rings.");
	put_gauge(&t, "huge_pages", s->huge_pages,
		  "2: explicit, 1: transparent, 0: none.");
	put_head(&t, "info", "gauge", "How the device is read.");
	put_name(&t, "info", "", "tier", s->tier);
	put(&t, "1\n");
	return (int)t.length;
}

int stele_stats_prometheus(const struct stele_reader_stats *s,
			   const char *labels, char *text, size_t size)
{
	return STELE_CALL(stats_prometheus(s, labels, text, size),
			  "cannot print statistics");
}
