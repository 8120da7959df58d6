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
    sites = list(dict.fromkeys(site for entry in p["entries"] for site in entry["owners"]))
    topics = list(dict.fromkeys(e["content"]["topic"] for e in p["entries"] if e["content"] is not None))

    def entry(e):
        out = text(e["id"]) + varint(e["version"]) + items(e["owners"], lambda site: varint(sites.index(site)))
        if e["mark"] is None:
            return out + (b"\x03" if e["isUnsure"] else b"\x02" + varint(e["goneUntilS"]))
        content = e["content"]
        out += b"\x00" if content is None else b"\x01"
        out += varint(e["mark"]["dueMs"]) + text(e["mark"]["note"])
        if content is None:
            return out
        data = bytes.fromhex(content["payload"])
        return (out + varint(topics.index(content["topic"])) + varint(content["f"])
                + varint(content["rememberUntilS"]) + varint(len(data)) + data)

    return (varint(p["boot"]) + varint(p["to"]) + varint(p["seq"]) + varint(p["greeting"]) + varint(p["list"])
            + varint(p["part"]) + bytes([p["isListEnd"]])
            + items(p["receipts"], lambda r: varint(r["seq"]) + bytes([r["full"]]))
            + items(p["missing"], text) + items(sites, text) + items(topics, text)
            + items(p["entries"], entry) + items(p["forget"], text))


def packets():
    empty = {"boot": 1, "to": 0, "seq": 0, "greeting": 0, "list": 0, "part": 0, "isListEnd": False,
             "receipts": [], "missing": [], "entries": [], "forget": []}
    content = {"topic": "shop/sms", "f": 1, "rememberUntilS": 0, "payload": "68656c6c6f"}
    live = {"id": "1.a", "version": 1, "owners": ["edge-1", "core-2"], "isUnsure": False, "goneUntilS": 0,
            "mark": {"dueMs": 1790000000123, "note": ""}, "content": content}
    gone = {**live, "mark": None, "content": None}
    cases = [
        empty,
        {**empty, "boot": 2**47, "seq": 1, "greeting": 3},
        {**empty, "to": 2**40, "seq": 300, "entries": [
            live,
            {**live, "id": "1.b", "content": {**content, "f": 8, "rememberUntilS": 2**32 - 1, "payload": ""}},
            {**live, "id": "é", "version": 200, "content": None, "owners": ["cloud", "edge-1"],
             "mark": {"dueMs": 0, "note": "2 tries"}},
            {**live, "id": "1.c", "content": {**content, "topic": "é"}}]},
        {**empty, "to": 5, "seq": 2, "list": 3, "part": 130, "isListEnd": True,
         "entries": [{**gone, "version": 2**53 - 1}, {**gone, "id": "1.d", "isUnsure": True},
                     {**gone, "id": "1.e", "goneUntilS": 1790000300}]},
        {**empty, "to": 9, "receipts": [{"seq": 7, "full": False}, {"seq": 8, "full": True}],
         "missing": ["1.a"], "forget": ["x", "y"]},
    ]
    return [{"packet": case, "bytes": packet(case).hex()} for case in cases]


print(json.dumps({"beats": beats(), "packets": packets()}, indent=1, ensure_ascii=False))
