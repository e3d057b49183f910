/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.c - Sample: the bytes of one sample and its fields, without a copy
 *
 * One pointer to an entry of a block. Training makes one for each sample that it reads,
 * so nothing else is made until it is asked for.
 */
#include "py.h"

struct sample {
	struct py_entry *entry;
};

static struct py_entry *entry_of(PyObject *self)
{
	return ((struct sample *)py_data(self))->entry;
}

int py_block_check(const struct py_block *block)
{
	if (!block->generation || block->generation == py_generation)
		return 1;
	PyErr_SetString(PyExc_BufferError,
			"the memory of a loader's batch exists only in the "
			"process that opened the loader");
	return 0;
}

PyObject *py_sample_new(struct py_state *state, struct py_entry *entry)
{
	PyObject *self = (PyObject *)PyObject_New(PyObject, state->sample);

	if (self)
		((struct sample *)py_data(self))->entry = entry;
	else
		py_block_unref(entry->block);
	return self;
}

PyObject *py_sample_list(struct py_state *state, struct py_block *block)
{
	PyObject *list = PyList_New((Py_ssize_t)block->count);

	if (!list)
		return NULL;
	py_block_ref(block, block->count);
	for (size_t i = 0; i < block->count; i++) {
		PyObject *item = py_sample_new(state, &block->entries[i]);

		if (!item) {
			/* Those that were not made do not hold it. */
			for (i++; i < block->count; i++)
				py_block_unref(block);
			Py_DECREF(list);
			return NULL;
		}
		PyList_SetItem(list, (Py_ssize_t)i, item);
	}
	return list;
}

static void sample_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	py_block_unref(entry_of(self)->block);
	PyObject_Free(self);
	Py_DECREF(type);
}

static int sample_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
	const struct py_entry *entry = entry_of(self);

	view->obj = NULL;
	if (!py_block_check(entry->block))
		return -1;
	return PyBuffer_FillInfo(view, self, (void *)entry->sample.data,
				 (Py_ssize_t)entry->sample.size,
				 entry->block->readonly, flags);
}

static Py_ssize_t sample_length(PyObject *self)
{
	return (Py_ssize_t)entry_of(self)->sample.size;
}

/* ---- fields ------------------------------------------------------------------- */

/*
 * Where elements lie at any byte, a copy that is aligned: PyTorch reads memory that others
 * lend as if it were, and crashes on complex128. Return: NULL with an exception.
 */
static PyObject *tensor_field(struct py_entry *entry, uint32_t index, uint32_t dtype,
			      const void *data, uint64_t size)
{
	const struct py_dtype *type = py_dtype(dtype);
	uint64_t dims[STELE_RANK_MAX];
	int rank = stele_sample_shape(&entry->sample, index, dims);
	struct py_entry *piece;

	if (!type)
		return NULL;
	if (rank < 0)
		return py_raise(rank, NULL);
	if ((uintptr_t)data % type->size == 0)
		return py_tensor_new(entry, data, size, dtype, (uint32_t)rank, dims);
	piece = py_piece_new(entry->block, size);
	if (!piece)
		return NULL;
	memcpy(piece->block->memory, data, size);
	piece->block->readonly = entry->block->readonly;
	return py_piece_tensor(piece, size, dtype, (uint32_t)rank, dims);
}

/* `text` as it is in the sample; NULL with an exception. */
static PyObject *bytes_field(struct py_entry *entry, uint32_t index,
			     const struct stele_field *field)
{
	PyObject *tensor, *view;
	const void *data;
	uint64_t size;
	int err = stele_sample_bytes(&entry->sample, index, &data, &size);

	if (err)
		return py_raise(err, NULL);
	if (field->type == STELE_TYPE_UTF8)
		return PyUnicode_DecodeUTF8(data, (Py_ssize_t)size, "strict");
	if (field->type == STELE_TYPE_TENSOR)
		return tensor_field(entry, index, field->dtype, data, size);
	tensor = py_tensor_new(entry, data, size, STELE_DTYPE_U8, 1, &size);
	if (!tensor)
		return NULL;
	view = PyMemoryView_FromObject(tensor);
	Py_DECREF(tensor);
	return view;
}

static PyObject *field_value(struct py_entry *entry, uint32_t index)
{
	const struct stele_field *field = &entry->core->fields[index];
	int64_t i64;
	double f64;
	int err;

	if (!py_block_check(entry->block))
		return NULL;
	switch (field->type) {
	case STELE_TYPE_I64:
		err = stele_sample_i64(&entry->sample, index, &i64);
		return err ? py_raise(err, NULL) : PyLong_FromLongLong(i64);
	case STELE_TYPE_F64:
		err = stele_sample_f64(&entry->sample, index, &f64);
		return err ? py_raise(err, NULL) : PyFloat_FromDouble(f64);
	default:
		return bytes_field(entry, index, field);
	}
}

static PyObject *sample_subscript(PyObject *self, PyObject *name)
{
	struct py_entry *entry = entry_of(self);
	int index = py_field_index(entry->core, name);

	return index < 0 ? NULL : field_value(entry, (uint32_t)index);
}

static PyObject *sample_class_name(PyObject *self, PyObject *args)
{
	struct py_entry *entry = entry_of(self);
	PyObject *name = NULL;
	const char *text;
	int64_t value;
	int index, err;

	if (!PyArg_ParseTuple(args, "|U:class_name", &name))
		return NULL;
	name = name ? Py_NewRef(name) : PyUnicode_FromString("label");
	if (!name || !py_block_check(entry->block)) {
		Py_XDECREF(name);
		return NULL;
	}
	index = py_field_index(entry->core, name);
	if (index >= 0 && !entry->core->fields[index].name_count &&
	    !entry->core->fields[index].names_damaged) {
		PyErr_Format(PyExc_TypeError, "field %R has no classes", name);
		index = -1;
	}
	Py_DECREF(name);
	if (index < 0)
		return NULL;
	err = stele_sample_i64(&entry->sample, (uint32_t)index, &value);
	if (!err)
		err = stele_dataset_class_name(entry->core->ds, (uint32_t)index,
					       value, &text);
	return err ? py_raise(err, NULL) : py_key_str(text, strlen(text));
}

PyObject *py_sample_class(PyObject *self, PyObject *name)
{
	struct py_entry *entry = entry_of(self);
	const int index = py_field_index(entry->core, name);
	const struct stele_field *field = &entry->core->fields[index < 0 ? 0 : index];
	const char *text;
	int64_t value;
	int err;

	if (index < 0)
		return NULL;
	if (!py_block_check(entry->block) || field->type != STELE_TYPE_I64)
		return field_value(entry, (uint32_t)index);
	err = stele_sample_i64(&entry->sample, (uint32_t)index, &value);
	/* Of names that are damaged, too: who has them gives them to a Writer. */
	if (!err && (value < 0 || value >= field->name_count))
		return PyLong_FromLongLong(value);
	if (!err)
		err = stele_dataset_class_name(entry->core->ds, (uint32_t)index, value, &text);
	return err ? py_raise(err, NULL) : py_key_str(text, strlen(text));
}

/* ---- what it is --------------------------------------------------------------- */

static PyObject *sample_id(PyObject *self, void *unused)
{
	(void)unused;
	return PyLong_FromUnsignedLongLong(entry_of(self)->sample.id);
}

static PyObject *sample_key(PyObject *self, void *unused)
{
	const struct py_entry *entry = entry_of(self);

	(void)unused;
	if (!py_block_check(entry->block))
		return NULL;
	return py_key_str(entry->sample.key, entry->sample.key_size);
}

static PyObject *sample_repr(PyObject *self)
{
	const struct stele_sample *sample = &entry_of(self)->sample;
	PyObject *key, *text;

	key = sample_key(self, NULL);
	if (!key)
		return NULL;
	text = PyUnicode_FromFormat("<stele.Sample %llu %R, %llu bytes>",
				    (unsigned long long)sample->id, key,
				    (unsigned long long)sample->size);
	Py_DECREF(key);
	return text;
}

static PyObject *sample_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
	const struct py_entry *entry = entry_of(self);
	const struct py_array bytes = {
		.block = entry->block,
		.data = entry->sample.data,
		.dtype = STELE_DTYPE_U8,
		.rank = 1,
		.dims = {(Py_ssize_t)entry->sample.size},
	};

	return py_dlpack(&bytes, args, kwargs);
}

static PyMethodDef methods[] = {
	{"class_name", sample_class_name, METH_VARARGS,
	 "class_name($self, field='label', /)\n--\n\n"
	 "The name of the class that an int field holds. stele.NotFound if that value has "
	 "none, as -1; TypeError for a field without classes."},
	{"numpy", py_asarray, METH_NOARGS,
	 "numpy($self, /)\n--\n\n"
	 "All bytes as a NumPy array of uint8, shape (len(self),), not copied."},
	{"__dlpack__", (PyCFunction)(void (*)(void))sample_dlpack,
	 METH_VARARGS | METH_KEYWORDS, NULL},
	{"__dlpack_device__", py_dlpack_device, METH_NOARGS, NULL},
	{"__reduce__", py_no_pickle, METH_NOARGS, NULL},
	{0},
};

static PyGetSetDef members[] = {
	{"id", sample_id, NULL, "Its id in the snapshot: 0 to sample_count - 1.", NULL},
	{"key", sample_key, NULL,
	 "Its name in the source; bytes that are no UTF-8 as lone surrogates.", NULL},
	{0},
};

static PyType_Slot slots[] = {
	{Py_tp_doc,
	 "One sample: its bytes, its key, its fields.\n\n"
	 "bytes(s), memoryview(s), numpy.frombuffer(s, 'u1'), torch.frombuffer(s, ...): all of\n"
	 "its bytes, without a copy but for the first. s['field']: int or float of a scalar,\n"
	 "str of text, memoryview of bytes, stele.Tensor of a tensor. The memory of all\n"
	 "samples that were read together is kept until the last view of any is gone. It may be\n"
	 "written to, which the image does not see, unless the dataset is open with mmap."},
	{Py_tp_dealloc, sample_dealloc},
	{Py_tp_repr, sample_repr},
	{Py_bf_getbuffer, sample_getbuffer},
	{Py_mp_length, sample_length},
	{Py_mp_subscript, sample_subscript},
	{Py_tp_methods, methods},
	{Py_tp_getset, members},
	{0, NULL},
};

PyType_Spec py_sample_spec = {
	.name = "stele.Sample",
	.basicsize = PY_SIZE(struct sample),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
		 Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
