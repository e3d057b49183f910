/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gunzip.c - inflate with isa-l, member by member
 */
#include "from/gunzip.h"

#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>

#define INPUT_SIZE ((size_t)128 << 10)
#define MAGIC	   0x1f /* first byte of a member */

struct gunzip {
	gunzip_read_fn read;
	void *user;
	bool ended; /* there is nothing more to read */
	int error;  /* of the stream, behind what was handed over before */
	const char *why;
	struct inflate_state state;
	uint8_t input[INPUT_SIZE];
};

bool gunzip_detect(const uint8_t *data, size_t size)
{
	return size >= 3 && data[0] == MAGIC && data[1] == 0x8b && data[2] == 8;
}

static void begin_member(struct gunzip *gunzip)
{
	struct inflate_state *state = &gunzip->state;
	uint8_t *next = state->next_in;
	const uint32_t left = state->avail_in;

	isal_inflate_init(state);
	state->crc_flag = ISAL_GZIP;
	state->next_in = next;
	state->avail_in = left;
}

struct gunzip *gunzip_new(gunzip_read_fn read, void *user)
{
	struct gunzip *gunzip = calloc(1, sizeof(*gunzip));

	if (!gunzip)
		return NULL;
	gunzip->read = read;
	gunzip->user = user;
	gunzip->why = "bad gzip data";
	begin_member(gunzip);
	return gunzip;
}

void gunzip_free(struct gunzip *gunzip)
{
	free(gunzip);
}

const char *gunzip_why(const struct gunzip *gunzip)
{
	return gunzip->why;
}

static int64_t wrong(struct gunzip *gunzip, const char *why)
{
	gunzip->why = why;
	return -EBADMSG;
}

/* Have some input, unless it has ended. */
static int fill(struct gunzip *gunzip)
{
	struct inflate_state *state = &gunzip->state;
	int64_t got;

	if (state->avail_in || gunzip->ended)
		return 0;
	got = gunzip->read(gunzip->user, gunzip->input, sizeof(gunzip->input));
	if (got < 0)
		return (int)got;
	gunzip->ended = !got;
	state->next_in = gunzip->input;
	state->avail_in = (uint32_t)got;
	return 0;
}

/* Behind a member: is there another one? */
static int next_member(struct gunzip *gunzip)
{
	struct inflate_state *state = &gunzip->state;

	for (;;) {
		int ret = fill(gunzip);

		if (ret || !state->avail_in)
			return ret;
		if (*state->next_in)
			break;
		state->next_in++;
		state->avail_in--;
	}
	if (*state->next_in != MAGIC) {
		gunzip->error = -EBADMSG;
		return (int)wrong(gunzip, "other bytes behind gzip data");
	}
	begin_member(gunzip);
	return 1;
}

static int inflate_some(struct gunzip *gunzip)
{
	struct inflate_state *state = &gunzip->state;
	int ret = fill(gunzip);

	if (ret)
		return ret;
	switch (isal_inflate(state)) {
	case ISAL_DECOMP_OK:
	case ISAL_END_INPUT:
		return 0;
	case ISAL_INCORRECT_CHECKSUM:
		return (int)wrong(gunzip, "gzip data with a wrong checksum");
	default:
		return (int)wrong(gunzip, "bad gzip data");
	}
}

int64_t gunzip_read(struct gunzip *gunzip, void *data, size_t size)
{
	struct inflate_state *state = &gunzip->state;
	const uint32_t room = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;

	if (gunzip->error)
		return gunzip->error;
	state->next_out = data;
	state->avail_out = room;
	while (state->avail_out == room) {
		const bool dry = gunzip->ended && !state->avail_in;
		int ret;

		if (state->block_state == ISAL_BLOCK_FINISH) {
			ret = next_member(gunzip);
			if (ret <= 0)
				return ret;
			state->next_out = data;
			state->avail_out = room;
		}
		ret = inflate_some(gunzip);
		if (ret == -EBADMSG)
			gunzip->error = ret;
		if (ret && (ret != -EBADMSG || state->avail_out == room))
			return ret;
		if (dry && state->avail_out == room &&
		    state->block_state != ISAL_BLOCK_FINISH)
			return wrong(gunzip, "truncated gzip data");
	}
	return room - state->avail_out;
}
