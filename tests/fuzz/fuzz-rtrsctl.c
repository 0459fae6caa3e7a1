/* SPDX-License-Identifier: BSD-3-Clause */
/* rtrsctl, asking a program that answers anything.  Input: 16 bits n, then n bytes that are the
 * first answer, then the second one.  Whatever they are: they are told as JSON objects or refused,
 * and a terminal gets nothing but text. */
#include <config.h>

#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"
#include "find.h"
#include "fuzz.h"
#include "log.h"
#include "names.h"
#include "text.h"
#include "views.h"

static char dir[] = "/tmp/rtrs-fuzz-rtrsctl.XXXXXX";
static struct sockaddr_un addr = { .sun_family = AF_UNIX };
static int listener;
static const uint8_t *answer;		/* to whoever connects next */
static size_t answer_len;
static sem_t said;			/* the program has nothing more to say to the last one */

/* ---- the program ---- */

static void say(int fd, const uint8_t *p, size_t len)
{
	while (len) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

		if (n < 0)
			return;		/* it has heard the end of a line */
		p += n;
		len -= (size_t)n;
	}
}

static void *program(void *arg)
{
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		char c = 0;

		must(fd >= 0);
		while (c != '\n' && recv(fd, &c, 1, 0) == 1)
			;
		say(fd, answer, answer_len);
		close(fd);
		sem_post(&said);
	}
	return arg;
}

static void clean_up(void)
{
	unlink(addr.sun_path);
	rmdir(dir);
}

static void start(void)
{
	pthread_t thread;

	must(mkdtemp(dir));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", dir);
	atexit(clean_up);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(listener >= 0 && !bind(listener, (const struct sockaddr *)&addr, sizeof(addr)));
	sem_init(&said, 0, 0);
	must(!listen(listener, 1) && !pthread_create(&thread, NULL, program, NULL));
	pthread_detach(thread);
}

/* ---- rtrsctl ---- */

/* What the program says to "stats" in @len bytes at @p, or NULL. */
static json_t *ask(const uint8_t *p, size_t len)
{
	json_t *command = json_pack("{s:s}", "command", "stats"), *got;
	char err[1024] = "";

	answer = p;
	answer_len = len;
	got = call_ask(addr.sun_path, command, CALL_PATIENCE_S, err, sizeof(err));
	sem_wait(&said);
	json_decref(command);
	must(got ? json_is_object(got) : *err != '\0');
	return got;
}

/* Each line is one that mask_control() would leave as it is. */
static void check_text(char *text)
{
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		char *masked = strdup(line);

		must(masked);
		mask_control(masked);
		must(!strcmp(line, masked));
		free(masked);
	}
}

static void tell(const json_t *before, const json_t *after)
{
	struct check check = { 0 };
	FILE *terminal = stdout;
	char *text = NULL;
	size_t len = 0;

	stdout = open_memstream(&text, &len);
	must(stdout);
	text_object(before);
	status_print(before, after);
	clients_print(before, after, false);
	explain_print(before);
	check_add(&check, before);
	check_print(&check, false);
	must(!fclose(stdout));
	stdout = terminal;
	must(strlen(text) == len);
	check_text(text);
	free(text);
	check_fini(&check);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	size_t n = MIN((size_t)fuzz_take(&in, 2), in.left);
	json_t *before, *after;

	if (!addr.sun_path[0])
		start();
	before = ask(in.p, n);
	after = ask(in.p + n, in.left - n);
	if (before)
		tell(before, after ? after : before);
	json_decref(before);
	json_decref(after);
	return 0;
}
