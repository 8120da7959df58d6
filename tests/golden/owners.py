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


def text(value):
    data = value.encode()
    return varint(len(data)) + data


def items(values, write):
    return varint(len(values)) + b"".join(write(value) for value in values)


def packet(p):
    names = list(dict.fromkeys(site for entry in p["entries"] for site in entry["owners"]))

    def entry(e):
        out = text(e["id"]) + varint(e["version"]) + items(e["owners"], lambda site: varint(names.index(site)))
        if e["gone"]:
            return out + b"\x02"
        if e["payload"] is None:
            return out + b"\x00"
        data = bytes.fromhex(e["payload"])
        return out + b"\x01" + varint(len(data)) + data

    return (varint(p["boot"]) + varint(p["to"]) + varint(p["seq"]) + varint(p["greeting"]) + varint(p["list"])
            + bytes([p["isListEnd"]])
            + items(p["receipts"], lambda r: varint(r["seq"]) + bytes([r["full"]]))
            + items(p["missing"], text) + items(names, text) + items(p["entries"], entry) + items(p["forget"], text))


def packets():
    empty = {"boot": 1, "to": 0, "seq": 0, "greeting": 0, "list": 0, "isListEnd": False,
             "receipts": [], "missing": [], "entries": [], "forget": []}
    live = {"id": "1.a", "version": 1, "owners": ["edge-1", "core-2"], "gone": False, "payload": "68656c6c6f"}
    cases = [
        empty,
        {**empty, "boot": 2**47, "seq": 1, "greeting": 3},
        {**empty, "to": 2**40, "seq": 300, "entries": [
            live, {**live, "id": "1.b", "payload": ""}, {**live, "id": "é", "version": 200, "payload": None,
                                                         "owners": ["cloud", "edge-1"]}]},
        {**empty, "to": 5, "seq": 2, "list": 3, "isListEnd": True,
         "entries": [{**live, "gone": True, "payload": None, "version": 2**53 - 1}]},
        {**empty, "to": 9, "receipts": [{"seq": 7, "full": False}, {"seq": 8, "full": True}],
         "missing": ["1.a"], "forget": ["x", "y"]},
    ]
    return [{"packet": case, "bytes": packet(case).hex()} for case in cases]


print(json.dumps({"beats": beats(), "packets": packets()}, indent=1, ensure_ascii=False))
