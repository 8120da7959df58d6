#!/usr/bin/env python3
"""Vectors of docs/protocol/keys.md, by an implementation that shares nothing with store/model/key.ts.

Written from FoundationDB's tuple layer specification. Only the standard library is used.

    keys.py            prints tests/golden/keys.json
    keys.py --check    reads JSON [[part, ...], ...] on stdin, prints a JSON list of packed keys in hex
    keys.py --order    the same input, prints the indices in the order of the tuples' values

A part is {"bytes": hex} | {"string": text} | {"bigint": decimal} | {"number": hex of the IEEE 754 bits} |
{"boolean": true|false}: JSON itself has neither bytes nor NaN nor -0.
"""
import functools
import json
import struct
import sys


def pack_part(part):
    (kind, value), = part.items()
    if kind == "bytes":
        return b"\x01" + bytes.fromhex(value).replace(b"\x00", b"\x00\xff") + b"\x00"
    if kind == "string":
        return b"\x02" + value.encode("utf-8").replace(b"\x00", b"\x00\xff") + b"\x00"
    if kind == "bigint":
        return pack_integer(int(value))
    if kind == "number":
        bits = int(value, 16)
        flipped = bits ^ (0xFFFFFFFFFFFFFFFF if bits >> 63 else 1 << 63)
        return b"\x21" + flipped.to_bytes(8, "big")
    if kind == "boolean":
        return b"\x27" if value else b"\x26"
    raise ValueError(f"no part: {part}")


def pack_integer(value):
    size = (abs(value).bit_length() + 7) // 8
    if size > 8:
        raise ValueError("beyond 64 bits")
    if value >= 0:
        return bytes([0x14 + size]) + value.to_bytes(size, "big")
    return bytes([0x14 - size]) + ((1 << (8 * size)) - 1 + value).to_bytes(size, "big")


def pack(parts):
    return b"".join(pack_part(part) for part in parts)


KINDS = ["bytes", "string", "bigint", "number", "boolean"]


def compare_parts(a, b):
    """By what the parts mean, not by their encoding."""
    (kind_a, x), = a.items()
    (kind_b, y), = b.items()
    if kind_a != kind_b:
        return KINDS.index(kind_a) - KINDS.index(kind_b)
    if kind_a == "bytes":
        x, y = bytes.fromhex(x), bytes.fromhex(y)
    elif kind_a == "string":
        x, y = [ord(c) for c in x], [ord(c) for c in y]
    elif kind_a == "bigint":
        x, y = int(x), int(y)
    elif kind_a == "number":
        x, y = number_rank(x), number_rank(y)
    return (x > y) - (x < y)


def number_rank(text):
    """-inf < ... < -0 < 0 < ... < inf < NaN, without looking at bits."""
    value = struct.unpack(">d", bytes.fromhex(text))[0]
    if value != value:
        return (1, 0.0, 0)
    negative_zero = value == 0 and str(value) == "-0.0"
    return (0, value, 0 if negative_zero else 1)


def compare(a, b):
    for x, y in zip(a, b):
        order = compare_parts(x, y)
        if order:
            return order
    return len(a) - len(b)


def number(value):
    return {"number": struct.pack(">d", value).hex()}


def text(value):
    return {"string": value}


def integer(value):
    return {"bigint": str(value)}


TUPLES = [
    [],
    [{"bytes": ""}], [{"bytes": "00"}], [{"bytes": "0000ff00"}], [{"bytes": b"foo\x00bar".hex()}],
    [{"bytes": "ff"}], [{"bytes": bytes(range(256)).hex()}],
    [text("")], [text("\x00")], [text("a")], [text("a\x00")], [text("a\x00b")], [text("ab")],
    [text("F\u00d4O\x00bar")], [text("\uffff")], [text("\U0001f9ed")], [text("\ufeff")],
    *[[integer(v)] for v in (0, 1, -1, 255, 256, -255, -256, 65535, -65536, 5551212, -5551212,
                             2**32, -2**32, 2**53 + 1, 2**63, -2**63, 2**64 - 1, -2**64 + 1)],
    *[[number(v)] for v in (0.0, -0.0, 1.0, -1.0, 42.0, -42.0, 1.5, 0.1, 5e-324, -5e-324,
                            1.7976931348623157e308, float("inf"), float("-inf"), 2.0**53)],
    [{"number": "7ff8000000000000"}],
    [{"boolean": False}], [{"boolean": True}],
    [text("a"), text("board")], [text("a"), text("board"), text("kv"), text("last")],
    [text("s"), text("site"), text("edge-1")],
    [text("t"), {"boolean": True}, integer(-7), number(2.5), {"bytes": "0001"}, text("\x00")],
]


def main():
    if len(sys.argv) > 1:
        tuples = json.load(sys.stdin)
        if sys.argv[1] == "--check":
            print(json.dumps([pack(parts).hex() for parts in tuples]))
        elif sys.argv[1] == "--order":
            order = sorted(range(len(tuples)),
                           key=functools.cmp_to_key(lambda i, j: compare(tuples[i], tuples[j])))
            print(json.dumps(order))
        return
    ordered = sorted(TUPLES, key=functools.cmp_to_key(compare))
    vectors = [{"parts": parts, "packed": pack(parts).hex()} for parts in ordered]
    print("[\n" + ",\n".join(json.dumps(v, ensure_ascii=True) for v in vectors) + "\n]")


main()
