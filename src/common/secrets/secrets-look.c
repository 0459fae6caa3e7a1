/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "secrets-look.h"

int secrets_look_keys(const char *path, uid_t reader, struct secrets_keys_seen *seen, char *why,
		      size_t len)
{
	struct psks psks;
	struct stat st;
	int rc;

	/* The name comes from another program or its files. */
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		snprintf(why, len, "expected a regular file");
		return -EINVAL;
	}
	rc = psk_read(path, reader, &psks, why, len);
	if (!rc)
		*seen = (struct secrets_keys_seen){ psks.n, psks.all[0].since_s };
	psk_free(&psks);
	return rc;
}

int secrets_look_certs(const char *dir, bool server, struct secrets_dates *dates, char *err,
		       size_t len)
{
	struct secrets s = { 0 };
	int rc = certs_read(dir, server, NULL, &s.certs, err, len);

	if (rc)
		return rc;
	*dates = secrets_dates(&s);
	certs_put(s.certs);
	return 0;
}
