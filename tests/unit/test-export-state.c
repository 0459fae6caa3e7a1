/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store-file-priv.h"
#include "export-add.h"
#include "exports.h"
#include "log.h"
#include "unit.h"

static struct exports exports;
static char dir[64];

static void begin(void)
{
	strcpy(dir, "/tmp/test-export-state.XXXXXX");
	cr_assert(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
	exports_init(&exports, 1);
}

static void end(void)
{
	char cmd[96];

	exports_fini(&exports);
	cr_assert_eq(chdir("/"), 0);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	cr_assert_eq(system(cmd), 0);
}

TestSuite(export_state, .init = begin, .fini = end);
TestSuite(export_lock, .init = begin, .fini = end);

static struct export *add(struct exports *e, const char *spec)
{
	char err[512] = "", path[64], name[64];
	int fd;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(spec, "="), spec);
	snprintf(path, sizeof(path), "%.*s", (int)strcspn(strchr(spec, '=') + 1, ","),
		 strchr(spec, '=') + 1);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cr_assert(fd >= 0 && !ftruncate(fd, 1024));
	close(fd);
	cr_assert_eq(export_add_line(e, spec, err, sizeof(err)), 0, "%s", err);
	return exports_find(e, name);
}

static void take(struct exports *e, const char *state_dir)
{
	char err[512] = "";

	export_state_dir(e, state_dir);
	cr_assert_eq(exports_lock(e, err, sizeof(err)), 0, "%s", err);
	export_state_open(e);
}

/* Another process: the descriptions of this one keep their locks. */
static void next_server(void)
{
	export_state_close(&exports);
	exports_fini(&exports);
	exports_init(&exports, 1);
}

/* One that did not come to its end. */
static void next_server_after_a_kill(void)
{
	struct store *store;

	list_for_each(store, &exports.stores, link) {
		struct store_file_keep *keep = &store_file_all(store)->keep;

		if (keep->own_fd >= 0)
			close(keep->own_fd);
		keep->own_fd = -1;
		if (store_state(store) != &store->own_state)
			export_record_destroy(store_state(store));
		atomic_store(&store->state, &store->own_state);
	}
	close(exports.state_dir);
	exports.state_dir = -1;
	next_server();
}

/* Of what it keeps: a lock is no file that tells something. */
static unsigned files_in(const char *path)
{
	struct dirent *entry;
	DIR *d = opendir(path);
	unsigned n = 0;

	cr_assert(d);
	while ((entry = readdir(d)))
		n += entry->d_name[0] != '.' && !strstr(entry->d_name, ".lock");
	closedir(d);
	return n;
}

/* A store that came to a server that runs. */
static void take_one(struct export *ex, bool lock)
{
	char err[512] = "";

	if (lock)
		cr_assert_eq(exports_take(&exports, ex, err, sizeof(err)), 0, "%s", err);
	cr_assert_eq(export_state_take(&exports, ex->store), 0);
}

static uint64_t losses;			/* those of the last "mark" or "new" */

/* What the server or its storage does with @value, an export or else; false: that is no step. */
static bool act(const char *word, const char *value)
{
	struct export *ex = exports_find(&exports, value);

	if (!strcmp(word, "next"))
		next_server();
	else if (!strcmp(word, "kill"))
		next_server_after_a_kill();
	else if (!strcmp(word, "forget"))
		cr_assert_eq(system("rm state/file-*"), 0);
	else if (!strcmp(word, "take"))
		take(&exports, *value ? NULL : "state");
	else if (!strcmp(word, "took") || !strcmp(word, "came"))
		take_one(ex, *word == 'c');
	else if (!strcmp(word, "leave"))
		exports_del(&exports, ex);
	else if (!strcmp(word, "sync"))
		export_sync_begun(ex);
	else if (!strcmp(word, "fail"))
		export_sync_failed(ex, -EIO);
	else if (!strcmp(word, "end"))
		export_sync_ended(store_state(ex->store));
	else
		return false;
	return true;
}

/* @told is what the losses are now. */
static bool is_so(const char *word, const char *value, uint64_t told)
{
	struct export *ex = exports_find(&exports, value);

	if (!strcmp(word, "mark"))
		return true;
	if (!strcmp(word, "same"))
		return told == losses;
	if (!strcmp(word, "new"))
		return told != losses;
	if (!strcmp(word, "files"))
		return files_in("state") == strtoul(value, NULL, 10);
	if (!strcmp(word, "fine"))
		return !export_sync_error(ex);
	return !strcmp(word, "syncing") && atomic_load(&store_state(ex->store)->syncing) == 1;
}

/* What a server goes through, in words:
 *	a=f,readonly		it has the file as export a
 *	take take:none		it starts, with its directory of states or without one
 *	leave:a came:a took:a	a store goes, and comes to a server that runs, locked or as it is
 *	sync:a fail:a end:a	a sync begins, has an error, ends
 *	next kill		the next server, after one that ended or was killed
 *	forget			somebody removes the files of states
 *	mark same new		losses are noted, as noted, others (and noted)
 *	files:2			so many files tell something
 *	fine:a syncing:a	no error is told; one sync is under way */
static void run(const char *steps)
{
	char text[256], *line = text, *word, *value;

	snprintf(text, sizeof(text), "%s", steps);
	while ((word = strsep(&line, " "))) {
		if (strchr(word, '=')) {
			add(&exports, word);
			continue;
		}
		value = strchr(word, ':');
		if (value)
			*value++ = '\0';
		else
			value = word + strlen(word);
		if (act(word, value))
			continue;
		cr_assert(is_so(word, value, store_losses(&exports)), "%s: not %s in front of "
			  "\"%s\"", steps, word, line ? line : "the end");
		if (!strcmp(word, "mark") || !strcmp(word, "new"))
			losses = store_losses(&exports);
	}
}

Test(export_state, steps)
{
	static const char *const cases[] = {
		/* A restart without a loss is told by nothing; what tells nothing goes, and other
		 * exports come and go without a word. */
		"a=f take mark files:2 sync:a end:a next files:1 b=g a=f take same kill a=f take "
		"same",
		/* A loss is told for ever.  Under another name it is the same file; the error
		 * itself ended with its server. */
		"a=f b=g take mark sync:a fail:a end:a new next o=f take same fine:o kill o=f "
		"take same fine:o",
		/* Losses of two files do not cancel each other out. */
		"a=f b=g take fail:a mark next forget a=f b=g take fail:b new",
		/* A sync without an end is a loss, once. */
		"a=f take mark sync:a kill a=f take new kill a=f take same",
		/* A store that leaves and comes changes nothing, also without its file; another
		 * loss is told. */
		"b=g a=f take mark leave:a same a=f same came:a same fail:a new leave:a same a=f "
		"same came:a same leave:a same forget a=f same came:a same fail:a new",
		/* What readers saw fail is known when the file is written. */
		"a=f,readonly take files:1 fail:a mark b=f took:b files:2 same sync:b kill a=f "
		"take new",
		/* What is only read keeps nothing; the same file, written under another name. */
		"a=f,readonly take files:1 next a=f,readonly b=f take files:2 sync:a syncing:b "
		"end:a",
		/* Without a directory a server is another one. */
		"a=f take:none mark next a=f take:none new",
	};

	for_each_case(steps, cases) {
		run(*steps);
		next_server();
		cr_assert_eq(system("rm -rf state f g"), 0);
	}
}

/* Whoever cannot know what was before is another one to all clients. */
Test(export_state, without_its_state_a_server_is_another_one)
{
	static const char *const damage[] = {
		"rm -r state",
		"rm state/id",
		"printf x >state/id",
		"cd state && for f in *.state; do printf 'no state at all' >$f; done",
		"cd state && for f in *.state; "
		"do dd if=/dev/zero of=$f bs=4096 count=1 status=none; done",
		"rm -r state && touch state",
		"cd state && for f in *.state; do rm $f && mkdir $f; done",
	};

	for_each_case(cmd, damage) {
		run("a=f take mark kill");
		cr_assert_eq(system(*cmd), 0);
		run("a=f take new next");
		cr_assert_eq(system("rm -rf state"), 0);
	}
}

/* Somebody empties the file of a server that runs: the server goes on, and the file is whole again
 * with the next sync. */
Test(export_state, a_file_that_is_cut_short)
{
	run("a=f take mark");
	cr_assert_eq(system("cd state && for f in *.state; do : >$f; done"), 0);
	run("sync:a fail:a end:a new kill a=f take same");
}

static unsigned ndropped;		/* times that the page cache of a file was dropped */

int __real_posix_fadvise(int fd, off_t offset, off_t len, int advice);
int __wrap_posix_fadvise(int fd, off_t offset, off_t len, int advice);

int __wrap_posix_fadvise(int fd, off_t offset, off_t len, int advice)
{
	ndropped += advice == POSIX_FADV_DONTNEED && !offset && !len;
	return __real_posix_fadvise(fd, offset, len, advice);
}

/* Behind a failed write-back the page cache has what the storage lacks. */
Test(export_state, page_cache_behind_a_failed_sync)
{
	struct export *ex;

	add(&exports, "a=f");
	take(&exports, "state");
	next_server();
	add(&exports, "a=f");
	take(&exports, "state");
	cr_assert_eq(ndropped, 0);
	export_sync_begun(exports_find(&exports, "a"));
	for (unsigned i = 1; i <= 3; i++) {
		next_server_after_a_kill();
		add(&exports, "a=f");
		take(&exports, "state");
		cr_assert_eq(ndropped, i);
		ex = exports_find(&exports, "a");
		export_sync_failed(ex, -EIO);
	}
}

/* ---- locks ---- */

/* Can somebody else have a lock of that kind? */
static bool lockable(const char *path, int how)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), rc;

	cr_assert_geq(fd, 0);
	rc = flock(fd, how | LOCK_NB);
	close(fd);
	return !rc;
}

Test(export_lock, alone_to_write_together_to_read)
{
	char err[512] = "";

	add(&exports, "a=f");
	add(&exports, "b=g,readonly");
	add(&exports, "c=h,readonly");
	add(&exports, "d=h");
	add(&exports, "e=h");
	cr_assert_eq(exports_lock(&exports, err, sizeof(err)), 0, "%s", err);
	cr_assert_not(lockable("f", LOCK_SH));
	cr_assert(lockable("g", LOCK_SH));
	cr_assert_not(lockable("g", LOCK_EX));
	cr_assert_not(lockable("h", LOCK_SH), "written under another name");
	next_server();
	cr_assert(lockable("f", LOCK_EX));
}

/* The lock is that of the description: who else has it goes on having the lock when the server is
 * gone. */
Test(export_lock, ends_with_the_last_user_of_the_description)
{
	char err[512] = "";
	int kept;

	add(&exports, "a=f");
	cr_assert_eq(exports_lock(&exports, err, sizeof(err)), 0, "%s", err);
	kept = dup(store_file_keep(exports_find(&exports, "a"))->lock_fd);
	next_server();
	cr_assert_not(lockable("f", LOCK_EX));
	close(kept);
	cr_assert(lockable("f", LOCK_EX));
}

/* Names come and go, what was opened stays until the last of them goes: its lock, its writers, its
 * error and its losses. */
Test(export_lock, stays_when_the_first_name_goes)
{
	struct export *a, *b;
	uint64_t before;

	a = add(&exports, "a=f");
	b = add(&exports, "b=f");
	take(&exports, "state");
	cr_assert_eq(a->store, b->store);
	before = store_losses(&exports);
	cr_assert_eq(export_acquire(b, RNBD_ACCESS_RW), 0);
	export_sync_failed(a, -EIO);
	exports_del(&exports, a);
	cr_assert_null(exports_find(&exports, "a"));
	cr_assert_eq(exports.n, 1);
	cr_assert_not(lockable("f", LOCK_EX));
	cr_assert_eq(export_sync_error(b), -EIO);
	cr_assert_neq(store_losses(&exports), before);
	a = add(&exports, "a=f,readonly");
	cr_assert_eq(a->store, b->store);
	cr_assert_eq(export_acquire(b, RNBD_ACCESS_RW), -EPERM);
	export_release(b, RNBD_ACCESS_RW);
	exports_del(&exports, a);
	export_state_close(&exports);
	exports_del(&exports, b);
	cr_assert(lockable("f", LOCK_EX));
	cr_assert(list_empty(&exports.stores));
}

/* ---- locks that others have ---- */

#define WAIT_MS 1500			/* longer than who may not write is waited for */

static bool warned;			/* of a lock that does not count */

static void hear(enum log_level level, const char *line)
{
	warned = warned || strstr(line, ": ignored");
}

/* As exports_lock(), of a server that waits for a short while. */
static int lock_soon(char *err, size_t errlen)
{
	warned = false;
	log_init(hear, LOG_LEVEL_INFO);
	exports.lock_timeout_ms = WAIT_MS;
	return exports_lock(&exports, err, errlen);
}

/* A second name makes a file that was only read one that is written. */
Test(export_lock, becomes_exclusive_with_the_first_name_that_is_written)
{
	char err[512] = "";
	struct export *b;
	int other;

	add(&exports, "a=f,readonly");
	take(&exports, "state");
	cr_assert(lockable("f", LOCK_SH));
	cr_assert_not(lockable("f", LOCK_EX));
	b = add(&exports, "b=f");
	other = open("f", O_RDWR | O_CLOEXEC);
	cr_assert_eq(flock(other, LOCK_SH), 0);
	cr_assert_eq(lock_soon(err, sizeof(err)), -EWOULDBLOCK);
	exports_del(&exports, b);
	cr_assert_eq(flock(other, LOCK_UN), 0);
	cr_assert_not(lockable("f", LOCK_EX), "the name that is read keeps its lock");
	b = add(&exports, "b=f");
	cr_assert_eq(exports_lock(&exports, err, sizeof(err)), 0, "%s", err);
	cr_assert_not(lockable("f", LOCK_SH));
	close(other);
}

/* A description of "f" that no process has open: it is on its way through a socket, which is what
 * is returned. */
static int hide(int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	int pair[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	cr_assert_eq(sendmsg(pair[0], &msg, 0), 1);
	close(fd);
	close(pair[0]);
	return pair[1];
}

struct stranger {
	pid_t pid;
	int end;			/* closed: it ends */
};

/* A process of a user who may not write has flock(2) on "f", and the whole of it locked against
 * writers.  @heir: the one who asked has ended, and a child has it. */
static struct stranger stranger(uid_t uid, bool heir)
{
	struct flock all = { .l_type = F_RDLCK };
	int fd = open("f", O_RDONLY | O_CLOEXEC), ready[2], end[2];
	struct stranger s;
	char byte;

	cr_assert(fd >= 0 && !fchmod(fd, 0644) && !pipe2(ready, O_CLOEXEC) &&
		  !pipe2(end, O_CLOEXEC));
	s = (struct stranger){ .pid = fork(), .end = end[1] };
	cr_assert_geq(s.pid, 0);
	if (!s.pid) {
		close(end[1]);
		if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ||
		    flock(fd, LOCK_EX) || fcntl(fd, F_OFD_SETLK, &all) || (heir && fork()))
			_exit(0);
		(void)!write(ready[1], "", 1);
		(void)!read(end[0], &byte, 1);
		_exit(0);
	}
	close(fd);
	close(ready[1]);
	close(end[0]);
	if (heir)
		cr_assert_eq(waitpid(s.pid, NULL, 0), s.pid);
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return s;
}

static void stranger_end(const struct stranger *s, bool heir)
{
	close(s->end);
	if (!heir)
		cr_assert_eq(waitpid(s->pid, NULL, 0), s->pid);
}

/* Whoever may read the file may lock it, and keeps nobody from it. */
Test(export_lock, of_who_may_not_write_does_not_count)
{
	char err[512] = "";

	if (geteuid())
		cr_skip_test("needs root");
	for (int heir = 0; heir < 2; heir++) {
		struct stranger s;

		add(&exports, "a=f");
		s = stranger(65534, heir);
		cr_assert_eq(lock_soon(err, sizeof(err)), 0, "%s", err);
		cr_assert(warned);
		next_server();
		/* A server that only reads is not kept away either. */
		add(&exports, "a=f,readonly");
		cr_assert_eq(lock_soon(err, sizeof(err)), 0, "%s", err);
		next_server();
		stranger_end(&s, heir);
	}
}

/* The owner of the file may write, and so may those whom the mode lets: they are waited for. */
Test(export_lock, of_who_may_write_counts)
{
	char err[512] = "";
	struct stranger s;

	if (geteuid())
		cr_skip_test("needs root");
	for (unsigned i = 0; i < 3; i++) {
		add(&exports, "a=f");
		s = stranger(65534, false);
		if (!i)
			cr_assert_eq(chown("f", 65534, 0), 0);
		else if (i == 1)
			cr_assert(!chown("f", 0, 65534) && !chmod("f", 0664));
		else
			cr_assert(!chown("f", 0, 0) && !chmod("f", 0666));
		cr_assert_eq(lock_soon(err, sizeof(err)), -EWOULDBLOCK, "%u", i);
		cr_assert(strstr(err, "export 'a': 'f' is locked by process "), "%s", err);
		next_server();
		stranger_end(&s, false);
	}
}

static int flock_errno;			/* of each flock(2); 0: the kernel's */

int __real_flock(int fd, int how);
int __wrap_flock(int fd, int how);

int __wrap_flock(int fd, int how)
{
	if (!flock_errno)
		return __real_flock(fd, how);
	errno = flock_errno;
	return -1;
}

/* Where locks do not work, as over NFS without its lock daemon, nobody is waited for. */
Test(export_lock, that_cannot_be)
{
	char err[512] = "";

	add(&exports, "a=f");
	flock_errno = ENOLCK;
	cr_assert_eq(exports_lock(&exports, err, sizeof(err)), -ENOLCK);
	cr_assert_not_null(strstr(err, "No locks available"), "%s", err);
	flock_errno = 0;
	cr_assert_eq(exports_lock(&exports, err, sizeof(err)), 0, "%s", err);
}

/* A process that hides its description is none that writes, if the byte of those who do is free. */
Test(export_lock, of_nobody_does_not_count)
{
	char err[512] = "";
	int fd, hidden;

	if (geteuid())
		cr_skip_test("needs root");
	add(&exports, "a=f");
	fd = open("f", O_RDONLY | O_CLOEXEC);
	cr_assert_eq(flock(fd, LOCK_EX), 0);
	hidden = hide(fd);
	cr_assert_eq(lock_soon(err, sizeof(err)), 0, "%s", err);
	cr_assert(warned);
	close(hidden);
}

/* What is left of a server that was killed is waited for, although no process has it: also by a
 * server that has another state directory, and if it only reads. */
Test(export_lock, of_a_killed_server_counts)
{
	static const char *const specs[] = { "b=f", "b=f,readonly" };
	char err[512] = "";
	int hidden;

	add(&exports, "a=f");
	take(&exports, "state");
	hidden = hide(dup(store_file_keep(exports_find(&exports, "a"))->lock_fd));
	next_server_after_a_kill();
	for_each_case(spec, specs) {
		add(&exports, *spec);
		export_state_dir(&exports, "other");
		cr_assert_eq(lock_soon(err, sizeof(err)), -EWOULDBLOCK);
		next_server();
	}
	close(hidden);
	add(&exports, "a=f");
	take(&exports, "state");
}

/* The file of our own in the state directory is enough, when a reader keeps us from all others. */
Test(export_lock, in_the_state_directory_counts)
{
	static const char *const specs[] = { "b=f", "b=f,readonly" };
	char err[512] = "";
	struct stranger s;
	int hidden;

	if (geteuid())
		cr_skip_test("needs root");
	add(&exports, "a=f");
	s = stranger(65534, false);
	take(&exports, "state");
	hidden = hide(dup(store_file_keep(exports_find(&exports, "a"))->own_fd));
	next_server_after_a_kill();
	for_each_case(spec, specs) {
		add(&exports, *spec);
		export_state_dir(&exports, "state");
		cr_assert_eq(lock_soon(err, sizeof(err)), -EWOULDBLOCK);
		next_server();
	}
	close(hidden);
	for (unsigned i = 0; i < 2; i++) {
		add(&exports, specs[i]);
		export_state_dir(&exports, "state");
		cr_assert_eq(lock_soon(err, sizeof(err)), 0, "%s", err);
		next_server();
		cr_assert_neq(system("ls state/*.lock 2>/dev/null"), 0, "a lock file is left");
	}
	stranger_end(&s, false);
}

/* A file that was replaced, or resized, before it could be locked. */
Test(export_lock, another_file_is_refused)
{
	static const char *const changes[] = {
		"mv f old; truncate -s 1024 f",
		"truncate -s 2048 f",
		"mv f old",
	};
	char err[512] = "";

	for_each_case(cmd, changes) {
		add(&exports, "a=f");
		cr_assert_eq(system(*cmd), 0);
		cr_assert_lt(exports_lock(&exports, err, sizeof(err)), 0);
		cr_assert(strstr(err, "export 'a': 'f' "), "%s", err);
		next_server();
		cr_assert_eq(system("rm -f f old"), 0);
	}
}

static int holder = -1;

static void let_go_when_told(enum log_level level, const char *line)
{
	if (strstr(line, "a: 'f' is locked by process ") &&
	    strstr(line, ": waited ")) {
		close(holder);
		holder = -1;
	}
}

/* A lock that somebody else has is waited for, and who waits says so. */
Test(export_lock, is_waited_for)
{
	char err[512] = "";

	add(&exports, "a=f");
	holder = open("f", O_RDWR | O_CLOEXEC);
	cr_assert_eq(flock(holder, LOCK_EX), 0);
	log_init(let_go_when_told, LOG_LEVEL_INFO);
	cr_assert_eq(exports_lock(&exports, err, sizeof(err)), 0, "%s", err);
	cr_assert_eq(holder, -1);
	cr_assert_not(lockable("f", LOCK_SH));
}
