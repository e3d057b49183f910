/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - what a device can do, in five numbers: pure arithmetic, no I/O
 *
 * Sizes of samples span 500x, so depth is not a count of requests. The unit is
 * *cost*: seconds of device time, 1/IOPS + bytes/bandwidth of the saturated
 * device (the linear model of Seastar's I/O scheduler). A device is saturated
 * when what is in flight costs as much as one request takes, times kappa.
 *
 *	latency of one alone	L(s)   = latency + s / stream_rate
 *	saturated bytes/s	B(s)   = s / (1/iops_max + s/bytes_max)
 *	at depth q		X(s,q) = ((q s / L(s))^-p + B(s)^-p)^(-1/p), p = 4
 *	knee			q*(s)  = kappa B(s) L(s) / s
 *
 * Fields are finite and positive in a valid model; any thread.
 */
#ifndef STELE_READ_MODEL_H
#define STELE_READ_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stele_profile;

struct stele_model {
	double latency;	    /* seconds, of an empty request on an idle device */
	double stream_rate; /* bytes/s that one request at a time adds to that */
	double iops_max;    /* requests/s */
	double bytes_max;   /* bytes/s */
	double kappa;	    /* bandwidth-delay products in flight at the knee */
};

bool stele_model_valid(const struct stele_model *model);
/* From the profile that holds the same numbers. Return: whether it is valid. */
bool stele_model_set(struct stele_model *model,
		     const struct stele_profile *profile);
/* Seconds of device time. */
double stele_model_cost(const struct stele_model *model, uint64_t size);
/* Seconds, of one request alone. */
double stele_model_latency(const struct stele_model *model, uint64_t size);
/* Bytes/s with `depth` requests of `size` bytes in flight. */
double stele_model_throughput(const struct stele_model *model, uint64_t size,
			      double depth);
/* Requests of `size` bytes in flight at the knee; at least 1. */
double stele_model_depth(const struct stele_model *model, uint64_t size);

#endif
