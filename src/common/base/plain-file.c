/* SPDX-License-Identifier: BSD-3-Clause */
/* A task has what its call works with (aside.h): the call owns it once the caller has left. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aside.h"
#include "cleanup.h"
#include "list.h"
#include "plain-file.h"
#include "secret.h"
#include "util.h"

#define WHY_MAX 128

struct task {
	struct list link;		/* into @behind, once the caller has left */
	char *path;
	unsigned limit_ms;
	int rc;				/* number of entries, 0 or -errno */
	char why[WHY_MAX];
	/* of a file */
	size_t max;
	struct plain_file file;
	/* of a directory */
	int (*wants)(const struct dirent *entry);
	struct dirent **entries;
};

/* Tasks whose callers have left, and that go on. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* the next two; innermost */
static struct list behind = LIST_INIT(behind);
static unsigned nbehind;

static void task_free(struct task *task)
{
	plain_file_free(&task->file);
	for (int i = 0; task->entries && i < task->rc; i++)
		free(task->entries[i]);
	free(task->entries);
	free(task->path);
	free(task);
}

static void task_left(void *arg)
{
	struct task *task = arg;

	pthread_mutex_lock(&lock);
	list_del(&task->link);
	nbehind--;
	pthread_mutex_unlock(&lock);
	task_free(task);
}

static int refuse(struct task *task, int rc, const char *why)
{
	snprintf(task->why, sizeof(task->why), "%s", why);
	return rc;
}

/* ---- waiting ---- */

static int patience(void *arg, uint64_t ms)
{
	struct task *task = arg;

	if (ms < task->limit_ms)
		return 0;
	LOCK_SCOPE(&lock);
	list_add_tail(&behind, &task->link);
	nbehind++;
	return -ETIMEDOUT;
}

/* May @task begin?  0; or -errno with the reason in @err.  Two threads never wait for one name: the
 * second one could not even be killed (Linux 6.18, d_alloc_parallel()). */
static int may_begin(struct task *task, char *err, size_t len)
{
	const struct task *other;

	LOCK_SCOPE(&lock);
	task->limit_ms = nbehind ? PLAIN_FILE_AGAIN_MS : PLAIN_FILE_MS;
	list_for_each(other, &behind, link) {
		if (!strcmp(other->path, task->path)) {
			snprintf(err, len, "its file system still has not answered: is its server "
				 "there?");
			return -ETIMEDOUT;
		}
	}
	if (nbehind < PLAIN_FILE_LEFT_MAX)
		return 0;
	snprintf(err, len, "is not read: too many files wait for file systems that do not answer");
	return -EBUSY;
}

/* Run @fn(@task) aside.  0: it has run.  Otherwise -errno, with the reason in @err, and the caller
 * must forget @task. */
static int run(struct task *task, void (*fn)(void *arg), char *err, size_t len)
{
	struct aside *call;
	unsigned limit_ms;
	int rc = may_begin(task, err, len);

	if (!rc) {
		rc = aside_begin(&call, fn, task_left, task);
		if (rc)
			snprintf(err, len, "no thread to read it");
	}
	if (rc) {
		task_free(task);
		return rc;
	}
	limit_ms = task->limit_ms;
	rc = aside_wait(call, patience, task);
	if (rc)
		snprintf(err, len,
			 "its file system has not answered for %u s: is its server there?",
			 limit_ms / 1000);
	return rc;
}

bool plain_file_any_left(void)
{
	LOCK_SCOPE(&lock);
	return nbehind;
}

static struct task *task_new(const char *path, char *err, size_t len)
{
	struct task *task = calloc(1, sizeof(*task));

	if (task)
		task->path = strdup(path);
	if (task && task->path)
		return task;
	free(task);
	snprintf(err, len, "out of memory");
	return NULL;
}

/* ---- files ---- */

/* Read up to @most bytes, for which there is room.  0 or -errno. */
static int read_up_to(struct task *task, int fd, size_t most)
{
	struct plain_file *file = &task->file;
	ssize_t more = 1;

	while (more > 0 && file->n <= most) {
		more = read(fd, file->text + file->n, most + 1 - file->n);
		file->n += more > 0 ? (size_t)more : 0;
	}
	if (more < 0)
		return refuse(task, -errno, strerror(errno));
	if (file->n > task->max) {
		snprintf(task->why, sizeof(task->why), "expected at most %zu bytes", task->max);
		return -EFBIG;
	}
	if (file->n > most)
		return refuse(task, -EAGAIN, "has grown while it was read: try again");
	file->text[file->n] = '\0';
	return 0;
}

static int read_open(struct task *task, int fd)
{
	struct plain_file *file = &task->file;
	size_t most;

	if (fstat(fd, &file->st) < 0)
		return refuse(task, -errno, strerror(errno));
	if (!S_ISREG(file->st.st_mode))
		return refuse(task, -EINVAL, "expected a file");
	/* No copy is left behind when a buffer grows: the memory is made once.  Some file systems
	 * do not know the size of a file. */
	most = file->st.st_size ? MIN((size_t)file->st.st_size, task->max) : task->max;
	file->room = most + 2;
	file->text = secret_alloc(file->room);
	if (!file->text)
		return refuse(task, -ENOMEM, "out of memory");
	return read_up_to(task, fd, most);
}

static void read_file(void *arg)
{
	struct task *task = arg;
	/* O_NONBLOCK: a FIFO without a writer does not stop open().  For a regular file the flag
	 * means nothing. */
	_cleanup_close_ int fd = open(task->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	task->rc = fd < 0 ? refuse(task, -errno, strerror(errno)) : read_open(task, fd);
}

int plain_file_load(const char *path, size_t max, struct plain_file *file, char *err, size_t len)
{
	struct task *task = task_new(path, err, len);
	int rc;

	*file = (struct plain_file){ 0 };
	if (!task)
		return -ENOMEM;
	task->max = max;
	rc = run(task, read_file, err, len);
	if (rc)
		return rc;
	rc = task->rc;
	if (rc) {
		snprintf(err, len, "%s", task->why);
	} else {
		*file = task->file;
		task->file = (struct plain_file){ 0 };
	}
	task_free(task);
	return rc;
}

void plain_file_free(struct plain_file *file)
{
	secret_free(file->text, file->room);
	*file = (struct plain_file){ 0 };
}

/* ---- directories ---- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_dir(void *arg)
{
	struct task *task = arg;

	task->rc = scandir(task->path, &task->entries, task->wants, by_name);
	if (task->rc < 0) {
		task->entries = NULL;
		task->rc = refuse(task, -errno, strerror(errno));
	}
}

int plain_file_list(const char *dir, int (*wants)(const struct dirent *entry),
		    struct dirent ***entries, char *err, size_t len)
{
	struct task *task = task_new(dir, err, len);
	int rc;

	*entries = NULL;
	if (!task)
		return -ENOMEM;
	task->wants = wants;
	rc = run(task, read_dir, err, len);
	if (rc)
		return rc;
	rc = task->rc;
	if (rc < 0)
		snprintf(err, len, "%s", task->why);
	*entries = task->entries;
	task->entries = NULL;
	task_free(task);
	return rc;
}
