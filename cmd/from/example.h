/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example.h - tf.train.Example: the features of a TFRecord
 *
 * A feature that has one integer or float in every record is a number; else it is a tensor,
 * whose dimension differs if its length does, and that is empty where it is missing. Of
 * bytes there is one string, or none, which is as an empty one.
 */
#ifndef STELE_CMD_FROM_EXAMPLE_H
#define STELE_CMD_FROM_EXAMPLE_H

#include "from/row.h"

/* Is it an Example, of one feature at least? A guess: what features have is not looked at. */
bool example_guess(const uint8_t *data, size_t size);

/*
 * A record becomes a row, which has begun at the record. `place`: of its bytes.
 * Return: 0; negative errno (said).
 */
int example_take(struct row *row, const uint8_t *data, size_t size, uint64_t place);

#endif
