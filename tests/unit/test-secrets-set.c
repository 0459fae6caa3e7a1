/* SPDX-License-Identifier: BSD-3-Clause */
/* A reload takes keys away and brings keys, with a line of each; the names of the keys of an
 * identity. */
#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "secrets-set.h"

#define HEX "00112233445566778899aabbccddeeff"

static char file[64], err[512];
static unsigned nended;
static struct secrets *s;
static const struct changes_ops ops;

static void write_keys(const char *text)
{
	FILE *f = fopen(file, "w");

	cr_assert(f && !fchmod(fileno(f), 0600) && fputs(text, f) >= 0 && !fclose(f));
}

/* The keys of @text are those of @s. */
static void begin(const char *text, enum secrets_kind kind, bool server, bool nbd)
{
	struct secrets_conf conf = { .kind = kind, .server = server, .nbd = nbd, .file = file };

	strcpy(file, "/tmp/test-secrets-set.XXXXXX");
	close(mkstemp(file));
	write_keys(text);
	cr_assert(!secrets_create(&conf, &s, err, sizeof(err)), "%s", err);
	nended = 0;
}

static void end(void)
{
	secrets_destroy(s);
	unlink(file);
}

/* Have @set read a file with the keys of @text. */
static void read_set(struct secrets_set *set, const char *text)
{
	write_keys(text);
	secrets_set_add(set, s, file);
	cr_assert(secrets_set_read(set, stderr));
}

static unsigned end_paths(void *arg, uint64_t key)
{
	cr_assert_eq(arg, &nended);
	cr_assert(key && !secrets_has_key(s, key));
	return nended++;
}

static void names_are(const struct psks *psks, const char *want)
{
	char names[256] = "";
	size_t at = 0;

	for (unsigned i = 0; i < psks->n; i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s ", psks->all[i].name);
	cr_assert_str_eq(names, want);
}

/* The first key, the last one and one between; each is told in the order of the file. */
Test(secrets_set, takes_away_then_gives)
{
	static const struct {
		enum secrets_kind kind;
		bool nbd;
		const char *gone, *come;
	} cases[] = {
		{ SECRETS_TLS_KEYS, false,
		  "-key a\n-key c (1 path ended)\n-key e (2 paths ended)\n",
		  "+key n\n+key o\n" },
		{ SECRETS_AUTH_KEYS, false,
		  "-auth key a\n-auth key c (1 path ended)\n-auth key e (2 paths ended)\n",
		  "+auth key n\n+auth key o\n" },
		{ SECRETS_TLS_KEYS, true,
		  "-nbd key a\n-nbd key c (1 path ended)\n-nbd key e (2 paths ended)\n",
		  "+nbd key n\n+nbd key o\n" },
	};

	for_each_case(c, cases) {
		struct changes queue = { 0 };
		struct secrets_change change = { .queued = { .queue = &queue } };
		char *lines, *report;
		size_t len;
		FILE *out;

		list_init(&queue.all);
		begin("a:" HEX "\nb:" HEX "\nc:" HEX "\nd:" HEX "\ne:" HEX "\n", c->kind, true,
		      c->nbd);
		list_add_tail(&queue.all, &change.queued.link);
		read_set(&change.set, "n:" HEX "\nb:" HEX "\nd:" HEX "\no:" HEX "\n");
		cr_assert(!secrets_change_withdraw(&change, end_paths, &nended, &lines));
		cr_assert_str_eq(lines, c->gone);
		cr_assert_str_eq(change.withdrawn, c->gone);
		free(lines);
		names_are(&s->psks, "b d ");

		/* Nothing is taken away twice, and the lines of before stay. */
		cr_assert(!secrets_change_withdraw(&change, end_paths, &nended, &lines));
		cr_assert_str_eq(lines, "");
		cr_assert_str_eq(change.withdrawn, c->gone);
		cr_assert_eq(nended, 3);
		free(lines);

		out = open_memstream(&report, &len);
		secrets_set_give(&change.set, out);
		fclose(out);
		cr_assert_str_eq(report, c->come);
		free(report);
		names_are(&s->psks, "n b d o ");
		secrets_change_free(&change);
		cr_assert(!change.set.n && !change.withdrawn);
		end();
	}
}

/* A change that was read before another one, and whose turn comes later. */
Test(secrets_set, brings_nothing_that_is_gone_meanwhile)
{
	static const struct {
		bool server;
		const char *before, *earlier, *later, *left, *kept;
	} cases[] = {
		{ true, "a:" HEX "\n", "a:" HEX "\nb:" HEX "\nc:" HEX "\n",
		  "b:" HEX "\nd:" HEX "\n", "", "b " },
		/* A client keeps its key. */
		{ false, "a:" HEX "\n", "b:" HEX "\n", "c:" HEX "\n", "a ", "b " },
	};

	for_each_case(c, cases) {
		struct changes queue = { 0 };
		struct secrets_change earlier = { .queued = { .queue = &queue, .ops = &ops } };
		struct secrets_change later = earlier;
		char *lines;

		list_init(&queue.all);
		begin(c->before, SECRETS_TLS_KEYS, c->server, false);
		list_add_tail(&queue.all, &earlier.queued.link);
		read_set(&earlier.set, c->earlier);
		list_add_tail(&queue.all, &later.queued.link);
		read_set(&later.set, c->later);
		cr_assert(!secrets_change_withdraw(&later, end_paths, &nended, &lines));
		free(lines);
		names_are(&s->psks, c->left);
		names_are(&earlier.set.all[0].psks, c->kept);
		secrets_change_free(&earlier);
		secrets_change_free(&later);
		end();
	}
}

Test(secrets_set, names_of_an_identity)
{
	static const struct {
		const char *identity;
		unsigned n;
		const char *names;
	} cases[] = {
		{ "psk:a", 3, "a, a/new, a/old" },
		{ "psk:a/new", 1, "a/new" },
		{ "psk:b", 1, "b" },
		{ "psk:c", 0, "" },
		{ "psk:a/none", 0, "" },
	};
	char buf[64], small[6];

	begin("a:" HEX "\nb:" HEX "\na/new:" HEX "\na/old:" HEX "\n", SECRETS_AUTH_KEYS, true,
	      false);
	for_each_case(c, cases) {
		cr_assert_eq(secrets_list(s, c->identity, buf, sizeof(buf)), c->n, "%s",
			     c->identity);
		cr_assert_str_eq(buf, c->names);
		cr_assert_eq(secrets_name(s, c->identity), c->n > 0, "%s", c->identity);
		cr_assert_eq(secrets_list(NULL, c->identity, buf, sizeof(buf)), 0);
		cr_assert_str_eq(buf, "");
	}
	cr_assert_eq(secrets_list(s, "psk:a", small, sizeof(small)), 3);
	cr_assert_str_eq(small, "a, a/");
	end();
}
