/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints a table of states as a graph for Graphviz: fsm-dot session|path|connection */
#include <stdio.h>
#include <string.h>

#include "clt-fsm.h"
#include "util.h"

static void print(const struct fsm *f)
{
	printf("/* Made by make doc from the table of a client's %s. */\ndigraph %s {\n", f->name, f->name);
	printf("\tnode [shape=box, style=rounded];\n");
	for (unsigned s = 0; s < f->nstates; s++)
		printf("\ts%u [label=\"%s\"];\n", s, f->states[s]);
	for (unsigned i = 0; i < f->nrows; i++) {
		const struct fsm_row *row = &f->rows[i];

		for (unsigned s = 0; s < f->nstates; s++) {
			if (row->next != FSM_STAY && (row->states & 1u << s))
				printf("\ts%u -> s%d [label=\"%s%s%s\"];\n", s, row->next, f->events[row->event],
				       row->action ? "\\n" : "", row->action ? row->what : "");
		}
	}
	printf("}\n");
}

int main(int argc, char **argv)
{
	static const struct fsm *const fsms[] = { &clt_sess_fsm, &clt_path_fsm, &clt_con_fsm };

	for (unsigned i = 0; argc == 2 && i < ARRAY_SIZE(fsms); i++) {
		if (!strcmp(argv[1], fsms[i]->name)) {
			print(fsms[i]);
			return 0;
		}
	}
	fprintf(stderr, "usage: fsm-dot session|path|connection\n");
	return 1;
}
