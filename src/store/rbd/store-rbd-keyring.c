/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing.  A key in a keyring is base64 of its cipher, a number of 16 bits, and more: "AQ..."
 * is AES-128, "Ag..." AES-256, which Ceph has since 20.2.  librados refuses a whole keyring for one
 * key of a cipher that it does not know. */
#include <config.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plain-file.h"
#include "store-rbd-keyring.h"

#define AES_256 "Ag"
#define AES_256_RELEASE "20.2"
#define LIST_MAX 2048
#define KEYRING_MAX ((size_t)64 << 10)

/* @line is like "	key = AgAB...". */
static bool line_has_new_key(const char *line)
{
	line += strspn(line, " \t");
	if (strncmp(line, "key", 3))
		return false;
	line += 3 + strspn(line + 3, " \t");
	return *line == '=' && !strncmp(line + 1 + strspn(line + 1, " \t\""), AES_256,
					sizeof(AES_256) - 1);
}

static bool file_has_new_key(const char *file)
{
	char why[128], *rest, *line;
	struct plain_file keyring;
	bool found = false;

	if (plain_file_load(file, KEYRING_MAX, &keyring, why, sizeof(why)))
		return false;
	rest = keyring.text;
	while (!found && (line = strsep(&rest, "\n")))
		found = line_has_new_key(line);
	plain_file_free(&keyring);
	return found;
}

void store_rbd_keyring_fault(rados_t cluster, char *buf, size_t len)
{
	char list[LIST_MAX] = "", *rest = list, *file;
	int major = 0, minor = 0, extra = 0;

	/* librados takes the first file of the list that is there. */
	rbd_lib.rados_conf_get(cluster, "keyring", list, sizeof(list));
	while ((file = strsep(&rest, ",;= \t")) && (!*file || access(file, F_OK)))
		;
	if (file && file_has_new_key(file)) {
		rbd_lib.rbd_version(&major, &minor, &extra);
		snprintf(buf, len,
			 "the keyring '%s' has an AES-256 key (\"" AES_256 "...\"), which librbd "
			 "%d.%d of this machine does not know: install librbd1 of Ceph "
			 AES_256_RELEASE " or newer", file, major, minor);
	} else {
		snprintf(buf, len, "librados cannot read the keyring '%s': is each key in it "
			 "complete, and of a cipher that this librados knows?", file ? file : "");
	}
}
