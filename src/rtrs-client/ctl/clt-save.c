/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a save until its end, with the paths that the session had at its turn.  The worker reads the
 * files as the next start will, with all paths of the session in the place of the program's file:
 * so a path that the next start would refuse is never saved. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "clt-change.h"
#include "clt-conf.h"
#include "clt-reload.h"
#include "clt-sess.h"
#include "log.h"
#include "opt-file.h"
#include "process.h"

struct saving {
	struct changes_call call;
	struct clt_reload *of;
	clt_reload_done_fn *done;
	void *arg;
	struct worker_job job;
	/* Of the session; and whether a file of the administrator has the path, too. */
	struct clt_sess_addr paths[CLT_PATHS_MAX];
	bool given[CLT_PATHS_MAX];
	unsigned npaths;
	const struct fab_provider *transport;	/* of a path that leaves it open */
	/* the worker's */
	char *saved;			/* the name of the file */
	int rc;
	char *text;			/* of clt_reload_done_fn; NULL: no memory */
};

/* ---- worker: the text ---- */

/* Refuse @addr, which would come back as another path.  Returns -EINVAL. */
static int no_line(const struct clt_sess_addr *addr, FILE *report)
{
	char text[CLT_ADDR_TEXT_MAX + 1];

	fprintf(report, "path '%s' cannot be saved: its name has a byte that no line of a file can "
		"have, as a newline\n", clt_paths_url(addr, text));
	return -EINVAL;
}

/* Write the line of @addr.  0, or -EINVAL. */
static int put_path(const struct clt_sess_addr *addr, FILE *out, FILE *report)
{
	char text[CLT_ADDR_TEXT_MAX + 1];

	if (strpbrk(clt_paths_url(addr, text), "\n\r"))
		return no_line(addr, report);
	opt_line_put(out, "path", text);
	return 0;
}

/* The lines of the paths that are not given, for the caller to free; NULL, with the reason in
 * @report. */
static char *text_of(const struct saving *saving, size_t *len, FILE *report)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len);
	bool good = out;

	if (out)
		fprintf(out, "# Written by \"rtrsctl path save\", which replaces this file as a "
			"whole.\n");
	for (unsigned i = 0; good && i < saving->npaths; i++)
		good = saving->given[i] || !put_path(&saving->paths[i], out, report);
	if (!out || fclose(out)) {
		fprintf(report, "out of memory\n");
		good = false;
	}
	if (good)
		return text;
	free(text);
	return NULL;
}

/* ---- worker: paths ---- */

/* Is @addr one of the @n @paths? */
static bool is_among(const struct clt_sess_addr *paths, unsigned n,
		     const struct clt_sess_addr *addr)
{
	for (unsigned i = 0; i < n; i++) {
		if (clt_paths_same(&paths[i], addr))
			return true;
	}
	return false;
}

/* Refuse a path of the session that does not come back as it is: a control character of its name is
 * masked. */
static int check_texts(const struct saving *saving, const struct clt_conf *files, FILE *report)
{
	for (unsigned i = 0; i < saving->npaths; i++) {
		if (!is_among(files->paths, files->npaths, &saving->paths[i]))
			return no_line(&saving->paths[i], report);
	}
	return 0;
}

/* Is path @i of @files one of the administrator's? */
static bool is_of_admin(const struct saving *saving, const struct clt_conf *files, unsigned i)
{
	return !opt_dir_is_saved(saving->saved, files->path_wheres[i]);
}

/* Note which paths of the session the administrator's files have.  Returns the number of the
 * others. */
static unsigned note_given(struct saving *saving, const struct clt_conf *files)
{
	unsigned n = 0;

	for (unsigned i = 0; i < saving->npaths; i++) {
		for (unsigned k = 0; k < files->npaths && !saving->given[i]; k++)
			saving->given[i] = is_of_admin(saving, files, k) &&
				clt_paths_same(&files->paths[k], &saving->paths[i]);
		n += !saving->given[i];
	}
	return n;
}

/* Write a line for each path that was removed, and is in a file of the administrator.  Returns
 * their number. */
static unsigned report_gone(const struct saving *saving, const struct clt_conf *files,
			    const char *what, FILE *report)
{
	unsigned n = 0;

	for (unsigned i = 0; i < files->npaths; i++) {
		if (!is_of_admin(saving, files, i) ||
		    is_among(saving->paths, saving->npaths, &files->paths[i]))
			continue;
		fprintf(report, "path %s %s %s\n", files->path_texts[i], what,
			files->path_wheres[i]);
		n++;
	}
	return n;
}

/* Refuse to save more paths than a session may have: the next start would refuse them. */
static int check_number(const struct saving *saving, const struct clt_conf *files, FILE *report)
{
	_cleanup_free_ char *lines = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&lines, &len);
	unsigned n;

	if (!out)
		return -ENOMEM;
	n = saving->npaths + report_gone(saving, files, "was removed, and is still in", out);
	fclose(out);
	if (n <= CLT_PATHS_MAX)
		return 0;
	fprintf(report, "nothing is saved: the next start would find %u paths, and a session has "
		"at most %d: delete the removed paths from the files\n%s", n, CLT_PATHS_MAX, lines);
	return -EINVAL;
}

/* ---- worker: the file ---- */

/* Write the file.  @files: what the next start would read with all paths of the session. */
static int write_file(struct saving *saving, const struct clt_conf *files, FILE *report)
{
	unsigned n = note_given(saving, files);
	char path[CLT_ADDR_TEXT_MAX + 1], err[512];
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	int rc = check_texts(saving, files, report);

	if (!rc)
		rc = check_number(saving, files, report);
	if (rc)
		return rc;
	text = text_of(saving, &len, report);
	if (!text)
		return -ENOMEM;
	rc = opt_dir_save(saving->saved, n ? text : NULL, len, err, sizeof(err));
	if (rc) {
		fprintf(report, "%s\n", err);
		return rc;
	}
	for (unsigned i = 0; i < saving->npaths; i++) {
		if (!saving->given[i])
			fprintf(report, "saved path %s\n", clt_paths_url(&saving->paths[i], path));
	}
	report_gone(saving, files, "comes back: take it out, it is still in", report);
	return 0;
}

/* Write the file beside that of config=.  0, or -errno with the reasons in @report. */
static int save(struct saving *saving, FILE *report)
{
	_cleanup_free_ char *text = NULL, *err = NULL;
	struct clt_conf *files;
	size_t len = 0;
	int rc;

	saving->saved = opt_dir_saved(saving->of->conf->config);
	if (!saving->saved)
		return -ENOMEM;
	text = text_of(saving, &len, report);
	if (!text)
		return -EINVAL;
	rc = clt_conf_again(saving->of->conf, text, &files, &err);
	if (rc) {
		fprintf(report, "%s\n", err ? err : "out of memory");
		return rc;
	}
	clt_conf_choose(files, saving->transport);
	rc = write_file(saving, files, report);
	clt_conf_free(files);
	return rc;
}

static void save_work(struct worker_job *job)
{
	struct saving *saving = container_of(job, struct saving, job);
	size_t len = 0;
	FILE *report = open_memstream(&saving->text, &len);

	saving->rc = -ENOMEM;
	if (!report)
		return;
	saving->rc = save(saving, report);
	fclose(report);
}

/* ---- the turn ---- */

static void save_done(struct worker_job *job)
{
	struct saving *saving = container_of(job, struct saving, job);
	const char *text = saving->text ? saving->text : "";

	changes_end(&saving->call, saving->rc, saving->rc && !*text ? "out of memory" : text);
}

/* Why the paths of files do not count; NULL: they do. */
static const char *why_not(const struct clt_conf *conf)
{
	if (!conf->config)
		return "paths cannot be saved: the program was started without config=FILE";
	for (unsigned i = 0; i < conf->nwords; i++) {
		if (clt_conf_is_path(conf->words[i].row))
			return "paths cannot be saved: server= or path= stands on the command "
			       "line, and keeps the paths of all files out: put it into the file "
			       "of config=";
	}
	return NULL;
}

static void save_run(struct changes_call *call)
{
	struct saving *saving = container_of(call, struct saving, call);
	struct clt_sess *sess = saving->of->sess;
	const char *why = why_not(saving->of->conf);
	struct clt_path *path;
	int rc = why ? -ENOENT : 0;

	clt_sess_for_each(path, sess) {
		if (!path->removed)
			saving->paths[saving->npaths++] = path->conf.addr;
	}
	saving->transport = clt_change_transport(saving->of->conf, sess);
	saving->job = (struct worker_job){ .work = save_work, .done = save_done };
	if (!rc)
		rc = changes_work(&saving->of->changes, &saving->job);
	if (rc)
		changes_end(call, rc, why ? why : threads_strerror(rc));
}

static void saving_end(struct changes_call *call, int rc, const char *text)
{
	struct saving *saving = container_of(call, struct saving, call);
	struct clt_reload *r = saving->of;

	if (!rc)
		log_lines(LOG_LEVEL_INFO, "path save: ", text);
	saving->done(saving->arg, rc, text);
	free(saving->saved);
	free(saving->text);
	free(saving);
	clt_reload_ended(r);
}

static const struct changes_ops save_ops = { .run = save_run, .end = saving_end };

void clt_save_paths(struct clt_reload *r, clt_reload_done_fn *done, void *arg)
{
	struct saving *saving = calloc(1, sizeof(*saving));

	if (!saving) {
		done(arg, -ENOMEM, "out of memory");
		return;
	}
	saving->of = r;
	saving->done = done;
	saving->arg = arg;
	changes_add(&r->changes, &saving->call, &save_ops);
}
