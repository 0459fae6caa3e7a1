/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the lines of the log go: stderr, in the form that suits who reads it. */
#ifndef SINK_H
#define SINK_H

#include <stdbool.h>

#include "log.h"

/* For log_init().  The journal, if stderr is one, takes the level from a prefix and writes down the
 * time.  Else it is the person who typed the command line, until the server runs (@runs): then
 * nobody else writes down when a line came. */
log_sink_fn *sink_for(bool runs);

#endif
