#!/usr/bin/env python3
"""Vectors of docs/protocol/moving.md, by an implementation that shares nothing with store/.

    moving.py    prints tests/golden/moving.json
"""
import json


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def text(value):
    encoded = value.encode()
    return varint(len(encoded)) + encoded


def listed(values, write):
    return varint(len(values)) + b"".join(write(value) for value in values)


def row(value):
    body = b"\x00" if value["value"] is None else b"\x01" + text(value["value"])
    return (text(value["key"]) + varint(value["clock"]) + varint(value["replica"]) + varint(value["known"])
            + varint(value["expiresAtMs"]) + body)


def hellos():
    cases = [
        {"floor": 0, "from": "", "siblings": [], "lost": []},
        {"floor": 812, "from": "core-1", "siblings": ["edge-2", "edge-7"], "lost": ["core-1"]},
    ]
    plain = (b"\x00" + varint(3) + varint(9) + varint(4) + varint(300) + varint(129171456000000) + text("edge")
             + text("https://e.example") + text("tcp://10.0.0.2:7000") + varint(0))
    return [{"moved": moved,
             "bytes": (plain + varint(moved["floor"]) + text(moved["from"]) + listed(moved["siblings"], text)
                       + listed(moved["lost"], text)).hex()} for moved in cases]


def gathers():
    return [{"id": id, "replica": replica, "bytes": (b"\x16" + varint(id) + varint(replica)).hex()}
            for id, replica in [(1, 0), (300, 16777215)]]


def gathered():
    rows = [{"key": "a", "clock": 129171456000001, "replica": 7, "known": 2, "expiresAtMs": 0, "value": "x"},
            {"key": "b", "clock": 5, "replica": 1, "known": 1, "expiresAtMs": 0, "value": None}]
    cases = [{"id": 1, "need": 0, "clock": 0, "parent": "", "parentReplica": 0, "more": False, "rows": []},
             {"id": 2, "need": 812, "clock": 129171456000002, "parent": "core-1", "parentReplica": 300,
              "more": True, "rows": rows}]
    return [{**case, "bytes": (b"\x17" + varint(case["id"]) + varint(case["need"]) + varint(case["clock"])
                               + text(case["parent"]) + varint(case["parentReplica"]) + bytes([case["more"]]) + listed(case["rows"], row)).hex()} for case in cases]


print(json.dumps({"hellos": hellos(), "gathers": gathers(), "gathered": gathered()}, indent=1))
