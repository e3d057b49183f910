/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datum.h - a Datum of Caffe: an image, as it is or encoded, and its class
 */
#ifndef STELE_CMD_FROM_DATUM_H
#define STELE_CMD_FROM_DATUM_H

#include "from/row.h"

/* Zero is what it does not have. */
struct datum {
	const uint8_t *data; /* in the message */
	size_t data_size;
	int32_t channels, height, width, label;
	bool has_shape, has_label;
	uint64_t floats; /* elements of float_data */
};

/* False: no Datum. */
bool datum_parse(const uint8_t *message, size_t size, struct datum *out);
/* Is it a Datum that has an image? */
bool datum_guess(const uint8_t *message, size_t size);

/*
 * It becomes a row, which has begun. `place`: of its bytes. Return: 0; negative errno (said).
 */
int datum_take(struct row *row, const uint8_t *message, size_t size, uint64_t place);

#endif
