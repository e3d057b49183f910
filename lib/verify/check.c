/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - what the parts of verify share: reports, progress, zeros
 */
#include "lib/verify/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/decode.h"

#define ZERO_BUFFER_SIZE (UINT64_C(256) << 10)

/* Has somebody committed since it was loaded? Then anything may have changed. */
static bool has_moved(const struct stele_image *image)
{
	struct stele_copies now;

	return stele_copies_read(image->dev, &now) == 0 &&
	       stele_copies_compare(&image->copies, &now) == -ESTALE;
}

static bool is_no_answer(int error)
{
	return error == -ETIMEDOUT || error == -ESHUTDOWN;
}

static int stop(struct stele_check *check, int error)
{
	pthread_mutex_lock(&check->lock);
	if (!check->stopped)
		check->stopped = error;
	error = check->stopped;
	pthread_mutex_unlock(&check->lock);
	return error;
}

int stele_check_read(struct stele_check *check, void *data, uint64_t offset,
		     uint64_t size)
{
	int ret = stop(check, 0);

	if (is_no_answer(ret))
		return ret;
	ret = stele_device_read(check->image->dev, data, offset, size);
	if (is_no_answer(ret))
		stop(check, ret);
	return ret;
}

void stele_check_damage(struct stele_check *check,
			const struct stele_damage *damage)
{
	int stopped = stop(check, is_no_answer(damage->error) ? damage->error : 0);

	if (!stopped && damage->error && has_moved(check->image))
		stopped = stop(check, -EAGAIN);
	if (stopped)
		return;
	pthread_mutex_lock(&check->lock);
	check->report->damaged += damage->error != 0;
	check->report->notes += damage->error == 0;
	if (check->opts->damage) {
		struct stele_damage told = *damage;

		told.size = sizeof(told);
		check->opts->damage(check->opts->damage_user, &told);
	}
	pthread_mutex_unlock(&check->lock);
}

void stele_check_report(struct stele_check *check, int error, const char *what,
			uint64_t offset, uint64_t size, const char *format, ...)
{
	struct stele_damage damage = {
		/* The image is ours, so its block was. */
		.error = error == -EMEDIUMTYPE ? -EBADMSG : error, .what = what,
		.snapshot = check->within, .offset = offset, .item_size = size,
	};
	char detail[256];
	va_list args;

	va_start(args, format);
	vsnprintf(detail, sizeof(detail), format, args);
	va_end(args);
	damage.detail = detail;
	stele_check_damage(check, &damage);
}

int stele_check_progress(struct stele_check *check, uint64_t bytes,
			 uint64_t blocks, uint64_t samples)
{
	const struct stele_verify_opts *opts = check->opts;
	struct stele_verify_report *report = check->report;
	int stop = 0, stopped;

	pthread_mutex_lock(&check->lock);
	stopped = check->stopped;
	report->bytes += bytes;
	report->blocks += blocks;
	report->samples += samples;
	if (report->bytes > check->bytes_total)
		check->bytes_total = report->bytes;
	if (report->samples > check->samples_total)
		check->samples_total = report->samples;
	if (opts->progress)
		stop = opts->progress(opts->progress_user,
				      &(struct stele_progress){
					      .size = sizeof(struct stele_progress),
					      .phase = STELE_PHASE_VERIFY,
					      .samples_done = report->samples,
					      .samples_total = check->samples_total,
					      .bytes_done = report->bytes,
					      .bytes_total = check->bytes_total,
				      });
	pthread_mutex_unlock(&check->lock);
	if (stop)
		return -ECANCELED;
	return stopped;
}

/* Of one piece, [offset, offset + size) within the blocks read at `start`. */
static void check_zero_piece(struct stele_check *check, void *buffer,
			     uint64_t start, uint64_t read_size,
			     uint64_t offset, uint64_t size)
{
	const uint8_t *data = (const uint8_t *)buffer + (offset - start);
	uint64_t zeros = 0;
	int ret;

	ret = stele_check_read(check, buffer, start, read_size);
	if (ret < 0) {
		stele_check_report(check, ret, "padding", offset, size,
				   "cannot be read");
		return;
	}
	if (bytes_zero(data, size))
		return;
	while (!data[zeros])
		zeros++;
	stele_check_report(check, -EUCLEAN, "padding", offset + zeros,
			   size - zeros, "0x%02x, expected 0x00", data[zeros]);
}

int stele_check_zero(struct stele_check *check, uint64_t offset, uint64_t size)
{
	const uint64_t end = offset + size;
	uint64_t most = round_up(size, STELE_BLOCK_SIZE) + STELE_BLOCK_SIZE;
	void *buffer;
	int ret = 0;

	if (size == 0)
		return 0;
	if (most > ZERO_BUFFER_SIZE)
		most = ZERO_BUFFER_SIZE;
	buffer = stele_device_alloc(check->image->dev, most);
	if (!buffer)
		return -ENOMEM;
	while (offset < end && ret == 0) {
		uint64_t start = round_down(offset, STELE_BLOCK_SIZE);
		uint64_t stop = round_up(end, STELE_BLOCK_SIZE);

		if (stop - start > most)
			stop = start + most;
		size = (stop < end ? stop : end) - offset;
		check_zero_piece(check, buffer, start, stop - start, offset,
				 size);
		ret = stele_check_progress(check, size, 0, 0);
		offset += size;
	}
	free(buffer);
	return ret;
}

uint64_t stele_check_key_hash(const char *key, size_t size)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (uint8_t)key[i]) * UINT64_C(0x100000001b3);
	return hash;
}
