/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake.h - a source in memory that can lie, for tests of the write path
 *
 * Its files have bytes that depend on key and place alone. A file may turn out
 * shorter or longer than the scan said, or fail when opened or read.
 */
#ifndef STELE_TESTS_FAKE_H
#define STELE_TESTS_FAKE_H

#include "lib/source/source.h"

struct fake_file {
	char *key;
	uint64_t size;	     /* as scanned */
	uint64_t size_now;   /* as read */
	int64_t changed;     /* when, as scanned */
	uint8_t version;     /* of its bytes: fake_byte() ^ version */
	int open_error;	     /* negative errno */
	int read_error;	     /* when `read_good` bytes were read */
	uint64_t read_good;
};

struct fake {
	struct stele_source source;
	struct fake_file *files;
	size_t count;
	bool backwards;	  /* hand out the last one first */
	int scan_error;
	void (*on_open)(void *user); /* before each file; may be NULL */
	void *on_open_user;
	/* Before each read; the most that it may return. May be NULL. */
	size_t (*on_read)(void *user, uint64_t at);
	void *on_read_user;
	unsigned int opened;	   /* files open now; atomic */
	unsigned int opened_total; /* ever; atomic */
};

void fake_init(struct fake *fake);
void fake_release(struct fake *fake);
/* A file that is what it seems; change it through what is returned. */
struct fake_file *fake_add(struct fake *fake, const char *key, uint64_t size);
/* `count` files "NAME/%06u" whose sizes are spread over 0 to size_max. */
void fake_add_many(struct fake *fake, const char *name, unsigned int count,
		   uint64_t size_max);
/* Byte of a file at a place. */
uint8_t fake_byte(const char *key, size_t key_size, uint64_t at);

#endif
