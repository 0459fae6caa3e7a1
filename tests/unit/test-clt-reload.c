/* SPDX-License-Identifier: BSD-3-Clause */
/* A reload of a client: all files or none, one at a time, and its end.  The test holds up the
 * worker for as long as it likes. */
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "clt-conf.h"
#include "clt-reload.h"
#include "loop.h"
#include "secrets-set.h"

#define KEY_OF(digit) digit digit digit digit digit digit digit digit
#define KEY_A "gw/a:" KEY_OF("a1b2") "\n"
#define KEY_B "gw/b:" KEY_OF("b1c2") "\n"

/* ---- the files ---- */

static struct {
	sem_t reads, go;		/* a reload has begun to read; it may go on */
	bool held;			/* it waits for @go */
	unsigned nreads;
} files;

bool __real_secrets_set_read(struct secrets_set *set, FILE *errors);
bool __wrap_secrets_set_read(struct secrets_set *set, FILE *errors);
bool __wrap_secrets_set_read(struct secrets_set *set, FILE *errors)
{
	files.nreads++;
	sem_post(&files.reads);
	while (files.held && sem_wait(&files.go))
		;
	return __real_secrets_set_read(set, errors);
}

/* ---- the front end ---- */

static char front_file[] = "/tmp/test-clt-reload.XXXXXX";
static struct secrets *front_secrets;
static unsigned nreplaced;

static void front_add(struct secrets_set *set)
{
	secrets_set_add(set, front_secrets, front_file);
}

static void front_replaced(void)
{
	nreplaced++;
}

static const struct clt_front front = { .name = "front", .program = "front", .help = "help",
					.add_secrets = front_add,
					.secrets_replaced = front_replaced };
static const struct clt_front front_without = { .name = "front", .program = "front",
						.help = "help" };

/* ---- the client ---- */

static struct clt_conf conf;
static struct clt_reload reload;
static struct loop *loop;
static char file[] = "/tmp/test-clt-reload.XXXXXX";

static void write_to(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	cr_assert(f && fputs(text, f) >= 0 && !fclose(f));
}

static void write_file(const char *text)
{
	write_to(file, text);
}

/* The keys of NBD clients. */
static void begin_front(void)
{
	const struct secrets_conf keys = { .kind = SECRETS_TLS_KEYS, .server = true, .nbd = true,
					   .file = front_file };
	char err[512];

	close(mkstemp(front_file));
	write_to(front_file, KEY_A);
	cr_assert_eq(secrets_create(&keys, &front_secrets, err, sizeof(err)), 0, "%s", err);
}

static void begin(const struct clt_front *f, bool auth)
{
	char *err = NULL;

	if (f == &front)
		begin_front();
	clt_conf_init(&conf, f);
	clt_conf_set(&conf, "server", "127.0.0.1", &err);
	if (auth) {
		close(mkstemp(file));
		write_file(KEY_A);
		clt_conf_set(&conf, "auth-psk", file, &err);
	}
	cr_assert_eq(clt_conf_complete(&conf, &err), 0, "%s", err);
	cr_assert_eq(loop_poll_create("service", &loop), 0);
	sem_init(&files.reads, 0, 0);
	sem_init(&files.go, 0, 0);
	clt_reload_begin(&reload, &conf, NULL, loop);
}

static void end(void)
{
	clt_reload_end(&reload);
	loop_poll_destroy(loop);
	clt_conf_fini(&conf);
	secrets_destroy(front_secrets);
	unlink(file);
	unlink(front_file);
}

/* ---- reloads ---- */

struct call {
	struct loop_msg msg;
	sem_t done;
	int rc;
	char text[512];
};

static void call_ended(void *arg, int rc, const char *text)
{
	struct call *call = arg;

	call->rc = rc;
	snprintf(call->text, sizeof(call->text), "%s", text);
	sem_post(&call->done);
}

static void call_msg(struct loop_msg *msg)
{
	clt_reload_run(&reload, call_ended, container_of(msg, struct call, msg));
}

static void call_begin(struct call *call)
{
	*call = (struct call){ .rc = 1 };
	sem_init(&call->done, 0, 0);
	loop_msg_init(&call->msg, call_msg);
	loop_post(loop, &call->msg);
}

static void call_wait(struct call *call)
{
	while (sem_wait(&call->done))
		;
}

static void wait_for_read(void)
{
	while (sem_wait(&files.reads))
		;
}

static void loop_call_end_at_once(struct loop_call *call)
{
	loop_call_end(call);
}

/* 1: a reload is under way. */
static void is_idle(struct loop_call *call)
{
	call->rc = !list_empty(&reload.changes.all);
	loop_call_end(call);
}

Test(clt_reload, takes_all)
{
	struct call call;

	begin(&front, true);
	write_file(KEY_B);
	write_to(front_file, KEY_A KEY_B);
	call_begin(&call);
	call_wait(&call);
	cr_assert_eq(call.rc, 0);
	cr_assert_str_eq(call.text, "-auth key gw/a\n+auth key gw/b\n+nbd key gw/b\n");
	cr_assert_str_eq(secrets_own(conf.auth->secrets)->name, "gw/b");
	call_begin(&call);
	call_wait(&call);
	cr_assert_str_eq(call.text, "auth-psk: nothing has changed\n"
			 "nbd tls-psk: nothing has changed\n");
	end();
	cr_assert_eq(nreplaced, 2);
}

/* Other bytes under the same name are another key. */
Test(clt_reload, another_key_of_the_name)
{
	struct call call;

	begin(&front, true);
	write_file("gw/a:" KEY_OF("ffff") "\n");
	call_begin(&call);
	call_wait(&call);
	cr_assert_str_eq(call.text, "-auth key gw/a\n+auth key gw/a\n"
			 "nbd tls-psk: nothing has changed\n");
	cr_assert_eq(secrets_own(conf.auth->secrets)->key[0], 0xff);
	end();
}

Test(clt_reload, takes_nothing)
{
	uint64_t own;
	struct call call;

	begin(&front, true);
	own = secrets_own(conf.auth->secrets)->serial;
	/* The front end's file is bad. */
	write_to(front_file, "bad\n");
	write_file(KEY_B);
	call_begin(&call);
	call_wait(&call);
	cr_assert_eq(call.rc, -EINVAL);
	cr_assert(!strncmp(call.text, "--tls-psk=/tmp/", 15) &&
		  strstr(call.text, ": line 1: expected NAME:KEY\n"), "%s", call.text);
	/* Both. */
	write_file(KEY_A KEY_B);
	call_begin(&call);
	call_wait(&call);
	cr_assert_eq(call.rc, -EINVAL);
	cr_assert(strstr(call.text, "has 2 keys: expected auth-username=NAME\n--tls-psk="), "%s",
		  call.text);
	/* The client's. */
	write_to(front_file, KEY_A KEY_B);
	write_file(KEY_B);
	cr_assert_eq(chmod(file, 0644), 0);
	call_begin(&call);
	call_wait(&call);
	cr_assert_eq(call.rc, -EINVAL);
	cr_assert(strstr(call.text, "expected mode 0600, not 0644"), "%s", call.text);
	cr_assert_eq(secrets_own(conf.auth->secrets)->serial, own);
	cr_assert_eq(front_secrets->psks.n, 1);
	end();
	cr_assert_eq(nreplaced, 0);
	cr_assert_eq(files.nreads, 3);
}

/* A mistake in the file of config= leaves keys of NBD clients that are gone out, those that are new
 * as well, and the client's own key as it was: it could not come back without one. */
Test(clt_reload, keys_before_configuration)
{
	static char name[] = "/tmp/test-clt-reload.XXXXXX";
	struct call call;
	uint64_t own;

	begin(&front, true);
	own = secrets_own(conf.auth->secrets)->serial;
	close(mkstemp(name));
	write_to(name, "poll = x\n");
	conf.config = name;
	write_file(KEY_B);
	write_to(front_file, KEY_B);
	call_begin(&call);
	call_wait(&call);
	unlink(name);
	cr_assert_eq(call.rc, -EINVAL);
	cr_assert(strstr(call.text, ":1: poll 'x': expected a number of microseconds"), "%s",
		  call.text);
	cr_assert(strstr(call.text, "\nonly this has changed, configuration otherwise unchanged:\n"
			 "-nbd key gw/a\n"), "%s", call.text);
	cr_assert_eq(secrets_own(conf.auth->secrets)->serial, own);
	cr_assert_eq(front_secrets->psks.n, 0);
	end();
	cr_assert_eq(nreplaced, 1);
}

/* A reload that comes while another one reads waits for its turn, and is done. */
Test(clt_reload, one_at_a_time)
{
	struct call first, second;

	begin(&front, false);
	files.held = true;
	call_begin(&first);
	wait_for_read();
	write_to(front_file, KEY_A KEY_B);
	call_begin(&second);
	/* The message has been taken. */
	loop_call(loop, loop_call_end_at_once, NULL);
	cr_assert_eq(first.rc, 1);
	cr_assert_eq(second.rc, 1);
	sem_post(&files.go);
	call_wait(&first);
	cr_assert_eq(first.rc, 0);
	sem_post(&files.go);
	call_wait(&second);
	cr_assert_eq(second.rc, 0);
	end();
	cr_assert_eq(files.nreads, 2);
}

/* SIGHUP during a reload is not forgotten, and several are one. */
Test(clt_reload, hup_behind_another)
{
	struct call first;

	begin(&front, false);
	files.held = true;
	call_begin(&first);
	wait_for_read();
	for (unsigned i = 0; i < 3; i++)
		clt_reload_hup(&reload);
	/* The messages have been taken. */
	loop_call(loop, loop_call_end_at_once, NULL);
	sem_post(&files.go);
	wait_for_read();
	sem_post(&files.go);
	call_wait(&first);
	while (loop_call(loop, is_idle, NULL))
		sched_yield();
	end();
	cr_assert_eq(files.nreads, 2);
	cr_assert_eq(nreplaced, 2);
}

static void go_when_stopping(struct loop_msg *msg)
{
	if (reload.ending)
		sem_post(&files.go);
	else
		loop_post(loop, msg);
}

/* The end waits for the files, and nothing is done with them or behind them. */
Test(clt_reload, end_waits)
{
	struct loop_msg go;
	struct call first;

	begin(&front, false);
	files.held = true;
	call_begin(&first);
	wait_for_read();
	clt_reload_hup(&reload);
	loop_msg_init(&go, go_when_stopping);
	loop_post(loop, &go);
	end();
	cr_assert_eq(sem_trywait(&first.done), 0);
	cr_assert_eq(first.rc, -ECANCELED);
	cr_assert_eq(nreplaced, 0);
	cr_assert_eq(files.nreads, 1);
	/* Once more: nothing. */
	clt_reload_end(&reload);
}

Test(clt_reload, no_files)
{
	struct call call;

	begin(&front_without, false);
	call_begin(&call);
	call_wait(&call);
	cr_assert_eq(call.rc, 0);
	cr_assert(strstr(call.text,
			 "uses no file of config, auth-psk, tls-psk or tls-certificates"));
	clt_reload_hup(&reload);
	end();
}
