/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build-cancel.c - a build is told to stop while it reads one large sample
 *
 * The source waits until progress has asked to stop, and then gives a byte at
 * a time: who reads on to the end of the sample is seen.
 */
#include "lib/ops/build.h"
#include "tests/fixture/fake.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#include <errno.h>
#include <pthread.h>

#define SAMPLE_SIZE (UINT64_C(64) << 20)
#define DEVICE_SIZE (UINT64_C(96) << 20)
#define FIRST_SIZE  (UINT64_C(1) << 20)

struct meeting {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool reading, asked;
	uint64_t bytes_told; /* when it was asked */
	uint64_t at;	     /* of the last read */
};

static int on_progress(void *user, const struct stele_progress *progress)
{
	struct meeting *meeting = user;
	bool asked;

	pthread_mutex_lock(&meeting->lock);
	if (meeting->reading && !meeting->asked) {
		meeting->bytes_told = progress->bytes_done;
		meeting->asked = true;
		pthread_cond_broadcast(&meeting->changed);
	}
	asked = meeting->asked;
	pthread_mutex_unlock(&meeting->lock);
	return asked;
}

static size_t on_read(void *user, uint64_t at)
{
	struct meeting *meeting = user;

	if (at < FIRST_SIZE)
		return FIRST_SIZE;
	pthread_mutex_lock(&meeting->lock);
	meeting->reading = true;
	meeting->at = at;
	while (!meeting->asked)
		pthread_cond_wait(&meeting->changed, &meeting->lock);
	pthread_mutex_unlock(&meeting->lock);
	return 1;
}

int main(void)
{
	struct meeting meeting = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
	};
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_device *dev;
	struct fake fake;

	plan_lazy();
	fake_init(&fake);
	fake_add(&fake, "large", SAMPLE_SIZE);
	fake.on_read = on_read;
	fake.on_read_user = &meeting;
	dev = test_memory(DEVICE_SIZE, 512, 0);
	is_int(-ECANCELED,
	       stele_build_on(dev, &fake.source, "v1",
			      &STELE_OPTS(stele_build_opts,
					  .progress = on_progress,
					  .progress_user = &meeting),
			      &report),
	       "a build that was told to stop");
	ok(meeting.at < SAMPLE_SIZE - 1, "does not read its sample to the end");
	ok(meeting.bytes_told >= FIRST_SIZE, "progress tells of what was read");
	is_int(0, fake.opened, "the file was closed");
	stele_device_close(dev);
	fake_release(&fake);
	return done();
}
