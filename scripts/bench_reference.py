#!/usr/bin/env python3
"""A stand-in for a script that reads dumps with regular expressions, line by line: the figure that scripts/bench
prints beside coax. It counts the same sites and reads the same figures, but checks nothing, so it flatters the script.

    bench_reference.py BEFORE AFTER      exit 1 if a figure grew, else 0
"""

import re
import sys
from pathlib import Path

SITES = {
    "lds_read": re.compile(r"^\s+ds_(?:read|load)(?=[_2])"),
    "lds_write": re.compile(r"^\s+ds_(?:write|store)(?=[_2])"),
    "scratch_store": re.compile(r"^\s+scratch_store"),
    "scratch_load": re.compile(r"^\s+scratch_load"),
    "matrix_ops": re.compile(r"^\s+v_(?:mfma|wmma|smfmac|swmmac)"),
}
FIGURE = re.compile(r"^\s+(?:- )?\.(\w+):\s+(\d+)")
SYMBOL = re.compile(r"^\s*\.set\s+(?:\.L)?([\w.$]+)\.(num_vgpr|num_agpr|numbered_sgpr|private_seg_size),\s*(\d+)")
LABEL = re.compile(r"^([\w.$]+):")
SIZE = re.compile(r"^\s*\.size\s+([\w.$]+),")
TRIGGERS = ("vgpr_count", "sgpr_count", "vgpr_spill_count", "sgpr_spill_count", "private_segment_fixed_size",
            "group_segment_fixed_size")


def read(path):
    figures = dict.fromkeys(SITES, 0)
    in_body = in_metadata = False
    for line in path.read_text(encoding="utf-8").splitlines():
        if ".end_amdgpu_metadata" in line:
            in_metadata = False
        elif ".amdgpu_metadata" in line:
            in_metadata = True
        elif in_metadata:
            if found := FIGURE.match(line):
                figures[found[1]] = int(found[2])
        elif SIZE.match(line):
            in_body = False
        elif found := SYMBOL.match(line):
            figures[found[2]] = int(found[3])
        elif found := LABEL.match(line):
            in_body = in_body or not found[1].startswith(".L")
        elif in_body:
            for name, pattern in SITES.items():
                if pattern.match(line):
                    figures[name] += 1
    return figures


def tree(root):
    return {path.parent.name: read(path) for path in sorted(Path(root).rglob("*final_isa.s"))}


def main():
    before, after = tree(sys.argv[1]), tree(sys.argv[2])
    worse = sum(after[kernel][name] > before[kernel][name] for kernel in before for name in TRIGGERS)
    print(f"{len(before)} kernels, {worse} figures grew")
    return 1 if worse else 0


sys.exit(main())
