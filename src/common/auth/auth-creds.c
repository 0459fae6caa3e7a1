/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the keys of an end. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth-creds.h"
#include "number.h"
#include "secret.h"

const char *const auth_mode_names[AUTH_MODES] = {
	[AUTH_MODE_NONE] = "none", [AUTH_MODE_PSK] = "psk", [AUTH_MODE_REQUIRE] = "require",
};

enum auth_mode auth_conf_mode(const struct auth_conf *conf)
{
	if (conf->asked)
		return conf->mode;
	return conf->psk ? AUTH_MODE_REQUIRE : AUTH_MODE_NONE;
}

/* Check the options against each other; each alone is good. */
static int check_together(const struct auth_conf *conf, char *err, size_t len)
{
	if (conf->username && !conf->psk)
		return fmt_error(-EINVAL, err, len,
				 "auth-username=%s: expected auth-psk=FILE beside it",
				 conf->username);
	/* A server that need not prove itself has no name to compare. */
	if (conf->hostname && auth_conf_mode(conf) != AUTH_MODE_REQUIRE)
		return fmt_error(-EINVAL, err, len,
				 "auth-hostname=%s: expected auth-psk=FILE beside it, and "
				 "auth=require", conf->hostname);
	if (auth_conf_mode(conf) != AUTH_MODE_NONE && !conf->psk)
		return fmt_error(-EINVAL, err, len,
				 "auth=%s: expected auth-psk=FILE beside it",
				 auth_mode_names[auth_conf_mode(conf)]);
	return 0;
}

/* ---- the whole ---- */

/* The name that a server tells: the machine's, of characters that a name may have. */
static void name_machine(char name[PSK_NAME_MAX + 1])
{
	if (gethostname(name, PSK_NAME_MAX) || !*name)
		snprintf(name, PSK_NAME_MAX, "?");
	name[PSK_NAME_MAX] = '\0';
	for (char *c = name; *c; c++) {
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			*c = '?';
	}
}

int auth_creds_create(const struct auth_conf *conf, struct auth_creds **out, char *err, size_t len)
{
	const struct secrets_conf secrets = {
		.kind = SECRETS_AUTH_KEYS, .server = conf->server, .file = conf->psk,
		.username = conf->username,
	};
	struct auth_creds *creds;
	int rc = check_together(conf, err, len);

	*out = NULL;
	/* A listener of a server may ask where others do not. */
	if (rc || (auth_conf_mode(conf) == AUTH_MODE_NONE && !(conf->server && conf->psk)))
		return rc;
	creds = calloc(1, sizeof(*creds));
	if (!creds)
		return fmt_error(-ENOMEM, err, len, "out of memory");
	creds->mode = auth_conf_mode(conf);
	secret_no_core_file();
	rc = secrets_create(&secrets, &creds->secrets, err, len);
	if (!rc && conf->server)
		name_machine(creds->name);
	if (!rc && conf->hostname) {
		creds->hostname = strdup(conf->hostname);
		rc = creds->hostname ? 0 : fmt_error(-ENOMEM, err, len, "out of memory");
	}
	if (rc) {
		auth_creds_destroy(creds);
		return rc;
	}
	*out = creds;
	return 0;
}

bool auth_creds_want(const struct auth_creds *creds, const char *name)
{
	const char *word = creds->hostname;

	while (word) {
		size_t len = strcspn(word, ",");

		if (len == strlen(name) && !memcmp(word, name, len))
			return true;
		word = word[len] ? word + len + 1 : NULL;
	}
	return !creds->hostname;
}

void auth_creds_destroy(struct auth_creds *creds)
{
	if (!creds)
		return;
	secrets_destroy(creds->secrets);
	free(creds->hostname);
	free(creds);
}
