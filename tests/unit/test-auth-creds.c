/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of authentication together: which of them ask for keys, whose files are alike, what
 * a server is called, and with which names of a server a client goes on. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "auth-creds.h"
#include "unit.h"
#include "util.h"

static char file[64], err[512];
static const char *machine = "store1";	/* NULL: nobody knows its name */

int __wrap_gethostname(char *name, size_t len);

int __wrap_gethostname(char *name, size_t len)
{
	if (machine)
		strncpy(name, machine, len);
	return machine ? 0 : -1;
}

static void make_file(void)
{
	static const char key[] = "gw1:00112233445566778899aabbccddeeff\n";
	int fd;

	strcpy(file, "/tmp/test-auth-creds.XXXXXX");
	fd = mkstemp(file);
	cr_assert_eq(write(fd, key, strlen(key)), (ssize_t)strlen(key));
	close(fd);
}

static void remove_file(void)
{
	unlink(file);
}

TestSuite(auth_creds, .init = make_file, .fini = remove_file);

/* Keys are read where they may be used, and nowhere else. */
Test(auth_creds, which_options_read_keys)
{
	static const struct {
		bool server, psk, asked;
		enum auth_mode mode, is;
		bool reads;
	} rows[] = {
		{ false, false, false, AUTH_MODE_NONE, AUTH_MODE_NONE, false },
		{ false, true, false, AUTH_MODE_NONE, AUTH_MODE_REQUIRE, true },
		{ false, true, true, AUTH_MODE_NONE, AUTH_MODE_NONE, false },
		{ false, true, true, AUTH_MODE_PSK, AUTH_MODE_PSK, true },
		{ true, false, false, AUTH_MODE_NONE, AUTH_MODE_NONE, false },
		{ true, true, false, AUTH_MODE_NONE, AUTH_MODE_REQUIRE, true },
		/* A listener may ask: auth= of --listen. */
		{ true, true, true, AUTH_MODE_NONE, AUTH_MODE_NONE, true },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct auth_conf conf = {
			.server = rows[i].server, .asked = rows[i].asked, .mode = rows[i].mode,
			.psk = rows[i].psk ? file : NULL,
		};
		struct auth_creds *creds;

		cr_assert_eq(auth_creds_create(&conf, &creds, err, sizeof(err)), 0, "%s", err);
		cr_assert_eq(!!creds, rows[i].reads, "row %u", i);
		cr_assert_eq(auth_conf_mode(&conf), rows[i].is, "row %u", i);
		cr_assert_eq(auth_mode(creds), rows[i].is, "row %u", i);
		cr_assert_eq(!!auth_secrets(creds), rows[i].reads, "row %u", i);
		if (creds)
			cr_assert_str_eq(creds->name, rows[i].server ? machine : "");
		auth_creds_destroy(creds);
	}
}

Test(auth_creds, options_that_need_each_other)
{
	static const struct {
		struct auth_conf conf;
		const char *why;
	} rows[] = {
		{ { .username = "gw1" }, "auth-username=gw1: expected auth-psk=FILE" },
		{ { .asked = true, .mode = AUTH_MODE_PSK }, "auth=psk: expected auth-psk=FILE" },
		{ { .hostname = "store1", .psk = file, .asked = true, .mode = AUTH_MODE_PSK },
		  "auth-hostname=store1: expected auth-psk=FILE beside it, and auth=require" },
	};
	struct auth_creds *creds;

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		cr_assert_eq(auth_creds_create(&rows[i].conf, &creds, err, sizeof(err)), -EINVAL);
		cr_assert_null(creds);
		cr_assert_not_null(strstr(err, rows[i].why), "%s", err);
	}
}

Test(auth_creds, names_of_servers)
{
	struct auth_conf conf = { .psk = file, .hostname = "store1,store22" };
	struct auth_creds *creds;

	cr_assert_eq(auth_creds_create(&conf, &creds, err, sizeof(err)), 0, "%s", err);
	cr_assert(auth_creds_want(creds, "store1"));
	cr_assert(auth_creds_want(creds, "store22"));
	cr_assert(!auth_creds_want(creds, "store2"));
	cr_assert(!auth_creds_want(creds, "store1,store22"));
	cr_assert(!auth_creds_want(creds, ""));
	auth_creds_destroy(creds);
	conf.hostname = NULL;
	cr_assert_eq(auth_creds_create(&conf, &creds, err, sizeof(err)), 0, "%s", err);
	cr_assert(auth_creds_want(creds, "any"));
	auth_creds_destroy(creds);
}

/* A server tells a name that clients take, whatever the machine is called. */
Test(auth_creds, name_of_a_server)
{
	static char full[] = { [0 ... PSK_NAME_MAX] = 'x', '\0' };
	static const char *const rows[][2] = {
		{ " a b\x7f\tc\x1f", "?a?b??c?" }, { "", "?" }, { NULL, "?" },
		{ full, full + 1 },
	};

	for_each_case(row, rows) {
		const struct auth_conf conf = { .server = true, .psk = file };
		struct auth_creds *creds;

		machine = (*row)[0];
		cr_assert_eq(auth_creds_create(&conf, &creds, err, sizeof(err)), 0, "%s", err);
		cr_assert_str_eq(creds->name, (*row)[1]);
		auth_creds_destroy(creds);
	}
}

/* A file that is there on one side alone is another one. */
Test(auth_creds, files_that_are_the_same)
{
	static const char *const names[] = { NULL, "a", "b" };

	for (unsigned a = 0; a < 3; a++) {
		for (unsigned b = 0; b < 3; b++) {
			const struct fab_tls_conf none = { 0 }, psk_a = { .psk = names[a] },
				psk_b = { .psk = names[b] }, cert_a = { .certificates = names[a] },
				cert_b = { .certificates = names[b] };
			const struct auth_conf no = { 0 }, auth_a = { .psk = names[a] },
				auth_b = { .psk = names[b] };

			cr_assert_eq(auth_files_same(&psk_a, &no, &psk_b, &no), a == b);
			cr_assert_eq(auth_files_same(&cert_a, &no, &cert_b, &no), a == b);
			cr_assert_eq(auth_files_same(&none, &auth_a, &none, &auth_b), a == b);
		}
	}
}
