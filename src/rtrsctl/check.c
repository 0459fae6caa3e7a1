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

/* An answer that is checked. */
struct checked {
	struct check *check;
	const json_t *answer, *names;	/* names: state_index_names() */
	char program[128];		/* "": its name is not known */
	uint64_t exports_ns;		/* state_oldest_of_exports() */
	uid_t user;			/* of the program, for its secrets */
};

/* Note a problem of @level, with the name of the program in front.  Bytes of a peer or a file are
 * made safe first, by text_safe().  The text has no '|', behind which a monitoring system reads
 * numbers. */
__attribute__((format(printf, 3, 4)))
static void note(const struct checked *of, enum check_level level, const char *fmt, ...)
{
	struct check *check = of->check;
	char text[1024];
	va_list ap;
	int n;

	check_worsen(check, level);
	n = snprintf(text, sizeof(text), "%s%s", of->program, *of->program ? ": " : "");
	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
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

static void check_session(const struct checked *of, const json_t *sess)
{
	struct state_paths paths = state_paths(sess);
	char cell[TEXT_CELL], name[128], lost[600] = "", why[STATE_WHY];
	enum health health = state_of_session(sess, cell);

	of->check->sessions++;
	of->check->paths += paths.all;
	of->check->paths_up += paths.up;
	if (health == HEALTH_UP)
		return;
	if (paths.up < paths.all)
		put_lost_path(sess, paths.up, lost, sizeof(lost));
	state_name(of->names, sess, answer_string(sess, "name"), name, sizeof(name));
	note(of, check_level_of(health), "%s %s%s%s", name, cell, state_meaning(sess, cell, why),
	     lost);
}

/* Both ends of @sess may have TLS, and a path of it has none: an end does not yet, or somebody
 * between has taken TLS away. */
static void check_clear(const struct checked *of, const json_t *sess)
{
	json_t *path;
	size_t i;

	json_array_foreach(json_object_get(sess, "paths"), i, path) {
		char name[256];

		if (!state_is_path(path) || !state_path_works(path) ||
		    strcmp(answer_string(path, "cipher"), "-") ||
		    !strcmp(answer_string(path, "transport"), "rdma"))
			continue;
		state_name(of->names, sess, answer_string(path, "name"), name, sizeof(name));
		note(of, CHECK_WARNING, "%s is in clear (tls=on)", name);
		return;
	}
}

/* The lists of an export that @sess has open would not let @sess open the export so now: the lists
 * were changed, and the session was not (rtrsctl export kick). */
static void check_allowed(const struct checked *of, const json_t *sess)
{
	char name[128], export[128];
	json_t *dev;
	size_t i;

	state_name(of->names, sess, answer_string(sess, "name"), name, sizeof(name));
	json_array_foreach(json_object_get(sess, "devices"), i, dev) {
		if (state_dev_allowed(dev))
			continue;
		text_safe(answer_string(dev, "export"), export, sizeof(export));
		note(of, CHECK_WARNING, "%s has %s open, which its rules no longer allow", name,
		     export);
	}
}

/* A request of @sess that is older than those of all exports. */
static void check_requests(const struct checked *of, const json_t *sess)
{
	char name[128], cell[TEXT_CELL], why[STATE_WHY];
	enum health health = state_of_requests(of->answer, of->exports_ns, sess, cell, why);

	state_name(of->names, sess, answer_string(sess, "name"), name, sizeof(name));
	if (health != HEALTH_UP)
		note(of, check_level_of(health), "%s %s", name, why);
}

static void check_export(const struct checked *of, const json_t *ex)
{
	char name[128], cell[TEXT_CELL], why[STATE_WHY];
	enum health health = state_of_export(of->answer, ex, cell, why);

	text_safe(answer_string(ex, "name"), name, sizeof(name));
	if (health != HEALTH_UP)
		note(of, check_level_of(health), "%s %s", name, why);
	if (answer_number(ex, "writers") > 1)
		note(of, CHECK_WARNING, "%s has two writers (mode=migration)", name);
}

/* A path that is lost again and again may be up at the moment. */
static void check_flaps(const struct checked *of)
{
	json_t *flap;
	size_t i;

	json_array_foreach(json_object_get(of->answer, "flaps"), i, flap) {
		char name[256], why[STATE_WHY];

		state_of_flap(of->names, flap, name, sizeof(name), why);
		note(of, CHECK_WARNING, "%s %s", name, why);
	}
}

/* A request or an answer has changed on its way, and a digest has caught it.  A fault like that
 * comes seldom, and stays. */
static void check_digests(const struct checked *of)
{
	uint64_t n = answer_number(of->answer, "digest_errors"),
		ns = answer_number(of->answer, "digest_error_ns");
	char last[32];

	if (!n || ns >= (uint64_t)CHECK_DIGEST_S * 1000000000)
		return;
	note(of, CHECK_WARNING, "%llu digest%s wrong, the last %s ago: memory, a network card or a "
	     "switch changes data (the log names the path)", (unsigned long long)n,
	     n == 1 ? " was" : "s were", state_duration(ns, last, sizeof(last)));
}

void check_add(struct check *check, const json_t *answer)
{
	bool tls_on = !strcmp(answer_string(answer, "tls"), "on");
	json_t *names = state_index_names(answer), *ex, *sess;
	struct checked of = { .check = check, .answer = answer, .names = names };
	size_t i;

	of.exports_ns = state_oldest_of_exports(answer);
	text_program(answer, of.program, sizeof(of.program));
	check->programs++;
	json_array_foreach(json_object_get(answer, "exports"), i, ex)
		check_export(&of, ex);
	json_array_foreach(json_object_get(answer, "sessions"), i, sess) {
		if (!state_is_user(sess))
			continue;
		check_session(&of, sess);
		check_requests(&of, sess);
		check_allowed(&of, sess);
		if (tls_on)
			check_clear(&of, sess);
	}
	check_flaps(&of);
	check_digests(&of);
	json_decref(names);
}

void check_add_silent(struct check *check, const char *why)
{
	const struct checked of = { .check = check };
	char text[512];

	check->programs++;
	note(&of, CHECK_UNKNOWN, "%s", text_safe(why, text, sizeof(text)));
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

static void check_file(const struct checked *of, const char *file, const char *option)
{
	struct secrets_keys_seen seen;
	char why[256], name[512];
	int rc;

	if (!file)
		return;
	rc = secrets_look_keys(file, of->user, &seen, why, sizeof(why));
	if (rc && !(rc == -EACCES && access(file, R_OK)))
		note(of, CHECK_WARNING, "%s=%s: %s", option, text_safe(file, name, sizeof(name)),
		     why);
}

/* The date @at of a certificate's file, @date, in the member @name of @secrets.  False: there is
 * none. */
static bool read_date(const json_t *secrets, const char *name, time_t *at, char file[64],
		      char date[16])
{
	const json_t *object = json_object_get(secrets, name);

	*at = (time_t)answer_number(object, "time");
	text_safe(answer_string(object, "file"), file, 64);
	text_date(*at, date, 16);
	return object;
}

/* Connections that are there go on behind the end of a certificate; a path that is lost does not
 * come back.  A certificate for later was put in place too early, or the clock of a machine is
 * wrong. */
static void check_certificates(const struct checked *of, const json_t *secrets, const char *option)
{
	time_t at, now = time(NULL);
	char file[64], date[16];

	if (read_date(secrets, "tls_certificates_begin", &at, file, date) && at > now)
		note(of, CHECK_CRITICAL, "%s: %s is not valid before %s, peers that verify it "
		     "refuse new connections", option, file, date);
	if (!read_date(secrets, "tls_certificates_end", &at, file, date))
		return;
	if (at <= now)
		note(of, CHECK_CRITICAL, "%s: %s has ended on %s, peers that verify it refuse new "
		     "connections", option, file, date);
	else if (at <= now + (time_t)CHECK_CERTS_DAYS * DAY_S)
		note(of, CHECK_WARNING, "%s: %s ends on %s", option, file, date);
}

void check_keys(struct check *check, const json_t *answer, uid_t user)
{
	struct checked of = { .check = check, .user = user };

	text_program(answer, of.program, sizeof(of.program));
	for (unsigned i = 0; i < ANSWER_SECRETS; i++) {
		const struct answer_secret *secret = &answer_secrets[i];

		if (secret->certificates)
			check_certificates(&of, answer_secret_object(answer, secret),
					   secret->option);
		else
			check_file(&of, answer_secret_path(answer, secret), secret->option);
	}
}
