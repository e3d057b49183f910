/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack.c - one field of all samples of a batch as one tensor
 *
 * Scalars, bytes or tensors, which must all have the first one's shape. One copy, without
 * the GIL.
 */
#include "py.h"

/* One field of one sample: its bytes and shape. */
struct piece {
	const void *data;
	uint64_t size, dims[1 + STELE_RANK_MAX];
	uint32_t dtype, rank; /* rank and dims without the batch's */
	int64_t scalar;
};

static int load_piece(const struct py_entry *entry, uint32_t index,
		      struct piece *piece)
{
	const struct stele_field *field = &entry->core->fields[index];
	const struct stele_sample *sample = &entry->sample;
	int ret;

	*piece = (struct piece){.data = &piece->scalar, .size = 8};
	if (field->type == STELE_TYPE_I64) {
		piece->dtype = STELE_DTYPE_I64;
		return stele_sample_i64(sample, index, &piece->scalar);
	}
	if (field->type == STELE_TYPE_F64) {
		double value;

		piece->dtype = STELE_DTYPE_F64;
		ret = stele_sample_f64(sample, index, &value);
		memcpy(&piece->scalar, &value, sizeof(value));
		return ret;
	}
	ret = stele_sample_bytes(sample, index, &piece->data, &piece->size);
	piece->dtype = STELE_DTYPE_U8;
	piece->rank = 1;
	piece->dims[1] = piece->size;
	if (ret || field->type != STELE_TYPE_TENSOR)
		return ret;
	piece->dtype = field->dtype;
	ret = stele_sample_shape(sample, index, piece->dims + 1);
	piece->rank = ret < 0 ? 0 : (uint32_t)ret;
	return ret < 0 ? ret : 0;
}

static int is_like(const struct piece *a, const struct piece *b)
{
	return a->size == b->size && a->dtype == b->dtype && a->rank == b->rank &&
	       !memcmp(a->dims + 1, b->dims + 1, b->rank * sizeof(*b->dims));
}

/* Return: 0; -EDOM (another shape, of sample *at); errors of the library. */
static int copy_pieces(const struct py_block *block, uint32_t index,
		       const struct piece *first, char *to, size_t *at)
{
	struct piece piece;
	int err;

	for (size_t i = 0; i < block->count; i++, to += first->size) {
		*at = i;
		err = load_piece(&block->entries[i], index, &piece);
		if (err)
			return err;
		if (!is_like(first, &piece))
			return -EDOM;
		memcpy(to, piece.data, piece.size);
	}
	return 0;
}

/* Which field is it, of all their datasets? -1: an exception. */
static int common_index(const struct py_block *block, PyObject *field)
{
	const struct py_core *core = block->entries[0].core;
	int index = py_field_index(core, field);

	for (size_t i = 1; index >= 0 && i < block->count; i++) {
		if (block->entries[i].core == core ||
		    py_field_index(block->entries[i].core, field) == index)
			continue;
		if (!PyErr_Occurred())
			PyErr_SetString(PyExc_ValueError,
					"the datasets have different fields");
		return -1;
	}
	return index;
}

static PyObject *stack(struct py_block *block, PyObject *field, uint32_t index,
		       struct piece *first)
{
	struct py_entry *to;
	size_t at = 0, size;
	int err;

	if (__builtin_mul_overflow(first->size, block->count, &size))
		return PyErr_NoMemory();
	to = py_piece_new(block, size);
	if (!to)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	err = copy_pieces(block, index, first, to->block->memory, &at);
	Py_END_ALLOW_THREADS
	if (!err) {
		first->dims[0] = block->count;
		return py_piece_tensor(to, size, first->dtype, first->rank + 1,
				       first->dims);
	}
	py_block_unref(to->block);
	if (err != -EDOM)
		return py_raise(err, NULL);
	return PyErr_Format(PyExc_ValueError,
			    "cannot stack field %R: samples %zd and 0 of the batch "
			    "have different shapes or dtypes", field, (Py_ssize_t)at);
}

PyObject *py_stack(struct py_block *block, PyObject *field)
{
	struct piece first;
	int index, err;

	if (!block->count) {
		PyErr_SetString(PyExc_ValueError, "the batch is empty");
		return NULL;
	}
	index = common_index(block, field);
	if (index < 0 || !py_block_check(block))
		return NULL;
	err = load_piece(&block->entries[0], (uint32_t)index, &first);
	if (err)
		return py_raise(err, NULL);
	if (first.rank == STELE_RANK_MAX)
		return PyErr_Format(PyExc_ValueError, "%R has too many dimensions to stack",
				    field);
	return stack(block, field, (uint32_t)index, &first);
}
