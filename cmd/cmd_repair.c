/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_repair.c - stele repair: superblocks that are behind or damaged, and branches
 */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "json.h"
#include "parse.h"
#include "text.h"

#define SIDES_MAX 6u /* superblocks of an image, witnesses included */

static const struct option longopts[] = {
	{"choose", required_argument, NULL, 'c'},
	{"dry-run", no_argument, NULL, 'n'},
	{"json", no_argument, NULL, 'J'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static void branch_line(void *user, const struct stele_fork_branch *branch)
{
	char time[TEXT_SIZE], count[TEXT_SIZE];

	(void)user;
	printf("branch %u: generation %" PRIu64 ", %s, ", branch->number,
	       branch->generation, text_time(time, branch->commit_time));
	if (branch->error)
		printf("cannot be chosen: %s\n", stele_strerror(branch->error));
	else
		puts(text_counted(count, branch->snapshot_count, "snapshot"));
}

static void branch_json(void *user, const struct stele_fork_branch *branch)
{
	json_t *object = json_object();
	char hex[TEXT_HEX_SIZE];

	(void)user;
	json_set_number(object, "branch", branch->number);
	json_set_number(object, "generation", branch->generation);
	json_set_number(object, "commit_time", (uint64_t)branch->commit_time);
	json_set_text(object, "uuid", text_uuid(hex, branch->uuid));
	json_set_number(object, "snapshot_count", branch->snapshot_count);
	if (branch->error)
		json_set_text(object, "error", stele_strerror(branch->error));
	json_line(object);
}

static void snapshot_line(void *user, const struct stele_fork_branch *branch,
			  const struct stele_fork_snapshot *snapshot)
{
	const struct stele_snapshot_info *info = snapshot->info;
	char time[TEXT_SIZE], count[TEXT_SIZE], hex[TEXT_HEX_SIZE];

	(void)user;
	(void)branch;
	printf("  %s  %s  %s  sha256:%.16s  %s%s%s\n", info->name,
	       text_time(time, info->time),
	       text_counted(count, info->sample_count, "sample"),
	       text_hex(hex, info->digest, sizeof(info->digest)),
	       snapshot->common ? "on all branches" : "only here",
	       snapshot->error ? ", " : "",
	       snapshot->error ? stele_strerror(snapshot->error) : "");
}

static void snapshot_json(void *user, const struct stele_fork_branch *branch,
			  const struct stele_fork_snapshot *snapshot)
{
	const struct stele_snapshot_info *info = snapshot->info;
	json_t *object = json_object();
	char hex[TEXT_HEX_SIZE];

	(void)user;
	json_set_number(object, "branch", branch->number);
	json_set_text(object, "snapshot", info->name);
	json_set_text(object, "digest",
		      text_hex(hex, info->digest, sizeof(info->digest)));
	json_set_number(object, "time", (uint64_t)info->time);
	json_set_number(object, "sample_count", info->sample_count);
	json_object_set_new(object, "common",
			    json_boolean(snapshot->common));
	if (snapshot->error)
		json_set_text(object, "error", stele_strerror(snapshot->error));
	json_line(object);
}

static void summarize(const struct stele_repair_report *report, bool json)
{
	char count[TEXT_SIZE];
	json_t *object;

	if (json) {
		object = json_object();
		json_set_number(object, "branches", report->branches);
		json_set_number(object, "wrong_copies", report->wrong_copies);
		json_set_number(object, "wrong_catalogs", report->wrong_catalogs);
		json_object_set_new(object, "wrong_front", json_boolean(report->wrong_front));
		json_object_set_new(object, "needs_choice", json_boolean(report->needs_choice));
		json_set_number(object, "generation", report->generation);
		json_object_set_new(object, "changed",
				    json_boolean(report->changed));
		json_line(object);
	} else if (report->changed) {
		printf("repaired, now generation %" PRIu64 "\n",
		       report->generation);
	} else if (report->wrong_copies || report->wrong_catalogs || report->wrong_front) {
		if (report->wrong_copies)
			printf("%s to be rewritten\n",
			       text_counted(count, report->wrong_copies, "superblock"));
		if (report->wrong_catalogs)
			printf("%s or witness%s to be rewritten\n",
			       text_counted(count, report->wrong_catalogs, "catalog"),
			       report->wrong_catalogs == 1 ? "" : "es");
		if (report->wrong_front)
			puts("block 0 to be rewritten, to show the tree of files");
	} else {
		puts(report->branches ? "the branch to be written as a new generation" :
					"nothing to repair");
	}
}

static int run(const char *target, uint32_t choose, bool dry, bool json)
{
	struct cmd_log log = {.target = target};
	struct stele_repair_report report = {.size = sizeof(report)};
	int error = stele_repair(
		target,
		&STELE_OPTS(stele_repair_opts, .log = cmd_log_line,
			    .log_user = &log, .choose = choose,
			    .branch = json ? branch_json : branch_line,
			    .snapshot = json ? snapshot_json : snapshot_line,
			    .flags = dry ? STELE_DRY_RUN : 0),
		&report);

	if (!error || (error == -ENOTUNIQ && json))
		summarize(&report, json);
	if (error)
		cmd_log_error(error, target);
	return cmd_finish(error ? cmd_status_of(error) : CMD_OK);
}

int cmd_repair(const struct cmd *cmd, int argc, char **argv)
{
	bool dry = false, json = false;
	uint32_t choose = 0;
	int c;

	while ((c = cmd_option(cmd, argc, argv, "nh", longopts)) != -1) {
		switch (c) {
		case 'c':
			cmd_option_value(cmd, longopts, c,
					 parse_count(optarg, SIDES_MAX, &choose));
			break;
		case 'n':
			dry = true;
			break;
		case 'J':
			json = true;
			break;
		}
	}
	if (argc - optind != 1)
		return cmd_misuse(cmd, "repair needs one TARGET");
	if (cmd_check_whole(cmd->name, argv[optind]) >= 0)
		return CMD_USAGE;
	return run(argv[optind], choose, dry, json);
}
