#!/usr/bin/env python3
"""Vectors of docs/protocol/homes.md, by an implementation that shares nothing with functions/sessions/home/.

    homes.py    prints tests/golden/homes.json
"""
import json

ASKS = ["promise", "install", "align", "append", "fetch", "checkpoint", "forget",
        "acquire", "configure", "yield", "end", "look", "births", "greet", "invite",
        "upload", "parts", "recorded", "witness", "recall", "names"]
REPLIES = ["held", "promised", "copy", "refused", "row", "births", "nobody", "full", "parts",
           "witness", "recalled", "names", "waits"]
WHY = ["superseded", "unknown", "gap", "disk", "full", "parts"]
OUTCOMES = ["granted", "refused", "unsure"]


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


def flag(value):
    return bytes([1 if value else 0])


def items(values, write):
    return varint(len(values)) + b"".join(write(value) for value in values)


def name(n):
    return text(n["app"]) + text(n["class"]) + text(n["id"])


def owners(values):
    return items(values, lambda o: text(o["site"]) + varint(o["disk"]))


def mark(m):
    return varint(m["count"]) + varint(m["check"])


def parts(values):
    return items(values, lambda part: sized(bytes.fromhex(part)))


def base(b):
    if b is None:
        return flag(False)
    return (flag(True) + varint(b["at"]) + varint(b["epoch"]) + varint(b["wakeAtMs"]) + text(b["version"])
            + sized(bytes.fromhex(b["bytes"])) + sized(bytes.fromhex(b["answers"])) + mark(b["state"]))


def pieces(values):
    return items(values, lambda p: varint(p["epoch"]) + varint(p["first"]) + varint(p["count"])
                 + varint(p["wakeAtMs"]) + sized(bytes.fromhex(p["bytes"])))


def ask(a):
    kind = a["kind"]
    out = bytes([ASKS.index(kind)])
    if kind in ("greet", "witness"):
        return out
    if kind == "births":
        return out + owners(a["owners"])
    if kind == "names":
        return out + flag(a["after"] is not None) + (b"" if a["after"] is None else name(a["after"]))
    out += name(a["name"])
    if kind in ("look", "invite", "recall"):
        return out
    if kind == "acquire":
        return out + varint(a["seen"]) + varint(a["grant"]) + text(a["version"])
    if kind == "configure":
        return out + varint(a["epoch"]) + varint(a["config"]) + owners(a["owners"])
    if kind == "yield":
        return out + varint(a["epoch"]) + text(a["to"])
    if kind == "end":
        return out + varint(a["epoch"])
    out += varint(a["disk"]) + varint(a["epoch"])
    if kind == "promise":
        return out
    if kind == "install":
        return out + varint(a["turn"]) + bytes.fromhex(a["seed"]) + text(a["version"]) + base(a["base"])\
            + parts(a["parts"])
    if kind == "align":
        return out + varint(a["turn"]) + varint(a["keep"])
    if kind == "append":
        return out + pieces(a["pieces"])
    if kind == "fetch":
        return out + varint(a["after"]) + flag(a["whole"])
    if kind == "checkpoint":
        return out + base(a["base"]) + mark(a["kept"]) + parts(a["parts"])
    if kind == "upload":
        return out + varint(a["at"]) + varint(a["first"]) + parts(a["parts"])
    if kind == "parts":
        return out + varint(a["at"]) + varint(a["first"])
    if kind == "recorded":
        return out + varint(a["config"]) + owners(a["owners"])
    return out + varint(a["turn"])


def reply(r):
    kind = r["kind"]
    out = bytes([REPLIES.index(kind)])
    if kind == "held":
        return out + varint(r["through"])
    if kind == "promised":
        out += varint(r["disk"]) + flag(r["aligned"]) + flag(r["log"] is not None)
        if r["log"] is None:
            return out
        log = r["log"]
        return (out + varint(log["base"]["at"]) + varint(log["base"]["epoch"]) + mark(log["base"]["state"])
                + items(log["segments"], lambda s: varint(s["epoch"]) + varint(s["upTo"])))
    if kind == "copy":
        return (out + bytes.fromhex(r["seed"]) + text(r["version"]) + base(r["base"]) + parts(r["parts"])
                + pieces(r["pieces"]) + flag(r["more"]))
    if kind == "parts":
        return out + parts(r["parts"])
    if kind == "refused":
        return out + bytes([WHY.index(r["why"])]) + varint(r["epoch"]) + varint(r["last"])
    if kind == "row":
        out += bytes([OUTCOMES.index(r["outcome"])]) + flag(r["row"] is not None)
        if r["row"] is None:
            return out
        row = r["row"]
        return (out + text(row["site"]) + varint(row["epoch"]) + varint(row["config"]) + owners(row["owners"])
                + text(row["version"]) + flag(row["ended"]) + text(row["movesTo"]))
    if kind == "births":
        return out + varint(r["number"])
    if kind == "full":
        return out + varint(r["max"])
    if kind == "witness":
        return out + varint(r["disk"]) + varint(r["position"]) + items(r["jumps"], varint)
    if kind == "names":
        return out + items(r["names"], name) + flag(r["more"])
    if kind == "waits":
        return out + items(r["sites"], text)
    if kind == "recalled":
        return out + recalled(r)
    return out


def recalled(r):
    log, home = r["log"], r["home"]
    out = varint(r["disk"]) + flag(log is not None)
    if log is not None:
        out += (varint(log["promised"]) + text(log["by"]) + varint(log["config"]) + owners(log["owners"])
                + text(log["version"]))
    out += flag(home is not None)
    if home is not None:
        out += (varint(home["epoch"]) + varint(home["config"]) + owners(home["owners"])
                + flag(home["isChanging"]))
    return out + varint(r["granted"]) + varint(r["ended"])


def packet(p):
    second = bytes([0, 2]) + varint(p["witness"]) if "witness" in p else b""
    return (second + varint(p["boot"]) + varint(p["to"])
            + items(p["asks"], lambda one: varint(one["number"]) + ask(one["body"]))
            + items(p["replies"], lambda one: varint(one["number"]) + reply(one["body"])))


def packets():
    cart = {"app": "shop", "class": "cart", "id": "4711"}
    of = {"name": cart, "disk": 2**39, "epoch": 3}
    seed = bytes(range(32)).hex()
    piece = {"epoch": 2, "first": 1, "count": 3, "wakeAtMs": 0, "bytes": "c0ffee"}
    later = {"epoch": 3, "first": 4, "count": 1, "wakeAtMs": 1780000000123, "bytes": ""}
    state = {"at": 3, "epoch": 2, "wakeAtMs": 0, "version": "ab" * 32, "bytes": "0102", "answers": "0000",
             "state": {"count": 0, "check": 0}}
    large = {**state, "at": 300, "state": {"count": 200, "check": 2**32 - 1}}
    two = [{"site": "edge-1", "disk": 2**39}, {"site": "core-2", "disk": 7}]
    row = {"site": "edge-1", "epoch": 3, "config": 2, "owners": two, "version": "v", "ended": False, "movesTo": ""}
    asks = [
        {"kind": "greet"},
        {"kind": "promise", **of},
        {"kind": "install", **of, "disk": 0, "turn": 1, "seed": seed, "version": "v", "base": None, "parts": []},
        {"kind": "install", **of, "turn": 300, "seed": seed, "version": "v", "base": state, "parts": []},
        {"kind": "install", **of, "turn": 1, "seed": seed, "version": "v", "base": large, "parts": ["00ff", ""]},
        {"kind": "align", **of, "turn": 0, "keep": 3},
        {"kind": "append", **of, "pieces": [piece, later]},
        {"kind": "append", **of, "pieces": []},
        {"kind": "fetch", **of, "after": 128, "whole": True},
        {"kind": "checkpoint", **of, "base": state, "kept": {"count": 0, "check": 0}, "parts": []},
        {"kind": "checkpoint", **of, "base": large, "kept": {"count": 199, "check": 7}, "parts": ["c0ffee"]},
        {"kind": "upload", **of, "at": 300, "first": 128, "parts": ["01", "02"]},
        {"kind": "parts", **of, "at": 300, "first": 0},
        {"kind": "forget", **of, "turn": 2},
        {"kind": "acquire", "name": cart, "seen": 0, "grant": 2**47, "version": "v"},
        {"kind": "configure", "name": cart, "epoch": 3, "config": 1, "owners": two},
        {"kind": "yield", "name": cart, "epoch": 3, "to": "edge-2"},
        {"kind": "end", "name": {**cart, "id": "é"}, "epoch": 2**53 - 1},
        {"kind": "look", "name": cart},
        {"kind": "births", "owners": two},
        {"kind": "invite", "name": cart},
    ]
    replies = [
        {"kind": "held", "through": 4},
        {"kind": "promised", "disk": 7, "aligned": False, "log": None},
        {"kind": "promised", "disk": 7, "aligned": True, "log": {
            "base": {"at": 3, "epoch": 2, "state": {"count": 2, "check": 5}}, "segments": [{"epoch": 2, "upTo": 5}, {"epoch": 3, "upTo": 300}]}},
        {"kind": "copy", "seed": seed, "version": "v", "base": large, "parts": ["0a"], "pieces": [later],
         "more": True},
        {"kind": "parts", "parts": ["0b0c"]},
        *({"kind": "refused", "why": why, "epoch": 4, "last": 200} for why in WHY),
        *({"kind": "row", "outcome": outcome, "row": row} for outcome in OUTCOMES),
        {"kind": "row", "outcome": "granted", "row": None},
        {"kind": "births", "number": 37},
        {"kind": "nobody"},
        {"kind": "full", "max": 100000},
    ]
    cases = [{"boot": 1, "to": 0, "asks": [], "replies": []}]
    cases += [{"boot": 5, "to": 2**40, "asks": [{"number": i + 1, "body": a}], "replies": []}
              for i, a in enumerate(asks)]
    cases += [{"boot": 2**47, "to": 9, "asks": [], "replies": [{"number": 200 + i, "body": r}]}
              for i, r in enumerate(replies)]
    cases += [{"boot": 3, "to": 4, "asks": [{"number": 1, "body": asks[1]}, {"number": 2, "body": asks[5]}],
               "replies": [{"number": 9, "body": replies[0]}, {"number": 8, "body": replies[-1]}]}]
    new_asks = [
        {"kind": "recorded", **of, "config": 130, "owners": two},
        {"kind": "witness"},
        {"kind": "recall", "name": cart},
        {"kind": "names", "after": None},
        {"kind": "names", "after": cart},
    ]
    word = {"promised": 3, "by": "edge-1", "config": 2, "owners": two, "version": "v"}
    home = {"epoch": 3, "config": 2, "owners": two, "isChanging": True}
    new_replies = [
        {"kind": "witness", "disk": 2**39, "position": 300, "jumps": []},
        {"kind": "witness", "disk": 2**39, "position": 2**34, "jumps": [7, 2**33]},
        {"kind": "recalled", "disk": 7, "log": None, "home": None, "granted": 0, "ended": 300},
        {"kind": "recalled", "disk": 7, "log": word, "home": home, "granted": 5, "ended": 0},
        {"kind": "names", "names": [cart, {**cart, "id": "é"}], "more": True},
        {"kind": "waits", "sites": ["edge-1", "edge-2"]},
    ]
    second = {"witness": 0, "boot": 2**48, "to": 2**48 + 2**47}
    cases += [{**second, "asks": [{"number": 128 + i, "body": a}], "replies": []} for i, a in enumerate(new_asks)]
    cases += [{**second, "witness": 300, "asks": [], "replies": [{"number": 1 + i, "body": r}]}
              for i, r in enumerate(new_replies)]
    cases += [{**second, "asks": [{"number": 1, "body": asks[1]}], "replies": [{"number": 2, "body": replies[0]}]}]
    return [{"packet": case, "bytes": packet(case).hex()} for case in cases]


print(json.dumps({"packets": packets()}, indent=1, ensure_ascii=False))
