/* SPDX-License-Identifier: BSD-3-Clause */
/* What all looks need: findings, and how they are printed; files of /proc; tools. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answer.h"
#include "ctl-json.h"
#include "doctor.h"
#include "text.h"
#include "util.h"

static const char *const words[CHECK_LEVELS] = {
	[CHECK_OK] = "ok", [CHECK_WARNING] = "warn", [CHECK_CRITICAL] = "bad",
};

void doctor_note(struct doctor *doctor, enum check_level level, const char *what, const char *fmt,
		 ...)
{
	char text[1536], safe[1536];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_safe(text, safe, sizeof(safe));
	doctor->level = MAX(doctor->level, level);
	json_array_append_new(doctor->findings,
			      json_pack("{s:o,s:o,s:o,s:o}",
					"level", ctl_json_text(words[level]),
					"program", ctl_json_text(doctor->program ?
								 doctor->program : ""),
					"what", ctl_json_text(what),
					"text", ctl_json_text(safe)));
}

void doctor_note_print(const struct doctor *doctor, bool json)
{
	json_t *finding;
	size_t i;

	if (json) {
		text_json(json_pack("{s:b,s:o,s:O}", "ok", 1,
				    "level", ctl_json_text(check_words[doctor->level]),
				    "findings", doctor->findings));
		return;
	}
	json_array_foreach(doctor->findings, i, finding) {
		const char *program = json_string_value(json_object_get(finding, "program"));

		printf("%-4s %s%s%s: %s\n", answer_string(finding, "level"),
		       program ? program : "", program && *program ? ": " : "",
		       answer_string(finding, "what"), answer_string(finding, "text"));
	}
}

/* ---- files of /proc ---- */

FILE *doctor_proc(long pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%ld/%s", pid, name);
	return fopen(path, "re");
}

/* ---- children ---- */

__attribute__((noreturn))
static void exec_tool(const char *const argv[], int fd, int out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setenv("LC_ALL", "C", 1);
	for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) {
		if (null < 0 || dup2(i == fd ? out : null, i) < 0)
			_exit(DOCTOR_NOT_RUN);
	}
	execvp(argv[0], (char *const *)argv);
	_exit(DOCTOR_NOT_RUN);
}

FILE *doctor_tool_begin(const char *const argv[], int fd, pid_t *pid)
{
	int fds[2];
	FILE *f;

	*pid = -1;
	if (pipe2(fds, O_CLOEXEC))
		return NULL;
	*pid = fork();
	if (!*pid)
		exec_tool(argv, fd, fds[1]);
	close(fds[1]);
	f = fdopen(fds[0], "re");
	if (!f)
		close(fds[0]);
	return f;
}

int doctor_tool_end(FILE *f, pid_t pid)
{
	int status = 1;

	if (f)
		fclose(f);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}
