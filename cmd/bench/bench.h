/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - what the parts of stele bench share: what to do, and what came of it
 *
 * Options fill a struct bench_config; a run fills a struct bench_result, which
 * the two reports only print. Times are nanoseconds of the monotonic clock, or
 * seconds where the name says so.
 */
#ifndef STELE_CMD_BENCH_BENCH_H
#define STELE_CMD_BENCH_BENCH_H

#include <jansson.h>

#include "iolog.h"
#include "machine.h"
#include "cmd.h"

#define BENCH_HISTORY_MAX 256u /* rounds of depth, of a reader */

/* What lies between two samples of an open loop. */
enum bench_arrivals {
	BENCH_RANDOM = 0, /* as of a Poisson process */
	BENCH_FIXED,
};

enum bench_model {
	BENCH_NO_MODEL = 0,
	BENCH_RESNET50,
	BENCH_COSMOFLOW,
	BENCH_UNET3D,
};

enum bench_gpu {
	BENCH_H100 = 0,
	BENCH_A100,
};

#define BENCH_THREADS_MAX 256u
#define BENCH_SEARCH	  UINT32_MAX

struct bench_config {
	const char *target, *backend, *iolog, *prometheus;
	double seconds;	  /* 0: until all positions are done */
	uint64_t samples; /* positions to do; 0: no end */
	uint64_t epochs;  /* of these, whole ones; 0: not given */
	uint64_t seed, memory, block_size;
	uint64_t rate;	  /* samples/s of an open loop; 0: a closed one */
	double interval;  /* seconds between lines; 0: none */
	uint32_t order;	  /* enum stele_shuffle_kind */
	uint32_t block_count, threads, depth, batch, check_threads;
	uint32_t verify;   /* enum stele_verify, not DEFAULT */
	uint32_t arrivals; /* enum bench_arrivals */
	uint32_t model;	   /* enum bench_model */
	uint32_t gpu;	   /* enum bench_gpu */
	uint32_t accelerators; /* BENCH_SEARCH: as many as are kept busy */
	bool search;	   /* accelerators were to be searched for */
	bool sync;	  /* nothing is asked for before a batch is complete */
	bool loader;	  /* read with loaders, not with readers */
	bool shuffle;	  /* look at the order, read nothing */
	bool json, stats, quiet;
};

/* Where the time from exec to the first samples went; seconds. */
struct bench_start {
	double load;	/* the processor's time before the command began */
	double open, readers;
	double first_sample, first_batch; /* since the readers were there */
};

/* What one reader or loader did. */
struct bench_part {
	uint64_t samples, failed, bytes; /* that came from it; failed ones are samples */
	struct stele_reader_stats stats;
	struct stele_depth_round *rounds; /* malloc'ed */
	unsigned int round_count;
	struct bench_reads reads; /* with --iolog */
	uint64_t first_sample, first_batch, end; /* when; 0: never */
	uint64_t unstarted; /* open loop: due, but never asked for */
	uint64_t padded;    /* loader: samples that fill a step */
	uint64_t wait_ns;   /* loader: that it waited for the device */
	uint64_t steps, busy_ns, total_ns; /* accelerator, from its first batch on */
	int error;	    /* the reader's end */
	int sample_error;   /* of the first sample that failed */
	uint64_t sample_id;
};

struct bench_result {
	struct stele_dataset_info info;
	double seconds;	  /* to the last sample */
	double epochs;
	uint64_t samples, failed, bytes; /* that came */
	uint64_t batches, unstarted, padded;
	double utilisation; /* of accelerators: the share of time that they computed */
	uint32_t most;	    /* accelerators that were kept busy, by a search */
	struct stele_reader_stats sum; /* over the readers */
	/* By those that were collected: loaders end while they read ahead. */
	double reads_per_sample, bytes_per_byte;
	struct stele_reader_stats shown; /* with latencies as the report says */
	struct bench_start start;
	struct bench_machine used;
	struct bench_part *parts;
	uint32_t part_count;
	double window_min, window_median, window_max; /* of depth */
	unsigned int rounds;
	bool interrupted;
};

/*
 * Return: -1: go on, with config->target set; else the command is over, with this
 * status.
 */
int bench_options_parse(const struct cmd *cmd, int argc, char **argv,
			struct bench_config *config);

uint64_t bench_clock(void);

/*
 * Read with config->threads readers until time, positions or the user end it.
 * `began`: when the command did. Return: 0; negative errno (said).
 */
int bench_run(struct stele_dataset *ds, const struct bench_config *config,
	      struct bench_result *result);
/* Tell how well the order mixes. Return: 0; negative errno (said). */
int bench_shuffle(struct stele_dataset *ds, const struct bench_config *config);
void bench_result_release(struct bench_result *result);

/* One line of figures while it runs. */
void bench_text_interval(double time, double samples_per_second,
			 double bytes_per_second);
/* What both reports begin with: target and snapshot. */
void bench_text_head(const struct bench_config *config,
		     const struct stele_dataset_info *info);
json_t *bench_json_head(const struct bench_config *config,
			const struct stele_dataset_info *info);
void bench_text(const struct bench_config *config,
		const struct bench_result *result);
void bench_json_interval(double time, double samples_per_second,
			 double bytes_per_second);
void bench_json(const struct bench_config *config,
		const struct bench_result *result);

const char *bench_order_name(uint32_t order);
const char *bench_verify_name(uint32_t verify);
const char *bench_arrivals_name(uint32_t kind);
/* Is something else waited for than what readers know: a batch, the moment it was due? */
bool bench_waits(const struct bench_config *config);

#endif
