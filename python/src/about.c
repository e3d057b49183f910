/* SPDX-License-Identifier: Apache-2.0 */
/*
 * about.c - what a Dataset tells without reading samples
 */
#include "py.h"

PyObject *py_dataset_fields(PyObject *self, PyObject *unused)
{
	struct py_core *core = py_dataset_enter(self);
	PyObject *list;

	(void)unused;
	if (!core)
		return NULL;
	list = PyList_New(core->field_count);
	for (uint32_t i = 0; list && i < core->field_count; i++) {
		PyObject *field = py_field_tuple(&core->fields[i]);

		if (!field || PyList_SetItem(list, i, field))
			Py_CLEAR(list);
	}
	py_dataset_leave(core);
	return list;
}

PyObject *py_dataset_info(PyObject *self, PyObject *unused)
{
	struct py_core *core = py_dataset_enter(self);
	PyObject *info;

	(void)unused;
	if (!core)
		return NULL;
	info = PyDict_New();
	if (info && (py_report_str(info, "target", core->target) ||
		     py_report(info, &core->info, py_info_report)))
		Py_CLEAR(info);
	py_dataset_leave(core);
	return info;
}

PyObject *py_dataset_stats(PyObject *self, PyObject *unused)
{
	struct py_core *core = py_dataset_enter(self);
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	PyObject *dict;
	uint64_t rounds;

	(void)unused;
	if (!core)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	py_service_stats(core, &stats, &rounds);
	Py_END_ALLOW_THREADS
	dict = PyDict_New();
	if (dict && (py_report(dict, &stats, py_reader_report) ||
		     py_report_u64(dict, "rounds", rounds) ||
		     py_report_u64(dict, "direct", atomic_load(&core->direct)) ||
		     py_report_u64(dict, "held_bytes", atomic_load(&core->held)) ||
		     py_report_u64(dict, "held_blocks", atomic_load(&core->blocks))))
		Py_CLEAR(dict);
	py_dataset_leave(core);
	return dict;
}

PyObject *py_dataset_column(PyObject *self, PyObject *name)
{
	struct py_core *core = py_dataset_enter(self);
	PyObject *bytes = NULL;
	int index, err = 0;

	if (!core)
		return NULL;
	index = py_field_index(core, name);
	if (index >= 0)
		bytes = PyByteArray_FromStringAndSize(
			NULL, (Py_ssize_t)core->info.sample_count * 8);
	if (bytes) {
		char *values = PyByteArray_AsString(bytes);

		Py_BEGIN_ALLOW_THREADS
		err = stele_dataset_column(core->ds, (uint32_t)index, 0,
					   core->info.sample_count, values);
		Py_END_ALLOW_THREADS
	}
	if (err) {
		Py_CLEAR(bytes);
		py_raise(err, NULL);
	}
	py_dataset_leave(core);
	return bytes;
}

PyObject *py_dataset_key(PyObject *self, PyObject *index)
{
	struct py_core *core = py_dataset_enter(self);
	char key[STELE_KEY_SIZE_MAX];
	size_t size = 0;
	uint64_t id;
	int err;

	if (!core)
		return NULL;
	id = PyLong_AsUnsignedLongLong(index);
	Py_BEGIN_ALLOW_THREADS
	err = stele_dataset_key(core->ds, id, key, &size);
	Py_END_ALLOW_THREADS
	py_dataset_leave(core);
	if (PyErr_Occurred())
		return NULL;
	return err ? py_raise(err, NULL) : py_key_str(key, size);
}
