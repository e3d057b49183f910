/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gunzip.h - bytes that gzip compressed, with the checksum at their end
 *
 * Members one behind the other are one stream, as gzip takes them; zeros that fill up
 * behind the last are left out.
 */
#ifndef STELE_CMD_FROM_GUNZIP_H
#define STELE_CMD_FROM_GUNZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return: how many of `size` bytes; 0: the end; negative errno. */
typedef int64_t (*gunzip_read_fn)(void *user, void *data, size_t size);

struct gunzip;

bool gunzip_detect(const uint8_t *data, size_t size);
/* Return: NULL: no memory. */
struct gunzip *gunzip_new(gunzip_read_fn read, void *user);
/* NULL is fine. */
void gunzip_free(struct gunzip *gunzip);
/*
 * What is before damage comes first, as far as it can be told. Return: how many bytes; 0: the end;
 * -EBADMSG (see gunzip_why()); errors of `read`.
 */
int64_t gunzip_read(struct gunzip *gunzip, void *data, size_t size);
const char *gunzip_why(const struct gunzip *gunzip);

#endif
