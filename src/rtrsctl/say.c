/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the choice of a form: a line for people, the line of "check", or JSON.  One thread. */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "args.h"
#include "check.h"
#include "ctl-json.h"
#include "find.h"
#include "say.h"
#include "text.h"

#define PLAIN_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
#define SHELL_LETTERS PLAIN_LETTERS "=,:/@+%"	/* of words that a shell takes as they stand */

static bool json, check;

void say_json(void)
{
	json = true;
}

void say_check(bool on)
{
	check = on;
}

static void print_json(json_t *object)
{
	text_json(object);
	fflush(stdout);
}

int say_error(int status, const char *fmt, ...)
{
	static char text[TEXT_MAX_BYTES], safe[TEXT_MAX_BYTES];
	va_list ap;
	char *line;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (json) {
		print_json(json_pack("{s:b,s:o}", "ok", 0, "error", ctl_json_text(text)));
	} else if (check) {
		printf("RTRS UNKNOWN - %s\n", text_safe(text, safe, sizeof(safe)));
	} else {
		for (char *rest = text; (line = strsep(&rest, "\n"));)
			fprintf(stderr, "rtrsctl: %s\n", text_safe(line, safe, sizeof(safe)));
	}
	return check ? CHECK_UNKNOWN : status;
}

/* This error needs no memory. */
static void *json_alloc(size_t n)
{
	void *p = malloc(n);

	if (p || !n)
		return p;
	if (json)
		puts("{\"ok\":false,\"error\":\"out of memory\"}");
	else
		fputs(check ? "RTRS UNKNOWN - out of memory\n" : "rtrsctl: out of memory\n",
		      check ? stdout : stderr);
	exit(check ? (int)CHECK_UNKNOWN : EXIT_FAILED);
}

void say_begin(void)
{
	json_set_alloc_funcs(json_alloc, free);
}

/* False: a shell would not take @name as it stands, or another program of @found has it, too. */
static bool name_chooses(const struct found *found, const char *name)
{
	unsigned n = 0;

	if (!name || !*name || strspn(name, PLAIN_LETTERS) != strlen(name))
		return false;
	for (size_t i = 0; i < found->n; i++)
		n += found->at[i].name && !strcmp(found->at[i].name, name);
	return n == 1;
}

/* Print @word as a shell takes it. */
static void print_word(const char *word)
{
	static char safe[4500];		/* the longest contains the name of a directory */
	bool plain = *word && strspn(word, SHELL_LETTERS) == strlen(word);

	if (!plain)
		fputc('\'', stderr);
	for (const char *c = text_safe(word, safe, sizeof(safe)); *c; c++)
		fprintf(stderr, *c == '\'' ? "'\\%c'" : "%c", *c);
	if (!plain)
		fputc('\'', stderr);
}

/* Print the command line of @ctx for @program, one of @found. */
static void print_choice(const struct ctx *ctx, const struct found *found,
			 const struct found_program *program)
{
	bool named = name_chooses(found, program->name);

	fputs("  rtrsctl", stderr);
	/* A command of one kind chooses it by itself, as a socket does. */
	if (named && !ctx->command->kind && (ctx->wanted.server || ctx->wanted.gateway))
		fputs(ctx->wanted.server ? " --server" : " --gateway", stderr);
	fputs(named ? " --name=" : " --socket=", stderr);
	print_word(named ? program->name : program->path);
	if (ctx->force)
		fputs(" --force", stderr);
	for (int i = 0; i < ctx->ntyped; i++) {
		fputc(' ', stderr);
		print_word(ctx->typed[i]);
	}
	fputc('\n', stderr);
}

int say_choice(const char *text, const struct ctx *ctx, const struct found *found)
{
	json_t *names = json_array();

	if (!json)
		say_error(EXIT_USAGE, "%s", text);
	for (size_t i = 0; i < found->n; i++) {
		if (json)
			json_array_append_new(names, ctl_json_text(found->at[i].path));
		else
			print_choice(ctx, found, &found->at[i]);
	}
	if (json)
		print_json(json_pack("{s:b,s:o,s:O}", "ok", 0, "error", ctl_json_text(text),
				     "sockets", names));
	json_decref(names);
	return EXIT_USAGE;
}
