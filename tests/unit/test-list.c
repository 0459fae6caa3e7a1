/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "list.h"

struct item {
	char name;
	struct list link;
};

static struct item items[5] = { { 'a', { 0 } }, { 'b', { 0 } }, { 'c', { 0 } }, { 'd', { 0 } },
				{ 'e', { 0 } } };

/* What stands on the list, read in both directions. */
static void expect(struct list *l, const char *names)
{
	size_t n = strlen(names);
	struct list *e = l->prev;
	struct item *it;
	char got[8] = "";
	size_t i = 0;

	list_for_each(it, l, link)
		got[i++] = it->name;
	cr_assert_str_eq(got, names);
	while (e != l) {
		cr_assert_eq(list_entry(e, struct item, link)->name, names[--n]);
		e = e->prev;
	}
	cr_assert_eq(n, 0);
	cr_assert_eq(list_empty(l), !*names);
}

static void fill(struct list *l, unsigned from, unsigned to)
{
	list_init(l);
	for (unsigned i = from; i < to; i++)
		list_add_tail(l, &items[i].link);
}

Test(list, add)
{
	struct list l = LIST_INIT(l);

	expect(&l, "");
	list_add_tail(&l, &items[1].link);
	list_add_head(&l, &items[0].link);
	list_add_tail(&l, &items[3].link);
	list_insert_before(&items[3].link, &items[2].link);
	expect(&l, "abcd");
}

Test(list, del)
{
	struct list l;

	fill(&l, 0, 5);
	list_del(&items[2].link);
	expect(&l, "abde");
	cr_assert(list_empty(&items[2].link));
	list_del(&items[2].link);	/* an unlinked entry may be removed again */
	list_del(&items[0].link);
	list_del(&items[4].link);
	expect(&l, "bd");
}

Test(list, pop)
{
	struct list l;

	fill(&l, 0, 2);
	cr_assert_eq(list_pop(&l), &items[0].link);
	cr_assert(list_empty(&items[0].link));
	cr_assert_eq(list_pop(&l), &items[1].link);
	cr_assert_null(list_pop(&l));
	expect(&l, "");
}

Test(list, splice)
{
	struct list to, from;

	fill(&to, 0, 2);
	fill(&from, 2, 5);
	list_splice_tail(&to, &from);
	expect(&to, "abcde");
	expect(&from, "");
	list_splice_tail(&to, &from);
	expect(&to, "abcde");
	list_splice_tail(&from, &to);
	expect(&from, "abcde");
	expect(&to, "");
}

Test(list, remove_while_walking)
{
	struct item *it, *tmp;
	struct list l;

	fill(&l, 0, 5);
	list_for_each_safe(it, tmp, &l, link) {
		if (it->name != 'c')
			list_del(&it->link);
	}
	expect(&l, "c");
}
