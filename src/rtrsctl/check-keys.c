/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "check-keys.h"
#include "secrets-look.h"
#include "text.h"

#define DAY_S 86400

/* The program that is checked. */
struct secrets_of {
	char program[128];
	uid_t user;
};

static void check_file(struct check *check, const struct secrets_of *of, const json_t *secrets,
		       const char *member, const char *option)
{
	const char *file = json_string_value(json_object_get(secrets, member));
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
	const json_t *nbd = json_object_get(answer, "nbd");
	struct secrets_of of = { .user = user };

	text_program(answer, of.program, sizeof(of.program));
	check_file(check, &of, answer, "tls_psk", "tls-psk");
	check_file(check, &of, answer, "auth_psk", "auth-psk");
	check_certificates(check, &of, answer, "tls-certificates");
	/* rtrs-nbd's for NBD clients: options of its command line */
	check_file(check, &of, nbd, "tls_psk", "--tls-psk");
	check_certificates(check, &of, nbd, "--tls-certificates");
}
