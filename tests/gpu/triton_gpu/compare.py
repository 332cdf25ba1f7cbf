"""Compares what the two cubins of a kernel wrote."""
import math

TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 4e-3, "bfloat16": 3e-2}
# A rounding more or less may choose the other neighbour here: so many elements, as a share, may differ.
SOFT = {"moe_gate_topk": 1e-4, "quantize_rows_int8": 1e-3}


def same_bits(torch, a, b):
    return torch.equal(a.view(torch.uint8), b.view(torch.uint8))


def difference(torch, reference, other):
    """(largest relative difference, elements that differ); relative to the number and the root mean square."""
    if not reference.dtype.is_floating_point:
        wrong = int((reference != other).sum())
        return (float("inf") if wrong else 0.0), wrong
    worst, wrong = 0.0, 0
    a_all, b_all = reference.reshape(-1), other.reshape(-1)
    step = 1 << 25
    squares, count = 0.0, 0
    for at in range(0, a_all.numel(), step):
        a = a_all[at:at + step].to(torch.float64)
        good = torch.isfinite(a)
        squares += float(torch.where(good, a * a, torch.zeros_like(a)).sum())
        count += int(good.sum())
    rms = math.sqrt(squares / max(count, 1))
    for at in range(0, a_all.numel(), step):
        a, b = a_all[at:at + step].to(torch.float64), b_all[at:at + step].to(torch.float64)
        equal = (a == b) | (torch.isnan(a) & torch.isnan(b))
        part = int((~equal).sum())
        if part:
            wrong += part
            error = torch.where(equal, torch.zeros_like(a), (a - b).abs() / (a.abs() + rms))
            error = torch.nan_to_num(error, nan=float("inf"), posinf=float("inf"))
            worst = max(worst, float(error.max()))
    return worst, wrong
