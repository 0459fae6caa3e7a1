/* SPDX-License-Identifier: BSD-3-Clause */
/* A control socket: lines and answers, limits, the name in the file system.  The loop runs on its
 * thread, the clients are plain sockets of the test, and time stands still unless the test moves
 * it. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "ctl-client.h"
#include "ctl-json.h"
#include "ctl.h"
#include "loop.h"

static struct loop *loop;
static struct ctl *ctl;
static char dir[] = "/tmp/rtrs-ctl.XXXXXX", path[64];
static _Atomic(uint64_t) now_ms = 1000;
static struct ctl_client *late;		/* its command waits for answer_late() */
static sem_t late_came;

uint64_t clock_now_ms(void)
{
	return now_ms;
}

/* ---- on the loop's thread ---- */

static void run_call(struct loop_call *call)
{
	(*(void (**)(void))call->arg)();
	loop_call_end(call);
}

static void on_loop(void (*fn)(void))
{
	loop_call(loop, run_call, &fn);
}

static void nothing(void)
{
}

/* Time has passed, and the loop has seen that. */
static void pass_time(uint64_t ms)
{
	now_ms += ms;
	on_loop(nothing);
	on_loop(nothing);
}

static void call_ping(struct ctl_client *client, const char *value, void *arg)
{
	ctl_answer(client, json_pack("{s:s}", "pong", value ? value : "nothing"));
}

static void call_change(struct ctl_client *client, int change, const char *value, bool force,
			void *arg)
{
	ctl_answer(client, json_pack("{s:i,s:b}", "change", change, "force", force));
}

static const struct ctl_call calls[] = {
	{ .name = "ping", .fn = call_ping, .member = "what" },
	{ .name = "pong", .fn = call_ping, .member = "what", .needed = true },
	{ .name = "cut", .fn_change = call_change, .change = 3, .takes_force = true },
	{ .name = "cut off", .fn_change = call_change, .change = 4 },
};

static void serve(struct ctl_client *client, const json_t *command, void *arg)
{
	const char *word = json_string_value(json_object_get(command, "command"));

	cr_assert_str_eq(arg, "arg");
	if (!word || !strncmp(word, "cu", 2) || strstr(word, "force") || !strcmp(word, "ping") ||
	    !strcmp(word, "pong") || !strcmp(word, "pung")) {
		ctl_call(client, command, "test", calls, ARRAY_SIZE(calls), NULL);
	} else if (!strcmp(word, "late")) {
		late = client;
		sem_post(&late_came);
	} else if (!strcmp(word, "big")) {
		char *text = malloc(8 << 20);

		memset(text, 'x', (8 << 20) - 1);
		text[(8 << 20) - 1] = '\0';
		ctl_answer(client, json_pack("{s:s}", "text", text));
		free(text);
	} else {
		ctl_answer(client, json_pack("{s:s}", "echo", word));
	}
}

static void answer_late(void)
{
	ctl_answer(late, json_pack("{s:s}", "was", "late"));
	late = NULL;
}

static char open_err[256];
static int open_rc;

static void open_ctl(void)
{
	open_rc = ctl_open(loop, path, serve, "arg", &ctl, open_err, sizeof(open_err));
}

static sem_t closed;

static void was_closed(void *arg)
{
	cr_assert_str_eq(arg, "done");
	sem_post(&closed);
}

static void close_ctl(void)
{
	ctl_close(ctl, was_closed, "done");
}

static void begin(void)
{
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/sock", dir);
	sem_init(&late_came, 0, 0);
	sem_init(&closed, 0, 0);
	cr_assert_eq(loop_poll_create("test", &loop), 0);
	on_loop(open_ctl);
	cr_assert_eq(open_rc, 0, "%s", open_err);
}

static void end(void)
{
	on_loop(close_ctl);
	if (late)				/* a test that failed */
		on_loop(answer_late);
	sem_wait(&closed);
	loop_poll_destroy(loop);
	cr_assert_eq(rmdir(dir), 0);		/* the name has gone */
}

TestSuite(ctl, .init = begin, .fini = end);

/* ---- clients ---- */

static int client(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	cr_assert_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	cr_assert_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* All that comes until @text is there is @text. */
static void hear(int fd, const char *text)
{
	char got[1024];
	size_t len = strlen(text);

	cr_assert_eq(recv(fd, got, len, MSG_WAITALL), (ssize_t)len);
	expect_bytes(got, text, len, text);
}

/* The loop has read all that was said on @fd. */
static void was_read(int fd)
{
	int unread;

	do {
		sched_yield();
		cr_assert_eq(ioctl(fd, SIOCOUTQ, &unread), 0);
	} while (unread);
}

static void hear_end(int fd)
{
	char c;

	cr_assert_leq(recv(fd, &c, 1, 0), 0);
	close(fd);
}

Test(ctl, one_answer_for_each_line)
{
	int fd = client(), other = client();

	say(fd, "{\"command\":\"a\"}\n");
	hear(fd, "{\"echo\":\"a\",\"ok\":true}\n");
	say(fd, "{\"command\":\"b\"}\n{\"command\":\"c\"}\n{\"comm");
	hear(fd, "{\"echo\":\"b\",\"ok\":true}\n{\"echo\":\"c\",\"ok\":true}\n");
	say(other, "{}\n");
	hear(other, "{\"ok\":false,\"error\":\"\\\"command\\\" is missing: expected one like "
		    "{\\\"command\\\":\\\"ping\\\"}\"}\n");
	say(fd, "and\":\"d\"}\n");
	hear(fd, "{\"echo\":\"d\",\"ok\":true}\n");
	close(fd);
	close(other);
}

/* @command is refused with @why. */
static void expect_refusal(int fd, const char *command, const char *why)
{
	json_t *refusal = json_pack("{s:b,s:s}", "ok", 0, "error", why);
	char *text = json_dumps(refusal, JSON_COMPACT);

	say(fd, command);
	hear(fd, text);
	hear(fd, "\n");
	free(text);
	json_decref(refusal);
}

Test(ctl, a_command_is_what_its_table_says)
{
	int fd = client();

	say(fd, "{\"command\":\"ping\"}\n{\"command\":\"pong\",\"what\":\"x\"}\n");
	hear(fd, "{\"pong\":\"nothing\",\"ok\":true}\n{\"pong\":\"x\",\"ok\":true}\n");
	expect_refusal(fd, "{\"what\":\"x\"}\n",
		       "\"command\" is missing: expected one like {\"command\":\"ping\"}");
	expect_refusal(fd, "{\"command\":5}\n",
		       "\"command\" is no string: expected one like {\"command\":\"ping\"}");
	expect_refusal(fd, "{\"command\":null}\n",
		       "\"command\" is no string: expected one like {\"command\":\"ping\"}");
	expect_refusal(fd, "{\"command\":\"pung\"}\n", "test has no command 'pung'");
	expect_refusal(fd, "{\"command\":\"pong\"}\n", "pong: needs \"what\"");
	expect_refusal(fd, "{\"command\":\"ping\",\"what\":5}\n",
		       "ping: \"what\" must be a string");
	expect_refusal(fd, "{\"command\":\"ping\",\"who\":\"x\"}\n", "ping: takes no \"who\"");
	close(fd);
}

/* "NAME force" is NAME, by force, and only of a command that takes it. */
Test(ctl, force)
{
	int fd = client();

	say(fd, "{\"command\":\"cut\"}\n{\"command\":\"cut force\"}\n{\"command\":\"cut off\"}\n");
	hear(fd, "{\"change\":3,\"force\":false,\"ok\":true}\n");
	hear(fd, "{\"change\":3,\"force\":true,\"ok\":true}\n");
	hear(fd, "{\"change\":4,\"force\":false,\"ok\":true}\n");
	expect_refusal(fd, "{\"command\":\"cut off force\"}\n",
		       "test has no command 'cut off force'");
	expect_refusal(fd, "{\"command\":\"ping force\"}\n", "test has no command 'ping force'");
	expect_refusal(fd, "{\"command\":\"cu force\"}\n", "test has no command 'cu force'");
	expect_refusal(fd, "{\"command\":\"cut force force\"}\n",
		       "test has no command 'cut force force'");
	close(fd);
}

Test(ctl, one_who_has_nothing_more_to_say_is_answered)
{
	int fd = client();

	say(fd, "{\"command\":\"a\"}\n");
	shutdown(fd, SHUT_WR);
	hear(fd, "{\"echo\":\"a\",\"ok\":true}\n");
	hear_end(fd);
}

Test(ctl, garbage_is_told_and_cut_off)
{
	static const char *const lines[] = {
		"\n", "x\n", "[]\n", "1\n", "{\"a\":1,\"a\":2}\n", "{}{}\n", "{\"\xff\":1}\n",
		"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n",
	};

	for (unsigned i = 0; i < ARRAY_SIZE(lines); i++) {
		int fd = client();

		say(fd, lines[i]);
		hear(fd, "{\"ok\":false,\"error\":\"expected one JSON object per line\"}\n");
		hear_end(fd);
	}
}

/* A program that takes the socket for another one says what it has to, and waits. */
Test(ctl, what_begins_like_no_command_is_answered_at_once, .timeout = 60)
{
	static const struct { const char *text; size_t len; } begins[] = {
		{ "x", 1 }, { "\x10", 1 }, { "[", 1 }, { "GET / HTTP/1.1", 14 },
		{ "\0", 1 }, { "\0{}", 3 },		/* as a number in big endian begins */
	};

	for_each_case(begin, begins) {
		int fd = client();

		cr_assert_eq(send(fd, begin->text, begin->len, 0), (ssize_t)begin->len);
		hear(fd, "{\"ok\":false,\"error\":\"expected one JSON object per line\"}\n");
		hear_end(fd);
	}
}

Test(ctl, line_that_is_too_long)
{
	static char line[CTL_LINE_MAX + 1];
	int fd = client();

	/* The longest. */
	memset(line, ' ', sizeof(line));
	memcpy(line, "{\"command\":\"a\"}", 15);
	line[CTL_LINE_MAX - 1] = '\n';
	line[CTL_LINE_MAX] = '\0';
	say(fd, line);
	hear(fd, "{\"echo\":\"a\",\"ok\":true}\n");
	line[CTL_LINE_MAX - 1] = ' ';
	say(fd, line);
	hear(fd, "{\"ok\":false,\"error\":\"the line is too long\"}\n");
	hear_end(fd);
}

/* The longest one, however it comes. */
Test(ctl, line_in_pieces)
{
	static char line[CTL_LINE_MAX];
	int fd = client();

	memset(line, ' ', CTL_LINE_MAX - 1);
	memcpy(line, "{\"command\":\"a\"}", 15);
	for (unsigned i = 0; i < 2; i++) {
		say(fd, line);
		was_read(fd);
		on_loop(nothing);
		say(fd, "\n");
		hear(fd, "{\"echo\":\"a\",\"ok\":true}\n");
	}
	say(fd, line);
	was_read(fd);
	say(fd, " ");
	hear(fd, "{\"ok\":false,\"error\":\"the line is too long\"}\n");
	hear_end(fd);
}

Test(ctl, answer_that_comes_late)
{
	int fd = client(), other = client();

	say(fd, "{\"command\":\"late\"}\n{\"command\":\"a\"}\n");
	sem_wait(&late_came);
	pass_time(10 * CTL_IDLE_MS);		/* not its fault */
	hear_end(other);			/* asked for nothing */
	on_loop(answer_late);
	hear(fd, "{\"was\":\"late\",\"ok\":true}\n{\"echo\":\"a\",\"ok\":true}\n");
	close(fd);
}

static unsigned allocs_left;		/* two: the last ones fail, because a text is tried twice */

static void *alloc(size_t n)
{
	return allocs_left && --allocs_left < 2 ? NULL : malloc(n);
}

static void end_late(void)
{
	ctl_call_ended(late, 0, "one\ntwo\n");
	late = NULL;
}

/* Lines without memory for one of their parts are an error, and never fewer or empty lines. */
Test(ctl, lines_without_memory)
{
	static const char whole[] = "{\"changes\":[\"one\",\"two\"],\"ok\":true}\n";
	bool failed;

	json_set_alloc_funcs(alloc, free);
	for (unsigned n = 2; n < 1000; n++) {
		int fd = client();
		char got[256] = "";

		say(fd, "{\"command\":\"late\"}\n");
		sem_wait(&late_came);
		allocs_left = n;
		on_loop(end_late);
		failed = allocs_left < 2;
		allocs_left = 0;
		cr_assert_gt(recv(fd, got, sizeof(got) - 1, 0), 0);
		close(fd);
		cr_assert(!strcmp(got, whole) || (failed && !strncmp(got, "{\"ok\":false,", 12)),
			  "%u: %s", n, got);
		if (!failed)
			return;
	}
	cr_assert(false, "each answer was refused");
}

Test(ctl, answer_to_one_who_has_gone)
{
	int fd = client();

	say(fd, "{\"command\":\"late\"}\n");
	sem_wait(&late_came);
	close(fd);
	fd = client();
	say(fd, "{\"command\":\"a\"}\n");
	hear(fd, "{\"echo\":\"a\",\"ok\":true}\n");
	on_loop(answer_late);
	close(fd);
}

Test(ctl, closing_waits_for_answers)
{
	int fd = client();

	say(fd, "{\"command\":\"late\"}\n");
	sem_wait(&late_came);
	on_loop(close_ctl);
	hear_end(fd);
	on_loop(nothing);
	cr_assert_eq(sem_trywait(&closed), -1);
	on_loop(answer_late);
	sem_wait(&closed);
	on_loop(open_ctl);			/* for end() */
	cr_assert_eq(open_rc, 0);
}

static void close_and_answer(void)
{
	close_ctl();
	answer_late();
}

/* The answer comes before the loop has let go of the client's descriptor. */
Test(ctl, answer_right_behind_the_end)
{
	int fd = client();

	say(fd, "{\"command\":\"late\"}\n");
	sem_wait(&late_came);
	on_loop(close_and_answer);
	hear_end(fd);
	sem_wait(&closed);
	on_loop(open_ctl);			/* for end() */
	cr_assert_eq(open_rc, 0);
}

Test(ctl, idle_ones_are_cut_off)
{
	int fd = client(), half = client(), deaf = client();

	say(half, "{\"command\"");
	say(deaf, "{\"command\":\"big\"}\n");
	hear(deaf, "{\"text\":\"");
	say(fd, "{\"command\":\"a\"}\n");
	hear(fd, "{\"echo\":\"a\",\"ok\":true}\n");
	pass_time(CTL_IDLE_MS - 1);
	say(fd, "{\"command\":\"a\"}\n");
	hear(fd, "{\"echo\":\"a\",\"ok\":true}\n");
	pass_time(1);
	hear_end(half);
	for (char buf[1024]; recv(deaf, buf, sizeof(buf), 0) > 0;)
		;
	close(deaf);
	say(fd, "{\"command\":\"a\"}\n");
	hear(fd, "{\"echo\":\"a\",\"ok\":true}\n");
	close(fd);
}

Test(ctl, big_answer_is_whole)
{
	size_t n = 0;
	int fd = client();
	char c = 0;

	say(fd, "{\"command\":\"big\"}\n");
	while (c != '\n') {
		static char buf[65536];
		ssize_t got = recv(fd, buf, sizeof(buf), 0);

		cr_assert_gt(got, 0);
		n += (size_t)got;
		c = buf[got - 1];
	}
	cr_assert_eq(n, (8u << 20) - 1 + strlen("{\"text\":\"\",\"ok\":true}\n"));
	close(fd);
}

Test(ctl, so_many_clients_and_no_more)
{
	int fds[CTL_CLIENTS_MAX], fd;

	for (unsigned i = 0; i < CTL_CLIENTS_MAX; i++)
		fds[i] = client();
	fd = client();
	hear(fd, "{\"ok\":false,\"error\":\"too many clients\"}\n");
	hear_end(fd);
	for (unsigned i = 0; i < CTL_CLIENTS_MAX; i++) {
		say(fds[i], "{\"command\":\"a\"}\n");
		hear(fds[i], "{\"echo\":\"a\",\"ok\":true}\n");
		shutdown(fds[i], SHUT_WR);
		hear_end(fds[i]);
	}
	fd = client();
	say(fd, "{\"command\":\"a\"}\n");
	hear(fd, "{\"echo\":\"a\",\"ok\":true}\n");
	close(fd);
}

/* ---- no client can be taken ---- */

/* On the loop's thread; the test changes it there, too. */
static struct {
	int err;			/* what accept4() fails with; 0: it does not */
	unsigned fails;			/* so often, then as ever */
	unsigned calls;
} accepts;

static int fail_with;

int __real_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);

int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	accepts.calls++;
	if (!accepts.fails)
		return __real_accept4(fd, addr, len, flags);
	accepts.fails--;
	errno = accepts.err;
	return -1;
}

static void fail_always(void)
{
	accepts.err = fail_with;
	accepts.fails = UINT_MAX;
	accepts.calls = 0;
}

static void fail_once(void)
{
	fail_always();
	accepts.fails = 1;
}

static void fail_no_more(void)
{
	accepts.fails = 0;
}

/* The loop goes round @n times, and each time sees which descriptors are ready. */
static void go_round(unsigned n)
{
	while (n--)
		on_loop(nothing);
}

static void ask_and_hear(int fd)
{
	say(fd, "{\"command\":\"a\"}\n");
	hear(fd, "{\"echo\":\"a\",\"ok\":true}\n");
}

/* The program does not turn in a circle while the one that wants in waits: the socket rests, is
 * tried again when time has passed, and again, and those that are in are served meanwhile. */
Test(ctl, without_descriptors_the_socket_rests, .timeout = 60)
{
	static const int errors[] = { EMFILE, ENFILE, ENOMEM, ENOBUFS };

	for_each_case(err, errors) {
		int in = client(), fd;

		ask_and_hear(in);
		fail_with = *err;
		on_loop(fail_always);
		fd = client();
		say(fd, "{\"command\":\"a\"}\n");
		go_round(20);
		cr_assert_eq(accepts.calls, 1, "%s: %u calls", strerror(*err), accepts.calls);
		ask_and_hear(in);
		pass_time(CTL_IDLE_MS / 2);
		go_round(20);
		cr_assert_eq(accepts.calls, 2, "%s: %u calls", strerror(*err), accepts.calls);
		on_loop(fail_no_more);
		go_round(20);
		cr_assert_eq(accepts.calls, 2);
		pass_time(CTL_IDLE_MS / 2);
		hear(fd, "{\"echo\":\"a\",\"ok\":true}\n");
		close(fd);
		close(in);
		/* And no rest is left. */
		fd = client();
		ask_and_hear(fd);
		close(fd);
	}
}

/* One that has gone before it was taken costs the others nothing. */
Test(ctl, one_who_left_early_is_no_reason_to_rest, .timeout = 60)
{
	static const int errors[] = { ECONNABORTED, EINTR, EAGAIN };

	for_each_case(err, errors) {
		int fd;

		fail_with = *err;
		on_loop(fail_once);
		fd = client();
		ask_and_hear(fd);
		close(fd);
	}
}

/* It can be closed while it rests. */
Test(ctl, closed_while_it_rests, .timeout = 60)
{
	int fd;

	fail_with = EMFILE;
	on_loop(fail_always);
	fd = client();
	go_round(3);
	on_loop(close_ctl);
	sem_wait(&closed);
	pass_time(CTL_IDLE_MS);
	hear_end(fd);
	on_loop(fail_no_more);
	on_loop(open_ctl);			/* for end() */
	cr_assert_eq(open_rc, 0);
}

/* ---- the name ---- */

Test(ctl, nobody_else_may_connect)
{
	struct stat st;

	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode, S_IFSOCK | 0600);
}

Test(ctl, a_live_one_is_not_replaced)
{
	struct ctl *first = ctl;
	char want[128];

	on_loop(open_ctl);
	cr_assert_eq(open_rc, -EADDRINUSE);
	snprintf(want, sizeof(want), "%s: process %d listens there", path, getpid());
	cr_assert_str_eq(open_err, want);
	ctl = first;
}

/* Leave a socket whose process is dead at the path. */
static void leave_stale(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	cr_assert_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	cr_assert_eq(listen(fd, 1), 0);
	close(fd);
}

Test(ctl, what_is_no_socket_stays)
{
	on_loop(close_ctl);
	sem_wait(&closed);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	on_loop(open_ctl);
	cr_assert_eq(open_rc, -EEXIST);
	cr_assert_not_null(strstr(open_err, "is no socket"));
	cr_assert_eq(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/no/sock", dir);
	on_loop(open_ctl);
	cr_assert_eq(open_rc, -ENOENT);
	cr_assert_not_null(strstr(open_err, path));
	snprintf(path, sizeof(path), "%s/sock", dir);
	on_loop(open_ctl);
	cr_assert_eq(open_rc, 0);
}

Test(ctl, a_name_that_is_anothers_by_now_stays)
{
	struct stat st;

	cr_assert_eq(unlink(path), 0);
	leave_stale();
	on_loop(close_ctl);
	sem_wait(&closed);
	cr_assert_eq(stat(path, &st), 0);
	on_loop(open_ctl);
	cr_assert_eq(open_rc, 0);
}

Test(ctl_json, text_is_always_a_string)
{
	json_t *s = ctl_json_text("a\xffz\xc3\xa9");

	cr_assert_str_eq(json_string_value(s), "a?z\xc3\xa9");
	json_decref(s);
	s = ctl_json_text("\x01");			/* JSON can say it */
	cr_assert_str_eq(json_string_value(s), "\x01");
	json_decref(s);
}
