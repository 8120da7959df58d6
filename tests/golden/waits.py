#!/usr/bin/env python3
"""Vectors of docs/protocol/waits.md, by an implementation that shares nothing with runtime/stateful/.

    waits.py    prints tests/golden/waits.json
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


def asked():
    cases = [
        {"app": "shop", "class": "cart", "id": "x", "request": "r1", "to": "edge-1", "hops": 0},
        {"app": "späti", "class": "C", "id": "ü" * 70, "request": "", "to": "", "hops": 16},
    ]
    return [{**case, "bytes": (text(case["app"]) + text(case["class"]) + text(case["id"]) + text(case["request"])
                               + text(case["to"]) + varint(case["hops"])).hex()} for case in cases]


def answered():
    call = {"class": "cart", "id": "y", "request": "r2"}
    cases = [
        {"isQueued": False, "calls": []},
        {"isQueued": True, "calls": [call, {"class": "Robot", "id": "ü", "request": "5f3a"}]},
        {"isQueued": False, "calls": [call] * 64},
    ]
    return [{**case, "bytes": (bytes([case["isQueued"]]) + varint(len(case["calls"]))
                               + b"".join(text(one["class"]) + text(one["id"]) + text(one["request"])
                                          for one in case["calls"])).hex()} for case in cases]


print(json.dumps({"asked": asked(), "answered": answered()}, indent=1))
