/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: writes a line with a new key to standard output.  Owns nothing; wipes the line. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "opt-rows.h"
#include "process.h"
#include "psk.h"
#include "signals.h"
#include "util.h"

static const struct opt rows[] = {
	{ OPT_ROW_HELP }, { OPT_ROW_VERSION },
};

static const struct opt_table table = {
	.program = "rtrs-psk",
	.rows = rows,
	.n = ARRAY_SIZE(rows),
	.dashes = "--",
	.head = "Usage: rtrs-psk [OPTIONS] NAME\n"
		"Print a line NAME:KEY with a new key for TLS, for a file of tls-psk:\n"
		"\n"
		"    (umask 077; rtrs-psk alice >>keys.psk)\n"
		"\n",
	.column = 20,
};

/* Write without stdio, whose buffer would keep the key.  0 or -errno. */
static int write_line(const char *line)
{
	size_t len = strlen(line);

	while (len) {
		ssize_t n = write(STDOUT_FILENO, line, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		line += n;
		len -= (size_t)n;
	}
	return 0;
}

static int print_key(const char *name)
{
	uint8_t key[PSK_KEY_NEW];
	char line[PSK_LINE_MAX];
	const char *fault = secret_name_fault(name);
	int rc;

	if (fault) {
		fprintf(stderr, "rtrs-psk: NAME '%s': %s\n", name, fault);
		return EXIT_USAGE;
	}
	random_bytes(key, sizeof(key));
	psk_line(name, key, line);
	rc = write_line(line);
	explicit_bzero(key, sizeof(key));
	explicit_bzero(line, sizeof(line));
	if (rc)
		fprintf(stderr, "rtrs-psk: the key cannot be written: %s\n", strerror(-rc));
	return rc ? EXIT_FAILED : 0;
}

int main(int argc, char **argv)
{
	char err[512], nothing;
	int first = argc;

	/* ORDER: before anything else is opened. */
	if (std_fds_open() < 0)
		return EXIT_FAILED;
	signals_begin();
	switch (opt_argv(&table, &nothing, argc, argv, &first, NULL, err, sizeof(err))) {
	case OPT_RUN:
		break;
	case OPT_EXIT:
		return std_out_end("rtrs-psk", EXIT_DONE);
	default:
		fprintf(stderr, "rtrs-psk: %s\n", err);
		return EXIT_USAGE;
	}
	if (argc - first != 1) {
		fprintf(stderr, "rtrs-psk: expected one NAME, not %d arguments: see --help\n",
			argc - first);
		return EXIT_USAGE;
	}
	return print_key(argv[first]);
}
