/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans carried out upon files: the start, a step that cannot be prepared, a server that runs. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply.h"
#include "export-ring.h"
#include "export.h"
#include "log.h"
#include "unit.h"

static char dir[64], cwd[256], err[512];
static struct exports exports;
static struct apply apply;
static struct reactor *reactor;		/* NULL: no server runs */
static struct srv_conf now, wanted;	/* of the server that runs, and of its next plan */

static void stop(void);

static void setup(void)
{
	cr_assert_not_null(getcwd(cwd, sizeof(cwd)));
	strcpy(dir, "/tmp/test-apply.XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
	for (char name[] = "a"; *name < 'd'; (*name)++) {
		int fd = open(name, O_RDWR | O_CREAT, 0600);

		cr_assert_geq(fd, 0);
		cr_assert_eq(ftruncate(fd, 4096), 0);
		close(fd);
	}
	exports_init(&exports, 1);
	apply_init(&apply, &exports);
	err[0] = '\0';
}

static void teardown(void)
{
	char command[128];

	stop();
	conf_fini(&now);
	conf_fini(&wanted);
	apply_fini(&apply);
	exports_fini(&exports);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
	cr_assert_eq(chdir(cwd), 0);
}

TestSuite(apply, .init = setup, .fini = teardown);

/* A configuration with what @line says, split at blanks, in place of what was there; the text is
 * kept. */
static void read_conf(struct srv_conf *conf, const char *line)
{
	static char words[8][256];
	static unsigned n;
	char *argv[32] = { (char *)"rtrs-server", (char *)"--state-dir=state" };
	char *save, *word, *copy = words[n++ % 8];
	int argc = 2;

	conf_fini(conf);
	snprintf(copy, 256, "%s", line);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	cr_assert_eq(conf_parse(conf, CONF_START, argc, argv, stderr), OPT_RUN, "%s", line);
}

/* Prepare and commit what makes @to of @from. */
static int run(const struct srv_conf *from, const struct srv_conf *to)
{
	struct plan plan;
	int rc;

	cr_assert_eq(plan_make(&plan, from, to), 0);
	rc = apply_prepare(&apply, &plan, err, sizeof(err));
	if (!rc)
		rc = apply_commit(&apply, to, err, sizeof(err));
	plan_fini(&plan);
	return rc;
}

Test(apply, the_start_is_the_first_plan)
{
	read_conf(&now, "a=a b=b,readonly");
	cr_assert_eq(run(NULL, &now), 0, "%s", err);
	cr_assert_eq(exports.n, 2);
	cr_assert_not_null(exports_find(&exports, "a"));
	cr_assert(exports_find(&exports, "b")->spec.readonly);
	cr_assert(exports.locked);
	cr_assert_eq(access("state", F_OK), 0);
}

Test(apply, a_start_that_cannot_be_prepared_takes_nothing)
{
	read_conf(&now, "a=a none=none c=c");
	cr_assert_eq(run(NULL, &now), -ENOENT);
	cr_assert_not_null(strstr(err, "'none'"), "%s", err);
	cr_assert_null(exports_find(&exports, "c"));
	cr_assert_not(exports.locked);
	cr_assert_neq(access("state", F_OK), 0);
	cr_assert_not(apply.runs);
}

Test(apply, the_state_directory_that_was_asked_for)
{
	read_conf(&now, "a=a --state-dir=/dev/null/none");
	cr_assert_eq(run(NULL, &now), -ENOTDIR, "%s", err);
	cr_assert_str_eq(err, "--state-dir '/dev/null/none' cannot be used: Not a directory");
	cr_assert_not(apply.runs);
}

/* ---- a server that runs: one ring, which is that of the control thread ---- */

static struct export_life life;
static unsigned known, shares;		/* of the exports and stores that came */
static int share_error;			/* of the next store that comes */
static int result;
static char why[512];

static int export_comes(void *arg, struct export *ex)
{
	known++;
	return 0;
}

static void export_goes(void *arg, struct export *ex)
{
	known--;
}

static int store_comes(void *arg, unsigned ring, const struct store *store)
{
	if (share_error)
		return share_error;
	shares++;
	return 0;
}

static void store_goes(void *arg, unsigned ring, const struct store *store)
{
	shares--;
}

static const struct export_users users = {
	.export_comes = export_comes,
	.export_goes = export_goes,
	.store_comes = store_comes,
	.store_goes = store_goes,
};

/* A server that begins with what @line says, in @now. */
static void serve(const char *line)
{
	read_conf(&now, line);
	cr_assert_eq(run(NULL, &now), 0, "%s", err);
	cr_assert_eq(reactor_create("test", 64, &reactor), 0);
	cr_assert_eq(export_ring_attach(reactor, 0, &exports, false, err, sizeof(err)), 0, "%s",
		     err);
	known = exports.n;
	shares = 0;
	cr_assert_eq(export_life_init(&life, &exports, &reactor, &users, NULL), 0);
	apply_begin(&apply, &life, NULL);
}

static void run_done(void *arg, int rc, const char *text)
{
	result = rc;
	snprintf(why, sizeof(why), "%s", text);
	reactor_stop(reactor);
}

/* Carry out what makes @to of @from. */
static int change(const struct srv_conf *from, struct srv_conf *to)
{
	struct plan plan;

	cr_assert_eq(plan_make(&plan, from, to), 0);
	result = 1;
	cr_assert_eq(apply_run(&apply, &plan, to, APPLY_SPARE_OPENERS, run_done, NULL), 0);
	cr_assert_eq(reactor_run(reactor), 0);
	cr_assert_leq(result, 0);
	plan_fini(&plan);
	return result;
}

static void stopped(void *arg)
{
	*(bool *)arg = true;
	reactor_stop(reactor);
}

/* Those that are on their way are where they want to be. */
static void settle(void)
{
	while (life.now || !list_empty(&life.line)) {
		reactor_stop(reactor);
		cr_assert_eq(reactor_run(reactor), 0);
	}
}

static void stop(void)
{
	bool is_over = false;

	if (!reactor)
		return;
	apply_end(&apply);
	export_life_stop(&life, stopped, &is_over);
	while (!is_over)
		cr_assert_eq(reactor_run(reactor), 0);
	export_ring_let_go(reactor);
	export_ring_detach(reactor);
	export_life_fini(&life);
	reactor_destroy(reactor);
	reactor = NULL;
}

/* Is "@path" free for another server that would write it? */
static bool lockable(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	bool free = !flock(fd, LOCK_EX | LOCK_NB);

	close(fd);
	return free;
}

Test(apply, an_export_comes_to_a_server_that_runs)
{
	serve("a=a");
	read_conf(&wanted, "a=a b=b c=a,readonly --log-level=error");
	cr_assert(lockable("b"));
	cr_assert_eq(change(&now, &wanted), 0, "%s", why);
	cr_assert_eq(exports.n, 3);
	cr_assert_eq(known, 3);
	cr_assert_eq(shares, 1, "a second name brings no store");
	cr_assert(export_ring_has(reactor, exports_find(&exports, "b")));
	cr_assert_eq(exports_find(&exports, "c")->store, exports_find(&exports, "a")->store);
	cr_assert_not(lockable("b"));
	cr_assert_eq(log_level(), LOG_LEVEL_ERROR);
}

/* One export of a plan that cannot be had takes the others, and the options, along. */
Test(apply, a_plan_that_fails_changes_nothing)
{
	static const struct { const char *wanted, *want; int rc; } cases[] = {
		{ "a=a b=b none=none --log-level=debug", "export 'none': 'none' cannot be opened",
		  -ENOENT },
		{ "none=none b=b --log-level=debug", "export 'none'", -ENOENT },
		{ "b=b c=c,direct,readonly none=. --log-level=debug", "is a directory", -EISDIR },
		{ "a=a c=c b=locked --log-level=debug", "is locked by", -EWOULDBLOCK },
	};
	int fd = open("locked", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	cr_assert(!ftruncate(fd, 4096) && !flock(fd, LOCK_EX));
	serve("a=a");
	log_set_level(LOG_LEVEL_WARN);
	exports.lock_timeout_ms = 1200;
	for_each_case(c, cases) {
		read_conf(&wanted, c->wanted);
		cr_assert_eq(change(&now, &wanted), c->rc, "%s", why);
		cr_assert_not_null(strstr(why, c->want), "%s", why);
		settle();
		cr_assert_eq(exports.n, 1);
		cr_assert_not_null(exports_find(&exports, "a"));
		cr_assert_eq(known, 1);
		cr_assert_eq(shares, 0);
		cr_assert(lockable("b") && lockable("c"));
		cr_assert_eq(log_level(), LOG_LEVEL_WARN);
	}
	close(fd);
}

/* A file whose state cannot be kept is not exported, and does not stay locked. */
Test(apply, an_export_without_a_state)
{
	char name[STORE_ID_NAME_MAX], path[128];
	struct stat st;

	cr_assert_eq(stat("b", &st), 0);
	serve("a=a");
	store_id_name(&exports_find(&exports, "a")->id, "state", name, sizeof(name));
	snprintf(strrchr(name, '-'), 64, "-%llu.state", (unsigned long long)st.st_ino);
	snprintf(path, sizeof(path), "state/%s", name);
	cr_assert_eq(mkdir(path, 0700), 0);
	read_conf(&wanted, "a=a b=b");
	cr_assert_eq(change(&now, &wanted), -EISDIR, "%s", why);
	cr_assert_not_null(strstr(why, "export 'b': the state of 'b' cannot be kept"), "%s", why);
	settle();
	cr_assert(lockable("b"));
}

/* A ring does not keep what it could not take whole. */
Test(apply, a_store_without_a_share)
{
	serve("a=a");
	read_conf(&wanted, "a=a b=b");
	share_error = -ENOMEM;
	cr_assert_eq(change(&now, &wanted), -ENOMEM);
	settle();
	cr_assert_eq(known, 1);
	cr_assert_eq(shares, 0);
	cr_assert(lockable("b"));
	share_error = 0;
	cr_assert_eq(change(&now, &wanted), 0, "%s", why);
	cr_assert_eq(shares, 1);
}

Test(apply, who_has_an_export_open_keeps_it)
{
	struct export *a;

	serve("a=a b=b");
	read_conf(&wanted, "b=b");
	a = exports_find(&exports, "a");
	cr_assert_eq(export_acquire(a, RNBD_ACCESS_RW), 0);
	cr_assert_eq(change(&now, &wanted), 0, "%s", why);
	cr_assert_null(exports_find(&exports, "a"));
	settle();
	cr_assert(export_ring_has(reactor, a));
	cr_assert_not(lockable("a"));
	export_release(a, RNBD_ACCESS_RW);
	settle();
	cr_assert_eq(known, 1);
	cr_assert(lockable("a"));
}

/* What comes back as it was, while somebody has it open, is the export that they have open. */
Test(apply, who_has_a_removed_export_open_is_its_user_when_it_comes_back)
{
	struct export *a;

	serve("a=a b=b");
	read_conf(&wanted, "b=b");
	a = exports_find(&exports, "a");
	cr_assert_eq(export_acquire(a, RNBD_ACCESS_RW), 0);
	cr_assert_eq(change(&now, &wanted), 0, "%s", why);
	cr_assert_eq(list_entry(exports.removed.next, struct export, life.link), a);
	cr_assert_eq(change(&wanted, &now), 0, "%s", why);
	cr_assert_eq(exports_find(&exports, "a"), a);
	cr_assert(list_empty(&exports.removed));
	settle();
	cr_assert_eq(known, 2);
	cr_assert_eq(shares, 0);
	export_release(a, RNBD_ACCESS_RW);
	settle();
	cr_assert_eq(exports_find(&exports, "a"), a);
	cr_assert(export_ring_has(reactor, a));
	cr_assert_not(lockable("a"));
}

/* Another file, or another description of it, is another export. */
Test(apply, who_has_a_removed_export_open_is_no_user_of_another_one)
{
	struct export *a, *other;

	serve("a=a");
	a = exports_find(&exports, "a");
	cr_assert_eq(export_acquire(a, RNBD_ACCESS_RO), 0);
	read_conf(&wanted, "a=b");
	cr_assert_eq(change(&now, &wanted), 0, "%s", why);
	other = exports_find(&exports, "a");
	cr_assert_neq(other, a);
	cr_assert_neq(other->store, a->store);
	read_conf(&now, "a=a,readonly");
	cr_assert_eq(change(&wanted, &now), 0, "%s", why);
	other = exports_find(&exports, "a");
	cr_assert_neq(other, a);
	cr_assert_eq(other->store, a->store);
	read_conf(&wanted, "b=b");
	cr_assert_eq(change(&now, &wanted), 0, "%s", why);
	cr_assert_eq(rename("c", "a"), 0);
	read_conf(&now, "a=a");
	cr_assert_eq(change(&wanted, &now), 0, "%s", why);
	other = exports_find(&exports, "a");
	cr_assert_neq(other, a);
	cr_assert_neq(other->store, a->store);
	export_release(a, RNBD_ACCESS_RO);
	settle();
	cr_assert_eq(known, 1);
}

/* A store that is held while one of its names is on its way down, as by a sync of all descriptions,
 * has that name's descriptions until it is let go. */
Test(apply, a_name_waits_for_its_store_on_its_way_down)
{
	struct export *b;
	struct store *store;

	serve("a=a b=a");
	read_conf(&wanted, "a=a");
	b = exports_find(&exports, "b");
	store = b->store;
	cr_assert_eq(change(&now, &wanted), 0, "%s", why);
	while (life.now != b || !life.under_way) {
		reactor_stop(reactor);
		cr_assert_eq(reactor_run(reactor), 0);
	}
	store_hold(store);
	while (life.now == b && life.under_way) {
		reactor_stop(reactor);
		cr_assert_eq(reactor_run(reactor), 0);
	}
	cr_assert_eq(life.now, b);
	cr_assert_eq(b->store, store);
	store_put(store);
	settle();
	cr_assert_eq(known, 1);
	cr_assert_eq(store->names.next, store->names.prev);
}

/* The name that was read goes, the same name that is written comes: of one file. */
Test(apply, an_export_changes_its_flags)
{
	serve("a=a,readonly");
	read_conf(&wanted, "a=a");
	cr_assert_eq(change(&now, &wanted), 0, "%s", why);
	cr_assert_eq(exports.n, 1);
	cr_assert_not(exports_find(&exports, "a")->spec.readonly);
	settle();
	cr_assert_eq(known, 1);
	cr_assert_not(lockable("a"));
	cr_assert_eq(change(&wanted, &now), 0, "%s", why);
	settle();
	cr_assert(exports_find(&exports, "a")->spec.readonly);
}

/* A server that stops does not wait for a lock that somebody else has, and leaves nothing. */
Test(apply, a_server_stops_while_an_export_comes)
{
	struct plan plan;
	int fd = open("locked", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	cr_assert(!ftruncate(fd, 4096) && !flock(fd, LOCK_EX));
	serve("a=a b=b");
	read_conf(&wanted, "b=b c=c l=locked");
	cr_assert_eq(export_acquire(exports_find(&exports, "a"), RNBD_ACCESS_RO), 0);
	cr_assert_eq(plan_make(&plan, &now, &wanted), 0);
	result = 1;
	cr_assert_eq(apply_run(&apply, &plan, &wanted, false, run_done, NULL), 0);
	export_life_remove(&life, exports_find(&exports, "a"));
	while (!life.now || strcmp(life.now->name, "l") || life.now->life.rung < EXPORT_JOINED ||
	       !life.under_way) {
		reactor_stop(reactor);
		cr_assert_eq(reactor_run(reactor), 0);
	}
	stop();
	cr_assert_eq(result, -ECANCELED);
	cr_assert(lockable("c") && lockable("a"));
	plan_fini(&plan);
	close(fd);
}

Test(apply, one_plan_at_a_time)
{
	struct plan plan;

	serve("a=a");
	read_conf(&wanted, "a=a b=b");
	cr_assert_eq(plan_make(&plan, &now, &wanted), 0);
	cr_assert_eq(apply_run(&apply, &plan, &wanted, false, run_done, NULL), 0);
	cr_assert_eq(apply_run(&apply, &plan, &wanted, false, run_done, NULL), -EBUSY);
	cr_assert_eq(reactor_run(reactor), 0);
	cr_assert_eq(result, 0);
	plan_fini(&plan);
}

Test(apply, a_server_that_runs_changes_options)
{
	serve("a=a --threads=2");
	read_conf(&wanted, "a=a --threads=3 --log-level=error");
	cr_assert_eq(change(&now, &wanted), 0, "%s", why);
	cr_assert_eq(log_level(), LOG_LEVEL_ERROR);
	cr_assert_eq(exports.n, 1);
}
