/* SPDX-License-Identifier: BSD-3-Clause */
/* The sink of the log: lines to stderr, in the form for the reader of stderr. */
#ifndef SINK_H
#define SINK_H

#include <stdbool.h>

#include "log.h"

/* Choose the sink for log_init().  The journal, if stderr leads to the journal, takes the level
 * from a prefix and records the time itself.  Any other reader gets the name of the program and
 * the level, and once the server runs (@runs) also the time of each line. */
log_sink_fn *sink_for(bool runs);

#endif
