/* SPDX-License-Identifier: BSD-3-Clause */
/* Metrics over HTTP and in a file: addresses, clients that say nothing or too much, the end.  The
 * loop runs on its thread, clients are plain sockets of the test, and time stands still unless the
 * test moves it. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"

#define CLIENTS (2 * METRIC_HTTP_CLIENTS)

static struct loop *loop;
static struct metrics *metrics;
static char dir[] = "/tmp/rtrs-metrics.XXXXXX", path[64], file[64];
static const char *wanted_file;
static _Atomic(uint64_t) now_ms = 1000;
static _Atomic(uint64_t) value = 7;
static atomic_int warnings;
static unsigned before;			/* open files */

uint64_t clock_now_ms(void)
{
	return now_ms;
}

uint64_t clock_now_ns(void)
{
	return now_ms * 1000000;
}

/* ---- the metrics ---- */

static void read_value(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, value);
}

/* As long as what sockets hold between two ends that do not read. */
static void read_much(struct metric_out *out, const void *program)
{
	for (unsigned i = 0; i < 200000; i++)
		metric_value(out, METRIC_LABELS({ "n", "a label that fills the sockets" }), i);
}

static char *read_status(const void *program)
{
	return strdup("{\"x\":7}");
}

static const struct metric rows[] = {
	{ .name = "x", .type = METRIC_GAUGE, .help = "X.", .read = read_value },
	{ .name = "y", .type = METRIC_GAUGE, .help = "Y.", .read = read_much },
};
static const struct metric_table small = { rows, 1 }, large = { rows, 2 };
static struct metric_source source = { .table = &small };

/* ---- on the loop's thread ---- */

static void run_open(struct loop_call *call)
{
	struct metric_sock sock;
	char err[256];

	cr_assert_eq(metric_sock_listen(&sock, path, err, sizeof(err)), 0, "%s", err);
	cr_assert_eq(metrics_open(loop, &sock, wanted_file, &source, &metrics), 0);
	loop_call_end(call);
}

static void run_close(struct loop_call *call)
{
	metrics_close(metrics, loop_call_end, call);
}

static void run_nothing(struct loop_call *call)
{
	loop_call_end(call);
}

static void on_loop(void (*fn)(struct loop_call *call))
{
	loop_call(loop, fn, NULL);
}

/* Time has passed, and the loop has seen that: it accepts, and libmicrohttpd 1.0 begins a
 * connection in its next run. */
static void pass_time(uint64_t ms)
{
	now_ms += ms;
	for (unsigned i = 0; i < 3; i++)
		on_loop(run_nothing);
}

static void count_warnings(enum log_level level, const char *line)
{
	warnings += level <= LOG_LEVEL_WARN;
}

static unsigned open_files(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 64; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "unix:%s/sock", dir);
	snprintf(file, sizeof(file), "%s/m.prom", dir);
	log_init(count_warnings, LOG_LEVEL_INFO);
	before = open_files();
	cr_assert_eq(loop_poll_create("metrics", &loop), 0);
}

/* The end of each test: not one of Criterion's, which takes no failure there. */
static void finish(void)
{
	on_loop(run_close);
	loop_poll_destroy(loop);
	cr_assert_eq(rmdir(dir), 0, "something is left in %s", dir);
}

TestSuite(metric_http, .init = setup);

/* ---- clients ---- */

static int client(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(addr.sun_path, path + 5);
	cr_assert_geq(fd, 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0, "%s",
		     strerror(errno));
	return fd;
}

static void say(int fd, const char *text)
{
	cr_assert_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Read to the end that the server makes.  Returns the length; @buf has the beginning. */
static size_t hear(int fd, char *buf, size_t len)
{
	static char more[4096];
	size_t all = 0;
	ssize_t n;

	memset(buf, 0, len);
	while ((n = recv(fd, more, sizeof(more), 0)) > 0) {
		for (ssize_t i = 0; i < n && all + (size_t)i < len - 1; i++)
			buf[all + (size_t)i] = more[i];
		all += (size_t)n;
	}
	close(fd);
	return all;
}

static void expect_answer(const char *request, const char *status, const char *body)
{
	static char buf[4096];
	int fd = client();

	say(fd, request);
	hear(fd, buf, sizeof(buf));
	cr_assert_eq(strncmp(buf, status, strlen(status)), 0, "%s", buf);
	cr_assert_not_null(strstr(buf, body), "%s", buf);
}

static bool is_cut(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte;

	return poll(&p, 1, 0) > 0 && recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) <= 0;
}

#define GET "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"

Test(metric_http, answers)
{
	on_loop(run_open);
	expect_answer(GET, "HTTP/1.1 200 ", "\r\n\r\n# HELP x X.\n# TYPE x gauge\nx 7\n");
	value = 8;
	expect_answer("GET /metrics HTTP/1.1\r\nHost: x\r\n"
		      "Accept: application/openmetrics-text; version=1.0.0\r\n\r\n",
		      "HTTP/1.1 200 ", "\nx 8\n# EOF\n");
	expect_answer("GET /metric HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 ", "/metrics");
	expect_answer("DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 405 ",
		      "Allow: GET, HEAD\r\n");
	expect_answer("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n",
		      "HTTP/1.1 405 ", "GET or HEAD");
	expect_answer("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n",
		      "HTTP/1.1 200 ", "Connection: close\r\n");
	finish();
}

/* The page runs its own script and style alone: their nonce is another one in each answer. */
Test(metric_http, page)
{
	static char first[1 << 16], second[1 << 16];
	char *policy, nonce[64], wanted[128];
	int fd;

	source.status = read_status;
	on_loop(run_open);
	fd = client();
	say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	hear(fd, first, sizeof(first));
	fd = client();
	say(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	hear(fd, second, sizeof(second));
	policy = strstr(first, "Content-Security-Policy: default-src 'none'; script-src 'nonce-");
	cr_assert_not_null(policy, "%.500s", first);
	cr_assert_eq(sscanf(strstr(policy, "script-src"), "script-src 'nonce-%32[0-9a-f]'",
			    nonce), 1);
	snprintf(wanted, sizeof(wanted), "<script nonce=\"%s\">", nonce);
	cr_assert_not_null(strstr(first, wanted));
	snprintf(wanted, sizeof(wanted), "<style nonce=\"%s\">", nonce);
	cr_assert_not_null(strstr(first, wanted));
	cr_assert_null(strstr(first, METRIC_PAGE_NONCE));
	cr_assert_not_null(strstr(first, "</html>\n"));
	cr_assert_null(strstr(second, nonce));
	expect_answer("GET /status.json HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 ",
		      "Content-Type: application/json\r\n");
	expect_answer("GET /status.json HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 ", "{\"x\":7}");
	finish();
}

/* Without it there is nothing but metrics. */
Test(metric_http, no_page)
{
	on_loop(run_open);
	expect_answer("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 ", "expected /metrics\n");
	expect_answer("GET /status.json HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 ",
		      "expected /metrics\n");
	finish();
}

/* A client has a time for all, whatever it sends meanwhile. */
Test(metric_http, deadline)
{
	int silent, slow;

	on_loop(run_open);
	silent = client();
	slow = client();
	say(slow, "GET /met");
	pass_time(0);
	pass_time(METRIC_HTTP_DEADLINE_MS - 1);
	say(slow, "ri");
	pass_time(0);
	cr_assert(!is_cut(silent) && !is_cut(slow));
	pass_time(1);
	pass_time(0);
	cr_assert(is_cut(silent) && is_cut(slow));
	close(silent);
	close(slow);
	expect_answer(GET, "HTTP/1.1 200 ", "\nx 7\n");
	finish();
}

/* The oldest connection makes room. */
Test(metric_http, too_many)
{
	int fds[CLIENTS];

	on_loop(run_open);
	for (unsigned i = 0; i < CLIENTS; i++) {
		fds[i] = client();
		say(fds[i], "G");
		pass_time(0);
	}
	pass_time(0);
	for (unsigned i = 0; i < CLIENTS; i++)
		cr_assert_eq(is_cut(fds[i]), i < CLIENTS - METRIC_HTTP_CLIENTS, "%u", i);
	expect_answer(GET, "HTTP/1.1 200 ", "\nx 7\n");
	for (unsigned i = 0; i < CLIENTS; i++)
		close(fds[i]);
	finish();
}

/* A client that does not read keeps no other client from an answer, and is cut off. */
Test(metric_http, reads_nothing)
{
	char buf[256];
	int fd;

	source.table = &large;
	on_loop(run_open);
	fd = client();
	say(fd, GET);
	pass_time(0);
	expect_answer(GET, "HTTP/1.1 200 ", "# TYPE x gauge\n");
	pass_time(METRIC_HTTP_DEADLINE_MS);
	pass_time(0);
	/* what the sockets held */
	cr_assert_lt(hear(fd, buf, sizeof(buf)), 5000000);
	cr_assert_eq(strncmp(buf, "HTTP/1.1 200 ", 13), 0);
	finish();
}

Test(metric_http, garbage)
{
	static const char *const bad[] = {
		"\r\n\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "{\"command\":\"list\"}\n",
		"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"\xff\xfe\x01\x02\r\n\r\n",
	};
	static char huge[65536];

	on_loop(run_open);
	for_each_case(text, bad) {
		int fd = client();

		say(fd, *text);
		shutdown(fd, SHUT_WR);
		/* Some may be the beginning of a request: until the deadline. */
		pass_time(0);
		pass_time(METRIC_HTTP_DEADLINE_MS);
		hear(fd, huge, sizeof(huge));
	}
	memset(huge, 'a', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	memcpy(huge, "GET /", 5);
	for (unsigned i = 0; i < 4; i++) {
		int fd = client();

		send(fd, huge, sizeof(huge) - 1, MSG_NOSIGNAL);
		hear(fd, huge + 5, 100);
		memset(huge + 5, 'a', 100);
	}
	expect_answer(GET, "HTTP/1.1 200 ", "\nx 7\n");
	finish();
}

static void run_unlink(struct loop_call *call)
{
	metrics_unlink(metrics);
	loop_call_end(call);
}

/* The end cuts clients off: finish() finds neither a socket nor a file. */
Test(metric_http, end_with_clients)
{
	on_loop(run_open);
	for (unsigned i = 0; i < 5; i++)
		say(client(), "GET /metr");
	pass_time(0);
	on_loop(run_unlink);
	cr_assert(access(path + 5, F_OK), "the name goes first");
	finish();
}

/* ---- the file ---- */

static bool file_has(const char *text)
{
	char buf[256] = "";
	FILE *f = fopen(file, "r");
	size_t n = f ? fread(buf, 1, sizeof(buf) - 1, f) : 0;

	if (f)
		fclose(f);
	return n && strstr(buf, text);
}

static void wait_for_file(const char *text)
{
	while (!file_has(text))
		on_loop(run_nothing);
}

Test(metric_http, file)
{
	wanted_file = file;
	on_loop(run_open);
	wait_for_file("\nx{process=\"m\"} 7\n");
	/* The worker's answer has come. */
	value = 8;
	while (!file_has("\nx{process=\"m\"} 8\n"))
		pass_time(METRIC_FILE_INTERVAL_MS);
	cr_assert_eq(warnings, 0);
	finish();
	cr_assert_eq(open_files(), before, "one is left open");
}

Test(metric_http, file_that_cannot_be_written)
{
	wanted_file = file;
	cr_assert_eq(mkdir(file, 0700), 0);
	on_loop(run_open);
	while (!warnings)
		on_loop(run_nothing);
	for (unsigned i = 0; i < 10; i++)
		pass_time(METRIC_FILE_INTERVAL_MS);
	cr_assert_eq(rmdir(file), 0);
	while (!file_has("\nx{process=\"m\"} 7\n"))
		pass_time(METRIC_FILE_INTERVAL_MS);
	cr_assert_eq(warnings, 1, "a failure is told %d times", warnings);
	finish();
}

/* ---- addresses ---- */

Test(metric_sock, addresses)
{
	static const struct {
		const char *text;
		bool good;
	} cases[] = {
		{ "0", true }, { "65535", true }, { "127.0.0.1:9091", true },
		{ "[::1]:9091", true },
		{ "0.0.0.0:1", true }, { "[::]:1", true }, { "unix:/run/m", true },
		{ "", false }, { ":", false }, { ":1", false }, { "65536", false }, { "1a", false },
		{ "-1", false }, { " 1", false }, { "+1", false }, { "127.0.0.1", false },
		{ "127.0.0.1:", false }, { "127.0.0.1:http", false }, { "::1:9091", false },
		{ "[::1]", false }, { "[]:1", false }, { "[::1:1", false },
		{ "localhost:1", false },
		{ "unix:", false }, { "unix:m", false }, { "000001", false },
		{ "[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]:1", false },
	};

	for_each_case(c, cases) {
		char why[128] = "";
		int r = metric_sock_check(NULL, c->text, why, sizeof(why));

		cr_assert_eq(r, c->good ? 0 : -EINVAL, "'%s': %d", c->text, r);
		cr_assert(c->good || !strncmp(why, "expected ", 9), "'%s': %s", c->text, why);
	}
}

Test(metric_sock, tells_where_it_listens)
{
	struct metric_sock a, b;
	char err[256], port[32];

	cr_assert_eq(metric_sock_listen(&a, "0", err, sizeof(err)), 0, "%s", err);
	cr_assert_eq(strncmp(a.url, "http://127.0.0.1:", 17), 0, "%s", a.url);
	snprintf(port, sizeof(port), "127.0.0.1:%ld", strtol(a.url + 17, NULL, 10));
	cr_assert_eq(metric_sock_listen(&b, port, err, sizeof(err)), -EADDRINUSE);
	cr_assert_not_null(strstr(err, port), "%s", err);
	cr_assert_eq(metric_sock_listen(&b, "1:2:3", err, sizeof(err)), -EINVAL);
	cr_assert(strstr(err, "'1:2:3': expected "), "%s", err);
	close(0);
	cr_assert_eq(metric_sock_listen(&b, "0", err, sizeof(err)), 0, "%s", err);
	cr_assert_eq(b.fd, 0);
	metric_sock_close(&b);
	metric_sock_close(&a);
	metric_sock_close(&a);
}
