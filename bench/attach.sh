#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a guest runs is a shell script.
exec /usr/bin/python3 "${BASH_SOURCE[0]%.sh}.py" "$@"
