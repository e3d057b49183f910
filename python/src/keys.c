/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c - keys as Python strings, and Keys: an iterator over keys and ids in byte order
 *
 * A cursor belongs to one thread at a time, so a lock of its own goes with it. Keys are
 * fetched CHUNK at a time without the GIL; so the lock is never held while waiting for it.
 */
#include "py.h"

#include <stdlib.h>

#define CHUNK 256u

PyObject *py_key_str(const char *key, size_t size)
{
	return PyUnicode_DecodeUTF8(key, (Py_ssize_t)size, "surrogateescape");
}

PyObject *py_key_bytes(PyObject *key)
{
	if (PyBytes_Check(key))
		return Py_NewRef(key);
	if (!PyUnicode_Check(key))
		return PyErr_Format(PyExc_TypeError, "a key is str or bytes, not %R",
				    Py_TYPE(key));
	return PyUnicode_AsEncodedString(key, "utf-8", "surrogateescape");
}

/* ---- Keys --------------------------------------------------------------------------- */

struct key {
	uint64_t id;
	uint32_t offset, size; /* in text */
};

struct keys {
	pthread_mutex_t lock;
	struct py_core *core;
	struct stele_cursor *cursor;
	int error;
	char *message; /* of the error, whichever thread found it */
	unsigned int next, count;
	char *text;
	size_t text_size;
	struct key list[CHUNK];
};

struct object {
	struct keys *keys;
};

static struct keys *keys_of(PyObject *self)
{
	return ((struct object *)py_data(self))->keys;
}

static void keys_free(struct keys *keys)
{
	stele_cursor_close(keys->cursor);
	py_core_unref(keys->core);
	pthread_mutex_destroy(&keys->lock);
	free(keys->text);
	free(keys->message);
	free(keys);
}

static PyObject *open_keys(struct py_core *core, const char *prefix, size_t size)
{
	struct keys *keys = calloc(1, sizeof(*keys));
	PyObject *self;
	int err;

	if (!keys)
		return PyErr_NoMemory();
	pthread_mutex_init(&keys->lock, NULL);
	keys->core = py_core_ref(core);
	Py_BEGIN_ALLOW_THREADS
	err = stele_cursor_open(core->ds, prefix, size, &keys->cursor);
	Py_END_ALLOW_THREADS
	if (err) {
		keys_free(keys);
		return py_raise(err, NULL);
	}
	self = (PyObject *)PyObject_New(PyObject, core->state->keys);
	if (self)
		((struct object *)py_data(self))->keys = keys;
	else
		keys_free(keys);
	return self;
}

PyObject *py_keys_new(struct py_core *core, PyObject *prefix)
{
	PyObject *bytes = py_key_bytes(prefix), *keys = NULL;
	Py_ssize_t size;
	char *data;

	if (bytes && !PyBytes_AsStringAndSize(bytes, &data, &size))
		keys = open_keys(core, data, (size_t)size);
	Py_XDECREF(bytes);
	return keys;
}

static void keys_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	keys_free(keys_of(self));
	PyObject_Free(self);
	Py_DECREF(type);
}

/* Return: 0; -ENOMEM. */
static int add(struct keys *keys, size_t *used, const struct stele_cursor_entry *entry)
{
	size_t needed = *used + entry->key_size;

	if (needed > keys->text_size) {
		size_t size = 2 * needed + CHUNK * 32;
		char *text = realloc(keys->text, size);

		if (!text)
			return -ENOMEM;
		keys->text = text;
		keys->text_size = size;
	}
	memcpy(keys->text + *used, entry->key, entry->key_size);
	keys->list[keys->count++] = (struct key){
		.id = entry->id,
		.offset = (uint32_t)*used,
		.size = (uint32_t)entry->key_size,
	};
	*used = needed;
	return 0;
}

static void fetch(struct keys *keys)
{
	struct stele_cursor_entry entry;
	size_t used = 0;
	int ret = 0;

	keys->next = keys->count = 0;
	while (keys->count < CHUNK &&
	       (ret = stele_cursor_next(keys->cursor, &entry)) > 0) {
		ret = add(keys, &used, &entry);
		if (ret)
			break;
	}
	if (ret < 0) {
		keys->error = ret;
		keys->message = strdup(stele_errmsg());
	}
}

/* A copy of the next one: what is done with it may come back here. 0: there is none. */
static int take(struct keys *keys, char *text, struct key *key, int *error)
{
	int there;

	pthread_mutex_lock(&keys->lock);
	if (keys->next == keys->count && !keys->error)
		fetch(keys);
	there = keys->next < keys->count;
	if (there) {
		*key = keys->list[keys->next++];
		memcpy(text, keys->text + key->offset, key->size);
	}
	*error = there ? 0 : keys->error;
	pthread_mutex_unlock(&keys->lock);
	return there;
}

static PyObject *keys_next(PyObject *self)
{
	char text[STELE_KEY_SIZE_MAX];
	struct key key;
	int there, error;

	Py_BEGIN_ALLOW_THREADS
	there = take(keys_of(self), text, &key, &error);
	Py_END_ALLOW_THREADS
	py_log_tell(&keys_of(self)->core->log);
	if (there) {
		PyObject *name = py_key_str(text, key.size);

		return name ? Py_BuildValue("(NK)", name, (unsigned long long)key.id) :
			      NULL;
	}
	if (error) /* which is final: nobody changes the message any more */
		py_raise(error, keys_of(self)->message ? keys_of(self)->message : "");
	return NULL;
}

static PyType_Slot slots[] = {
	{Py_tp_doc, "An iterator over (key, id) in byte order of the keys."},
	{Py_tp_dealloc, keys_dealloc},
	{Py_tp_iter, PyObject_SelfIter},
	{Py_tp_iternext, keys_next},
	{0, NULL},
};

PyType_Spec py_keys_spec = {
	.name = "stele._stele.Keys",
	.basicsize = PY_SIZE(struct object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
		 Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
