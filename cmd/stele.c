/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stele.c - the table of commands, which drives dispatch, help and usage
 */
#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "complete.h"
#include "damage.h"
#include "suggest.h"

#define VERIFY_OPTION \
	"      --verify=WHAT       none, crc (default), digest (default if pinned)\n"

static const struct cmd commands[] = {
	{"build", cmd_build, "write a directory or archives to a new image",
	 "build [options] SOURCE... TARGET[@SNAPSHOT]\n"
	 "\n"
	 "Write the files below SOURCE, or the samples of archives and record files,\n"
	 "to TARGET, a block device, a regular file or an RBD image, and publish them\n"
	 "as its first snapshot (default name: v1).\n"
	 "\n"
	 "      --allow-empty       make an image even of a directory without files\n"
	 "      --arrays=NAME,...   hdf5, npz: arrays, or groups of them (default: all)\n"
	 "      --backend=NAME      I/O backend: uring, threads\n"
	 "      --boundary=SIZE     let no sample cross a multiple of SIZE, or none\n"
	 "                          (default: an RBD image's object size, else none)\n"
	 "      --database=NAME     lmdb: a database that has a name\n"
	 "      --datum             lmdb: values are Datum of Caffe, parts are fields\n"
	 "  -n, --dry-run           check everything, print the layout, write nothing;\n"
	 "                          TARGET is optional\n"
	 "      --example           tfrecord: of tf.train.Example, features are fields\n"
	 "      --exclude=PATTERN   leave out files and directories: by name ('*.txt'),\n"
	 "                          or path below SOURCE ('train/.cache/'); repeatable\n"
	 "      --follow            take what symbolic links lead to\n"
	 "  -f, --force             overwrite existing contents of TARGET\n"
	 "      --from=FORMAT       what SOURCE is: dir, tar, tfrecord, recordio,\n"
	 "                          lmdb, npy, npz, hdf5, mindrecord, jsonl, csv,\n"
	 "                          ffrecord (detected), manifest, text, webdataset\n"
	 "      --granule=N         16, 64, 512 or 4096 bytes (default: the largest\n"
	 "                          with at most 2 % padding)\n"
	 "  -j, --jobs=N            threads (default: 8 per core, at most 32)\n"
	 "      --json              print the summary as JSON\n"
	 "      --key=COLUMN        that has the keys of samples (default: key)\n"
	 "      --label=TEXT        name of the image\n"
	 "      --label-from=WHERE  directory that a sample's class is named after:\n"
	 "                          its level (1: at the top), parent, none, or auto\n"
	 "                          (the default: 2 below train, val, test; else 1)\n"
	 "      --memory=SIZE       memory for buffers (default: 256M)\n"
	 "      --note=TEXT         note to store with the snapshot\n"
	 "      --object-size=SIZE  of a new RBD image: 4K to 32M (default: 4M)\n"
	 "      --on-error=WHAT     samples that cannot be read, are damaged, change or\n"
	 "                          vanish meanwhile: fail (default) or skip\n"
	 "      --order=ORDER       size (default) or source: by key\n"
	 "      --payload=COLUMN    of a manifest: has the paths of files (default: path)\n"
	 "      --posix             make it an EROFS, too, which the kernel can mount\n"
	 "  -q, --quiet             print only errors\n"
	 "      --size=SIZE         size of the file or RBD image (default: to fit)\n"
	 "      --time=TIME         of the snapshot: seconds since 1970 (> 0) or ISO 8601\n"
	 "      --type=COLUMN:TYPE  of a table: class, text, f64, or none to leave it out\n"
	 "      --uuid=UUID         of the image (default: random)\n"
	 "  -h, --help\n"},
	{"append", cmd_append, "add new samples of a source to an image",
	 "append [options] SOURCE... TARGET@NEW\n"
	 "\n"
	 "Create a snapshot NEW from an existing one and those samples of SOURCE\n"
	 "whose keys it lacks. Only new data is written.\n"
	 "\n"
	 "      --allow-empty       no error if SOURCE has no files\n"
	 "      --always            create NEW even if nothing has changed\n"
	 "      --arrays=NAME,...   as for build\n"
	 "      --backend=NAME      I/O backend: uring, threads\n"
	 "      --base=OLD          snapshot to start from (default: the newest)\n"
	 "      --boundary=SIZE     let no sample cross a multiple of SIZE, or none\n"
	 "      --database=NAME     as for build\n"
	 "      --datum             as for build\n"
	 "      --delete-missing    drop samples that SOURCE lacks\n"
	 "  -n, --dry-run           compare, print what would be done, write nothing\n"
	 "      --example           as for build\n"
	 "      --exclude=PATTERN   as for build, and as it was given there; repeatable\n"
	 "      --follow            take what symbolic links lead to\n"
	 "  -f, --force             with --delete-missing: drop more than half; with\n"
	 "                          --label-from: by other directories than there\n"
	 "      --from=FORMAT       what SOURCE is, as for build\n"
	 "      --granule=N         16, 64, 512 or 4096 bytes (default: the largest\n"
	 "                          with at most 2 % padding)\n"
	 "  -j, --jobs=N            threads (default: 8 per core, at most 32)\n"
	 "      --json              print the summary as JSON\n"
	 "      --key=COLUMN        as for build\n"
	 "      --label-from=WHERE  as for build, and as it was given there\n"
	 "      --memory=SIZE       memory for buffers (default: 256M)\n"
	 "      --note=TEXT         note to store with the snapshot\n"
	 "      --on-error=WHAT     as for build\n"
	 "      --order=ORDER       size (default) or source: by key\n"
	 "      --payload=COLUMN    as for build\n"
	 "      --quick             with --update: do not read files of unchanged size\n"
	 "                          that were last changed before the base\n"
	 "  -q, --quiet             print only errors\n"
	 "      --size=SIZE         first grow a regular file to SIZE\n"
	 "      --time=TIME         of the snapshot: seconds since 1970 (> 0) or ISO 8601\n"
	 "      --type=COLUMN:TYPE  as for build\n"
	 "      --update            also replace samples whose contents changed\n"
	 "  -h, --help\n"},
	{"compact", cmd_compact, "rewrite a snapshot as one segment",
	 "compact [options] TARGET[@SNAPSHOT] NEW\n"
	 "\n"
	 "Rewrite the live samples of a snapshot as one contiguous segment of the\n"
	 "same image, and publish it as snapshot NEW.\n"
	 "\n"
	 "      --backend=NAME      I/O backend: uring, threads\n"
	 "      --boundary=SIZE     let no sample cross a multiple of SIZE, or none\n"
	 "  -n, --dry-run           print the layout, write nothing\n"
	 "      --granule=N         16, 64, 512 or 4096 bytes (default: the largest\n"
	 "                          with at most 2 % padding)\n"
	 "  -j, --jobs=N            threads (default: 8 per core, at most 32)\n"
	 "      --json              print the summary as JSON\n"
	 "      --memory=SIZE       memory for buffers (default: 256M)\n"
	 "      --note=TEXT         note to store with the snapshot\n"
	 "      --order=ORDER       size (default) or source: in key order\n"
	 "  -q, --quiet             print only errors\n"
	 "      --time=TIME         of the snapshot: seconds since 1970 (> 0) or ISO 8601\n"
	 "  -h, --help\n"},
	{"info", cmd_info, "describe an image and a snapshot",
	 "info [--export|--json] TARGET[@SNAPSHOT]\n"
	 "\n"
	 "Print identity, snapshots and space of the image on TARGET, and digest,\n"
	 "fields and layout of the snapshot.\n"
	 "\n"
	 "      --export            print version, UUID and label, as udev reads them\n"
	 "      --json              print one JSON object\n"
	 "  -h, --help\n"},
	{"ls", cmd_ls, "list keys",
	 "ls [options] TARGET[@SNAPSHOT] [PREFIX|PATTERN]\n"
	 "\n"
	 "List the keys of the samples in sorted order, optionally only those that\n"
	 "start with PREFIX, or match a PATTERN with *, ? or [...].\n"
	 "\n"
	 "  -F, --fields            also print the fields: reads each sample\n"
	 "      --json              print one JSON object per sample\n"
	 "      --limit=N           stop after N keys\n"
	 "  -l, --long              also print id, size, labels and other scalars\n"
	 "  -0, --null              end each key with a NUL byte, do not escape it\n"
	 "  -h, --help\n"},
	{"query", cmd_query, "find samples by their fields, in SQL",
	 "query [options] TARGET[@SNAPSHOT] SELECT\n"
	 "\n"
	 "Run one SELECT over the table 'samples': id, key, size, and the fields that\n"
	 "are numbers or text, by their names. Class names are in FIELD_name and split.\n"
	 "\n"
	 "  stele query cats.img 'SELECT key FROM samples WHERE label = 7 AND size > 4096'\n"
	 "\n"
	 "      --csv               comma-separated values (default, if not to a terminal)\n"
	 "      --ids               only the column id, one a line\n"
	 "      --json              print one JSON object per row\n"
	 "      --table             columns for a reader (default on a terminal)\n"
	 "  -h, --help\n"},
	{"cat", cmd_cat, "write samples to stdout",
	 "cat [options] TARGET[@SNAPSHOT] KEY|#ID...\n"
	 "\n"
	 "Write the contents of samples to stdout, one after another.\n"
	 "\n"
	 "  -F, --field=NAME        write only this field; a scalar as a line of text\n"
	 "  -k, --keys              treat every argument as a key, even if it looks\n"
	 "                          like #ID\n"
	 "      --offset=SIZE       begin so many bytes into each sample\n"
	 "      --size=SIZE         write no more of each sample than that\n"
	 VERIFY_OPTION
	 "  -h, --help\n"},
	{"extract", cmd_extract, "write samples to files",
	 "extract [options] TARGET[@SNAPSHOT] DIR [KEY...]\n"
	 "\n"
	 "Write all samples, or those named KEY or below KEY, to files below DIR.\n"
	 "\n"
	 "      --field=NAME        write this field only\n"
	 "  -f, --force             replace existing files\n"
	 "  -q, --quiet             print only errors\n"
	 "      --skip-existing     keep files that exist with the sample's size\n"
	 VERIFY_OPTION
	 "  -h, --help\n"},
	{"export", cmd_export, "write a snapshot as an archive or record file",
	 "export [options] TARGET[@SNAPSHOT] FILE|-\n"
	 "\n"
	 "Write all samples, in key order, as a tar archive or in another format to\n"
	 "FILE or stdout. The same samples and snapshot time give the same bytes.\n"
	 "\n"
	 "      --example           tfrecord: of tf.train.Example, with all fields\n"
	 "      --field=NAME        tar, tfrecord, lmdb: take this field only\n"
	 "  -f, --force             replace an existing FILE\n"
	 "      --prefix=TEXT       prepend TEXT to each name, verbatim\n"
	 "  -q, --quiet             print only errors\n"
	 "      --shard-size=SIZE   begin another file, as FILE is called with %06d\n"
	 "                          replaced by numbers, when one has SIZE bytes\n"
	 "      --to=FORMAT         tar (default), webdataset, tfrecord or lmdb\n"
	 VERIFY_OPTION
	 "  -h, --help\n"},
	{"copy", cmd_copy, "copy a snapshot to another target",
	 "copy [options] SOURCE[@SNAPSHOT] TARGET[@NAME]\n"
	 "\n"
	 "Copy a snapshot to TARGET, transferring only segments that TARGET lacks.\n"
	 "Creates an image if TARGET has none. To resume after an interruption, run\n"
	 "the same command again.\n"
	 "\n"
	 "      --backend=NAME      I/O backend: uring, threads\n"
	 "  -n, --dry-run           check everything but the samples, write nothing\n"
	 "  -f, --force             overwrite existing contents of TARGET, even an\n"
	 "                          image\n"
	 "  -j, --jobs=N            threads (default: 4 per core, at most 32)\n"
	 "      --json              print the summary as JSON\n"
	 "      --label=TEXT        of a new image (default: the source's)\n"
	 "      --object-size=SIZE  of a new RBD image (default: 4M)\n"
	 "  -q, --quiet             print only errors\n"
	 "      --size=SIZE         of a new file or RBD image (default: to fit)\n"
	 "      --time=TIME         of the commit: seconds since 1970 (> 0) or ISO 8601\n"
	 "      --uuid=UUID         of a new image (default: random)\n"
	 "  -h, --help\n"},
	{"verify", cmd_verify, "check every checksum and digest",
	 "verify [options] TARGET[@SNAPSHOT]\n"
	 "\n"
	 "Read everything in the image or the snapshot, and print a line for each\n"
	 "damaged item. Exits with status 3 if there is any: 'stele help damage' says\n"
	 "how to go on then.\n"
	 "\n"
	 "  -j, --jobs=N            threads (default: one per core)\n"
	 "      --json              print one JSON object per item, and a final one\n"
	 "  -q, --quiet             print only damage and errors\n"
	 "  -h, --help\n"},
	{"tune", cmd_tune, "measure how deep a queue a device wants",
	 "tune [options] TARGET[@SNAPSHOT]\n"
	 "\n"
	 "Read at random places of a snapshot, in sizes from 4 KiB up, ever more at a\n"
	 "time, for about 40 s. Print what comes back how late, and the depth and backend\n"
	 "that deliver 97 % of the most. Readers find their depth by themselves.\n"
	 "\n"
	 "      --backend=NAME      measure this one alone: uring, threads, iopoll,\n"
	 "                          hybrid, sqpoll, passthrough\n"
	 "      --json              what was found as one JSON object\n"
	 "      --quick             about 5 s, less exact\n"
	 "      --svg=FILE          also draw latency against throughput\n"
	 "  -h, --help\n"},
	{"bench", cmd_bench, "measure how fast samples are read",
	 "bench [options] TARGET[@SNAPSHOT]\n"
	 "\n"
	 "Read samples for a few seconds and print throughput, latency and CPU cost.\n"
	 "Nothing is written.\n"
	 "\n"
	 "      --accelerator=MODEL emulate an accelerator training resnet50,\n"
	 "                          cosmoflow or unet3d, and report how busy it is\n"
	 "      --accelerators=N    number of them (default: 1), or max: find out how\n"
	 "                          many can be kept busy\n"
	 "      --arrivals=KIND     with --rate: random (default) or fixed intervals\n"
	 "      --backend=NAME      I/O backend\n"
	 "      --batch=N           samples to wait for at a time (default: 1)\n"
	 "      --block-count=N     with --order=windowed: blocks per window\n"
	 "      --block-size=N      with --order=windowed: samples per block\n"
	 "      --check-threads=N   threads that compute checksums (default: none)\n"
	 "      --depth=N           device reads in flight (default: automatic)\n"
	 "      --epochs=N          read all samples N times\n"
	 "      --gpu=NAME          accelerator to emulate: h100 (default) or a100\n"
	 "      --interval=SECONDS  also print figures at this interval\n"
	 "      --iolog=FILE        also write the device reads as a log that fio replays\n"
	 "      --json              print one JSON object\n"
	 "      --loader            read batches through loaders, as training does\n"
	 "      --memory=SIZE       memory for buffers, per thread\n"
	 "      --order=ORDER       random (default), windowed or sequential\n"
	 "      --prometheus=FILE   also write figures in Prometheus text format\n"
	 "  -q, --quiet             show no progress\n"
	 "      --rate=N            start N samples a second, ready or not\n"
	 "      --samples=N         samples to read\n"
	 "      --seed=N            of the order (default: 0)\n"
	 "      --shuffle           report how well the order mixes, read nothing\n"
	 "      --stats             print all counters of the readers\n"
	 "      --sync              request a batch only when the last one is complete\n"
	 "      --threads=N         reading threads, each with a reader (default: 1)\n"
	 "      --time=SECONDS      how long to read (default: 10, or no limit if\n"
	 "                          --epochs or --samples is given)\n"
	 "      --verify=WHAT       crc (default), digest or none\n"
	 "  -h, --help\n"},
	{"diff", cmd_diff, "compare two snapshots",
	 "diff [options] TARGET@SNAPSHOT TARGET@SNAPSHOT\n"
	 "\n"
	 "Print, in sorted order, keys that only the second snapshot has (+), that\n"
	 "only the first has (-), and whose contents differ (~).\n"
	 "\n"
	 "      --exit-code         exit with status 1 if there are differences\n"
	 "      --json              print one JSON object per key\n"
	 "  -0, --null              end each key with a NUL byte, do not escape it\n"
	 "      --stat              print only the number of keys\n"
	 "  -h, --help\n"},
	{"du", cmd_du, "show the space of each snapshot",
	 "du [--json] TARGET\n"
	 "\n"
	 "Print the bytes on TARGET that each snapshot holds alone, which are free once\n"
	 "it is deleted and gc has run, and those that it shares with others.\n"
	 "\n"
	 "      --json              print one JSON object per snapshot\n"
	 "  -h, --help\n"},
	{"view", cmd_view, "draw an image and a snapshot as a page of HTML",
	 "view --html=FILE [options] TARGET[@SNAPSHOT]\n"
	 "\n"
	 "Write one page that needs nothing else: layout of the image, sizes of samples,\n"
	 "fields and classes, some samples that are pictures, history of snapshots.\n"
	 "\n"
	 "      --html=FILE         the page; - is stdout\n"
	 "      --images=N          pictures to embed (default: 24)\n"
	 "  -h, --help\n"},
	{"snapshot", cmd_snapshot, "create, list, rename, delete, undelete snapshots",
	 "snapshot create [options] TARGET@NEW\n"
	 "       stele snapshot list [--deleted] [--json] TARGET\n"
	 "       stele snapshot rename [options] TARGET@OLD NEW\n"
	 "       stele snapshot delete [options] TARGET@NAME...\n"
	 "       stele snapshot undelete [options] TARGET@NAME\n"
	 "\n"
	 "A new snapshot is an existing one minus some samples; only 'stele compact'\n"
	 "saves their space. A deleted snapshot keeps what it does not share until\n"
	 "'stele gc' frees that; until then it can be undeleted.\n"
	 "\n"
	 "create:\n"
	 "      --base=NAME         snapshot to start from (default: the newest)\n"
	 "  -d, --delete=KEY|#ID    drop a sample; may be repeated\n"
	 "      --keys-from=FILE    drop the keys in FILE, one per line; - is stdin\n"
	 "      --note=TEXT         note, shown by list\n"
	 "  -0, --null              keys in files end with a NUL byte\n"
	 "      --where=EXPRESSION  keep only samples for which it is true: SQL, see\n"
	 "                          stele query\n"
	 "\n"
	 "      --deleted           list: those that can be undeleted\n"
	 "      --as=NAME           undelete: under this name\n"
	 "\n"
	 "rename, delete: on Ceph RBD, where readers cannot be seen, one is required:\n"
	 "  -f, --force             do not wait for readers; delete the last snapshot\n"
	 "      --grace=DURATION    let readers go on for: 90 (seconds), 10m, 2h, 7d\n"
	 "\n"
	 "  -n, --dry-run           check everything, write nothing\n"
	 "      --json              create, list: print one JSON object per snapshot\n"
	 "      --time=TIME         of the change: seconds since 1970 (> 0) or ISO 8601\n"
	 "  -h, --help\n"},
	{"gc", cmd_gc, "free space that no snapshot uses",
	 "gc [options] TARGET\n"
	 "\n"
	 "List what no snapshot uses any more; with --apply, free its space. Readers\n"
	 "of a deleted snapshot cannot be seen, so --apply needs --grace or --force.\n"
	 "\n"
	 "      --apply             free space (default: dry run)\n"
	 "      --discard           also discard free space on the device\n"
	 "  -n, --dry-run           with --apply: check everything, write nothing\n"
	 "  -f, --force             free everything, however recently it was in use\n"
	 "      --grace=DURATION    free what has been unused for: 90 (seconds), 10m,\n"
	 "                          2h, 7d\n"
	 "      --json              print one JSON object per item, and a final one\n"
	 "  -h, --help\n"},
	{"repair", cmd_repair, "rewrite superblocks, choose a version",
	 "repair [options] TARGET\n"
	 "\n"
	 "Rewrite superblock copies that are outdated or damaged. If two writers have\n"
	 "published at once, show both branches; with --choose, keep one of them.\n"
	 "\n"
	 "      --choose=BRANCH     branch to keep: its number, as shown\n"
	 "  -n, --dry-run           only report problems\n"
	 "      --json              print one JSON object per item, and a final one\n"
	 "  -h, --help\n"},
	{"resize", cmd_resize, "extend an image to the full size of its target",
	 "resize [options] TARGET\n"
	 "\n"
	 "Extend the image to the full size of its target, which may have grown.\n"
	 "\n"
	 "  -n, --dry-run           check everything, write nothing\n"
	 "      --json              print JSON\n"
	 "      --size=SIZE         new size; a file or RBD image is grown to it\n"
	 "  -h, --help\n"},
	{"posix", cmd_posix, "let the kernel mount an image, or no more",
	 "posix [options] on|off TARGET\n"
	 "\n"
	 "Make the image on TARGET a read-only EROFS, too, over the same bytes: the Linux\n"
	 "kernel mounts it, with a directory for each snapshot and a file for each sample.\n"
	 "\n"
	 "  -n, --dry-run           check everything, write nothing\n"
	 "  -h, --help\n"},
	{"mount", cmd_mount, "show samples as files",
	 "mount [options] TARGET[@SNAPSHOT] DIR\n"
	 "\n"
	 "Mount a snapshot on DIR, read-only, with a file for each sample at its key; or\n"
	 "all snapshots of an image, each in a directory of its name.\n"
	 "\n"
	 "      --allow-other       via fuse: let other users read, too (default for root)\n"
	 "      --foreground        via fuse: serve from this process, until unmounted\n"
	 "      --via=WAY           erofs (the kernel alone: root, and 'stele posix on'),\n"
	 "                          fuse (any target and user, all checksums verified), or\n"
	 "                          auto (default: erofs where it works)\n"
	 "  -h, --help\n"},
	{"umount", cmd_umount, "end what mount began",
	 "umount DIR\n"
	 "\n"
	 "Unmount DIR, however it was mounted.\n"
	 "\n"
	 "  -h, --help\n"},
	{"map", cmd_map, "publish a snapshot on this machine",
	 "map [options] TARGET[@SNAPSHOT] [NAME]\n"
	 "\n"
	 "Check a snapshot and publish it as NAME (default: the image's label, else\n"
	 "the snapshot's name), which can then be used as a target. Print the name.\n"
	 "\n"
	 "      --json              print the mapping as a JSON object\n"
	 "      --read-only         set the block device read-only until unmap\n"
	 "      --via=WAY           of an RBD snapshot: krbd (the kernel's block\n"
	 "                          device), librbd, or auto (default: krbd where\n"
	 "                          it works)\n"
	 "  -h, --help\n"},
	{"unmap", cmd_unmap, "remove names published by map",
	 "unmap NAME...\n"
	 "\n"
	 "Remove names. Programs that have one open may go on reading.\n"
	 "\n"
	 "  -h, --help\n"},
	{"maps", cmd_maps, "list mapped names",
	 "maps [--json]\n"
	 "\n"
	 "List the names published on this machine.\n"
	 "\n"
	 "      --json              print one JSON object per name\n"
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
	      "RBD image, rbd:POOL[/NAMESPACE]/IMAGE; append @NAME to select a snapshot,\n"
	      "@sha256:HEX to pin one. For RBD, all commands take --ceph-conf=FILE,\n"
	      "--ceph-user=ID and --timeout=SECONDS; with --progress, those that read or\n"
	      "write samples say how far they are even where stderr is no terminal.\n"
	      "See 'stele help COMMAND' for options, 'stele help damage' for what to do about\n"
	      "damage, 'man stele' for everything else.\n",
	      to);
}

/* What others call it; NULL: none of these. */
static const char *command_for(const char *word)
{
	static const char *const words[][2] = {
		{"create", "build"}, {"mkfs", "build"}, {"make", "build"}, {"pack", "build"},
		{"fsck", "verify"}, {"check", "verify"}, {"scrub", "verify"},
		{"fix", "repair"}, {"get", "cat"}, {"show", "info"},
		{"stat", "info"}, {"unpack", "extract"}, {"add", "append"}, {"cp", "copy"},
		{"clone", "copy"}, {"trim", "gc"}, {"prune", "gc"}, {"defrag", "compact"},
		{"grow", "resize"}, {"unmount", "umount"}, {"compare", "diff"}, {"cmp", "diff"},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i][0], word))
			return words[i][1];
	return NULL;
}

static void no_option(const char *name)
{
	static const char *const options[] = {
		"--help", "--version", "--ceph-conf=", "--ceph-user=",
	};
	struct suggest suggest = {.word = name};

	cmd_message("'%s' is not an option of stele itself; see 'stele --help'", name);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		suggest_offer(&suggest, options[i], strlen(options[i]));
	if (*suggest.best)
		suggest_print(&suggest, "");
	else
		cmd_hint("options of a command follow it: 'stele COMMAND %s'", name);
}

static const struct cmd *find(const char *name)
{
	struct suggest names = {.word = name};
	const char *verb = cmd_snapshot_verb(name);

	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	if (*name == '-') {
		no_option(name);
		return NULL;
	}
	cmd_message("'%s' is not a command; see 'stele --help'", name);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		suggest_offer(&names, commands[i].name, strlen(commands[i].name));
	suggest_offer(&names, "help", 4);
	if (command_for(name))
		cmd_hint("did you mean '%s'?", command_for(name));
	else if (verb)
		cmd_hint("did you mean 'stele snapshot %s'?", verb);
	else
		suggest_print(&names, "");
	return NULL;
}

static int help(const char *name)
{
	const bool damage = name && !strcmp(name, "damage");
	const struct cmd *cmd = name && !damage ? find(name) : NULL;

	if (name && !cmd && !damage)
		return CMD_USAGE;
	if (damage)
		damage_help();
	else if (cmd)
		printf("usage: stele %s", cmd->usage);
	else
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
	int status;

	if (!fill_descriptors())
		return CMD_FAILED;
	signal(SIGXFSZ, SIG_IGN); /* a file beyond 'ulimit -f' is an error as any other */
	cmd_output_begin();
	if (argc > 1 && strcmp(argv[1], "__complete") == 0)
		return complete_words(commands, COMMAND_COUNT, argv + 2);
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
		return help(argc > 2 && strcmp(argv[2], "help") != 0 ? argv[2] : NULL);
	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
		printf("stele %s\n", stele_version());
		return cmd_finish(CMD_OK);
	}
	cmd = find(word);
	if (!cmd || cmd_check_environment(cmd, argv + 2) >= 0)
		return CMD_USAGE;
	/* getopt's messages should name the program like all others. */
	argv[1] = (char *)"stele";
	cmd_begin(cmd, argv + 1);
	status = cmd_complete_digests(argv + 2);
	if (status >= 0)
		return status;
	return cmd->run(cmd, argc - 1, argv + 1);
}
