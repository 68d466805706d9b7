"""Writes dtypes.txt: what `ml_dtypes` says of every code of the small types, and of roundings between them.

    pip install ml_dtypes==0.6.0 numpy==2.4.6 && python3 dtypes.py > dtypes.txt

Lines: `decode TYPE CODE F64BITS` (NaN as `nan`) and `encode TYPE F64BITS CODE`, numbers in hexadecimal. Roundings are
of the values halfway between neighbours and of their neighbours in f32 (ml_dtypes rounds f64 twice, by way of f32),
inside the range of the type, where every implementation has to agree.
"""
import math
import struct

import ml_dtypes
import numpy as np

TYPES = [
    ("fp8_e4m3", ml_dtypes.float8_e4m3fn, 8),
    ("fp8_e5m2", ml_dtypes.float8_e5m2, 8),
    ("fp8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz, 8),
    ("fp8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz, 8),
    ("fp6_e2m3", ml_dtypes.float6_e2m3fn, 6),
    ("fp6_e3m2", ml_dtypes.float6_e3m2fn, 6),
    ("fp4_e2m1", ml_dtypes.float4_e2m1fn, 4),
    ("e8m0", ml_dtypes.float8_e8m0fnu, 8),
    ("bf16", ml_dtypes.bfloat16, 16),
    ("f16", np.float16, 16),
]


def bits(value):
    return "nan" if math.isnan(value) else "%x" % struct.unpack("<Q", struct.pack("<d", value))[0]


print(f"# Written by dtypes.py with ml_dtypes {ml_dtypes.__version__} and numpy {np.__version__}; do not edit.")
for name, kind, width in TYPES:
    storage = np.uint16 if width == 16 else np.uint8
    codes = range(2**width) if width < 16 else range(0, 2**16, 251)
    values = np.array(list(codes), dtype=storage).view(kind).astype(np.float64)
    for code, value in zip(codes, values):
        print("decode", name, "%x" % code, bits(value))
    finite = sorted({float(v) for v in values if math.isfinite(v)})
    probes = []
    for low, high in zip(finite, finite[1:]):
        middle = low + (high - low) / 2
        if name == "e8m0" and middle < 2**-126:
            continue  # f32 denormals, which ml_dtypes rounds up whatever they are
        probes.append(middle)
        if np.float32(middle) == middle:
            probes += [float(np.nextafter(np.float32(middle), np.float32(end))) for end in (high, low)]
    probes += [-0.0, 0.0] if name != "e8m0" else []
    for probe in probes:
        code = np.array([probe]).astype(kind).view(storage)[0]
        print("encode", name, bits(probe), "%x" % code)
