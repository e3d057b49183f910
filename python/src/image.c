/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.c - an image as a whole, and its snapshots, as dictionaries
 */
#include "py.h"

#include <stdlib.h>

static int add_note(PyObject *dict, const struct stele_image *image, uint32_t index,
		    uint32_t size)
{
	char *note = malloc((size_t)size + 1);
	PyObject *text;
	int err;

	if (!note) {
		PyErr_NoMemory();
		return -1;
	}
	err = stele_image_note(image, index, note, size);
	text = err ? py_raise(err, NULL) : py_key_str(note, size);
	free(note);
	err = text ? PyDict_SetItemString(dict, "note", text) : -1;
	Py_XDECREF(text);
	return err;
}

static PyObject *snapshot_dict(const struct stele_image *image, uint32_t index)
{
	struct stele_snapshot_info info = {.size = sizeof(info)};
	int err = stele_image_snapshot(image, index, &info);
	PyObject *dict;

	if (err)
		return py_raise(err, NULL);
	dict = PyDict_New();
	if (dict && (py_report(dict, &info, py_snapshot_report) ||
		     add_note(dict, image, index, info.note_size)))
		Py_CLEAR(dict);
	return dict;
}

static PyObject *snapshot_list(const struct stele_image *image, uint32_t count)
{
	PyObject *list = PyList_New((Py_ssize_t)count);

	for (uint32_t i = 0; list && i < count; i++) {
		PyObject *dict = snapshot_dict(image, i);

		if (!dict || PyList_SetItem(list, (Py_ssize_t)i, dict))
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *describe(const struct stele_image *image)
{
	struct stele_image_info info = {.size = sizeof(info)};
	int err = stele_image_info(image, &info);
	PyObject *dict, *list;

	if (err)
		return py_raise(err, NULL);
	dict = PyDict_New();
	list = dict ? snapshot_list(image, info.snapshot_count + info.deleted_count) : NULL;
	if (dict && (!list || py_report(dict, &info, py_image_report) ||
		     PyDict_SetItemString(dict, "snapshots", list)))
		Py_CLEAR(dict);
	Py_XDECREF(list);
	return dict;
}

PyObject *py_image(PyObject *module, PyObject *args)
{
	const char *target, *backend;
	struct stele_image *image;
	struct py_log log = {0};
	PyObject *dict;
	int err;

	(void)module;
	if (!PyArg_ParseTuple(args, "yz:image", &target, &backend))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	err = stele_image_open(target,
			       &STELE_OPTS(stele_open_opts, .log = py_log_add,
					   .log_user = &log, .backend = backend),
			       &image);
	Py_END_ALLOW_THREADS
	dict = err ? py_raise(err, NULL) : describe(image);
	if (!err)
		stele_image_close(image);
	py_log_tell(&log);
	return dict;
}
