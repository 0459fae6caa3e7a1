#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The tree keeps the rules of house.py, and house.py finds what does not (house_test.py).
set -u
# shellcheck disable=SC2154 # of automake
tests=$(cd "${srcdir:-$(dirname "$0")/..}/tests" && pwd)
/usr/bin/python3 "$tests/house_test.py" && /usr/bin/python3 "$tests/house.py" "$tests/.."
