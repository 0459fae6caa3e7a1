/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of keys: what is a key, and what is told of other files; never with a part of a key. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "names.h"
#include "psk.h"
#include "util.h"

#define HEX "00112233445566778899aabbccddeeff"		/* 16 bytes */
#define MARK "\xef\xbb\xbf"

static char file[64], err[256];

static void make_file(void)
{
	strcpy(file, "/tmp/test-psk.XXXXXX");
	close(mkstemp(file));
	err[0] = '\0';
}

static void remove_file(void)
{
	unlink(file);
}

TestSuite(psk, .init = make_file, .fini = remove_file);

static int read_text(const char *text, size_t len, struct psks *psks)
{
	FILE *f = fopen(file, "w");

	cr_assert_eq(fwrite(text, 1, len, f), len);
	cr_assert_eq(fclose(f), 0);
	return psk_read(file, geteuid(), psks, err, sizeof(err));
}

Test(psk, keys_of_a_file)
{
	static const char text[] = "alice:" HEX "\n\nbob:" HEX HEX "\n"
				   "c:AABBCCDDEEFF00112233445566778899";
	static const uint8_t key[] = { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
				       0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff };
	struct psks psks;
	const struct psk *psk;

	cr_assert_eq(read_text(text, sizeof(text) - 1, &psks), 0, "%s", err);
	cr_assert_eq(psks.n, 3);
	psk = psk_find(&psks, "alice", 5);
	cr_assert(psk);
	cr_assert_eq(psk->len, 16);
	cr_assert(!memcmp(psk->key, key, 16));
	cr_assert_eq(psk_find(&psks, "bob", 3)->len, 32);
	cr_assert_eq(psk_find(&psks, "c", 1)->key[0], 0xaa);
	/* The whole name, and nothing but the name. */
	cr_assert_not(psk_find(&psks, "alic", 4));
	cr_assert_not(psk_find(&psks, "alice\0", 6));
	cr_assert_not(psk_find(&psks, "", 0));
	psk_free(&psks);
	cr_assert_eq(psks.n, 0);
}

Test(psk, what_is_told_of_other_files)
{
	static const struct {
		const char *text, *told;
		int rc;
	} cases[] = {
		{ "", "expected a line NAME:KEY", -EINVAL },
		{ "\n\n", "expected a line NAME:KEY", -EINVAL },
		{ "alice\n", "line 1: expected NAME:KEY", -EINVAL },
		{ "a:" HEX "\n:" HEX "\n", "line 2: expected a name", -EINVAL },
		{ "a b:" HEX, "line 1: expected a name", -EINVAL },
		{ "# alice\n#a:" HEX "\n#alice:" HEX "\n #616c:" HEX, "expected a line NAME:KEY",
		  -EINVAL },
		{ "#616c:001122", "line 1: expected a key of 32 to 128", -EINVAL },
		{ "# one\n#6a:" HEX "\nj:" HEX, "line 3: expected each name once", -EINVAL },
		{ "a:" HEX "\n\na:" HEX, "line 3: expected each name once", -EINVAL },
		{ "a:", "line 1: expected a key of 32 to 128", -EINVAL },
		{ "a:001122", "line 1: expected a key of 32 to 128", -EINVAL },
		{ "a:" HEX "0", "line 1: expected a key of 32 to 128", -EINVAL },
		{ "a:" HEX "0g", "line 1: expected a key of 32 to 128", -EINVAL },
		{ "a:" HEX " ", "line 1: expected a key of 32 to 128", -EINVAL },
		{ "a:" HEX HEX HEX HEX "00", "line 1: expected a key of 32 to 128", -EINVAL },
		{ "a:" HEX "\r\r\n", "line 1: expected a key of 32 to 128", -EINVAL },
		{ "a:" HEX "0", "an even number", -EINVAL },
		{ "a:" HEX "\r\n#\r\n\r\na:" HEX "\r\n", "line 4: expected each name once: a "
		  "further key of one client has a label, as NAME/b", -EINVAL },
		{ "\r\n#\r\n", "expected a line NAME:KEY", -EINVAL },
		{ MARK, "expected a line NAME:KEY", -EINVAL },
		{ "a:" HEX "\n" MARK "b:" HEX, "line 2: begins with a byte order mark", -EINVAL },
		{ MARK MARK "a:" HEX, "line 1: begins with a byte order mark", -EINVAL },
	};
	struct psks psks;

	for_each_case(c, cases) {
		cr_assert_eq(read_text(c->text, strlen(c->text), &psks), c->rc, "%s", c->text);
		cr_assert(strstr(err, c->told), "'%s': %s", c->text, err);
		cr_assert_not(strstr(err, "0011"), "a secret in '%s'", err);
		cr_assert_eq(psks.n, 0);
	}
	cr_assert_eq(read_text("a:\0", 3, &psks), -EINVAL);
	cr_assert(strstr(err, "not a zero byte"));
}

/* As GnuTLS reads them: comments, blank lines, and names as digits. */
Test(psk, comments)
{
	static const char text[] = "# keys of gw\n  \n\t\n#a comment: with a colon\n"
		"#616c696365:" HEX "\n"
		"  # blanks in front\n#0a:" HEX "\n#6100:" HEX "\n#:" HEX "\nbob:" HEX "\n#61";
	char longest[1 + 2 * 129 + sizeof(HEX) + 1];
	struct psks psks;

	cr_assert_eq(read_text(text, strlen(text), &psks), 0, "%s", err);
	cr_assert_eq(psks.n, 2);
	cr_assert_str_eq(psks.all[0].name, "alice");
	cr_assert_str_eq(psks.all[1].name, "bob");
	cr_assert_eq(psks.all[0].len, psks.all[1].len);
	cr_assert_arr_eq(psks.all[0].key, psks.all[1].key, psks.all[0].len);
	psk_free(&psks);
	/* An editor's mark is no part of the first name, or comment. */
	for (unsigned comment = 0; comment < 2; comment++) {
		const char *marked = comment ? MARK "#\na:" HEX : MARK "a:" HEX;

		cr_assert_eq(read_text(marked, strlen(marked), &psks), 0, "%s", err);
		cr_assert_eq(psks.n, 1);
		cr_assert_str_eq(psks.all[0].name, "a");
		psk_free(&psks);
	}
	for (unsigned n = 127; n <= 129; n++) {
		longest[0] = '#';
		for (unsigned i = 0; i < n; i++)
			memcpy(longest + 1 + 2 * i, "61", 2);
		snprintf(longest + 1 + 2 * n, sizeof(longest) - 1 - 2 * n, ":%s", HEX);
		cr_assert_eq(read_text(longest, strlen(longest), &psks), n > 128 ? -EINVAL : 0,
			     "%s", err);
		cr_assert(n > 128 || strlen(psks.all[0].name) == n);
		psk_free(&psks);
	}
}

Test(psk, too_much)
{
	char *text = malloc(1 << 20 | 2);
	struct psks psks;

	memset(text, '\n', 1 << 20 | 2);
	cr_assert_eq(read_text(text, (1 << 20) + 1, &psks), -EFBIG);
	cr_assert(strstr(err, "expected at most 1048576 bytes"), "%s", err);
	cr_assert_eq(read_text(text, 4097, &psks), -EFBIG);
	cr_assert(strstr(err, "expected at most 4096 lines"), "%s", err);
	cr_assert_eq(read_text(text, 4 * 4096, &psks), -EFBIG);
	/* The last line has a key. */
	for (int n = 4095; n <= 4096; n++) {
		static const char line[] = "gw:00112233445566778899aabbccddeeff\n";

		memset(text, '\n', (size_t)n);
		memcpy(text + n - 1, line, sizeof(line));
		cr_assert_eq(read_text(text, (size_t)n - 1 + strlen(line), &psks), 0, "%s", err);
		cr_assert_eq(psks.n, 1u);
		cr_assert_str_eq(psks.all[0].name, "gw");
		psk_free(&psks);
	}
	free(text);
}

Test(psk, modes)
{
	struct psks psks;

	for (unsigned mode = 0; mode < 0100; mode++) {
		int rc;

		cr_assert_eq(read_text("a:" HEX, strlen("a:" HEX), &psks), 0);
		psk_free(&psks);
		chmod(file, 0600 | mode);
		rc = psk_read(file, geteuid(), &psks, err, sizeof(err));
		cr_assert_eq(rc, mode ? -EACCES : 0, "%o", mode);
		psk_free(&psks);
		chmod(file, 0600);
	}
	chmod(file, 0640);
	cr_assert_eq(psk_read(file, geteuid(), &psks, err, sizeof(err)), -EACCES);
	cr_assert_str_eq(err, "expected mode 0600, not 0640: others could read the key");
	cr_assert_eq(psk_read("/tmp", geteuid(), &psks, err, sizeof(err)), -EINVAL);
	cr_assert_str_eq(err, "expected a regular file");
	cr_assert_eq(psk_read("/none-such", geteuid(), &psks, err, sizeof(err)), -ENOENT);
}

static const char *below(const char *dir)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/below", dir);
	return path;
}

/* systemd gives a credential of a unit to root, with an access control list for the unit's user. */
Test(psk, credentials)
{
	static const struct {
		mode_t dir, file;
		int want;
	} cases[] = {
		{ 0500, 0400, 0 }, { 0500, 0440, 0 }, { 0550, 0440, 0 },
		{ 0500, 0460, -EACCES }, { 0500, 0444, -EACCES }, { 0500, 0450, -EACCES },
		{ 0501, 0440, -EACCES }, { 0504, 0440, -EACCES }, { 0520, 0440, -EACCES },
	};
	char dir[] = "/tmp/test-psk-dir.XXXXXX", other[160];
	struct psks psks;

	cr_assert(mkdtemp(dir));
	unlink(file);
	umask(0077);
	snprintf(file, sizeof(file), "%s/gw1.psk", dir);
	for_each_case(c, cases) {
		setenv("CREDENTIALS_DIRECTORY", dir, 1);
		cr_assert_eq(chmod(dir, 0700), 0);
		cr_assert_eq(read_text("a:" HEX, strlen("a:" HEX), &psks), 0, "%s", err);
		psk_free(&psks);
		cr_assert_eq(chmod(file, c->file), 0);
		cr_assert_eq(chmod(dir, c->dir), 0);
		/* Credentials of systemd have the group root. */
		cr_assert_eq(psk_read(file, geteuid(), &psks, err, sizeof(err)),
			     getegid() && c->file != 0400 ? -EACCES : c->want,
			     "%o %o", (unsigned)c->dir, (unsigned)c->file);
		psk_free(&psks);
		/* Nor is a file elsewhere one, whatever leads there. */
		cr_assert_eq(chmod(dir, 0700), 0);
		cr_assert_eq(mkdir(below(dir), 0700), 0);
		setenv("CREDENTIALS_DIRECTORY", below(dir), 1);
		snprintf(other, sizeof(other), "%s/../gw1.psk", below(dir));
		cr_assert_eq(chmod(dir, c->dir), 0);
		cr_assert_eq(psk_read(other, geteuid(), &psks, err, sizeof(err)),
			     c->file == 0400 ? 0 : -EACCES);
		psk_free(&psks);
		cr_assert_eq(chmod(dir, 0700), 0);
		rmdir(below(dir));
		cr_assert_eq(chmod(dir, c->dir), 0);
		/* Another group may read, really. */
		if (!geteuid()) {
			setenv("CREDENTIALS_DIRECTORY", dir, 1);
			cr_assert_eq(chown(file, (uid_t)-1, 1), 0);
			cr_assert_eq(psk_read(file, geteuid(), &psks, err, sizeof(err)),
				     c->file == 0400 ? 0 : -EACCES);
			psk_free(&psks);
			cr_assert_eq(chown(file, (uid_t)-1, 0), 0);
		}
		/* A directory whose name only begins alike, and none. */
		snprintf(other, sizeof(other), "%.*s", (int)strlen(dir) - 1, dir);
		setenv("CREDENTIALS_DIRECTORY", other, 1);
		cr_assert_eq(psk_read(file, geteuid(), &psks, err, sizeof(err)),
			     c->file == 0400 ? 0 : -EACCES);
		psk_free(&psks);
		unsetenv("CREDENTIALS_DIRECTORY");
		cr_assert_eq(psk_read(file, geteuid(), &psks, err, sizeof(err)),
			     c->file == 0400 ? 0 : -EACCES);
		psk_free(&psks);
		cr_assert_eq(chmod(dir, 0700), 0);
		unlink(file);
	}
	rmdir(dir);
}

Test(psk, owners)
{
	struct psks psks;
	struct stat st;
	char want[256], user[WHO_TEXT_LEN];

	cr_assert_eq(read_text("a:" HEX, strlen("a:" HEX), &psks), 0);
	psk_free(&psks);
	cr_assert_eq(stat(file, &st), 0);
	/* A program of another user: who may open the file says that the program may not. */
	snprintf(want, sizeof(want), "is of %s, who could change the key, and user 4711 reads it: "
		 "expected a file of the reader or of root", who_text(st.st_uid, user));
	if (!st.st_uid)
		snprintf(want, sizeof(want), "is of user 0 (root) with mode 0600, and user 4711, "
			 "who runs the program, may not read it: chown it");
	cr_assert_eq(psk_read(file, 4711, &psks, err, sizeof(err)), -EACCES);
	cr_assert_str_eq(err, want);
	if (geteuid())
		return;
	cr_assert_eq(chown(file, 4711, 0), 0);
	cr_assert_eq(psk_read(file, 0, &psks, err, sizeof(err)), -EACCES);
	/* Who checks the file of a unit as root is not sent to chown it. */
	cr_assert_str_eq(err, "is of user 4711, who could change the key, and user 0 (root) reads "
			 "it: expected a file of the reader or of root; a unit reads it as its own "
			 "user: check it with runuser -u USER");
	cr_assert_eq(psk_read(file, 4711, &psks, err, sizeof(err)), 0);
	psk_free(&psks);
}

Test(psk, a_line_is_read_back)
{
	uint8_t key[PSK_KEY_NEW];
	char line[PSK_LINE_MAX], name[PSK_NAME_MAX + 2];
	struct psks psks;

	for (unsigned i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 37 + 200);
	memset(name, 'x', sizeof(name));
	name[PSK_NAME_MAX] = '\0';
	cr_assert_not(secret_name_fault(name));
	psk_line(name, key, line);
	cr_assert_eq(read_text(line, strlen(line), &psks), 0, "%s", err);
	cr_assert_str_eq(psks.all[0].name, name);
	cr_assert_eq(psks.all[0].len, sizeof(key));
	cr_assert(!memcmp(psks.all[0].key, key, sizeof(key)));
	psk_free(&psks);
	name[PSK_NAME_MAX] = 'x';
	name[PSK_NAME_MAX + 1] = '\0';
	cr_assert(secret_name_fault(name));
}

/* A key that stays keeps its number and its age; the same name with other bytes is another key. */
Test(psk, keys_that_stay)
{
	static const char before[] = "stays:" HEX "\nchanges:" HEX "\nlonger:" HEX "\n";
	static const char after[] = "changes:ff112233445566778899aabbccddeeff\nstays:" HEX "\n"
				    "longer:" HEX "00\nnew:" HEX "\n";
	struct psks old, now;
	uint64_t first;

	cr_assert_eq(read_text(before, sizeof(before) - 1, &old), 0, "%s", err);
	cr_assert_eq(read_text(after, sizeof(after) - 1, &now), 0, "%s", err);
	first = old.all[0].serial;
	cr_assert(first && now.all[1].serial > old.all[2].serial);
	old.all[0].since_s = 5;
	psk_adopt(&now, &old);
	cr_assert_eq(psk_find(&now, "stays", 5)->serial, first);
	cr_assert_eq(psk_find(&now, "stays", 5)->since_s, 5);
	cr_assert_eq(psk_by_serial(&now, first), psk_find(&now, "stays", 5));
	cr_assert_null(psk_by_serial(&now, old.all[1].serial));
	cr_assert_null(psk_by_serial(&now, old.all[2].serial));
	cr_assert_null(psk_by_serial(&now, 0));
	psk_free(&old);
	psk_free(&now);
}

Test(psk, keys_in_common)
{
	static const char before[] = "gone:" HEX "\nstays:" HEX "\nchanges:" HEX "\nlast:" HEX "\n";
	static const char after[] = "last:" HEX "\nchanges:ff112233445566778899aabbccddeeff\n"
				    "new:" HEX "\nstays:" HEX "\n";
	static const char others[] = "new:" HEX "\nstays:" HEX "00\n";
	struct psks old, now, both;

	cr_assert_eq(read_text(before, sizeof(before) - 1, &old), 0, "%s", err);
	cr_assert_eq(read_text(after, sizeof(after) - 1, &now), 0, "%s", err);
	cr_assert_eq(psk_common(&old, &now, &both), 0);
	cr_assert_eq(both.n, 2);
	cr_assert_str_eq(both.all[0].name, "stays");
	cr_assert_str_eq(both.all[1].name, "last");
	/* They are the same keys, and those of @old are left. */
	cr_assert_eq(both.all[0].serial, old.all[1].serial);
	cr_assert_eq(both.all[1].serial, old.all[3].serial);
	cr_assert_eq(old.n, 4);
	psk_free(&both);
	psk_free(&now);
	cr_assert_eq(read_text(others, sizeof(others) - 1, &now), 0, "%s", err);
	cr_assert_eq(psk_common(&old, &now, &both), 0);
	cr_assert_eq(both.n, 0);
	psk_free(&both);
	psk_free(&now);
	psk_free(&old);
}

Test(psk, identities)
{
	static const struct {
		const char *name, *identity;
	} cases[] = {
		{ "gw1", "psk:gw1" }, { "gw1/2026", "psk:gw1" }, { "a/b/c", "psk:a" },
		{ "a,b", "psk:a,b" },
	};
	char buf[PSK_NAME_MAX + 8];

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++)
		cr_assert_str_eq(secret_name_identity(cases[i].name, buf, sizeof(buf)),
				 cases[i].identity);
	cr_assert(secret_name_fault("/x"));
}
