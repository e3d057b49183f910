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
		struct py_change change;
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

/* ---- what is listed on the way ------------------------------------------------------ */

static void tell_damage(void *user, const struct stele_damage *d)
{
	const char *detail = d->detail ? d->detail : "";
	const char *snapshot = d->snapshot;

	py_call_add(user, &(struct py_event){
				  .kind = PY_EVENT_DAMAGE,
				  .number = -(int64_t)d->error,
				  .figures = {d->offset, d->item_size,
					      d->has_id ? d->id : PY_NO_ID},
				  .texts = {{d->what, strlen(d->what)},
					    {d->key, d->key ? d->key_size : 0},
					    {detail, strlen(detail)},
					    {snapshot, snapshot ? strlen(snapshot) : 0}},
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

#define LISTEN(opts, job) PY_CALL_LISTEN(opts, &(job)->call)
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
	return stele_snapshot_create(job->texts[0], job->texts[1],
				     &STELE_OPTS(stele_deletions, .keys = job->keys + 3,
						 .key_count = job->count - 3),
				     job->texts[2], &job->opts.change.opts,
				     &job->report.snapshot);
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
	enum py_options options;
	const struct py_member *report;
	int (*run)(void *job);
} verbs[] = {
	{"build", 2, PY_BUILD, py_build_report, run_build},
	{"append", 2, PY_APPEND, py_build_report, run_append},
	{"compact", 2, PY_COMPACT, py_build_report, run_compact},
	{"copy", 2, PY_COPY, py_copy_report, run_copy},
	{"verify", 1, PY_VERIFY, py_verify_report, run_verify},
	{"diff", 2, PY_OPEN, py_no_report, run_diff},
	{"gc", 1, PY_CHANGE, py_gc_report, run_gc},
	{"resize", 1, PY_CHANGE, py_resize_report, run_resize},
	{"snapshot_create", 3, PY_CHANGE, py_snapshot_report, run_create},
	{"snapshot_rename", 2, PY_CHANGE, py_no_report, run_rename},
	{"snapshot_undelete", 2, PY_CHANGE, py_no_report, run_undelete},
	{"snapshot_delete", 1, PY_CHANGE, py_no_report, run_delete},
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
		 !py_options_fill(&job->opts, verb->options, options) &&
		 py_call(&job->call, verb->run, job, tell) >= 0)
		report = PyDict_New();
	if (report && py_report(report, &job->report, verb->report))
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
