/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of a server, one after the other, whose files are read on a worker: the worker, the plan
 * and the storage are the test's, which has each job begin and end when it likes. */
#include <config.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth-creds.h"
#include "change.h"
#include "log.h"
#include "srv-state.h"
#include "srv-storage.h"
#include "unit.h"

#define KEY_OF(digits) digits digits digits digits digits digits digits digits
#define ALICE "alice:" KEY_OF("a1b2") "\n"
#define BOB "bob:" KEY_OF("b1c2") "\n"
#define CAROL "carol:" KEY_OF("c1d2") "\n"

/* ---- the worker ---- */

static struct worker_job *jobs[8];
static unsigned njobs;

void worker_init(struct worker *w, struct loop *loop)
{
	*w = (struct worker){ .loop = loop };
}

int worker_run(struct worker *w, struct worker_job *job)
{
	cr_assert_lt(njobs, ARRAY_SIZE(jobs));
	jobs[njobs++] = job;
	return 0;
}

bool worker_cancel(struct worker *w, struct worker_job *job)
{
	return false;
}

void worker_fini(struct worker *w)
{
}

/* ---- the plan, and the storage ---- */

static apply_done_fn *applied;
static srv_storage_done_fn *sized;
static void *applied_arg, *sized_arg;

int apply_run(struct apply *a, const struct plan *plan, struct srv_conf *wanted,
	      enum apply_openers openers, apply_done_fn *done, void *arg)
{
	applied = done;
	applied_arg = arg;
	return 0;
}

void srv_storage_resize(struct srv *srv, const char *name, bool force, srv_storage_done_fn *done,
			void *arg)
{
	sized = done;
	sized_arg = arg;
}

void srv_storage_break(struct srv *srv, struct srv_storage_break *b, const char *name, bool force,
		       srv_storage_done_fn *done, void *arg)
{
	cr_assert_fail("nobody wants a lock");
}

void srv_storage_break_stop(struct srv_storage_break *b)
{
	cr_assert_fail("nobody wants a lock");
}

/* ---- the server ---- */

static char file[] = "/tmp/test-change.XXXXXX";
static struct srv_conf conf;
static struct srv_thread thread;
static struct srv srv = { .conf = &conf, .threads = &thread, .nthreads = 1 };
static struct export_life life;
static struct apply apply = { .life = &life };
static struct change change;

static void write_file(const char *text)
{
	FILE *f = fopen(file, "w");

	cr_assert(f && fputs(text, f) >= 0 && !fclose(f));
}

static void begin(const char *keys)
{
	char psk[64], *argv[] = { (char *)"rtrs-server", psk, (char *)"disk=/dev/null" };
	struct auth_conf auth = { .server = true, .psk = file };
	char err[512];

	close(mkstemp(file));
	write_file(keys);
	snprintf(psk, sizeof(psk), "--auth-psk=%s", file);
	cr_assert_eq(conf_parse(&conf, CONF_START, ARRAY_SIZE(argv), argv, stderr), OPT_RUN);
	conf.auth.psk = file;
	cr_assert_eq(auth_creds_create(&auth, &srv.auth, err, sizeof(err)), 0, "%s", err);
	list_init(&srv.sessions);
	srv_pass_init(&srv.passes);
	change_init(&change, &conf, &apply, &srv, 0, NULL);
}

static void end(void)
{
	change_fini(&change);
	auth_creds_destroy(srv.auth);
	conf_fini(&conf);
	unlink(file);
}

TestSuite(change, .fini = end);

struct call {
	unsigned n;
	int rc;
	char text[512];
};

static void call_ended(void *arg, int rc, const char *text)
{
	struct call *call = arg;

	call->n++;
	call->rc = rc;
	snprintf(call->text, sizeof(call->text), "%s", text);
}

static bool has_key(const char *name)
{
	return psk_find(&srv.auth->secrets->psks, name, strlen(name));
}

/* ---- tests ---- */

/* Have the worker read the files of job @i, and the server hear of it. */
static void do_job(unsigned i)
{
	cr_assert_gt(njobs, i);
	jobs[i]->work(jobs[i]);
	jobs[i]->done(jobs[i]);
}

/* The plan of the change whose turn it is holds, and the storage has told sizes. */
static void apply_all(void)
{
	apply_done_fn *plan = applied;

	cr_assert(plan);
	applied = NULL;
	plan(applied_arg, 0, "");
	sized(sized_arg, 0, "");
}

/* A reload that comes during a slow change waits for its turn; what its files take away does
 * not. */
Test(change, reload_waits_and_its_revocation_does_not)
{
	struct call first = { 0 }, second = { 0 };

	begin(ALICE BOB);
	change_run(&change, CHANGE_EXPORT_RESIZE, "disk", false, call_ended, &first);
	write_file(BOB CAROL);
	change_run(&change, CHANGE_RELOAD, NULL, false, call_ended, &second);
	do_job(0);
	cr_expect_not(has_key("alice"));
	cr_expect(has_key("bob"));
	cr_expect_not(has_key("carol"), "what is new waits");
	cr_assert_not(applied);
	cr_assert_eq(first.n + second.n, 0);

	sized(sized_arg, 0, "");
	cr_assert_eq(first.n, 1);
	cr_assert_eq(second.n, 0);
	do_job(1);
	apply_all();
	cr_assert_eq(second.n, 1);
	cr_expect_eq(second.rc, 0);
	cr_expect_str_eq(second.text, "-auth key alice\n+auth key carol\n");
	cr_expect(has_key("carol"));
}

/* The server has a configuration, which has a mistake. */
static void have_bad_conf(void)
{
	static char *argv[] = { (char *)"rtrs-server", (char *)"--config=/nowhere/conf" };

	conf.config = argv[1];
	change.argc = ARRAY_SIZE(argv);
	change.argv = argv;
}

/* A reload that fails while another one is carried out leaves that one alone. */
Test(change, one_that_fails_leaves_the_one_that_runs)
{
	static char path[] = "/tmp/test-change-conf.XXXXXX", option[64];
	static char *argv[] = { (char *)"rtrs-server", option };
	struct call first = { 0 }, second = { 0 };
	FILE *f;

	begin(ALICE);
	close(mkstemp(path));
	snprintf(option, sizeof(option), "--config=%s", path);
	f = fopen(path, "w");
	fprintf(f, "[export \"disk\"]\npath = mem:1M\n");
	fclose(f);
	conf.config = path;
	change.argc = ARRAY_SIZE(argv);
	change.argv = argv;
	change_run(&change, CHANGE_RELOAD, NULL, false, call_ended, &first);
	do_job(0);
	do_job(1);
	cr_assert(applied, "the first one is carried out");
	f = fopen(path, "a");
	fprintf(f, "colour = red\n");
	fclose(f);
	change_run(&change, CHANGE_RELOAD, NULL, false, call_ended, &second);
	do_job(2);
	do_job(3);
	cr_assert_eq(second.n, 1);
	cr_expect_neq(second.rc, 0);
	cr_assert_eq(first.n, 0);
	cr_assert_eq(njobs, 4, "nothing is read again");
	apply_all();
	cr_assert_eq(first.n, 1);
	cr_expect_eq(first.rc, 0);
	unlink(path);
}

/* A key that its file takes away is gone before the configuration is read, right or wrong. */
Test(change, revocation_does_not_depend_on_the_configuration)
{
	struct call call = { 0 };

	begin(ALICE BOB);
	have_bad_conf();
	write_file(BOB CAROL);
	change_run(&change, CHANGE_RELOAD, NULL, false, call_ended, &call);
	do_job(0);
	cr_expect_not(has_key("alice"));
	cr_assert_eq(call.n, 0, "the configuration is read yet");
	do_job(1);
	cr_assert_eq(call.n, 1);
	cr_expect_eq(call.rc, -EINVAL);
	cr_expect(strstr(call.text, "/nowhere/conf"), "%s", call.text);
	cr_expect(strstr(call.text, "\nonly this has changed"), "%s", call.text);
	cr_expect(strstr(call.text, "\n-auth key alice\n"), "%s", call.text);
	cr_expect(has_key("bob"));
	cr_expect_not(has_key("carol"));
	conf.config = NULL;
}

/* Keys of a later reload are read before the configuration of an earlier one, and one that has
 * waited between its parts begins with the keys. */
Test(change, keys_are_read_before_all_configurations)
{
	struct call first = { 0 }, second = { 0 }, third = { 0 };

	begin(ALICE BOB CAROL);
	change_run(&change, CHANGE_EXPORT_RESIZE, "disk", false, call_ended, &first);
	have_bad_conf();
	change_run(&change, CHANGE_RELOAD, NULL, false, call_ended, &second);
	jobs[0]->work(jobs[0]);
	write_file(BOB CAROL);
	change_run(&change, CHANGE_RELOAD, NULL, false, call_ended, &third);
	jobs[0]->done(jobs[0]);
	do_job(1);
	cr_expect_not(has_key("alice"));
	cr_assert_eq(second.n + third.n, 0);

	sized(sized_arg, 0, "");
	cr_assert_eq(first.n, 1);
	write_file(CAROL);
	do_job(2);
	do_job(3);
	cr_expect_not(has_key("bob"), "the next one has waited, and its keys are read again");
	while (!second.n || !third.n)
		do_job(njobs - 1);
	conf.config = NULL;
}

/* Files of a reload that waits take from one that is under way. */
Test(change, newer_files_take_from_a_reload_under_way)
{
	struct call first = { 0 }, second = { 0 };

	begin(ALICE);
	write_file(ALICE BOB CAROL);
	change_run(&change, CHANGE_RELOAD, NULL, false, call_ended, &first);
	do_job(0);
	write_file(ALICE CAROL);
	change_run(&change, CHANGE_RELOAD, NULL, false, call_ended, &second);
	do_job(1);
	apply_all();
	cr_assert_eq(first.n, 1);
	cr_expect_str_eq(first.text, "+auth key carol\n");
	cr_expect(has_key("alice"));
	cr_expect_not(has_key("bob"));
	do_job(2);
	apply_all();
	cr_assert_eq(second.n, 1);
	cr_expect_str_eq(second.text, "");
}

/* Two reloads whose files are read one after the other: what comes of the older files takes nothing
 * from the newer ones. */
Test(change, older_files_take_nothing_from_a_later_reload)
{
	struct call first = { 0 }, second = { 0 };

	begin(ALICE BOB);
	write_file(BOB);
	change_run(&change, CHANGE_RELOAD, NULL, false, call_ended, &first);
	jobs[0]->work(jobs[0]);
	write_file(BOB CAROL);
	change_run(&change, CHANGE_RELOAD, NULL, false, call_ended, &second);
	cr_assert_eq(njobs, 1);
	jobs[0]->done(jobs[0]);
	cr_expect_not(has_key("alice"));
	do_job(1);
	apply_all();
	do_job(2);
	apply_all();
	cr_assert_eq(second.n, 1);
	cr_expect_str_eq(second.text, "+auth key carol\n");
	cr_expect(has_key("bob"));
	cr_expect(has_key("carol"));
}

/* What came between the files of a reload and its turn may have written them, as "save" does: a
 * reload that has waited carries out the files of now. */
Test(change, reload_that_has_waited_reads_its_files_again)
{
	struct call first = { 0 }, second = { 0 };

	begin(ALICE);
	change_run(&change, CHANGE_EXPORT_RESIZE, "disk", false, call_ended, &first);
	write_file(ALICE BOB);
	change_run(&change, CHANGE_RELOAD, NULL, false, call_ended, &second);
	do_job(0);
	write_file(ALICE CAROL);
	sized(sized_arg, 0, "");
	cr_assert_eq(first.n, 1);
	cr_assert_not(applied, "files that are older");
	do_job(1);
	apply_all();
	cr_assert_eq(second.n, 1);
	cr_expect_str_eq(second.text, "+auth key carol\n");
	cr_expect_not(has_key("bob"));
	cr_assert_eq(njobs, 2);
}

/* Changes are carried out in the order in which they came, and each is told of its own end. */
Test(change, each_waits_for_its_turn)
{
	struct call calls[3] = { 0 };

	begin(ALICE);
	for (unsigned i = 0; i < 3; i++)
		change_run(&change, CHANGE_EXPORT_RESIZE, "disk", false, call_ended, &calls[i]);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(calls[i].n, 0);
		sized(sized_arg, 0, "told\n");
		cr_assert_eq(calls[i].n, 1);
		cr_expect_eq(calls[i].rc, 0);
		cr_expect_str_eq(calls[i].text, "told\n");
	}
}

static unsigned nwaits;

static void count_waits(enum log_level level, const char *line)
{
	nwaits += !strcmp(line, "export resize waits: the files of reload are being read");
}

/* A change that waits has a line, also behind a reload whose turn has not come yet. */
Test(change, one_behind_files_that_are_read_tells_so)
{
	struct call first = { 0 }, second = { 0 };

	begin(ALICE);
	log_init(count_waits, LOG_LEVEL_INFO);
	change_run(&change, CHANGE_RELOAD, NULL, false, call_ended, &first);
	cr_assert_eq(nwaits, 0);
	change_run(&change, CHANGE_EXPORT_RESIZE, "disk", false, call_ended, &second);
	cr_assert_eq(nwaits, 1);
	do_job(0);
	apply_all();
	sized(sized_arg, 0, "");
	cr_assert_eq(second.n, 1);
}

/* A SIGHUP that comes while the files of the one before are read has them read once more, and one
 * that comes behind that, while another change holds up the reload; all are one reload. */
Test(change, hangups_are_one_reload_of_the_newest_files)
{
	struct call first = { 0 };

	begin(ALICE BOB CAROL);
	change_run(&change, CHANGE_EXPORT_RESIZE, "disk", false, call_ended, &first);
	change_hup(&change);
	jobs[0]->work(jobs[0]);
	write_file(BOB CAROL);
	change_hup(&change);
	change_hup(&change);
	cr_assert_eq(njobs, 1);
	jobs[0]->done(jobs[0]);
	cr_assert(has_key("alice"));
	do_job(1);
	cr_expect_not(has_key("alice"));

	write_file(CAROL);
	change_hup(&change);
	do_job(2);
	cr_expect_not(has_key("bob"));
	cr_assert_eq(first.n, 0, "the change is still under way");
	sized(sized_arg, 0, "");
	cr_assert_eq(first.n, 1);
	do_job(3);
	apply_all();
	cr_assert_not(applied, "one reload");
	cr_assert_eq(njobs, 4);
	cr_expect(has_key("carol"));
}

/* Commands that wait leave clients of the control socket to others; a reload that is refused takes
 * away nevertheless. */
Test(change, so_many_wait_and_no_more)
{
	static struct call calls[10];

	begin(ALICE BOB);
	for (unsigned i = 0; i < 9; i++)
		change_run(&change, CHANGE_EXPORT_RESIZE, "disk", false, call_ended, &calls[i]);
	cr_assert_eq(calls[7].n, 0);
	cr_assert_eq(calls[8].n, 1);
	cr_expect_eq(calls[8].rc, -EBUSY);
	cr_expect_str_eq(calls[8].text, "too many changes wait: try again");

	write_file(BOB);
	change_run(&change, CHANGE_RELOAD, NULL, false, call_ended, &calls[9]);
	cr_assert_eq(calls[9].n, 1);
	cr_expect_eq(calls[9].rc, -EBUSY);
	do_job(0);
	cr_expect_not(has_key("alice"));
	for (unsigned i = 0; i < 8; i++)
		sized(sized_arg, 0, "");
	cr_assert_eq(calls[7].n, 1);
	do_job(1);
	apply_all();
}

static unsigned nstopped;

static void note_stop(void *arg)
{
	nstopped++;
}

/* The server stops: changes that wait are told so, at once but for one whose files are read, and
 * change nothing. */
Test(change, stop_ends_those_that_wait)
{
	struct call first = { 0 }, second = { 0 }, third = { 0 }, late = { 0 };

	begin(ALICE BOB);
	change_run(&change, CHANGE_EXPORT_RESIZE, "disk", false, call_ended, &first);
	write_file(BOB);
	change_run(&change, CHANGE_RELOAD, NULL, false, call_ended, &second);
	change_run(&change, CHANGE_EXPORT_REMOVE, "disk", false, call_ended, &third);
	change_stop(&change, note_stop, NULL);
	cr_assert_eq(third.n, 1);
	cr_expect_eq(third.rc, -ECANCELED);
	cr_assert_eq(nstopped, 0);
	do_job(0);
	cr_assert_eq(second.n, 1);
	cr_expect_eq(second.rc, -ECANCELED);
	cr_expect(has_key("alice"));
	cr_assert_eq(nstopped, 0, "the storage is asked");
	sized(sized_arg, 0, "");
	cr_assert_eq(first.n, 1);
	cr_assert_eq(nstopped, 1);
	change_run(&change, CHANGE_EXPORT_REMOVE, "disk", false, call_ended, &late);
	cr_expect_eq(late.rc, -ECANCELED);
}
