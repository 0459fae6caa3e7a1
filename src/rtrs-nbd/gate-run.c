/* SPDX-License-Identifier: BSD-3-Clause */
/* The file with the process number, which is no other file by mistake, and the command of --run in
 * a shell. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"
#include "gate.h"
#include "number.h"
#include "process.h"

#define PIDFILE_ROOM 32u		/* for a number, a newline and a zero byte */

/* ---- the number of the process ---- */

/* Read the begin of the regular file @path, and a zero byte behind.  Returns the number of bytes,
 * 0: none, or no regular file. */
static size_t read_pidfile(const char *path, char text[PIDFILE_ROOM])
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	ssize_t n;

	*text = '\0';
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || !st.st_size)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	n = fd < 0 ? -1 : read(fd, text, PIDFILE_ROOM - 1);
	/* A file that cannot be read has no number. */
	if (n < 0) {
		*text = '?';
		n = 1;
	}
	text[n] = '\0';
	return (size_t)n;
}

/* The reason why @path, which may be a typo, is not to be written to; NULL: none. */
static const char *pidfile_fault(const char *path)
{
	char text[PIDFILE_ROOM];
	struct stat st;
	size_t n;

	if (stat(path, &st) == 0 && S_ISBLK(st.st_mode))
		return "is a block device: name a file";
	n = read_pidfile(path, text);
	if (strspn(text, "0123456789 \n") == n && n < PIDFILE_ROOM - 1)
		return NULL;
	return "exists and has no number of a process: name another file, or remove this one";
}

void gate_run_pidfile_remove(const char *path)
{
	char text[PIDFILE_ROOM], own[PIDFILE_ROOM];

	snprintf(own, sizeof(own), "%d\n", (int)getpid());
	if (read_pidfile(path, text) && !strcmp(text, own))
		unlink(path);
}

int gate_run_pidfile(const char *path, char *err, size_t len)
{
	const char *fault = pidfile_fault(path);
	struct stat st;
	FILE *f;
	int r;

	if (fault)
		return fmt_error(-EEXIST, err, len, "--pidfile '%s': %s", path, fault);
	f = fopen(path, "we");
	r = f ? 0 : -errno;
	if (f && (fprintf(f, "%d\n", (int)getpid()) < 0))
		r = -EIO;
	if (f && fclose(f) && r == 0)
		r = -errno;
	/* A device node, as /dev/full, is no file of this program. */
	if (f && r < 0 && !lstat(path, &st) && S_ISREG(st.st_mode))
		unlink(path);
	return r < 0 ? fmt_error(r, err, len, "--pidfile '%s': %s", path, fds_strerror(r)) : 0;
}

/* ---- a command ---- */

/* Print @text as a single word of a shell. */
static void print_quoted(FILE *f, const char *text)
{
	fputc('\'', f);
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", f);
		else
			fputc(*text, f);
	}
	fputc('\'', f);
}

/* Print @text as a part of a URI. */
static void print_escaped(FILE *f, const char *text, const char *safe)
{
	for (; *text; text++) {
		if (strchr(safe, *text) || strchr("-._~", *text) ||
		    (*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'z') ||
		    (*text >= 'A' && *text <= 'Z'))
			fputc(*text, f);
		else
			fprintf(f, "%%%02X", (unsigned char)*text);
	}
}

/* The first of the keys, if TLS is required: the command may read the file of keys. */
static void print_user(FILE *f, const struct gate_options *o)
{
	if (fab_tls_mode(o->tls) != FAB_TLS_REQUIRE || !*o->tls_user)
		return;
	print_escaped(f, o->tls_user, "");
	fputc('@', f);
}

/* Where the credentials are, if TLS is required, behind @mark. */
static void print_tls(FILE *f, const struct gate_options *o, char mark)
{
	const char *psk = o->tls_conf.psk;

	if (fab_tls_mode(o->tls) != FAB_TLS_REQUIRE)
		return;
	fprintf(f, psk ? "%ctls-psk-file=" : "%ctls-certificates=", mark);
	print_escaped(f, psk ? psk : o->tls_conf.certificates, "/");
}

static char *make_uri(const struct gate_options *o, const struct gate_listen *l)
{
	const char *name = o->uri_name ? o->uri_name : "", *host = o->address;
	char *uri = NULL;
	size_t size;
	FILE *f = open_memstream(&uri, &size);

	if (!f)
		return NULL;
	fputs(fab_tls_mode(o->tls) == FAB_TLS_REQUIRE ? "nbds" : "nbd", f);
	fputs(l->socket.path ? "+unix://" : "://", f);
	print_user(f, o);
	if (l->socket.path) {
		fputc('/', f);
		print_escaped(f, name, "/");
		fputs("?socket=", f);
		print_escaped(f, l->socket.path, "/");
	} else {
		if (!host)
			host = "localhost";
		fprintf(f, strchr(host, ':') ? "[%s]:%u/" : "%s:%u/", host, l->port);
		print_escaped(f, name, "/");
	}
	print_tls(f, o, l->socket.path ? '&' : '?');
	if (fclose(f)) {
		free(uri);
		return NULL;
	}
	return uri;
}

/* The command with its variables in front, those of nbdkit. */
static char *make_script(const struct gate_options *o, const struct gate_listen *l, const char *uri)
{
	char *script = NULL;
	size_t size;
	FILE *f = open_memstream(&script, &size);

	if (!f)
		return NULL;
	fputs("export uri=", f);
	print_quoted(f, uri);
	fputs(" nbd=", f);
	print_quoted(f, uri);
	fputs(" unixsocket=", f);
	print_quoted(f, l->socket.path ? l->socket.path : "");
	fputs(" exportname=", f);
	print_quoted(f, o->uri_name ? o->uri_name : "");
	fprintf(f, l->port ? " port=%u\n%s\n" : " port=%.0u\n%s\n", l->port, o->run);
	if (fclose(f)) {
		free(script);
		return NULL;
	}
	return script;
}

/* A shell without our mask of signals, and with those that we ignore. */
static int spawn_shell(char *script, pid_t *pid)
{
	char shell[] = "/bin/sh", dash_c[] = "-c";
	char *argv[] = { shell, dash_c, script, NULL };
	posix_spawnattr_t attr;
	sigset_t none, defaults;
	int r;

	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	sigaddset(&defaults, SIGXFSZ);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	r = posix_spawn(pid, shell, NULL, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	return -r;
}

int gate_run_command(const struct gate_options *o, const struct gate_listen *l, pid_t *pid,
		     char *err, size_t len)
{
	_cleanup_free_ char *uri = make_uri(o, l);
	_cleanup_free_ char *script = uri ? make_script(o, l, uri) : NULL;
	int r = script ? spawn_shell(script, pid) : -ENOMEM;

	return r < 0 ? fmt_error(r, err, len, "--run '%s': %s", o->run, threads_strerror(r)) :
		       0;
}
