#!/usr/bin/env python3
"""Vectors of docs/protocol/session-frames.md, by an implementation that shares nothing with functions/.

    session_frames.py    prints tests/golden/session_frames.json
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


def data(f):
    payload = f["payload"]
    is_text = "text" in payload
    increment = f.get("increment")
    head = 0x80 | (0 if is_text else 0x40) | (0 if increment is None else 0x20) | f["sequence"] % 32
    return (bytes([head, f["received"] % 256]) + (b"" if increment is None else sized(bytes.fromhex(increment)))
            + (payload["text"].encode() if is_text else bytes.fromhex(payload["hex"])))


def identity(value):
    return text(value["id"]) + sized(bytes.fromhex(value["key"]))


def hello(f):
    out = varint(1) + bytes([["client", "origin"].index(f["peer"])]) + varint(f["instance"]) + varint(f["attempt"])
    if f["identity"] is None:
        out += b"\x00"
    else:
        out += b"\x01" + identity(f["identity"]) + varint(f["epoch"]) + varint(f["received"])
    out += varint(f["first"])
    return out + (b"\x00" if f["log"] is None else b"\x01" + sized(bytes.fromhex(f["log"])))


def bye(f):
    return varint(f["code"]) + text(f["reason"])


def log(f):
    records = f["records"] or []
    return (varint(f["epoch"]) + bytes([f["records"] is not None]) + varint(len(records))
            + b"".join(sized(bytes.fromhex(record)) for record in records))


def summary(f):
    return varint(f["promised"]) + (b"\x00" if f["tag"] is None else b"\x01" + bytes.fromhex(f["tag"]))


TO_HOME = {
    "hello": (0x01, hello),
    "ack": (0x02, lambda f: varint(f["received"])),
    "ping": (0x03, lambda f: varint(f["number"])),
    "leave": (0x04, lambda f: varint(f["last"]) + bye(f)),
    "log": (0x05, log),
    "taken": (0x06, lambda f: varint(f["records"])),
}
TO_HOST = {
    "welcome": (0x41, lambda f: identity(f["identity"]) + varint(f["epoch"]) + varint(f["received"])),
    "ack": (0x42, lambda f: varint(f["received"])),
    "pong": (0x43, lambda f: varint(f["number"])),
    "bye": (0x44, bye),
    "refused": (0x45, lambda f: text(f["code"]) + text(f["message"])
                + bytes([["fix", "retry", "reset"].index(f["retry"])])),
    "rejected": (0x46, lambda f: varint(f["sequence"]) + text(f["code"]) + text(f["message"])),
    "moved": (0x47, lambda f: bytes([f["site"] is not None]) + text(f["site"] or "")),
    "dismissed": (0x48, lambda f: varint(f["sequence"]) + bye(f)),
    "fence": (0x49, lambda f: varint(f["epoch"])),
    "record": (0x4A, lambda f: sized(bytes.fromhex(f["record"]))),
}


def encode(frame, others):
    if frame["kind"] in ("message", "output"):
        return data(frame)
    kind, fields = others[frame["kind"]]
    return bytes([kind]) + fields(frame)


KEY = bytes(range(32)).hex()
LARGE = 2**53 - 1
TAG = bytes(range(200, 212)).hex()
# As a host sees them: a whole record with nothing sealed, and one of some commits.
WHOLE = ("00" + "07" + "5a" * 16 + TAG)
PIECES = "02" + "17" * 20 + TAG


def to_home():
    new = {"kind": "hello", "peer": "client", "identity": None, "instance": 1, "attempt": 1, "epoch": 0, "received": 0,
           "first": 1, "log": None}
    known = {**new, "identity": {"id": "p-é", "key": KEY}, "instance": LARGE, "attempt": 300, "epoch": 7,
             "received": 128, "first": LARGE}
    return [
        new, known, {**known, "attempt": 3 * 2**24 + 2}, {**known, "peer": "origin", "received": 0, "first": 1, "log": "c0ffee"}, {**new, "log": ""},
        {"kind": "message", "sequence": 1, "received": 0, "payload": {"text": "hello"}},
        {"kind": "message", "sequence": 31, "received": 255, "payload": {"text": ""}},
        {"kind": "message", "sequence": 0, "received": 127, "payload": {"hex": "ff00"}},
        {"kind": "message", "sequence": 17, "received": 128, "payload": {"text": "\ufeffé\U0001f600"}},
        {"kind": "ack", "received": 0}, {"kind": "ack", "received": LARGE}, {"kind": "ping", "number": 1},
        {"kind": "leave", "last": 0, "code": 1000, "reason": ""},
        {"kind": "leave", "last": 300, "code": 4999, "reason": "grüezi"},
        {**new, "log": summary(SUMMARIES[0]).hex()}, {**known, "log": summary(SUMMARIES[2]).hex()},
        {"kind": "log", "epoch": 1, "records": None}, {"kind": "log", "epoch": 8, "records": []},
        {"kind": "log", "epoch": LARGE, "records": [WHOLE, PIECES, "02" + "ee" * 300 + TAG]},
        {"kind": "taken", "records": 1}, {"kind": "taken", "records": 16384},
    ]


SUMMARIES = [
    {"promised": 0, "tag": None}, {"promised": 1, "tag": None}, {"promised": 300, "tag": TAG},
    {"promised": LARGE, "tag": "00" * 12},
]


def to_host():
    return [
        {"kind": "welcome", "identity": {"id": "p1", "key": KEY}, "epoch": 1, "received": 0},
        {"kind": "welcome", "identity": {"id": "x" * 200, "key": KEY + KEY}, "epoch": LARGE, "received": 16384},
        {"kind": "output", "sequence": 1, "received": 0, "increment": None, "payload": {"text": "hi"}},
        {"kind": "output", "sequence": 30, "received": 200, "increment": None, "payload": {"hex": "0102"}},
        {"kind": "output", "sequence": 2, "received": 3, "increment": "", "payload": {"text": "hi"}},
        {"kind": "output", "sequence": 3, "received": 4, "increment": "ab" * 130, "payload": {"hex": ""}},
        {"kind": "ack", "received": 64}, {"kind": "pong", "number": 300},
        {"kind": "bye", "code": 1000, "reason": ""}, {"kind": "bye", "code": 3000, "reason": "over"},
        {"kind": "refused", "code": "peer_unknown", "message": "not attached", "retry": "reset"},
        {"kind": "refused", "code": "superseded", "message": "", "retry": "fix"},
        {"kind": "refused", "code": "overloaded", "message": "später", "retry": "retry"},
        {"kind": "rejected", "sequence": 128, "code": "app_error", "message": "no"},
        {"kind": "moved", "site": None}, {"kind": "moved", "site": "zurich"},
        {"kind": "dismissed", "sequence": 9, "code": 4001, "reason": "out"},
        {"kind": "output", "sequence": 4, "received": 5, "increment": PIECES, "payload": {"text": "hi"}},
        {"kind": "fence", "epoch": 1}, {"kind": "fence", "epoch": LARGE},
        {"kind": "record", "record": WHOLE}, {"kind": "record", "record": "02" + "ab" * 200 + TAG},
        {"kind": "record", "record": ""},
    ]


# What is no frame: each is refused.
NONE_TO_HOME = {
    "nothing": "", "a kind of the other direction": "4200", "no kind": "7f", "a message with an increment": "a0000000",
    "a text that is not UTF-8": "8100ff", "a data frame without its second byte": "81", "bytes left over": "020000",
    "a number in a longer form": "028000", "another version": "01020001010001 00", "an instance 0": "0101000001000100",
    "an attempt 0": "0101000100000100", "a new peer that keeps messages from 2 on": "0101000101000200",
    "a first message 0": "0101000101000000", "a code 999": "0400e70700", "a flag 2": "0101000101020100",
    "a key of 15 bytes": "0101000101010170" + "0f" + "00" * 15 + "000001" + "00",
    "an id of no bytes": "010100010101" + "00" + "10" + "00" * 16 + "000001" + "00",
    "a log of epoch 0": "05000000", "records without the promise": "0501000100", "a log without its list": "050101",
    "a record beyond the log": "0501010105aa", "more records than there are": "05010102" + "01aa",
    "taken 0 records": "0600", "taken, and more": "060100",
    "a summary of 4 KiB and 1": "0101000101000101" + "8120" + "00" * 4097,
    "a fence, which is for hosts": "4901",
}
NONE_TO_HOST = {
    "a kind of the other direction": "0200", "an increment beyond the frame": "a1000501", "a retry 3": "45000003",
    "a rejection of message 0": "46000000", "a site without a name": "470100", "a site that is not said": "47000161",
    "an output 0 that sends away": "4800e80700", "a code 5000": "44882700",
    "a fence of epoch 0": "4900", "a fence and more": "490100", "a record beyond the frame": "4a02aa",
    "a record and more": "4a01aa00", "a log": "05010100",
}
# What is no summary of a log.
NO_SUMMARIES = {
    "nothing": "", "no flag": "01", "a tag of 11 bytes": "0101" + "11" * 11, "a tag of 13 bytes": "0101" + "11" * 13,
    "a flag 2": "0102" + "11" * 12, "a number in a longer form": "800000", "bytes left over": "010000",
}


def vectors(frames, others):
    return [{"frame": frame, "bytes": encode(frame, others).hex()} for frame in frames]


def refused(cases):
    return [{"why": why, "bytes": data.replace(" ", "")} for why, data in cases.items()]


print(json.dumps({
    "toHome": vectors(to_home(), TO_HOME),
    "toHost": vectors(to_host(), TO_HOST),
    "refusedToHome": refused(NONE_TO_HOME),
    "refusedToHost": refused(NONE_TO_HOST),
    "summaries": [{"summary": one, "bytes": summary(one).hex()} for one in SUMMARIES],
    "refusedSummaries": refused(NO_SUMMARIES),
}, indent=1, ensure_ascii=False))
