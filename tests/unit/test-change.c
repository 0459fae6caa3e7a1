/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of a server whose files are read on a worker: the worker, the plan and the storage are
 * the test's, which has each job begin and end when it likes. */
#include <config.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth-creds.h"
#include "change.h"
#include "srv-resize.h"
#include "srv-state.h"
#include "unit.h"

#define KEY_OF(digits) digits digits digits digits digits digits digits digits
#define ALICE "alice:" KEY_OF("a1b2") "\n"
#define BOB "bob:" KEY_OF("b1c2") "\n"
#define CAROL "carol:" KEY_OF("c1d2") "\n"

/* ---- the worker ---- */

static struct worker_job *jobs[4];
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

void worker_fini(struct worker *w)
{
}

/* ---- the plan, and the storage ---- */

static apply_done_fn *applied;
static srv_resize_done_fn *sized;
static void *applied_arg, *sized_arg;

int apply_run(struct apply *a, const struct plan *plan, struct srv_conf *wanted, bool force,
	      apply_done_fn *done, void *arg)
{
	applied = done;
	applied_arg = arg;
	return 0;
}

void srv_resize(struct srv *srv, const char *name, bool force, srv_resize_done_fn *done, void *arg)
{
	sized = done;
	sized_arg = arg;
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
	cr_assert_eq(conf_parse(&conf, ARRAY_SIZE(argv), argv, stderr), OPT_RUN);
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

/* A reload is refused because of a change, and reads files all the same.  That change ends first,
 * and the next reload reads its own files before the refusal is told: what comes of the older files
 * takes nothing from the newer ones. */
Test(change, older_files_take_nothing_from_a_later_reload)
{
	struct call first = { 0 }, refused = { 0 }, later = { 0 };

	begin(ALICE BOB);
	change_export_resize(&change, "disk", false, call_ended, &first);
	write_file(BOB);
	change_reload(&change, false, call_ended, &refused);
	cr_assert_eq(njobs, 1);
	jobs[0]->work(jobs[0]);
	sized(sized_arg, 0, "");
	cr_assert_eq(first.n, 1);

	write_file(BOB CAROL);
	change_reload(&change, false, call_ended, &later);
	cr_assert_eq(njobs, 2);
	jobs[1]->work(jobs[1]);
	jobs[0]->done(jobs[0]);
	cr_assert_eq(refused.n, 1);
	cr_assert_eq(refused.rc, -EBUSY);
	cr_assert_not(has_key("alice"));
	jobs[1]->done(jobs[1]);
	applied(applied_arg, 0, "");
	sized(sized_arg, 0, "");
	cr_assert_eq(later.n, 1);
	cr_assert_eq(later.rc, 0);
	cr_expect_str_eq(later.text, "+auth key carol\n");
	cr_expect(has_key("bob"));
	cr_expect(has_key("carol"));
	end();
}

/* Newer files do take from a change that is under way all the while. */
Test(change, newer_files_take_from_a_reload_under_way)
{
	struct call first = { 0 }, refused = { 0 };

	begin(ALICE);
	write_file(ALICE BOB CAROL);
	change_reload(&change, false, call_ended, &first);
	jobs[0]->work(jobs[0]);
	write_file(ALICE CAROL);
	change_reload(&change, false, call_ended, &refused);
	cr_assert_eq(njobs, 2);
	jobs[1]->work(jobs[1]);
	jobs[0]->done(jobs[0]);
	jobs[1]->done(jobs[1]);
	cr_assert_eq(refused.n, 1);
	cr_assert_eq(refused.rc, -EBUSY);
	applied(applied_arg, 0, "");
	sized(sized_arg, 0, "");
	cr_assert_eq(first.n, 1);
	cr_expect_str_eq(first.text, "+auth key carol\n");
	cr_expect(has_key("alice"));
	cr_expect_not(has_key("bob"));
	end();
}

/* A SIGHUP while a refused reload reads: the files may be newer than what was read, and are read
 * once more, for the trust that goes at once, and for all else behind the change. */
Test(change, hangup_while_a_refused_reload_reads)
{
	struct call first = { 0 };

	begin(ALICE BOB);
	change_export_resize(&change, "disk", false, call_ended, &first);
	change_hup(&change);
	cr_assert_eq(njobs, 1);
	jobs[0]->work(jobs[0]);
	write_file(BOB CAROL);
	change_hup(&change);
	cr_assert_eq(njobs, 1);
	jobs[0]->done(jobs[0]);
	cr_assert(has_key("alice"));
	cr_assert_eq(njobs, 2);
	jobs[1]->work(jobs[1]);
	jobs[1]->done(jobs[1]);
	cr_expect_not(has_key("alice"));
	cr_assert_eq(first.n, 0, "the change is still under way");

	sized(sized_arg, 0, "");
	cr_assert_eq(first.n, 1);
	cr_assert_eq(njobs, 3);
	jobs[2]->work(jobs[2]);
	jobs[2]->done(jobs[2]);
	applied(applied_arg, 0, "");
	sized(sized_arg, 0, "");
	cr_expect(has_key("carol"));
	cr_assert_eq(njobs, 3);
	end();
}
