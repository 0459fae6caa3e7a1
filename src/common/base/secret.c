/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: the memory belongs to the caller.  Whole pages, so that nothing else shares what a
 * core file leaves out. */
#include <config.h>

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "secret.h"
#include "util.h"

static size_t pages(size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (len + page - 1) / page * page;
}

void *secret_alloc(size_t len)
{
	void *secret = mmap(NULL, pages(len), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	if (secret == MAP_FAILED)
		return NULL;
	if (madvise(secret, pages(len), MADV_DONTDUMP)) {
		munmap(secret, pages(len));
		return NULL;
	}
	return secret;
}

void secret_free(void *secret, size_t len)
{
	if (!secret)
		return;
	explicit_bzero(secret, pages(len));
	munmap(secret, pages(len));
}

void secret_no_core_file(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CORE, &limit))
		return;
	/* With 0 the kernel still feeds a program that core_pattern names (core(5)); with 1 it
	 * does not (kernel: fs/coredump.c, do_coredump()). */
	limit.rlim_cur = MIN((rlim_t)1, limit.rlim_max);
	setrlimit(RLIMIT_CORE, &limit);
}
