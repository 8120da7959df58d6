#!/usr/bin/env python3
"""Vectors of docs/protocol/queues.md, by an implementation that shares nothing with functions/queues/.

    queues.py    prints tests/golden/queues.json
"""
import json


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def sized(data):
    return varint(len(data)) + data


def text(value):
    return sized(value.encode())


def items(values, write):
    return varint(len(values)) + b"".join(write(value) for value in values)


def flag(value):
    return b"\x01" if value else b"\x00"


FORMATS = ["bytes", "text", "json", "value"]


def envelope(e):
    pauses = e["backoffMs"]
    return (b"\x01" + text(e["id"]) + varint(e["sentMs"]) + text(e["trace"]) + flag(pauses is not None)
            + (b"" if pauses is None else items(pauses, varint)) + sized(bytes.fromhex(e["undelivered"]))
            + bytes([FORMATS.index(e["format"])]) + sized(bytes.fromhex(e["body"])))


def base36(value):
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    out = ""
    while value > 0:
        out = digits[value % 36] + out
        value //= 36
    return out


def note(n):
    parts = [base36(n["attempts"]), base36(n["expiresAtMs"])]
    if n["death"] is not None:
        parts.append(n["death"]["cause"][0] + n["death"]["error"])
    while parts and parts[-1] == "":
        parts.pop()
    return ",".join(parts)


RESULTS = ["done", "over", "unknown"]
VERDICTS = ["ack", "retry", "reject", "extend", "release"]


def packet(p):
    names = []
    for word in p["words"]:
        used = [word["queue"]] if "queue" in word else []
        used += [site for message in word.get("messages", []) for site in message["owners"]] \
            if word["kind"] == "batch" else []
        names += [name for name in dict.fromkeys(used) if name not in names]

    def place(name):
        return varint(names.index(name))

    def message(m):
        return (text(m["id"]) + varint(m["lease"]) + varint(m["attempt"]) + varint(m["expiresAtMs"])
                + items(m["owners"], place) + sized(bytes.fromhex(m["payload"])))

    def verdict(v):
        return (varint(v["number"]) + text(v["id"]) + varint(v["lease"]) + varint(v["sentMs"])
                + bytes([VERDICTS.index(v["kind"])]) + flag(v["ms"] is not None)
                + (b"" if v["ms"] is None else varint(v["ms"])) + text(v["error"]))

    def word(w):
        kind = w["kind"]
        if kind == "offer":
            return b"\x00" + place(w["queue"]) + varint(w["count"])
        if kind == "batch":
            return (b"\x01" + place(w["queue"]) + varint(w["number"]) + varint(w["left"]) + varint(w["leaseMs"])
                    + items(w["messages"], message))
        if kind == "settled":
            return b"\x02" + items(w["results"], lambda r: varint(r["number"]) + bytes([RESULTS.index(r["result"])]))
        if kind == "want":
            return (b"\x03" + place(w["queue"]) + varint(w["number"]) + varint(w["seen"]) + varint(w["messages"])
                    + varint(w["bytes"]) + flag(w["isPull"]))
        if kind == "got":
            return b"\x04" + varint(w["batch"])
        return b"\x05" + items(w["verdicts"], verdict)

    return varint(p["boot"]) + varint(p["to"]) + items(names, text) + items(p["words"], word)


def envelopes():
    plain = {"id": "", "sentMs": 1790000000123, "trace": "", "backoffMs": None, "undelivered": "", "format": "json",
             "body": "7b7d"}
    return [
        plain,
        {**plain, "id": "é", "format": "bytes", "body": "", "backoffMs": []},
        {**plain, "id": "order-7", "trace": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
         "backoffMs": [0, 300, 2592000000], "undelivered": "0102", "format": "value", "body": "ff" * 130},
        {**plain, "format": "text", "body": "68656c6c6f"},
    ]


def notes():
    plain = {"attempts": 0, "expiresAtMs": 0, "death": None}
    return [
        plain,
        {**plain, "attempts": 1},
        {**plain, "expiresAtMs": 1790000000123},
        {**plain, "attempts": 40, "expiresAtMs": 1790000000123,
         "death": {"cause": "attempts", "error": "no, not at all"}},
        {**plain, "death": {"cause": "expired", "error": ""}},
        {**plain, "attempts": 2, "death": {"cause": "rejected", "error": "é"}},
    ]


def packets():
    empty = {"boot": 1, "to": 0, "words": []}
    message = {"id": "1.a", "lease": 2**47, "attempt": 1, "expiresAtMs": 0, "owners": ["edge-1", "core-1"],
               "payload": "0102"}
    batch = {"kind": "batch", "queue": "shop/sms", "number": 300, "left": 0, "leaseMs": 30000, "messages": [message]}
    want = {"kind": "want", "queue": "shop/sms", "number": 1, "seen": 0, "messages": 20, "bytes": 8388608,
            "isPull": False}
    verdict = {"number": 1, "id": "1.a", "lease": 2**47, "sentMs": 1790000000123, "kind": "ack", "ms": None,
               "error": ""}
    return [
        empty,
        {"boot": 2**47, "to": 2**40, "words": [
            {"kind": "offer", "queue": "shop/sms", "count": 1000000},
            {"kind": "offer", "queue": "shop/mail", "count": 0},
            {**batch, "messages": []},
            {**batch, "queue": "shop/mail", "left": 7,
             "messages": [message, {**message, "id": "é", "owners": ["core-1"], "attempt": 130,
                                    "expiresAtMs": 1790000000123, "payload": ""}]},
            {"kind": "settled", "results": [{"number": 1, "result": "done"}, {"number": 2, "result": "over"},
                                            {"number": 300, "result": "unknown"}]}]},
        {"boot": 5, "to": 9, "words": [
            want,
            {**want, "queue": "shop/mail", "number": 129, "seen": 300, "isPull": True},
            {"kind": "got", "batch": 300},
            {"kind": "verdicts", "verdicts": [
                verdict, {**verdict, "number": 2, "kind": "retry", "ms": 0, "error": "é"},
                {**verdict, "number": 3, "kind": "reject", "error": "no"},
                {**verdict, "number": 4, "kind": "extend", "ms": 60000}, {**verdict, "number": 5, "kind": "release"}]}]},
    ]


print(json.dumps({
    "envelopes": [{"envelope": one, "bytes": envelope(one).hex()} for one in envelopes()],
    "notes": [{"note": one, "text": note(one)} for one in notes()],
    "packets": [{"packet": one, "bytes": packet(one).hex()} for one in packets()],
}, indent=1, ensure_ascii=False))
