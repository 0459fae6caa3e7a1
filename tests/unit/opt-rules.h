/* SPDX-License-Identifier: BSD-3-Clause */
/* What is true of each table of options, whatever the program. */
#ifndef TESTS_OPT_RULES_H
#define TESTS_OPT_RULES_H

#include "opt.h"

/* Check @table, whose values go to a struct of @size bytes and whose options are in the manual
 * man/@manual: rows, help, manual. */
void opt_rules(const struct opt_table *table, size_t size, const char *manual);

#endif
