/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: paths are the session's, configurations the caller's. */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "clock.h"
#include "clt-change.h"
#include "clt-sess.h"
#include "log.h"

#define LOOK_MS 20u			/* between two looks at paths that are to come up */

/* ---- options ---- */

/* Call @fn for each row whose values in @now and @wanted differ, but for paths. */
static void for_each_change(const struct clt_conf *now, const struct clt_conf *wanted,
			    void (*fn)(const struct opt *row, void *arg), void *arg)
{
	const struct opt_table *own = now->front->options, *part;

	for (unsigned p = 0; (part = opt_part(own ? own : &clt_conf_options, p)); p++) {
		for (unsigned i = 0; i < part->n; i++) {
			const struct opt *row = &part->rows[i];

			if (row->holds & OPT_IN_FILE && !clt_conf_is_path(row) &&
			    !clt_conf_same(now, wanted, row))
				fn(row, arg);
		}
	}
}

/* The value of @row in @conf, for people. */
static const char *value_text(const struct clt_conf *conf, const struct opt *row,
			      char buf[OPT_TEXT_MAX])
{
	const char *text = row->size ? opt_text(row, conf, buf) :
				       conf->values[row - clt_conf_options.rows];

	return text ? text : "the default";
}

struct row_check {
	const struct clt_conf *now, *wanted;
	FILE *errors;
	int rc;
};

static void check_row(const struct opt *row, void *arg)
{
	struct row_check *check = arg;
	char buf[2][OPT_TEXT_MAX];

	if (row->holds & OPT_AT_RUN_TIME)
		return;
	fprintf(check->errors, "%s: %s -> %s: restart %s for this, or take the change back\n",
		opt_name(row, OPT_IN_FILE), value_text(check->now, row, buf[0]),
		value_text(check->wanted, row, buf[1]), check->now->front->name);
	check->rc = -EINVAL;
}

int clt_change_check(const struct clt_conf *now, const struct clt_conf *wanted, FILE *errors)
{
	struct row_check check = { .now = now, .wanted = wanted, .errors = errors };

	for_each_change(now, wanted, check_row, &check);
	return check.rc;
}

struct carry {
	struct clt_change *change;
	FILE *report;
};

static void carry_row(const struct opt *row, void *arg)
{
	struct carry *carry = arg;
	struct clt_change *c = carry->change;
	char buf[2][OPT_TEXT_MAX];

	fprintf(carry->report, "%s: %s -> %s\n", opt_name(row, OPT_IN_FILE),
		value_text(c->now, row, buf[0]), value_text(c->wanted, row, buf[1]));
	memcpy((char *)c->now + row->offset, (const char *)c->wanted + row->offset, row->size);
	row->carry_out(c->now, c->sess);
}

/* ---- paths ---- */

static bool is_wanted(const struct clt_change *c, const struct clt_path *path)
{
	for (unsigned i = 0; i < c->wanted->npaths; i++) {
		if (clt_paths_same(&c->wanted->paths[i], &path->conf.addr))
			return true;
	}
	return false;
}

const struct fab_provider *clt_change_transport(const struct clt_conf *now,
						const struct clt_sess *sess)
{
	const struct fab_provider *chosen = clt_conf_chosen(now);

	return chosen ? chosen : sess->paths[0]->conf.addr.dst.provider;
}

/* Take the paths out again that were added. */
static void take_back(struct clt_change *c)
{
	while (c->nadded)
		clt_paths_remove(c->sess, c->added[--c->nadded]);
}

/* Why no other path can be added. */
static const char *cannot_add(int r)
{
	if (r == -EAGAIN)
		return "a path that was removed has not ended yet: try again";
	return r == -ENOSPC ? "a session has at most 16 paths, including those being removed" :
			      strerror(-r);
}

static int add_paths(struct clt_change *c, char *why, size_t len)
{
	for (unsigned i = 0; i < c->wanted->npaths; i++) {
		const struct clt_sess_addr *addr = &c->wanted->paths[i];
		struct clt_path *path;
		int r;

		if (clt_paths_find(c->sess, addr))
			continue;
		r = clt_paths_add(c->sess, addr, &path);
		if (r < 0) {
			snprintf(why, len, "path=%s: %s", c->wanted->path_texts[i], cannot_add(r));
			return r;
		}
		c->added[c->nadded++] = path;
		clt_path_start(path);
	}
	return 0;
}

/* Whether paths may leave: none of them is up, or one that stays is. */
static bool may_leave(const struct clt_change *c)
{
	bool stays_up = false, leaves_up = false;
	struct clt_path *path;

	clt_sess_for_each(path, c->sess) {
		if (path->removed || !clt_attempt_is_up(&path->att))
			continue;
		if (is_wanted(c, path))
			stays_up = true;
		else
			leaves_up = true;
	}
	return stays_up || !leaves_up;
}

static void look(struct clt_change *c)
{
	uint64_t now = clock_now_ms();
	char why[512];

	if (may_leave(c)) {
		c->done(c, 0, "");
		return;
	}
	if (now < c->until_ms) {
		loop_timer_set(c->sess->loop, &c->timer, now + LOOK_MS);
		return;
	}
	snprintf(why, sizeof(why), "none of the remaining paths is up after %u s, so no path is "
		 "removed: %s%s%s", CLT_CHANGE_WAIT_MS / 1000,
		 c->nadded ? clt_path_name(c->added[0]) : "look at them with rtrsctl show",
		 c->nadded ? ": " : "", c->nadded ? c->added[0]->cause.told : "");
	take_back(c);
	c->done(c, -ETIMEDOUT, why);
}

static void look_again(struct loop_timer *timer)
{
	look(container_of(timer, struct clt_change, timer));
}

static void report_added(const struct clt_change *c, FILE *report)
{
	for (unsigned i = 0; i < c->nadded; i++) {
		log_warn(c->added[i]->name, "added by a reload");
		fprintf(report, "+path %s\n", clt_path_name(c->added[i]));
	}
}

static void remove_paths(const struct clt_change *c, FILE *report)
{
	struct clt_path *path;

	clt_sess_for_each(path, c->sess) {
		if (path->removed || is_wanted(c, path) || clt_paths_remove(c->sess, path))
			continue;
		log_warn(path->name, "removed by a reload");
		fprintf(report, "-path %s\n", clt_path_name(path));
	}
}

/* ---- the whole ---- */

void clt_change_begin(struct clt_change *c, struct clt_sess *sess, struct clt_conf *now,
		      struct clt_conf *wanted,
		      void (*done)(struct clt_change *change, int rc, const char *why))
{
	char why[512];
	int r;

	*c = (struct clt_change){ .sess = sess, .now = now, .wanted = wanted, .done = done,
				  .until_ms = clock_now_ms() + CLT_CHANGE_WAIT_MS };
	loop_timer_init(&c->timer, look_again);
	if (atomic_load(&sess->io.state) >= CLT_SESS_CLOSING) {
		done(c, -ECANCELED, "the session ends");
		return;
	}
	clt_conf_choose(wanted, clt_change_transport(now, sess));
	r = add_paths(c, why, sizeof(why));
	if (r == 0) {
		look(c);
		return;
	}
	take_back(c);
	done(c, r, why);
}

void clt_change_stop(struct clt_change *c)
{
	loop_timer_cancel(&c->timer);
	c->done(c, -ECANCELED, "the program ends");
}

void clt_change_finish(struct clt_change *c, FILE *report)
{
	struct carry carry = { .change = c, .report = report };

	report_added(c, report);
	remove_paths(c, report);
	for_each_change(c->now, c->wanted, carry_row, &carry);
}
