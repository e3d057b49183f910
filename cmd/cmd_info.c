/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_info.c - stele info: what an image and a snapshot are
 *
 * The image always; the snapshot when one is named or there is only one. An
 * unfinished image is an error that says what to do about it.
 */
#include "cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "layout.h"
#include "show.h"
#include "snapshots.h"
#include "text.h"

#define LOOKS_MAX 10u

static void print_tree(const struct stele_image_info *info)
{
	char size[TEXT_SIZE];

	printf(ROW "EROFS, %s of metadata\n", "mountable", text_size(size, info->tree_size));
	if (!info->tree_block_size)
		return;
	printf(ROW "blocks of %u bytes%s\n", "", info->tree_block_size,
	       !info->tree_mountable ? ": not here, the device's are larger" :
	       info->tree_block_size == 512 ? ", Linux 6.4 or newer" : "");
}

static void print_image(const struct stele_image_info *info)
{
	char text[TEXT_HEX_SIZE], a[TEXT_SIZE], b[TEXT_SIZE];
	char *label = text_escape(info->label, strlen(info->label));

	printf(ROW "%s\n", "label", label && *label ? label : "-");
	printf(ROW "%s\n", "uuid", text_uuid(text, info->uuid));
	printf(ROW "version %u, generation %" PRIu64
		   ", %u of 4 superblocks good\n",
	       "format", info->version, info->generation,
	       info->superblocks_good);
	printf(ROW "%s, last commit %s\n", "created",
	       text_time(a, info->create_time), text_time(b, info->commit_time));
	printf(ROW "%s of %s used", "space", text_size(a, info->used_size),
	       text_size(b, info->image_size));
	if (info->free_size)
		printf(", %s of it reusable", text_size(a, info->free_size));
	if (info->unused_size)
		printf(", gc would free %s", text_size(a, info->unused_size));
	putchar('\n');
	if (info->tree_size)
		print_tree(info);
	free(label);
}

static void print_dataset(struct stele_dataset *ds, int *error)
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	char text[TEXT_HEX_SIZE] = "", a[TEXT_SIZE], b[TEXT_SIZE];

	stele_dataset_info(ds, &info);
	printf("\n" ROW "%s, %s\n", "snapshot", info.snapshot,
	       text_time(a, info.time));
	printf(ROW "sha256:%s\n", "digest",
	       text_hex(text, info.digest, sizeof(info.digest)));
	printf(ROW "%s", "samples", text_count(a, info.sample_count));
	if (info.deleted_count)
		printf(" (and %s deleted)", text_count(a, info.deleted_count));
	printf(", %s\n", text_size(a, info.payload_size));
	show_fields(ds, info.field_count, error);
	printf(ROW "%s of slots, %s of them padding (%s)\n", "space",
	       text_size(a, info.slots_size), text_size(b, info.padding_size),
	       text_share(text, info.padding_size, info.slots_size));
	printf(ROW "%s in %s, a table of %s\n", "runs",
	       text_count(a, info.run_count),
	       text_counted(b, info.segment_count, "segment"),
	       text_size(text, info.table_size));
	printf(ROW "granule %u, the largest %s\n", "slots", info.granule,
	       text_size(a, info.slot_size_max));
	printf(ROW "%s, logical blocks of %u, reads of up to %s\n", "device",
	       info.backend, info.logical_block,
	       text_size(a, info.transfer_max));
}

static json_t *json_image(const struct stele_image *image,
			  const struct snapshots *snapshots)
{
	struct stele_image_info info = {.size = sizeof(info)};
	json_t *object = json_make(), *list = json_make_list();

	stele_image_info(image, &info);
	json_set_text(object, "label", info.label);
	json_set_uuid(object, "uuid", info.uuid);
	json_set_number(object, "version", info.version);
	json_set_number(object, "generation", info.generation);
	json_set_number(object, "superblocks_good", info.superblocks_good);
	json_set_number(object, "fence_mode", info.fence_mode);
	json_set_number(object, "feature_compat", info.feature_compat);
	json_set_number(object, "feature_ro_compat", info.feature_ro_compat);
	json_set_number(object, "feature_incompat", info.feature_incompat);
	json_set_time(object, "create_time", info.create_time);
	json_set_time(object, "commit_time", info.commit_time);
	json_set_number(object, "image_size", info.image_size);
	json_set_number(object, "used_size", info.used_size);
	json_set_number(object, "free_size", info.free_size);
	json_set_number(object, "unused_size", info.unused_size);
	json_set_number(object, "deleted_snapshots", info.deleted_count);
	json_set_number(object, "tree_size", info.tree_size);
	json_set(object, "tree_mountable", json_boolean(info.tree_mountable));
	json_set_number(object, "tree_block_size", info.tree_block_size);
	json_set_number(object, "segments", info.segment_count);
	for (uint32_t i = 0; i < snapshots->count; i++)
		json_add(list, snapshots_json(snapshots, i));
	json_set(object, "snapshots", list);
	return object;
}

/* What udev takes into a name as it is. */
static bool is_plain(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("#+-.:=@_", c));
}

/* As `blkid -o udev` does: properties of a device, from which rules make links. */
static int export(const char *target)
{
	struct stele_image_info info = {.size = sizeof(info)};
	struct cmd_log log = {.target = target};
	struct stele_image *image;
	char text[TEXT_HEX_SIZE];
	int error = cmd_open_image(&log, &image);

	if (error)
		return cmd_finish(cmd_status_of(error));
	stele_image_info(image, &info);
	printf("ID_STELE_VERSION=%u\nID_STELE_UUID=%s\n", info.version,
	       text_uuid(text, info.uuid));
	if (*info.label)
		printf("ID_STELE_LABEL_ENC=");
	for (const char *c = info.label; *c; c++)
		printf(is_plain(*c) ? "%c" : "\\x%02x", (unsigned char)*c);
	if (*info.label)
		putchar('\n');
	stele_image_close(image);
	return cmd_finish(CMD_OK);
}

/* `ds` may be NULL. */
static int print(const char *target, const struct stele_image *image,
		 struct stele_dataset *ds, bool json)
{
	struct stele_image_info info = {.size = sizeof(info)};
	struct snapshots snapshots;
	int error = snapshots_load(&snapshots, image);
	char *name = text_escape(target, strlen(target));
	json_t *object;

	if (error)
		cmd_error(error, "cannot list the snapshots of '%s'", target);
	if (json) {
		object = json_make();
		json_set_text(object, "target", target);
		json_set(object, "image",
				    json_image(image, &snapshots));
		if (ds)
			json_set(object, "snapshot",
					    show_dataset_json(ds, &error));
		json_line(object);
	} else {
		stele_image_info(image, &info);
		layout_begin();
		printf(ROW "%s\n", "target", name ? name : target);
		print_image(&info);
		printf(ROW "%" PRIu32 "\n", "snapshots", snapshots.count);
		snapshots_print(&snapshots, false, "  ");
		if (ds)
			print_dataset(ds, &error);
		layout_end();
	}
	snapshots_release(&snapshots);
	free(name);
	return error ? cmd_status_of(error) : CMD_OK;
}

/*
 * Of several, none named: the image is all there is to say. One that has no RBD
 * snapshot yet does not open, but its image can be looked at.
 */
static bool can_do_without(const char *target, int error, uint32_t count)
{
	return (error == -EINVAL && count != 1) ||
	       ((error == -ENOENT || error == -EPERM) &&
		!cmd_names_snapshot(target));
}

/* Of a segment that is not the last one, too: nothing that is printed shows it. */
static void log_names(void *user, enum stele_log_level level, const char *line)
{
	if (level == STELE_LOG_WARNING && strstr(line, "class names of field"))
		cmd_log_line(user, level, line);
}

/*
 * Of the one snapshot that there was a writer may have made several meanwhile: then the
 * image is looked at once more. Return: of the image; *error: of the dataset, not logged.
 */
static int open_both(struct cmd_log *log, struct stele_image **image,
		     struct stele_image_info *info, struct stele_dataset **ds,
		     int *error)
{
	int ret;

	for (unsigned int i = 0; i < LOOKS_MAX; i++) {
		stele_image_close(*image);
		*image = NULL;
		ret = cmd_open_image(log, image);
		if (ret)
			return ret;
		stele_image_info(*image, info);
		*error = stele_dataset_open(log->target,
					    &STELE_OPTS(stele_open_opts, .log = log_names,
							.log_user = log), ds);
		if (*error != -EINVAL || info->snapshot_count != 1)
			break;
	}
	return 0;
}

static int run(const char *target, bool json)
{
	struct stele_image *image = NULL;
	struct stele_dataset *ds = NULL;
	struct stele_image_info info = {.size = sizeof(info)};
	struct cmd_log log = {.target = target};
	int error = 0, status = CMD_OK, ret;
	bool enough;

	ret = open_both(&log, &image, &info, &ds, &error);
	if (ret)
		return cmd_finish(cmd_status_of(ret));
	enough = can_do_without(target, error, info.snapshot_count);
	if (error && !(enough && info.snapshot_count != 1)) {
		cmd_log_error(error, target);
		status = cmd_status_of(error);
	}
	if (!error || enough) {
		ret = print(target, image, ds, json);
		status = ret == CMD_OK ? status : ret;
	}
	stele_dataset_close(ds);
	stele_image_close(image);
	return cmd_finish(status);
}

int cmd_info(const struct cmd *cmd, int argc, char **argv)
{
	static const struct option longopts[] = {
		{"export", no_argument, NULL, 'x'},
		{"json", no_argument, NULL, 'J'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c, form = 0;

	while ((c = cmd_option(cmd, argc, argv, "h", longopts)) != -1)
		form |= c;
	if (argc - optind != 1)
		return cmd_misuse(cmd, "info needs one TARGET");
	if (form == ('x' | 'J'))
		return cmd_misuse(cmd, "--export does not go with --json");
	return form == 'x' ? export(argv[optind]) : run(argv[optind], form == 'J');
}
