#!/usr/bin/env python3
"""Runs the program itself on damage: flipped bits through `roundtrip`, kill -9 during `patch`.

    scripts/soak_cli.py bits COUNT [DIRECTORY…]   single bits at random places of the code objects there
    scripts/soak_cli.py kill COUNT                `patch --grow -o` killed after a random time

COAX names the program (default: target/release/coax), SEED repeats a run. Exit code 1 when anything crashed, hung, or
left a target that is not whole; the files that did it are kept, and named.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COAX = os.environ.get("COAX", str(ROOT / "target/release/coax"))
BATCH = 500
# A code object takes milliseconds.
BATCH_SECONDS = 600
FILE_SECONDS = 60


def objects(directories):
    found = []
    for directory in directories:
        found += [p for p in sorted(Path(directory).rglob("*")) if p.suffix in (".co", ".hsaco", ".o") and p.is_file()]
    return [(path, path.read_bytes()) for path in found]


def bad_exit(code):
    """Neither an answer nor an error that is told: a panic is 101, a signal is negative."""
    return code not in (0, 1, 2, 3)


def roundtrip(path, seconds):
    """Exit code (none for a hang) and what was said."""
    try:
        done = subprocess.run([COAX, "roundtrip", str(path)], capture_output=True, text=True, errors="replace", timeout=seconds)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return None, ""


def bits(count, directories, rng):
    pool = objects(directories)
    if not pool:
        sys.exit(f"error: no code objects in {directories}")
    print(f"{count} flips over {len(pool)} files, SEED={rng.seed_of}", flush=True)
    totals = dict(identical=0, error=0, differ=0, crash=0, hang=0)
    kept = []
    done = 0
    while done < count:
        size = min(BATCH, count - done)
        with tempfile.TemporaryDirectory() as folder:
            for index in range(size):
                path, data = rng.choice(pool)
                flipped = bytearray(data)
                bit = rng.randrange(8 * len(flipped))
                flipped[bit // 8] ^= 1 << bit % 8
                (Path(folder) / f"{index:04}-{bit:x}-{path.name}").write_bytes(flipped)
            code, said = roundtrip(folder, BATCH_SECONDS)
            verdicts = {}
            for line in said.splitlines():
                found = re.match(r"(BYTE-IDENTICAL|DIFFER|[a-zA-Z]+:?) .*?(\d{4}-[0-9a-f]+-[^\s:]+)", line)
                if found:
                    kind = {"BYTE-IDENTICAL": "identical", "DIFFER": "differ"}.get(found[1], "error")
                    verdicts.setdefault(found[2], kind)
            files = sorted(Path(folder).iterdir())
            # Errors are listed up to a limit, and the others counted.
            unlisted = re.search(r"error: \.\.\. and (\d+) more", said)
            missing = [path.name for path in files if path.name not in verdicts]
            if unlisted and int(unlisted[1]) == len(missing) and code == 2:
                verdicts.update((name, "error") for name in missing)
            for path in files:
                kind = verdicts.get(path.name)
                if code is None or bad_exit(code) or kind in (None, "differ") or "internal error" in said:
                    # One by one, to find which.
                    own, text = roundtrip(path, FILE_SECONDS)
                    if own is None:
                        kind = "hang"
                    elif bad_exit(own) or "panicked" in text or "internal error" in text:
                        kind = "crash"
                    else:
                        kind = {0: "identical", 1: "differ"}.get(own, "error")
                totals[kind] += 1
                if kind in ("crash", "hang", "differ"):
                    kept.append(f"{kind}: {path.name}")
                    keep = Path(tempfile.gettempdir()) / "coax-soak"
                    keep.mkdir(exist_ok=True)
                    shutil.copy(path, keep)
        done += size
        print(f"{done}: {totals}", flush=True)
    for line in kept:
        print(f"find, kept in {tempfile.gettempdir()}/coax-soak: {line}")
    return not kept


def kill(count, rng):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        reference = ROOT / "tests/data/code-objects/topksoftmax_4x128x4.gfx942.co"
        edit, target = folder / "edit.s", folder / "out.co"
        subprocess.run([COAX, "disasm", reference, "-o", edit], check=True, stdout=subprocess.DEVNULL)
        text = edit.read_text().split("\n")
        at = next(i for i, line in enumerate(text) if line.strip().startswith("s_endpgm"))
        edit.write_text("\n".join(text[:at] + ["\ts_nop 0"] * 1000 + text[at:]))
        command = [COAX, "patch", reference, edit, "-o", target, "--grow"]
        start = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        took = time.monotonic() - start
        old, new = b"old", target.read_bytes()
        counts = dict(old=0, new=0, damaged=0, temporaries=0)
        for _ in range(count):
            target.write_bytes(old)
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rng.uniform(0, 1.2 * took))
            child.kill()
            child.wait()
            content = target.read_bytes()
            counts["old" if content == old else "new" if content == new else "damaged"] += 1
            left = list(folder.glob(".coax-*"))
            counts["temporaries"] += len(left)
            for path in left:
                path.unlink()
        print(f"{count} kills within {1.2 * took:.3f} s: {counts}")
        return counts["damaged"] == 0


def main():
    seed = int(os.environ.get("SEED", time.time_ns() & 0xFFFFFFFF))
    rng = random.Random(seed)
    rng.seed_of = seed
    match sys.argv[1:]:
        case ["bits", count, *directories]:
            default = [ROOT / "tests/data"] + [Path(p) for p in [os.environ.get("COAX_CORPUS")] if p]
            good = bits(int(count), directories or default, rng)
        case ["kill", count]:
            good = kill(int(count), rng)
        case _:
            sys.exit(__doc__)
    sys.exit(0 if good else 1)


main()
