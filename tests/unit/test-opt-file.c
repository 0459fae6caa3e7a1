/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of options: values reach the struct of their section, and each mistake is told with its
 * line while the rest of the file is still read. */
#include <errno.h>
#include <config.h>

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "opt-file.h"
#include "unit.h"

struct server {
	unsigned depth;
	bool lock;
	const char *dir;
	char hosts[64];
};

struct disk {
	char title[64];
	const char *path;
};

struct all {
	struct server server;
	struct disk disks[4];
	unsigned ndisks;
	char where[4][128];
};

static int add_host(void *conf, const char *value, char *why, size_t len)
{
	struct server *s = conf;

	snprintf(why, len, "expected a host");
	if (!strcmp(value, "nobody"))
		return -1;
	snprintf(s->hosts + strlen(s->hosts), sizeof(s->hosts) - strlen(s->hosts), "%s ", value);
	return 0;
}

static const struct opt server_rows[] = {
	{ .name = "depth", .type = OPT_NUMBER, OPT_FIELD(struct server, depth), .arg = "N",
	  .least = 1, .most = 9, .holds = OPT_IN_FILE },
	{ .name = "lock", .type = OPT_FLAG, OPT_FIELD(struct server, lock), .holds = OPT_IN_FILE },
	{ .name = "dir", .type = OPT_TEXT, OPT_FIELD(struct server, dir), .arg = "DIR",
	  .of = "a directory", .holds = OPT_IN_FILE },
};
static const struct opt more_rows[] = {
	{ .name = "host", .type = OPT_OTHER, .call = add_host, .arg = "HOST", .many = true,
	  .holds = OPT_IN_FILE },
	{ .name = "alone", .type = OPT_OTHER, .call = add_host, .arg = "HOST",
	  .holds = OPT_IN_FILE },
	{ .name = "ready", .type = OPT_FLAG, OPT_FIELD(struct server, lock),
	  .holds = OPT_AT_START, .instead = "because" },
	{ .name = "key", .file_name = "nbd-key", .type = OPT_OTHER, .call = add_host, .arg = "HOST",
	  .holds = OPT_AT_START | OPT_IN_FILE },
};
static const char *const others[] = { "foreign", NULL };
static const struct opt disk_rows[] = {
	{ .name = "path", .type = OPT_TEXT, OPT_FIELD(struct disk, path), .arg = "PATH",
	  .of = "a path", .holds = OPT_IN_FILE },
};
/* The rows of servers stand in two parts. */
static const struct opt_table *more(unsigned i)
{
	static const struct opt_table part = { .rows = more_rows, .n = ARRAY_SIZE(more_rows) };

	return i ? NULL : &part;
}

static const struct opt_table server_table = { .program = "prog", .rows = server_rows,
					       .n = ARRAY_SIZE(server_rows), .dashes = "--",
					       .more = more };
static const struct opt_table disk_table = { .program = "prog", .rows = disk_rows,
					     .n = ARRAY_SIZE(disk_rows), .dashes = "" };

static void *begin_server(void *arg, const char *where, const char *title, char *why, size_t len)
{
	struct all *all = arg;

	return &all->server;
}

static void *begin_disk(void *arg, const char *where, const char *title, char *why, size_t len)
{
	struct all *all = arg;
	struct disk *disk = &all->disks[all->ndisks];

	snprintf(why, len, "disk '%s': expected a name", title);
	if (!*title)
		return NULL;
	*disk = (struct disk){ 0 };
	snprintf(disk->title, sizeof(disk->title), "%s", title);
	return disk;
}

static bool end_disk(void *arg, const char *where, char *why, size_t len)
{
	struct all *all = arg;

	if (!all->disks[all->ndisks].path) {
		snprintf(why, len, "disk '%s' has no path", all->disks[all->ndisks].title);
		return false;
	}
	snprintf(all->where[all->ndisks], sizeof(all->where[0]), "%s", where);
	all->ndisks++;
	return true;
}

static const struct opt_section sections[] = {
	{ .name = "server", .table = &server_table, .others = others,
	  .others_are = "another's: ask it", .begin = begin_server },
	{ .name = "disk", .titled = true, .table = &disk_table, .begin = begin_disk,
	  .end = end_disk },
};
/* A file without sections. */
static const struct opt_section flat[] = {
	{ .table = &server_table, .begin = begin_server },
};

static char path[64];
static struct opt_texts texts;

static void setup(void)
{
	strcpy(path, "/tmp/test-opt-file.XXXXXX");
	close(mkstemp(path));
}

static void teardown(void)
{
	opt_texts_free(&texts);
	unlink(path);
}

TestSuite(opt_file, .init = setup, .fini = teardown);

/* Read @len bytes of @text.  Returns the mistakes, "LINE: WHY|LINE: WHY|", without the path. */
static const char *read_bytes(struct all *all, const struct opt_section *kinds, unsigned n,
			      const char *text, size_t len)
{
	static char told[4096];
	FILE *f = fopen(path, "w"), *errors = fmemopen(told, sizeof(told), "w");
	unsigned lines = 0;
	int rc;
	char *in = told, *out = told;

	cr_assert_eq(fwrite(text, 1, len, f), len);
	fclose(f);
	memset(told, 0, sizeof(told));
	*all = (struct all){ 0 };
	rc = opt_file_read(path, kinds, n, all, &texts, errors);
	fclose(errors);
	for (; *in; lines++) {
		cr_assert_eq(strncmp(in, path, strlen(path)), 0, "%s", in);
		in += strlen(path) + 1;
		while (*in != '\n')
			*out++ = *in++;
		*out++ = '|';
		in++;
	}
	*out = '\0';
	cr_assert(lines ? rc < 0 : rc == 0);
	return told;
}

static const char *read_text(struct all *all, const char *text)
{
	return read_bytes(all, sections, ARRAY_SIZE(sections), text, strlen(text));
}

Test(opt_file, values)
{
	struct all all;

	cr_assert_str_eq(read_text(&all,
		"# comment\n; comment\n\n[server]\n  depth=3\n\tlock = yes\r\n"
		"dir = /a b = c ; behind a blank\nhost = a\nhost = b;c\n"
		"[disk \"one\"]\npath = /1\n"
		"[disk \"two, or = ] not\"]\n"), "12: [disk \"two, or = ] not\"] is no section of "
		"this file: expected [server] or [disk \"NAME\"]|");
	cr_assert_eq(all.server.depth, 3);
	cr_assert(all.server.lock);
	cr_assert_str_eq(all.server.dir, "/a b = c");
	cr_assert_str_eq(all.server.hosts, "a b;c ");
	cr_assert_eq(all.ndisks, 1);
	cr_assert_str_eq(all.disks[0].title, "one");
	cr_assert_str_eq(all.disks[0].path, "/1");
	cr_assert_eq(strcmp(all.where[0] + strlen(path), ":10"), 0, "%s", all.where[0]);
}

/* A section may come again, and goes on: what was given is known for this section only. */
Test(opt_file, sections_again)
{
	struct all all;

	cr_assert_str_eq(read_text(&all, "[server]\nlock=yes\n[disk \"1\"]\npath=/1\n"
		"[disk \"2\"]\npath=/2\n[server]\nlock=no\nhost=x"), "");
	cr_assert_eq(all.ndisks, 2);
	cr_assert_str_eq(all.disks[0].path, "/1");
	cr_assert_str_eq(all.disks[1].path, "/2");
	cr_assert_not(all.server.lock);
	cr_assert_str_eq(all.server.hosts, "x ");
}

Test(opt_file, mistakes)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "depth = 1\n[server]\n", "1: 'depth' comes before the first section: "
		  "expected [server] or [disk \"NAME\"] above it|" },
		{ "[server]\ndept = 1\n",
		  "2: 'dept' is no option of this section (did you mean depth?)|" },
		{ "[server]\nzzzzzzzz = 1\n", "2: 'zzzzzzzz' is no option of this section "
		  "(the manual has all options)|" },
		{ "[server]\ndepth = 0\n", "2: depth '0': expected a number from 1 to 9|" },
		{ "[server]\ndepth = 1\n\ndepth = 2\n",
		  "4: 'depth' is given twice: first in line 2|" },
		{ "[server]\nalone = a\nhost = b\nhost = c\nalone = d\n",
		  "5: 'alone' is given twice: first in line 2|" },
		{ "[server]\nhst = a\n",
		  "2: 'hst' is no option of this section (did you mean host?)|" },
		{ "[server]\nhost = nobody\nhost = a\n", "2: host 'nobody': expected a host|" },
		{ "[server]\nzzzz\n", "2: 'zzzz': expected NAME = VALUE|" },
		{ "[server]\ndepth\n", "2: 'depth' has no value: expected depth = N|" },
		{ "[server]\ndepth ; = 3\n", "2: 'depth' has no value: expected depth = N|" },
		{ "[server]\nlock\n", "2: 'lock' has no value: expected lock = yes or no|" },
		{ "[server]\nready\n", "2: 'ready' cannot stand in a file: because|" },
		{ "[server]\ndir =\n", "2: 'dir' has no value: expected dir = DIR|" },
		{ "[server]\ndir = \"\"\n", "2: 'dir' has no value: expected dir = DIR|" },
		/* A '#' between blanks may be part of a path. */
		{ "[server]\ndir = /d  # the dir\n", "2: dir '/d  # the dir': '#' begins no "
		"comment after a value: expected dir = /d ; the dir, or quotes around a value "
		  "that has the '#'|" },
		{ "[server]\nlock = # yes\n", "2: lock '# yes': '#' begins no comment after a "
		"value: expected lock = VALUE ; yes, or quotes around a value that has the "
		  "'#'|" },
		{ "[server]\ndepth = 3 #3\n", "2: depth '3 #3': expected a number from 1 to 9 (a "
		"comment after a value begins with a blank and ';')|" },
		{ "[server]\nlock = maybe\n", "2: lock 'maybe': expected yes or no|" },
		{ "[server]\nready = yes\n", "2: 'ready' cannot stand in a file: because|" },
		{ "[server]\nforeign = 1\n", "2: 'foreign' is another's: ask it|" },
		/* A name for the command line alone, and one for the file alone. */
		{ "[server]\nkey = 1\n", "2: 'key' is no option of this section "
		  "(the manual has all options)|" },
		{ "[server]\nnbd-key = nobody\nnbd-kye = 1\n",
		  "2: nbd-key 'nobody': expected a host|"
		  "3: 'nbd-kye' is no option of this section (did you mean nbd-key?)|" },
		{ "[serve]\ndepth = 77\n",
		  "1: [serve] is no section of this file: expected [server] or [disk \"NAME\"]|" },
		{ "[server \"x\"]\n", "1: [server \"x\"] is no section of this file: expected "
		  "[server] or [disk \"NAME\"]|" },
		{ "[disk]\n",
		  "1: [disk] is no section of this file: expected [server] or [disk \"NAME\"]|" },
		{ "[disk \"\"]\npath = x\n", "1: disk '': expected a name|" },
		{ "[disk \"a\"]\n", "1: disk 'a' has no path|" },
		{ "[disk \"a\"]\n[disk \"b\"]\npath = /b\n", "1: disk 'a' has no path|" },
		/* A section with a mistake of its own is not told to be incomplete, too. */
		{ "[disk \"a\"]\npat = /a\n",
		  "2: 'pat' is no option of this section (did you mean path?)|" },
		{ "[disk \"a\"\npath = /a\n", "1: [disk \"a\": this header has no ']'|" },
		/* The option would be lost; a comment may stand there. */
		{ "[disk \"a\"] ro = yes\npath = /a\n",
		  "1: 'ro = yes' behind the header: expected it on a line of its own|" },
		{ "[disk \"a\"]path = /a\n",
		  "1: 'path = /a' behind the header: expected it on a line of its own|" },
		{ "[disk \"a\"]\t; ro = yes\n[server] #x\n", "1: disk 'a' has no path|" },
		{ "[server]\ndepth=0\nlock=2\n[disk \"a\"]\nx=y\n",
		  "2: depth '0': expected a number from 1 to 9|3: lock '2': expected yes or no|"
		  "5: 'x' is no option of this section (the manual has all options)|" },
		/* Options of another section are not looked up in a manual. */
		{ "[disk \"a\"]\npath = /a\ndepth = 1\n",
		  "3: 'depth' is an option of [server]: expected it below that header|" },
		{ "[server]\npath = /a\n",
		  "2: 'path' is an option of [disk \"NAME\"]: expected it below that header|" },
	};
	struct all all;

	for_each_case(c, cases)
		cr_assert_str_eq(read_text(&all, c->text), c->want, "%s", c->text);
}

/* The longest line is taken whole, and one byte more is refused; blanks at both ends do not
 * count. */
Test(opt_file, long_lines)
{
	static const int lens[] = {
		OPT_FILE_LINE_MAX - 1, OPT_FILE_LINE_MAX, OPT_FILE_LINE_MAX + 1,
		4 * OPT_FILE_LINE_MAX,
	};
	static char text[5 * OPT_FILE_LINE_MAX];
	char want[80];
	struct all all;

	for_each_case(n, lens) {
		snprintf(text, sizeof(text), "[server]\n  dir=%0*d \t\r\nhost=behind\n",
			 *n - 4, 7);
		snprintf(want, sizeof(want), "2: this line has %d bytes: expected at most 8192|",
			 *n);
		cr_assert_str_eq(read_text(&all, text), *n <= OPT_FILE_LINE_MAX ? "" : want);
		cr_assert_str_eq(all.server.hosts, "behind ");
		if (*n <= OPT_FILE_LINE_MAX)
			cr_assert_eq(strlen(all.server.dir), (size_t)*n - 4);
		else
			cr_assert_null(all.server.dir);
	}
}

/* Files of other systems and editors. */
Test(opt_file, ends_of_lines)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "\xef\xbb\xbf[server]\r\ndepth = 3\r\ndir = /d\r\n", "" },
		{ "[server]\r\r\ndepth = 3\r\r\ndir = /d\r", "" },
		{ "[server]\n\rdepth = 3\n\rdir = /d\n\r", "" },
		{ "\v[server]\n\fdepth\v=\f3\n\v \fdir = /d\f\n", "" },
		{ "[server]\ndepth = 3\ndir = /d", "" },
		/* Not a path "/d\rlock = yes". */
		{ "[server]\ndepth = 3\ndir = /d\nhost = a\rlock = yes\n",
		  "4: this line has a carriage return in its "
		  "middle: expected a newline at the end of each line|" },
		{ "[server]\rdepth = 4\rlock = yes\r\n[server]\ndepth = 3\ndir = /d\n",
		  "1: this line has a carriage return in its "
		  "middle: expected a newline at the end of each line|" },
		{ "# one\rlock = yes\n[server]\ndepth = 3\ndir = /d\n",
		  "1: this line has a carriage return in its "
		  "middle: expected a newline at the end of each line|" },
		/* The mark stands in front of a file alone. */
		{ "[server]\n\xef\xbb\xbf" "lock = yes\ndepth = 3\ndir = /d\n",
		  "2: this line begins with a byte order mark: expected none but at the beginning "
		  "of a file|" },
	};
	struct all all;

	for_each_case(c, cases) {
		cr_assert_str_eq(read_text(&all, c->text), c->want, "%s", c->text);
		cr_assert_eq(all.server.depth, 3, "%s", c->text);
		cr_assert_str_eq(all.server.dir, "/d", "%s", c->text);
		cr_assert_not(all.server.lock, "%s", c->text);
		cr_assert_str_eq(all.server.hosts, "", "%s", c->text);
	}
}

/* Quotes around a value are none of its text; other quotes, and a '#' in a word, are. */
Test(opt_file, quotes)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "\"/a b\"", "/a b" }, { "  \" /a \" \r", " /a " }, { "\"/a\" ; c", "/a" },
		{ "\"/a\" # c", "/a" }, { "\"/a\"\t#c", "/a" },
		{ "\"/a # b ; c\" ; d", "/a # b ; c" },
		{ "\"a\"\"b\"", "a\"b" }, { "\"\"\"a\"\"\"", "\"a\"" },
		/* As before there were quotes. */
		{ "a\"b", "a\"b" }, { "\"a", "\"a" }, { "\"a\"b", "\"a\"b" },
		{ "\"a\" b ;c", "\"a\" b" }, { "\"a\";b", "\"a\";b" }, { "a \"b\"", "a \"b\"" },
		{ "/a#1", "/a#1" }, { "/a #1", "/a #1" }, { "#1", "#1" }, { "'a'", "'a'" },
	};
	char text[64], *line = NULL;
	struct all all;
	size_t len;
	FILE *f;

	for_each_case(c, cases) {
		snprintf(text, sizeof(text), "[server]\ndir = %s\n", c->text);
		cr_assert_str_eq(read_text(&all, text), "", "%s", text);
		cr_assert_str_eq(all.server.dir, c->want, "%s", text);
		/* And what is written comes back. */
		f = open_memstream(&line, &len);
		fputs("[server]\n", f);
		opt_line_put(f, "dir", c->want);
		fclose(f);
		cr_assert_str_eq(read_text(&all, line), "", "%s", line);
		cr_assert_str_eq(all.server.dir, c->want, "%s", line);
		free(line);
	}
}

/* What libinih, which took lines apart before, read of files, and where it saw mistakes. */
Test(opt_file, as_libinih_read)
{
	static const struct { const char *text, *mistakes, *dir, *hosts, *disks; } cases[] = {
		{ "[server]\ndir: a:b=c\nhost = x:y ;z\n", "", "a:b=c", "x:y ", "" },
		{ "[server]\ndir = a;b\nhost = a ; b ; c\n", "", "a;b", "a ", "" },
		{ "[server]\ndir =; d\nhost = ;c\n= 4\n", "3 4 ", "; d", "", "" },
		{ "[server]\ndir = a \"quoted \"\nhost = 'a'\nhost = \\n\\\n", "",
		  "a \"quoted \"", "'a' \\n\\ ", "" },
		{ "[server]\nhost = a\n  b\n  host = c\n", "3 ", NULL, "a c ", "" },
		{ "[server]\ndir = \xc3\xa4\xff\x01\n\xc3\xa4 = b\n", "3 ", "\xc3\xa4\xff\x01", "",
		  "" },
		{ "[ server ]\nhost = a\n[server] # behind\nhost = b\n[server\nhost = c\n", "1 5 ",
		  NULL, "b ", "" },
		{ "[disk \"a]b\"]\npath = x\n[disk  \t \"c\"]\npath = y\n[disk\"d\"]\npath = z\n",
		  "1 ", NULL, "", "c=y d=z " },
		{ "[disk \"a;b ;c\"]\npath = x\n[disk \"\xc3\xa9 # e\"]\npath = y\n"
		  "[disk \"f\"g\"]\npath = z\n", "", NULL, "", "a;b ;c=x \xc3\xa9 # e=y f\"g=z " },
		{ "[disk \"a\"] ; [server]\npath = /a b  c\t\n[disk a]\npath = x\n", "3 ", NULL,
		  "", "a=/a b  c " },
		{ "", "", NULL, "", "" }, { "\n\n", "", NULL, "", "" }, { "#", "", NULL, "", "" },
		{ ";", "", NULL, "", "" }, { " ", "", NULL, "", "" }, { "[", "1 ", NULL, "", "" },
		{ "=", "1 ", NULL, "", "" }, { "a", "1 ", NULL, "", "" },
		{ "[]", "1 ", NULL, "", "" }, { "]=", "1 ", NULL, "", "" },
	};

	for_each_case(c, cases) {
		char mistakes[64] = "", disks[256] = "";
		struct all all;

		for (const char *told = read_text(&all, c->text); *told;
		     told = strchr(told, '|') + 1)
			sprintf(mistakes + strlen(mistakes), "%d ", atoi(told));
		for (unsigned i = 0; i < all.ndisks; i++)
			sprintf(disks + strlen(disks), "%s=%s ", all.disks[i].title,
				all.disks[i].path);
		cr_assert_str_eq(mistakes, c->mistakes, "%s", c->text);
		cr_assert_str_eq(disks, c->disks, "%s", c->text);
		cr_assert_str_eq(all.server.hosts, c->hosts, "%s", c->text);
		cr_assert_eq(!all.server.dir, !c->dir, "%s", c->text);
		if (c->dir)
			cr_assert_str_eq(all.server.dir, c->dir);
	}
}

Test(opt_file, any_bytes)
{
	static const char zero[] = "[server]\nlock\0=yes\nhost=a\n";
	struct all all;
	unsigned seed = 7;

	cr_assert_str_eq(read_bytes(&all, sections, 2, zero, sizeof(zero) - 1),
			 "2: this line has a byte of 0|");
	cr_assert_str_eq(all.server.hosts, "a ");
	for (int i = 0; i < 2000; i++) {
		static const char bytes[] = "[]\"=;# \n\r\t\\ad\xef\xbb\xbf";
		char text[64];
		size_t n = 0;

		while (n < sizeof(text)) {
			seed = seed * 1103515245 + 12345;
			text[n++] = bytes[(seed >> 16) % sizeof(bytes)];
		}
		read_bytes(&all, sections, 2, text, n);
	}
}

Test(opt_file, without_sections)
{
	struct all all;
	const char *text = "depth = 4\ndir = /d\n[server]\nlock = yes\n";

	cr_assert_str_eq(read_bytes(&all, flat, 1, text, strlen(text)),
			 "3: [server]: this file has no sections: expected only lines NAME = "
			 "VALUE|");
	cr_assert_eq(all.server.depth, 4);
	cr_assert_str_eq(all.server.dir, "/d");
	cr_assert_not(all.server.lock);
}

Test(opt_file, no_file)
{
	static const struct {
		const char *path, *want;
	} cases[] = {
		{ "/nowhere/at-all", "/nowhere/at-all: No such file or directory: create it; "
		  "rtrs-guide(7) has examples\n" },
		{ "/tmp", "/tmp: expected a regular file\n" },
		{ "/dev/zero", "/dev/zero: expected a regular file\n" },
	};

	for_each_case(c, cases) {
		char told[256] = "";
		FILE *errors = fmemopen(told, sizeof(told), "w");
		struct all all;

		cr_assert_eq(opt_file_read(c->path, sections, 2, &all, &texts, errors), -EINVAL);
		fclose(errors);
		cr_assert_str_eq(told, c->want);
	}
}

/* Nobody writes to the FIFO, so an open() that waits for a writer would not return. */
Test(opt_file, fifo)
{
	char told[256] = "";
	FILE *errors = fmemopen(told, sizeof(told), "w");
	struct all all;

	unlink(path);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_eq(opt_file_read(path, sections, 2, &all, &texts, errors), -EINVAL);
	fclose(errors);
	cr_assert(strstr(told, ": expected a regular file\n"), "%s", told);
}

Test(opt_file, too_much)
{
	struct all all = { 0 };
	char told[256] = "";
	FILE *errors = fmemopen(told, sizeof(told), "w"), *f = fopen(path, "w");
	size_t before = mallinfo2().hblkhd;

	fputs("[server]\ndepth = 3\n", f);
	for (size_t n = 19; n < OPT_FILE_MAX; n++)
		fputc('\n', f);
	fclose(f);
	cr_assert_eq(opt_file_read(path, sections, 2, &all, &texts, errors), 0);
	cr_assert_eq(all.server.depth, 3);
	cr_assert_eq(mallinfo2().hblkhd, before, "the text is freed");
	f = fopen(path, "a");
	fputc('\n', f);
	fclose(f);
	cr_assert_eq(opt_file_read(path, sections, 2, &all, &texts, errors), -EINVAL);
	/* A hole of 1 TiB is not read to its end. */
	cr_assert_eq(truncate(path, (off_t)1 << 40), 0);
	cr_assert_eq(opt_file_read(path, sections, 2, &all, &texts, errors), -EINVAL);
	fclose(errors);
	cr_assert(strstr(told, ": expected at most 16777216 bytes\n"), "%s", told);
}

Test(opt_file, save_without_a_directory)
{
	char *saved = opt_dir_saved("/nowhere/conf"), err[256], want[256];

	snprintf(want, sizeof(want), "%s: cannot make its directory: No such file or directory: "
		 "the user of this program has to own the directory, and a unit has to find it "
		 "when it starts: install -d -o %u /nowhere/conf.d", saved, (unsigned)geteuid());
	cr_assert_eq(opt_dir_save(saved, "#", 1, err, sizeof(err)), -ENOENT);
	cr_assert_str_eq(err, want);
	free(saved);
}

/* ---- absolute names ---- */

Test(opt_file, absolute)
{
	char dir[] = "/tmp/test-opt-file.XXXXXX", link[64], name[80];
	const char *file = "keys/own", *other = "/etc/keys", *none = NULL;
	struct opt_texts kept = { 0 };

	cr_assert(mkdtemp(dir));
	snprintf(link, sizeof(link), "%s.live", dir);
	cr_assert_eq(symlink(dir, link), 0);
	cr_assert_eq(chdir(link), 0);
	/* As a shell leaves it: the name with the link. */
	setenv("PWD", link, 1);
	cr_assert_eq(opt_texts_absolute(&kept, NULL, &file), 0);
	snprintf(name, sizeof(name), "%s/keys/own", link);
	cr_assert_str_eq(file, name);
	/* $PWD of somewhere else does not count. */
	setenv("PWD", "/", 1);
	file = "own";
	cr_assert_eq(opt_texts_absolute(&kept, NULL, &file), 0);
	snprintf(name, sizeof(name), "%s/own", dir);
	cr_assert_str_eq(file, name);
	cr_assert_eq(opt_texts_absolute(&kept, NULL, &other), 0);
	cr_assert_str_eq(other, "/etc/keys");
	cr_assert_eq(opt_texts_absolute(&kept, NULL, &none), 0);
	cr_assert_null(none);
	cr_assert_eq(kept.n, 2);
	/* A directory that is gone has no name. */
	unlink(link);
	rmdir(dir);
	file = "own";
	cr_assert_eq(opt_texts_absolute(&kept, NULL, &file), 0);
	cr_assert_str_eq(file, "own");
	cr_assert_eq(chdir("/"), 0);
	file = "own";
	cr_assert_eq(opt_texts_absolute(&kept, NULL, &file), 0);
	cr_assert_str_eq(file, "/own");
	/* And one of another directory. */
	file = "own";
	cr_assert_eq(opt_texts_absolute(&kept, "/srv", &file), 0);
	cr_assert_str_eq(file, "/srv/own");
	cr_assert_str_eq(opt_texts_directory(&kept), "/");
	opt_texts_free(&kept);
}
