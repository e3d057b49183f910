/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remedy.c - what to do next after a call of the library was refused
 *
 * The library says what is wrong and names no option; this table adds the way
 * out. The first row that matches counts, so a row with words stands above one
 * without. Names that are mistyped get the closest one that exists.
 */
#include "remedy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "from/source.h"
#include "snapshots.h"
#include "suggest.h"
#include "text.h"

#define RUN_AS "run it as "
#define READ_PERMISSION                                                      \
	RUN_AS "root, or get permission to read it: see PERMISSIONS in stele(1)"
#define OWN_RUN_DIR "set STELE_RUN_DIR to a directory of your own"
#define MAP_AGAIN   "run 'stele unmap' and 'stele map' again"
#define LEAVE_OUT   "use --on-error=skip to leave such files out"
#define LEAVE_DAMAGE "use --on-error=skip to leave out what is damaged"
#define MAKE_UTF8                                                            \
	"if it is in Latin-1, 'iconv -f LATIN1 -t UTF-8 FILE' makes UTF-8 of it; else " LEAVE_DAMAGE
#define WHEN_QUIET  "run it again once nobody writes there"
#define MAY_READ    RUN_AS "a user who may read all of SOURCE, or " LEAVE_OUT
#define FREE_BEHIND                                                          \
	"free space behind the device: in its pool, or where the file of a loop device is"
#define GIVE_BACK                                                            \
	FREE_BEHIND "; blkdiscard(8) gives back what the unfinished image takes"
#define DISCARD                                                              \
	FREE_BEHIND "; 'stele gc --apply --force --discard' gives back what was written, and all " \
	"else that is unused"
#define DAMAGE	    "'stele help damage' and DAMAGE in stele-verify(1) say how to go on"
#define KEEP_SAMPLES                                                         \
	"copy the snapshot from elsewhere; or a few lines of Python write its samples anew, with " \
	"keys and all fields: " DAMAGE
#define NO_TREE                                                              \
	"run 'stele posix off'; 'stele posix on' makes files of it again once no snapshot has " \
	"damage, of which 'stele verify TARGET@NAME' tells each by itself: " DAMAGE
#define OLDER_BASE                                                           \
	"--base=NAME starts from another snapshot, which may be sound: 'stele verify' lists " \
	"all damage; " DAMAGE
#define LOST_FRONT                                                           \
	"write nothing there: restore the first 2 MiB as they were after the " \
	"last change, if they were saved, else copy the image from elsewhere"
#define LOST_CATALOG                                                         \
	"without a catalog no snapshot can be found: copy the image from "  \
	"elsewhere, or run 'stele build --force' again"
#define OTHER_BYTES  "choose another target: 'losetup -l' and 'lsblk' show what devices are over"
#define CHOOSE_OTHER "'stele repair -n' shows which branches can be chosen"
#define ELSEWHERE "name the device that the image was built on; once that is given up, "
#define LOOK_FIRST                                                           \
	"'stele verify' lists the damage, 'stele repair' mends what it can; " \
	"use --force to overwrite the image"
#define UNMAP	"run 'stele unmap' with that name"
#define SET_RW                                                               \
	"unmap it, or set it writable with 'blockdev --setrw'; a loop device " \
	"of 'losetup -r': attach it again without -r"
#define UNDELETE                                                             \
	"'stele snapshot undelete TARGET@NAME' brings one back: see 'stele " \
	"snapshot list --deleted TARGET'"
#define FILL                                                                 \
	"run 'stele copy' again if one was interrupted, or add a snapshot "  \
	"with 'stele append'"
#define OTHER_TMPDIR "set TMPDIR to a directory that takes files"
#define LIST_KEYS  "'stele ls' lists the keys"
#define OTHER_FILE "choose a smaller size, a filesystem that has larger files, or a device"
#define OTHER_NAME "choose another name, or first give that snapshot another one with 'stele "\
		   "snapshot rename'"
#define FILE_LIMIT "files may not be that large here: raise the limit with 'ulimit -f'"
#define OTHER_FIELDS                                                         \
	"append what the image was built from, as it is now, with the same --from; 'stele build' " \
	"makes an image of its own of what has other fields"
#define SAME_LISTS                                                           \
	"lists have the type and the length that they have in the image, and numbers are none; " \
	"'stele build' makes an image of its own of what has others"
#define WHY_SKIPPED "what was skipped, and why, follows"
#define IN_USE "try again when nothing else uses it"
#define CUT_OFF "bytes, but its target only"
#define FULL_SIZE "give the target its full size again, or copy the image anew"
#define NOT_EVEN_ROOT                                                        \
	"not even root may: see whether it is immutable or append-only (lsattr), or on an NFS " \
	"that squashes root"

static const struct {
	int error;
	const char *verbs; /* in blanks; NULL: all */
	const char *words; /* in the message; NULL: any */
	const char *remedy; /* NULL: there is none */
} remedies[] = {
	{-EEXIST, NULL, "written over its image",
	 "if the image shall stay, erase that with 'wipefs -a' (of a file with its --force), then "
	 "run 'stele repair'"},
	{-EEXIST, NULL, "as well as a file", NULL},
	{-EEXIST, " build append ", "changed while it was read", WHEN_QUIET},
	{-EEXIST, " webdataset ", "has the key '",
	 "members of one sample have to follow each other in one archive, as 'tar --sort=name' "
	 "puts them, and no other archive may have that sample"},
	{-EEXIST, " build append ", "has the key '", "keys are unique: rename one of the two"},
	{-EEXIST, " build ", "that can be undeleted",
	 "use 'stele append' to add a snapshot to it, or 'stele snapshot undelete' to have one "
	 "back; --force overwrites the image, and none can be undeleted then"},
	{-EEXIST, " build ", "holds a Stele image, ",
	 "use 'stele append' to add a snapshot to it, or --force to overwrite it"},
	{-EEXIST, " build copy ", "larger than it",
	 "give the target its full size again, or use --force to overwrite the image"},
	{-EEXIST, " build copy ", "that begins elsewhere", ELSEWHERE "--force overwrites it"},
	{-EEXIST, " build copy ", "lost its superblocks",
	 "'stele repair' mends it, or says why that cannot be done; use --force to overwrite the "
	 "image"},
	{-EEXIST, " build copy ", "cannot be opened", LOOK_FIRST},
	{-EEXIST, " build copy ", "unfinished image",
	 "use --force to overwrite it: unless a build is still running, on whatever "
	 "machine, nothing is lost"},
	{-EEXIST, " copy ", "has another snapshot '",
	 "copy it to another TARGET@NAME, or first give that snapshot another name with 'stele "
	 "snapshot rename'; --force overwrites the whole image, and all that it holds"},
	{-EEXIST, " build copy ", "snapshot '",
	 "use --force to overwrite the image, or another TARGET@NAME"},
	{-EEXIST, " build copy ", "(partition table)",
	 "name one of its partitions, or use --force to overwrite them all"},
	{-EEXIST, " build copy ", NULL, "use --force to overwrite it"},
	{-EEXIST, " snapshot ", "no snapshot would be left",
	 "use --force to delete it all the same"},
	{-EEXIST, " snapshot ", "cannot undelete",
	 "--as=NAME gives it a name that no snapshot has"},
	{-ENOENT, " repair ", "there is no branch", "'stele repair -n' shows those that there are"},
	{-ENOENT, " snapshot ", "no deleted snapshot",
	 "'stele snapshot list --deleted' shows those that can be undeleted"},
	{-EEXIST, " append compact snapshot ", NULL, OTHER_NAME},
	{-EEXIST, " webdataset ", "there is a snapshot '", OTHER_NAME},
	{-EEXIST, " map ", NULL,
	 "choose another NAME, or first remove this one with 'stele unmap'"},
	{-EBUSY, " snapshot ", "may still have readers",
	 "use --grace=DURATION to let them finish, or --force"},
	{-EBUSY, NULL, "unmap it", UNMAP},
	{-EBUSY, NULL, "is a mapping of", UNMAP ", and name the target itself"},
	{-EBUSY, NULL, "mounted, held, or open elsewhere", IN_USE},
	{-EBUSY, NULL, "mounted", "unmount it first"},
	{-EBUSY, NULL, "is swap", "run swapoff first"},
	{-EBUSY, NULL, NULL, IN_USE},
	{-ENOSYS, NULL, "without '/proc/", MOUNT_PROC},
	{-ENOSYS, NULL, "without '/sys/", MOUNT_SYS},
	{-EINPROGRESS, " copy ", "unfinished image",
	 "SOURCE is not complete: finish its build, or run 'stele build --force' again"},
	{-ENODATA, " copy ", CUT_OFF,
	 "give SOURCE its full size again, or copy the snapshot from elsewhere"},
	{-ENODATA, " build copy ", NULL, NULL},
	{-EINPROGRESS, NULL, "being written by", "wait until that has ended"},
	{-EINPROGRESS, NULL, "may still be writing",
	 "wait until that has ended; if it was interrupted, run it again with --force"},
	{-EINPROGRESS, NULL, "unfinished image",
	 "run 'stele build --force' or 'stele copy --force' again"},
	{-ENODATA, NULL, CUT_OFF, FULL_SIZE},
	{-EOPNOTSUPP, " snapshot ", "multiples of 4096",
	 "run 'stele posix off' first; before it is on again, 'stele compact --granule=4096' makes "
	 "a snapshot of it that can be files"},
	{-EOPNOTSUPP, " snapshot ", "has a granule of",
	 "run 'stele posix off' first; before it is on again, 'stele compact --granule=512' makes "
	 "a snapshot of it that can be files"},
	{-EOPNOTSUPP, " posix ", "multiples of 4096",
	 "use 'stele compact --granule=4096', then delete the snapshots that have it"},
	{-EOPNOTSUPP, " posix ", "has a granule of",
	 "use 'stele compact --granule=512', then delete the snapshots that have it"},
	{-EOPNOTSUPP, " copy ", "multiples of 4096",
	 "use 'stele compact --granule=4096' and copy that snapshot, or run 'stele posix off' "
	 "on the target"},
	{-EOPNOTSUPP, " copy ", "has a granule of",
	 "use 'stele compact --granule=512' and copy that snapshot, or run 'stele posix off' "
	 "on TARGET"},
	{-EFBIG, NULL, NULL, FILE_LIMIT},
	{-EMFILE, NULL, NULL, "raise the limit with 'ulimit -n'"},
	{-ENOMEM, " build append ", NULL, "a smaller --memory and fewer --jobs take less"},
	{-ENOMEM, " compact copy verify ", NULL, "fewer --jobs take less"},
	{-ENOSPC, NULL, "temporary file",
	 "free space there, or set TMPDIR to a directory that has more"},
	{-EACCES, NULL, "temporary file in '", OTHER_TMPDIR},
	{-ENOENT, NULL, "temporary file in '", OTHER_TMPDIR},
	{-ENOTDIR, NULL, "temporary file in '", OTHER_TMPDIR},
	{-EROFS, NULL, "temporary file in '", OTHER_TMPDIR},
	{-ENOSPC, " snapshot gc repair posix ", "filesystem is full",
	 "free some space there first: whatever changes an image writes a little, deleting, too"},
	{-ENOSPC, NULL, "no inodes left", "remove files there, or choose another place"},
	{-ENOSPC, NULL, "filesystem is full", "free space there, or choose another place"},
	{-ENOSPC, " append compact table ", "storage behind the device is full", DISCARD},
	{-ENOSPC, NULL, "storage behind the device is full", FREE_BEHIND},
	{-ENOSPC, " build copy ", "left with an unfinished image", GIVE_BACK},
	{-ECANCELED, " build ", "left with an unfinished image",
	 "run it again, with --force to overwrite that"},
	{-ENOSPC, NULL, "its target has more", "run 'stele resize'"},
	{-ENOSPC, NULL, "; free some with gc",
	 "free space with 'stele gc', or enlarge the target and run 'stele resize'"},
	{-ENOSPC, NULL, "or delete snapshots",
	 "enlarge the target, and run 'stele resize'; or 'stele du' shows what 'stele gc' gives "
	 "back once a snapshot is deleted"},
	{-ENOSPC, NULL, "; take a larger target", "enlarge the target, and run 'stele resize'"},
	{-ENOSPC, NULL, ", the image needs ",
	 "use a larger target, or a larger --size of a file or RBD image"},
	{-ENOSPC, " build ", NULL,
	 "use a larger target, or a larger --size of a file or RBD image"},
	{-ENOSPC, " append ", NULL,
	 "free space with 'stele gc', or enlarge the target: --size, or "
	 "'stele resize'"},
	{-ENOSPC, " map ", "cannot publish", "free space there, or " OWN_RUN_DIR},
	{-ENOSPC, NULL, NULL,
	 "free space with 'stele gc', or enlarge the target with 'stele resize'"},
	{-EDQUOT, " map ", "cannot publish", "free space there, or " OWN_RUN_DIR},
	{-EDQUOT, NULL, NULL,
	 "free space on the filesystem or in the pool behind the target"},
	{-EROFS, NULL, "set read-only", SET_RW},
	{-EACCES, NULL, "set read-only", SET_RW},
	{-EPERM, NULL, "set read-only", SET_RW},
	{-EROFS, " build copy ", "cannot open '/dev/", SET_RW},
	{-EACCES, NULL, "mapping '", OWN_RUN_DIR},
	{-EACCES, " map ", "cannot publish", OWN_RUN_DIR},
	{-ENOENT, " map ", "cannot publish", "make its directory first, or " OWN_RUN_DIR},
	{-ENOTDIR, " map ", "cannot publish", OWN_RUN_DIR},
	{-ENOTDIR, NULL, "cannot open '", "a file, or an image, has nothing below it; keys are "
	 "arguments of their own: 'stele ls TARGET PREFIX'"},
	{-EACCES, " unmap ", "who mapped it", NULL},
	{-EACCES, " map unmap maps ", "directory", OWN_RUN_DIR},
	{-EROFS, " map unmap maps ", NULL, OWN_RUN_DIR},
	{-EROFS, NULL, NULL,
	 "choose another place, or mount its filesystem with 'mount -o remount,rw'"},
	{-EPERM, NULL, "to its directory", "'chmod go-w' that directory, or " OWN_RUN_DIR},
	{-EPERM, " map ", "cannot publish", OWN_RUN_DIR},
	{-EPERM, NULL, "bad mapping '", MAP_AGAIN},
	{-EBADMSG, NULL, "bad mapping '", MAP_AGAIN},
	{-EUCLEAN, NULL, "bad mapping '", MAP_AGAIN},
	{-EOPNOTSUPP, NULL, "bad mapping '", MAP_AGAIN},
	{-EPERM, " append ", "labels would mean something else",
	 "give --label-from as the image was built with it; --force labels by another rule"},
	{-EPERM, " append ", "has to be forced",
	 "if SOURCE is the right directory, and whole, use --force"},
	{-ENOENT, " table ", "samples that can be read",
	 WHY_SKIPPED ": a row is left out if any of its fields is damaged, and arrays as a whole"},
	{-ENOENT, NULL, "samples that can be read", WHY_SKIPPED},
	{-ENOENT, " table ", "source has no samples",
	 "see whether it is the right file, and more than a header: --allow-empty accepts a "
	 "source without samples"},
	{-ENOENT, " build append ", "source has no samples",
	 "see whether SOURCE is the right directory: --follow takes what symbolic "
	 "links lead to, --allow-empty accepts a source without samples"},
	{-ENOENT, NULL, "no monitors are known", "--ceph-conf=FILE names another configuration"},
	{-EACCES, NULL, "; another user: ", "--ceph-user=ID names another user"},
	{-EACCES, NULL, "rbd:", "stele-rbd(7) lists the capabilities that the user needs"},
	{-EPERM, NULL, "rbd:", "stele-rbd(7) lists the capabilities that the user needs"},
	{-EINVAL, " query ", "syntax error",
	 "a whole SELECT is wanted, such as \"SELECT key FROM samples WHERE label_name = 'cat'\""},
	{-ENOENT, " cat ", "no such key", LIST_KEYS},
	{-ENOENT, " snapshot ", "is not in snapshot '",
	 LIST_KEYS "; 'stele ls -0' those with line feeds, for --keys-from with -0"},
	{-ENOENT, " build append table from ", "source 'rbd:",
	 "a source is a directory, or files; 'stele copy SOURCE TARGET' copies a snapshot of an "
	 "image in Ceph RBD"},
	{-ENOENT, " build append table ", "cannot open source", NULL},
	{-ENOENT, " build append table ", "cannot read source", LEAVE_OUT},
	{-ENOENT, " append table ", "no such file, device or mapping",
	 "'stele build' makes a new image"},
	{-ENOENT, NULL, "no directory", "make that directory first"},
	{-ENOENT, NULL, "no file can be made in", "choose another place"},
	{0, NULL, "no EROFS any more",
	 "'stele posix on' says which snapshots to compact, to mount it here; 'stele mount "
	 "--via=fuse' needs no EROFS"},
	{-ENOENT, NULL, "that can be undeleted", UNDELETE},
	{0, NULL, "that can be undeleted", UNDELETE},
	{0, " build ", "no labels from directories", "--label-from=1 takes them from there"},
	{0, " build ", "no directories lie in them", "--label-from=none has no labels"},
	{0, " build ", "what could be splits",
	 "--label-from=2 takes classes from the directories in them, --label-from=none has no "
	 "labels"},
	{0, " build ", "label has one class",
	 "name that directory as SOURCE, or archive what is in it; --label-from=2 takes the "
	 "directories in it as classes"},
	{-ENOENT, NULL, "empty image", FILL},
	{0, NULL, "empty image: it has overwritten", NULL},
	{0, NULL, "empty image", FILL},
	{-ENOENT, NULL, "symbolic link to what does not exist",
	 "remove the link, or name what it leads to"},
	{-EACCES, " build append ", "cannot read source", MAY_READ},
	{-EACCES, " build append ", "cannot open source",
	 RUN_AS "a user who may read SOURCE"},
	{-EACCES, " from ", NULL, RUN_AS "a user who may read SOURCE"},
	{-EACCES, " copy ", NULL,
	 RUN_AS "a user who may read SOURCE and write to TARGET: see PERMISSIONS "
	 "in stele(1)"},
	{-EACCES, " build append compact gc posix resize repair snapshot ", NULL,
	 RUN_AS "a user who may write there: see PERMISSIONS in stele(1)"},
	{-EACCES, NULL, NULL, READ_PERMISSION},
	{-EPERM, NULL, "anybody but", NULL},
	{-EPERM, NULL, "cannot replace '",
	 RUN_AS "its owner: files of others stay in a directory with the sticky bit, and all with "
	 "the attributes i or a (lsattr)"},
	{-EPERM, NULL, NULL, READ_PERMISSION},
	{-EOPNOTSUPP, " append ", "the source has no splits",
	 "append the whole directory that the image was built from: only what is new in it is "
	 "written. In a part of it the same samples have other keys, and would be there twice. "
	 "Of another directory, --label-from says where its labels come from"},
	{-EOPNOTSUPP, " append ", "the source has splits",
	 "if the keys of SOURCE are those that 'stele ls' shows, or other samples are to be added, "
	 "say with --label-from where labels come from; else samples would be there twice, under "
	 "two keys"},
	{-EOPNOTSUPP, " append ", "labels would mean something else",
	 "say it with --label-from"},
	{-EOPNOTSUPP, " table ", "is not in the snapshot",
	 "--type=COLUMN:none leaves a column out, and --key names that of the keys"},
	{-EOPNOTSUPP, NULL, "they would mean something else",
	 "'stele build' makes an image of its own of this source"},
	{-EOPNOTSUPP, " from ", "is not in the source",
	 "add it there: some samples may lack it, but not all; or give --from, --key and --type as "
	 "the image was built with them"},
	{-EOPNOTSUPP, " table ", "instead of utf8", "--type=COLUMN:text makes them such"},
	{-EOPNOTSUPP, " table ", "] instead of ", SAME_LISTS},
	{-EOPNOTSUPP, " table ", "instead of f64[", SAME_LISTS},
	{-EOPNOTSUPP, " table ", "instead of i64[", SAME_LISTS},
	{-EOPNOTSUPP, " table ", "instead of u64[", SAME_LISTS},
	{-EOPNOTSUPP, " table ", "instead of f64", "--type=COLUMN:f64 makes them such"},
	{-EOPNOTSUPP, " table ", "instead of i64",
	 "its values have to be integers, of which none is missing; 'stele build' makes an image "
	 "of its own of what has others"},
	{-EOPNOTSUPP, " append ", "what is appended has other fields", OTHER_FIELDS},
	{-ENOTUNIQ, " repair ", NULL,
	 "run it again with --choose=BRANCH: the number of the one to keep"},
	{-ENOTUNIQ, NULL, NULL,
	 "'stele repair' shows each version, and keeps the one you choose"},
	{-ETXTBSY, " build append ", NULL, LEAVE_OUT},
	{-ETXTBSY, " from ", NULL, WHEN_QUIET},
	{-ETIMEDOUT, NULL, NULL, "use --timeout=SECONDS to wait longer"},
	{-EMEDIUMTYPE, NULL, "a partition table", "'lsblk' lists the partitions of a disk"},
	{-EMEDIUMTYPE, NULL, NULL, "'stele build' makes an image"},
	{-EINVAL, " build append ", ": labels go with ", "leave out --label-from"},
	{-EINVAL, " build append ", ": symbolic links go with ", "leave out --follow"},
	{-EINVAL, " build append ", ": exclude patterns go with ", "leave out --exclude"},
	{-EINVAL, " copy ", "whose size is not set",
	 "'stele resize' extends it, --force overwrites it"},
	{-EINVAL, " copy ", "is not set by a copy", "leave it out, or overwrite it with --force"},
	{-EINVAL, " copy ", "itself, or overlaps it", OTHER_BYTES},
	{-EINVAL, " build append from ", "shares bytes with ", OTHER_BYTES},
	{-EINVAL, " copy ", "is the source itself",
	 "'stele snapshot create TARGET@NEW --base=OLD' names the samples of a snapshot anew"},
	{-EINVAL, " build from ", "is a file of the source", "give the image a name of its own"},
	{-EINVAL, " resize ", "cannot shrink",
	 "'stele copy' to a smaller target takes only what a snapshot needs"},
	{-EISDIR, " build copy ", "cannot create",
	 "the name of a file has no slash at its end; or make that directory first, and give "
	 "TARGET a name in it"},
	{-ENOTBLK, " map ", "read-only",
	 "map it without --read-only: 'chmod a-w' keeps others from writing to a file"},
	{-ENOTBLK, " append build ", NULL,
	 "SOURCE comes first, and then a block device, a regular file or an image in Ceph RBD"},
	{-ENOTBLK, NULL, NULL, "name a block device, a regular file or an image in Ceph RBD"},
	{-EINVAL, " append build compact ", "bad digest in target",
	 "a snapshot that is to be made cannot be pinned: TARGET@NAME names it"},
	{-EINVAL, NULL, "bad digest in target",
	 "the first digits of one, 0 to 9 and a to f, do as well: see 'stele info'"},
	{-EINVAL, NULL, "it has several snapshots",
	 "select one: TARGET@NAME"},
	{-EILSEQ, " from ", "in UTF-16", "'iconv -f UTF-16 -t UTF-8 FILE' makes UTF-8 of it"},
	{-EBADMSG, " from ", "the line is not a JSON object", FROM_OBJECTS},
	{-EBADMSG, " from ", "expected near end of file", FROM_OBJECTS},
	{-EISDIR, " from ", NULL,
	 "a directory is a source by itself, without --from and without others"},
	{-EIO, NULL, "cannot be judged",
	 "'stele copy' what can be read to another device; or write zeros to that block, so that "
	 "the device replaces its sector, and run 'stele repair'"},
	{-EBADMSG, NULL, "superblocks of a Stele image are gone", LOST_FRONT},
	{-EBADMSG, NULL, "superblocks of the Stele image are damaged", LOST_FRONT},
	{-EUCLEAN, NULL, "superblocks of the Stele image are damaged", LOST_FRONT},
	{-EUCLEAN, NULL, "that begins elsewhere",
	 ELSEWHERE "--force of 'stele build' or 'stele copy' overwrites what is left of it"},
	{-EBADMSG, NULL, "no sound catalog", LOST_CATALOG},
	{-EUCLEAN, NULL, "no sound catalog", LOST_CATALOG},
	{-EBADMSG, " repair ", "cannot be chosen", CHOOSE_OTHER},
	{-EUCLEAN, " repair ", "cannot be chosen", CHOOSE_OTHER},
	{-EBADMSG, NULL, "class names of field '", KEEP_SAMPLES},
	{-EBADMSG, " append snapshot ", "cannot start from '", OLDER_BASE},
	{-EUCLEAN, " append snapshot ", "cannot start from '", OLDER_BASE},
	{-EBADMSG, " from ", "nothing is left out", NULL},
	{-EBADMSG, " from ", "does not end where its size says", NULL},
	{-EBADMSG, " from ", "there is no column '", NULL},
	{-EBADMSG, " from ", "(--arrays takes ", NULL},
	{-EBADMSG, " from ", "(Fortran order)", NULL},
	{-EBADMSG, " from ", "unable to lock file", "close it where it is written, and try again"},
	{-EBADMSG, " from ", " is not UTF-8", MAKE_UTF8},
	{-EBADMSG, " from ", "unable to decode byte", MAKE_UTF8},
	{-EBADMSG, " from ", " in the header", "each column needs a name of its own"},
	{-EBADMSG, " from ", NULL, LEAVE_DAMAGE},
	{-EBADMSG, " build ", NULL, NULL},
	{-EUCLEAN, " build from ", NULL, NULL},
	{-EBADMSG, " posix ", NULL, NO_TREE},
	{-EUCLEAN, " posix ", NULL, NO_TREE},
	{-EBADMSG, NULL, "tree of files cannot be made", NO_TREE},
	{-EUCLEAN, NULL, "tree of files cannot be made", NO_TREE},
	{-EBADMSG, " verify ", NULL, DAMAGE},
	{-EUCLEAN, " verify ", NULL, DAMAGE},
	{-EBADMSG, NULL, NULL, "'stele verify' lists all damage; " DAMAGE},
	{-EUCLEAN, NULL, NULL, "'stele verify' lists all damage; " DAMAGE},
	{-ESTALE, " append compact gc snapshot resize repair posix ", "taken over",
	 "run it again when the other has ended; it goes by what that has made"},
	{-ESTALE, NULL, "changed by somebody else meanwhile", WHEN_QUIET},
	{-ESTALE, NULL, "was removed while", "what it held is gone with it: make it anew"},
	{-ESTALE, NULL, "was cut off while", "what was cut off is gone: make it anew"},
	{-ESTALE, " copy ", "the file was moved",
	 "move it back, and run the same command to resume"},
	{-ESTALE, NULL, "the file was moved", "move it back, or use it by its new name"},
	{-ESTALE, NULL, "map", MAP_AGAIN},
};

#define DIGITS_MIN 7 /* that are hardly meant as a name */
#define REMEDIES   (sizeof(remedies) / sizeof(remedies[0]))

/* Is the command among `verbs`? */
static bool has_verb(const char *verbs, const char *verb)
{
	const size_t size = strlen(verb);
	const char *at = verbs;

	while ((at = strstr(at, verb))) {
		if (at[-1] == ' ' && at[size] == ' ')
			return true;
		at += size;
	}
	return false;
}

/* The index of the first that matches, or how many there are. */
static size_t find(const char *verb, int error, const char *line)
{
	size_t i;

	for (i = 0; i < REMEDIES; i++)
		if (remedies[i].error == error &&
		    (!remedies[i].verbs || has_verb(remedies[i].verbs, verb)) &&
		    (!remedies[i].words || strstr(line, remedies[i].words)))
			break;
	return i;
}

static void offer_mapped(void *user, const struct stele_mapping_info *info)
{
	suggest_offer(user, info->name, strlen(info->name));
}

/* The closest mapped name, for a word that is no path. */
static void suggest_mapped(const char *word)
{
	struct suggest names = {.word = word};

	if (!strchr(word, '/') && stele_map_list(offer_mapped, &names, NULL) > 0)
		suggest_print(&names, "");
}

static bool was_deleted(const struct snapshots *snapshots, const char *name)
{
	for (uint32_t i = 0; i < snapshots->deleted_count; i++)
		if (!strcmp(snapshots->infos[snapshots->count + i].name, name))
			return true;
	return false;
}

/* Digits of a digest, as 'snapshot list' shows them, are none without what says so. */
static bool suggest_digest(const char *path, const char *name, const struct snapshots *snapshots)
{
	const size_t size = strlen(name);
	char digest[TEXT_HEX_SIZE];

	if (size < DIGITS_MIN || size >= TEXT_HEX_SIZE ||
	    strspn(name, "0123456789abcdef") != size)
		return false;
	for (uint32_t i = 0; i < snapshots->count; i++) {
		const struct stele_snapshot_info *info = &snapshots->infos[i];

		text_hex(digest, info->digest, sizeof(info->digest));
		if (strncmp(digest, name, size) != 0)
			continue;
		cmd_hint("these are digits of the digest of '%s': '%s@sha256:%s' pins it",
			 info->name, path, name);
		return true;
	}
	return false;
}

/* The closest snapshot of the image, if it can be opened, else mapped name. */
static void suggest_target(const char *target)
{
	const char *name = cmd_snapshot_of(target);
	char *path = cmd_path_of(target);
	struct stele_image *image = NULL;
	struct snapshots snapshots = {0};
	struct suggest names = {.word = name ? name : ""};
	bool there = false;

	if (path && name && !stele_image_open(path, NULL, &image)) {
		if (!snapshots_load(&snapshots, image))
			for (uint32_t i = 0; i < snapshots.count; i++) {
				/* It is there: another one of those that were named is not. */
				there |= !strcmp(name, snapshots.infos[i].name);
				suggest_offer(&names, snapshots.infos[i].name,
					      strlen(snapshots.infos[i].name));
			}
		if (!there && was_deleted(&snapshots, name))
			cmd_hint("it was deleted; 'stele snapshot undelete %s' brings it back",
				 target);
		else if (!there && !suggest_digest(path, name, &snapshots))
			suggest_print(&names, "");
		snapshots_release(&snapshots);
		stele_image_close(image);
	} else if (path) {
		suggest_mapped(path);
	}
	free(path);
}

static bool names_image(const char *target)
{
	char *path = cmd_path_of(target);
	const bool holds = path && stele_image_detect(path) > 0;

	free(path);
	return holds;
}

/* "IMAGE@v1 v2" for "IMAGE@v1 IMAGE@v2". */
bool remedy_snapshot(const char *target, const char *name)
{
	char *path = cmd_path_of(target);
	struct stele_image *image = NULL;
	struct snapshots snapshots = {0};
	bool found = false;

	if (path && !stele_image_open(path, NULL, &image)) {
		if (!snapshots_load(&snapshots, image))
			for (uint32_t i = 0; i < snapshots.count; i++)
				found |= !strcmp(snapshots.infos[i].name, name);
		snapshots_release(&snapshots);
		stele_image_close(image);
	}
	if (found)
		cmd_hint("did you mean '%s@%s'?", path, name);
	free(path);
	return found;
}

/* Of two arguments in the wrong order the other one is what the command looks for. */
static bool suggest_order(const char *verb, int error, const char *target)
{
	const bool wrong = error == -ENOENT || error == -EMEDIUMTYPE || error == -ENOTBLK ||
			   error == -EINVAL;
	char *const *argument = wrong ? cmd_arguments() : NULL;
	struct stat st;

	if (!argument || !*argument || !argument[1])
		return false;
	if (has_verb(" build append ", verb) && error == -ENOENT &&
	    stat(argument[0], &st) < 0 && stat(argument[1], &st) == 0 && S_ISDIR(st.st_mode)) {
		cmd_hint("SOURCE comes first, and then TARGET: '%s' is a directory", argument[1]);
		return true;
	}
	if (has_verb(" diff ", verb) && error == -ENOENT && !strcmp(argument[1], target))
		return remedy_snapshot(argument[0], target);
	if (has_verb(" snapshot ", verb)) /* of which the first is its own verb */
		return argument[2] && !cmd_names_snapshot(argument[1]) &&
		       (remedy_snapshot(argument[1], argument[2]) ||
			remedy_snapshot(argument[2], argument[1]));
	if (!has_verb(" cat export extract ls map mount query ", verb) ||
	    strcmp(argument[0], target) != 0)
		return false;
	if (names_image(target)) /* the wrong one is behind it */
		return error == -EINVAL && remedy_snapshot(target, argument[1]);
	while (*++argument && !names_image(*argument))
		;
	if (*argument)
		cmd_hint("TARGET comes first: '%s' holds an image", *argument);
	return *argument;
}

void remedy_path(const char *target)
{
	if (strchr(target, '@') && access(target, F_OK) == 0)
		cmd_hint("for the file '%s' write '%s@': the last '@' begins a snapshot",
			 target, target);
}

/* Of a command that was to replace a file: "x.new-0123abcd", which is not the file itself. */
static bool suggest_beside(int error, const char *line, const char *target)
{
	static const char mark[] = ".new-";
	const size_t digits = 8, size = strlen(target);
	const char *end = size > digits + strlen(mark) ? target + size - digits : NULL;

	if (error != -EINPROGRESS || !strstr(line, "was interrupted") || !end ||
	    strspn(end, "0123456789abcdef") != digits ||
	    strncmp(end - strlen(mark), mark, strlen(mark)) != 0)
		return false;
	cmd_hint("it was to take the place of '%.*s', which is as it was: a copy goes on with it "
		 "if it is run again; of anything else, remove it",
		 (int)(end - strlen(mark) - target), target);
	return true;
}

/* What sysfs says of a loop device. */
static bool is_zero(const char *loop, const char *attribute)
{
	unsigned long long number = 1;
	char path[96];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/block/%.32s/%s", loop, attribute);
	file = fopen(path, "re");
	if (file && fscanf(file, "%llu", &number) != 1)
		number = 1;
	if (file)
		fclose(file);
	return !number;
}

/* Can it be written to in place of the file that it is over? */
static bool stands_for(const char *loop, const char *target)
{
	char *path = cmd_path_of(target);
	struct stat st;
	const bool file = path && !stat(path, &st) && S_ISREG(st.st_mode);

	free(path);
	return file && is_zero(loop, "loop/offset") && is_zero(loop, "loop/sizelimit") &&
	       is_zero(loop, "ro");
}

/* "'x' is in use: it is under loop device loop5", which nobody lets go of by waiting. */
static bool suggest_loop(int error, const char *line, const char *target)
{
	static const char mark[] = "is in use: it is under loop device ";
	const char *at = error == -EBUSY ? strstr(line, mark) : NULL;
	char loop[32];

	if (!at)
		return false;
	at += strlen(mark);
	snprintf(loop, sizeof(loop), "%.*s", (int)strspn(at, "loop0123456789"), at);
	if (stands_for(loop, target))
		cmd_hint("name '/dev/%s' instead, or detach it with 'losetup -d /dev/%s' first",
			 loop, loop);
	else
		cmd_hint("detach it with 'losetup -d /dev/%s' first", loop);
	return true;
}

/* "'m' is mapped to snapshot 'v1' of 'x.stele', not to that one": the image may well have it. */
static bool suggest_mapped_image(int error, const char *line, const char *target)
{
	const char *end = error == -ENOENT ? strstr(line, "', not to that one") : NULL;
	const char *begin = end && strstr(line, "is mapped to snapshot '") ?
				    strstr(line, "' of '") : NULL;
	const char *name = cmd_snapshot_of(target);

	if (!begin || !name)
		return false;
	begin += strlen("' of '");
	cmd_hint("name the image itself: '%.*s@%s'", (int)(end - begin), begin, name);
	return true;
}

/* A loop device has the size that its file had when it was attached. */
static bool suggest_grown(int error, const char *line, const char *target)
{
	char *path = error == -ENODATA && strstr(line, CUT_OFF) ? cmd_path_of(target) : NULL;
	const bool loop = path && !strncmp(path, "/dev/loop", strlen("/dev/loop"));

	if (loop)
		cmd_hint("if its file has grown, 'losetup -c %s' tells the device; else " FULL_SIZE,
			 path);
	free(path);
	return loop;
}

static bool suggest_device(int error, const char *target)
{
	char *path = error == -ENODEV || error == -ENOENT ? cmd_path_of(target) : NULL;
	const bool none = path && !strncmp(path, "/dev/", strlen("/dev/")) &&
			  strncmp(path, "/dev/shm/", strlen("/dev/shm/")) != 0 &&
			  access(path, F_OK) < 0;

	if (none)
		cmd_hint("'lsblk' lists the block devices of this machine");
	free(path);
	return none;
}

/* What a shell was kept from expanding. */
static bool suggest_glob(int error, const char *line)
{
	const bool glob = error == -ENOENT && strstr(line, " source '") && strpbrk(line, "*?[");

	if (glob)
		cmd_hint("shells expand '*' and '?' only where they are not quoted, and some file "
			 "matches");
	return glob;
}

/* "SOURCE IMAGE NAME" for "SOURCE IMAGE@NAME". */
static bool suggest_snapshot(const char *verb)
{
	char *const *argument = cmd_arguments();
	size_t count = 0;

	if (!has_verb(" append build from table webdataset ", verb) || !argument)
		return false;
	while (argument[count])
		count++;
	if (count < 3 || strpbrk(argument[count - 1], "/@:") ||
	    access(argument[count - 1], F_OK) == 0 || strchr(argument[count - 2], '@') ||
	    !names_image(argument[count - 2]))
		return false;
	cmd_hint("did you mean '%s@%s'? '%s' holds an image, and is a source here",
		 argument[count - 2], argument[count - 1], argument[count - 2]);
	return true;
}

/* As of cp, but the name is the user's. */
static bool suggest_in_directory(const char *verb, int error, const char *target)
{
	char *path = error == -ENOTBLK && has_verb(" build copy ", verb) ? cmd_path_of(target)
									: NULL;
	struct stat st;
	const bool is = path && !stat(path, &st) && S_ISDIR(st.st_mode);

	if (is)
		cmd_hint("it is a directory: give TARGET a name in it, such as '%s%sdata.stele'",
			 path, path[strlen(path) - 1] == '/' ? "" : "/");
	free(path);
	return is;
}

/* Other sizes that are refused are those of the format. */
static bool files_are_limited(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

void remedy_file_limit(void)
{
	if (files_are_limited())
		cmd_hint("%s", FILE_LIMIT);
}

void remedy_print(const char *verb, int error, const char *line,
		  const char *target)
{
	const size_t i = find(verb, error, line);
	const char *remedy = NULL;

	if (i < REMEDIES)
		remedy = remedies[i].remedy;
	if (error == -ENOENT && target)
		remedy_path(target);
	if (target && (suggest_order(verb, error, target) || suggest_beside(error, line, target) ||
		       suggest_loop(error, line, target) || suggest_grown(error, line, target) ||
		       suggest_mapped_image(error, line, target) ||
		       suggest_device(error, target) ||
		       suggest_in_directory(verb, error, target)))
		return;
	if (suggest_glob(error, line) || (error && suggest_snapshot(verb)))
		return;
	if (remedy && !geteuid() && !strncmp(remedy, RUN_AS, strlen(RUN_AS)))
		remedy = NOT_EVEN_ROOT;
	if (remedy && !strcmp(remedy, FILE_LIMIT) && !files_are_limited())
		remedy = strstr(line, "cannot prepare '") ||
					 strstr(line, "cannot make the target ") ?
				 OTHER_FILE :
				 NULL;
	if (remedy)
		cmd_hint("%s", remedy);
	else if (i == REMEDIES && error == -ENOENT && target)
		suggest_target(target);
}
