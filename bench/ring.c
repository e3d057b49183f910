/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.c - the least that io_uring lets a program do: an upper bound
 *
 *	ring [-co] [-d DEPTH] [-s SECONDS] [-r SEED] TRACE TARGET
 *
 * Replays the reads of a trace, from a place that follows from the seed, again and again until
 * the time is over: one thread, a fixed depth, O_DIRECT, a registered descriptor, registered
 * buffers in 2 MiB pages (of the pool if there are any, else transparent ones), submission and
 * wait in one call. Nothing looks at the bytes, nothing is retried: what fails ends the program.
 *
 * What a device delivers depends on what is done with it. -c: takes a CRC-32C of each read, the
 * least that a reader does that looks at its bytes. -o: in the order of their places.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <isa-l/crc.h>
#include <liburing.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/race.h"
#include "bench/trace.h"
#include "stele.h"

#define HUGE_PAGE (UINT64_C(2) << 20)
#define DEPTH_MAX 1024u

struct loop {
	struct io_uring ring;
	struct trace_read *reads;
	uint64_t read_count, size_max;
	unsigned int depth, in_flight;
	uint64_t next; /* of the trace */
	char *memory;
	unsigned int per_page; /* buffers of one huge page */
	struct slot {
		const struct trace_read *read;
		uint64_t start;
	} slots[DEPTH_MAX];
	struct stele_histogram *latency;
	uint64_t samples, bytes;
	bool checks;
	unsigned int crc; /* of all, so that none can be left out */
};

static int by_place(const void *a, const void *b)
{
	const struct trace_read *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

static void load_trace(struct loop *loop, const char *path)
{
	FILE *in = fopen(path, "re");
	struct stat st;

	if (!in || fstat(fileno(in), &st) < 0)
		err(1, "cannot open '%s'", path);
	loop->read_count = (uint64_t)st.st_size / sizeof(*loop->reads);
	loop->reads = race_memory((uint64_t)st.st_size);
	if (loop->read_count == 0 ||
	    fread(loop->reads, sizeof(*loop->reads), loop->read_count, in) != loop->read_count)
		errx(1, "no trace: '%s'", path);
	fclose(in);
	for (uint64_t i = 0; i < loop->read_count; i++)
		if (loop->reads[i].size > loop->size_max)
			loop->size_max = loop->reads[i].size;
	if (loop->size_max > HUGE_PAGE)
		errx(1, "a read of more than 2 MiB in '%s'", path);
}

static void *huge_pages(size_t size)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    flags | MAP_HUGETLB | MAP_POPULATE, -1, 0);

	if (memory != MAP_FAILED)
		return memory;
	memory = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (memory == MAP_FAILED)
		err(1, "no memory");
	memory += -(uintptr_t)memory & (HUGE_PAGE - 1);
	madvise(memory, size, MADV_HUGEPAGE);
	memset(memory, 1, size);
	return memory;
}

/* One registration for each huge page, and no buffer crosses one. */
static void make_buffers(struct loop *loop)
{
	const uint64_t size = (loop->size_max + 4095) / 4096 * 4096;
	struct iovec pages[DEPTH_MAX];
	unsigned int count;
	int ret;

	loop->size_max = size;
	loop->per_page = (unsigned int)(HUGE_PAGE / size);
	count = (loop->depth + loop->per_page - 1) / loop->per_page;
	loop->memory = huge_pages(count * HUGE_PAGE);
	for (unsigned int i = 0; i < count; i++)
		pages[i] = (struct iovec){loop->memory + i * HUGE_PAGE, HUGE_PAGE};
	ret = io_uring_register_buffers(&loop->ring, pages, count);
	if (ret)
		errx(1, "cannot register buffers: %s", strerror(-ret));
}

static void make_ring(struct loop *loop, const char *path)
{
	struct io_uring_params params = {.flags = IORING_SETUP_SINGLE_ISSUER |
						  IORING_SETUP_DEFER_TASKRUN};
	int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	int ret;

	if (fd < 0)
		err(1, "cannot open '%s'", path);
	ret = io_uring_queue_init_params(loop->depth, &loop->ring, &params);
	if (ret)
		errx(1, "cannot make a ring: %s", strerror(-ret));
	ret = io_uring_register_files(&loop->ring, &fd, 1);
	if (ret)
		errx(1, "cannot register the target: %s", strerror(-ret));
	io_uring_register_ring_fd(&loop->ring);
	close(fd);
}

static char *buffer_of(const struct loop *loop, unsigned int i)
{
	return loop->memory + i / loop->per_page * HUGE_PAGE +
	       i % loop->per_page * loop->size_max;
}

static void start(struct loop *loop, unsigned int i)
{
	const struct trace_read *read = &loop->reads[loop->next];
	struct io_uring_sqe *sqe = io_uring_get_sqe(&loop->ring);

	loop->next = loop->next + 1 == loop->read_count ? 0 : loop->next + 1;
	io_uring_prep_read_fixed(sqe, 0, buffer_of(loop, i), (unsigned int)read->size,
				 read->offset, (int)(i / loop->per_page));
	sqe->flags |= IOSQE_FIXED_FILE;
	io_uring_sqe_set_data64(sqe, i);
	loop->slots[i] = (struct slot){read, race_now()};
	loop->in_flight++;
}

static void finish(struct loop *loop, const struct io_uring_cqe *cqe, uint64_t now)
{
	const struct slot *slot = &loop->slots[cqe->user_data];

	if (cqe->res < 0 || (uint64_t)cqe->res != slot->read->size)
		errx(1, "a read failed: %s", cqe->res < 0 ? strerror(-cqe->res) : "short");
	stele_histogram_record(loop->latency, now - slot->start);
	if (loop->checks)
		loop->crc = crc32_iscsi(
			(unsigned char *)buffer_of(loop, (unsigned int)cqe->user_data),
			cqe->res, loop->crc);
	loop->samples += slot->read->payload > 0;
	loop->bytes += slot->read->payload;
	loop->in_flight--;
}

static void run(struct loop *loop, uint64_t deadline)
{
	bool more = true;

	for (unsigned int i = 0; i < loop->depth; i++)
		start(loop, i);
	while (loop->in_flight > 0) {
		struct io_uring_cqe *cqe;
		unsigned int head, count = 0;
		uint64_t now;
		int ret = io_uring_submit_and_wait(&loop->ring, 1);

		if (ret < 0 && ret != -EINTR)
			errx(1, "cannot submit: %s", strerror(-ret));
		now = race_now();
		more = more && now < deadline;
		io_uring_for_each_cqe(&loop->ring, head, cqe) {
			finish(loop, cqe, now);
			if (more)
				start(loop, (unsigned int)cqe->user_data);
			count++;
		}
		io_uring_cq_advance(&loop->ring, count);
	}
}

int main(int argc, char **argv)
{
	struct loop loop = {.depth = 32, .latency = stele_histogram_new()};
	double seconds = 3;
	bool ordered = false;
	uint64_t begin, end, seed = 0;
	int option;

	while ((option = getopt(argc, argv, "cod:s:r:")) != -1) {
		if (option == 'd')
			loop.depth = (unsigned int)strtoul(optarg, NULL, 10);
		else if (option == 's')
			seconds = strtod(optarg, NULL);
		else if (option == 'r')
			seed = strtoull(optarg, NULL, 10);
		else if (option == 'c')
			loop.checks = true;
		else if (option == 'o')
			ordered = true;
		else
			errx(2, "usage: %s [-co] [-d DEPTH] [-s SECONDS] [-r SEED] TRACE TARGET",
			     argv[0]);
	}
	if (argc - optind != 2 || loop.depth == 0 || loop.depth > DEPTH_MAX || !loop.latency)
		errx(2, "wants a trace, a target, and a depth of 1 to %u", DEPTH_MAX);
	load_trace(&loop, argv[optind]);
	if (ordered)
		qsort(loop.reads, loop.read_count, sizeof(*loop.reads), by_place);
	loop.next = seed % loop.read_count;
	make_ring(&loop, argv[optind + 1]);
	make_buffers(&loop);
	begin = race_now();
	run(&loop, begin + (uint64_t)(seconds * 1e9));
	end = race_now();
	printf("{\"samples\":%llu,\"bytes\":%llu,\"seconds\":%.6f,\"p50_us\":%.1f,"
	       "\"p99_us\":%.1f,\"crc\":%u}\n",
	       (unsigned long long)loop.samples, (unsigned long long)loop.bytes,
	       (double)(end - begin) / 1e9,
	       (double)stele_histogram_quantile(loop.latency, 0.5) / 1e3,
	       (double)stele_histogram_quantile(loop.latency, 0.99) / 1e3, loop.crc);
	io_uring_queue_exit(&loop.ring);
	stele_histogram_free(loop.latency);
	free(loop.reads);
	return 0;
}
