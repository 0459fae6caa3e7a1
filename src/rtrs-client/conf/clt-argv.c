/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of a front end that is a program: its options, and parameters as words.  Owns
 * nothing. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clt-argv.h"
#include "log.h"
#include "process.h"

const char *const clt_argv_of_server[] = {
	"listen", "allow", "read-only", "iops", "iops-read", "iops-write", "bps", "bps-read",
	"bps-write", "burst", "priority", "direct", "shared", "queue-depth", "max-io-size",
	"lock-timeout", "invalidate", "max-sessions", "max-paths", "max-connections", "max-memory",
	"state-dir", "strict", NULL
};

const char clt_argv_of_server_are[] =
	"an option of rtrs-server: expected it in the file of the server";

void clt_argv_verbose(const void *conf, void *program)
{
	log_set_level(((const struct clt_conf *)conf)->run.verbose ? LOG_LEVEL_DEBUG :
								     LOG_LEVEL_WARN);
}

void clt_argv_help(FILE *out)
{
	opt_help_rows(&clt_conf_options, out);
	fputc('\n', out);
}

/* Print @err, which is freed; NULL: there was no memory for the text. */
static void complain(const struct clt_conf *conf, char *err)
{
	fprintf(stderr, "%s: %s\n", conf->front->program, err ? err : "no memory");
	free(err);
}

int clt_argv_read(struct clt_conf *conf, int argc, char **argv, int *first)
{
	const char *program = conf->front->program;
	enum opt_result result;
	char err[512];

	result = opt_argv(conf->front->options, conf, argc, argv, first, &conf->own_words, err,
			  sizeof(err));
	conf->own_given = conf->own_words;
	if (result == OPT_EXIT)
		return std_out_end(program, EXIT_DONE);
	if (result == OPT_RUN)
		return -1;
	fprintf(stderr, "%s: %s\n", program, err);
	return EXIT_USAGE;
}

int clt_argv_set(struct clt_conf *conf, const char *key, const char *value)
{
	char *err = NULL;

	if (clt_conf_set(conf, key, value, &err) == 0)
		return -1;
	complain(conf, err);
	return EXIT_USAGE;
}

bool clt_argv_key_value(struct clt_conf *conf, char *word, int *status)
{
	char *value = strchr(word, '=');

	if (!value || strspn(word, "abcdefghijklmnopqrstuvwxyz-") != (size_t)(value - word))
		return false;
	*value = '\0';
	*status = clt_argv_set(conf, word, value + 1);
	/* The command line is what ps shows. */
	*value = '=';
	return true;
}

int clt_argv_complete(struct clt_conf *conf)
{
	char *err = NULL;
	int rc = clt_conf_complete(conf, &err);

	if (rc == 0)
		return -1;
	complain(conf, err);
	return exit_status_of(rc);
}

int clt_argv_checked(const struct clt_conf *conf)
{
	puts("the parameters, and the files of keys and certificates, are right");
	return std_out_end(conf->front->program, EXIT_DONE);
}
