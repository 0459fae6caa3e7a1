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

static char file[64];
static struct srv_conf conf;
static struct srv_thread thread;
static struct srv srv = { .conf = &conf, .threads = &thread, .nthreads = 1 };
static struct export_life life;
static struct apply apply = { .life = &life };
static struct change change;

static struct call {
	unsigned n;
	int rc;
	char text[512];
} calls[10];
static unsigned ncalls, nread, nheard;	/* so many jobs have read, and were heard of */
static unsigned nstopped, nwaits;

/* The file of keys has these: "AC" is alice and carol. */
static void write_keys(const char *letters)
{
	FILE *f = fopen(file, "w");

	cr_assert_not_null(f);
	for (; *letters; letters++)
		fputs(*letters == 'A' ? ALICE : *letters == 'B' ? BOB : CAROL, f);
	cr_assert_eq(fclose(f), 0);
}

static void count_waits(enum log_level level, const char *line)
{
	nwaits += !strcmp(line, "export resize waits: the files of reload are being read");
}

static void begin(const char *keys)
{
	char psk[64], *argv[] = { (char *)"rtrs-server", psk, (char *)"disk=/dev/null" };
	struct auth_conf auth = { .server = true, .psk = file };
	char err[512];

	strcpy(file, "/tmp/test-change.XXXXXX");
	close(mkstemp(file));
	write_keys(keys);
	log_init(count_waits, LOG_LEVEL_INFO);
	njobs = nread = nheard = ncalls = nstopped = nwaits = 0;
	memset(calls, 0, sizeof(calls));
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
	conf.config = NULL;
	change_fini(&change);
	auth_creds_destroy(srv.auth);
	conf_fini(&conf);
	unlink(file);
}

/* ---- steps ---- */

static void call_ended(void *arg, int rc, const char *text)
{
	struct call *call = arg;

	call->n++;
	call->rc = rc;
	snprintf(call->text, sizeof(call->text), "%s", text);
}

static void begin_change(enum change_kind what)
{
	cr_assert_lt(ncalls, ARRAY_SIZE(calls));
	change_run(&change, what, what == CHANGE_RELOAD ? NULL : "disk", false, call_ended,
		   &calls[ncalls++]);
}

static void read_files(void)
{
	cr_assert_gt(njobs, nread);
	jobs[nread]->work(jobs[nread]);
	nread++;
}

static void hear_of_job(void)
{
	cr_assert_gt(nread, nheard);
	jobs[nheard]->done(jobs[nheard]);
	nheard++;
}

/* The plan of the change whose turn it is holds, and the storage has told sizes. */
static void apply_all(void)
{
	apply_done_fn *plan = applied;

	cr_assert_not_null(plan);
	applied = NULL;
	plan(applied_arg, 0, "");
	sized(sized_arg, 0, "");
}

static void note_stop(void *arg)
{
	nstopped++;
}

/* The server has a file of configuration, of which the test knows. */
static void have_conf(const char *path)
{
	static char option[64];
	static char *argv[] = { (char *)"rtrs-server", option };

	snprintf(option, sizeof(option), "--config=%s", path);
	conf.config = path;
	change.argc = ARRAY_SIZE(argv);
	change.argv = argv;
}

static bool has_keys(const char *letters)
{
	static const char *const names[] = { "alice", "bob", "carol" };
	bool same = true;

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		same = same && !strchr(letters, (int)('A' + i)) ==
				       !psk_find(&srv.auth->secrets->psks, names[i],
						 strlen(names[i]));
	return same;
}

/* How a change ended: "=EBUSY" is once, and with this. */
static bool ended(const struct call *call, const char *how)
{
	static const struct { const char *how; int rc; } errors[] = {
		{ "ok", 0 }, { "EBUSY", -EBUSY }, { "EINVAL", -EINVAL },
		{ "ECANCELED", -ECANCELED },
	};

	if (!strcmp(how, "waits"))
		return !call->n;
	for_each_case(e, errors) {
		if (!strcmp(how, e->how))
			return call->n == 1 && call->rc == e->rc;
	}
	return false;
}

/* What has come about. */
static bool is_so(const char *word, const char *value)
{
	unsigned long n = strtoul(value, NULL, 10);

	if (!strcmp(word, "keys"))
		return has_keys(value);
	if (!strcmp(word, "jobs"))
		return njobs == n;
	if (!strcmp(word, "lines"))
		return nwaits == n;
	if (!strcmp(word, "stopped"))
		return nstopped == n;
	if (!strcmp(word, "planned"))
		return !applied == !n;
	n = strtoul(word, NULL, 10);
	cr_assert(n && n <= ncalls, "no step: %s=%s", word, value);
	return ended(&calls[n - 1], value);
}

static void act(const char *word)
{
	if (!strcmp(word, "reload"))
		begin_change(CHANGE_RELOAD);
	else if (!strcmp(word, "resize"))
		begin_change(CHANGE_EXPORT_RESIZE);
	else if (!strcmp(word, "remove"))
		begin_change(CHANGE_EXPORT_REMOVE);
	else if (!strcmp(word, "hup"))
		change_hup(&change);
	else if (!strcmp(word, "stop"))
		change_stop(&change, note_stop, NULL);
	else if (!strcmp(word, "bad-conf"))
		have_conf("/nowhere/conf");
	else if (!strcmp(word, "read") || !strcmp(word, "job"))
		read_files();
	else if (!strcmp(word, "apply"))
		apply_all();
	else if (!strcmp(word, "sized"))
		sized(sized_arg, 0, "told\n");
	else
		cr_assert(!strcmp(word, "heard") || !strcmp(word, "rest"), "no step: %s", word);
	if (!strcmp(word, "job") || !strcmp(word, "heard"))
		hear_of_job();
	while (!strcmp(word, "rest") && nread < njobs)
		act("job");
}

/* Steps, in words; what has to be so has a =, or is written to the file of keys:
 *	reload resize remove	a change begins, which is number 1, 2 ...
 *	hup stop		SIGHUP; the server stops
 *	file:BC bad-conf	the files of the next reloads
 *	read heard job rest	the worker reads; the server hears; both; all that are left
 *	sized apply		the storage has told sizes; that, and the plan was carried out
 *	1=ok 2=waits		changes have ended, or not
 *	keys=B			the keys that the server takes */
static void run(const char *name, const char *steps)
{
	char text[512], *line = text, *word, *value;

	snprintf(text, sizeof(text), "%s", steps);
	while ((word = strsep(&line, " "))) {
		if ((value = strchr(word, ':'))) {
			write_keys(value + 1);
		} else if ((value = strchr(word, '='))) {
			*value = '\0';
			cr_assert(is_so(word, value + 1), "%s: not %s=%s in front of \"%s\"", name,
				  word, value + 1, line ? line : "the end");
		} else {
			act(word);
		}
	}
}

/* ---- tests ---- */

Test(change, steps)
{
	/* With the keys of the begin; what the first changes have told, and the pieces of it behind
	 * a *. */
	static const struct { const char *name, *keys, *steps, *told[3]; } cases[] = {
		/* A reload that comes during a slow change waits for its turn; what its files take
		 * away does not. */
		{ "reload_waits_and_its_revocation_does_not", "AB",
		  "resize file:BC reload job keys=B planned=0 1=waits 2=waits sized 1=ok 2=waits "
		  "job apply 2=ok keys=BC", { NULL, "-auth key alice\n+auth key carol\n" } },
		/* A key that its file takes away is gone before the configuration is read, right or
		 * wrong. */
		{ "revocation_does_not_depend_on_the_configuration", "AB",
		  "bad-conf file:BC reload job keys=B 1=waits job 1=EINVAL keys=B",
		  { "*/nowhere/conf*\nonly this has changed*\n-auth key alice\n" } },
		/* Keys of a later reload are read before the configuration of an earlier one, and
		 * one that has waited between its parts begins with the keys. */
		{ "keys_are_read_before_all_configurations", "ABC",
		  "resize bad-conf reload read file:BC reload heard job keys=BC 2=waits 3=waits "
		  "sized 1=ok file:C job job keys=C rest 2=EINVAL 3=EINVAL", { NULL } },
		/* Files of a reload that waits take from one that is under way. */
		{ "newer_files_take_from_a_reload_under_way", "A",
		  "file:ABC reload job file:AC reload job apply 1=ok keys=AC job apply 2=ok",
		  { "+auth key carol\n", "" } },
		/* Two reloads whose files are read one after the other: what comes of the older
		 * files takes nothing from the newer ones. */
		{ "older_files_take_nothing_from_a_later_reload", "AB",
		  "file:B reload read file:BC reload jobs=1 heard keys=B job apply job apply 2=ok "
		  "keys=BC", { NULL, "+auth key carol\n" } },
		/* What came between the files of a reload and its turn may have written them, as
		 * "save" does: a reload that has waited carries out the files of now. */
		{ "reload_that_has_waited_reads_its_files_again", "A",
		  "resize file:AB reload job file:AC sized 1=ok planned=0 job apply 2=ok keys=AC "
		  "jobs=2", { NULL, "+auth key carol\n" } },
		/* Changes are carried out in the order in which they came, and each is told of its
		 * own end. */
		{ "each_waits_for_its_turn", "A",
		  "resize resize resize 1=waits sized 1=ok 2=waits sized 2=ok 3=waits sized 3=ok",
		  { "told\n", "told\n", "told\n" } },
		/* A change that waits has a line, also behind a reload whose turn has not come. */
		{ "one_behind_files_that_are_read_tells_so", "A",
		  "reload lines=0 resize lines=1 job apply sized 2=ok", { NULL } },
		/* A SIGHUP that comes while the files of the one before are read has them read once
		 * more, and one that comes behind that, while another change holds up the reload;
		 * all are one reload. */
		{ "hangups_are_one_reload_of_the_newest_files", "ABC",
		  "resize hup read file:BC hup hup jobs=1 heard keys=ABC job keys=BC file:C hup "
		  "job keys=C 1=waits sized 1=ok job apply planned=0 jobs=4 keys=C", { NULL } },
		/* Commands that wait leave clients of the control socket to others; a reload that
		 * is refused takes away nevertheless. */
		{ "so_many_wait_and_no_more", "AB",
		  "resize resize resize resize resize resize resize resize 8=waits resize 9=EBUSY "
		  "file:B reload 10=EBUSY job keys=B "
		  "sized sized sized sized sized sized sized sized 8=ok job apply", { NULL } },
		/* The server stops: changes that wait are told so, at once but for one whose files
		 * are read, and change nothing. */
		{ "stop_ends_those_that_wait", "AB",
		  "resize file:B reload remove stop 3=ECANCELED stopped=0 job 2=ECANCELED keys=AB "
		  "stopped=0 sized stopped=1 remove 4=ECANCELED", { NULL } },
	};

	for_each_case(c, cases) {
		begin(c->keys);
		run(c->name, c->steps);
		for (unsigned i = 0; i < ARRAY_SIZE(c->told); i++) {
			char want[128], *rest = want, *piece;

			snprintf(want, sizeof(want), "%s", c->told[i] ? c->told[i] : "*");
			if (*want != '*')
				cr_assert_str_eq(calls[i].text, want, "%s", c->name);
			while (*want == '*' && (piece = strsep(&rest, "*")))
				cr_assert(strstr(calls[i].text, piece), "%s: %s", c->name,
					  calls[i].text);
		}
		if (ncalls == 10)
			cr_assert_str_eq(calls[8].text, "too many changes wait: try again");
		end();
	}
}

static void add_to(const char *path, const char *text)
{
	FILE *f = fopen(path, "a");

	cr_assert(f && fputs(text, f) >= 0 && !fclose(f));
}

/* A reload that fails while another one is carried out leaves that one alone. */
Test(change, one_that_fails_leaves_the_one_that_runs)
{
	static char path[] = "/tmp/test-change-conf.XXXXXX";

	begin("A");
	close(mkstemp(path));
	have_conf(path);
	add_to(path, "[export \"disk\"]\npath = mem:1M\n");
	run("the first one", "reload job job planned=1");
	add_to(path, "colour = red\n");
	run("the second one", "reload job job 2=EINVAL 1=waits jobs=4 apply 1=ok");
	unlink(path);
	end();
}
