/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing; control thread. */
#include <stdio.h>
#include <string.h>

#include "srv-names.h"
#include "srv-path.h"
#include "srv-sess.h"
#include "srv-state.h"

const char *srv_names_person(const char *identity)
{
	return *identity ? identity : "a client without a name";
}

/* True if @text is @name, with @identity and a '/' in front. */
static bool is_full(const char *text, const char *identity, const char *name)
{
	size_t len = strlen(identity);

	return !strncmp(text, identity, len) && text[len] == '/' && !strcmp(text + len + 1, name);
}

bool srv_names_sess(const struct srv_sess *sess, const char *text)
{
	return !strcmp(sess->name, text) || is_full(text, sess->identity, sess->name);
}

bool srv_names_path(const struct srv_path *path, const char *text)
{
	const char *sep = *path->sess->name ? strchr(path->name, '/') : NULL;

	return !strcmp(path->name, text) || (sep && !strcmp(sep + 1, text)) ||
	       is_full(text, path->sess->identity, path->name);
}

bool srv_names_two(const struct srv *srv, const char *text, char *buf, size_t len)
{
	const struct srv_sess *sess, *first = NULL;

	list_for_each(sess, &srv->sessions, link) {
		if (!srv_names_sess(sess, text))
			continue;
		if (!first)
			first = sess;
		if (!strcmp(first->identity, sess->identity))
			continue;
		snprintf(buf, len, "'%s/%s' or '%s/%s'", first->identity, first->name,
			 sess->identity, sess->name);
		return true;
	}
	return false;
}

const char *srv_names_tell(const struct srv_sess *sess, char *buf, size_t len)
{
	bool two = srv_names_two(sess->srv, sess->name, buf, len);

	snprintf(buf, len, "%s%s%s", two ? sess->identity : "", two ? "/" : "", sess->name);
	return buf;
}
