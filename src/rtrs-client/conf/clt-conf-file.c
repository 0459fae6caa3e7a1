/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the scratch configuration that the lines of the files are checked with: a struct of the
 * front end, which begins with ours. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clt-conf.h"
#include "opt-file.h"

struct reading {
	struct clt_conf *scratch;
	struct clt_conf *conf;
	bool has_paths;			/* before the files */
	struct opt_section section;
	char *saved;			/* the program's file, whose text is conf->saved; NULL: it
					 * is read, too */
};

static void *begin(void *arg, const char *where, const char *title, char *why, size_t len)
{
	struct reading *r = arg;

	return r->scratch;
}

/* True if the command line has @row, one of clt_conf_options. */
static bool is_word(const struct clt_conf *conf, const struct opt *row)
{
	for (unsigned i = 0; i < conf->nwords; i++) {
		if (conf->words[i].row == row)
			return true;
	}
	return false;
}

/* True if the command line has @row, which is not a path; or note that a file has it. */
static bool is_given(struct clt_conf *conf, const struct opt *row, const char *value)
{
	const struct opt_table *table = &clt_conf_options;
	bool given;

	if (row >= table->rows && row < table->rows + table->n) {
		given = is_word(conf, row);
		if (!given)
			conf->values[row - table->rows] = value;
		return given;
	}
	given = conf->own_words >> (row - conf->front->options->rows) & 1;
	conf->own_given |= UINT64_C(1) << (row - conf->front->options->rows);
	return given;
}

/* The value was right for r->scratch, and so is right here. */
static void took(void *arg, const char *where, const struct opt *row, const char *value)
{
	struct reading *r = arg;
	struct clt_conf *conf = r->conf;
	unsigned npaths = conf->npaths;
	char why[256];

	if (clt_conf_is_path(row) ? r->has_paths : is_given(conf, row, value))
		return;
	opt_read(row, conf, value, why, sizeof(why));
	if (!strcmp(row->name, "transport"))
		conf->transport_where = opt_texts_keep(&conf->texts, where);
	if (conf->npaths > npaths)
		conf->path_wheres[npaths] = opt_texts_keep(&conf->texts, where);
}

static int read_one(void *arg, const char *path, FILE *errors)
{
	struct reading *r = arg;

	if (r->saved && !strcmp(path, r->saved))
		return 0;
	return opt_file_read(path, &r->section, 1, r, &r->conf->texts, errors);
}

/* Read conf->saved in the place of the program's file. */
static int read_saved(struct reading *r, FILE *errors)
{
	_cleanup_free_ char *text = strdup(r->conf->saved);

	if (text)
		return opt_file_parse(r->saved, text, strlen(text), &r->section, 1, r,
				      &r->conf->texts, errors);
	fprintf(errors, "no memory\n");
	return -ENOMEM;
}

/* Returns as opt_file_read() does. */
static int read_files(struct clt_conf *conf, FILE *errors)
{
	const struct clt_front *front = conf->front;
	struct reading r = {
		.conf = conf, .has_paths = conf->npaths > 0,
		.section = { .table = front->options ? front->options : &clt_conf_options,
			     .others = front->others, .others_are = front->others_are,
			     .meant = clt_conf_meant,
			     .begin = begin, .took = took },
	};
	int rc = -ENOMEM;

	r.scratch = calloc(1, clt_conf_size(front));
	r.saved = conf->saved ? opt_dir_saved(conf->config) : NULL;
	if (r.scratch && !conf->saved == !r.saved) {
		clt_conf_init(r.scratch, front);
		rc = opt_dir_read(conf->config, read_one, &r, errors);
		if (!rc && r.saved)
			rc = read_saved(&r, errors);
	} else {
		fprintf(errors, "no memory\n");
	}
	free(r.saved);
	free(r.scratch);
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
	rc = read_files(conf, errors);
	fclose(errors);
	if (rc) {
		(*err)[len - 1] = '\0';	/* the end of the last line */
		return rc;
	}
	free(*err);
	*err = NULL;
	return 0;
}
