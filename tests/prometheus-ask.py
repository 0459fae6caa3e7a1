#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Asks a Prometheus, which listens at URL and scrapes a server and a client with IO:

	prometheus-ask.py URL dashboard FILE	each expression of a dashboard has a value
	prometheus-ask.py URL rules FILE	each metric of a file of rules has a value, and
						Prometheus evaluates each rule without an error
	prometheus-ask.py URL value EXPRESSION	print the values, one a line
	prometheus-ask.py URL alert NAME	the alert NAME is pending or fires
	prometheus-ask.py URL targets N		N targets were scraped without an error

Exits with 1, and says why, while this is not so.
"""
import json
import re
import sys
import urllib.parse
import urllib.request


def ask(url, what, **arguments):
    query = "?" + urllib.parse.urlencode(arguments) if arguments else ""
    try:
        with urllib.request.urlopen(url + "/api/v1/" + what + query, timeout=30) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        sys.exit("%s %s: %s" % (what, arguments, error.read().decode()))


def values(url, expression):
    return [r["value"][1] for r in ask(url, "query", query=expression)["result"]]


def expect_values(url, expression):
    got = values(url, expression)
    assert got and "NaN" not in got, "%s: %s" % (expression, got)


def targets_of(panels):
    for panel in panels:
        yield from (t["expr"] for t in panel.get("targets", []))
        yield from targets_of(panel.get("panels", []))


def dashboard(url, name):
    with open(name) as f:
        board = json.load(f)
    variables = [v["name"] for v in board["templating"]["list"]]
    expressions = list(targets_of(board["panels"]))
    assert len(expressions) > 20, "only %d expressions" % len(expressions)
    for expression in expressions:
        real = expression.replace("$__rate_interval", "10s")
        for variable in variables:
            real = real.replace("$" + variable, ".*")
        assert "$" not in real, expression
        expect_values(url, real)
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            metric = re.fullmatch(r"label_values\((\w+), \w+\)", variable["query"]).group(1)
            expect_values(url, metric)


def rules(url, name):
    with open(name) as f:
        metrics = set(re.findall(r"\brtrs_\w+", re.sub(r"(?m)^\s*#.*$", "", f.read())))
    assert len(metrics) > 10, metrics
    for metric in sorted(metrics):
        # The state of an export that is lost is a series while it is lost.
        expect_values(url, metric)
    all_rules = [r for g in ask(url, "rules")["groups"] for r in g["rules"]]
    assert all_rules, "Prometheus has no rules"
    for rule in all_rules:
        assert rule["health"] == "ok", rule


def value(url, expression):
    print("\n".join(values(url, expression)))


def alert(url, name):
    names = [a["labels"]["alertname"] for a in ask(url, "alerts")["alerts"]]
    assert name in names, names


def targets(url, n):
    active = ask(url, "targets")["activeTargets"]
    up = [t for t in active if t["health"] == "up" and not t["lastError"]]
    assert len(up) == int(n), [(t["scrapeUrl"], t["health"], t["lastError"]) for t in active]


url, what, argument = sys.argv[1:]
try:
    {"dashboard": dashboard, "rules": rules, "value": value, "alert": alert,
     "targets": targets}[what](url, argument)
except AssertionError as wrong:
    sys.exit("%s %s: %s" % (what, argument, wrong))
