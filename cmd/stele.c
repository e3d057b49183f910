/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stele.c - one table of commands drives dispatch, help and usage
 */
#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define VERIFY_OPTION \
	"      --verify=WHAT       none, crc (default), digest (default of a pin)\n"

static const struct cmd commands[] = {
	{"build", cmd_build, "lay a directory out as an image",
	 "build [options] SOURCE TARGET[@SNAPSHOT]\n"
	 "\n"
	 "Lay the files below SOURCE out on TARGET, a block device, a regular\n"
	 "file or an RBD image, and publish them as its first snapshot (v1, unless\n"
	 "given).\n"
	 "\n"
	 "      --backend=NAME      how to reach the target: uring, threads\n"
	 "      --boundary=SIZE     no sample crosses a multiple of it; none\n"
	 "                          (default: an RBD image's object size, else none)\n"
	 "  -n, --dry-run           print the layout, write nothing; TARGET may be\n"
	 "                          left out\n"
	 "  -f, --force             overwrite what TARGET carries\n"
	 "      --granule=N         16, 64, 512 or 4096 bytes (default: the largest\n"
	 "                          with at most 2 % of padding)\n"
	 "  -j, --jobs=N            threads (default: 8 per core, at most 32)\n"
	 "      --json              summary as JSON\n"
	 "      --label=TEXT        name of the image\n"
	 "      --labels            add a field 'label': the top directory (default\n"
	 "                          if every file lies two or more levels down)\n"
	 "      --no-labels         never\n"
	 "      --memory=SIZE       for buffers (default: 256M)\n"
	 "      --note=TEXT         kept with the snapshot\n"
	 "      --object-size=SIZE  of a new RBD image: 4K to 32M (default: 4M)\n"
	 "      --order=ORDER       size (default) or source\n"
	 "  -q, --quiet             print nothing but errors\n"
	 "      --size=SIZE         of a file or RBD image (default: to fit)\n"
	 "      --skip-changed      leave out files that change while they are\n"
	 "                          read, vanish, or cannot be read\n"
	 "      --time=TIME         of the snapshot: seconds since 1970, or ISO 8601\n"
	 "      --uuid=UUID         of the image (default: random)\n"
	 "  -h, --help\n"},
	{"append", cmd_append, "add what is new in a directory to an image",
	 "append [options] SOURCE TARGET@NEW\n"
	 "\n"
	 "Make a snapshot NEW that holds what an older one holds, and the files below\n"
	 "SOURCE whose keys that one lacks. Only what is new is written.\n"
	 "\n"
	 "      --backend=NAME      how to reach the target: uring, threads\n"
	 "      --base=OLD          the snapshot to begin with (default: the newest)\n"
	 "      --boundary=SIZE     no sample crosses a multiple of it, or none\n"
	 "      --delete-missing    leave out samples that SOURCE does not have\n"
	 "  -n, --dry-run           compare, print what would be done, write nothing\n"
	 "      --granule=N         16, 64, 512 or 4096 bytes (default: the largest\n"
	 "                          with at most 2 % of padding)\n"
	 "  -j, --jobs=N            threads (default: 8 per core, at most 32)\n"
	 "      --json              summary as JSON\n"
	 "      --memory=SIZE       for buffers (default: 256M)\n"
	 "      --note=TEXT         kept with the snapshot\n"
	 "      --order=ORDER       size (default) or source\n"
	 "      --quick             with --update: do not read files of the old size\n"
	 "                          that were last changed before the base\n"
	 "  -q, --quiet             print nothing but errors\n"
	 "      --size=SIZE         make a regular file that large first\n"
	 "      --skip-changed      leave out files that change while they are\n"
	 "                          read, vanish, or cannot be read\n"
	 "      --time=TIME         of the snapshot: seconds since 1970, or ISO 8601\n"
	 "      --update            also replace samples whose content changed\n"
	 "  -h, --help\n"},
	{"compact", cmd_compact, "lay a snapshot out anew as one segment",
	 "compact [options] TARGET[@SNAPSHOT] NEW\n"
	 "\n"
	 "Write the samples of a snapshot anew, as one segment without gaps of what\n"
	 "was deleted, and publish it on the same image as snapshot NEW.\n"
	 "\n"
	 "      --backend=NAME      how to reach the target: uring, threads\n"
	 "      --boundary=SIZE     no sample crosses a multiple of it, or none\n"
	 "  -n, --dry-run           print the layout, write nothing\n"
	 "      --granule=N         16, 64, 512 or 4096 bytes (default: the largest\n"
	 "                          with at most 2 % of padding)\n"
	 "  -j, --jobs=N            threads (default: 8 per core, at most 32)\n"
	 "      --json              summary as JSON\n"
	 "      --memory=SIZE       for buffers (default: 256M)\n"
	 "      --note=TEXT         kept with the snapshot\n"
	 "      --order=ORDER       size (default) or source: in the order of keys\n"
	 "  -q, --quiet             print nothing but errors\n"
	 "      --time=TIME         of the snapshot: seconds since 1970, or ISO 8601\n"
	 "  -h, --help\n"},
	{"info", cmd_info, "print what an image and a snapshot are",
	 "info [--json] TARGET[@SNAPSHOT]\n"
	 "\n"
	 "Print identity, snapshots and sizes of the image on TARGET, and of the\n"
	 "snapshot its digest, fields and layout.\n"
	 "\n"
	 "      --json              as one JSON object\n"
	 "  -h, --help\n"},
	{"ls", cmd_ls, "list keys",
	 "ls [options] TARGET[@SNAPSHOT] [PREFIX]\n"
	 "\n"
	 "List the keys of the samples, sorted; only those that begin with PREFIX.\n"
	 "\n"
	 "      --json              one JSON object for each sample\n"
	 "  -l, --long              also id and size\n"
	 "  -0, --null              end each key with a NUL byte, print it as it is\n"
	 "  -h, --help\n"},
	{"cat", cmd_cat, "write samples to stdout",
	 "cat [options] TARGET[@SNAPSHOT] KEY|#ID...\n"
	 "\n"
	 "Write the bytes of samples to stdout, one behind the other.\n"
	 "\n"
	 "  -k, --keys              each argument is a key, even if it is like #ID\n"
	 VERIFY_OPTION
	 "  -h, --help\n"},
	{"extract", cmd_extract, "write samples to files",
	 "extract [options] TARGET[@SNAPSHOT] DIR [KEY...]\n"
	 "\n"
	 "Write all samples, or those of KEYs and below KEYs, to files below DIR.\n"
	 "\n"
	 "  -f, --force             replace files that exist\n"
	 "  -q, --quiet             print nothing but errors\n"
	 VERIFY_OPTION
	 "  -h, --help\n"},
	{"export", cmd_export, "write a snapshot as a tar archive",
	 "export [options] TARGET[@SNAPSHOT] FILE|-\n"
	 "\n"
	 "Write all samples to FILE, or to stdout, as a tar archive, in the order of\n"
	 "their keys. Same samples and time of the snapshot, same bytes.\n"
	 "\n"
	 "  -f, --force             replace FILE if it exists\n"
	 "      --prefix=TEXT       in front of each name, as it is\n"
	 "  -q, --quiet             print nothing but errors\n"
	 VERIFY_OPTION
	 "  -h, --help\n"},
	{"copy", cmd_copy, "carry a snapshot to another target",
	 "copy [options] SOURCE[@SNAPSHOT] TARGET[@NAME]\n"
	 "\n"
	 "Carry a snapshot to TARGET, and only the segments that TARGET lacks. A\n"
	 "target without an image gets one. Interrupted, the same command goes on.\n"
	 "\n"
	 "      --backend=NAME      how to reach the targets: uring, threads\n"
	 "  -f, --force             overwrite what TARGET carries, an image too\n"
	 "  -j, --jobs=N            threads (default: 4 per core, at most 32)\n"
	 "      --json              summary as JSON\n"
	 "      --label=TEXT        of a new image (default: the source's)\n"
	 "      --object-size=SIZE  of an RBD image that is created (default: 4M)\n"
	 "  -q, --quiet             print nothing but errors\n"
	 "      --size=SIZE         of a new file or RBD image (default: to fit)\n"
	 "      --time=TIME         of the commit: seconds since 1970, or ISO 8601\n"
	 "      --uuid=UUID         of a new image (default: random)\n"
	 "  -h, --help\n"},
	{"verify", cmd_verify, "check every checksum and digest",
	 "verify [options] TARGET[@SNAPSHOT]\n"
	 "\n"
	 "Read everything that the image or the snapshot holds, and print one line\n"
	 "for each thing that is damaged. Exit status 3 if there is one.\n"
	 "\n"
	 "  -j, --jobs=N            threads (default: one per core)\n"
	 "      --json              one JSON object for each damage, and a last one\n"
	 "  -q, --quiet             print nothing but damage and errors\n"
	 "  -h, --help\n"},
	{"tune", cmd_tune, "measure a device, so that readers know it",
	 "tune [options] TARGET[@SNAPSHOT]\n"
	 "\n"
	 "Read at random places of a snapshot, in sizes from 4 KiB up, ever more at a\n"
	 "time, for about 40 s; fit a model of the device, and keep it on this\n"
	 "machine. Readers then begin at the depth that it says.\n"
	 "\n"
	 "      --backend=NAME      measure this one, and prefer it: uring, threads,\n"
	 "                          iopoll, hybrid, sqpoll, passthrough\n"
	 "      --json              what was found as one JSON object\n"
	 "      --no-save           keep nothing\n"
	 "      --quick             about 5 s, less exact\n"
	 "      --show              print what is kept, measure nothing\n"
	 "      --svg=FILE          also draw latency against throughput\n"
	 "  -h, --help\n"},
	{"bench", cmd_bench, "measure how fast samples are read",
	 "bench [options] TARGET[@SNAPSHOT]\n"
	 "\n"
	 "Read samples for some seconds and print how many came, how late, and what\n"
	 "that cost. Nothing is written.\n"
	 "\n"
	 "      --accelerator=MODEL emulate one that trains resnet50, cosmoflow or\n"
	 "                          unet3d, and tell how busy it is\n"
	 "      --accelerators=N    so many of them (default: 1), or max: search how\n"
	 "                          many are kept busy\n"
	 "      --arrivals=KIND     with --rate: random (default) or fixed intervals\n"
	 "      --backend=NAME      how to reach the target\n"
	 "      --batch=N           wait for so many samples at a time (default: 1)\n"
	 "      --block-count=N     --order=windowed: blocks of a window\n"
	 "      --block-size=N      --order=windowed: samples of a block\n"
	 "      --check-threads=N   threads that compute checksums (default: none)\n"
	 "      --depth=N           device reads in flight (default: automatic)\n"
	 "      --epochs=N          read all samples N times\n"
	 "      --gpu=NAME          that is emulated: h100 (default) or a100\n"
	 "      --interval=SECONDS  also print a line of figures so often\n"
	 "      --json              as one JSON object\n"
	 "      --loader            read batches by loaders, as training does\n"
	 "      --memory=SIZE       of buffers, for each thread\n"
	 "      --order=ORDER       random (default), windowed or sequential\n"
	 "      --prometheus=FILE   also write figures as Prometheus reads them\n"
	 "  -q, --quiet             show no progress\n"
	 "      --rate=N            begin N samples a second, come what may\n"
	 "      --samples=N         read so many\n"
	 "      --seed=N            of the order (default: 0)\n"
	 "      --shuffle           tell how well the order mixes, and read nothing\n"
	 "      --stats             print all counters of the readers\n"
	 "      --sync              ask for a batch only when the last one is complete\n"
	 "      --threads=N         that read, each with a reader (default: 1)\n"
	 "      --time=SECONDS      how long (default: 10, or without end if --epochs\n"
	 "                          or --samples is given)\n"
	 "      --verify=WHAT       crc (default), digest or none\n"
	 "  -h, --help\n"},
	{"diff", cmd_diff, "compare two snapshots",
	 "diff [options] TARGET@SNAPSHOT TARGET@SNAPSHOT\n"
	 "\n"
	 "Print the keys that the second snapshot has more (+), that it lacks (-),\n"
	 "and that both have with different content (~), sorted.\n"
	 "\n"
	 "      --exit-code         status 1 if there is a difference\n"
	 "      --json              one JSON object for each key\n"
	 "  -0, --null              end each key with a NUL byte, print it as it is\n"
	 "      --stat              only how many\n"
	 "  -h, --help\n"},
	{"snapshot", cmd_snapshot, "create, list, rename, delete snapshots",
	 "snapshot create [options] TARGET@NEW\n"
	 "       stele snapshot list [--json] TARGET\n"
	 "       stele snapshot rename [options] TARGET@OLD NEW\n"
	 "       stele snapshot delete [options] TARGET@NAME...\n"
	 "\n"
	 "A new snapshot is an old one, less some samples. What is deleted stays in\n"
	 "its place until 'stele gc'.\n"
	 "\n"
	 "create:\n"
	 "      --base=NAME         begin with this one (default: the newest)\n"
	 "  -d, --delete=KEY        leave a sample out; may be repeated\n"
	 "      --keys-from=FILE    leave out those in FILE, one a line; - is stdin\n"
	 "      --note=TEXT         shown by list\n"
	 "  -0, --null              keys in files end with a NUL byte\n"
	 "\n"
	 "rename, delete: on Ceph RBD readers cannot be seen; one of these is needed\n"
	 "  -f, --force             do not wait for them\n"
	 "      --grace=DURATION    let them read on so long: 90 (seconds), 10m, 2h, 7d\n"
	 "\n"
	 "      --json              create, list: one JSON object for each snapshot\n"
	 "      --time=TIME         of the change: seconds since 1970, or ISO 8601\n"
	 "  -h, --help\n"},
	{"gc", cmd_gc, "free the space of what no snapshot uses",
	 "gc [options] TARGET\n"
	 "\n"
	 "List what no snapshot uses any more, and with --apply free its space.\n"
	 "Readers of a snapshot that was deleted cannot be seen: so that needs a\n"
	 "--grace or --force.\n"
	 "\n"
	 "      --apply             do it; without, this is a dry run\n"
	 "      --discard           also tell the device what is free\n"
	 "  -f, --force             free all, however long it has been unused\n"
	 "      --grace=DURATION    free what has been unused so long: 90 (seconds),\n"
	 "                          10m, 2h, 7d\n"
	 "      --json              one JSON object for each, and a last one\n"
	 "  -h, --help\n"},
	{"repair", cmd_repair, "write superblocks again, resolve a fork",
	 "repair [options] TARGET\n"
	 "\n"
	 "Write superblock copies again that are behind or damaged. Where two writers\n"
	 "have published at once, show what each has; with --choose, let one side stay.\n"
	 "\n"
	 "      --choose=SIDE       of a fork: its number, as shown\n"
	 "  -n, --dry-run           only say what is wrong\n"
	 "      --json              one JSON object for each, and a last one\n"
	 "  -h, --help\n"},
	{"resize", cmd_resize, "let an image use all of a target that grew",
	 "resize [options] TARGET\n"
	 "\n"
	 "Let the image have all bytes of its target, which may have grown.\n"
	 "\n"
	 "      --json              as JSON\n"
	 "      --size=SIZE         so many; a file or RBD image is made that large\n"
	 "  -h, --help\n"},
	{"map", cmd_map, "publish a snapshot on this machine",
	 "map [options] TARGET[@SNAPSHOT] [NAME]\n"
	 "\n"
	 "Check a snapshot and publish it as NAME (default: the image's label, else\n"
	 "the snapshot's name), which then is a target everywhere. Print the name.\n"
	 "\n"
	 "      --json              print the mapping as a JSON object\n"
	 "      --read-only         set the block device read-only until unmap\n"
	 "      --via=WAY           of an RBD snapshot: krbd (the kernel's block\n"
	 "                          device), librbd, or auto (default: krbd where\n"
	 "                          it works)\n"
	 "  -h, --help\n"},
	{"unmap", cmd_unmap, "withdraw what map published",
	 "unmap NAME...\n"
	 "\n"
	 "Withdraw names. What has one open may go on reading.\n"
	 "\n"
	 "  -h, --help\n"},
	{"maps", cmd_maps, "list what is mapped",
	 "maps [--json]\n"
	 "\n"
	 "List the names that are published on this machine.\n"
	 "\n"
	 "      --json              one JSON object for each name\n"
	 "  -h, --help\n"},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void overview(FILE *to)
{
	fputs("usage: stele COMMAND [options] [arguments]\n\n", to);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(to, "  %-10s%s\n", commands[i].name,
			commands[i].summary);
	fputs("\n"
	      "A TARGET is a block device, a regular file, a mapped name, or a Ceph\n"
	      "RBD image, rbd:POOL[/NAMESPACE]/IMAGE; @NAME behind it picks a snapshot,\n"
	      "@sha256:HEX pins one. For RBD, all commands take --ceph-conf=FILE,\n"
	      "--ceph-user=ID and --timeout=SECONDS.\n"
	      "'stele help COMMAND' tells more, 'man stele' all.\n",
	      to);
}

static const struct cmd *find(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	cmd_message("'%s' is not a command; see 'stele --help'", name);
	return NULL;
}

static int help(const char *name)
{
	const struct cmd *cmd;

	if (name) {
		cmd = find(name);
		return cmd ? cmd_help(cmd) : CMD_USAGE;
	}
	overview(stdout);
	return cmd_finish(CMD_OK);
}

/*
 * A target that is opened as descriptor 1 or 2 would get what is printed. So a
 * closed one becomes /dev/null, the wrong way round: using it is an error.
 */
static bool fill_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
		    open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	const struct cmd *cmd;
	const char *word;

	if (!fill_descriptors())
		return CMD_FAILED;
	if (!cmd_take_ceph(&argc, argv))
		return CMD_USAGE;
	word = argc > 1 ? argv[1] : NULL;
	if (!word) {
		overview(stderr);
		return CMD_USAGE;
	}
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		return help(NULL);
	if (strcmp(word, "help") == 0)
		return help(argc > 2 ? argv[2] : NULL);
	if (strcmp(word, "--version") == 0) {
		printf("stele %s\n", stele_version());
		return cmd_finish(CMD_OK);
	}
	cmd = find(word);
	if (!cmd || cmd_check_environment(cmd, argv + 2) >= 0)
		return CMD_USAGE;
	/* getopt's messages should name the program as all others do. */
	argv[1] = (char *)"stele";
	return cmd->run(cmd, argc - 1, argv + 1);
}
