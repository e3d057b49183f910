/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd.c - messages, help and the end of a command
 */
#include "cmd.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "progress.h"
#include "text.h"

#define MESSAGE_SIZE_MAX 8192 /* a path and a key, escaped, and words */

static void say(const char *reason, const char *format, va_list args)
{
	char message[MESSAGE_SIZE_MAX];

	vsnprintf(message, sizeof(message), format, args);
	text_sanitize(message);
	progress_message(message, reason);
}

void cmd_message(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(NULL, format, args);
	va_end(args);
}

void cmd_error(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(stele_strerror(error), format, args);
	va_end(args);
}

int cmd_misuse(const struct cmd *cmd, const char *format, ...)
{
	va_list args;

	if (format) {
		va_start(args, format);
		say(NULL, format, args);
		va_end(args);
	}
	fprintf(stderr, "Try 'stele %s --help'.\n", cmd->name);
	return CMD_USAGE;
}

int cmd_misuse_value(const struct cmd *cmd, const struct option *options,
		     int option, const char *wanted)
{
	while (options->val != option)
		options++;
	return cmd_misuse(cmd, "bad value '%s' for --%s: %s", optarg,
			  options->name, wanted);
}

int cmd_help(const struct cmd *cmd)
{
	printf("usage: stele %s", cmd->usage);
	return cmd_finish(CMD_OK);
}

static bool lost;

void cmd_lost(void)
{
	__atomic_store_n(&lost, true, __ATOMIC_RELAXED);
}

int cmd_finish(int status)
{
	int error = ferror(stdout) ? -EIO : 0;

	if (__atomic_load_n(&lost, __ATOMIC_RELAXED)) {
		cmd_error(-ENOMEM, "the output is not complete");
		status = status == CMD_OK ? CMD_FAILED : status;
	}
	if (fflush(stdout) != 0)
		error = -errno;
	/* Some filesystems tell only now. */
	if (fclose(stdout) != 0 && !error)
		error = -errno;
	if (!error)
		return status;
	/* Whoever closed the pipe early knows. */
	if (error != -EPIPE)
		cmd_message("cannot write to stdout: %s", strerror(-error));
	return status == CMD_OK ? CMD_FAILED : status;
}

/* Does the line name the target, with or without its snapshot? */
static bool names(const char *line, const char *target)
{
	const char *slash = strrchr(target, '/');
	const char *at = strrchr(slash ? slash : target, '@');
	size_t size = at && at > target ? (size_t)(at - target)
					: strlen(target);

	/* Of RBD neither snapshot nor options; a path may hold all of these. */
	if (strncmp(target, "rbd:", 4) == 0)
		size = strcspn(target, "@?");

	return size && memmem(line, strlen(line), target, size);
}

bool cmd_log_enough(const struct cmd_log *log, int error)
{
	return log->named || (log->said && (error == -EINVAL ||
					    error == -ENOENT ||
					    error == -EEXIST));
}

void cmd_log_line(void *user, enum stele_log_level level, const char *line)
{
	struct cmd_log *log = user;

	if (level == STELE_LOG_ERROR) {
		__atomic_store_n(&log->said, true, __ATOMIC_RELAXED);
		if (names(line, log->target) ||
		    (log->source && names(line, log->source)))
			__atomic_store_n(&log->named, true, __ATOMIC_RELAXED);
		cmd_message("%s", line);
	} else if (level == STELE_LOG_WARNING && !log->quiet) {
		cmd_message("warning: %s", line);
	}
}

void cmd_log_error(const struct cmd_log *log, int error, const char *format,
		   ...)
{
	va_list args;

	if (cmd_log_enough(log, error))
		return;
	va_start(args, format);
	say(stele_strerror(error), format, args);
	va_end(args);
}

int cmd_status_of(int error)
{
	return error == -EBADMSG || error == -EUCLEAN ? CMD_DAMAGED
						      : CMD_FAILED;
}

int cmd_getopt(const struct cmd *cmd, int argc, char **argv, bool *json)
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
	int c;

	while ((c = getopt_long(argc, argv, "h", json ? longopts : help_only,
				NULL)) != -1) {
		if (c == 'h')
			return cmd_help(cmd);
		if (c != 'J')
			return cmd_misuse(cmd, NULL);
		*json = true;
	}
	return -1;
}
