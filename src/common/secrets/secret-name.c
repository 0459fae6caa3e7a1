/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "psk.h"
#include "secret-name.h"

const char *secret_name_fault(const char *name)
{
	static const char fault[] = "expected a name of 1 to 128 characters without spaces and ':' "
				    "that does not start with '#' or '/'";
	size_t n = strlen(name);

	_Static_assert(PSK_NAME_MAX == 128, "in words here");
	/* A '#' makes the name a number of hexadecimal digits (gnutls), or the line a comment; in
	 * front of a '/' stands the identity. */
	if (!n || n > PSK_NAME_MAX || *name == '#' || *name == '/')
		return fault;
	for (; *name; name++) {
		if ((unsigned char)*name <= ' ' || *name == ':' || *name == 0x7f)
			return fault;
	}
	return NULL;
}

const char *secret_name_identity(const char *name, char *buf, size_t len)
{
	snprintf(buf, len, "psk:%.*s", (int)strcspn(name, "/"), name);
	return buf;
}
