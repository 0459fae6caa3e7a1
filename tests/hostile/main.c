/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs hostile cases against a server, each in a process of its own.  After each of them a
 * well-behaved client must be served, and the server must hold as many descriptors as before.
 *
 *	hostile --server=[TRANSPORT://]HOST:PORT [--pid=PID] [--log=FILE] [--timeout=SECONDS]
 *		[--slow] [--list] [--invalidate=MODE --held-fs=SOCKET --held-file=FILE]
 *		[GROUP[/CASE]]...
 *
 * Ends with 0 when every case went as its row says, 1 when one did not, 2 for wrong usage, 3 when
 * the server is gone. */
#include <dirent.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"

struct hrun hrun = { .timeout_ms = 10000 };

static const struct hgroup *const groups[] = {
	&conn_cases, &order_cases, &info_cases, &req_cases, &rnbd_cases, &dev_cases,
	&ext_cases, &tcp_cases, &vanish_cases, &comeback_cases, &meanwhile_cases, &attack_cases,
	&slow_cases,
};

static pid_t server_pid;
static unsigned baseline;		/* descriptors of the idle server */

static const void *row_of(const struct hgroup *g, size_t i)
{
	return (const char *)g->rows + i * g->size;
}

static const char *name_of(const struct hgroup *g, size_t i)
{
	return *(const char *const *)row_of(g, i);
}

static pid_t start(void (*run)(const void *), const void *arg)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		perror("fork");
		exit(2);
	}
	if (pid)
		return pid;
	/* beyond every time-out of the kit itself */
	alarm((unsigned)(10 * hrun.timeout_ms / 1000) + 60);
	run(arg);
	fflush(stdout);
	_exit(0);
}

enum result { OK, FAILED, SKIPPED };

static enum result result_of(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		continue;
	if (WIFSIGNALED(status))
		printf("    ended by signal %d\n", WTERMSIG(status));
	if (!WIFEXITED(status))
		return FAILED;
	if (WEXITSTATUS(status) == HSKIPPED)
		return SKIPPED;
	return WEXITSTATUS(status) ? FAILED : OK;
}

static bool ended_well(pid_t pid)
{
	return result_of(pid) == OK;
}

static void run_good(const void *unused)
{
	good_client();
}

/* ---- what the server holds ---- */

static unsigned server_fds(void)
{
	char path[64];
	unsigned n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)server_pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static bool server_alive(void)
{
	return !server_pid || server_fds();
}

/* Paths go after their clients: wait for it. */
static bool fds_back_to(unsigned n)
{
	uint64_t deadline = hdeadline();

	while (server_fds() > n) {
		if (hnow_ms() > deadline)
			return false;
		poll(NULL, 0, 2);
	}
	return true;
}

static void take_baseline(void)
{
	unsigned before = server_fds();

	if (!ended_well(start(run_good, NULL))) {
		printf("the well-behaved client is not served to begin with\n");
		exit(1);
	}
	if (!server_pid)
		return;
	/* what the first client made the server open for good counts as its own */
	baseline = fds_back_to(before) ? before : server_fds();
}

/* ---- cases ---- */

static bool aftermath(void)
{
	if (!server_alive()) {
		printf("    THE SERVER IS GONE\n");
		exit(3);
	}
	if (!ended_well(start(run_good, NULL))) {
		printf("    afterwards the well-behaved client was not served\n");
		return false;
	}
	if (server_pid && !fds_back_to(baseline)) {
		printf("    the server holds %u descriptors, %u before\n", server_fds(), baseline);
		baseline = server_fds();
		return false;
	}
	return true;
}

static void tell(enum result result, const struct hgroup *g, size_t i)
{
	static const char *const words[] = { "ok  ", "FAIL", "skip" };

	printf("%s %s/%s\n", words[result], g->name, name_of(g, i));
	fflush(stdout);
}

static bool chosen(const struct hgroup *g, size_t i, char **patterns)
{
	size_t len = strlen(g->name);

	if (!*patterns)
		return true;
	for (; *patterns; patterns++) {
		if (strncmp(*patterns, g->name, len))
			continue;
		if (!(*patterns)[len] ||
		    ((*patterns)[len] == '/' && !strcmp(*patterns + len + 1, name_of(g, i))))
			return true;
	}
	return false;
}

static unsigned run_group(const struct hgroup *g, char **patterns, unsigned *failed)
{
	unsigned n = 0;

	for (size_t i = 0; i < g->n; i++) {
		enum result result;

		if (!chosen(g, i, patterns))
			continue;
		result = result_of(start(g->run, row_of(g, i)));
		if (result != SKIPPED) {
			n++;
			if (!aftermath())
				result = FAILED;
		}
		*failed += result == FAILED;
		tell(result, g, i);
	}
	return n;
}

static unsigned run_slow_group(const struct hgroup *g, char **patterns, unsigned *failed)
{
	pid_t pids[64] = { 0 };
	unsigned n = 0;

	for (size_t i = 0; i < g->n && i < ARRAY_SIZE(pids); i++) {
		if (chosen(g, i, patterns))
			pids[i] = start(g->run, row_of(g, i));
	}
	for (size_t i = 0; i < g->n && i < ARRAY_SIZE(pids); i++) {
		enum result result;

		if (!pids[i])
			continue;
		result = result_of(pids[i]);
		n += result != SKIPPED;
		*failed += result == FAILED;
		tell(result, g, i);
	}
	if (!aftermath()) {
		printf("FAIL %s, all of it\n", g->name);
		++*failed;
	}
	return n;
}

static void list_cases(void)
{
	for (unsigned g = 0; g < ARRAY_SIZE(groups); g++) {
		for (size_t i = 0; i < groups[g]->n; i++)
			printf("%s/%s\n", groups[g]->name, name_of(groups[g], i));
	}
}

static const struct option options[] = {
	{ "server", required_argument, NULL, 's' }, { "pid", required_argument, NULL, 'p' },
	{ "log", required_argument, NULL, 'l' },    { "timeout", required_argument, NULL, 't' },
	{ "slow", no_argument, NULL, 'w' },	    { "list", no_argument, NULL, 'L' },
	{ "invalidate", required_argument, NULL, 'i' }, { "held-fs", required_argument, NULL, 'h' },
	{ "held-file", required_argument, NULL, 'f' },
	{ NULL, 0, NULL, 0 },
};

/* Returns false on wrong usage. */
static bool parse(int argc, char **argv, bool *slow)
{
	const struct fab_provider *tcp = fab_provider_find("tcp");
	char err[256] = "";
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			if (fab_addr_parse(optarg, tcp, RTRS_PORT, &hrun.server, err,
					   sizeof(err))) {
				fprintf(stderr, "%s\n", err);
				return false;
			}
			break;
		case 'p':
			server_pid = atoi(optarg);
			break;
		case 'l':
			hrun.log = optarg;
			break;
		case 't':
			hrun.timeout_ms = strtoull(optarg, NULL, 10) * 1000;
			break;
		case 'i':
			hrun.invalidate = optarg;
			break;
		case 'h':
			hrun.held_fs = optarg;
			break;
		case 'f':
			hrun.held_file = optarg;
			break;
		case 'w':
			*slow = true;
			break;
		case 'L':
			list_cases();
			exit(0);
		default:
			return false;
		}
	}
	return hrun.server.len != 0 && hrun.timeout_ms;
}

int main(int argc, char **argv)
{
	unsigned n = 0, failed = 0;
	bool slow = false;

	if (!parse(argc, argv, &slow)) {
		fprintf(stderr,
			"usage: %s --server=[TRANSPORT://]HOST:PORT [--pid=PID] [--log=FILE] "
			"[--timeout=SECONDS] [--slow] [--list] [--invalidate=MODE --held-fs=SOCKET "
			"--held-file=FILE] [GROUP[/CASE]]...\n", argv[0]);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	take_baseline();
	for (unsigned g = 0; g < ARRAY_SIZE(groups); g++) {
		if (groups[g]->slow != slow)
			continue;
		n += slow ? run_slow_group(groups[g], argv + optind, &failed) :
			    run_group(groups[g], argv + optind, &failed);
	}
	printf("%u cases, %u failed\n", n, failed);
	return failed || !n;
}
