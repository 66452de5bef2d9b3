"""Normalised gated recurrent units on an accelerator: one kernel for all frames or all places. Those of PyTorch launch a kernel or more
per step, which takes most of the time of small layers."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from network import ends_of

SEQUENCES, ROWS = 16, 32  # per program


def padded(size):
    return max(16, triton.next_power_of_2(size))


@triton.jit
def normalise_kernel(x, out, scales, rows, CHANNELS: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    channel = tl.arange(0, PADDED)
    mask = (row < rows)[:, None] & (channel < CHANNELS)[None]
    at = row[:, None] * CHANNELS + channel[None]
    values = tl.load(x + at, mask, 0).to(tl.float32)
    mean = tl.sum(values, 1) / CHANNELS
    centred = tl.where(mask, values - mean[:, None], 0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 1) / CHANNELS + 1e-5)
    tl.store(out + at, (centred * scale[:, None]).to(out.dtype.element_ty), mask)
    tl.store(scales + row, scale, row < rows)


@triton.jit
def normalise_back_kernel(of_out, out, scales, of_x, rows, CHANNELS: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    channel = tl.arange(0, PADDED)
    mask = (row < rows)[:, None] & (channel < CHANNELS)[None]
    at = row[:, None] * CHANNELS + channel[None]
    slope = tl.load(of_out + at, mask, 0).to(tl.float32)
    values = tl.load(out + at, mask, 0).to(tl.float32)
    along = tl.sum(slope * values, 1) / CHANNELS
    mean = tl.sum(slope, 1) / CHANNELS
    scale = tl.load(scales + row, row < rows, 0)
    found = (slope - mean[:, None] - values * along[:, None]) * scale[:, None]
    tl.store(of_x + at, found.to(of_x.dtype.element_ty), mask)


class Normalise(torch.autograd.Function):
    """Normalises the last axis to mean zero and variance one, like `torch.nn.LayerNorm`; the output has the type `kind`."""

    @staticmethod
    def forward(ctx, x, kind):
        x = x.contiguous()
        out = torch.empty(x.shape, dtype=kind, device=x.device)
        ctx.rows, ctx.kind = x.numel() // x.shape[-1], x.dtype
        scales = x.new_empty(ctx.rows, dtype=torch.float32)
        ctx.sizes = dict(CHANNELS=x.shape[-1], PADDED=padded(x.shape[-1]), BLOCK=ROWS)
        normalise_kernel[(triton.cdiv(ctx.rows, ROWS),)](x, out, scales, ctx.rows, **ctx.sizes)
        ctx.save_for_backward(out, scales)
        return out

    @staticmethod
    def backward(ctx, of_out):
        out, scales = ctx.saved_tensors
        of_x = torch.empty(out.shape, dtype=ctx.kind, device=out.device)
        normalise_back_kernel[(triton.cdiv(ctx.rows, ROWS),)](of_out.contiguous(), out, scales, of_x, ctx.rows, **ctx.sizes)
        return of_x, None


@triton.jit
def logistic(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def three(at, distance, mask):
    """Loads the values of the three gates, `distance` apart."""
    return tl.load(at, mask, 0), tl.load(at + distance, mask, 0), tl.load(at + 2 * distance, mask, 0)


@triton.jit
def cells_of(count, inner, outer, step, steps, BLOCK: tl.constexpr):
    """First cells of the sequences of this program, which of them exist, and the distance between steps in its direction."""
    sequence = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = (sequence // inner).to(tl.int64) * outer + sequence % inner
    backwards = tl.program_id(1)
    return first + backwards * (steps - 1) * step, sequence < count, step * (1 - 2 * backwards)


@triton.jit
def forward_kernel(
    gates, weights, biases, out, saved, count, inner, outer, step, steps,
    UNITS: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr, DIRECTIONS: tl.constexpr,
):  # fmt: skip
    direction = tl.program_id(1)
    cell, there, step = cells_of(count, inner, outer, step, steps, BLOCK)
    unit = tl.arange(0, PADDED)
    real = unit < UNITS
    mask = there[:, None] & real[None]
    kind = gates.dtype.element_ty
    # From unit k (rows) to unit j of a gate (columns).
    w = weights + direction * 3 * UNITS * UNITS + unit[None] * UNITS + unit[:, None]
    square = real[None] & real[:, None]
    wr, wz, wn = three(w, UNITS * UNITS, square)
    b = biases + direction * 4 * UNITS + unit
    br, bz, bn = three(b, UNITS, real)
    bh = tl.load(b + 3 * UNITS, real, 0)
    g = gates + (cell[:, None] * DIRECTIONS + direction) * 3 * UNITS + unit[None]
    o = out + (cell[:, None] * DIRECTIONS + direction) * UNITS + unit[None]
    s = saved + (cell[:, None] * DIRECTIONS + direction) * 5 * UNITS + unit[None]
    over = step * DIRECTIONS * UNITS
    last = tl.full((BLOCK, 1), steps - 1, tl.int32)
    h = tl.zeros((BLOCK, PADDED), tl.float32)
    xr, xz, xn = three(g, UNITS, mask)
    for k in range(steps):
        # Values of the next step are loaded during this one.
        ahead = mask & (k < last)
        g += 3 * over
        next_r, next_z, next_n = three(g, UNITS, ahead)
        seen = h.to(kind)
        r = logistic(xr.to(tl.float32) + br[None] + tl.dot(seen, wr, input_precision="ieee"))
        z = logistic(xz.to(tl.float32) + bz[None] + tl.dot(seen, wz, input_precision="ieee"))
        hn = bh[None] + tl.dot(seen, wn, input_precision="ieee")
        n = 2 * logistic(2 * (xn.to(tl.float32) + bn[None] + r * hn)) - 1
        h = n + z * (h - n)
        tl.store(s, r.to(kind), mask)
        tl.store(s + UNITS, z.to(kind), mask)
        tl.store(s + 2 * UNITS, n.to(kind), mask)
        tl.store(s + 3 * UNITS, hn.to(kind), mask)
        tl.store(s + 4 * UNITS, seen, mask)
        tl.store(o, h.to(kind), mask)
        s += 5 * over
        o += over
        xr, xz, xn = next_r, next_z, next_n


@triton.jit
def backward_kernel(
    of_out, weights, saved, of_gates, of_hidden, of_biases, count, inner, outer, step, steps,
    UNITS: tl.constexpr, PADDED: tl.constexpr, BLOCK: tl.constexpr, DIRECTIONS: tl.constexpr,
):  # fmt: skip
    direction = tl.program_id(1)
    first, there, step = cells_of(count, inner, outer, step, steps, BLOCK)
    cell = first + (steps - 1) * step
    unit = tl.arange(0, PADDED)
    real = unit < UNITS
    mask = there[:, None] & real[None]
    kind = saved.dtype.element_ty
    # From unit j of a gate (rows) back to unit k (columns).
    w = weights + direction * 3 * UNITS * UNITS + unit[:, None] * UNITS + unit[None]
    square = real[None] & real[:, None]
    wr, wz, wn = three(w, UNITS * UNITS, square)
    d = of_out + (cell[:, None] * DIRECTIONS + direction) * UNITS + unit[None]
    s = saved + (cell[:, None] * DIRECTIONS + direction) * 5 * UNITS + unit[None]
    g = of_gates + (cell[:, None] * DIRECTIONS + direction) * 3 * UNITS + unit[None]
    e = of_hidden + (cell[:, None] * DIRECTIONS + direction) * UNITS + unit[None]
    over = step * DIRECTIONS * UNITS
    last = tl.full((BLOCK, 1), steps - 1, tl.int32)
    carried = tl.zeros((BLOCK, PADDED), tl.float32)
    sum_r = tl.zeros((BLOCK, PADDED), tl.float32)
    sum_z = tl.zeros((BLOCK, PADDED), tl.float32)
    sum_n = tl.zeros((BLOCK, PADDED), tl.float32)
    sum_h = tl.zeros((BLOCK, PADDED), tl.float32)
    dout = tl.load(d, mask, 0)
    r, z, n = three(s, UNITS, mask)
    hn = tl.load(s + 3 * UNITS, mask, 0)
    before = tl.load(s + 4 * UNITS, mask, 0)
    for k in range(steps):
        ahead = mask & (k < last)
        d -= over
        s -= 5 * over
        next_dout = tl.load(d, ahead, 0)
        next_r, next_z, next_n = three(s, UNITS, ahead)
        next_hn = tl.load(s + 3 * UNITS, ahead, 0)
        next_before = tl.load(s + 4 * UNITS, ahead, 0)
        r, z, n, hn = r.to(tl.float32), z.to(tl.float32), n.to(tl.float32), hn.to(tl.float32)
        dh = dout.to(tl.float32) + carried
        dn = dh * (1 - z) * (1 - n * n)
        dz = dh * (before.to(tl.float32) - n) * z * (1 - z)
        dr = dn * hn * r * (1 - r)
        dhn = dn * r
        sum_r += dr
        sum_z += dz
        sum_n += dn
        sum_h += dhn
        carried = dh * z + tl.dot(dr.to(kind), wr, input_precision="ieee")
        carried += tl.dot(dz.to(kind), wz, input_precision="ieee")
        carried += tl.dot(dhn.to(kind), wn, input_precision="ieee")
        tl.store(g, dr.to(kind), mask)
        tl.store(g + UNITS, dz.to(kind), mask)
        tl.store(g + 2 * UNITS, dn.to(kind), mask)
        tl.store(e, dhn.to(kind), mask)
        g -= 3 * over
        e -= over
        dout, r, z, n, hn, before = next_dout, next_r, next_z, next_n, next_hn, next_before
    b = of_biases + (tl.program_id(0) * DIRECTIONS + direction) * 4 * UNITS + unit
    tl.store(b, tl.sum(sum_r, 0), real)
    tl.store(b + UNITS, tl.sum(sum_z, 0), real)
    tl.store(b + 2 * UNITS, tl.sum(sum_n, 0), real)
    tl.store(b + 3 * UNITS, tl.sum(sum_h, 0), real)


def extent(shape, over_frames):
    """Number of sequences; number of adjacent sequences, and distance between such groups; distance between steps; number of steps. Distances
    are in cells, which are numbered along (examples, frames, places)."""
    n, frames, places = shape
    return (n * places, places, frames * places, places, frames) if over_frames else (n * frames, 1, places, 1, places)


class Recur(torch.autograd.Function):
    """States (examples, frames, places, directions * units) from input gates (examples, frames, places, directions * 3 * units), recurrent
    weights (directions, 3 * units, units), and biases (directions, 4, units) of the gates and of the recurrent part of the third gate."""

    @staticmethod
    def forward(ctx, gates, weights, biases, over_frames):
        directions, _, units = weights.shape
        gates, recurrent = gates.contiguous(), weights.to(gates.dtype).contiguous()
        cells = gates.shape[:3]
        out = gates.new_empty(*cells, directions * units)
        saved = gates.new_empty(*cells, directions, 5, units)
        ctx.extent = extent(cells, over_frames)
        # With fewer warps, the weights do not fit in registers.
        warps = 8 if padded(units) > 32 else 4
        ctx.sizes = dict(UNITS=units, PADDED=padded(units), BLOCK=SEQUENCES, DIRECTIONS=directions, num_warps=warps)
        ctx.grid = (triton.cdiv(ctx.extent[0], SEQUENCES), directions)
        forward_kernel[ctx.grid](gates, recurrent, biases.contiguous(), out, saved, *ctx.extent, **ctx.sizes)
        ctx.save_for_backward(recurrent, saved)
        return out

    @staticmethod
    def backward(ctx, of_out):
        recurrent, saved = ctx.saved_tensors
        directions, _, units = recurrent.shape
        of_gates = saved.new_empty(*saved.shape[:3], directions, 3, units)
        of_hidden = saved.new_empty(*saved.shape[:3], directions, units)
        of_biases = saved.new_empty(ctx.grid[0], directions, 4, units, dtype=torch.float32)
        of_out = of_out.to(saved.dtype).contiguous()
        backward_kernel[ctx.grid](of_out, recurrent, saved, of_gates, of_hidden, of_biases, *ctx.extent, **ctx.sizes)
        by_cell = lambda x: x.reshape(-1, *x.shape[3:])
        before, outer, hidden = by_cell(saved)[:, :, 4], by_cell(of_gates).flatten(2)[..., : 2 * units], by_cell(of_hidden)
        of_weights = torch.stack(
            [torch.cat([outer[:, d].mT @ before[:, d], hidden[:, d].mT @ before[:, d]]) for d in range(directions)]
        )
        return of_gates.flatten(3), of_weights.float(), of_biases.sum(0), None


def run(norm, units, x, over_frames):
    """Outputs of gated recurrent units (`torch.nn.GRU`, batch first) over frames or over places, of the input x (examples, frames, places,
    channels) after `norm` (`torch.nn.LayerNorm`)."""
    kind = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else x.dtype
    of = lambda name: torch.stack([getattr(units, f"{name}_{end}") for end in ends_of(units)])
    # Scale and shift of the normalisation are folded into the weights.
    weights = of("weight_ih")
    outer = (of("bias_ih") + weights @ norm.bias).unflatten(1, (3, -1))
    inner = of("bias_hh").unflatten(1, (3, -1))
    biases = torch.cat([outer[:, :2] + inner[:, :2], outer[:, 2:], inner[:, 2:]], 1)
    gates = F.linear(Normalise.apply(x, kind), (weights * norm.weight).flatten(0, 1).to(kind))
    return Recur.apply(gates, of("weight_hh"), biases.float(), over_frames)
