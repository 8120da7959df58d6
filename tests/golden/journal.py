#!/usr/bin/env python3
"""Vectors of docs/protocol/journal.md, by an implementation that shares nothing with store/ or runtime/storage/.

    journal.py    prints tests/golden/journal.json
"""
import hashlib
import json
import random
import struct
import zlib

EPOCH_MS = 1735689600000  # 2025-01-01
TICKS = 4096


def versionstamp(clock, replica):
    return (clock.to_bytes(7, "big") + replica.to_bytes(3, "big")).hex()


def versions():
    cases = [(EPOCH_MS, 0, 1), (EPOCH_MS + 1, 0, 1), (EPOCH_MS + 1, 4095, 255), (EPOCH_MS, 4096, 256),
             (1780000000123, 17, 2**24 - 1), (EPOCH_MS + 2**41 - 1, 4095, 2)]
    return [{"ms": ms, "logical": logical, "replica": replica,
             "clock": (ms - EPOCH_MS) * TICKS + logical,
             "versionstamp": versionstamp((ms - EPOCH_MS) * TICKS + logical, replica)}
            for ms, logical, replica in cases]


def key(*names):
    """Strings without zero bytes are all the keys that these vectors need (docs/protocol/keys.md)."""
    return b"".join(b"\x02" + name.encode() + b"\x00" for name in names)


# --- A journal as a list: the definition, not an implementation ---

def history():
    """Steps, and after each what the journal, the rows and the byte count must be."""
    draw = random.Random(2026)
    names = [("a",), ("a", "1"), ("a", "2"), ("ab",), ("b",), ("b", "x" * 300), ("b", "x" * 1200, "y"), ("b", "x" * 1200)]
    journal, records, steps, position = [], {}, [], 0
    for _ in range(24):
        rows, drop = [], [key(*draw.choice(names)) for _ in range(draw.choice([0, 0, 0, 1, 2]))]
        for _ in range(draw.randrange(5)):
            position += draw.choice([1, 1, 1, 40])
            size = draw.choice([None, 0, 3, 900, 70000])
            rows.append({"key": key(*draw.choice(names)).hex(), "position": position, "size": size})
        changed = {draw.choice(["cursor", "coverage"]): draw.choice([None, 5, 130000])} if draw.random() < 0.5 else {}
        for dropped in drop:
            journal = [row for row in journal if row["key"] != dropped.hex()]
        for row in rows:
            journal = [old for old in journal if old["key"] != row["key"]] + [row]
        for name, size in changed.items():
            records.pop(name, None)
            if size is not None:
                records[name] = size
        live = sorted(journal, key=lambda row: bytes.fromhex(row["key"]))
        steps.append({"rows": rows, "drop": [k.hex() for k in drop], "records": changed, "after": {
            "journal": [row["position"] for row in journal],
            "byKey": [row["position"] for row in live],
            "bytes": sum(len(row["key"]) // 2 + (row["size"] or 0) for row in live),
            "records": dict(sorted(records.items())),
        }})
    return steps


# --- Deno KV: row records and the redo log ---

PIECE = 61440


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def sized(data):
    return varint(len(data)) + data


def row_record(row, value):
    packed = bytes.fromhex(row["key"])
    pieces = 0 if value is None or len(value) <= PIECE else -(-len(value) // PIECE)
    out = b"".join(varint(row[field]) for field in ("position", "clock", "replica", "known", "expiresAtMs"))
    out += sized(packed if len(packed) > 1000 else b"")
    out += bytes([value is not None]) + varint(len(value or b"")) + varint(pieces)
    if value is not None and pieces == 0:
        out += sized(value)
    return out, pieces


def kv_parts(packed):
    """The parts of a row's key after "r", in hex."""
    if len(packed) <= 1000:
        return [packed.hex()]
    return [packed[:1000].hex(), hashlib.sha256(packed).digest()[:16].hex()]


def sealed_record(record, value, pieces, parts):
    """A record of `denokv 2`: that of `denokv 1`, the sum of a value in pieces, and a sum over its place and all of it."""
    body = record + (varint(zlib.crc32(value)) if pieces else b"")
    return body + zlib.crc32(b"".join(map(bytes.fromhex, parts)) + body).to_bytes(4, "big")


def shown(name, data):
    """What holds 60 KB of zeros is given by its length and digest."""
    if len(data) < 4000:
        return {name: data.hex()}
    return {name + "Bytes": len(data), name + "Sha256": hashlib.sha256(data).hexdigest()}


def row_sums():
    """Sums of rows in SQLite."""
    cases = [(1, 5, 1, 0, 0, key("a"), b"hi"), (1, 5, 1, 0, 0, key("a"), b""), (1, 5, 1, 0, 0, key("a"), None),
             (2**53 - 1, 2**53 - 1, 2**24 - 1, 3, 1900000000123, key("a", "b"), b"\x00\xff")]
    return [{"row": dict(zip(("position", "clock", "replica", "known", "expiresAtMs"), case[:5]), key=case[5].hex()),
             "value": None if case[6] is None else case[6].hex(),
             "sum": zlib.crc32(case[5] + struct.pack(">5d", *case[:5]) + bytes([case[6] is not None]) + (case[6] or b""))}
            for case in cases]


def row_records():
    plain = {"position": 1, "clock": 5, "replica": 1, "known": 0, "expiresAtMs": 0}
    big = {"position": 2**53 - 1, "clock": 2**53 - 1, "replica": 2**24 - 1, "known": 3, "expiresAtMs": 1900000000123}
    cases = [(plain, key("a"), b"hi"), (plain, key("a"), b""), (plain, key("a"), None), (big, key("a", "b"), b"\x00\xff"),
             (plain, key("l" * 998), b"whole"), (plain, key("l" * 999), b"long"), (big, key("x" * 2040), None),
             (plain, key("p"), bytes(PIECE)), (plain, key("p"), bytes(PIECE + 1)), (plain, key("p"), bytes(2**20))]
    out = []
    for fields, packed, value in cases:
        row = {"key": packed.hex(), **fields}
        record, pieces = row_record(row, value)
        out.append({"row": row, "size": None if value is None else len(value),
                    "value": None if value is None or len(value) > 100 else value.hex(),
                    "parts": kv_parts(packed), "pieces": pieces, **shown("record", record),
                    **shown("sealed", sealed_record(record, value, pieces, kv_parts(packed)))})
    return out


def redo():
    mutations = [(["r", key("a")], b"record"), (["j", 7], key("a")), (["j", 3], None), (["c", 300, 0], bytes(70000)),
                 (["n", "coverage", 2], None), (["t"], b"\x05")]
    log = varint(len(mutations))
    for parts, value in mutations:
        log += varint(len(parts))
        for part in parts:
            if isinstance(part, str):
                log += b"\x00" + sized(part.encode())
            elif isinstance(part, int):
                log += b"\x01" + varint(part)
            else:
                log += b"\x02" + sized(part)
        log += b"\x00" if value is None else b"\x01" + sized(value)
    pieces = [log[i:i + PIECE] for i in range(0, len(log), PIECE)]
    shown = [[{"bytes": p.hex()} if isinstance(p, bytes) else p for p in parts] for parts, _ in mutations]
    return {"mutations": [{"key": parts, "size": None if value is None else len(value),
                           "value": value.hex() if value is not None and len(value) < 100 else None}
                          for parts, (_, value) in zip(shown, mutations)],
            "pieces": [{"bytes": len(p), "sha256": hashlib.sha256(p).hexdigest()} for p in pieces]}


print(json.dumps({"versions": versions(), "history": history(), "rowSums": row_sums(), "rowRecords": row_records(), "redo": redo()}, indent=1))
