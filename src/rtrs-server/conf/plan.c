/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares two configurations.  Owns the steps.  Any thread. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export-spec.h"
#include "number.h"
#include "plan.h"

static void plan_add_step(struct plan *plan, struct plan_step step)
{
	plan->steps[plan->n++] = step;
}

/* True if @conf has the export that @ex describes. */
static bool has_export(const struct srv_conf *conf, const struct conf_export *ex)
{
	const struct conf_export *same = conf ? conf_export_find(conf, ex->spec.name) : NULL;

	return same && export_spec_same(&same->spec, &ex->spec);
}

/* Add the step @what for each export of @of missing in @other. */
static void compare_exports(struct plan *plan, enum plan_what what, const struct srv_conf *of,
			    const struct srv_conf *other)
{
	for (unsigned i = 0; of && i < of->nexports; i++) {
		const struct conf_export *ex = of->exports[i];

		if (!has_export(other, ex))
			plan_add_step(plan, (struct plan_step){ .what = what,
								.name = ex->spec.name,
								.spec = &ex->spec });
	}
}

/* Add a step for each export of @wanted whose limits, rules or priority differ from those that the
 * export has after the steps before: an export that was added has none. */
static void compare_settings(struct plan *plan, const struct srv_conf *now,
			     const struct srv_conf *wanted)
{
	static const struct conf_export none;

	for (unsigned i = 0; i < wanted->nexports; i++) {
		const struct conf_export *ex = wanted->exports[i];
		const struct conf_export *was = has_export(now, ex) ?
			conf_export_find(now, ex->spec.name) : &none;

		if (!conf_export_same_settings(was, ex))
			plan_add_step(plan, (struct plan_step){ .what = PLAN_SET,
								.name = ex->spec.name,
								.was = was, .ex = ex });
	}
}

/* True if @conf listens at @addr, which is not missing. */
static bool has_listener(const struct srv_conf *conf, const struct fab_addr *addr)
{
	for (unsigned i = 0; i < conf->nlisteners; i++) {
		if (conf_same_listener(&conf->listeners[i].addr, addr))
			return !conf->listeners[i].missing;
	}
	return false;
}

/* Add the step @what for each listener of @of missing in @other. */
static void compare_listeners(struct plan *plan, enum plan_what what, const struct srv_conf *of,
			      const struct srv_conf *other)
{
	for (unsigned i = 0; i < of->nlisteners; i++) {
		if (!of->listeners[i].missing && !has_listener(other, &of->listeners[i].addr))
			plan_add_step(plan, (struct plan_step){ .what = what,
								.listener = &of->listeners[i] });
	}
}

static void compare_options(struct plan *plan, enum plan_what what, const struct srv_conf *now,
			    const struct srv_conf *wanted)
{
	for (unsigned i = 0; i < conf_options.n; i++) {
		const struct opt *row = &conf_options.rows[i];
		bool at_run_time = row->holds & OPT_AT_RUN_TIME;

		if (at_run_time != (what == PLAN_CHANGE))
			continue;
		if (!(row->holds & (OPT_IN_FILE | OPT_AT_RUN_TIME)))
			continue;
		if (!row->size && !row->same)	/* a list with steps of its own */
			continue;
		if (!opt_same(row, now, wanted))
			plan_add_step(plan, (struct plan_step){ .what = what, .option = row });
	}
}

int plan_make(struct plan *plan, const struct srv_conf *now, const struct srv_conf *wanted)
{
	unsigned most = 2 * wanted->nexports + wanted->nlisteners + conf_options.n +
			(now ? now->nexports + now->nlisteners : 0);

	plan->n = 0;
	plan->steps = calloc(most, sizeof(*plan->steps));
	if (!plan->steps)
		return -ENOMEM;
	compare_exports(plan, PLAN_REMOVE, now, wanted);
	if (now)
		compare_listeners(plan, PLAN_UNLISTEN, now, wanted);
	compare_exports(plan, PLAN_ADD, wanted, now);
	compare_settings(plan, now, wanted);
	if (now) {
		compare_listeners(plan, PLAN_LISTEN, wanted, now);
		compare_options(plan, PLAN_CHANGE, now, wanted);
		compare_options(plan, PLAN_RESTART, now, wanted);
	}
	return 0;
}

#define RULES_TEXT 400u			/* bytes: four of them leave room in PLAN_TEXT_MAX */

__attribute__((format(printf, 4, 5)))
static void append(char *buf, size_t len, const char *before, const char *fmt, ...)
{
	va_list ap;

	fmt_add(buf, len, "%s", before);
	va_start(ap, fmt);
	fmt_vadd(buf, len, fmt, ap);
	va_end(ap);
}

static const char *read_only_text(const struct allow_list *list, char *buf, size_t len)
{
	return list->n ? conf_allow_list_text(list, buf, len) : "none";
}

/* "disk0: iops 1000 -> 2000, allow all -> 192.0.2.0/24, priority none -> idle" */
static void settings_text(const struct plan_step *step, char *buf, size_t len)
{
	const struct conf_export *was = step->was, *ex = step->ex;
	char limits[256], a[RULES_TEXT], b[RULES_TEXT];
	const char *before = ": ";

	snprintf(buf, len, "%s", step->name);
	if (*conf_limits_change_text(&was->limits, &ex->limits, limits, sizeof(limits))) {
		append(buf, len, before, "%s", limits);
		before = ", ";
	}
	if (!conf_allow_list_same(&was->allow, &ex->allow)) {
		append(buf, len, before, "allow %s -> %s",
		       conf_allow_list_text(&was->allow, a, sizeof(a)),
		       conf_allow_list_text(&ex->allow, b, sizeof(b)));
		before = ", ";
	}
	if (!conf_allow_list_same(&was->read_only, &ex->read_only)) {
		append(buf, len, before, "read-only %s -> %s",
		       read_only_text(&was->read_only, a, sizeof(a)),
		       read_only_text(&ex->read_only, b, sizeof(b)));
		before = ", ";
	}
	if (was->priority != ex->priority)
		append(buf, len, before, "priority %s -> %s",
		       conf_limits_priority_text(was->priority, a),
		       conf_limits_priority_text(ex->priority, b));
}

static void added_text(const struct plan_step *step, char *buf, size_t len)
{
	char *line = export_line_text(step->spec);

	snprintf(buf, len, "+%s", line ? line : step->name);
	free(line);
}

const char *plan_step_text(const struct plan_step *step, char *buf, size_t len)
{
	char addr[FAB_ADDR_STRLEN];

	switch (step->what) {
	case PLAN_LISTEN:
	case PLAN_UNLISTEN:
		snprintf(buf, len, "%clisten %s", step->what == PLAN_LISTEN ? '+' : '-',
			 fab_addr_url(&step->listener->addr, addr, sizeof(addr)));
		break;
	case PLAN_REMOVE:
		snprintf(buf, len, "-%s", step->name);
		break;
	case PLAN_ADD:
		added_text(step, buf, len);
		break;
	case PLAN_SET:
		settings_text(step, buf, len);
		break;
	case PLAN_CHANGE:
		snprintf(buf, len, "--%s: changed", step->option->name);
		break;
	case PLAN_RESTART:
		snprintf(buf, len, "--%s changed: takes effect after a restart",
			 step->option->name);
		break;
	}
	return buf;
}

void plan_fini(struct plan *plan)
{
	free(plan->steps);
	plan->steps = NULL;
	plan->n = 0;
}
