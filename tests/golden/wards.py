#!/usr/bin/env python3
"""Vectors of docs/protocol/replication.md, "Bytes of wards", by an implementation that shares nothing with store/.

    wards.py    prints tests/golden/wards.json
"""
import json

REFUSED = ["none", "gap", "stranger", "ended", "older", "full", "clock"]
OUTCOMES = ["rows", "behind", "too_large"]


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def sized(hexadecimal):
    data = bytes.fromhex(hexadecimal)
    return varint(len(data)) + data


def varints(values):
    return varint(len(values)) + b"".join(varint(value) for value in values)


def rows(values):
    out = varints([row["position"] for row in values]) + varint(len(values))
    for row in values:
        out += sized(row["key"])
        out += b"".join(varint(row[name]) for name in ("clock", "replica", "known", "expiresAtMs"))
        out += b"\x00" if row["value"] is None else b"\x01" + sized(row["value"])
    return out


def encode(m):
    kind = m["kind"]
    if kind == "ward":
        return (b"\x10" + varint(m["replica"]) + varint(m["config"]) + bytes([m["settled"]])
                + varint(m["after"]) + varint(m["head"]) + varint(m["clock"]) + varints(m["down"])
                + varints(m["reach"]) + varint(m["part"]) + bytes([m["more"]]) + rows(m["rows"]))
    if kind == "warded":
        return (b"\x11" + varint(m["replica"]) + varint(m["config"]) + bytes([m["settled"]])
                + varint(m["position"]) + bytes([REFUSED.index(m["refused"])]))
    if kind == "release":
        return b"\x12" + varint(m["replica"]) + varint(m["config"])
    if kind == "standIn":
        return b"\x13" + b"".join(varint(m[name]) for name in ("id", "replica", "depth", "position"))
    if kind == "stoodIn":
        return (b"\x14" + varint(m["id"]) + bytes([OUTCOMES.index(m["outcome"])]) + varint(m["position"])
                + varint(m["config"]) + varint(m["clock"]) + varints(m["down"]) + rows(m["rows"]))
    return b"\x15" + varint(m["id"]) + varint(m["replica"]) + bytes([m["isAnswer"]]) + varint(m["config"])


def messages():
    row = {"key": "0261000262", "clock": 2**52 + 5, "replica": 7, "known": 2, "expiresAtMs": 0,
           "value": "0168656c6c6f", "position": 301}
    gone = {**row, "key": "026100", "value": None, "expiresAtMs": 1780000000123, "position": 299}
    ward = {"kind": "ward", "replica": 7, "config": 1, "settled": False, "after": 0, "head": 0, "clock": 0,
            "down": [], "reach": [], "part": 0, "more": False, "rows": []}
    stood = {"kind": "stoodIn", "id": 1, "outcome": "behind", "position": 0, "config": 0, "clock": 0,
             "down": [], "rows": []}
    return [
        ward,
        {**ward, "config": 300, "settled": True, "after": 298, "head": 301, "clock": 2**52 + 6,
         "down": [12, 130], "reach": [0, 297], "part": 1, "more": True, "rows": [gone, row]},
        *({"kind": "warded", "replica": 7, "config": 2, "settled": i % 2 == 0, "position": 128 * i,
           "refused": refused} for i, refused in enumerate(REFUSED)),
        {"kind": "release", "replica": 2**24 - 1, "config": 3},
        {"kind": "standIn", "id": 9, "replica": 7, "depth": 1, "position": 2**53 - 1},
        stood,
        {**stood, "outcome": "rows", "position": 301, "config": 2, "clock": 5, "down": [1], "rows": [row]},
        {**stood, "outcome": "too_large"},
        {"kind": "newest", "id": 4, "replica": 7, "isAnswer": False, "config": 0},
        {"kind": "newest", "id": 4, "replica": 7, "isAnswer": True, "config": 129},
    ]


print(json.dumps([{"message": m, "bytes": encode(m).hex()} for m in messages()], indent=2))
