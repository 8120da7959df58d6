#!/usr/bin/env python3
"""Vectors of docs/protocol/clocks.md, by an implementation that shares nothing with store/.

    clocks.py    prints tests/golden/clocks.json
"""
import json


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


times = [0, 127, 128, 1735689600000, 1767225603751]
print(json.dumps({"walls": [{"ms": ms, "bytes": (b"\x1a" + varint(ms)).hex()} for ms in times]}, indent=1))
