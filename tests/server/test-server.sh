#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The server's protocol, by a client that can do anything: the cases are in
# tests/server/test-server.c.
. ./tests/functions.sh
requires_server
tests/server/test-server "$RTRS_SERVER" "$TIMEOUT_S"
