/* SPDX-License-Identifier: BSD-3-Clause */
/* A control socket (src/common/ctl): lines, JSON, commands.  Input: a script of what clients write
 * and what happens meanwhile, one byte of action, one byte of client, then its arguments:
 *
 *	0	8 bits n, then n bytes as they are
 *	1	8 bits: a whole line, one of lines[]
 *	2	8 bits n: n + 1 times 256 blanks, which make a line too long
 *	3	a pass of the program's loop
 *	4	8 bits n: take up to n times 1 KiB of what was answered
 *	5	nothing more is said
 *	6	close
 *	7	the oldest command that waits is answered
 *	8	8 bits n: n * 256 ms pass
 *	9	the program ends
 *
 * A client connects with its first action.  Whatever it says: each line has one answer, a line of
 * JSON with "ok" that is true where the command is one of the program's, in order, or the
 * connection ends; nothing is left at the end. */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl-client.h"
#include "ctl.h"
#include "fuzz.h"
#include "loop-impl.h"

#define NCLIENTS (CTL_CLIENTS_MAX + 2)
#define SENT_MAX (64u << 10)		/* of one client */
#define BIG (256u << 10)		/* more than a socket takes at once */
#define NWAITING (NCLIENTS)

static const char *const lines[] = {
	"{\"command\":\"echo\",\"text\":\"a\"}\n",
	"{\"command\":\"late\"}\n",
	"{\"command\":\"big\"}\n",
	"{\"command\":\"may\",\"text\":\"a\"}\n",
	"{\"command\":\"may\"}\n",
	"{\"command\":\"echo\"}\n",
	"{\"command\":\"late\",\"text\":\"a\"}\n",
	"{\"command\":\"may\",\"text\":1}\n",
	"{\"command\":\"\xc3\xa9\\u0001\"}\n",
	"{\"command\":[1,{\"a\":null}]}\n",
	"{}\n",
	"[]\n",
	"\n",
	"{\"a\":1,\"a\":2}\n",
};

/* ---- time, and a loop whose passes are the script's ---- */

static uint64_t now_ms = 1000;

uint64_t clock_now_ms(void)
{
	return now_ms;
}

static struct {
	struct loop loop;
	struct list watches, closed;
	struct loop_watch *in_ready;
} fl;

int loop_watch(struct loop *loop, struct loop_watch *w)
{
	must(loop == &fl.loop && !w->loop);
	w->loop = loop;
	w->more = false;
	list_init(&w->link);
	list_add_tail(&fl.watches, &w->link);
	return 0;
}

void loop_watch_events(struct loop_watch *w, short events)
{
	w->events = events;
}

void loop_unwatch(struct loop_watch *w)
{
	if (!w->loop)
		return;
	w->loop = NULL;
	list_del(&w->link);
	if (fl.in_ready == w)
		fl.in_ready = NULL;
	list_add_tail(&fl.closed, &w->link);
}

static void run_watches(void)
{
	struct list now, *l;

	list_init(&now);
	list_splice_tail(&now, &fl.watches);
	while ((l = list_pop(&now))) {
		struct loop_watch *w = list_entry(l, struct loop_watch, link);
		struct pollfd p = { .fd = w->fd, .events = w->events };
		bool more;

		list_add_tail(&fl.watches, &w->link);
		if (poll(&p, 1, 0) <= 0 && !w->more)
			continue;
		fl.in_ready = w;
		more = w->ready(w);
		if (fl.in_ready)
			w->more = more;
	}
	fl.in_ready = NULL;
}

static void pass(void)
{
	struct list *l;

	loop_enter(&fl.loop);
	run_watches();
	loop_run_timers(&fl.loop, now_ms);
	loop_run_tasks(&fl.loop);
	while ((l = list_pop(&fl.closed))) {
		struct loop_watch *w = list_entry(l, struct loop_watch, link);

		w->closed(w);
	}
	loop_leave();
}

/* ---- the program ---- */

static struct ctl_client *waiting[NWAITING];	/* for an answer, oldest first */
static unsigned nwaiting;

static void do_echo(struct ctl_client *client, const char *value, void *arg)
{
	ctl_answer(client, json_pack("{s:s}", "echo", value ? value : ""));
}

static void do_late(struct ctl_client *client, const char *value, void *arg)
{
	must(nwaiting < NWAITING && !value);
	waiting[nwaiting++] = client;
}

static void do_big(struct ctl_client *client, const char *value, void *arg)
{
	char *text = malloc(BIG + 1);

	must(text);
	memset(text, 'x', BIG);
	text[BIG] = '\0';
	ctl_answer(client, json_pack("{s:s}", "text", text));
	free(text);
}

static const struct ctl_call calls[] = {
	{ .name = "echo", .fn = do_echo, .member = "text", .needed = true },
	{ .name = "may", .fn = do_echo, .member = "text" },
	{ .name = "late", .fn = do_late },
	{ .name = "big", .fn = do_big },
};

static void serve(struct ctl_client *client, const json_t *command, void *arg)
{
	must(json_is_object(command));
	ctl_call(client, command, "fuzz", calls, ARRAY_SIZE(calls), arg);
}

static void answer_oldest(void)
{
	if (!nwaiting)
		return;
	ctl_call_done(waiting[0]);
	memmove(waiting, waiting + 1, --nwaiting * sizeof(waiting[0]));
}

/* ---- clients ---- */

struct client {
	int fd;				/* -1: not connected */
	bool ended;			/* it has seen the end */
	bool lossy;			/* not all of its lines need have been answered */
	char *sent, *got;
	size_t nsent, ngot, room;
};

static struct client clients[NCLIENTS];
static struct ctl *ctl;			/* NULL: closing */
static bool ctl_gone;
static char dir[] = "/tmp/rtrs-fuzz-ctl.XXXXXX";
static struct sockaddr_un addr = { .sun_family = AF_UNIX };

static void client_connect(struct client *c)
{
	if (c->fd >= 0 || c->ended || !ctl)
		return;
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	must(c->fd >= 0);
	if (connect(c->fd, (const struct sockaddr *)&addr, sizeof(addr))) {
		must(errno == EAGAIN);	/* so many wait */
		close(c->fd);
		c->fd = -1;
	}
}

static void client_say(struct client *c, const void *text, size_t len)
{
	ssize_t n;

	if (c->fd < 0 || c->nsent + len > SENT_MAX)
		return;
	if (!c->sent) {
		c->sent = malloc(SENT_MAX);
		must(c->sent);
	}
	n = send(c->fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	must(n >= 0 || errno == EAGAIN || errno == EPIPE || errno == ECONNRESET);
	if (n > 0) {
		memcpy(c->sent + c->nsent, text, (size_t)n);
		c->nsent += (size_t)n;
	}
}

/* Up to @max bytes.  True: there may be more. */
static bool client_hear(struct client *c, size_t max)
{
	ssize_t n;

	if (c->fd < 0 || c->ended || !max)
		return false;
	if (c->ngot + max > c->room) {
		c->room = 2 * (c->ngot + max);
		c->got = realloc(c->got, c->room);
		must(c->got);
	}
	n = recv(c->fd, c->got + c->ngot, max, MSG_DONTWAIT);
	if (n > 0)
		c->ngot += (size_t)n;
	else if (!n || errno != EAGAIN)
		c->ended = true;
	return n > 0;
}

static void client_close(struct client *c)
{
	if (c->fd < 0)
		return;
	close(c->fd);
	c->fd = -1;
	c->ended = c->lossy = true;
}

/* ---- what is to come out ---- */

/* Is @command one of calls[], with what it takes and nothing else? */
static bool is_good(const json_t *command)
{
	const char *name = json_string_value(json_object_get(command, "command"));
	const json_t *text = json_object_get(command, "text");
	size_t nmembers = json_object_size(command);

	if (!name)
		return false;
	if (!strcmp(name, "late") || !strcmp(name, "big"))
		return nmembers == 1;
	if (text ? !json_is_string(text) || nmembers != 2 : nmembers != 1)
		return false;
	return !strcmp(name, "may") || (!strcmp(name, "echo") && text);
}

/* Not parsed: that takes far longer than all the rest. */
static void check_big(const char *line, size_t len, const json_t *command)
{
	static const char head[] = "{\"text\":\"x", tail[] = "x\",\"ok\":true}";

	must(is_good(command) && len == BIG + strlen("{\"text\":\"\",\"ok\":true}"));
	must(!memcmp(line, head, strlen(head)));
	must(!memcmp(line + len - strlen(tail), tail, strlen(tail)));
}

static void check_small(const char *line, size_t len, const json_t *command)
{
	const char *text = json_string_value(json_object_get(command, "text"));
	json_t *answer = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	const json_t *ok = json_object_get(answer, "ok"), *echo = json_object_get(answer, "echo");

	must(json_is_object(answer) && json_is_boolean(ok));
	must(json_is_true(ok) == is_good(command));
	must(json_is_true(ok) || json_is_string(json_object_get(answer, "error")));
	if (echo)
		must(!strcmp(json_string_value(echo), text ? text : ""));
	json_decref(answer);
}

/* The length of the line at @p, with its end; 0: it is not complete; more than CTL_LINE_MAX: too
 * long, or it begins like no command. */
static size_t line_len(const char *p, size_t left)
{
	const char *end = memchr(p, '\n', MIN(left, (size_t)CTL_LINE_MAX));

	if (end)
		return (size_t)(end - p) + 1;
	return left >= CTL_LINE_MAX || (left && !memchr(" \t\r{", *p, 4)) ? CTL_LINE_MAX + 1 : 0;
}

static const char too_many[] = "{\"ok\":false,\"error\":\"too many clients\"}\n";

/* Each answer belongs to its line; the last is that to a line that ends the connection, or to the
 * last one. */
static void client_check(const struct client *c)
{
	const char *in = c->sent, *out = c->got, *end;
	size_t left = c->nsent, nout = c->ngot, len;
	bool last = false;

	if (nout == sizeof(too_many) - 1 && !memcmp(out, too_many, nout))
		return;
	while (nout && (end = memchr(out, '\n', nout))) {
		size_t outlen = (size_t)(end - out);
		json_t *command = NULL;

		must(!last && left);
		len = line_len(in, left);
		must(len);
		if (len <= CTL_LINE_MAX)
			command = json_loadb(in, len - 1, JSON_REJECT_DUPLICATES, NULL);
		last = !json_is_object(command);
		(outlen < BIG ? check_small : check_big)(out, outlen, command);
		json_decref(command);
		if (!last) {
			in += len;
			left -= len;
		}
		nout -= outlen + 1;
		out = end + 1;
	}
	if (!c->lossy)
		must(!nout && (last || !left || !line_len(in, left)));
}

/* ---- a run ---- */

static void ctl_is_gone(void *arg)
{
	ctl_gone = true;
}

static void end_ctl(void)
{
	if (!ctl)
		return;
	loop_enter(&fl.loop);
	ctl_close(ctl, ctl_is_gone, NULL);
	loop_leave();
	ctl = NULL;
}

static void all_lossy(void)
{
	for (unsigned i = 0; i < NCLIENTS; i++)
		clients[i].lossy = true;
}

static void clean_up(void)
{
	rmdir(dir);
}

static void start(void)
{
	char err[256];

	if (!addr.sun_path[0]) {
		must(mkdtemp(dir));
		atexit(clean_up);
		snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", dir);
		must(!loop_init(&fl.loop));
		list_init(&fl.watches);
		list_init(&fl.closed);
	}
	ctl_gone = false;
	for (unsigned i = 0; i < NCLIENTS; i++)
		clients[i] = (struct client){ .fd = -1 };
	must(!ctl_open(&fl.loop, addr.sun_path, serve, NULL, &ctl, err, sizeof(err)));
}

static bool all_ended(void)
{
	for (unsigned i = 0; i < NCLIENTS; i++) {
		if (clients[i].fd >= 0 && !clients[i].ended)
			return false;
	}
	return true;
}

/* Whoever still listens hears all that it asked for, and the end. */
static void finish(void)
{
	/* Those that the program has not accepted yet. */
	if (!ctl)
		all_lossy();
	for (unsigned i = 0; i < NCLIENTS; i++) {
		if (clients[i].fd >= 0)
			shutdown(clients[i].fd, SHUT_WR);
	}
	for (unsigned n = 0; !all_ended(); n++) {
		must(n < 100000);
		pass();
		answer_oldest();
		for (unsigned i = 0; i < NCLIENTS; i++) {
			while (client_hear(&clients[i], BIG))
				;
		}
	}
	end_ctl();
	for (unsigned n = 0; !ctl_gone; n++) {
		must(n < 1000);
		answer_oldest();
		pass();
	}
	must(!nwaiting && list_empty(&fl.watches) && list_empty(&fl.closed));
	must(list_empty(&fl.loop.tasks) && list_empty(&fl.loop.timers));
	must(access(addr.sun_path, F_OK) < 0);
}

static void say_bytes(struct client *c, struct fuzz_in *in)
{
	size_t n = MIN((size_t)fuzz_take(in, 1), in->left);

	client_say(c, in->p, n);
	in->p += n;
	in->left -= n;
}

static void say_line(struct client *c, const char *line)
{
	client_say(c, line, strlen(line));
}

static void say_blanks(struct client *c, unsigned n)
{
	char blanks[256];

	memset(blanks, ' ', sizeof(blanks));
	for (unsigned i = 0; i <= n; i++)
		client_say(c, blanks, sizeof(blanks));
}

/* Who says nothing for so long is cut off. */
static void time_passes(unsigned n)
{
	now_ms += 256ull * n;
	all_lossy();
}

static void act(unsigned action, struct client *c, struct fuzz_in *in)
{
	switch (action) {
	case 0:
		say_bytes(c, in);
		break;
	case 1:
		say_line(c, lines[fuzz_take(in, 1) % ARRAY_SIZE(lines)]);
		break;
	case 2:
		say_blanks(c, (unsigned)fuzz_take(in, 1));
		break;
	case 3:
		pass();
		break;
	case 4:
		client_hear(c, 1024 * (size_t)fuzz_take(in, 1));
		break;
	case 5:
		shutdown(c->fd, SHUT_WR);
		break;
	case 6:
		client_close(c);
		break;
	case 7:
		answer_oldest();
		break;
	case 8:
		time_passes((unsigned)fuzz_take(in, 1));
		break;
	default:
		end_ctl();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };

	start();
	while (in.left) {
		unsigned action = (unsigned)fuzz_take(&in, 1) % 10;
		struct client *c = &clients[fuzz_take(&in, 1) % NCLIENTS];

		client_connect(c);
		act(action, c, &in);
	}
	finish();
	for (unsigned i = 0; i < NCLIENTS; i++) {
		client_check(&clients[i]);
		client_close(&clients[i]);
		free(clients[i].sent);
		free(clients[i].got);
	}
	return 0;
}
