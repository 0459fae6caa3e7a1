/* SPDX-License-Identifier: BSD-3-Clause */
/* For io-uring-huge-memlock.sh: what 4 KiB of memory cost as a registered buffer. */
#include <errno.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define HUGE (2u << 20)

/* In KiB, of the process. */
static unsigned pinned(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[200];
	unsigned kib = 0;

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "VmPin: %u", &kib);
	if (f)
		fclose(f);
	return kib;
}

/* Is the page of @at a huge one? */
static int huge(const char *at)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long begin, end, kib;
	char line[300];
	int here = 0, found = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
			here = (uintptr_t)at >= begin && (uintptr_t)at < end;
		if (here && sscanf(line, "AnonHugePages: %lu", &kib) == 1)
			found = kib != 0;
	}
	if (f)
		fclose(f);
	return found;
}

static void buffer(const char *name, char *at)
{
	struct io_uring_params params = { 0 };
	struct iovec iov = { at, 4096 };
	int ring = (int)syscall(SYS_io_uring_setup, 4, &params);
	unsigned before = pinned();
	long rc;

	if (ring < 0)
		exit(77);
	rc = syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &iov, 1);
	printf("%s: ", name);
	if (rc < 0)
		printf("%s\n", errno == ENOMEM ? "ENOMEM" : strerror(errno));
	else
		printf("%u KiB\n", pinned() - before);
	close(ring);
	/* The kernel gives up the memory of a ring later, in a thread of its own. */
	for (int i = 0; i < 100 && pinned() != before; i++)
		usleep(20000);
}

int main(void)
{
	char *map = mmap(NULL, 3 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *small = (char *)(((uintptr_t)map + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	char *large = small + HUGE;

	madvise(small, HUGE, MADV_NOHUGEPAGE);
	madvise(large, HUGE, MADV_HUGEPAGE);
	memset(small, 1, 2 * HUGE);
	if (!huge(large))
		return 77;
	buffer("4 KiB in small pages", small);
	buffer("4 KiB in a huge page", large);
	return 0;
}
