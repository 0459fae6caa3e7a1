/* SPDX-License-Identifier: BSD-3-Clause */
/* A task has what its call works with (worker.h): the call owns it once the caller has left. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "list.h"
#include "number.h"
#include "plain-file.h"
#include "process.h"
#include "util.h"
#include "worker.h"

#define WHY_MAX 128
#define READ_TRIES 4			/* of a file that somebody writes meanwhile */
#define NEW_SUFFIX ".tmp"		/* node_exporter reads names that end in .prom */

struct task {
	struct list link;		/* into @behind, once the caller has left */
	char *path;
	void (*fn)(struct task *task);
	bool to_change;			/* a change, which the end of the program waits for */
	unsigned limit_ms;
	int rc;				/* number of entries, 0 or -errno */
	char why[WHY_MAX];		/* "": the text of @rc */
	/* of a file to write */
	char *text;			/* [n] */
	size_t n;
	bool lasts;			/* it, or its removal, is on stable storage at the end */
	struct plain_file_own own;	/* begin NULL: whatever is there goes */
	/* of a file to read */
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
	free(task->text);
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
	int rc = !task->to_change && end_has_begun() ? -ECANCELED :
		 ms < task->limit_ms ? 0 : -ETIMEDOUT;

	if (!rc)
		return 0;
	LOCK_SCOPE(&lock);
	list_add_tail(&behind, &task->link);
	nbehind++;
	return rc;
}

/* May @task begin?  0; or -errno with the reason in @err.  Two threads never wait for one name: the
 * second one could not even be killed (Linux 6.18, d_alloc_parallel()). */
static int may_begin(struct task *task, char *err, size_t len)
{
	const struct task *other;

	LOCK_SCOPE(&lock);
	task->limit_ms = nbehind ? PLAIN_FILE_AGAIN_MS : PLAIN_FILE_MS;
	list_for_each(other, &behind, link) {
		if (!strcmp(other->path, task->path))
			return fmt_error(-ETIMEDOUT, err, len,
					 "its file system still has not answered: is its server "
					 "up?");
	}
	if (nbehind < PLAIN_FILE_LEFT_MAX)
		return 0;
	return fmt_error(-EBUSY, err, len,
			 "too many files wait for file systems that do not answer");
}

static void work(void *arg)
{
	struct task *task = arg;

	pthread_setname_np(pthread_self(), "rtrs-file");
	task->fn(task);
}

/* Run @task aside.  Its result, and @task is the caller's.  Or -errno, with the reason in @err, and
 * the caller must forget @task. */
static int run(struct task *task, char *err, size_t len)
{
	struct aside *call;
	unsigned limit_ms;
	int rc = may_begin(task, err, len);

	if (!rc) {
		rc = aside_begin(&call, work, task_left, task);
		if (rc)
			snprintf(err, len, "%s", threads_strerror(rc));
	}
	if (rc) {
		task_free(task);
		return rc;
	}
	limit_ms = task->limit_ms;
	rc = aside_wait(call, patience, task);
	if (rc == -ECANCELED)
		snprintf(err, len, "the program ends");
	else if (rc)
		snprintf(err, len,
			 "its file system has not answered for %u s: is its server up?",
			 limit_ms / 1000);
	if (rc)
		return rc;
	rc = task->rc;
	if (rc < 0) {
		snprintf(err, len, "%s", *task->why ? task->why : fds_strerror(rc));
		task_free(task);
	}
	return rc;
}

static struct task *task_new(const char *path, void (*fn)(struct task *task), char *err,
			     size_t len)
{
	struct task *task = calloc(1, sizeof(*task));

	if (task)
		*task = (struct task){ .path = strdup(path), .fn = fn };
	if (task && task->path)
		return task;
	free(task);
	snprintf(err, len, "out of memory");
	return NULL;
}

/* ---- files to read ---- */

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
		return -errno;
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
		return -errno;
	if (!S_ISREG(file->st.st_mode))
		return refuse(task, -EINVAL, "expected a regular file");
	/* No copy is left behind when a buffer grows: the memory is made once.  Some file systems
	 * do not know the size of a file. */
	most = file->st.st_size ? MIN((size_t)file->st.st_size, task->max) : task->max;
	file->room = most + 2;
	file->text = secret_alloc(file->room);
	if (!file->text)
		return refuse(task, -ENOMEM, "out of memory");
	return read_up_to(task, fd, most);
}

static int read_once(struct task *task)
{
	/* O_NONBLOCK: a FIFO without a writer does not stop open().  For a regular file the flag
	 * means nothing. */
	_cleanup_close_ int fd = open(task->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return fd < 0 ? -errno : read_open(task, fd);
}

static void read_file(struct task *task)
{
	task->rc = -EAGAIN;
	for (unsigned i = 0; i < READ_TRIES && task->rc == -EAGAIN; i++) {
		plain_file_free(&task->file);
		*task->why = '\0';
		task->rc = read_once(task);
	}
}

int plain_file_load(const char *path, size_t max, struct plain_file *file, char *err, size_t len)
{
	struct task *task = task_new(path, read_file, err, len);
	int rc;

	*file = (struct plain_file){ 0 };
	if (!task)
		return -ENOMEM;
	task->max = max;
	rc = run(task, err, len);
	if (rc)
		return rc;
	*file = task->file;
	task->file = (struct plain_file){ 0 };
	task_free(task);
	return 0;
}

void plain_file_free(struct plain_file *file)
{
	secret_free(file->text, file->room);
	*file = (struct plain_file){ 0 };
}

/* ---- files to write ---- */

static int write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* True if the file @name has no bytes, or begins as texts of @task do; a part of a text does, too.
 * Otherwise errno is set. */
static bool begins_well(const struct task *task, const char *name)
{
	size_t most = strlen(task->own.begin), n = 0;
	char text[64];
	ssize_t more;
	_cleanup_close_ int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK |
				      O_NOFOLLOW);

	do {
		more = fd < 0 ? -1 : read(fd, text + n, MIN(most, sizeof(text)) - n);
		n += more > 0 ? (size_t)more : 0;
	} while (more > 0);
	errno = more < 0 ? errno : EEXIST;
	return more == 0 && !memcmp(text, task->own.begin, n);
}

/* 0: what is at the path of @task may go.  Otherwise -errno. */
static int may_replace(struct task *task)
{
	struct stat st;

	if (!task->own.begin)
		return 0;
	if (lstat(task->path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st.st_mode))
		return refuse(task, -EEXIST, "it exists and is no regular file");
	if (begins_well(task, task->path))
		return 0;
	if (errno != EEXIST)
		return -errno;
	snprintf(task->why, sizeof(task->why), "it exists and does not begin with '%s', as this "
		 "program's files do", task->own.begin);
	return -EEXIST;
}

/* True if the path of @task is the file that the program has written, as far as that is known. */
static bool may_remove(const struct task *task)
{
	const struct plain_file_own *own = &task->own;
	struct stat st;

	return !own->begin ||
	       (!lstat(task->path, &st) && S_ISREG(st.st_mode) &&
		(!own->ino || (st.st_dev == own->dev && st.st_ino == own->ino)) &&
		begins_well(task, task->path));
}

/* Remove what a run before has left at @name: a regular file. */
static int make_way(struct task *task, const char *name)
{
	struct stat st;
	int rc = 0;

	if (lstat(name, &st) < 0)
		rc = -errno;
	else if (!S_ISREG(st.st_mode))
		return refuse(task, -EEXIST, "its name with '" NEW_SUFFIX "' exists and is no "
			      "regular file");
	else if (task->own.begin && !begins_well(task, name))
		rc = -errno;
	else if (unlink(name) < 0)
		rc = -errno;
	if (!rc || rc == -ENOENT)
		return 0;
	if (rc == -EEXIST)
		snprintf(task->why, sizeof(task->why), "its name with '" NEW_SUFFIX "' exists and "
			 "does not begin with '%s'", task->own.begin);
	else
		snprintf(task->why, sizeof(task->why), "its name with '" NEW_SUFFIX "': %s",
			 fds_strerror(rc));
	return rc;
}

/* Write the text to a new file at @name, behind make_way(). */
static int write_new(struct task *task, const char *name)
{
	struct stat st;
	int fd, rc;

	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	rc = write_all(fd, task->text, task->n);
	if (!rc && task->lasts && fsync(fd) < 0)
		rc = -errno;
	if (!rc && fstat(fd, &st) < 0)
		rc = -errno;
	if (close(fd) < 0 && !rc)
		rc = -errno;
	if (!rc) {
		task->own.dev = st.st_dev;
		task->own.ino = st.st_ino;
	}
	return rc;
}

/* The directory of the task's file, for the caller to free; NULL: no memory. */
static char *dir_of(const struct task *task)
{
	const char *slash = strrchr(task->path, '/');

	return slash ? strndup(task->path, (size_t)(slash - task->path) + 1) : strdup(".");
}

/* 0, if @dir is there, too. */
static int make_dir(struct task *task, const char *dir)
{
	if (!task->lasts || mkdir(dir, 0755) == 0 || errno == EEXIST)
		return 0;
	snprintf(task->why, sizeof(task->why), "cannot make its directory: %s", strerror(errno));
	return -errno;
}

/* 0, if there is no @dir, too: nothing in it is left to sync. */
static int sync_dir(const struct task *task, const char *dir)
{
	_cleanup_close_ int fd = -1;

	if (!task->lasts)
		return 0;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	return fsync(fd) < 0 ? -errno : 0;
}

static void write_file(struct task *task)
{
	_cleanup_free_ char *name = fmt_new("%s" NEW_SUFFIX, task->path), *dir = dir_of(task);
	int rc;

	if (!dir || !name) {
		task->rc = refuse(task, -ENOMEM, "out of memory");
		return;
	}
	task->rc = make_dir(task, dir);
	if (!task->rc)
		task->rc = may_replace(task);
	if (!task->rc)
		task->rc = make_way(task, name);
	if (task->rc)
		return;
	rc = write_new(task, name);
	if (!rc && rename(name, task->path) < 0)
		rc = -errno;
	if (rc)
		unlink(name);
	else
		rc = sync_dir(task, dir);
	task->rc = rc;
}

static void remove_file(struct task *task)
{
	_cleanup_free_ char *dir = dir_of(task);
	int rc = dir ? 0 : -ENOMEM;

	if (!rc && may_remove(task) && unlink(task->path) < 0 && errno != ENOENT)
		rc = -errno;
	if (!rc)
		rc = sync_dir(task, dir);
	task->rc = rc;
}

/* Have @task change its file, and tell @own, unless NULL, what is there then. */
static int change(struct task *task, struct plain_file_own *own, char *err, size_t len)
{
	int rc;

	task->to_change = true;
	rc = run(task, err, len);
	/* A task that was left may still write a file, whose inode is not known. */
	if (own && (!rc || rc == -ETIMEDOUT)) {
		own->dev = rc ? 0 : task->own.dev;
		own->ino = rc ? 0 : task->own.ino;
	}
	if (!rc)
		task_free(task);
	return rc;
}

static int write_text(const char *path, struct plain_file_own *own, bool lasts, const char *text,
		      size_t n, char *err, size_t len)
{
	struct task *task = task_new(path, write_file, err, len);

	if (!task)
		return -ENOMEM;
	task->lasts = lasts;
	if (own)
		task->own = *own;
	task->text = malloc(n + 1);
	if (!task->text) {
		snprintf(err, len, "out of memory");
		task_free(task);
		return -ENOMEM;
	}
	memcpy(task->text, text, n);
	task->n = n;
	return change(task, own, err, len);
}

int plain_file_write(const char *path, const char *text, size_t n, char *err, size_t len)
{
	return write_text(path, NULL, false, text, n, err, len);
}

int plain_file_own_write(struct plain_file_own *own, const char *text, size_t n, char *err,
			 size_t len)
{
	return write_text(own->path, own, false, text, n, err, len);
}

static int remove_path(const char *path, const struct plain_file_own *own, bool lasts, char *err,
		       size_t len)
{
	struct task *task = task_new(path, remove_file, err, len);

	if (!task)
		return -ENOMEM;
	task->lasts = lasts;
	if (own)
		task->own = *own;
	return change(task, NULL, err, len);
}

int plain_file_own_remove(const struct plain_file_own *own, char *err, size_t len)
{
	return remove_path(own->path, own, false, err, len);
}

int plain_file_save(const char *path, const char *text, size_t n, char *err, size_t len)
{
	return text ? write_text(path, NULL, true, text, n, err, len) :
		      remove_path(path, NULL, true, err, len);
}

int plain_file_remove(const char *path, char *err, size_t len)
{
	return remove_path(path, NULL, false, err, len);
}

/* ---- directories ---- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_dir(struct task *task)
{
	task->rc = scandir(task->path, &task->entries, task->wants, by_name);
	if (task->rc < 0) {
		task->entries = NULL;
		task->rc = -errno;
	}
}

int plain_file_list(const char *dir, int (*wants)(const struct dirent *entry),
		    struct dirent ***entries, char *err, size_t len)
{
	struct task *task = task_new(dir, read_dir, err, len);
	int rc;

	*entries = NULL;
	if (!task)
		return -ENOMEM;
	task->wants = wants;
	rc = run(task, err, len);
	if (rc < 0)
		return rc;
	*entries = task->entries;
	task->entries = NULL;
	task_free(task);
	return rc;
}
