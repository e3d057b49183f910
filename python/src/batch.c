/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c - Batch: samples that belong together, as a sequence or in one piece
 *
 * Samples are made as they are asked for. `buffer` and `stack` copy once, into one
 * allocation from the pool, without the GIL: native decoders want one address, and
 * tensors one shape.
 */
#include "py.h"

struct batch {
	struct py_state *state;
	struct py_block *block;
	struct py_batch_info info;
	PyObject *buffer; /* a Tensor, once it was asked for; under py_lock */
	atomic_int used;  /* somebody looked at it */
};

static struct batch *batch_of(PyObject *self)
{
	struct batch *batch = py_data(self);

	atomic_store_explicit(&batch->used, 1, memory_order_relaxed);
	return batch;
}

PyObject *py_batch_new(struct py_state *state, struct py_block *block,
		       const struct py_batch_info *info)
{
	PyObject *self = (PyObject *)PyObject_New(PyObject, state->batch);

	if (self)
		*(struct batch *)py_data(self) = (struct batch){
			.state = state, .block = block, .info = *info};
	else
		py_block_unref(block);
	return self;
}

/*
 * A signal handler may raise after next() has returned a batch, and before the caller has
 * stored it: then it goes here, unseen, and with the exception on its way.
 */
static void batch_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	struct batch *batch = py_data(self);

	if (!atomic_load(&batch->used) && PyErr_Occurred())
		py_lender_uncount(batch->block, batch->info.number);
	Py_XDECREF(batch->buffer);
	py_block_unref(batch->block);
	PyObject_Free(self);
	Py_DECREF(type);
}

/* ---- a sequence ------------------------------------------------------------------- */

static Py_ssize_t batch_length(PyObject *self)
{
	return (Py_ssize_t)batch_of(self)->block->count;
}

static PyObject *batch_item(PyObject *self, Py_ssize_t index)
{
	struct batch *batch = batch_of(self);

	if (index < 0 || (size_t)index >= batch->block->count) {
		PyErr_SetString(PyExc_IndexError, "the batch has fewer samples");
		return NULL;
	}
	py_block_ref(batch->block, 1);
	return py_sample_new(batch->state, &batch->block->entries[index]);
}

static PyObject *batch_subscript(PyObject *self, PyObject *which)
{
	Py_ssize_t count = batch_length(self), index;
	PyObject *list, *part;

	if (PyIndex_Check(which)) {
		index = PyNumber_AsSsize_t(which, NULL); /* at most the largest */
		if (index == -1 && PyErr_Occurred())
			return NULL;
		return batch_item(self, index < 0 ? index + count : index);
	}
	list = py_sample_list(batch_of(self)->state, batch_of(self)->block);
	if (!list)
		return NULL;
	part = PyObject_GetItem(list, which);
	Py_DECREF(list);
	return part;
}

/* ---- in one piece --------------------------------------------------------------------- */

struct py_entry *py_piece_new(const struct py_block *block, size_t size)
{
	struct py_block *piece;

	if (!block->count) {
		PyErr_SetString(PyExc_ValueError, "the batch is empty");
		return NULL;
	}
	if (!py_block_check(block))
		return NULL;
	piece = py_block_new(block->entries[0].core, 1);
	if (!piece || py_block_allocate(piece, size)) {
		if (piece)
			py_block_unref(piece);
		PyErr_NoMemory();
		return NULL;
	}
	piece->entries[0] = (struct py_entry){
		.block = piece, .core = block->entries[0].core};
	return &piece->entries[0];
}

PyObject *py_piece_tensor(struct py_entry *piece, size_t size, uint32_t dtype,
			  uint32_t rank, const uint64_t *dims)
{
	PyObject *tensor = py_tensor_new(piece, piece->block->memory, size, dtype,
					 rank, dims);

	py_block_unref(piece->block);
	return tensor;
}

static PyObject *view_of(PyObject *tensor)
{
	PyObject *view = tensor ? PyMemoryView_FromObject(tensor) : NULL;

	Py_XDECREF(tensor);
	return view;
}

static uint64_t total_size(const struct py_block *block)
{
	uint64_t total = 0;

	for (size_t i = 0; i < block->count; i++)
		total += block->entries[i].sample.size;
	return total;
}

static void copy_samples(const struct py_block *block, char *to)
{
	for (size_t i = 0; i < block->count; i++) {
		const struct stele_sample *sample = &block->entries[i].sample;

		memcpy(to, sample->data, sample->size);
		to += sample->size;
	}
}

/* As a tensor of all bytes. */
static PyObject *gather(const struct batch *batch)
{
	const uint64_t total = total_size(batch->block);
	struct py_entry *piece = py_piece_new(batch->block, total);

	if (!piece)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	copy_samples(batch->block, piece->block->memory);
	Py_END_ALLOW_THREADS
	return py_piece_tensor(piece, total, STELE_DTYPE_U8, 1, &total);
}

/* The same into the caller's memory. */
static PyObject *batch_readinto(PyObject *self, PyObject *to)
{
	const struct py_block *block = batch_of(self)->block;
	const uint64_t total = total_size(block);
	Py_buffer view;

	if (!py_block_check(block) || PyObject_GetBuffer(to, &view, PyBUF_WRITABLE))
		return NULL;
	if ((uint64_t)view.len < total) {
		PyErr_Format(PyExc_ValueError, "%zd bytes, and the batch has %llu",
			     view.len, (unsigned long long)total);
		PyBuffer_Release(&view);
		return NULL;
	}
	Py_BEGIN_ALLOW_THREADS
	copy_samples(block, view.buf);
	Py_END_ALLOW_THREADS
	PyBuffer_Release(&view);
	return PyLong_FromUnsignedLongLong(total);
}

/*
 * The first of those that threads make at once is everybody's; but each call has a
 * memoryview of its own, because they may not be shared by threads before Python 3.14.
 */
static PyObject *batch_buffer(PyObject *self, void *unused)
{
	struct batch *batch = batch_of(self);
	PyObject *buffer, *mine;

	(void)unused;
	pthread_mutex_lock(&py_lock);
	buffer = Py_XNewRef(batch->buffer);
	pthread_mutex_unlock(&py_lock);
	if (buffer)
		return view_of(buffer);
	mine = gather(batch);
	if (!mine)
		return NULL;
	pthread_mutex_lock(&py_lock);
	if (!batch->buffer)
		batch->buffer = Py_NewRef(mine);
	buffer = Py_NewRef(batch->buffer);
	pthread_mutex_unlock(&py_lock);
	Py_DECREF(mine);
	return view_of(buffer);
}

typedef uint64_t (*figure_fn)(const struct stele_sample *sample, uint64_t *sum);

static uint64_t offset_figure(const struct stele_sample *sample, uint64_t *sum)
{
	uint64_t before = *sum;

	*sum += sample->size;
	return before;
}

static uint64_t size_figure(const struct stele_sample *sample, uint64_t *sum)
{
	(void)sum;
	return sample->size;
}

static uint64_t id_figure(const struct stele_sample *sample, uint64_t *sum)
{
	(void)sum;
	return sample->id;
}

/* A number for each sample, and the sum at the end if `ends`. */
static PyObject *figures(const struct batch *batch, figure_fn figure, int ends)
{
	const struct py_block *block = batch->block;
	uint64_t count = block->count + (uint64_t)ends, sum = 0, *values;
	struct py_entry *piece = py_piece_new(batch->block, count * sizeof(*values));

	if (!piece)
		return NULL;
	values = piece->block->memory;
	for (size_t i = 0; i < block->count; i++)
		values[i] = figure(&block->entries[i].sample, &sum);
	if (ends)
		values[block->count] = sum;
	return view_of(py_piece_tensor(piece, count * sizeof(*values), STELE_DTYPE_I64,
				  1, &count));
}

static PyObject *batch_offsets(PyObject *self, void *unused)
{
	(void)unused;
	return figures(batch_of(self), offset_figure, 1);
}

static PyObject *batch_sizes(PyObject *self, void *unused)
{
	(void)unused;
	return figures(batch_of(self), size_figure, 0);
}

static PyObject *batch_ids(PyObject *self, void *unused)
{
	(void)unused;
	return figures(batch_of(self), id_figure, 0);
}

/* ---- what it is --------------------------------------------------------------------------- */

static PyObject *batch_samples(PyObject *self, PyObject *unused)
{
	(void)unused;
	return py_sample_list(batch_of(self)->state, batch_of(self)->block);
}

enum figure { EPOCH, STEP, PADDED, SKIPPED };

static PyObject *batch_figure(PyObject *self, void *which)
{
	const struct py_batch_info *info = &batch_of(self)->info;
	const uint64_t values[] = {
		[EPOCH] = info->epoch,
		[STEP] = info->step,
		[PADDED] = info->padded,
		[SKIPPED] = info->skipped,
	};

	return PyLong_FromUnsignedLongLong(values[(uintptr_t)which]);
}

static PyObject *batch_stack(PyObject *self, PyObject *field)
{
	return py_stack(batch_of(self)->block, field);
}

static PyObject *batch_repr(PyObject *self)
{
	const struct batch *batch = batch_of(self);

	return PyUnicode_FromFormat("<stele.Batch %llu of epoch %llu, %zd samples>",
				    (unsigned long long)batch->info.step,
				    (unsigned long long)batch->info.epoch,
				    batch_length(self));
}

static PyMethodDef methods[] = {
	{"__reduce__", py_no_pickle, METH_NOARGS, NULL},
	{"samples", batch_samples, METH_NOARGS,
	 "samples($self, /)\n--\n\nAll samples as a list."},
	{"readinto", batch_readinto, METH_O,
	 "readinto($self, buffer, /)\n--\n\n"
	 "Copy what `buffer` would be into writable memory: a bytearray, a NumPy array, also that\n"
	 "of a pinned tensor, tensor.numpy().\n\n"
	 "Returns the number of bytes; ValueError if they do not fit."},
	{"stack", batch_stack, METH_O,
	 "stack($self, field, /)\n--\n\n"
	 "One field of all samples as a Tensor of shape (len(self), *shape): int64 and\n"
	 "float64 of scalars, uint8 of bytes. One copy. ValueError if shapes differ."},
	{0},
};

static PyGetSetDef members[] = {
	{"buffer", batch_buffer, NULL,
	 "The bytes of all samples, one after the other, as one memoryview: one copy, made\n"
	 "when it is first asked for. Sample i is buffer[offsets[i]:offsets[i + 1]].", NULL},
	{"offsets", batch_offsets, NULL,
	 "Where each sample begins in buffer, and the end: len(self) + 1 int64.", NULL},
	{"sizes", batch_sizes, NULL, "The bytes of each sample: len(self) int64.", NULL},
	{"ids", batch_ids, NULL, "The id of each sample: len(self) int64.", NULL},
	{"epoch", batch_figure, NULL, "Of the loader, from 0.", (void *)EPOCH},
	{"step", batch_figure, NULL,
	 "Its number in the epoch, from 0, also after a resume: how many whole steps of the\n"
	 "loader, of world_size * batch_size, come before it.", (void *)STEP},
	{"padded", batch_figure, NULL,
	 "How many samples at the end repeat some of the epoch's to fill its last step.",
	 (void *)PADDED},
	{"skipped", batch_figure, NULL,
	 "How many samples could not be read and were left out or replaced (on_error).",
	 (void *)SKIPPED},
	{0},
};

static PyType_Slot slots[] = {
	{Py_tp_doc,
	 "A sequence of samples that were read together.\n\n"
	 "Its memory goes back to the loader when the batch, its samples and all views of\n"
	 "them are gone; holding it never stops a loader."},
	{Py_tp_dealloc, batch_dealloc},
	{Py_tp_repr, batch_repr},
	{Py_sq_length, batch_length},
	{Py_sq_item, batch_item},
	{Py_mp_length, batch_length},
	{Py_mp_subscript, batch_subscript},
	{Py_tp_methods, methods},
	{Py_tp_getset, members},
	{0, NULL},
};

PyType_Spec py_batch_spec = {
	.name = "stele.Batch",
	.basicsize = PY_SIZE(struct batch),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
		 Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
