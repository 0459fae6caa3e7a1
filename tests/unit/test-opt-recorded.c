/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of options are read as they were when libinih took their lines apart: opt-recorded.txt has
 * what was read then of each file here.  With OPT_RECORDED=FILE the test writes FILE instead. */
#include <config.h>

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "opt-file.h"
#include "unit.h"

#define RANDOM_FILES 1500u
#define FILES_A_LINE 100u		/* of opt-recorded.txt */

/* What is new here, "\r" for one, is in test-opt-file.c. */
static const char *const examples[] = {
	"# /etc/rtrs-server.conf\n[server]\nlisten = tcp://192.0.2.10:1234\n"
	"listen = tcp://[2001:db8::10]:1234\nallow = 192.0.2.0/24, psk:gw1\nqueue-depth = 64\n\n"
	"[export \"disk0\"]\npath = /srv/disk0.img\niops = 1000\n\n"
	"[export \"disk1\"]\npath = rbd:rbd/disk1@snap\nmode = ro ; for backups\n",
	"# /etc/rtrs/disk0.conf\r\nserver = 192.0.2.10\r\npath = 198.51.100.10\r\n\r\n",
	"[server]\n  listen=a\n\tqueue-depth\t=\t4\n ; a comment\n\t# another one\n",
	"[server]\nlisten: a:b=c\nallow = x:y ;z\n",
	"[server]\nlisten = a;b\nallow = ;c\nqueue-depth =; d\n",
	"[server]\nlisten = a ; b ; c\nallow = #d\nqueue-depth = a#b #c\n",
	"[server]\nlisten = a \"quoted \"\nallow = 'a'\nqueue-depth = \\n\\\n",
	"[server]\nlisten = a\n  b\n  c = d\n",
	"[server]\nlisten\nallow =\nqueue-depth ; = 3\n= 4\n",
	"[ server ]\nlisten = a\n[server] # behind\nlisten = b\n[server\nlisten = c\n",
	"[export \"a]b\"]\npath = x\n[export  \t \"c\"]\npath = y\n[export\"d\"]\npath = z\n",
	"[export \"a;b ;c\"]\npath = x\n[export \"\xc3\xa9 # e\"]\npath = y\n[export \"f\"g\"]\n",
	"[export \"a\"] ; [server]\npath = /a b  c\t\n[export a]\npath = x\n",
	"[server]\nallow = \xc3\xa4\xff\x01\n\xc3\xa4 = b\n",
	"[server]\nqueue-depth = 1\nqueue-depth = 2\n[server]\nqueue-depth = 3",
	"", "\n\n", "#", "[", "=", ";", " ", "a", "[]", "]=",
};

/* ---- what was read ---- */

static char path[64];
static FILE *out;

static void put_text(const char *text)
{
	for (; *text; text++) {
		if (*text < ' ' || *text > '~' || *text == '\\')
			fprintf(out, "\\x%02x", (unsigned char)*text);
		else
			fputc(*text, out);
	}
	fputc('\n', out);
}

static int any(void *conf, const char *value, char *why, size_t len)
{
	return 0;
}

#define ROW(_name, _many) \
	{ .name = _name, .type = OPT_OTHER, .call = any, .many = _many, .arg = "TEXT", \
	  .holds = OPT_IN_FILE }

static const struct opt server_rows[] = {
	ROW("server", true), ROW("listen", true), ROW("path", true), ROW("allow", true),
	ROW("queue-depth", false),
};
static const struct opt export_rows[] = {
	ROW("path", false), ROW("mode", false), ROW("iops", false),
};
static const struct opt_table server_table = {
	.program = "prog", .rows = server_rows, .n = ARRAY_SIZE(server_rows), .dashes = "--",
};
static const struct opt_table export_table = {
	.program = "prog", .rows = export_rows, .n = ARRAY_SIZE(export_rows), .dashes = "",
};

static void *begin(void *arg, const char *where, const char *title, char *why, size_t len)
{
	fprintf(out, " section%s", title ? " " : "\n");
	if (title)
		put_text(title);
	return arg;
}

static void took(void *arg, const char *where, const struct opt *row, const char *value)
{
	fprintf(out, "  %s = ", row->name);
	put_text(value);
}

static const struct opt_section sections[] = {
	{ .name = "server", .table = &server_table, .begin = begin, .took = took },
	{ .name = "export", .titled = true, .table = &export_table, .begin = begin, .took = took },
};
static const struct opt_section flat[] = {
	{ .table = &server_table, .begin = begin, .took = took },
};

/* Write to @out what is read of @text by @kinds, and the lines of mistakes behind. */
static void put_read(const struct opt_section *kinds, unsigned n, const char *text)
{
	static char told[65536];
	FILE *f = fopen(path, "w"), *errors = fmemopen(told, sizeof(told), "w");
	struct opt_texts texts = { 0 };
	char *line, *rest = told;

	cr_assert_neq(fputs(text, f), EOF);
	fclose(f);
	*told = '\0';
	opt_file_read(path, kinds, n, &texts, &texts, errors);
	fclose(errors);
	while ((line = strtok_r(rest, "\n", &rest))) {
		fprintf(out, " mistake in line %lu\n", strtoul(line + strlen(path) + 1, NULL, 10));
	}
	opt_texts_free(&texts);
}

static void put_both(const char *text)
{
	put_read(sections, ARRAY_SIZE(sections), text);
	fputs(" --\n", out);
	put_read(flat, ARRAY_SIZE(flat), text);
}

/* ---- random files ---- */

static uint64_t seed;

static unsigned below(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

/* True if a value of @line has what is new since: quotes around it, or a '#' between blanks. */
static bool is_new(const char *line)
{
	static const char blanks[] = " \t\r\n";
	const char *value = line + strcspn(line, "=:");

	value += *value ? 1 + strspn(value + 1, blanks) : 0;
	if (*value == '"')
		return true;
	for (const char *c = strchr(value, '#'); c; c = strchr(c + 1, '#')) {
		if ((c == value || strchr(blanks, c[-1])) && strchr(blanks, c[1]))
			return true;
	}
	return false;
}

/* A file whose lines have at most 196 bytes: nothing that this machine has. */
static void random_text(char *text)
{
	static const char *const pieces[] = {
		"server", "listen", "path", "allow", "queue-depth", "export", "mode", "iops", "x",
		"[server]", "[export \"a\"]", "[export \"b c\"]", "[", "]", "\"", "=", "=", " = ",
		" = ", ":", ";", " ;", "#", " ", "  ", "\t", "a", "/srv/a.img", ",", "\\", "1",
		"\xc3\xa9", "\x01", "\xff", "'", "-", ".", "@",
	};
	static const char *const ends[] = { "\n", "\n", "\n", "\n", "\r\n", "\n\n", "\r\r\n", "" };

	for (unsigned lines = 1 + below(12); lines; lines--) {
		char *line = text;

		for (unsigned n = below(7); n; n--)
			text = stpcpy(text, pieces[below(ARRAY_SIZE(pieces))]);
		if (is_new(line))
			text = line;
		text = stpcpy(text, ends[below(lines > 1 ? ARRAY_SIZE(ends) - 1 :
					      ARRAY_SIZE(ends))]);
	}
}

static uint64_t hash_of(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325;	/* FNV-1a */

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return hash;
}

static void put_random(FILE *to, unsigned first)
{
	static char text[4096];
	char *all = NULL;
	size_t len = 0;

	out = open_memstream(&all, &len);
	for (unsigned i = first; i < first + FILES_A_LINE; i++) {
		seed = i;
		*text = '\0';
		random_text(text);
		put_both(text);
	}
	fclose(out);
	fprintf(to, "random files %u to %u: %016llx\n", first, first + FILES_A_LINE - 1,
		(unsigned long long)hash_of(all));
	free(all);
}

static void put_all(FILE *to)
{
	strcpy(path, "/tmp/test-opt-recorded.XXXXXX");
	close(mkstemp(path));
	for (unsigned i = 0; i < ARRAY_SIZE(examples); i++) {
		out = to;
		fprintf(out, "example %u\n", i);
		put_both(examples[i]);
	}
	for (unsigned i = 0; i < RANDOM_FILES; i += FILES_A_LINE)
		put_random(to, i);
	unlink(path);
}

/* ---- the comparison ---- */

Test(opt_recorded, as_before)
{
	const char *top = getenv("srcdir"), *record = getenv("OPT_RECORDED");
	static char name[4096], line[4096], want[4096];
	FILE *is = record ? fopen(record, "w") : tmpfile(), *was;

	cr_assert_not_null(is);
	put_all(is);
	if (record) {
		fclose(is);
		return;
	}
	rewind(is);
	snprintf(name, sizeof(name), "%s/tests/unit/opt-recorded.txt", top ? top : ".");
	was = fopen(name, "r");
	cr_assert_not_null(was, "%s", name);
	for (unsigned n = 1; fgets(want, sizeof(want), was); n++) {
		cr_assert_not_null(fgets(line, sizeof(line), is));
		cr_assert_str_eq(line, want, "line %u of %s", n, name);
	}
	cr_assert_null(fgets(line, sizeof(line), is));
	fclose(was);
	fclose(is);
}
