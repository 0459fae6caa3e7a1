/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  A degraded program does not hide that another program is silent, and a silent
 * program does not hide a loss: WARNING < UNKNOWN < CRITICAL. */
#include <config.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "check.h"
#include "ctl-json.h"
#include "secrets.h"
#include "state.h"
#include "text.h"
#include "util.h"

#define PROBLEMS_TOLD 4u

const char *const check_words[CHECK_LEVELS] = { "OK", "WARNING", "CRITICAL", "UNKNOWN" };

static void check_worsen(struct check *check, enum check_level level)
{
	static const unsigned rank[CHECK_LEVELS] = {
		[CHECK_OK] = 0, [CHECK_WARNING] = 1, [CHECK_UNKNOWN] = 2, [CHECK_CRITICAL] = 3,
	};

	if (rank[level] > rank[check->level])
		check->level = level;
}

/* Note a problem of @level.  Bytes of a peer or a file are made safe first, by text_safe().  The
 * text has no '|', behind which a monitoring system reads numbers. */
__attribute__((format(printf, 3, 4)))
static void check_note(struct check *check, enum check_level level, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	check_worsen(check, level);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *c = text; (c = strchr(c, '|')); )
		*c = '?';
	if (!check->problems)
		check->problems = json_array();
	json_array_append_new(check->problems, ctl_json_text(text));
}

/* Write to @buf the first lost path of @sess, ", without PATH (CAUSE)", or without a path that
 * works ": CAUSE", as far as this end knows.  "": no path is lost. */
static void put_lost_path(const json_t *sess, bool works, char *buf, size_t len)
{
	json_t *path;
	size_t i;

	*buf = '\0';
	json_array_foreach(json_object_get(sess, "paths"), i, path) {
		char name[256], cause[256];
		bool known;

		if (!state_is_path(path) || state_path_works(path))
			continue;
		text_safe(answer_string(path, "name"), name, sizeof(name));
		text_safe(answer_string(path, "cause"), cause, sizeof(cause));
		known = *cause && strcmp(cause, "-");
		if (works)
			snprintf(buf, len, ", without %s%s%s%s", name, known ? " (" : "",
				 known ? cause : "", known ? ")" : "");
		else if (known)
			snprintf(buf, len, ": %s", cause);
		return;
	}
}

enum check_level check_level_of(enum health health)
{
	static const enum check_level levels[] = {
		[HEALTH_UP] = CHECK_OK, [HEALTH_DEGRADED] = CHECK_WARNING,
		[HEALTH_DOWN] = CHECK_CRITICAL,
	};

	return levels[health];
}

static void check_session(struct check *check, const char *program, const json_t *names,
			  const json_t *sess)
{
	struct state_paths paths = state_paths(sess);
	char cell[TEXT_CELL], name[128], lost[600] = "", why[STATE_WHY];
	enum health health = state_of_session(sess, cell);

	check->sessions++;
	check->paths += paths.all;
	check->paths_up += paths.up;
	if (health == HEALTH_UP)
		return;
	if (paths.up < paths.all)
		put_lost_path(sess, paths.up, lost, sizeof(lost));
	state_name(names, sess, answer_string(sess, "name"), name, sizeof(name));
	check_note(check, check_level_of(health), "%s: %s %s%s%s", program, name, cell,
		   state_meaning(sess, cell, why), lost);
}

/* Both ends of @sess may have TLS, and a path of it has none: an end does not yet, or somebody
 * between has taken TLS away. */
static void check_clear(struct check *check, const char *program, const json_t *names,
			const json_t *sess)
{
	json_t *path;
	size_t i;

	json_array_foreach(json_object_get(sess, "paths"), i, path) {
		char name[256];

		if (!state_is_path(path) || !state_path_works(path) ||
		    strcmp(answer_string(path, "cipher"), "-") ||
		    !strcmp(answer_string(path, "transport"), "rdma"))
			continue;
		state_name(names, sess, answer_string(path, "name"), name, sizeof(name));
		check_note(check, CHECK_WARNING, "%s: %s is in clear (tls=on)", program, name);
		return;
	}
}

/* The lists of an export that @sess has open would not let @sess open the export so now: the lists
 * were changed, and the session was not (rtrsctl export kick). */
static void check_allowed(struct check *check, const char *program, const json_t *names,
			  const json_t *sess)
{
	char name[128], export[128];
	json_t *dev;
	size_t i;

	state_name(names, sess, answer_string(sess, "name"), name, sizeof(name));
	json_array_foreach(json_object_get(sess, "devices"), i, dev) {
		if (state_dev_allowed(dev))
			continue;
		text_safe(answer_string(dev, "export"), export, sizeof(export));
		check_note(check, CHECK_WARNING, "%s: %s has %s open, which its rules no longer "
			   "allow", program, name, export);
	}
}

/* A request of @sess that is older than those of all exports. */
static void check_requests(struct check *check, const char *program, const json_t *answer,
			   uint64_t exports_ns, const json_t *names, const json_t *sess)
{
	char name[128], cell[TEXT_CELL], why[STATE_WHY];
	enum health health = state_of_requests(answer, exports_ns, sess, cell, why);

	state_name(names, sess, answer_string(sess, "name"), name, sizeof(name));
	if (health != HEALTH_UP)
		check_note(check, check_level_of(health), "%s: %s %s", program, name, why);
}

static void check_export(struct check *check, const char *program, const json_t *answer,
			 const json_t *ex)
{
	char name[128], cell[TEXT_CELL], why[STATE_WHY];
	enum health health = state_of_export(answer, ex, cell, why);

	text_safe(answer_string(ex, "name"), name, sizeof(name));
	if (health != HEALTH_UP)
		check_note(check, check_level_of(health), "%s: %s %s", program, name, why);
	if (answer_number(ex, "writers") > 1)
		check_note(check, CHECK_WARNING, "%s: %s has two writers (mode=migration)", program,
			   name);
}

/* A path that is lost again and again may be up at the moment. */
static void check_flaps(struct check *check, const char *program, const json_t *names,
			const json_t *answer)
{
	json_t *flap;
	size_t i;

	json_array_foreach(json_object_get(answer, "flaps"), i, flap) {
		char name[256], why[STATE_WHY];

		state_of_flap(names, flap, name, sizeof(name), why);
		check_note(check, CHECK_WARNING, "%s: %s %s", program, name, why);
	}
}

/* A request or an answer has changed on its way, and a digest has caught it.  A fault like that
 * comes seldom, and stays. */
static void check_digests(struct check *check, const char *program, const json_t *answer)
{
	uint64_t n = answer_number(answer, "digest_errors"),
		ns = answer_number(answer, "digest_error_ns");
	char last[32];

	if (!n || ns >= (uint64_t)CHECK_DIGEST_S * 1000000000)
		return;
	check_note(check, CHECK_WARNING, "%s: %llu digest%s wrong, the last %s ago: memory, a "
		   "network card or a switch changes data (the log names the path)", program,
		   (unsigned long long)n, n == 1 ? " was" : "s were",
		   state_duration(ns, last, sizeof(last)));
}

void check_add(struct check *check, const json_t *answer)
{
	bool tls_on = !strcmp(answer_string(answer, "tls"), "on");
	uint64_t exports_ns = state_oldest_of_exports(answer);
	json_t *names = state_index_names(answer), *ex, *sess;
	char program[128];
	size_t i;

	text_program(answer, program, sizeof(program));
	check->programs++;
	json_array_foreach(json_object_get(answer, "exports"), i, ex) {
		check_export(check, program, answer, ex);
	}
	json_array_foreach(json_object_get(answer, "sessions"), i, sess) {
		if (!state_is_user(sess))
			continue;
		check_session(check, program, names, sess);
		check_requests(check, program, answer, exports_ns, names, sess);
		check_allowed(check, program, names, sess);
		if (tls_on)
			check_clear(check, program, names, sess);
	}
	check_flaps(check, program, names, answer);
	check_digests(check, program, answer);
	json_decref(names);
}

void check_add_silent(struct check *check, const char *why)
{
	char text[512];

	check->programs++;
	check_note(check, CHECK_UNKNOWN, "%s", text_safe(why, text, sizeof(text)));
}

void check_fini(struct check *check)
{
	json_decref(check->problems);
}

/* ---- the line ---- */

static void print_json(const struct check *check)
{
	text_json(json_pack("{s:b,s:o,s:i,s:i,s:i,s:i,s:o}", "ok", 1,
			    "level", ctl_json_text(check_words[check->level]),
			    "programs", (int)check->programs,
			    "sessions", (int)check->sessions, "paths", (int)check->paths,
			    "paths_up", (int)check->paths_up, "problems",
			    check->problems ? json_incref(check->problems) : json_array()));
}

static void print_problems(const struct check *check)
{
	size_t n = json_array_size(check->problems);

	for (size_t i = 0; i < n && i < PROBLEMS_TOLD; i++)
		printf("%s%s", i ? "; " : ": ",
		       json_string_value(json_array_get(check->problems, i)));
	if (n > PROBLEMS_TOLD)
		printf("; and %zu more", n - PROBLEMS_TOLD);
}

void check_print(const struct check *check, bool json)
{
	if (json) {
		print_json(check);
		return;
	}
	printf("RTRS %s - %u session%s, %u of %u path%s up", check_words[check->level],
	       check->sessions, check->sessions == 1 ? "" : "s", check->paths_up, check->paths,
	       check->paths == 1 ? "" : "s");
	print_problems(check);
	printf(" | sessions=%u paths=%u paths_up=%u\n", check->sessions, check->paths,
	       check->paths_up);
}

/* ---- keys and certificates ---- */

#define DAY_S 86400

/* The program that is checked. */
struct secrets_of {
	char program[128];
	uid_t user;
};

static void check_file(struct check *check, const struct secrets_of *of, const char *file,
		       const char *option)
{
	struct secrets_keys_seen seen;
	char why[256], name[512];
	int rc;

	if (!file)
		return;
	rc = secrets_look_keys(file, of->user, &seen, why, sizeof(why));
	if (rc && !(rc == -EACCES && access(file, R_OK)))
		check_note(check, CHECK_WARNING, "%s: %s=%s: %s", of->program, option,
			   text_safe(file, name, sizeof(name)), why);
}

/* A certificate for later was put in place too early, or the clock of a machine is wrong. */
static void check_begin(struct check *check, const struct secrets_of *of, const json_t *secrets,
			const char *option)
{
	const json_t *begin = json_object_get(secrets, "tls_certificates_begin");
	time_t at = (time_t)answer_number(begin, "time");
	char file[64], date[16];

	if (!begin || at <= time(NULL))
		return;
	text_safe(answer_string(begin, "file"), file, sizeof(file));
	text_date(at, date, sizeof(date));
	check_note(check, CHECK_CRITICAL, "%s: %s: %s is not valid before %s, peers that verify it "
		   "refuse new connections", of->program, option, file, date);
}

/* Connections that are there go on behind the end of a certificate; a path that is lost does not
 * come back. */
static void check_certificates(struct check *check, const struct secrets_of *of,
			       const json_t *secrets, const char *option)
{
	const json_t *end = json_object_get(secrets, "tls_certificates_end");
	time_t at = (time_t)answer_number(end, "time"), now = time(NULL);
	char file[64], date[16];

	check_begin(check, of, secrets, option);
	if (!end || at > now + (time_t)CHECK_CERTS_DAYS * DAY_S)
		return;
	text_safe(answer_string(end, "file"), file, sizeof(file));
	text_date(at, date, sizeof(date));
	if (at > now)
		check_note(check, CHECK_WARNING, "%s: %s: %s ends on %s", of->program, option, file,
			   date);
	else
		check_note(check, CHECK_CRITICAL, "%s: %s: %s has ended on %s, peers that verify "
			   "it refuse new connections", of->program, option, file, date);
}

void check_keys(struct check *check, const json_t *answer, uid_t user)
{
	struct secrets_of of = { .user = user };

	text_program(answer, of.program, sizeof(of.program));
	for (unsigned i = 0; i < ANSWER_SECRETS; i++) {
		const struct answer_secret *secret = &answer_secrets[i];

		if (secret->certificates)
			check_certificates(check, &of, answer_secret_object(answer, secret),
					   secret->option);
		else
			check_file(check, &of, answer_secret_path(answer, secret), secret->option);
	}
}
