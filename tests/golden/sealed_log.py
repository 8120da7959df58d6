#!/usr/bin/env python3
"""Vectors of docs/protocol/hosts.md (sealed logs), by an implementation that shares nothing with functions/sessions/sealed/.

AES-128 is written from FIPS 197 beside what tokens.py has of AES-256 and GCM.

    sealed_log.py    prints tests/golden/sealed_log.json
"""
import hashlib
import hmac
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tokens import SBOX, double, multiply, varint  # noqa: E402

TAG = 12


def sized(data):
    return varint(len(data)) + data


def text(value):
    return sized(value.encode())


def base(b):
    if b is None:
        return b"\0"
    return (b"\1" + varint(b["at"]) + varint(b["epoch"]) + varint(b["wakeAtMs"]) + text(b["version"])
            + sized(bytes.fromhex(b["bytes"])) + sized(bytes.fromhex(b["answers"]))
            + varint(len(b["parts"])) + b"".join(sized(bytes.fromhex(part)) for part in b["parts"]))


def round_keys_of(key):
    words = [list(key[i:i + 4]) for i in range(0, 16, 4)]
    rcon = 1
    for i in range(4, 44):
        word = list(words[i - 1])
        if i % 4 == 0:
            word = [SBOX[b] for b in word[1:] + word[:1]]
            word[0] ^= rcon
            rcon = (rcon << 1) ^ (0x11B if rcon & 0x80 else 0)
        words.append([a ^ b for a, b in zip(words[i - 4], word)])
    return [sum(words[i:i + 4], []) for i in range(0, 44, 4)]


def block(keys, data):
    state = [a ^ b for a, b in zip(data, keys[0])]
    for number, key in enumerate(keys[1:], 1):
        state = [SBOX[state[(i + 4 * (i % 4)) % 16]] for i in range(16)]
        if number < 10:
            mixed = []
            for c in range(0, 16, 4):
                col = state[c:c + 4]
                total = col[0] ^ col[1] ^ col[2] ^ col[3]
                mixed += [col[i] ^ total ^ double(col[i] ^ col[(i + 1) % 4]) for i in range(4)]
            state = mixed
        state = [a ^ b for a, b in zip(state, key)]
    return bytes(state)


def gcm(key, iv, aad, plain):
    keys = round_keys_of(key)
    h = int.from_bytes(block(keys, bytes(16)), "big")
    cipher = b""
    for i in range(0, len(plain), 16):
        stream = block(keys, iv + (2 + i // 16).to_bytes(4, "big"))
        cipher += bytes(a ^ b for a, b in zip(plain[i:i + 16], stream))
    pad = lambda data: data + bytes(-len(data) % 16)
    hashed = pad(aad) + pad(cipher) + (8 * len(aad)).to_bytes(8, "big") + (8 * len(cipher)).to_bytes(8, "big")
    y = 0
    for i in range(0, len(hashed), 16):
        y = multiply(y ^ int.from_bytes(hashed[i:i + 16], "big"), h)
    mask = int.from_bytes(block(keys, iv + b"\0\0\0\1"), "big")
    return cipher, (y ^ mask).to_bytes(16, "big")[:TAG]


def series_key(secret, name, receiver, epoch, salt):
    info = (text("sojourn sealed log 1") + text(name["app"]) + text(name["class"]) + text(name["id"])
            + varint(epoch) + text(receiver))
    prk = hmac.new(salt, secret, hashlib.sha256).digest()
    return hmac.new(prk, info + b"\1", hashlib.sha256).digest()[:16]


def take_varint(data, at):
    value, scale = 0, 1
    while data[at] >= 0x80:
        value, scale, at = value + (data[at] & 0x7F) * scale, scale * 128, at + 1
    return value + data[at] * scale, at + 1


def message(data):
    """(head, peer as sized text, what was said) of a commit that is one message and nothing seen; else None."""
    try:
        if data[0] != 2 or data[1] >> 4 != 2:
            return None
        at = take_varint(data, 2)[1] if data[1] & 15 == 15 else 2
        if data[at] >= 0x80:
            return None
        to = at + 1 + data[at]
        size, said = take_varint(data, to + 1)
        return (data[1:at], data[at:to], data[to:]) if said + size + 1 == len(data) else None
    except IndexError:
        return None


def log_bytes(pieces, context):
    out = b""
    for p in pieces:
        data, peers = bytes.fromhex(p["bytes"]), context["peers"]
        parts = message(data) if p["count"] == 1 else None
        which = peers.index(parts[1]) if parts and parts[1] in peers else None
        form = 0 if which is None else 1 if which == 0 else 2
        new_epoch, wake, before = p["epoch"] != context["epoch"], p["wakeAtMs"], context["wakeAtMs"]
        out += varint(p["count"] * 16 + form + 4 * new_epoch + 8 * (wake != before))
        if new_epoch:
            out += varint(p["epoch"])
        if wake != before:
            out += b"\0" if wake == 0 else b"\1" + varint(wake - before) if wake > before else b"\2" + varint(before - wake)
        context.update(epoch=p["epoch"], wakeAtMs=wake)
        if form == 0:
            out += sized(data)
            if parts and len(peers) < 64:
                peers.append(parts[1])
        else:
            out += (varint(which) if form == 2 else b"") + parts[0] + parts[2]
    return out


def records(secret, name, receiver, steps):
    tag, key, number, context, out = bytes(TAG), None, 0, {}, []
    for step in steps:
        kind = step["kind"]
        if kind == "pieces":
            clear = b"\2"
            plain = b""
        else:
            salt = bytes.fromhex(step["salt"])
            clear = bytes([0 if kind == "whole" else 1]) + varint(step["epoch"]) + salt
            key, number = series_key(secret, name, receiver, step["epoch"], salt), 0
            context = {"epoch": step["epoch"], "wakeAtMs": 0, "peers": [text(receiver)]}
            if kind == "whole":
                tag = bytes(TAG)
                plain = bytes.fromhex(step["seed"]) + text(step["version"]) + base(step["base"])
            else:
                plain = varint(step["after"])
        plain += log_bytes(step["pieces"], context)
        cipher, tag = gcm(key, number.to_bytes(12, "big"), tag + clear, plain)
        number += 1
        out.append((clear + cipher + tag).hex())
    return out


def piece(epoch, first, count, wake, data):
    return {"epoch": epoch, "first": first, "count": count, "wakeAtMs": wake, "bytes": data.hex()}


def vectors():
    secret = bytes(range(32))
    name = {"app": "duel", "class": "match", "id": "été"}
    receiver = "c1"
    salt = lambda n: bytes([n] * 16).hex()
    seed = bytes([9] * 32).hex()
    a_base = {"at": 7, "epoch": 3, "wakeAtMs": 0, "version": "v1", "bytes": b"plain".hex(), "answers": "",
              "parts": [b"state".hex(), (b"y" * 130).hex()]}
    plain = [{"kind": "whole", "epoch": 1, "salt": salt(1), "seed": seed, "version": "v1", "base": None, "pieces": []}]
    long = plain + [
        {"kind": "pieces", "pieces": [piece(1, 1, 2, 0, b"\x25\x03")]},
        {"kind": "pieces", "pieces": [piece(1, 3, 1, 1700000000000, b"one"), piece(1, 4, 1, 1700000000000, b"two")]},
        {"kind": "further", "epoch": 4, "salt": salt(2), "after": 4, "pieces": []},
        {"kind": "pieces", "pieces": [piece(4, 5, 40, 0, b"x" * 200)]},
    ]
    based = [
        {"kind": "whole", "epoch": 5, "salt": salt(3), "seed": seed, "version": "v2", "base": a_base,
         "pieces": [piece(3, 8, 1, 0, b"three"), piece(5, 9, 1, 0, b"five")]},
        {"kind": "pieces", "pieces": [piece(5, 10, 1, 0, b"")]},
    ]
    said = lambda head, peer, words: b"\2" + head + text(peer) + b"\1" + text(words) + b"\x77"
    timed = b"\x2f\x90\x03"  # the clock was read, 14 + 400 ms after the last time
    messages = plain + [
        {"kind": "pieces", "pieces": [piece(1, 1, 1, 0, said(b"\x2e", "c1", "mine"))]},
        {"kind": "pieces", "pieces": [piece(1, 2, 1, 0, said(b"\x23", "d2", "another's")),
                                      piece(1, 3, 1, 1700000000000, said(timed, "d2", "again"))]},
        {"kind": "pieces", "pieces": [piece(1, 4, 1, 1700000000050, said(timed, "c1", "é" * 70)),
                                      piece(1, 5, 1, 1700000000020, said(b"\x2e", "c12", ""))]},
        {"kind": "pieces", "pieces": [
            piece(1, 6, 2, 0, said(b"\x2e", "c1", "and a clock") + b"\xc3"), # two entries
            piece(1, 8, 1, 0, said(b"\x3e", "c1", "none")), # another kind of entry
            piece(1, 9, 1, 0, said(b"\x2e", "c1", "more") + b"\0"), piece(1, 10, 1, 0, said(b"\x2e", "c12", "3rd"))]},
        {"kind": "further", "epoch": 2, "salt": salt(5), "after": 10,
         "pieces": [piece(1, 11, 1, 0, said(b"\x2e", "d2", "anew")), piece(2, 12, 1, 0, said(b"\x2e", "c1", "mine"))]},
    ]
    return [{"secret": secret.hex(), "name": name, "receiver": receiver, "steps": steps,
             "records": records(secret, name, receiver, steps)} for steps in (plain, long, based, messages)]


def self_check():
    # FIPS 197, appendix C.1, and McGrew & Viega's test case 2
    key, data = bytes(range(16)), bytes.fromhex("00112233445566778899aabbccddeeff")
    assert block(round_keys_of(key), data).hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"
    cipher, tag = gcm(bytes(16), bytes(12), b"", bytes(16))
    assert cipher.hex() == "0388dace60b6a392f328c2b971b2fe78" and tag.hex() == "ab6e47d42cec13bdf53a67b2"


if __name__ == "__main__":
    self_check()
    print(json.dumps({"logs": vectors()}, indent=1, ensure_ascii=False))
