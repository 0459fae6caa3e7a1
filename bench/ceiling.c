/* SPDX-License-Identifier: BSD-3-Clause */
/* The ceiling of the bench: an nbdkit plugin whose requests are answered by a second thread of the
 * same process, from a file, without any network.
 *
 * nbdkit has a thread for each request, which waits in the plugin.  So a request to any remote disk
 * costs at least two wake-ups, of whoever gets the answer and of the thread that waits; here they
 * are all that there is.
 *
 *	nbdkit bench/.libs/ceiling.so file=PATH
 *
 * Threads of nbdkit queue requests and wait; the answering thread takes them all at once. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

struct request {
	struct request *next;
	bool write, end;
	void *buf;
	uint32_t count;
	uint64_t offset;
	int error;
	atomic_uint done;
};

static char *path;
static int fd = -1;
static pthread_t thread;
static bool runs;
static _Atomic(struct request *) queue;		/* newest first */
static atomic_uint asleep;			/* the answering thread is, or is about to be */

static void futex(atomic_uint *word, int op, unsigned value)
{
	syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

static void submit(struct request *req)
{
	req->next = atomic_load(&queue);
	while (!atomic_compare_exchange_weak(&queue, &req->next, req))
		;
	if (atomic_load(&asleep) && atomic_exchange(&asleep, 0))
		futex(&asleep, FUTEX_WAKE_PRIVATE, 1);
}

/* All that is queued, oldest first.  Sleeps while there is nothing. */
static struct request *take(void)
{
	struct request *newest, *list = NULL;

	while (!(newest = atomic_exchange(&queue, NULL))) {
		atomic_store(&asleep, 1);
		if (atomic_load(&queue))
			atomic_store(&asleep, 0);
		else
			futex(&asleep, FUTEX_WAIT_PRIVATE, 1);
	}
	while (newest) {
		struct request *next = newest->next;

		newest->next = list;
		list = newest;
		newest = next;
	}
	return list;
}

static int answer(const struct request *req)
{
	char *buf = req->buf;
	uint64_t offset = req->offset;

	for (uint32_t left = req->count; left;) {
		ssize_t n = req->write ? pwrite(fd, buf, left, (off_t)offset) :
			pread(fd, buf, left, (off_t)offset);

		if (n <= 0)
			return n < 0 ? errno : EIO;
		buf += n;
		offset += (uint64_t)n;
		left -= (uint32_t)n;
	}
	return 0;
}

static void *answers(void *arg)
{
	for (;;) {
		struct request *req = take(), *next;

		for (; req; req = next) {
			bool end = req->end;

			next = req->next;
			req->error = answer(req);
			/* Whoever waits for @req may be gone from here on; the word stays readable,
			 * as a stack does. */
			atomic_store(&req->done, 1);
			futex(&req->done, FUTEX_WAKE_PRIVATE, 1);
			if (end)
				return NULL;
		}
	}
}

static int run(struct request *req)
{
	submit(req);
	while (!atomic_load(&req->done))
		futex(&req->done, FUTEX_WAIT_PRIVATE, 0);
	if (req->error)
		nbdkit_set_error(req->error);
	return req->error ? -1 : 0;
}

static int ceiling_config(const char *key, const char *value)
{
	if (strcmp(key, "file") != 0) {
		nbdkit_error("unknown parameter %s", key);
		return -1;
	}
	free(path);
	path = nbdkit_absolute_path(value);
	return path ? 0 : -1;
}

static int ceiling_config_complete(void)
{
	if (!path) {
		nbdkit_error("file=PATH is missing");
		return -1;
	}
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		nbdkit_error("%s: %s", path, strerror(errno));
	return fd < 0 ? -1 : 0;
}

static int ceiling_after_fork(void)
{
	int r = pthread_create(&thread, NULL, answers, NULL);

	if (r)
		nbdkit_error("cannot create a thread: %s", strerror(r));
	runs = !r;
	return r ? -1 : 0;
}

static void ceiling_unload(void)
{
	struct request end = { .end = true };

	if (runs) {
		run(&end);
		pthread_join(thread, NULL);
	}
	if (fd >= 0)
		close(fd);
	free(path);
}

static void *ceiling_open(int readonly)
{
	return &fd;
}

static int64_t ceiling_get_size(void *handle)
{
	struct stat st;

	if (fstat(fd, &st) < 0) {
		nbdkit_error("%s: %s", path, strerror(errno));
		return -1;
	}
	return st.st_size;
}

static int ceiling_pread(void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
	struct request req = { .buf = buf, .count = count, .offset = offset };

	return run(&req);
}

static int ceiling_pwrite(void *handle, const void *buf, uint32_t count, uint64_t offset,
			  uint32_t flags)
{
	struct request req = { .buf = (void *)buf, .count = count, .offset = offset,
			       .write = true };

	return run(&req);
}

static struct nbdkit_plugin plugin = {
	.name = "ceiling",
	.config = ceiling_config,
	.config_complete = ceiling_config_complete,
	.after_fork = ceiling_after_fork,
	.unload = ceiling_unload,
	.open = ceiling_open,
	.get_size = ceiling_get_size,
	.pread = ceiling_pread,
	.pwrite = ceiling_pwrite,
};

NBDKIT_REGISTER_PLUGIN(plugin)
