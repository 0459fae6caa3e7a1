#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The promises of fabric.h, kept by the sim provider.
exec timeout 120 ./fab-conformance-sim sim "$@"
