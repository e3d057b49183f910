/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - the command line of stele bench
 *
 * What each option takes stands in a table; what does not go together is told
 * before anything is opened.
 */
#include "bench.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "parse.h"

#define SECONDS_DEFAULT 10
#define SECONDS_MAX	1e7
#define SECONDS_MIN	1e-3
#define COUNT_MAX	(UINT64_C(1) << 62) /* samples */
#define DEPTH_MAX	4096  /* of the library */
#define BATCH_MAX	65536
#define CHECK_MAX	64    /* of the library */
#define RATE_MAX	100000000
#define MEMORY_MIN	(64 << 10)
#define MEMORY_MAX	(UINT64_C(1) << 43) /* of the library */
#define LOADER_BATCH	32
#define SHUFFLE_BATCH	256
/* Of the library: what a window has by default, and at most. */
#define BLOCK_SIZE	64
#define BLOCK_COUNT	256
#define WINDOW_MAX	(UINT64_C(1) << 31)

enum type {
	NUMBER32,
	NUMBER64,
	SECONDS,
	SIZE,
	TEXT,
	BACKEND,
	FLAG,
	COUNT, /* of accelerators, or "max" */
	WORD, /* one of `words`, whose index counts */
};

static const char *const orders[] = {"random", "windowed", "sequential", NULL};
static const char *const arrivals[] = {"random", "fixed", NULL};
static const char *const models[] = {"", "resnet50", "cosmoflow", "unet3d",
				     NULL};
static const char *const gpus[] = {"h100", "a100", NULL};

_Static_assert(STELE_SHUFFLE_WINDOWED == 1 && STELE_SHUFFLE_NONE == 2 &&
		       BENCH_RESNET50 == 1 && BENCH_COSMOFLOW == 2 &&
		       BENCH_UNET3D == 3 && BENCH_A100 == 1,
	       "words stand where enumerations count them");

/* How the rows are written; missing members are 0. */
#define OPTION(name_, field, ...) \
	{.name = name_, .at = offsetof(struct bench_config, field), __VA_ARGS__}
#define RANGE(type_, min_, max_) .type = type_, .min = min_, .max = max_

static const struct {
	const char *name;
	size_t at;
	enum type type;
	uint64_t min, max;
	const char *const *words;
} table[] = {
	OPTION("accelerator", model, .type = WORD, .words = models),
	OPTION("accelerators", accelerators, .type = COUNT),
	OPTION("arrivals", arrivals, .type = WORD, .words = arrivals),
	OPTION("backend", backend, .type = BACKEND),
	OPTION("batch", batch, RANGE(NUMBER32, 1, BATCH_MAX)),
	OPTION("block-count", block_count, RANGE(NUMBER32, 1, UINT32_MAX)),
	OPTION("block-size", block_size, RANGE(NUMBER64, 1, UINT32_MAX)),
	OPTION("check-threads", check_threads, RANGE(NUMBER32, 0, CHECK_MAX)),
	OPTION("depth", depth, RANGE(NUMBER32, 1, DEPTH_MAX)),
	OPTION("epochs", epochs, RANGE(NUMBER64, 1, COUNT_MAX)),
	OPTION("gpu", gpu, .type = WORD, .words = gpus),
	OPTION("interval", interval, .type = SECONDS),
	OPTION("iolog", iolog, .type = TEXT),
	OPTION("json", json, .type = FLAG),
	OPTION("loader", loader, .type = FLAG),
	OPTION("memory", memory, RANGE(SIZE, MEMORY_MIN, MEMORY_MAX)),
	OPTION("order", order, .type = WORD, .words = orders),
	OPTION("prometheus", prometheus, .type = TEXT),
	OPTION("quiet", quiet, .type = FLAG),
	OPTION("rate", rate, RANGE(NUMBER64, 1, RATE_MAX)),
	OPTION("samples", samples, RANGE(NUMBER64, 1, COUNT_MAX)),
	OPTION("seed", seed, RANGE(NUMBER64, 0, UINT64_MAX)),
	OPTION("shuffle", shuffle, .type = FLAG),
	OPTION("stats", stats, .type = FLAG),
	OPTION("sync", sync, .type = FLAG),
	OPTION("threads", threads, RANGE(NUMBER32, 1, BENCH_THREADS_MAX)),
	OPTION("time", seconds, .type = SECONDS),
	OPTION("verify", verify, .type = WORD, .words = parse_verify_words),
};
#define TABLE_COUNT (sizeof(table) / sizeof(table[0]))
#define OPTION_BASE 256 /* beyond all letters */

/* What --shuffle looks at or prints by. */
static const char *const order_options[] = {
	"backend", "batch", "block-count", "block-size", "json", "order",
	"quiet", "seed", "shuffle", NULL,
};

const char *bench_order_name(uint32_t order)
{
	return orders[order];
}

const char *bench_verify_name(uint32_t verify)
{
	return parse_verify_words[verify];
}

const char *bench_arrivals_name(uint32_t kind)
{
	return arrivals[kind];
}

static const char *set_count(const char *text, uint32_t *out)
{
	*out = BENCH_SEARCH;
	return parse_or(text, "max", parse_count(text, BENCH_THREADS_MAX, out));
}

/* Return: NULL; what it wants to be. */
static const char *set(struct bench_config *config, size_t i, const char *text)
{
	void *field = (char *)config + table[i].at;
	const char *wanted;
	uint64_t value;

	switch (table[i].type) {
	case FLAG:
		*(bool *)field = true;
		return NULL;
	case TEXT:
		return parse_text(text, 1, PATH_MAX, field);
	case BACKEND:
		return parse_backend(text, field);
	case WORD:
		return parse_word(text, table[i].words, field);
	case COUNT:
		return set_count(text, field);
	case SECONDS:
		return parse_seconds(text, SECONDS_MIN, SECONDS_MAX, field);
	case SIZE:
		return parse_size(text, table[i].min, table[i].max, field);
	default:
		wanted = parse_number(text, table[i].min, table[i].max, &value);
	}
	if (wanted)
		return wanted;
	if (table[i].type == NUMBER32)
		*(uint32_t *)field = (uint32_t)value;
	else
		*(uint64_t *)field = value;
	return NULL;
}

static bool is_given(const bool given[TABLE_COUNT], const char *name)
{
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		if (given[i] && strcmp(table[i].name, name) == 0)
			return true;
	}
	return false;
}

static bool is_window_too_large(const struct bench_config *config)
{
	uint64_t size = config->block_size ? config->block_size : BLOCK_SIZE;
	uint64_t count = config->block_count ? config->block_count : BLOCK_COUNT;

	return size > WINDOW_MAX / count;
}

/* What does not go together; NULL: all does. */
static const char *conflict(const struct bench_config *config,
			    const bool given[TABLE_COUNT])
{
	if (config->samples && config->epochs)
		return "--samples and --epochs do not go together";
	if (config->rate && (config->sync || config->batch > 1))
		return "--rate does not go with --sync or --batch";
	if (is_given(given, "arrivals") && !config->rate)
		return "--arrivals needs --rate";
	if ((config->block_size || config->block_count) &&
	    config->order != STELE_SHUFFLE_WINDOWED)
		return "--block-size and --block-count need --order=windowed";
	if (is_window_too_large(config))
		return "--block-size times --block-count is more than 2147483648 samples";
	if ((config->loader || config->model) &&
	    (config->rate || config->sync || config->check_threads || config->iolog))
		return "--rate, --sync, --check-threads and --iolog are for readers, not "
		       "loaders";
	if (config->model && (config->threads || config->batch))
		return "--accelerator brings its own --threads and --batch";
	if (config->accelerators && !config->model)
		return "--accelerators needs --accelerator";
	if (is_given(given, "gpu") && !config->model)
		return "--gpu needs --accelerator";
	for (size_t i = 0; config->shuffle && i < TABLE_COUNT; i++) {
		uint32_t any;

		if (given[i] && parse_word(table[i].name, order_options, &any))
			return "--shuffle reads nothing: it goes with --order, its "
			       "--seed and blocks, --batch and --json only";
	}
	return NULL;
}

static void set_defaults(struct bench_config *config)
{
	if (config->model) {
		config->loader = true;
		if (!config->accelerators)
			config->accelerators = 1;
	}
	if (config->loader && !config->batch)
		config->batch = LOADER_BATCH;
	if (config->shuffle && !config->batch)
		config->batch = SHUFFLE_BATCH;
	if (!config->threads)
		config->threads = 1;
	if (!config->batch)
		config->batch = 1;
	if (!config->seconds && !config->samples && !config->epochs)
		config->seconds = SECONDS_DEFAULT;
	if (!config->verify)
		config->verify = STELE_VERIFY_CRC;
}

static void parse(const struct cmd *cmd, int argc, char **argv,
		  struct bench_config *config, bool given[TABLE_COUNT])
{
	struct option longopts[TABLE_COUNT + 2] = {
		{"help", no_argument, NULL, 'h'},
	};
	size_t i;
	int c;

	for (i = 0; i < TABLE_COUNT; i++)
		longopts[i + 1] = (struct option){
			.name = table[i].name,
			.has_arg = table[i].type != FLAG,
			.val = OPTION_BASE + (int)i,
		};
	while ((c = cmd_option(cmd, argc, argv, "qh", longopts)) != -1) {
		if (c == 'q')
			config->quiet = true;
		if (c < OPTION_BASE)
			continue;
		i = (size_t)(c - OPTION_BASE);
		given[i] = true;
		cmd_option_value(cmd, longopts, c, set(config, i, optarg));
	}
}

int bench_options_parse(const struct cmd *cmd, int argc, char **argv,
			struct bench_config *config)
{
	bool given[TABLE_COUNT] = {false};
	const char *reason;

	parse(cmd, argc, argv, config, given);
	reason = conflict(config, given);
	if (reason)
		return cmd_misuse(cmd, "%s", reason);
	if (argc - optind != 1)
		return cmd_misuse(cmd, "bench needs one TARGET");
	config->target = argv[optind];
	set_defaults(config);
	return -1;
}
