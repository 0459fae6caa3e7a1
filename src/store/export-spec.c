/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads "NAME=TARGET[,FLAG...]" into an export that is not opened.  Owns nothing; any thread. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export-spec.h"
#include "store-drivers.h"
#include "suggest.h"

void export_spec_free(struct export *ex)
{
	pthread_mutex_destroy(&ex->failures.lock);
	free(ex->name);
	free(ex->path);
	ex->driver->close(ex);
}

/* Copy @text up to the next unescaped comma into a new string, without the escapes; @rest is set to
 * the comma or the end. */
static char *spec_unescape(const char *text, const char **rest)
{
	char *out = malloc(strlen(text) + 1), *o = out;

	if (!out)
		return NULL;
	while (*text && *text != ',') {
		if (text[0] == '\\' && (text[1] == ',' || text[1] == '\\'))
			text++;
		*o++ = *text++;
	}
	*o = '\0';
	*rest = text;
	return out;
}

/* All flags of @ex's storage, "readonly" first; returns their number. */
#define FLAGS_MAX 8u
static unsigned all_flags(const struct export *ex, const char *flags[FLAGS_MAX])
{
	unsigned n = 0;

	flags[n++] = "readonly";
	for (const char *const *f = ex->driver->flags; *f && n < FLAGS_MAX; f++)
		flags[n++] = *f;
	return n;
}

static int unknown_flag(const struct export *ex, const char *flag, size_t len, char *err,
			size_t errlen)
{
	const char *flags[FLAGS_MAX], *meant;
	unsigned n = all_flags(ex, flags);
	char expected[128] = "";

	for (unsigned i = 0; i < n; i++) {
		size_t at = strlen(expected);

		const char *comma = i + 1 < n ? ", " : " or ";

		snprintf(expected + at, sizeof(expected) - at, "%s%s", i ? comma : "", flags[i]);
	}
	meant = suggest_name(flag, len, flags, n);
	snprintf(err, errlen,
		 "export '%s': unknown flag '%.*s'%s%s%s: expected %s (a comma in PATH is "
		 "written '\\,')",
		 ex->name, (int)len, flag, meant ? " (did you mean " : "", meant ? meant : "",
		 meant ? "?)" : "", expected);
	return -EINVAL;
}

/* Set the flag @text of @ex.  False: no such flag exists. */
static bool set_flag(struct export *ex, const char *text, size_t len)
{
	const char *flags[FLAGS_MAX];
	unsigned n = all_flags(ex, flags);

	for (unsigned i = 0; i < n; i++) {
		if (len != strlen(flags[i]) || strncmp(text, flags[i], len))
			continue;
		if (i)
			ex->driver->flag(ex, i - 1);
		else
			ex->readonly = true;
		return true;
	}
	return false;
}

static int parse_flags(struct export *ex, const char *text, char *err, size_t errlen)
{
	while (*text == ',') {
		size_t len = strcspn(++text, ",");

		if (!set_flag(ex, text, len))
			return unknown_flag(ex, text, len, err, errlen);
		text += len;
	}
	return ex->driver->check(ex, err, errlen);
}

static int check_name(const char *name, char *err, size_t errlen)
{
	if (!*name) {
		snprintf(err, errlen, "export without a name: expected NAME=PATH");
		return -EINVAL;
	}
	if (strlen(name) >= RNBD_NAME_MAX) {
		snprintf(err, errlen, "export name '%.32s...' has %zu bytes: at most %d fit the "
			 "protocol", name, strlen(name), RNBD_NAME_MAX - 1);
		return -ENAMETOOLONG;
	}
	if (strstr(name, "..")) {
		snprintf(err, errlen, "export name '%s': '..' is not allowed in a name", name);
		return -EINVAL;
	}
	return 0;
}

static int split_spec(const char *spec, char **name, char **target, const char **flags, char *err,
		      size_t errlen)
{
	const char *eq = strchr(spec, '=');

	if (!eq) {
		snprintf(err, errlen, "'%s': expected NAME=PATH[,readonly][,direct][,force]", spec);
		return -EINVAL;
	}
	*name = strndup(spec, (size_t)(eq - spec));
	*target = spec_unescape(eq + 1, flags);
	if (*name && *target)
		return 0;
	snprintf(err, errlen, "export '%s': out of memory", spec);
	return -ENOMEM;
}

static const struct store_driver *driver_of(const char *target)
{
	const struct store_driver *const *d = store_drivers;

	while ((*d)->prefix && strncmp(target, (*d)->prefix, strlen((*d)->prefix)))
		d++;
	return *d;
}

static struct export *export_create(const char *target)
{
	const struct store_driver *driver = driver_of(target);
	struct export *ex = driver->create();

	if (!ex)
		return NULL;
	ex->driver = driver;
	pthread_mutex_init(&ex->failures.lock, NULL);
	return ex;
}

struct export *export_spec_parse(const char *spec, int *rc, char *err, size_t errlen)
{
	char *name = NULL, *target = NULL;
	struct export *ex = NULL;
	const char *flags;

	*rc = split_spec(spec, &name, &target, &flags, err, errlen);
	if (!*rc)
		*rc = check_name(name, err, errlen);
	if (!*rc && !*target) {
		snprintf(err, errlen, "export '%s': no path: expected NAME=PATH", name);
		*rc = -EINVAL;
	}
	if (!*rc && !(ex = export_create(target))) {
		snprintf(err, errlen, "export '%s': out of memory", spec);
		*rc = -ENOMEM;
	}
	if (!ex) {
		free(name);
		free(target);
		return NULL;
	}
	ex->name = name;
	ex->path = target;
	*rc = parse_flags(ex, flags, err, errlen);
	if (!*rc)
		return ex;
	export_spec_free(ex);
	return NULL;
}
