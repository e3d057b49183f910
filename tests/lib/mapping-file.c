/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping-file.c - a mapping's file comes back as it was saved, or not at all
 *
 * One row per field and damage, with the checksum repaired or not; then every
 * byte flipped, every length, and bytes by chance: an error, never a crash.
 */
#include "lib/node/mapping_file.h"
#include "tests/image.h"
#include "tests/loop.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEVICE_SIZE (UINT64_C(1) << 20)
#define TARGET	    "/dev/none"
#define BODY	    0x1a0		     /* the target */
#define TABLE	    (BODY + sizeof(TARGET)) /* the extents, two of them */
#define BYTES	    (TABLE + 32)

static uint8_t *file;
static size_t file_size;

static void map_path(const char *name, char *path)
{
	snprintf(path, PATH_MAX, "%s/%s", stele_mapping_dir(), name);
}

static void write_file(const char *name, const void *data, size_t size)
{
	char path[PATH_MAX];
	int fd;

	map_path(name, path);
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		sysbail("cannot write '%s'", path);
	close(fd);
}

static void read_file(const char *name)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	map_path(name, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		sysbail("cannot open '%s'", path);
	file_size = (size_t)st.st_size;
	file = malloc(file_size);
	if (!file || read(fd, file, file_size) != (ssize_t)file_size)
		sysbail("cannot read '%s'", path);
	close(fd);
}

static void describe(struct stele_mapping *mapping)
{
	*mapping = (struct stele_mapping){
		.info = {.name = "cats", .target = TARGET, .snapshot = "v1",
			 .via = "device", .sample_count = 7, .time = -5, .read_only = true},
		.identity = {.rdev = 0x701, .size = DEVICE_SIZE,
			     .sequence = 9},
		.access = {.others = 0044, .group = getegid()},
		.generation = 3,
		.was_read_only = true,
	};
	memset(mapping->info.uuid, 0x11, sizeof(mapping->info.uuid));
	memset(mapping->info.digest, 0x22, sizeof(mapping->info.digest));
}

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 7 + i / 512);
}

/* Of RBD: the ids of the storage instead of the kernel's. */
static void check_storage(struct stele_device *recording)
{
	struct stele_mapping saved, loaded;
	struct stele_storage_id *id = &saved.identity.storage;
	char name[STELE_NAME_SIZE_MAX + 1];

	describe(&saved);
	saved.identity = (struct stele_identity){
		.size = DEVICE_SIZE,
		.storage = {.cluster = "c1", .pool = 2, .image = "i1", .shot = 3},
	};
	saved.info.target = "rbd:p/i?user=u";
	strcpy(saved.info.name, "shot");
	strcpy(saved.info.via, "librbd");
	is_int(0, stele_mapping_save(&saved, recording, NULL), "saves a shot");
	is_int(0, stele_mapping_load("shot", NULL, &loaded), "loads it");
	is_string("rbd:p/i?user=u", loaded.info.target, "its target");
	is_string("librbd", loaded.info.via, "how it is read");
	ok(stele_identity_same(&saved.identity, &loaded.identity), "identity");
	id->shot = 4;
	ok(!stele_identity_same(&saved.identity, &loaded.identity),
	   "another shot");
	is_int(0, stele_mapping_of_storage(id, name), "which is not mapped");
	id->shot = 0;
	is_int(1, stele_mapping_of_storage(id, name), "but the image is");
	is_string("shot", name, "by its name");
	id->shot = 3;
	is_int(1, stele_mapping_of_storage(id, name), "and that shot");
	id->pool = 3;
	is_int(0, stele_mapping_of_storage(id, name), "not in another pool");
	saved.info.target = "/dev/none";
	strcpy(saved.info.name, "bad");
	is_int(0, stele_mapping_save(&saved, recording, NULL), "a path with ids");
	stele_mapping_release(&loaded);
	is_int(-EUCLEAN, stele_mapping_load("bad", NULL, &loaded),
	       "is no mapping");
	stele_mapping_remove("shot");
	stele_mapping_remove("bad");
}

/* Of krbd: both ids, and that the block device belongs to mappings. */
static void check_attached(struct stele_device *recording)
{
	struct stele_mapping saved, loaded;

	describe(&saved);
	saved.identity.storage = (struct stele_storage_id){
		.cluster = "c1", .pool = 2, .image = "i1", .shot = 3};
	saved.info.target = "rbd:p/i";
	saved.attached = true;
	strcpy(saved.info.name, "krbd");
	strcpy(saved.info.via, "krbd");
	is_int(0, stele_mapping_save(&saved, recording, NULL), "saves krbd's");
	is_int(0, stele_mapping_load("krbd", NULL, &loaded), "loads it");
	ok(loaded.attached && loaded.was_read_only, "flags");
	ok(stele_identity_same(&saved.identity, &loaded.identity), "identity");
	ok(stele_mapping_is_stale(&loaded), "its block device is not there");
	saved.identity.rdev++;
	ok(!stele_identity_same(&saved.identity, &loaded.identity),
	   "another block device of the same shot");
	stele_mapping_release(&loaded);
	saved.identity.rdev = 0;
	strcpy(saved.info.name, "bad");
	is_int(0, stele_mapping_save(&saved, recording, NULL),
	       "attached, and no block device");
	is_int(-EUCLEAN, stele_mapping_load("bad", NULL, &loaded),
	       "is no mapping");
	stele_mapping_remove("krbd");
	stele_mapping_remove("bad");
}

/* Reads two extents, in pieces that touch, overlap, and are out of order. */
static struct stele_device *record(uint8_t **memory_out)
{
	static const struct {
		uint64_t offset;
		size_t size;
	} reads[] = {
		{8192, 4096}, {512, 512}, {4096, 4096}, {9216, 1024},
		{4608, 512},  {512, 512},
	};
	struct stele_device *dev, *recording;
	uint8_t *memory;
	void *data;

	dev = test_memory(DEVICE_SIZE, 512, 0);
	memory = stele_device_memory(dev);
	for (size_t i = 0; i < DEVICE_SIZE; i++)
		memory[i] = pattern(i);
	if (stele_device_open_recording(dev, &recording))
		bail("no recording device");
	data = stele_device_alloc(recording, 8192);
	for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++)
		if (stele_device_read(recording, data, reads[i].offset,
				      reads[i].size))
			bail("cannot read memory");
	free(data);
	*memory_out = memory;
	return recording;
}

static bool same_bytes(const struct stele_mapping *mapping)
{
	bool same = true;

	for (size_t i = 0; i < 512; i++)
		same &= mapping->bytes[i] == pattern(512 + i);
	for (size_t i = 0; i < 8192; i++)
		same &= mapping->bytes[512 + i] == pattern(4096 + i);
	return same;
}

static void check_round_trip(void)
{
	uint8_t *memory;
	struct stele_device *recording = record(&memory);
	struct stele_mapping saved, loaded;
	char path[PATH_MAX];
	struct stat st;
	mode_t mask;

	describe(&saved);
	is_int(-ENOENT, stele_mapping_load("cats", NULL, &loaded),
	       "no directory: no mapping");
	is_int(-ENOENT, stele_mapping_remove("cats"), "nor one to remove");
	mask = umask(077);
	is_int(0, stele_mapping_save(&saved, recording, NULL), "saves");
	umask(mask);
	is_int(-EEXIST, stele_mapping_save(&saved, recording, NULL),
	       "never over another");
	map_path("cats", path);
	ok(!stat(path, &st) && (st.st_mode & 0777) == 0644,
	   "who may read the target may read the file");
	ok(!stat(stele_mapping_dir(), &st) &&
		   (st.st_mode & 0777) == (geteuid() ? 0700 : 0755),
	   "root's directory is for all, a user's as the umask has it");
	ok(command("test $(ls -A '%s' | wc -l) = 1", stele_mapping_dir()),
	   "nothing is left beside it");
	is_int(0, stele_mapping_load("cats", NULL, &loaded), "loads");
	is_string("cats", loaded.info.name, "name");
	is_string(TARGET, loaded.info.target, "target");
	is_string("v1", loaded.info.snapshot, "snapshot");
	is_string("device", loaded.info.via, "how it is read");
	is_blob(saved.info.uuid, loaded.info.uuid, 16, "uuid");
	is_blob(saved.info.digest, loaded.info.digest, 32, "digest");
	is_uint(7, loaded.info.sample_count, "sample count");
	is_int(-5, loaded.info.time, "time");
	is_uint(3, loaded.generation, "generation");
	ok(loaded.info.read_only && loaded.was_read_only, "flags");
	ok(stele_identity_same(&saved.identity, &loaded.identity) &&
		   loaded.identity.size == DEVICE_SIZE &&
		   loaded.identity.sequence == 9,
	   "identity");
	is_uint(2, loaded.extent_count, "reads are merged");
	ok(same_bytes(&loaded), "bytes");
	stele_mapping_release(&loaded);
	stele_mapping_release(&loaded);
	check_storage(recording);
	check_attached(recording);
	stele_device_close(recording);
	read_file("cats");
	is_uint(BYTES + 512 + 8192, file_size, "size of the file");
}

/* ---- damage ------------------------------------------------------------------ */

enum { RAW, REPAIRED };

static const struct {
	const char *what;
	size_t offset;
	uint64_t value;
	unsigned int size; /* bytes of value that are written */
	int checksum;	   /* RAW or REPAIRED */
	int error;
} damages[] = {
	{"magic", 0x00, 0, 1, REPAIRED, -EBADMSG},
	{"checksum", 0x0c, 0, 4, RAW, -EBADMSG},
	{"a byte of a field", 0x48, 1, 1, RAW, -EBADMSG},
	{"last byte", BYTES + 8703, 0x5a, 1, RAW, -EBADMSG},
	{"version 0", 0x08, 0, 4, REPAIRED, -EOPNOTSUPP},
	{"version 4", 0x08, 4, 4, REPAIRED, -EOPNOTSUPP},
	{"version 2", 0x08, 2, 4, REPAIRED, -EOPNOTSUPP},
	{"file size, one more", 0x10, BYTES + 8705, 8, REPAIRED, -EUCLEAN},
	{"file size, huge", 0x10, UINT64_MAX, 8, REPAIRED, -EUCLEAN},
	{"neither device nor inode", 0x18, 0, 8, REPAIRED, -EUCLEAN},
	{"device and filesystem", 0x20, 1, 8, REPAIRED, -EUCLEAN},
	{"device and inode", 0x28, 1, 8, REPAIRED, -EUCLEAN},
	{"unknown flag", 0x58, 4, 4, REPAIRED, -EUCLEAN},
	{"flag of a flag", 0x58, 2, 4, REPAIRED, -EUCLEAN},
	{"a profile of one byte", 0x64, 1, 4, REPAIRED, -EUCLEAN},
	{"a profile behind the file", 0x64, UINT32_MAX, 4, REPAIRED, -EUCLEAN},
	{"another name", 0x98, 'd', 1, REPAIRED, -EUCLEAN},
	{"empty name", 0x98, 0, 1, REPAIRED, -EUCLEAN},
	{"name not padded", 0x9e, 'x', 1, REPAIRED, -EUCLEAN},
	{"empty snapshot", 0xd8, 0, 1, REPAIRED, -EUCLEAN},
	{"bad snapshot", 0xd8, '.', 1, REPAIRED, -EUCLEAN},
	{"snapshot not padded", 0x117, 'x', 1, REPAIRED, -EUCLEAN},
	{"no way to read", 0x118, 0, 1, REPAIRED, -EUCLEAN},
	{"way to read with a blank", 0x118, ' ', 1, REPAIRED, -EUCLEAN},
	{"way to read not padded", 0x11f, 'x', 1, REPAIRED, -EUCLEAN},
	{"cluster of nothing", 0x128, 'x', 1, REPAIRED, -EUCLEAN},
	{"cluster not padded", 0x14f, 'x', 1, REPAIRED, -EUCLEAN},
	{"image of no cluster", 0x150, 'x', 1, REPAIRED, -EUCLEAN},
	{"shot of no image", 0x198, 1, 8, REPAIRED, -EUCLEAN},
	{"no target", 0x5c, 0, 4, REPAIRED, -EUCLEAN},
	{"target of one byte", 0x5c, 1, 4, REPAIRED, -EUCLEAN},
	{"target too short", 0x5c, 9, 4, REPAIRED, -EUCLEAN},
	{"target too long", 0x5c, 11, 4, REPAIRED, -EUCLEAN},
	{"target over its limit", 0x5c, 4097, 4, REPAIRED, -EUCLEAN},
	{"target behind the file", 0x5c, UINT32_MAX, 4, REPAIRED, -EUCLEAN},
	{"target relative", BODY, 'd', 1, REPAIRED, -EUCLEAN},
	{"target not terminated", BODY + 9, 'x', 1, REPAIRED, -EUCLEAN},
	{"target terminated twice", BODY + 4, 0, 1, REPAIRED, -EUCLEAN},
	{"no extents", 0x60, 0, 4, REPAIRED, -EUCLEAN},
	{"an extent less", 0x60, 1, 4, REPAIRED, -EUCLEAN},
	{"an extent more", 0x60, 3, 4, REPAIRED, -EUCLEAN},
	{"extents over the limit", 0x60, UINT32_MAX, 4, REPAIRED, -EUCLEAN},
	{"extent misaligned", TABLE, 513, 8, REPAIRED, -EUCLEAN},
	{"extent's size misaligned", TABLE + 8, 511, 8, REPAIRED, -EUCLEAN},
	{"extent empty", TABLE + 8, 0, 8, REPAIRED, -EUCLEAN},
	{"extent too short", TABLE + 24, 7680, 8, REPAIRED, -EUCLEAN},
	{"extent too long", TABLE + 24, 8704, 8, REPAIRED, -EUCLEAN},
	{"extent behind the device", TABLE + 16, DEVICE_SIZE - 4096, 8,
	 REPAIRED, -EUCLEAN},
	{"extent that wraps", TABLE + 16, UINT64_MAX - 511, 8, REPAIRED,
	 -EUCLEAN},
	{"extent's size that wraps", TABLE + 24, UINT64_MAX - 511, 8, REPAIRED,
	 -EUCLEAN},
	{"extents in disorder", TABLE, 16384, 8, REPAIRED, -EUCLEAN},
	{"extents that overlap", TABLE + 16, 512, 8, REPAIRED, -EUCLEAN},
	{"extents that touch", TABLE + 16, 1024, 8, REPAIRED, -EUCLEAN},
	{"device smaller than an extent", 0x30, 8192, 8, REPAIRED, -EUCLEAN},
};

static void repair(uint8_t *data, size_t size)
{
	le32 crc = le32_put(stele_mapping_crc(data, size));

	memcpy(data + 0x0c, &crc, sizeof(crc));
}

static int load_bytes(const void *data, size_t size, struct test_log *log)
{
	struct stele_mapping mapping;
	int err;

	write_file("cats", data, size);
	test_log_init(log);
	err = stele_mapping_load("cats", &log->log, &mapping);
	stele_mapping_release(&mapping);
	return err;
}

static void check_damages(void)
{
	uint8_t *copy = malloc(file_size);
	struct test_log log;

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		le64 value = le64_put(damages[i].value);

		memcpy(copy, file, file_size);
		memcpy(copy + damages[i].offset, &value, damages[i].size);
		if (damages[i].checksum == REPAIRED)
			repair(copy, file_size);
		is_int(damages[i].error, load_bytes(copy, file_size, &log),
		       "%s", damages[i].what);
		ok(test_log_has(&log, "bad mapping"), "%s: said",
		   damages[i].what);
	}
	memcpy(copy, file, file_size);
	repair(copy, file_size);
	is_int(0, load_bytes(copy, file_size, &log), "undamaged");
	free(copy);
}

/* In memory that ends where the file does: reading behind it would crash. */
static int decode(const uint8_t *data, size_t size)
{
	size_t room = (size + 4095) & ~(size_t)4095;
	uint8_t *pages = mmap(NULL, room + 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct stele_mapping mapping;
	const char *why;
	int err;

	if (pages == MAP_FAILED || mprotect(pages + room, 4096, PROT_NONE))
		sysbail("mmap");
	memcpy(pages + room - size, data, size);
	err = stele_mapping_decode(pages + room - size, size, "cats", &mapping,
				   &why);
	munmap(pages, room + 4096);
	return err;
}

static void check_each_byte(void)
{
	uint8_t *copy = malloc(file_size);
	size_t taken = 0, refused = 0;

	memcpy(copy, file, file_size);
	for (size_t i = 0; i < file_size; i++) {
		copy[i] ^= 0x40;
		taken += decode(copy, file_size) == 0;
		copy[i] ^= 0x40;
	}
	is_uint(0, taken, "any byte flipped: refused");
	for (size_t size = 1; size < file_size; size += size < BYTES ? 1 : 61) {
		memcpy(copy, file, size);
		if (size >= BODY) {
			le64 value = le64_put(size);

			memcpy(copy + 0x10, &value, sizeof(value));
			repair(copy, size);
		}
		refused += decode(copy, size) != 0;
		taken++;
	}
	is_uint(taken, refused, "any length, checksum repaired: refused");
	srand(1);
	for (int i = 0; i < 20000; i++) { /* must not crash, whatever it says */
		memcpy(copy, file, BYTES);
		for (int j = rand() % 4; j >= 0; j--)
			copy[0x10 + rand() % (BYTES - 0x10)] = (uint8_t)rand();
		repair(copy, file_size);
		decode(copy, file_size);
	}
	ok(true, "20000 times bytes by chance");
	free(copy);
}

/* ---- things that are no files ------------------------------------------------ */

static void check_kinds(void)
{
	struct stele_mapping mapping;
	struct test_log log;
	char path[PATH_MAX];

	is_int(-EBADMSG, load_bytes("", 0, &log), "an empty file");
	map_path("dir", path);
	mkdir(path, 0755);
	is_int(-EBADMSG, stele_mapping_load("dir", NULL, &mapping),
	       "a directory");
	map_path("fifo", path);
	mkfifo(path, 0644);
	is_int(-EBADMSG, stele_mapping_load("fifo", NULL, &mapping), "a FIFO");
	is_int(-EINVAL, stele_mapping_load("../cats", NULL, &mapping),
	       "a path");
	is_int(-EINVAL, stele_mapping_load(".cats", NULL, &mapping),
	       "a hidden file");
	is_int(-EINVAL, stele_mapping_load("", NULL, &mapping), "no name");
}

static void check_recording(void)
{
	uint8_t *memory;
	struct stele_device *recording = record(&memory);
	struct stele_mapping mapping;
	uint8_t *data = stele_device_alloc(recording, 512);

	describe(&mapping);
	strcpy(mapping.info.name, "torn");
	is_int(-EROFS, stele_device_write(recording, data, 0, 512),
	       "a recording device is read-only");
	memset(data, 0, 512);
	memory[600] ^= 1;
	if (stele_device_read(recording, data, 512, 512))
		bail("cannot read memory");
	is_int(-ESTALE, stele_mapping_save(&mapping, recording, NULL),
	       "what changed while it was read is not published");
	is_int(-ENOENT, stele_mapping_load("torn", NULL, &mapping),
	       "indeed not");
	free(data);
	stele_device_close(recording);
}

int main(void)
{
	char dir[PATH_MAX];

	plan_lazy();
	snprintf(dir, sizeof(dir), "%s/run", test_tmpdir());
	setenv(STELE_RUN_DIR_ENV, dir, 1);
	check_round_trip();
	check_damages();
	check_each_byte();
	check_kinds();
	check_recording();
	free(file);
	return done();
}
