/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints a table of states as a graph for Graphviz.  A program for each end includes this, because both ends
 * cannot be linked into one. */
#ifndef FSM_DOT_H
#define FSM_DOT_H

#include <stdio.h>
#include <string.h>

#include "fsm.h"
#include "util.h"

static inline void fsm_dot_print(const struct fsm *f, const char *whose)
{
	printf("/* Made by make doc from the table of a %s's %s. */\ndigraph %s {\n", whose, f->name,
	       f->name);
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

/* The table of @fsms that is named on the command line.  Returns main()'s status. */
static inline int fsm_dot(int argc, char **argv, const struct fsm *const *fsms, unsigned n, const char *whose)
{
	for (unsigned i = 0; argc == 2 && i < n; i++) {
		if (!strcmp(argv[1], fsms[i]->name)) {
			fsm_dot_print(fsms[i], whose);
			return 0;
		}
	}
	fprintf(stderr, "usage: %s TABLE\n", argv[0]);
	return 1;
}

#endif
