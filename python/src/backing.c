/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backing.c - may a file be replaced?
 */
#include "py.h"

#include <fcntl.h>

PyObject *py_backing_check(PyObject *module, PyObject *args)
{
	struct stele_backing *backing = NULL;
	const char *path;
	int err;

	(void)module;
	if (!PyArg_ParseTuple(args, "y:backing_check", &path))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	err = stele_backing_open(NULL, &backing);
	if (!err)
		err = stele_backing_check(backing, AT_FDCWD, path, 0);
	stele_backing_close(backing);
	Py_END_ALLOW_THREADS
	if (err)
		return py_raise(err, NULL);
	Py_RETURN_NONE;
}
