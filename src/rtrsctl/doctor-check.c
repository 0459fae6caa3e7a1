/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a child, rtrs-server, for the time of its look at a configuration: the tables of options are
 * the server's. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"
#include "doctor-subject.h"
#include "exit-status.h"

struct server_check {
	char program[PATH_MAX];
	const char *config;
};

__attribute__((noreturn))
static void exec_check(const struct server_check *check, int out)
{
	char *argv[] = { (char *)check->program, (char *)"--check", (char *)"--config",
			 (char *)check->config, NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
	    dup2(out, STDERR_FILENO) >= 0)
		execv(argv[0], argv);
	_exit(127);
}

/* Copy to @text the first line of @fd with an error, or else the first one with a warning. */
static enum check_level read_worst(int fd, char *text, size_t len)
{
	enum check_level level = CHECK_OK;
	_cleanup_free_ char *line = NULL;
	FILE *f = fdopen(fd, "re");
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0) {
		const char *error = strstr(line, "error: "), *warning = strstr(line, "warning: ");
		const char *said = error ? error + strlen("error: ") :
				   warning ? warning + strlen("warning: ") : NULL;

		line[strcspn(line, "\n")] = '\0';
		if (!said || level == CHECK_CRITICAL || (warning && level == CHECK_WARNING))
			continue;
		level = error ? CHECK_CRITICAL : CHECK_WARNING;
		snprintf(text, len, "%s", said);
	}
	if (f)
		fclose(f);
	else
		close(fd);
	return level;
}

static enum check_level look_at_config(const void *arg, char *text, size_t len)
{
	const struct server_check *check = arg;
	int fds[2], status = 0;
	enum check_level level;
	pid_t pid;

	snprintf(text, len, "could not be run");
	if (pipe2(fds, O_CLOEXEC))
		return CHECK_WARNING;
	pid = fork();
	if (!pid)
		exec_check(check, fds[1]);
	close(fds[1]);
	level = read_worst(fds[0], text, len);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) == 127)
		return CHECK_WARNING;
	if (level == CHECK_OK)
		snprintf(text, len, "%s", WEXITSTATUS(status) ?
			 "refused" : "right");
	return WEXITSTATUS(status) == EXIT_DONE ? level : CHECK_CRITICAL;
}

/* The server of the package of this program is beside it.  False: it is not installed. */
static bool find_server(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *slash;

	if (n < 0)
		return false;
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (!slash || slash + sizeof("/rtrs-server") > path + PATH_MAX)
		return false;
	strcpy(slash, "/rtrs-server");
	return !access(path, X_OK);
}

void doctor_subject_check(struct doctor *doctor, const struct doctor_subject *s)
{
	static struct server_check check;	/* large for a stack */
	enum check_level level = CHECK_WARNING;
	char text[1024];

	check.config = s->config;
	if (!s->config || s->kind != SUBJECT_SERVER || !find_server(check.program))
		return;
	if (!doctor_look_as(&s->user, look_at_config, &check, &level, text, sizeof(text)))
		level = CHECK_WARNING;
	doctor_note(doctor, level, "configuration", "%s (rtrs-server --check --config=%s)", text,
		    s->config);
}
