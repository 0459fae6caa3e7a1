/* SPDX-License-Identifier: BSD-3-Clause */
/* A reload of a client: all files or none, one at a time, and its end.  The files of a front end
 * are the test's, which so holds up the worker for as long as it likes. */
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "clt-conf.h"
#include "clt-reload.h"
#include "loop-poll.h"

#define KEY_OF(digit) digit digit digit digit digit digit digit digit
#define KEY_A "gw/a:" KEY_OF("a1b2") "\n"
#define KEY_B "gw/b:" KEY_OF("b1c2") "\n"

/* ---- the files of a front end ---- */

static struct {
	sem_t reads, go;		/* read() has begun; it may end */
	bool held;			/* read() waits for @go */
	bool bad;
	unsigned nreads, ntakes, nforgets;
} files;

static bool files_any(void *arg)
{
	return true;
}

static bool files_read(void *arg, FILE *errors)
{
	files.nreads++;
	sem_post(&files.reads);
	while (files.held && sem_wait(&files.go))
		;
	if (files.bad)
		fprintf(errors, "--file: bad\n");
	return !files.bad;
}

static void files_take(void *arg, FILE *report)
{
	files.ntakes++;
	fprintf(report, "file: taken\n");
}

static void files_forget(void *arg)
{
	files.nforgets++;
}

static const struct clt_front_files front_files = {
	.any = files_any, .read = files_read, .take = files_take, .forget = files_forget,
};
static const struct clt_front front = { .name = "front", .program = "front", .help = "help",
					.files = &front_files };
static const struct clt_front front_without = { .name = "front", .program = "front",
						.help = "help" };

/* ---- the client ---- */

static struct clt_conf conf;
static struct clt_reload reload;
static struct loop *loop;
static char file[] = "/tmp/test-clt-reload.XXXXXX";

static void write_file(const char *text)
{
	FILE *f = fopen(file, "w");

	cr_assert(f && fputs(text, f) >= 0 && !fclose(f));
}

static void begin(const struct clt_front *f, bool auth)
{
	char *err = NULL;

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
	clt_reload_begin(&reload, &conf, loop);
}

static void end(void)
{
	clt_reload_end(&reload);
	loop_poll_destroy(loop);
	clt_conf_fini(&conf);
	unlink(file);
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

Test(clt_reload, takes_all)
{
	struct call call;

	begin(&front, true);
	write_file(KEY_B);
	call_begin(&call);
	call_wait(&call);
	cr_assert_eq(call.rc, 0);
	cr_assert_str_eq(call.text, "-auth key gw/a\n+auth key gw/b\nfile: taken\n");
	cr_assert_str_eq(conf.auth->own->psk.name, "gw/b");
	call_begin(&call);
	call_wait(&call);
	cr_assert_str_eq(call.text, "auth-psk: nothing has changed\nfile: taken\n");
	end();
	cr_assert_eq(files.nforgets, 2);
}

/* Other bytes under the same name are another key. */
Test(clt_reload, another_key_of_the_name)
{
	struct auth_key *before;
	struct call call;

	begin(&front, true);
	before = auth_key_get(conf.auth->own);
	write_file("gw/a:" KEY_OF("ffff") "\n");
	call_begin(&call);
	call_wait(&call);
	cr_assert_str_eq(call.text, "-auth key gw/a\n+auth key gw/a\nfile: taken\n");
	cr_assert_eq(conf.auth->own->psk.key[0], 0xff);
	/* A handshake that has the key of before goes on with it. */
	cr_assert_eq(before->psk.key[0], 0xa1);
	auth_key_put(before);
	end();
}

Test(clt_reload, takes_nothing)
{
	const struct auth_key *own;
	struct call call;

	begin(&front, true);
	own = conf.auth->own;
	/* The front end's file is bad. */
	files.bad = true;
	write_file(KEY_B);
	call_begin(&call);
	call_wait(&call);
	cr_assert_eq(call.rc, -EINVAL);
	cr_assert_str_eq(call.text, "--file: bad\n");
	/* Both. */
	write_file(KEY_A KEY_B);
	call_begin(&call);
	call_wait(&call);
	cr_assert_eq(call.rc, -EINVAL);
	cr_assert(strstr(call.text, "has 2 keys: expected auth-username=NAME\n--file: bad\n"), "%s",
		  call.text);
	/* The client's. */
	files.bad = false;
	write_file(KEY_B);
	cr_assert_eq(chmod(file, 0644), 0);
	call_begin(&call);
	call_wait(&call);
	cr_assert_eq(call.rc, -EINVAL);
	cr_assert(strstr(call.text, "expected mode 0600, not 0644"), "%s", call.text);
	cr_assert_eq(conf.auth->own, own);
	end();
	cr_assert_eq(files.ntakes, 0);
	cr_assert_eq(files.nreads, 3);
	cr_assert_eq(files.nforgets, 3);
}

Test(clt_reload, one_at_a_time)
{
	struct call first, second;

	begin(&front, false);
	files.held = true;
	call_begin(&first);
	wait_for_read();
	call_begin(&second);
	call_wait(&second);
	cr_assert_eq(second.rc, -EBUSY);
	cr_assert(strstr(second.text, "try again"));
	cr_assert_eq(first.rc, 1);
	sem_post(&files.go);
	call_wait(&first);
	cr_assert_eq(first.rc, 0);
	end();
	cr_assert_eq(files.nreads, 1);
}

/* SIGHUP during a reload is not forgotten, and several are one. */
Test(clt_reload, hup_behind_another)
{
	struct call first, barrier;

	begin(&front, false);
	files.held = true;
	call_begin(&first);
	wait_for_read();
	for (unsigned i = 0; i < 3; i++) {
		clt_reload_hup(&reload);
		/* The message has been taken. */
		call_begin(&barrier);
		call_wait(&barrier);
		cr_assert_eq(barrier.rc, -EBUSY);
	}
	sem_post(&files.go);
	wait_for_read();
	sem_post(&files.go);
	end();
	cr_assert_eq(files.nreads, 2);
	cr_assert_eq(files.ntakes, 2);
}

static void go_when_stopping(struct loop_msg *msg)
{
	if (reload.ending)
		sem_post(&files.go);
	else
		loop_post(loop, msg);
}

/* The end waits for the files, and does nothing behind them. */
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
	cr_assert_eq(first.rc, 0);
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
	cr_assert_eq(call.rc, -ENOENT);
	cr_assert(strstr(call.text, "expected auth-psk, tls-psk or tls-certificates"));
	clt_reload_hup(&reload);
	end();
}
