/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats-prometheus.c - every line is one that a collector takes
 *
 * Parsed here by the grammar of the text format: comments, names, labels, numbers; each
 * sample below the TYPE of its family, each name and set of labels once. Cut at any
 * size, what is there is a prefix, terminated, and the length is that of all.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/stele.h"
#include "tests/tap.h"

#define LINES_MAX 128u

static const struct stele_reader_stats stats = {
	.size = sizeof(stats),
	.samples = 1000,
	.failed = 3,
	.bytes = UINT64_C(1) << 40,
	.device_reads = 1025,
	.device_bytes = (UINT64_C(1) << 40) + 4096,
	.check_reads = 15,
	.check_bytes = 61440,
	.pending_reads = 21,
	.pending_bytes = 86016,
	.reread = 4,
	.retries = 5,
	.enters = 600,
	.registered = 990,
	.p50_ns = 250000,
	.p90_ns = 900001,
	.p99_ns = 1000000007,
	.p999_ns = 2000000000,
	.max_ns = 61000000000,
	.device_p50_ns = 200000,
	.device_p99_ns = 1,
	.mean_ns = 300000,
	.device_mean_ns = 100000,
	.depth = 10,
	.window = 32,
	.depth_peak = 31,
	.workers = 0,
	.huge_pages = 1,
	.tier = "uring defer-taskrun fixed-file",
};

/* What was seen so far. */
struct parse {
	char family[80], type[16];
	char helped[80];
	char *seen[LINES_MAX]; /* names with labels */
	double value[LINES_MAX];
	unsigned int count;
};

static const char *skip_name(const char *p)
{
	if (!isalpha((unsigned char)*p) && *p != '_')
		return NULL;
	while (isalnum((unsigned char)*p) || *p == '_' || *p == ':')
		p++;
	return p;
}

/* NAME="VALUE", with \\, \" and \n escaped. */
static const char *skip_labels(const char *p)
{
	for (;;) {
		p = skip_name(p);
		if (!p || p[0] != '=' || p[1] != '"')
			return NULL;
		for (p += 2; *p && *p != '"'; p++)
			if (*p == '\\' && !strchr("\\\"n", *++p))
				return NULL;
		if (*p++ != '"')
			return NULL;
		if (*p == '}')
			return p + 1;
		if (*p++ != ',')
			return NULL;
	}
}

static bool is_of_family(const struct parse *parse, const char *name,
			 size_t size)
{
	size_t family = strlen(parse->family);

	if (size < family || strncmp(name, parse->family, family) != 0)
		return false;
	if (size == family)
		return true;
	return !strcmp(parse->type, "summary") &&
	       ((size == family + 4 && !strncmp(name + family, "_sum", 4)) ||
		(size == family + 6 && !strncmp(name + family, "_count", 6)));
}

static bool parse_sample(struct parse *parse, const char *line)
{
	const char *p = skip_name(line);
	char *end;

	if (!p || !is_of_family(parse, line, (size_t)(p - line)))
		return false;
	if (!strcmp(parse->type, "counter") &&
	    strncmp(p - 6, "_total", 6) != 0)
		return false;
	if (*p == '{')
		p = skip_labels(p + 1);
	if (!p || *p != ' ' || !isdigit((unsigned char)p[1]))
		return false;
	parse->seen[parse->count] = strndup(line, (size_t)(p - line));
	parse->value[parse->count] = strtod(p + 1, &end);
	for (unsigned int i = 0; i < parse->count; i++)
		if (!strcmp(parse->seen[i], parse->seen[parse->count]))
			return false;
	parse->count++;
	return !*end;
}

static bool parse_line(struct parse *parse, const char *line)
{
	char name[80], type[16];
	int n = 0;

	if (sscanf(line, "# HELP %79s %n", name, &n) == 1 && n && line[n]) {
		strcpy(parse->helped, name);
		return strcmp(name, parse->family) != 0;
	}
	if (sscanf(line, "# TYPE %79s %15s%n", name, type, &n) == 2) {
		strcpy(parse->family, name);
		strcpy(parse->type, type);
		return !line[n] && !strcmp(parse->helped, name) &&
		       (!strcmp(type, "counter") || !strcmp(type, "gauge") ||
			!strcmp(type, "summary"));
	}
	return parse_sample(parse, line);
}

static double value_of(const struct parse *parse, const char *name)
{
	for (unsigned int i = 0; i < parse->count; i++)
		if (!strcmp(parse->seen[i], name))
			return parse->value[i];
	diag("no '%s'", name);
	return -1;
}

static void release(struct parse *parse)
{
	while (parse->count)
		free(parse->seen[--parse->count]);
}

static struct parse parse_all(const char *labels)
{
	struct parse parse = {0};
	char text[16384], *rest = text, *line;
	unsigned int wrong = 0;
	int length = stele_stats_prometheus(&stats, labels, text, sizeof(text));

	is_uint(strlen(text), (unsigned int)length, "length");
	is_int('\n', text[length - 1], "the last line ends, too");
	text[length - 1] = '\0';
	while ((line = strsep(&rest, "\n")) && parse.count < LINES_MAX)
		if (!parse_line(&parse, line)) {
			diag("'%s'", line);
			wrong++;
		}
	is_uint(0, wrong, "%s: every line", labels ? labels : "no labels");
	return parse;
}

static void test_values(void)
{
	struct parse p = parse_all(NULL);

	ok(value_of(&p, "stele_reader_samples_total") == 1000, "samples");
	ok(value_of(&p, "stele_reader_samples_failed_total") == 3, "failed");
	ok(value_of(&p, "stele_reader_bytes_total") == 1099511627776.0, "bytes");
	ok(value_of(&p, "stele_reader_device_reads_total") == 1025 &&
		   value_of(&p, "stele_reader_check_reads_total") == 15 &&
		   value_of(&p, "stele_reader_check_bytes_total") == 61440,
	   "all reads, and those of checks");
	ok(value_of(&p, "stele_reader_sample_seconds{quantile=\"0.99\"}") ==
		   1.000000007,
	   "99 %%, in seconds");
	ok(value_of(&p, "stele_reader_sample_seconds{quantile=\"1\"}") == 61,
	   "the slowest");
	ok(value_of(&p, "stele_reader_sample_seconds_sum") == 0.3, "sum");
	ok(value_of(&p, "stele_reader_sample_seconds_count") == 1000, "count");
	ok(value_of(&p, "stele_reader_device_read_seconds_count") == 1000,
	   "of the device, those that are done, and no check's");
	ok(value_of(&p, "stele_reader_device_read_seconds_sum") == 0.1,
	   "and their sum");
	ok(value_of(&p, "stele_reader_window") == 32, "window");
	ok(value_of(&p, "stele_reader_pending_reads") == 21 &&
		   value_of(&p, "stele_reader_pending_bytes") == 86016,
	   "for samples to come");
	ok(value_of(&p, "stele_reader_info{tier=\"uring defer-taskrun "
			"fixed-file\"}") == 1,
	   "tier");
	release(&p);
}

static void test_labels(void)
{
	struct parse p =
		parse_all("rank=\"3\",target=\"/dev/a \\\"b\\\" \\\\c,d}\"");

	ok(value_of(&p, "stele_reader_samples_total{rank=\"3\",target=\"/dev/a "
			"\\\"b\\\" \\\\c,d}\"}") == 1000,
	   "as they were given");
	ok(value_of(&p, "stele_reader_sample_seconds{rank=\"3\",target=\"/dev/a "
			"\\\"b\\\" \\\\c,d}\",quantile=\"0.5\"}") == 0.00025,
	   "beside ours");
	release(&p);
}

static void test_sizes(void)
{
	char all[16384], *part;
	int length = stele_stats_prometheus(&stats, "a=\"b\"", all, sizeof(all));
	unsigned int wrong = 0;

	is_int(length, stele_stats_prometheus(&stats, "a=\"b\"", NULL, 0),
	       "how long it would be");
	for (size_t size = 1; size < (size_t)length + 2; size++) {
		size_t kept = size - 1 < (size_t)length ? size - 1 :
							  (size_t)length;

		part = malloc(size);
		wrong += stele_stats_prometheus(&stats, "a=\"b\"", part,
						size) != length ||
			 strlen(part) != kept || memcmp(part, all, kept) != 0;
		free(part);
	}
	is_uint(0, wrong, "of any size: a prefix, terminated");
}

int main(void)
{
	plan_lazy();
	test_values();
	test_labels();
	test_sizes();
	return done();
}
