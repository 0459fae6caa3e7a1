/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "ctl-json.h"
#include "ctl-secrets.h"

json_t *ctl_path_json(const char *path)
{
	_cleanup_free_ char *dir = *path == '/' ? NULL : getcwd(NULL, 0), *text = NULL;

	/* The directory may have been removed. */
	if (!dir)
		return ctl_json_text(path);
	if (asprintf(&text, "%s/%s", strcmp(dir, "/") ? dir : "", path) < 0)
		return NULL;
	return ctl_json_text(text);
}

/* @object with @path as @member; NULL: without. */
static json_t *with_path(json_t *object, const char *member, const char *path)
{
	if (!path)
		return object;
	return ctl_json_with(object, json_pack("{s:o}", member, ctl_path_json(path)));
}

/* @object with the date @at_s of @file as @member; NULL: without. */
static json_t *with_date(json_t *object, const char *member, const char *file, int64_t at_s)
{
	if (!file)
		return object;
	return ctl_json_with(object, json_pack("{s:{s:o,s:I}}", member, "file",
					       ctl_json_text(file), "time", (json_int_t)at_s));
}

json_t *ctl_secrets_json(const struct ctl_secrets *secrets)
{
	json_t *object = json_pack("{s:o}", "tls", ctl_json_text(secrets->tls));

	object = with_path(object, "tls_psk", secrets->tls_psk);
	object = with_path(object, "tls_certificates", secrets->tls_certificates);
	object = with_path(object, "auth_psk", secrets->auth_psk);
	object = with_date(object, "tls_certificates_end", secrets->end_file, secrets->end_s);
	return with_date(object, "tls_certificates_begin", secrets->begin_file, secrets->begin_s);
}
