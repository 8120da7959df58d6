#!/usr/bin/env python3
"""Vectors of docs/protocol/digests.md, by an implementation that shares nothing with store/.

    digests.py    prints tests/golden/digests.json
"""
import json
import struct

MASK = 0xFFFFFFFF


def rotate(x, by):
    return (x << by | x >> (32 - by)) & MASK


def finish(h):
    h = (h ^ h >> 16) * 0x85EBCA6B & MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & MASK
    return h ^ h >> 16


def murmur3_x86_128(data):
    """MurmurHash3_x86_128 with seed 0 of whole blocks, as four words."""
    c = [0x239B961B, 0xAB0E9789, 0x38B34AE5, 0xA1E38B93]
    rounds = [(15, 19, 0x561CCD1B), (16, 17, 0x0BCAA747), (17, 15, 0x96CD1C35), (18, 13, 0x32AC3B17)]
    h = [0, 0, 0, 0]
    assert len(data) % 16 == 0
    for words in struct.iter_unpack("<4I", data):
        for i, (by, by2, plus) in enumerate(rounds):
            k = rotate(words[i] * c[i] & MASK, by) * c[(i + 1) % 4] & MASK
            h[i] = ((rotate(h[i] ^ k, by2) + h[(i + 1) % 4]) * 5 + plus) & MASK
    h = [each ^ len(data) for each in h]
    h[0] = sum(h) & MASK
    h = [h[0]] + [(each + h[0]) & MASK for each in h[1:]]
    h = [finish(each) for each in h]
    h[0] = sum(h) & MASK
    return [h[0]] + [(each + h[0]) & MASK for each in h[1:]]


def padded(data):
    return data + bytes(-len(data) % 16)


def hash_row(row):
    key = row["key"].encode("latin-1")
    data = struct.pack("<QII", row["clock"], row["replica"], len(key)) + padded(key)
    value = None if row["value"] is None else bytes.fromhex(row["value"])
    if value is not None and value[:1] == bytes([MERGE]):
        data += struct.pack("<IIII", len(value), 0, 0, 0) + padded(value)
    return murmur3_x86_128(data)


def digest(rows):
    lanes = [0, 0, 0, 0]
    for row in rows:
        lanes = [(a + b) & MASK for a, b in zip(lanes, hash_row(row))]
    return struct.pack("<4I", *lanes)


# The tag of a merge value (store/model/value.ts).
MERGE = 0x10


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def sized(data):
    return varint(len(data)) + data


def row(key, clock, replica, value=None):
    return {"key": key, "clock": clock, "replica": replica, "value": value}


def digests():
    some = [row("\x02a\x00", 129171456000001, 7, "0178"), row("\x02b\x00", 5, 1)]
    long = row("\x02" + "x" * 33 + "\x00", 2**53 - 1, 2**24 - 1, "00")
    merge = row("\x02sum\x00", 9, 2, "%02x" % MERGE + "000102")
    cases = [[], some[:1], some[1:], some, some[::-1], [long], [merge], [{**merge, "value": merge["value"] + "03"}],
             some + [long, merge]]
    return [{"rows": rows, "digest": digest(rows).hex()} for rows in cases]


def compares():
    cases = [(1, "", "\xff", bytes(16), ""),
             (300, "\x02a\x00", "\x02a\x01", digest([row("\x02a\x00", 5, 1)]), "00-trace")]
    return [{"id": id, "start": start, "end": end, "digest": of.hex(), "trace": trace,
             "bytes": (b"\x18" + varint(id) + sized(start.encode("latin-1")) + sized(end.encode("latin-1")) + of
                       + sized(trace.encode())).hex()} for id, start, end, of, trace in cases]


def compared():
    def one(id, start, end, parts):
        body, before = varint(len(parts)), start
        for part in parts:
            shared = 0
            while shared < min(len(before), len(part["end"])) and before[shared] == part["end"][shared]:
                shared += 1
            body += varint(shared) + sized(part["end"][shared:].encode("latin-1")) + bytes.fromhex(part["digest"])
            before = part["end"]
        return {"id": id, "start": start, "end": end, "parts": parts,
                "bytes": (b"\x19" + varint(id) + sized(start.encode("latin-1")) + sized(end.encode("latin-1"))
                          + body).hex()}

    part = lambda end, clock: {"end": end, "digest": digest([row("k", clock, 1)]).hex()}
    return [one(1, "\x02a\x00", "\x02b\x00", []),
            one(2, "\x02item\x00", "\x02item\xff", [part("\x02item\x00\x15\x10", 1), part("\x02item\x00\x15\x20", 2),
                                                    part("\x02item\xff", 3)])]


print(json.dumps({"digests": digests(), "compares": compares(), "compared": compared()}, indent=1))
