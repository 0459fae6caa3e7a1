/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing; the keys that are read are wiped at once. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check-keys.h"
#include "fab-psk.h"
#include "text.h"

/* 0, or -errno with the reason in @why. */
static int look(const char *file, char *why, size_t len)
{
	struct fab_psks psks;
	struct stat st;
	int rc;

	/* The name comes from a program: nothing but a file is opened. */
	if (!stat(file, &st) && !S_ISREG(st.st_mode)) {
		snprintf(why, len, "expected a file");
		return -EINVAL;
	}
	rc = fab_psk_read(file, &psks, why, len);
	fab_psk_free(&psks);
	return rc;
}

void check_keys(struct check *check, const json_t *answer)
{
	const char *file = json_string_value(json_object_get(answer, "tls_psk"));
	char program[128], why[256], line[1024];
	int rc;

	if (!file)
		return;
	rc = look(file, why, sizeof(why));
	if (!rc || (rc == -EACCES && access(file, R_OK)))
		return;
	text_program(answer, program, sizeof(program));
	snprintf(line, sizeof(line), "%s: tls-psk=%s: %s", program, file, why);
	check_add_warning(check, line);
}
