/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the scratch configuration that the lines of the file are checked with. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clt-conf-file.h"

struct reading {
	struct clt_conf scratch;
	struct clt_conf *conf;
	bool has_paths;			/* before the file */
};

static void *begin(void *arg, const char *where, const char *title, char *why, size_t len)
{
	struct reading *r = arg;

	return &r->scratch;
}

static bool is_path(const struct opt *row)
{
	return !strcmp(row->name, "server") || !strcmp(row->name, "path");
}

/* The value was right for r->scratch, and so is right here. */
static void took(void *arg, const struct opt *row, const char *value)
{
	struct reading *r = arg;
	bool set = is_path(row) ? r->has_paths :
		   r->conf->given[row - clt_conf_options.rows] != NULL;
	char why[256];

	if (!set)
		opt_read(row, r->conf, value, why, sizeof(why));
}

static const struct opt_section section = {
	.table = &clt_conf_options, .begin = begin, .took = took,
};

/* Returns as opt_file_read() does. */
static int read_file(struct clt_conf *conf, FILE *errors)
{
	struct reading *r = calloc(1, sizeof(*r));
	int rc;

	if (!r) {
		fprintf(errors, "no memory\n");
		return -ENOMEM;
	}
	r->conf = conf;
	r->has_paths = conf->npaths > 0;
	clt_conf_init(&r->scratch, conf->front);
	rc = opt_file_read(conf->config, &section, 1, r, &conf->texts, errors);
	free(r);
	return rc;
}

int clt_conf_file_read(struct clt_conf *conf, char **err)
{
	size_t len = 0;
	FILE *errors = open_memstream(err, &len);
	int rc;

	if (!errors) {
		*err = NULL;
		return -ENOMEM;
	}
	rc = read_file(conf, errors);
	fclose(errors);
	if (rc) {
		(*err)[len - 1] = '\0';	/* the end of the last line */
		return rc;
	}
	free(*err);
	*err = NULL;
	return 0;
}
