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


TO_HOME = {
    "hello": (0x01, hello),
    "ack": (0x02, lambda f: varint(f["received"])),
    "ping": (0x03, lambda f: varint(f["number"])),
    "leave": (0x04, lambda f: varint(f["last"]) + bye(f)),
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
}


def encode(frame, others):
    if frame["kind"] in ("message", "output"):
        return data(frame)
    kind, fields = others[frame["kind"]]
    return bytes([kind]) + fields(frame)


KEY = bytes(range(32)).hex()
LARGE = 2**53 - 1


def to_home():
    new = {"kind": "hello", "peer": "client", "identity": None, "instance": 1, "attempt": 1, "epoch": 0, "received": 0,
           "first": 1, "log": None}
    known = {**new, "identity": {"id": "p-é", "key": KEY}, "instance": LARGE, "attempt": 300, "epoch": 7,
             "received": 128, "first": LARGE}
    return [
        new, known, {**known, "peer": "origin", "received": 0, "first": 1, "log": "c0ffee"}, {**new, "log": ""},
        {"kind": "message", "sequence": 1, "received": 0, "payload": {"text": "hello"}},
        {"kind": "message", "sequence": 31, "received": 255, "payload": {"text": ""}},
        {"kind": "message", "sequence": 0, "received": 127, "payload": {"hex": "ff00"}},
        {"kind": "message", "sequence": 17, "received": 128, "payload": {"text": "\ufeffé\U0001f600"}},
        {"kind": "ack", "received": 0}, {"kind": "ack", "received": LARGE}, {"kind": "ping", "number": 1},
        {"kind": "leave", "last": 0, "code": 1000, "reason": ""},
        {"kind": "leave", "last": 300, "code": 4999, "reason": "grüezi"},
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
}
NONE_TO_HOST = {
    "a kind of the other direction": "0200", "an increment beyond the frame": "a1000501", "a retry 3": "45000003",
    "a rejection of message 0": "46000000", "a site without a name": "470100", "a site that is not said": "47000161",
    "an output 0 that sends away": "4800e80700", "a code 5000": "44882700",
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
}, indent=1, ensure_ascii=False))
