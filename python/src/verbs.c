/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verbs.c - build, append, copy and the other verbs as one function
 *
 * run(verb, arguments, options, tell) -> report. Arguments are bytes or None, in the
 * order of the library's function, and keys after them; options and report have the names
 * of its structs. What is listed on the way (damage, differences, ...) is told.
 */
#include "py.h"

#include <stdlib.h>

/* What snapshot_create() and resize() take beside the options. */
struct change {
	struct stele_txn_opts opts;
	uint64_t size;
};

struct job {
	struct py_call call;
	const char **texts; /* the arguments, as strings ... */
	struct stele_key_ref *keys; /* ... and as keys */
	size_t count;
	union {
		struct stele_build_opts build;
		struct stele_append_opts append;
		struct stele_compact_opts compact;
		struct stele_copy_opts copy;
		struct stele_verify_opts verify;
		struct stele_open_opts open;
		struct change change;
	} opts;
	union {
		struct stele_build_report build;
		struct stele_copy_report copy;
		struct stele_verify_report verify;
		struct stele_gc_report gc;
		struct stele_resize_report resize;
		struct stele_snapshot_info snapshot;
	} report;
};

/* ---- options and reports ---------------------------------------------------------- */

#define LAYOUT(type)                                                               \
	PY_MEMBER(type, U64, memory_size), PY_MEMBER(type, U32, flags),            \
		PY_MEMBER(type, U32, granule), PY_MEMBER(type, U32, order),        \
		PY_MEMBER(type, U32, jobs), PY_MEMBER(type, U32, boundary),        \
		PY_MEMBER(type, TEXT, backend), PY_MEMBER(type, TEXT, note),       \
		PY_MEMBER(type, I64, time)

static const struct py_member build_options[] = {
	LAYOUT(stele_build_opts),
	PY_MEMBER(stele_build_opts, U32, label_from),
	PY_MEMBER(stele_build_opts, TEXT, label),
	PY_MEMBER(stele_build_opts, UUID, uuid),
	PY_MEMBER(stele_build_opts, U64, file_size),
	PY_MEMBER(stele_build_opts, U32, object_size),
	{0},
};

static const struct py_member append_options[] = {
	LAYOUT(stele_append_opts),
	PY_MEMBER(stele_append_opts, U32, label_from),
	PY_MEMBER(stele_append_opts, TEXT, base),
	PY_MEMBER(stele_append_opts, U64, file_size),
	{0},
};

static const struct py_member compact_options[] = {
	LAYOUT(stele_compact_opts),
	{0},
};

static const struct py_member copy_options[] = {
	PY_MEMBER(stele_copy_opts, TEXT, backend),
	PY_MEMBER(stele_copy_opts, TEXT, label),
	PY_MEMBER(stele_copy_opts, UUID, uuid),
	PY_MEMBER(stele_copy_opts, U64, file_size),
	PY_MEMBER(stele_copy_opts, I64, time),
	PY_MEMBER(stele_copy_opts, U32, jobs),
	PY_MEMBER(stele_copy_opts, U32, object_size),
	PY_MEMBER(stele_copy_opts, U32, flags),
	{0},
};

static const struct py_member verify_options[] = {
	PY_MEMBER(stele_verify_opts, TEXT, backend),
	PY_MEMBER(stele_verify_opts, U32, jobs),
	{0},
};

static const struct py_member open_options[] = {
	PY_MEMBER(stele_open_opts, TEXT, backend),
	PY_MEMBER(stele_open_opts, U32, verify),
	{0},
};

static const struct py_member change_options[] = {
	{"backend", PY_TEXT, offsetof(struct change, opts.backend)},
	{"time", PY_I64, offsetof(struct change, opts.time)},
	{"grace", PY_U64, offsetof(struct change, opts.grace)},
	{"flags", PY_U32, offsetof(struct change, opts.flags)},
	{"size", PY_U64, offsetof(struct change, size)},
	{0},
};

static const struct py_member build_report[] = {
#define MEMBER(kind, name) PY_MEMBER(stele_build_report, kind, name)
	MEMBER(NAME, snapshot),	     MEMBER(NAME, base),
	MEMBER(UUID, uuid),	     MEMBER(DIGEST, digest),
	MEMBER(U64, sample_count),   MEMBER(U64, added),
	MEMBER(U64, updated),	     MEMBER(U64, deleted),
	MEMBER(U64, unchanged),	     MEMBER(U64, written_count),
	MEMBER(U64, written_size),   MEMBER(U64, payload_size),
	MEMBER(U64, slots_size),     MEMBER(U64, padding_size),
	MEMBER(U64, image_end),	     MEMBER(U64, target_size),
	MEMBER(U32, run_count),	     MEMBER(U32, granule),
	MEMBER(U32, class_count),    MEMBER(U32, created),
	MEMBER(F64, scan_seconds),   MEMBER(F64, write_seconds),
	MEMBER(F64, total_seconds),
	{0},
#undef MEMBER
};

static const struct py_member copy_report[] = {
	PY_MEMBER(stele_copy_report, NAME, snapshot),
	PY_MEMBER(stele_copy_report, DIGEST, digest),
	PY_MEMBER(stele_copy_report, U64, sample_count),
	PY_MEMBER(stele_copy_report, U32, segment_count),
	PY_MEMBER(stele_copy_report, U32, segments_sent),
	PY_MEMBER(stele_copy_report, U64, total_size),
	PY_MEMBER(stele_copy_report, U64, sent_size),
	PY_MEMBER(stele_copy_report, U64, resumed_size),
	PY_MEMBER(stele_copy_report, F64, seconds),
	{0},
};

static const struct py_member verify_report[] = {
	PY_MEMBER(stele_verify_report, U64, snapshots),
	PY_MEMBER(stele_verify_report, U64, segments),
	PY_MEMBER(stele_verify_report, U64, samples),
	PY_MEMBER(stele_verify_report, U64, blocks),
	PY_MEMBER(stele_verify_report, U64, bytes),
	{0},
};

static const struct py_member gc_report[] = {
	PY_MEMBER(stele_gc_report, U64, unused_count),
	PY_MEMBER(stele_gc_report, U64, unused_size),
	PY_MEMBER(stele_gc_report, U64, freed_count),
	PY_MEMBER(stele_gc_report, U64, freed_size),
	PY_MEMBER(stele_gc_report, U64, free_size),
	PY_MEMBER(stele_gc_report, U64, finished_size),
	{0},
};

static const struct py_member resize_report[] = {
	PY_MEMBER(stele_resize_report, U64, old_size),
	PY_MEMBER(stele_resize_report, U64, new_size),
	{0},
};

static const struct py_member no_report[] = {{0}};

/* ---- what is listed on the way ------------------------------------------------------ */

static void tell_damage(void *user, const struct stele_damage *d)
{
	const char *detail = d->detail ? d->detail : "";

	py_call_add(user, &(struct py_event){
				  .kind = PY_EVENT_DAMAGE,
				  .number = -(int64_t)d->error,
				  .figures = {d->offset, d->item_size,
					      d->has_id ? d->id : PY_NO_ID},
				  .texts = {{d->what, strlen(d->what)},
					    {d->key, d->key ? d->key_size : 0},
					    {detail, strlen(detail)}},
			  });
}

static int tell_difference(void *user, const struct stele_diff_entry *d)
{
	struct py_call *call = user;
	int stopped;

	py_call_add(call, &(struct py_event){
				  .kind = PY_EVENT_DIFFERENCE,
				  .number = d->kind,
				  .figures = {d->a_id, d->a_size, d->b_id, d->b_size},
				  .texts = {{d->key, d->key_size}},
			  });
	pthread_mutex_lock(&call->lock);
	stopped = call->stop;
	pthread_mutex_unlock(&call->lock);
	return stopped ? -ECANCELED : 0;
}

static void tell_unused(void *user, const struct stele_gc_item *item)
{
	py_call_add(user, &(struct py_event){
				  .kind = PY_EVENT_UNUSED,
				  .number = item->due | item->deleted << 1,
				  .figures = {item->segment_id, item->offset,
					      item->segment_size, item->sample_count,
					      (uint64_t)item->unused_since},
				  .texts = {{item->name,
					     item->name ? strlen(item->name) : 0}},
			  });
}

/* ---- verbs ---------------------------------------------------------------------------- */

#define LISTEN(opts, job)                             \
	do {                                          \
		(opts)->size = sizeof(*(opts));       \
		(opts)->log = py_call_log;            \
		(opts)->log_user = &(job)->call;      \
		(opts)->progress = py_call_progress;  \
		(opts)->progress_user = &(job)->call; \
	} while (0)
#define LISTEN_SKIP(opts, job)                    \
	do {                                      \
		LISTEN(opts, job);                \
		(opts)->skip = py_call_skip;      \
		(opts)->skip_user = &(job)->call; \
	} while (0)

static int run_build(void *arg)
{
	struct job *job = arg;

	LISTEN_SKIP(&job->opts.build, job);
	job->report.build.size = sizeof(job->report.build);
	return stele_build(job->texts[0], job->texts[1], &job->opts.build,
			   &job->report.build);
}

static int run_append(void *arg)
{
	struct job *job = arg;

	LISTEN_SKIP(&job->opts.append, job);
	job->report.build.size = sizeof(job->report.build);
	return stele_append(job->texts[0], job->texts[1], &job->opts.append,
			    &job->report.build);
}

static int run_compact(void *arg)
{
	struct job *job = arg;

	LISTEN(&job->opts.compact, job);
	job->report.build.size = sizeof(job->report.build);
	return stele_compact(job->texts[0], job->texts[1], &job->opts.compact,
			     &job->report.build);
}

static int run_copy(void *arg)
{
	struct job *job = arg;

	LISTEN(&job->opts.copy, job);
	job->report.copy.size = sizeof(job->report.copy);
	return stele_copy(job->texts[0], job->texts[1], &job->opts.copy,
			  &job->report.copy);
}

static int run_verify(void *arg)
{
	struct job *job = arg;
	struct stele_verify_opts *opts = &job->opts.verify;

	LISTEN(opts, job);
	opts->damage = tell_damage;
	opts->damage_user = &job->call;
	job->report.verify.size = sizeof(job->report.verify);
	return stele_verify(job->texts[0], opts, &job->report.verify);
}

static int run_diff(void *arg)
{
	struct job *job = arg;

	job->opts.open.size = sizeof(job->opts.open);
	job->opts.open.log = py_call_log;
	job->opts.open.log_user = &job->call;
	return stele_diff(job->texts[0], job->texts[1], tell_difference, &job->call,
			  &job->opts.open, NULL);
}

static int run_gc(void *arg)
{
	struct job *job = arg;

	LISTEN(&job->opts.change.opts, job);
	job->report.gc.size = sizeof(job->report.gc);
	return stele_gc(job->texts[0], &job->opts.change.opts, tell_unused,
			&job->call, &job->report.gc);
}

static int run_resize(void *arg)
{
	struct job *job = arg;

	LISTEN(&job->opts.change.opts, job);
	job->report.resize.size = sizeof(job->report.resize);
	return stele_resize(job->texts[0], job->opts.change.size,
			    &job->opts.change.opts, &job->report.resize);
}

static int run_create(void *arg)
{
	struct job *job = arg;

	LISTEN(&job->opts.change.opts, job);
	job->report.snapshot.size = sizeof(job->report.snapshot);
	return stele_snapshot_create(job->texts[0], job->texts[1], job->keys + 3,
				     job->count - 3, job->texts[2],
				     &job->opts.change.opts, &job->report.snapshot);
}

static int run_rename(void *arg)
{
	struct job *job = arg;

	LISTEN(&job->opts.change.opts, job);
	return stele_snapshot_rename(job->texts[0], job->texts[1],
				     &job->opts.change.opts);
}

static int run_undelete(void *arg)
{
	struct job *job = arg;

	LISTEN(&job->opts.change.opts, job);
	return stele_snapshot_undelete(job->texts[0], job->texts[1],
				       &job->opts.change.opts);
}

static int run_delete(void *arg)
{
	struct job *job = arg;

	LISTEN(&job->opts.change.opts, job);
	return stele_snapshot_delete(job->texts, job->count,
				     &job->opts.change.opts);
}

/* ---- run() ------------------------------------------------------------------------------ */

static const struct verb {
	const char *name;
	size_t arguments; /* at least */
	const struct py_member *options, *report;
	int (*run)(void *job);
} verbs[] = {
	{"build", 2, build_options, build_report, run_build},
	{"append", 2, append_options, build_report, run_append},
	{"compact", 2, compact_options, build_report, run_compact},
	{"copy", 2, copy_options, copy_report, run_copy},
	{"verify", 1, verify_options, verify_report, run_verify},
	{"diff", 2, open_options, no_report, run_diff},
	{"gc", 1, change_options, gc_report, run_gc},
	{"resize", 1, change_options, resize_report, run_resize},
	{"snapshot_create", 3, change_options, py_snapshot_members, run_create},
	{"snapshot_rename", 2, change_options, no_report, run_rename},
	{"snapshot_undelete", 2, change_options, no_report, run_undelete},
	{"snapshot_delete", 1, change_options, no_report, run_delete},
};

static const struct verb *find_verb(const char *name, Py_ssize_t arguments)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (!strcmp(verbs[i].name, name) &&
		    (size_t)arguments >= verbs[i].arguments)
			return &verbs[i];
	PyErr_Format(PyExc_TypeError, "no verb %s of %zd arguments", name, arguments);
	return NULL;
}

/* What they point to is the tuple's. */
static int take_arguments(struct job *job, PyObject *tuple)
{
	for (size_t i = 0; i < job->count; i++) {
		PyObject *item = PyTuple_GetItem(tuple, (Py_ssize_t)i);
		Py_ssize_t size = 0;
		char *data = NULL;

		if (!item || (item != Py_None &&
			      PyBytes_AsStringAndSize(item, &data, &size)))
			return -1;
		if (data && strlen(data) != (size_t)size) {
			PyErr_SetString(PyExc_ValueError, "a name with a NUL in it");
			return -1;
		}
		job->texts[i] = data;
		job->keys[i] = (struct stele_key_ref){data, (size_t)size};
	}
	return 0;
}

static PyObject *run_job(struct job *job, const struct verb *verb, PyObject *arguments,
			 PyObject *options, PyObject *tell)
{
	PyObject *report = NULL;

	job->count = (size_t)PyTuple_Size(arguments);
	job->texts = calloc(job->count + 1, sizeof(*job->texts));
	job->keys = calloc(job->count + 1, sizeof(*job->keys));
	if (!job->texts || !job->keys)
		PyErr_NoMemory();
	else if (!take_arguments(job, arguments) &&
		 !py_struct_fill(&job->opts, verb->options, options) &&
		 py_call(&job->call, verb->run, job, tell) >= 0)
		report = PyDict_New();
	if (report && py_struct_dict(report, &job->report, verb->report))
		Py_CLEAR(report);
	free(job->texts);
	free(job->keys);
	return report;
}

PyObject *py_run(PyObject *module, PyObject *args)
{
	PyObject *arguments, *options, *tell, *report;
	const struct verb *verb;
	struct job job = {0};
	const char *name;

	(void)module;
	if (!PyArg_ParseTuple(args, "sO!O!O:run", &name, &PyTuple_Type, &arguments,
			      &PyDict_Type, &options, &tell))
		return NULL;
	verb = find_verb(name, PyTuple_Size(arguments));
	if (!verb)
		return NULL;
	py_call_init(&job.call);
	report = run_job(&job, verb, arguments, options, tell);
	py_call_destroy(&job.call);
	return report;
}
