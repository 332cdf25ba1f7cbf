"""Arguments of convolutions."""
from ..common import cdiv
from .maker import maker


@maker("conv2d")
def _(m, c):
    batch, side, channels, filters = (16, 56, 128, 128) if c.SIDE == 3 else (32, 56, 256, 512)
    out = (side + 2 * c.PAD - c.SIDE) // c.STRIDE + 1
    return dict(x=m.randn("x", batch, side, side, channels), w=m.randn("w", filters, c.SIDE * c.SIDE, channels, scale=0.1),
                y=m.out("y", batch, out, out, filters), batch=batch, height=side, width=side, channels=channels,
                filters=filters, out_height=out, out_width=out), (cdiv(batch * out * out, c.BM), cdiv(filters, c.BN))


@maker("conv2d_depthwise")
def _(m, c):
    height, width, channels = 250, 253, 256
    return dict(x=m.randn("x", height, width, channels), w=m.randn("w", c.SIDE * c.SIDE, channels),
                y=m.out("y", height, width, channels), height=height, width=width, channels=channels), \
        (height, cdiv(width, c.BW), cdiv(channels, c.BC))


@maker("conv1d_causal")
def _(m, c):
    batch, length, channels = 4, 2001, 4096
    return dict(x=m.randn("x", batch, length, channels), w=m.randn("w", channels, c.TAPS), bias=m.randn("bias", channels),
                y=m.out("y", batch, length, channels), length=length, channels=channels), \
        (cdiv(length, c.BT), cdiv(channels, c.BC), batch)


@maker("max_pool")
def _(m, c):
    height, width, channels = 223, 225, 256
    oh, ow = (height + 1) // 2, (width + 1) // 2
    return dict(x=m.randn("x", height, width, channels), y=m.out("y", oh, ow, channels),
                where=m.out("where", oh, ow, channels), height=height, width=width, channels=channels), \
        (oh, ow, cdiv(channels, c.BC))
