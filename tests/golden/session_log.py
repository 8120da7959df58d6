#!/usr/bin/env python3
"""Vectors of docs/protocol/session-log.md, by an implementation that shares nothing with functions/.

    session_log.py    prints tests/golden/session_log.json
"""
import json
import struct


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


KINDS = ["request", "message", "attach", "detach", "timer", "local", "result", "error", "rejected", "epoch",
         "birth", "clock", "effect", "checkpoint"]


def whole_head(kind, dt):
    byte = bytes([KINDS.index(kind) + 1])
    if dt is None:
        return byte + b"\xfe"
    if dt <= 253:
        return byte + bytes([dt])
    return byte + b"\xff" + varint(dt - 254)


def head(kind, dt):
    byte = (KINDS.index(kind) + 1) << 4
    if dt is None:
        return bytes([byte | 14])
    if dt <= 13:
        return bytes([byte | dt])
    return bytes([byte | 15]) + varint(dt - 14)


def fields(e):
    kind = e["kind"]
    if kind == "request":
        return text(e["request"]) + items(e["chain"], text) + sized(bytes.fromhex(e["bytes"]))
    if kind == "message":
        is_text = "text" in e
        return text(e["peer"]) + bytes([is_text]) + (text(e["text"]) if is_text else sized(bytes.fromhex(e["bytes"])))
    if kind == "attach":
        return bytes([["client", "origin"].index(e["peer"]["kind"])]) + text(e["peer"]["id"])
    if kind == "detach":
        return text(e["peer"])
    if kind == "timer":
        return text(e["name"])
    if kind == "local":
        return varint(e["local"])
    if kind == "result":
        return varint(e["call"]) + sized(bytes.fromhex(e["bytes"]))
    if kind == "error":
        return varint(e["call"]) + text(e["code"]) + text(e["message"])
    if kind == "rejected":
        drops = {"none": 0, "all": 1}.get(e["drops"])
        subject = e["subject"] or {"kind": "", "id": ""}
        code = ["", "request", "message", "detach", "attach", "timer"].index(subject["kind"])
        tried = e["attempt"]
        return (varint(e["voids"]) + bytes([code + (8 if tried else 0)]) + text(subject["id"])
                + (varint(tried) if tried else b"") + text(e["code"])
                + text(e["message"]) + varint(e["drops"] + 1 if drops is None else drops)
                + varint(e["nextCall"]) + varint(e["nextLocal"]) + varint(e["nextEffect"]))
    if kind == "epoch":
        return varint(e["epoch"]) + varint(e["replica"]) + text(e["code"])
    return sized(bytes.fromhex(e["seed"]))


def turn(t):
    """All entries of a turn, and how many."""
    clocks, before = t["clocks"], t["beforeMs"]
    first = clocks[0] - before if clocks else None
    kind, said = t["input"]["kind"], fields(t["input"])
    if isinstance(t["check"], str):
        out = whole_head(kind, first) + said + bytes.fromhex(t["check"])
    else:  # of before: the low byte of 32 bits
        out = head(kind, first) + said + bytes([t["check"] & 0xFF])
    for earlier, later in zip(clocks, clocks[1:]):
        out += head("clock", later - earlier)
    if t["storeClock"] is not None:
        out += head("effect", None) + varint(t["storeClock"])
    return out, 1 + max(0, len(clocks) - 1) + (t["storeClock"] is not None)


def turns():
    seed = bytes(range(32)).hex()
    quiet = {"beforeMs": 1780000000000, "clocks": [], "storeClock": None, "check": 0}
    inputs = [
        ({"kind": "birth", "seed": seed}, {"beforeMs": 0, "clocks": [1780000000123], "check": 0xDEADBEEF}),
        ({"kind": "epoch", "epoch": 1, "replica": 7, "code": "v1"}, {"check": 255}),
        ({"kind": "request", "request": "r-1", "chain": [], "bytes": "0001"}, {"clocks": [1780000000000], "check": 1}),
        ({"kind": "request", "request": "é", "chain": ["cart/a", "card/b"], "bytes": ""},
         {"clocks": [1780000000013, 1780000000013, 1780000004096], "storeClock": 2**52 + 1, "check": 300}),
        ({"kind": "message", "peer": "p1", "text": "hello"}, {"clocks": [1780000000014]}),
        ({"kind": "message", "peer": "p1", "bytes": "ff00"}, {"storeClock": 128}),
        ({"kind": "attach", "peer": {"kind": "client", "id": "p1"}}, {}),
        ({"kind": "attach", "peer": {"kind": "origin", "id": "o"}}, {}),
        ({"kind": "detach", "peer": "p1"}, {}),
        ({"kind": "timer", "name": "idle"}, {"clocks": [1780000060000]}),
        ({"kind": "local", "local": 128}, {}),
        ({"kind": "result", "call": 3, "bytes": "c0ffee"}, {}),
        ({"kind": "error", "call": 4, "code": "wall_time", "message": "too long"}, {}),
        ({"kind": "rejected", "voids": 2, "subject": {"kind": "request", "id": "r-1"}, "attempt": 0, "code": "app_error", "message": "no", "drops": "none",
          "nextCall": 5, "nextLocal": 1, "nextEffect": 300}, {}),
        ({"kind": "rejected", "voids": 0, "subject": None, "attempt": 0, "code": "x", "message": "", "drops": 9,
          "nextCall": 1, "nextLocal": 10, "nextEffect": 1}, {}),
        ({"kind": "rejected", "voids": 0, "subject": None, "attempt": 0, "code": "x", "message": "", "drops": "all",
          "nextCall": 1, "nextLocal": 10, "nextEffect": 1}, {}),
        ({"kind": "rejected", "voids": 0, "subject": {"kind": "message", "id": "p1"}, "attempt": 0,
          "code": "app_error", "message": "no", "drops": "none", "nextCall": 1, "nextLocal": 1, "nextEffect": 1}, {}),
        ({"kind": "rejected", "voids": 3, "subject": {"kind": "detach", "id": "p1"}, "attempt": 0,
          "code": "x", "message": "", "drops": "none", "nextCall": 1, "nextLocal": 1, "nextEffect": 2}, {}),
        ({"kind": "rejected", "voids": 1, "subject": {"kind": "timer", "id": "idle"}, "attempt": 3,
          "code": "app_error", "message": "no", "drops": "none", "nextCall": 1, "nextLocal": 1, "nextEffect": 1}, {}),
    ]
    out = []
    for entry, more in inputs:
        old = {**quiet, **more, "input": entry}
        whole = {**old, "check": "%08x%08x" % (old["check"], 0xFFFFFFFF - 3 * len(out))}
        for case in [old, whole]:
            data, count = turn(case)
            out.append({"turn": case, "count": count, "bytes": data.hex()})
    for dt in [13, 14, 253, 254, 300]:
        case = {**quiet, "clocks": [quiet["beforeMs"] + dt], "check": "00000000ffffffff", "input": inputs[-1][0]}
        out.append({"turn": case, "count": 1, "bytes": turn(case)[0].hex()})
    return out


# The rolling check: two words, a block of two words each into them.

MASK = 0xFFFFFFFF


def block(state, low_word, high_word):
    low, high = state
    low = (low ^ low_word) * 0x9E3779B1 & MASK
    high = (high ^ high_word) * 0x85EBCA77 & MASK
    low ^= low >> 15
    high ^= high >> 13
    low = (low + high) & MASK
    return low, ((high << 11 | high >> 21) + low) & MASK


def rolled(given, short=0x811C9DC5):
    state = block((0x811C9DC5, 0x811C9DC5), short, 0)
    for kind, value in given:
        if kind == "number":
            state = block(state, value & MASK, value >> 32 & MASK)
            continue
        data = value.encode("utf-16-le") if kind == "text" else bytes.fromhex(value)
        size = len(data) // 2 if kind == "text" else len(data)
        state = block(state, size, 1 if kind == "text" else 2)
        data += bytes(-len(data) % 8)
        for at in range(0, len(data), 8):
            state = block(state, *struct.unpack_from("<II", data, at))
    return "%08x%08x" % (state[1], state[0])


def checks():
    cases = [[], [("number", 0)], [("number", -1)], [("number", 2**52 + 1)], [("text", "")], [("text", "a")],
             [("text", "r-1"), ("number", 1), ("bytes", "0001ff")], [("text", "four")], [("text", "d\u00e9j\u00e0 vu")],
             [("bytes", "")], [("bytes", bytes(range(7)).hex())], [("bytes", bytes(range(8)).hex())],
             [("bytes", bytes(range(0xF0, 0x100)).hex()), ("number", 1780000000123)]]
    return [{"given": [list(each) for each in case], "check": rolled(case)} for case in cases]


def checkpoint_entries():
    return [{"digest": digest, "bytes": (head("checkpoint", None) + varint(digest)).hex()}
            for digest in [0, 127, 2**32 - 1]]


def mutation(m):
    out = bytes([["set", "delete", "sum", "min", "max"].index(m["kind"])]) + sized(m["key"].encode("latin-1"))
    if m["kind"] != "delete":
        out += sized(bytes.fromhex(m["value"]))
    if m["kind"] == "set":
        out += varint(m.get("expireInMs", 0))
    return out


def peer(p, version):
    out = bytes([["client", "origin"].index(p["kind"])]) + text(p["id"]) + varint(p["sent"])
    return out if version == 1 else out + varint(p["received"]) + bytes([p["isClosed"]])


def checkpoint(c, version=4):
    return (bytes([version]) + varint(c["epoch"]) + varint(c["replica"]) + text(c["code"])
            + (varint(c["shape"]) if version > 2 else b"") + bytes.fromhex(c["seed"])
            + b"".join(varint(c[name]) for name in ["originMs", "clockMs", "storeClock", "math", "crypto"])
            + (bytes.fromhex(c["check"]) if version > 3 else varint(c["check"]))
            + b"".join(varint(c[name]) for name in ["nextCall", "nextLocal", "nextEffect"])
            + items(c["timers"], lambda t: text(t["name"]) + varint(t["dueMs"]))
            + items(c["peers"], lambda p: peer(p, version))
            + items(c["outputs"], lambda o: text(o["to"]) + varint(o["sequence"]) + sized(bytes.fromhex(o["bytes"])))
            + items(c["effects"], lambda e: varint(e["effect"]) + varint(e["clock"]) + varint(e["replica"])
                    + varint(e["atMs"]) + items(e["mutations"], mutation)
                    + (items(e["sends"], send) if version > 5 else b""))
            + (items(c["counts"], count) if version > 4 else b"")
            + (b"" if version > 2 else sized(bytes.fromhex(c["state"]))))


def send(s):
    return (text(s["queue"]) + text(s.get("id", "")) + varint(s.get("delayMs", 0)) + varint(s.get("ttlMs", 0))
            + sized(bytes.fromhex(s["body"])))


def count(c):
    return text(c["name"]) + bytes([["number", "bigint", "string"].index(c["type"])]) + text(c["value"])


def checkpoints():
    blank = {"epoch": 1, "replica": 3, "code": "v1", "seed": bytes(range(32)).hex(), "originMs": 1780000000000,
             "clockMs": 1780000000123, "storeClock": 0, "math": 0, "crypto": 0, "check": 0x811C9DC5, "nextCall": 1,
             "nextLocal": 1, "nextEffect": 1, "timers": [], "peers": [], "outputs": [], "effects": [],
             "state": None, "shape": 0}
    full = {**blank, "epoch": 300, "storeClock": 2**52, "math": 2**33, "crypto": 64, "nextCall": 128,
            "timers": [{"name": "idle", "dueMs": 1780000060000}, {"name": "é", "dueMs": 0}],
            "peers": [{"kind": "client", "id": "p1", "sent": 9, "received": 300, "isClosed": False},
                      {"kind": "origin", "id": "o", "sent": 0, "received": 0, "isClosed": True}],
            "outputs": [{"to": "r-1", "sequence": 1, "bytes": "00ff"}, {"to": "p1", "sequence": 9, "bytes": ""}],
            "effects": [{"effect": 4, "clock": 2**52, "replica": 3, "atMs": 1780000000100, "mutations": [
                {"kind": "set", "key": "\x02kv\x00", "value": "01", "expireInMs": 1000},
                {"kind": "set", "key": "\x02\xff", "value": ""}, {"kind": "delete", "key": "k"},
                {"kind": "sum", "key": "s", "value": "10"}]}],
            "shape": 300}
    # The first two formats had the state in themselves, and no shape.
    inside = {"state": state_bytes(STATE), "shape": 0}
    # The first format had no counts of messages: whoever reads it takes them for none.
    none = [{**p, "received": 0, "isClosed": False} for p in full["peers"]]
    whole = {"check": "811c9dc500000001"}
    counts = [{"name": "lodash: idCounter", "type": "number", "value": "3"},
              {"name": "a: b (2)\0c", "type": "number", "value": "-0"},
              {"name": "n", "type": "number", "value": "NaN"}, {"name": "f", "type": "number", "value": "1.5e+300"},
              {"name": "big", "type": "bigint", "value": "-18446744073709551616"},
              {"name": "text", "type": "string", "value": "é"}]
    sends = [{"queue": "jobs", "body": "02616263"},
             {"queue": "mail", "id": "é", "delayMs": 300, "ttlMs": 60000, "body": ""}]
    sending = {**full, **whole, "counts": [], "effects": [
        *[{**e, "sends": []} for e in full["effects"]],
        {"effect": 5, "clock": 2**52 + 16, "replica": 3, "atMs": 1780000000123, "mutations": [], "sends": sends}]}
    return ([{"checkpoint": case, "format": 6, "bytes": checkpoint(case, 6).hex()}
             for case in [sending, {**sending, "counts": counts}]]
            + [{"checkpoint": {**full, **whole, "counts": counts}, "format": 5,
              "bytes": checkpoint({**full, **whole, "counts": counts}, 5).hex()}]
            + [{"checkpoint": case, "format": 4, "bytes": checkpoint(case).hex()}
             for case in [{**blank, **whole}, {**full, **whole}]]
            + [{"checkpoint": case, "format": 3, "bytes": checkpoint(case, 3).hex()} for case in [blank, full]]
            + [{"checkpoint": case, "format": 2, "bytes": checkpoint(case, 2).hex()}
               for case in [{**blank, "state": "00"}, {**full, **inside}]]
            + [{"checkpoint": case, "format": 1, "bytes": checkpoint(case, 1).hex()}
               for case in [{**blank, "state": "00"}, {**full, **inside, "peers": none}]])


# Parts of a state, as keepers have them.

def zstd(data):
    """A frame of one block that is not compressed: of what any packer makes, what needs none."""
    return (b"\x28\xb5\x2f\xfd\x20" + bytes([len(data)]) + ((len(data) << 3) | 1).to_bytes(3, "little") + data)


def state_parts():
    plain = [b"", b"\x00\xff", bytes(range(200))]
    return [{"segments": [one.hex() for one in plain], "parts": [(b"\x80" + one).hex() for one in plain],
             "packs": True},
            {"segments": [(plain[2] + plain[1]).hex()], "packs": False,
             "parts": [(b"\x01" + struct.pack("<I", 200) + zstd(plain[2])).hex(), (b"\x80" + plain[1]).hex()]},
            {"segments": [plain[2].hex()], "packs": False,
             "parts": [(b"\x81" + struct.pack("<I", 200) + zstd(plain[2])).hex()]}]


# The state: tracked structures by what changed, plain fields as a whole.

def content_json(value):
    return b"\x01" + json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def number(value):
    return b"\x04" + struct.pack("<d", value)


def page(values, parts=()):
    return (varint(len(values)) + sized(content_json(values))
            + items(parts, lambda p: varint(p[0]) + bytes([p[1]]) + sized(p[2])))


def pages(runs):
    return varint(len(runs)) + b"".join(runs)


def list_whole(values, parts=()):
    runs = items([values] if values else [], lambda v: varint(2 * len(v)))
    return runs + pages([page(values, parts)] if values else []) + b"\x00" + b"\x00" + b"\x00"


def map_segment(cleared, deleted, keys, values, parts=(), inside=()):
    return (bytes([cleared]) + sized(content_json(deleted) if deleted is not None else b"")
            + pages([sized(content_json(keys)) + page(values, parts)] if keys else [])
            + sized(content_json([key for key, _ in inside]) if inside else b"")
            + b"".join(sized(segment) for _, segment in inside))


def memory(whole, length, lines):
    return bytes([whole]) + varint(length) + lines


STATE = [
    ("stamps", 2, True, [map_segment(True, None, ["a", "b"], [1, None], [(1, 3, list_whole(["x"]))]),
                         map_segment(False, ["a"], ["c"], [{"n": 2}], [],
                                     # The list that "b" has: its first item kept, one more.
                                     [("b", items([(1, 0), (1, None)], lambda run: varint(2) if run[1] is None
                                           else varint(3) + varint(0)) + pages([page(["y"])]) + b"\x00\x00\x00")])]),
    # 300 bytes, of which the second line was written, then one byte of the first: the 8 around it.
    ("picture", 4, True, [memory(True, 300, varint(2 * 1 + 1) + varint(1) + b"\x05" * 44 + bytes(212)),
                          memory(False, 300, varint(0) + struct.pack("<I", 1 << 1) + b"\x00\x09" + bytes(6))]),
    ("", 0, True, [content_json({"visits": 3, "owner": "ada"})]),
    ("old", 255, True, []),
]


def state_bytes(state):
    return items(state, lambda f: text(f[0]) + bytes([f[1], f[2]]) + items(f[3], sized)).hex()


def contents():
    """Values that JSON does not keep."""
    return [
        {"js": "undefined", "bytes": b"\x02\x01"},
        {"js": "-0", "bytes": b"\x02" + number(-0.0)},
        {"js": "[NaN, 1n, -255n]", "bytes": b"\x02\x08\x03" + number(float("nan")) + b"\x07\x00" + text("1")
         + b"\x07\x01" + text("ff")},
        {"js": "new Map([['k', new Date(5)]])", "bytes": b"\x02\x0d\x01\x05" + text("k") + b"\x0b" + struct.pack("<d", 5)},
        {"js": "new Uint8Array([1, 2, 3]).subarray(1)",
         "bytes": b"\x02\x10\x00" + varint(1) + varint(2) + b"\x0f" + sized(b"\x01\x02\x03")},
        {"js": "(() => { const o = { a: 1 }; return [o, o]; })()",
         "bytes": b"\x02\x08\x02\x0a\x01\x05" + text("a") + number(1) + b"\x12\x01"},
        {"js": "/x/g", "bytes": b"\x02\x0c\x05" + text("x") + b"\x05" + text("g")},
        {"js": "new Set(['\\ud800'])", "bytes": b"\x02\x0e\x01\x06" + sized(b"\x00\xd8")},
        {"js": "[Object.assign(/a/gy, { lastIndex: 300 }), /a/g]",
         "bytes": b"\x02\x08\x02\x13\x05" + text("a") + b"\x05" + text("gy") + varint(300)
         + b"\x0c\x05" + text("a") + b"\x05" + text("g")},
        {"js": "[, 2]", "bytes": b"\x02\x09\x02\x01\x05" + text("1") + number(2)},
        {"js": "{ __proto__: null, a: 1 }", "bytes": b"\x02\x15\x01\x05" + text("a") + number(1)},
    ]


def plain_fields():
    """Plain fields with what is frozen or sealed, and with what a module holds: `level` under the name LEVELS[1]."""
    copy = b"\x02\x14\x03\x0a\x01\x05" + text("n") + number(2)
    return (b"\x02\x0a\x04"
            + b"\x05" + text("fixed") + b"\x14\x03\x0a\x01\x05" + text("a") + b"\x14\x02\x08\x01" + number(7)
            + b"\x05" + text("open") + b"\x14\x01\x08\x01" + number(1)
            + b"\x05" + text("level") + b"\x16\x05" + text("LEVELS[1]") + sized(copy)
            + b"\x05" + text("again") + b"\x12\x04").hex()


def token_bytes(token):
    def position(entry):
        value, followed = entry
        if value is not None:
            return b"\x01" + varint(value)
        return b"\x02" + varint(followed) if followed > 0 else b"\x00"
    return (b"\x01" + bytes.fromhex(token["session"]) + varint(token["sequence"]) + varint(token["replica"])
            + varint(token["clock"]) + bytes([token["open"]]) + items(list(zip(token["path"], token.get("followed", [0] * 12))), position))


def piece_bytes(piece):
    seen, rest = piece["seen"], bytes.fromhex(piece["bytes"])
    if seen is not None and not seen["isWhole"]:
        return token_bytes(seen["token"]) + sized(rest)
    flags = (1 if seen else 0) | (2 if piece["open"] else 0) | (4 if piece["marks"] else 0)
    flags |= 8 if "writer" in piece else 0
    if flags == 0:
        return b"\x02" + rest
    return (b"\x03" + bytes([flags]) + (token_bytes(seen["token"]) + varint(seen["applied"]) if seen else b"")
            + (varint(piece["open"]) if piece["open"] else b"")
            + (varint(piece["writer"]) if "writer" in piece else b"") + rest)


def pieces():
    token = {"session": "000102030405060708090a0b0c0d0e0f", "sequence": 3, "replica": 300, "clock": 129169000062976,
             "open": False, "path": [7, None, 1000]}
    whole = {"token": token, "applied": 0, "isWhole": True}
    shown = [
        {"seen": None, "open": 0, "marks": False, "bytes": "5e5f"},
        {"seen": whole, "open": 0, "marks": False, "bytes": "5e5f"},
        {"seen": {**whole, "applied": 130}, "open": 129169000062977, "marks": False, "bytes": ""},
        {"seen": None, "open": 1, "marks": False, "bytes": "5e"},
        {"seen": None, "open": 1, "marks": True, "bytes": "5e"},
        {"seen": {**whole, "applied": 1}, "open": 0, "marks": False, "writer": 301, "bytes": "5e"},
        {"seen": None, "open": 0, "marks": False, "writer": 300, "bytes": "5e5f"},
        {"seen": {**whole, "token": {**token, "path": [None, None, 1000], "followed": [300, 0, 0]}}, "open": 0,
         "marks": False, "bytes": "5e"},
        {"seen": {**whole, "isWhole": False}, "open": 0, "marks": False, "bytes": "5e5f"},
    ]
    return [{"piece": piece, "packed": piece_bytes(piece).hex()} for piece in shown]


print(json.dumps({
    "turns": turns(),
    "checks": checks(),
    "checkpointEntries": checkpoint_entries(),
    "checkpoints": checkpoints(),
    "parts": state_parts(),
    "state": state_bytes(STATE),
    "pieces": pieces(),
    "contents": [{**each, "bytes": each["bytes"].hex()} for each in contents()],
    "plainFields": plain_fields(),
}, indent=1, ensure_ascii=False))
