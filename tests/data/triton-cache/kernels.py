"""Two kernels and the script that compiles them into the cache directories `before/` and `after/`.

    python kernels.py OUT [--launch jit|ast] [--arch gfx942]

Each kernel is compiled twice, with different constexprs: four cache entries per directory. `regenerate` makes
`before/` from this file and `after/` from a copy in which K_SLICES is 2. No GPU is needed: nothing is launched.
"""

import argparse
import os

parser = argparse.ArgumentParser()
parser.add_argument("out")
parser.add_argument("--launch", choices=["jit", "ast"], default="jit")
parser.add_argument("--arch", default="gfx942")
args = parser.parse_args()
os.environ["TRITON_CACHE_DIR"] = os.path.abspath(args.out)  # read when triton is imported

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget

# How many slices of both operands one turn of the matmul loop multiplies; not an argument, so not a specialisation.
K_SLICES = tl.constexpr(1)


@triton.jit
def tile_matmul(lhs, rhs, out, depth, lhs_row, rhs_row, out_row, ROWS: tl.constexpr, COLS: tl.constexpr,
                SLICE: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    span: tl.constexpr = SLICE * K_SLICES
    inner = tl.arange(0, span)
    lhs_tile = lhs + rows[:, None] * lhs_row + inner[None, :]
    rhs_tile = rhs + inner[:, None] * rhs_row + cols[None, :]
    total = tl.zeros((ROWS, COLS), dtype=tl.float32)
    for _ in range(0, depth, span):
        total = tl.dot(tl.load(lhs_tile), tl.load(rhs_tile), total)
        lhs_tile += span
        rhs_tile += span * rhs_row
    tl.store(out + rows[:, None] * out_row + cols[None, :], total.to(tl.float16))


@triton.jit
def row_norm(out, values, length, row, epsilon, WIDTH: tl.constexpr):
    start = tl.program_id(0) * row
    lane = tl.arange(0, WIDTH)
    x = tl.load(values + start + lane, mask=lane < length, other=0.0)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / length + epsilon)
    tl.store(out + start + lane, x * scale, mask=lane < length)


POINTER_ALIGN = [["tt.divisibility", 16]]
F16, F32, INT, FLOAT = "*fp16", "*fp32", "i32", "fp32"
TILED = {"lhs": F16, "rhs": F16, "out": F16, "depth": INT, "lhs_row": INT, "rhs_row": INT, "out_row": INT}
NORMED = {"out": F32, "values": F32, "length": INT, "row": INT, "epsilon": FLOAT}
ENTRIES = [
    (tile_matmul, TILED, {"ROWS": 64, "COLS": 64, "SLICE": 32}, {"num_stages": 2}),
    (tile_matmul, TILED, {"ROWS": 128, "COLS": 64, "SLICE": 32}, {"num_stages": 2}),
    (row_norm, NORMED, {"WIDTH": 1024}, {}),
    (row_norm, NORMED, {"WIDTH": 4096}, {"num_warps": 8}),
]


def compile_from_source(target, fn, types, constexprs, options):
    """The path of ahead-of-time compilers: the caller states signature and attributes."""
    signature = {name: types.get(name, "constexpr") for name in fn.arg_names}
    aligned = {(fn.arg_names.index(name),): POINTER_ALIGN for name, ty in types.items() if ty != FLOAT}
    source = triton.compiler.ASTSource(fn, signature, constexprs=constexprs, attrs=aligned)
    return triton.compile(source, target=target, options=options)


class NoDevice:
    """Names the target and nothing else: enough to compile through the launcher's path."""

    def __init__(self, target):
        self.target = target

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0


class Pointer:
    """Stands for an aligned tensor: the launcher asks for the element type and the address."""

    def __init__(self, dtype):
        self.dtype = dtype

    def data_ptr(self):
        return 4096

    def ptr_range(self):
        return 1 << 20


def compile_from_launch(target, fn, types, constexprs, options):
    """The path of `kernel[grid](…)`: the launcher derives signature and attributes from the arguments."""
    triton.runtime.driver.set_active(NoDevice(target))
    example = {F16: Pointer(tl.float16), F32: Pointer(tl.float32), INT: 4096, FLOAT: 1e-6}
    arguments = [example[types[name]] for name in fn.arg_names if name in types]
    return fn.warmup(*arguments, grid=(1, ), **constexprs, **options)


target = GPUTarget("hip", args.arch, 64 if args.arch.startswith("gfx9") else 32)
for fn, types, constexprs, options in ENTRIES:
    kernel = (compile_from_launch if args.launch == "jit" else compile_from_source)(target, fn, types, constexprs,
                                                                                   options)
    print(fn.__name__, constexprs, options, "LDS", kernel.metadata.shared, kernel.metadata.hash[:8])
