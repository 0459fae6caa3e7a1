/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <string.h>

#include "opt-file.h"

static const char blanks[] = " \t\v\f\r";

bool opt_line_is_blank(char c)
{
	return c && strchr(blanks, c);
}

static bool is_blank_or_end(char c)
{
	return strchr(blanks, c);
}

const char *opt_line_hash(const char *value)
{
	const char *hash = strchr(value, '#');

	while (hash && !((hash == value || is_blank_or_end(hash[-1])) && is_blank_or_end(hash[1])))
		hash = strchr(hash + 1, '#');
	return hash;
}

char *opt_line_trim(char *text)
{
	size_t n;

	text += strspn(text, blanks);
	n = strlen(text);
	while (n && strchr(blanks, text[n - 1]))
		text[--n] = '\0';
	return text;
}

/* The first byte of @text that is one of @chars, or that begins a comment, as a ';' behind a blank
 * does; or the end. */
static char *find_or_comment(char *text, const char *chars)
{
	bool behind_blank = false;

	for (; *text && !strchr(chars, *text) && !(behind_blank && *text == ';'); text++)
		behind_blank = strchr(blanks, *text);
	return text;
}

/* The quote that ends the text behind the quote at @text; NULL: @text is a value that has quotes,
 * as "a"b, and not one in quotes. */
static char *find_end_quote(char *text)
{
	char *end = strchr(text + 1, '"'), *rest;

	while (end && end[1] == '"')
		end = strchr(end + 2, '"');
	if (!end || !is_blank_or_end(end[1]))
		return NULL;
	rest = end + 1 + strspn(end + 1, blanks);
	return strchr("#;", *rest) ? end : NULL;
}

/* Take the quotes off @text, a value that begins with one: "" among them is a quote.  False: @text
 * is no value in quotes, and stays. */
static bool unquote(char *text)
{
	char *end = find_end_quote(text), *out = text;

	if (!end)
		return false;
	for (char *in = text + 1; in < end; in++) {
		*out++ = *in;
		in += *in == '"';
	}
	*out = '\0';
	return true;
}

void opt_line_split(char *line, char **name, char **value, bool *quoted)
{
	char *text = find_or_comment(line, "=:");
	bool alone = !*text || *text == ';';

	*quoted = false;
	*value = NULL;
	*text = '\0';
	*name = opt_line_trim(line);
	if (alone)
		return;
	*value = text + 1 + strspn(text + 1, blanks);
	*quoted = **value == '"' && unquote(*value);
	if (*quoted)
		return;
	*find_or_comment(text + 1, "") = '\0';
	*value = opt_line_trim(text + 1);
}

void opt_line_put(FILE *out, const char *name, const char *value)
{
	bool plain = *value && *value != '"' && *value != ';' && !is_blank_or_end(*value) &&
		     !is_blank_or_end(value[strlen(value) - 1]) && !opt_line_hash(value);

	/* ';' behind a blank begins a comment. */
	for (const char *c = value; plain && (c = strchr(c, ';')); c++)
		plain = !is_blank_or_end(c[-1]);
	if (plain) {
		fprintf(out, "%s = %s\n", name, value);
		return;
	}
	fprintf(out, "%s = \"", name);
	for (const char *c = value; *c; c++)
		fprintf(out, "%s%c", *c == '"' ? "\"" : "", *c);
	fputs("\"\n", out);
}
