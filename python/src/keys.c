/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c - Keys: an iterator over keys and ids in byte order
 *
 * A cursor belongs to one thread at a time, so a lock of its own goes with it. Keys are
 * fetched CHUNK at a time without the GIL; so the lock is never held while waiting for it.
 */
#include "py.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK 256u

struct key {
	uint64_t id;
	uint32_t offset, size; /* in text */
};

struct keys {
	pthread_mutex_t lock;
	struct py_core *core;
	struct stele_cursor *cursor;
	int error;
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
	free(keys);
}

PyObject *py_keys_new(struct py_core *core, const char *prefix, size_t size)
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
	if (ret < 0)
		keys->error = ret;
}

static PyObject *keys_next(PyObject *self)
{
	struct keys *keys = keys_of(self);
	PyObject *item = NULL;
	int error = 0;

	Py_BEGIN_ALLOW_THREADS
	pthread_mutex_lock(&keys->lock);
	if (keys->next == keys->count && !keys->error)
		fetch(keys);
	Py_END_ALLOW_THREADS
	if (keys->next < keys->count) {
		const struct key *key = &keys->list[keys->next++];
		PyObject *text = py_key_str(keys->text + key->offset, key->size);

		if (text)
			item = Py_BuildValue("(NK)", text,
					     (unsigned long long)key->id);
	} else {
		error = keys->error;
	}
	pthread_mutex_unlock(&keys->lock);
	return error ? py_raise(error, error == -ENOMEM ? NULL : stele_strerror(error)) :
		       item;
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
