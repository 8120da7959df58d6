#!/usr/bin/env python3
"""Vectors of docs/protocol/owners.md, by an implementation that shares nothing with store/.

    owners.py    prints tests/golden/owners.json
"""
import json


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def beats():
    cases = [(0, False), (1, True), (127, False), (128, True), (1780000000123, False), (2**53 - 1, True)]
    return [{"stamp": stamp, "isAnswer": is_answer,
             "bytes": (b"\x0e" + varint(stamp) + bytes([is_answer])).hex()} for stamp, is_answer in cases]


print(json.dumps({"beats": beats()}, indent=1))
