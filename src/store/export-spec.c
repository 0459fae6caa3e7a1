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
	char *name = ex->name, *path = ex->path, *spec = ex->spec;

	pthread_mutex_destroy(&ex->failures.lock);
	free(ex->pulse);
	/* ORDER: the driver may log the names, and frees @ex. */
	ex->driver->close(ex);
	free(name);
	free(path);
	free(spec);
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

/* The flags of any storage; those of the driver follow. */
enum { FLAG_READONLY, FLAG_SHARED, FLAG_OF_DRIVER };

/* All flags of @ex's storage; returns their number. */
#define FLAGS_MAX 8u
static unsigned all_flags(const struct export *ex, const char *flags[FLAGS_MAX])
{
	unsigned n = 0;

	flags[n++] = "readonly";
	flags[n++] = "shared=";
	for (const char *const *f = ex->driver->flags; *f && n < FLAGS_MAX; f++)
		flags[n++] = *f;
	return n;
}

/* The flags that make sense for @ex's storage; returns their number. */
static unsigned expected_flags(const struct export *ex, const char *flags[FLAGS_MAX])
{
	unsigned n = all_flags(ex, flags);

	if (!ex->driver->alone)
		return n;
	for (unsigned i = FLAG_SHARED; i + 1 < n; i++)
		flags[i] = flags[i + 1];
	return n - 1;
}

static int unknown_flag(const struct export *ex, const char *flag, size_t len, char *err,
			size_t errlen)
{
	const char *flags[FLAGS_MAX], *meant;
	unsigned n = expected_flags(ex, flags);
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

static bool takes_value(const char *flag)
{
	return flag[strlen(flag) - 1] == '=';
}

/* The place in @flags of the flag that begins @text; @n: none. */
static unsigned find_flag(const char *const *flags, unsigned n, const char *text, size_t len)
{
	unsigned i = 0;

	while (i < n && (strncmp(text, flags[i], strlen(flags[i])) ||
			 (len != strlen(flags[i]) && !takes_value(flags[i]))))
		i++;
	return i;
}

static int no_memory(const struct export *ex, char *err, size_t errlen)
{
	snprintf(err, errlen, "export '%s': out of memory", ex->name);
	return -ENOMEM;
}

static int set_shared(struct export *ex, const char *value, char *err, size_t errlen)
{
	ex->shared = !strcmp(value, "yes");
	if (!ex->shared && strcmp(value, "no")) {
		snprintf(err, errlen, "export '%s': shared='%s': expected yes or no", ex->name,
			 value);
		return -EINVAL;
	}
	if (!ex->shared || !ex->driver->alone)
		return 0;
	snprintf(err, errlen, "export '%s': shared=yes: %s", ex->name, ex->driver->alone);
	return -EINVAL;
}

/* Set @flag to the value that begins at @text; *@rest is set to the comma behind the value, or to
 * the end. */
static int set_value(struct export *ex, unsigned flag, const char *text, const char **rest,
		     char *err, size_t errlen)
{
	char *value = spec_unescape(text, rest);
	int rc = 0;

	if (!value)
		return no_memory(ex, err, errlen);
	if (!*value) {
		snprintf(err, errlen, "export '%s': '%s' has no value", ex->name,
			 flag == FLAG_SHARED ? "shared=" :
			 ex->driver->flags[flag - FLAG_OF_DRIVER]);
		rc = -EINVAL;
	} else if (flag == FLAG_SHARED) {
		rc = set_shared(ex, value, err, errlen);
	} else if (!ex->driver->flag(ex, flag - FLAG_OF_DRIVER, value)) {
		rc = no_memory(ex, err, errlen);
	}
	free(value);
	return rc;
}

/* A flag that has two values is a mistake.  0; or -EINVAL with @err. */
static int note_seen(const struct export *ex, unsigned flag, const char *name, unsigned *seen,
		     char *err, size_t errlen)
{
	unsigned bit = 1u << flag;

	if (!(*seen & bit)) {
		*seen |= bit;
		return 0;
	}
	snprintf(err, errlen, "export '%s': '%s' is given twice", ex->name, name);
	return -EINVAL;
}

/* Set the flag of @ex that begins at *@text, and move *@text behind the flag.  @seen has a bit for
 * each flag whose value was set before. */
static int set_flag(struct export *ex, const char **text, unsigned *seen, char *err,
		    size_t errlen)
{
	size_t len = strcspn(*text, ",");
	const char *flags[FLAGS_MAX];
	unsigned n = all_flags(ex, flags), i = find_flag(flags, n, *text, len);

	if (i == n)
		return unknown_flag(ex, *text, len, err, errlen);
	if (takes_value(flags[i]) && note_seen(ex, i, flags[i], seen, err, errlen))
		return -EINVAL;
	if (takes_value(flags[i]))
		return set_value(ex, i, *text + strlen(flags[i]), text, err, errlen);
	*text += len;
	if (i == FLAG_READONLY)
		ex->readonly = true;
	else if (!ex->driver->flag(ex, i - FLAG_OF_DRIVER, NULL))
		return no_memory(ex, err, errlen);
	return 0;
}

static int parse_flags(struct export *ex, const char *text, char *err, size_t errlen)
{
	unsigned seen = 0;
	int rc = 0;

	while (*text == ',' && !rc) {
		text++;
		rc = set_flag(ex, &text, &seen, err, errlen);
	}
	return rc ? rc : ex->driver->check(ex, err, errlen);
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
	ex->spec = strdup(spec);
	*rc = ex->spec ? parse_flags(ex, flags, err, errlen) : -ENOMEM;
	if (!*rc)
		return ex;
	export_spec_free(ex);
	return NULL;
}
