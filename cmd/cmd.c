/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd.c - messages, help and the end of a command
 */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parse.h"
#include "progress.h"
#include "remedy.h"
#include "suggest.h"
#include "text.h"

#define MESSAGE_SIZE_MAX 8192 /* a path and a key, escaped, and words */
#define LINE_SIZE_MAX 1024    /* of the library's */

static int output_error;
static bool output_closed;

static ssize_t write_output(void *cookie, const char *data, size_t size)
{
	size_t done = 0;

	(void)cookie;
	while (done < size) {
		const ssize_t n = write(STDOUT_FILENO, data + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			output_error = output_error ? output_error : n ? -errno : -EIO;
			break;
		}
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static int close_output(void *cookie)
{
	(void)cookie;
	return close(STDOUT_FILENO);
}

void cmd_output_begin(void)
{
	FILE *out = fopencookie(NULL, "w", (cookie_io_functions_t){
						   .write = write_output,
						   .close = close_output});

	if (!out)
		return;
	setvbuf(out, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, BUFSIZ);
	stdout = out;
}

/* In a pipe, too, what was printed comes before what is said of it. */
static void flush_output(void)
{
	if (!output_closed)
		fflush(stdout);
}

static void emit(const char *reason, const char *format, va_list args)
{
	char message[MESSAGE_SIZE_MAX], shown[MESSAGE_SIZE_MAX];

	vsnprintf(message, sizeof(message), format, args);
	text_show(shown, sizeof(shown), message);
	flush_output();
	progress_message(shown, reason);
}

static void emit_line(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	emit(NULL, format, args);
	va_end(args);
}

/* The last error in a log: whether it is the one that a call failed by is seen later. */
static struct {
	pthread_mutex_t lock;
	char line[LINE_SIZE_MAX];
} held = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Say the one before, unless it is the end of `final`, and hold `next`. */
static void hold(const char *next, const char *final)
{
	char line[LINE_SIZE_MAX];
	size_t size;

	pthread_mutex_lock(&held.lock);
	memcpy(line, held.line, sizeof(line));
	snprintf(held.line, sizeof(held.line), "%s", next);
	pthread_mutex_unlock(&held.lock);
	size = strlen(line);
	if (!size || !strcmp(line, next) ||
	    (strlen(final) >= size && !strcmp(final + strlen(final) - size, line)))
		return;
	emit_line("%s", line);
}

static void say(const char *reason, const char *format, va_list args)
{
	hold("", "");
	emit(reason, format, args);
}

void cmd_message(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(NULL, format, args);
	va_end(args);
}

void cmd_hint(const char *format, ...)
{
	char message[MESSAGE_SIZE_MAX], shown[MESSAGE_SIZE_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	text_show(shown, sizeof(shown), message);
	flush_output();
	progress_hide();
	fprintf(stderr, "hint: %s\n", shown);
}

static struct {
	const struct cmd *cmd;
	char **argv; /* as getopt_long() gets it */
} current;

static const char *current_verb(void)
{
	return current.cmd ? current.cmd->name : "";
}

static bool is_link(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISLNK(st.st_mode);
}

void cmd_no_directory(const char *path)
{
	char line[MESSAGE_SIZE_MAX];
	size_t size = strlen(path);
	char *directory;

	/* Of "a/b" it is "a", of "a/b/" it is "a/b". */
	while (size && path[size - 1] != '/')
		size--;
	while (size > 1 && path[size - 1] == '/')
		size--;
	directory = strndup(size ? path : ".", size ? size : 1);
	/* In some, such as /proc, no file can be made. */
	if (is_link(path))
		snprintf(line, sizeof(line), "it is a symbolic link to what does not exist");
	else
		snprintf(line, sizeof(line), "%s '%s'",
			 directory && access(directory, F_OK) == 0 ? "no file can be made in" :
								     "no directory",
			 directory ? directory : "");
	free(directory);
	cmd_message("cannot create '%s': %s", path, line);
	remedy_print(current_verb(), -ENOENT, line, NULL);
}

void cmd_error(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(stele_strerror(error), format, args);
	va_end(args);
}

void cmd_begin(const struct cmd *cmd, char **argv)
{
	current.cmd = cmd;
	current.argv = argv;
}

char *const *cmd_arguments(void)
{
	static char *const none[] = {NULL};

	return current.argv ? current.argv + optind : none;
}

/* The option closest to the unknown one that getopt_long() ended with. */
static void suggest_option(const struct cmd *cmd)
{
	const char *word = current.argv && optind > 1 && !optopt ?
				   current.argv[optind - 1] : "";
	struct suggest options = {0};
	char name[SUGGEST_SIZE] = "";
	const char *at = cmd->usage;

	if (strncmp(word, "--", 2) != 0)
		return;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	options.word = name;
	for (size_t size; (at = strstr(at, "--")); at += size) {
		at += 2;
		size = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-");
		suggest_offer(&options, at, size);
	}
	suggest_print(&options, "--");
}

/* In "-x.jpg" getopt_long() is still at its letters when one of them is unknown. */
static void hint_dash(void)
{
	const char *word = current.argv && optopt ? current.argv[optind] : NULL;

	if (word && word[0] == '-' && word[1] == optopt && word[2])
		cmd_hint("put '--' in front of an argument that begins with '-'");
}

int cmd_misuse(const struct cmd *cmd, const char *format, ...)
{
	va_list args;

	if (format) {
		va_start(args, format);
		say(NULL, format, args);
		va_end(args);
	} else {
		suggest_option(cmd);
		hint_dash();
	}
	fprintf(stderr, "Try 'stele %s --help'.\n", cmd->name);
	return CMD_USAGE;
}

int cmd_refuse_target(const struct cmd *cmd, const char *target)
{
	const size_t scheme = strspn(target, "abcdefghijklmnopqrstuvwxyz0123456789+-");

	if (!strcmp(target, "-"))
		return cmd_misuse(cmd, "an image cannot be written to standard output; './-' is a "
				       "file of that name");
	if (scheme && !strncmp(target + scheme, "://", 3))
		return cmd_misuse(cmd, "'%s' is no target: that is a block device, a regular file "
				       "or an image in Ceph RBD, rbd:POOL/IMAGE", target);
	return CMD_OK;
}

#define TARGET_SIZE_UNIT 4096u

const char *cmd_parse_target_size(const char *text, uint64_t *out)
{
	const char *wanted = parse_size(text, 1, PARSE_SIZE_MAX, out);

	if (wanted || *out % TARGET_SIZE_UNIT == 0)
		return wanted;
	*out += TARGET_SIZE_UNIT - *out % TARGET_SIZE_UNIT;
	cmd_message("--size=%s is rounded up to %" PRIu64
		    " bytes, a multiple of %u", text, *out, TARGET_SIZE_UNIT);
	return NULL;
}

static bool lost;

void cmd_lost(void)
{
	__atomic_store_n(&lost, true, __ATOMIC_RELAXED);
}

int cmd_finish(int status)
{
	int error;

	hold("", "");
	if (__atomic_load_n(&lost, __ATOMIC_RELAXED)) {
		cmd_error(-ENOMEM, "output is incomplete");
		status = status == CMD_OK ? CMD_FAILED : status;
	}
	fflush(stdout);
	/* Some filesystems tell only now. */
	output_closed = true;
	error = fclose(stdout) != 0 ? -errno : 0;
	error = output_error ? output_error : error;
	if (!error)
		return status;
	/* Whoever closed the pipe early knows. */
	if (error != -EPIPE)
		cmd_message("cannot write to stdout: %s%s", strerror(-error),
			    status == CMD_OK ? "; nothing else failed" : "");
	if (error == -EFBIG)
		remedy_file_limit();
	return status == CMD_OK ? CMD_FAILED : status;
}

void cmd_log_line(void *user, enum stele_log_level level, const char *line)
{
	struct cmd_log *log = user;

	if (level == STELE_LOG_ERROR) {
		const unsigned int before =
			__atomic_fetch_add(&log->errors, 1, __ATOMIC_RELAXED);

		if (!log->errors_max || before < log->errors_max)
			hold(line, "");
	} else if (level == STELE_LOG_WARNING && !log->quiet) {
		cmd_message("warning: %s", line);
		remedy_print(current_verb(), 0, line, NULL);
	}
}

void cmd_log_error_as(const char *verb, int error, const char *target)
{
	char line[LINE_SIZE_MAX];

	snprintf(line, sizeof(line), "%s", stele_errmsg());
	hold("", line);
	cmd_message("%s", line);
	remedy_print(verb, error, line, target);
}

void cmd_log_error(int error, const char *target)
{
	cmd_log_error_as(current_verb(), error, target);
}

int cmd_status_of(int error)
{
	if (error == -EBADMSG || error == -EUCLEAN || error == -ENODATA)
		return CMD_DAMAGED;
	return error == -EINVAL ? CMD_USAGE : CMD_FAILED;
}

int cmd_option(const struct cmd *cmd, int argc, char **argv, const char *letters,
	       const struct option *options)
{
	int c = getopt_long(argc, argv, letters, options, NULL);

	if (c == '?')
		exit(cmd_misuse(cmd, NULL));
	if (c != 'h')
		return c;
	printf("usage: stele %s", cmd->usage);
	exit(cmd_finish(CMD_OK));
}

void cmd_option_value(const struct cmd *cmd, const struct option *options, int option,
		      const char *wanted)
{
	if (!wanted)
		return;
	while (options->val != option)
		options++;
	exit(cmd_misuse(cmd, "invalid value '%s' for --%s: must be %s", optarg,
			options->name, wanted));
}

void cmd_getopt(const struct cmd *cmd, int argc, char **argv, bool *json)
{
	static const struct option longopts[] = {
		{"help", no_argument, NULL, 'h'},
		{"json", no_argument, NULL, 'J'},
		{0},
	};
	static const struct option help_only[] = {
		{"help", no_argument, NULL, 'h'},
		{0},
	};

	while (cmd_option(cmd, argc, argv, "h", json ? longopts : help_only) != -1)
		*json = true;
}
