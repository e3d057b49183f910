/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.c - see faults.h
 *
 * Three ways to userfaultfd: the device, whose permissions say who may; the system call,
 * for CAP_SYS_PTRACE or vm.unprivileged_userfaultfd=1; and the system call for faults in user
 * mode alone, for everybody since Linux 5.11, if no filter on system calls forbids it.
 *
 * A poisoned page is a marker of the kernel's since Linux 6.6. Before, it is the page
 * behind the end of an empty file, mapped in its place.
 */
#include "lib/device/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/checked.h"
#include "lib/base/log.h"

#define DEVICE "/dev/userfaultfd" /* since Linux 6.1 */

#ifndef UFFD_USER_MODE_ONLY /* since Linux 5.11 */
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#ifndef UFFDIO_POISON /* since Linux 6.6 */
struct uffdio_poison {
	struct uffdio_range range;
	__u64 mode;
	__s64 updated;
};
#define UFFDIO_POISON _IOWR(UFFDIO, 0x08, struct uffdio_poison)
#endif

static int call_userfaultfd(int flags)
{
	return (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | flags);
}

static int open_device(void)
{
	int dev = open(DEVICE, O_RDWR | O_CLOEXEC), fd = -1;

	if (dev < 0)
		return -1;
	fd = ioctl(dev, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
	close(dev);
	return fd;
}

static int open_fd(const struct stele_log *log)
{
	int fd = open_device(), err;

	if (fd < 0)
		fd = call_userfaultfd(0);
	if (fd >= 0)
		return fd;
	fd = call_userfaultfd(UFFD_USER_MODE_ONLY);
	if (fd >= 0) {
		stele_log_warning(log,
				  "system calls on samples of this view that are not in memory "
				  "fail (EFAULT): the kernel wants sysctl "
				  "vm.unprivileged_userfaultfd=1 or access to " DEVICE);
		return fd;
	}
	err = errno;
	if (err == ENOSYS) {
		stele_log_error(log, "the kernel has no userfaultfd");
		return -EOPNOTSUPP;
	}
	if (err != EPERM && err != EINVAL) /* it does not know the flag */
		return -err;
	stele_log_error(log, "the kernel forbids userfaultfd: needs sysctl "
			"vm.unprivileged_userfaultfd=1, access to " DEVICE
			" or CAP_SYS_PTRACE, and no filter of system calls");
	return -EPERM;
}

/*
 * Pages at `memory`, or anywhere, whose faults come to us. Not to be read before they do: that
 * would show zeros, as would a process that has all its memory locked.
 */
static int map_pages(struct stele_faults *faults, char *memory, size_t size)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	struct uffdio_register range = {.range = {.len = size},
					.mode = UFFDIO_REGISTER_MODE_MISSING};
	void *mapped = mmap(memory, size, PROT_NONE, flags | (memory ? MAP_FIXED : 0),
			    -1, 0);

	if (mapped == MAP_FAILED)
		return -errno;
	if (!memory)
		faults->memory = mapped;
	range.range.start = (uintptr_t)mapped;
	if (munlock(mapped, size) || madvise(mapped, size, MADV_DONTFORK) ||
	    ioctl(faults->fd, UFFDIO_REGISTER, &range) ||
	    mprotect(mapped, size, PROT_READ))
		return -errno;
	return 0;
}

int stele_faults_open(uint64_t size, const struct stele_log *log,
		      struct stele_faults *out)
{
	const size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
	struct uffdio_api api = {.api = UFFD_API};
	int err = 0;

	*out = (struct stele_faults){.fd = -1, .hole = -1, .page_size = page_size};
	if (!checked_round_up(size, page_size, &size) || size > PTRDIFF_MAX)
		return -ENOMEM;
	out->size = size;
	out->fd = open_fd(log);
	if (out->fd < 0) {
		err = out->fd;
		out->fd = -1;
		return err;
	}
	if (ioctl(out->fd, UFFDIO_API, &api))
		err = -errno;
	if (!err)
		err = map_pages(out, NULL, size);
	if (err)
		stele_faults_close(out, false);
	return err;
}

void stele_faults_close(struct stele_faults *faults, bool forked)
{
	if (faults->memory && !forked)
		munmap(faults->memory, faults->size);
	if (faults->fd >= 0)
		close(faults->fd);
	if (faults->hole >= 0)
		close(faults->hole);
	faults->memory = NULL;
	faults->fd = faults->hole = -1;
}

int stele_faults_wait(const struct stele_faults *faults, int stop, uint64_t *offset)
{
	struct pollfd fds[] = {{.fd = faults->fd, .events = POLLIN},
			       {.fd = stop, .events = POLLIN}};
	struct uffd_msg msg;

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[1].revents)
			return 0;
		if (read(faults->fd, &msg, sizeof(msg)) != (ssize_t)sizeof(msg) ||
		    msg.event != UFFD_EVENT_PAGEFAULT)
			continue; /* another one was faster */
		*offset = round_down(msg.arg.pagefault.address - (uintptr_t)faults->memory,
				     faults->page_size);
		return 1;
	}
}

int stele_faults_fill(const struct stele_faults *faults, uint64_t offset,
		      const void *data, size_t size)
{
	const uint64_t to = (uintptr_t)faults->memory + offset;
	size_t done = 0;

	while (done < size) {
		struct uffdio_copy copy = {
			.dst = to + done,
			.src = (uintptr_t)data + done,
			.len = size - done,
		};
		int err = ioctl(faults->fd, UFFDIO_COPY, &copy) ? errno : 0;

		if (err && err != EAGAIN) {
			if (done)
				stele_faults_drop(faults, offset, done);
			return -err;
		}
		done += copy.copy > 0 ? (size_t)copy.copy : 0;
	}
	return 0;
}

void stele_faults_drop(const struct stele_faults *faults, uint64_t offset, size_t size)
{
	madvise(faults->memory + offset, size, MADV_DONTNEED);
}

void stele_faults_wake(const struct stele_faults *faults, uint64_t offset)
{
	struct uffdio_range range = {(uintptr_t)faults->memory + offset,
				     faults->page_size};

	ioctl(faults->fd, UFFDIO_WAKE, &range);
}

/* For kernels without UFFDIO_POISON. */
static int map_hole(struct stele_faults *faults, uint64_t offset)
{
	char *const page = faults->memory + offset;

	if (faults->hole < 0)
		faults->hole = memfd_create("stele-view", MFD_CLOEXEC);
	if (faults->hole < 0 ||
	    mmap(page, faults->page_size, PROT_READ, MAP_SHARED | MAP_FIXED,
		 faults->hole, 0) == MAP_FAILED)
		return -errno;
	madvise(page, faults->page_size, MADV_DONTFORK);
	stele_faults_wake(faults, offset);
	return 0;
}

int stele_faults_poison(struct stele_faults *faults, uint64_t offset)
{
	struct uffdio_poison poison = {
		.range = {(uintptr_t)faults->memory + offset, faults->page_size},
	};

	while (faults->hole < 0 && ioctl(faults->fd, UFFDIO_POISON, &poison)) {
		if (errno != EAGAIN)
			return map_hole(faults, offset);
	}
	return faults->hole < 0 ? 0 : map_hole(faults, offset);
}

int stele_faults_heal(struct stele_faults *faults, uint64_t offset)
{
	if (faults->hole >= 0)
		return map_pages(faults, faults->memory + offset, faults->page_size);
	stele_faults_drop(faults, offset, faults->page_size);
	return 0;
}
